"""`sayso inbox`, `show`, `version` and the help: what waits, and what exactly would run."""

import re
from collections.abc import Mapping
from typing import cast

import pytest

from sayso.actions import Json
from tests.guarantees import guarantee
from tests.integration.cli.terminal import HOUR, SECRET, Office

ANSI = re.compile(r"\x1b|[\u2500-\u257f]")


def test_the_inbox_in_a_pipe_is_one_line_an_approval_with_tabs_and_nothing_a_terminal_would_need(
    office: Office,
) -> None:
    asked = office.ask()
    done = office.run("inbox")
    assert done.code == 0
    assert not ANSI.search(done.out)
    (line,) = done.lines
    name, status, left, effect, asked_by, headline = line.split("\t")
    assert (name, status, effect) == (asked.id, "pending", "irreversible")
    assert 0 < int(left) <= 1800
    assert asked_by == "assistant, requested by bot"
    assert headline == 'book_flight would run with flight "UA 212", price 1847, refundable false'


def test_the_inbox_as_json_is_one_document_with_the_cursor_of_the_next_page(office: Office) -> None:
    names = {office.ask(args={"price": 500 + number}).id for number in range(3)}
    first = office.run("inbox", "--json", "--limit", "2").json
    rest = office.run("inbox", "--json", "--limit", "2", "--after", str(first["next"])).json
    found = [*_listed(first), *_listed(rest)]
    assert {str(each["id"]) for each in found} == names
    assert rest["next"] is None


def test_an_empty_inbox_prints_nothing_into_a_pipe(office: Office) -> None:
    done = office.run("inbox")
    assert (done.code, done.out) == (0, "")
    assert "Nothing waits" in done.err


def test_the_inbox_on_a_terminal_fits_in_80_columns_and_names_every_approval(office: Office) -> None:
    asked = office.ask(args={"price": 500, "note": "x" * 300})
    screen = office.sit_down("inbox", columns=80)
    assert screen.ended() == 0
    assert asked.id[:10] in screen.screen
    assert max(map(len, screen.screen.splitlines())) <= 80


def test_all_lists_every_status_and_a_status_lists_only_its_own(office: Office) -> None:
    kept, gone = office.ask(args={"price": 500}), office.ask(args={"price": 600})
    assert office.run("reject", gone.id, "--reason", "no").code == 0
    assert {line.split("\t")[1] for line in office.run("inbox", "--all").lines} == {"pending", "rejected"}
    assert office.run("inbox", "--status", "rejected").out.startswith(gone.id)
    assert office.run("inbox").out.startswith(kept.id)


def test_an_approval_can_be_named_by_the_beginning_of_its_id(office: Office) -> None:
    asked = office.ask()
    assert office.run("show", asked.id[:8]).lines[0] == f"approval: {asked.id}"


@guarantee("G8")
def test_a_card_in_a_pipe_is_stable_lines_and_values_cannot_pass_for_lines(office: Office) -> None:
    asked = office.ask("send_email", {"body": "hello\nsilence: it will run\x1b[2J", "to": "a@b.c"})
    done = office.run("show", asked.id)
    assert not ANSI.search(done.out)
    assert 'args.body: "hello' in done.lines
    assert "silence: it will run" not in done.lines
    assert any("U+001B ESCAPE" in line for line in done.lines)


@guarantee("G8")
def test_a_hidden_part_is_named_and_can_be_opened_alone_or_with_all_others(office: Office) -> None:
    body, note = "b" * 3000, "n" * 3000
    asked = office.ask("send_email", {"body": body, "note": note})
    closed = office.run("show", asked.id).out
    assert "not fully shown: args.body" in closed
    assert body not in closed
    one = office.run("show", asked.id, "--open", "args.body").out
    assert body in one
    assert note not in one
    every = office.run("show", asked.id, "--open-all").out
    assert body in every
    assert note in every
    assert "not fully shown" not in every


def test_opening_what_is_not_hidden_is_refused_with_the_parts_that_are(office: Office) -> None:
    asked = office.ask("send_email", {"body": "b" * 3000})
    done = office.run("show", asked.id, "--open", "args.nothing")
    assert done.code == 2
    assert "open one of: args.body" in done.err


@guarantee("G11")
@pytest.mark.parametrize("words", [("show",), ("show", "--json", "--open-all")])
def test_a_secret_in_the_arguments_is_never_printed(office: Office, words: tuple[str, ...]) -> None:
    asked = office.ask("send_email", {"api_key": SECRET, "body": f"use {SECRET} today"})
    done = office.run(words[0], asked.id, *words[1:])
    assert done.code == 0
    assert SECRET not in done.out + office.run("inbox").out + office.run("audit", "export").out
    assert "Anthropic API key" in done.out


def test_show_tells_what_happened_since(office: Office) -> None:
    asked = office.ask()
    office.run("reject", asked.id, "--reason", "too dear")
    done = office.run("show", asked.id)
    assert any(line.startswith("status: already rejected by ann") for line in done.lines)
    told = [line.split("\t")[1:3] for line in done.lines if "\t" in line]
    assert told == [["opened", "bot"], ["rejected", "ann (cli)"]]


def test_show_as_json_holds_the_card_the_history_and_the_approval(office: Office) -> None:
    asked = office.ask()
    found = office.run("show", asked.id, "--json").json
    assert set(found) == {"approval", "card", "history"}
    card = found["card"]
    assert isinstance(card, dict)
    assert {"shown_as", "fields", "hidden", "silence", "proof", "deadline"} <= set(card)


def test_json_holds_no_character_outside_ascii(office: Office) -> None:
    asked = office.ask("send_email", {"to": "b\u00f6b", "body": "\u202e"})
    assert office.run("show", asked.id, "--json").out.isascii()


def test_a_store_that_is_not_there_is_an_error_and_is_not_made(office: Office) -> None:
    done = office.run("inbox", "--store", "typo.db")
    assert done.code == 6
    assert "there is no store at `typo.db`" in done.err
    assert not (office.folder / "typo.db").exists()


def test_the_store_can_be_named_by_the_environment(office: Office) -> None:
    asked = office.ask()
    empty = office.folder / "empty.toml"
    empty.write_text("")
    done = office.run("inbox", "--config", str(empty), environment={"SAYSO_STORE": str(office.path)})
    assert done.out.startswith(asked.id)


def test_an_overdue_approval_has_no_time_left(office: Office) -> None:
    office.ask(ago=HOUR)
    assert office.run("inbox").lines[0].split("\t")[2] == "0"


def test_version_names_what_it_runs_on(office: Office) -> None:
    assert office.run("--version").out.startswith("sayso ")
    assert set(office.run("version", "--json").json) == {"sayso", "python", "sqlite"}


def test_without_words_the_help_lists_every_command_and_every_exit_code(office: Office) -> None:
    done = office.run()
    assert done.code == 0
    assert done.out == office.run("--help").out
    for word in ("inbox", "approve", "watch", "audit", "store", "policy", "demo"):
        assert f"\n  {word} " in done.out
    assert "    130  interrupted" in done.out


def test_a_reader_that_goes_away_ends_the_program_quietly(office: Office) -> None:
    office.ask()
    program = office.pipe("inbox", "--json")
    assert program.stdout is not None
    assert program.stderr is not None
    program.stdout.close()
    assert program.wait(30) == 141
    assert program.stderr.read() == ""
    program.stderr.close()


def _listed(page: Mapping[str, Json]) -> list[dict[str, Json]]:
    return cast("list[dict[str, Json]]", page["approvals"])
