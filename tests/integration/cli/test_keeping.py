"""`sayso audit`, `stats`, `store`, `reconcile`, `worker`, `watch` and `policy`."""

import csv
import io
import json
import signal
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from subprocess import Popen
from typing import cast

import pytest

from sayso import Status
from sayso.actions import Json
from sayso.audit import genesis, link
from tests.guarantees import guarantee
from tests.integration.cli.terminal import HOUR, Office


def test_tail_prints_the_newest_entries_with_the_newest_last(office: Office) -> None:
    names = [office.ask(args={"price": 500 + number}).id for number in range(4)]
    lines = office.run("audit", "tail", "-n", "3").lines
    assert [line.split("\t")[3] for line in lines] == names[1:]
    documents = [json.loads(line) for line in office.run("audit", "tail", "-n", "2", "--json").lines]
    assert [each["approval_id"] for each in documents] == names[2:]
    assert documents[0]["body"]["data"]["tool"] == "book_flight"


def test_a_sound_audit_answers_three_questions_and_says_what_no_checkpoint_covers(office: Office) -> None:
    office.ask()
    done = office.run("audit", "verify")
    assert done.code == 0
    assert [line.split()[:2] for line in done.lines[:3]] == [
        ["integrity", "ok"],
        ["completeness", "ok"],
        ["attribution", "ok"],
    ]
    assert "1 entry is not covered by a checkpoint" in done.out
    assert office.run("audit", "checkpoint").code == 0
    assert "not covered" not in office.run("audit", "verify").out
    assert office.run("audit", "checkpoint", "--json").json["signed"] is False


@guarantee("G7")
def test_a_changed_entry_is_named_and_the_exit_code_is_5(office: Office) -> None:
    office.ask()
    with _forging(office) as connection:
        connection.execute("UPDATE entries SET body = replace(body, 'bot', 'eve') WHERE seq = 1")
    done = office.run("audit", "verify")
    assert done.code == 5
    assert "integrity     NOT SOUND" in done.lines[0]
    assert "entry 1 (opened" in done.lines[1]
    report = office.run("audit", "verify", "--json")
    assert report.code == 5
    assert (report.json["sound"], report.json["integrity"], report.json["attribution"]) == (
        False,
        False,
        True,
    )


@guarantee("G7")
def test_entries_cut_off_the_end_are_missed_through_the_checkpoint(office: Office) -> None:
    asked = office.ask()
    office.run("reject", asked.id, "--reason", "no")
    office.run("audit", "checkpoint")
    with _forging(office) as connection:
        connection.execute("DELETE FROM entries WHERE seq = 2")
    done = office.run("audit", "verify")
    assert done.code == 5
    assert "completeness  NOT SOUND" in done.out


def test_the_export_holds_all_that_is_needed_to_check_the_chain_again(office: Office) -> None:
    asked = office.ask()
    office.run("reject", asked.id, "--reason", "no")
    previous = genesis("trip")
    for line in office.run("audit", "export").lines:
        entry = json.loads(line)
        parts = (entry["n"], entry["at"], entry["kind"], entry["approval_id"], entry["body"])
        assert link(previous, *parts).hex() == entry["hash"]
        previous = bytes.fromhex(entry["hash"])


def test_the_export_as_csv_goes_to_a_new_file_only_and_holds_no_formula(office: Office) -> None:
    office.ask()
    file = office.folder / "audit.csv"
    done = office.run("audit", "export", "--format", "csv", "--output", str(file))
    assert done.out == f"1 entry written to {file}\n"
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert (rows[0]["kind"], rows[0]["thread"]) == ("opened", "trip")
    again = office.run("audit", "export", "--output", str(file))
    assert again.code == 2
    assert "exists already" in again.err


def test_the_statistics_count_calls_decisions_and_people(office: Office) -> None:
    kept = office.ask()
    for price, person in ((500, "ann"), (600, "ben"), (700, "ann")):
        office.run("reject", office.ask(args={"price": price}).id, "--reason", "no", person=person)
    found = office.run("stats", "--json").json
    assert found["statuses"] == {status.value: 0 for status in Status} | {"pending": 1, "rejected": 3}
    assert found["people"] == [
        {"person": "ann", "decisions": 2, "hasty": 0, "late": 0},
        {"person": "ben", "decisions": 1, "hasty": 0, "late": 0},
    ]
    assert found["tools"] == [
        {"tool": "book_flight", "allowed": 0, "asked": 4, "denied": 0, "interrupt_rate": 1.0}
    ]
    lines = office.run("stats").lines
    assert "status\tpending\t1" in lines
    assert "person\tann\t2\t0\t0" in lines
    screen = office.sit_down("stats", columns=80)
    assert screen.ended() == 0
    assert max(map(len, screen.screen.splitlines())) <= 80
    assert office.now(kept.id).status is Status.PENDING


def test_a_sound_store_is_checked_without_changing_a_byte_of_it(office: Office) -> None:
    office.ask()
    before = office.path.read_bytes()
    done = office.run("store", "check")
    assert done.code == 0, done.out
    assert "every list reads an index" in done.out
    assert office.run("store", "check", "--json").json["scans"] == []
    assert office.path.read_bytes() == before


def test_a_store_whose_index_is_gone_is_found_out(office: Office) -> None:
    office.ask()
    with sqlite3.connect(office.path) as connection:
        indexes = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND sql NOT NULL"
        ).fetchall()
        for (name,) in indexes:
            connection.execute(f"DROP INDEX {name}")
    done = office.run("store", "check", "--json")
    assert done.code == 5
    assert any(str(scan).startswith("page: ") for scan in cast("list[Json]", done.json["scans"]))


def test_a_store_of_a_newer_sayso_is_not_touched(office: Office) -> None:
    with sqlite3.connect(office.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert office.run("store", "check").code == 5
    done = office.run("inbox")
    assert done.code == 6
    assert "use the newer Sayso" in done.err
    assert office.run("store", "migrate").code == 6


def test_a_file_that_is_no_store_is_a_store_error(office: Office) -> None:
    (office.folder / "notes.db").write_text("not a database at all, but long enough to be read as one")
    for words in (("inbox",), ("store", "check")):
        done = office.run(*words, "--store", "notes.db")
        assert done.code == 6
        assert "Traceback" not in done.err


def test_migrate_makes_a_store_and_finds_nothing_to_do_the_second_time(office: Office) -> None:
    first = office.run("store", "migrate", "--store", "new.db", "--json").json
    assert first["from"] == 0
    assert first["to"] == office.run("store", "migrate", "--store", "new.db", "--json").json["from"]


@guarantee("G3")
def test_what_never_reported_back_is_listed_and_settled_once(office: Office) -> None:
    asked = office.leave_unknown()
    listed = office.run("reconcile")
    assert listed.lines[0].startswith(asked.id)
    assert "did it run?" in office.run("reconcile", asked.id).err
    done = office.run("reconcile", asked.id, "--did-not-run", "--note", "asked the mail server")
    assert done.code == 0
    assert office.now(asked.id).status is Status.FAILED
    assert office.run("reconcile", asked.id, "--ran").code == 1
    assert office.run("reconcile", "--json").json == {"approvals": []}


def test_the_worker_expires_tells_and_signs_in_one_pass(office: Office) -> None:
    asked = office.ask(ago=HOUR)
    done = office.run("worker", "--once")
    assert done.code == 0
    assert done.lines[-1] == "1 expired, 0 of unknown outcome, 2 notices delivered, checkpoint 1 signed"
    assert f"{asked.id} was expired" in done.out
    assert office.now(asked.id).status is Status.EXPIRED
    again = [json.loads(line) for line in office.run("worker", "--once", "--json").lines]
    assert again == [{"expired": 0, "unknown": 0, "damaged": 0, "delivered": 0, "checkpoint": 0}]


def test_the_worker_tells_at_once_what_another_process_did_and_leaves_on_sigterm(office: Office) -> None:
    with _going_on(office, "worker", "--interval", "3600") as (program, line):
        asked = office.ask()
        assert line().startswith(f"{asked.id} needs a decision")
        program.send_signal(signal.SIGTERM)
        assert program.wait(30) == 0


def test_watch_prints_what_happens_as_it_happens_and_ends_with_ctrl_c(office: Office) -> None:
    with _going_on(office, "watch") as (program, line):
        asked = office.ask()
        assert line().split("\t")[1:3] == [asked.id, "opened"]
        office.run("reject", asked.id, "--reason", "no", person="ben")
        assert line().split("\t")[1:4] == [asked.id, "rejected", "ben (cli)"]
        program.send_signal(signal.SIGINT)
        assert program.wait(30) == 130


def test_a_policy_is_checked_and_each_mistake_is_named_by_line(office: Office) -> None:
    good = office.run("policy", "check", "sayso.yaml")
    assert good.code == 0
    assert "6 rules, no mistakes" in good.out
    (office.folder / "bad.yaml").write_text("unlisted: maybe\ntools:\n  a: {efect: read}\n  b: nonsense\n")
    bad = office.run("policy", "check", "bad.yaml")
    assert bad.code == 2
    for place in ("bad.yaml:1:", "bad.yaml:3:", "bad.yaml:4:"):
        assert f"\n  {place}" in bad.err


def test_explain_says_what_each_rule_said(office: Office) -> None:
    asked = office.run("policy", "explain", "--tool", "book_flight", "--args", '{"price": 500}')
    assert asked.code == 0
    assert asked.lines[0] == "ask  book_flight is irreversible"
    assert "proof: code" in asked.lines
    allowed = office.run(
        "policy", "explain", "--tool", "book_flight", "--args", '{"price": 50}', "--json"
    ).json
    assert (allowed["outcome"], allowed["terms"]) == ("allow", None)
    unsure = office.run("policy", "explain", "--tool", "book_flight", "--confidence", "0.2", "--json").json
    assert unsure["outcome"] == "deny"


def test_lint_names_tools_without_a_rule_and_rules_without_a_tool(office: Office) -> None:
    every = "search_flights,book_flight,send_email,issue_refund,delete_user,write_file"
    assert office.run("policy", "lint", "--tools", every).code == 0
    done = office.run("policy", "lint", "--tools", every.replace("write_file", "write_files"))
    assert done.code == 2
    assert "no rule is about `write_files`; did you mean `write_file`?" in done.out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("inbx",), 2),
        (("inbox", "--limit", "x"), 2),
        (("inbox", "--after", "nonsense"), 2),
        (("show", "nope"), 3),
        (("audit", "nonsense"), 2),
        (("policy", "check", "missing.yaml"), 2),
        (("inbox", "--config", "missing.toml"), 2),
    ],
)
def test_every_mistake_is_one_line_with_its_exit_code_and_the_same_as_json(
    office: Office, words: tuple[str, ...], code: int
) -> None:
    done = office.run(*words)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("error: ")
    assert len(done.err.splitlines()) == 1
    told = office.run(*words, "--json")
    assert (told.code, told.err) == (code, "")
    error = cast("Mapping[str, Json]", told.json["error"])
    assert set(error) == {"code", "message", "hint", "approval_id"}
    assert str(error["message"]) in done.err


def test_the_beginning_of_two_ids_names_both_and_neither(office: Office) -> None:
    names = sorted(office.ask(args={"price": 500 + number}).id for number in range(2))
    done = office.run("show", "ap")
    assert done.code == 3
    assert ", ".join(names) in done.err


@contextmanager
def _forging(office: Office) -> Generator[sqlite3.Connection]:
    """Open the file as somebody would who wants to change the past."""
    connection = sqlite3.connect(office.path)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


class _Lines:
    """The lines of a program that goes on."""

    def __init__(self, program: "Popen[str]") -> None:
        self._program = program

    def __call__(self) -> str:
        assert self._program.stdout is not None
        return self._program.stdout.readline().rstrip("\n")


@contextmanager
def _going_on(office: Office, *words: str) -> Generator[tuple["Popen[str]", _Lines]]:
    """Start a command that goes on, once it says that it listens."""
    program = office.pipe(*words)
    assert program.stderr is not None
    try:
        assert "Ctrl-C ends" in program.stderr.readline()
        yield program, _Lines(program)
    finally:
        program.kill()
        program.communicate()
