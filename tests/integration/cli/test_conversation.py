"""The conversation under a pseudo-terminal, as a person has it."""

import json
import os
import re
from pathlib import Path

import pytest

from sayso import Status
from tests.guarantees import guarantee
from tests.integration.cli.terminal import Office, Terminal

CODE = r"Type ([A-Z0-9]{6}) to approve; this code is good for this action only\."


def editor(folder: Path, *texts: str) -> dict[str, str]:
    """Return an environment whose editor writes these texts, one each time it is opened.

    What the editor was given is kept beside it, as `seen.0`, `seen.1` and so on.
    """
    for number, text in enumerate(texts):
        (folder / f"text.{number}").write_text(text)
    program = folder / "editor.sh"
    program.write_text(
        f'#!/bin/sh\ncd "{folder}"\nn=$(ls seen.* 2>/dev/null | wc -l)\ncp "$1" seen.$n\n'
        'case $(cat text.$n) in KEEP) ;; *) cat text.$n > "$1" ;; esac\n'
    )
    program.chmod(0o700)
    return {"EDITOR": str(program), "VISUAL": ""}


def test_the_code_on_the_screen_approves_and_what_is_on_record_is_what_was_shown(office: Office) -> None:
    asked = office.ask()
    desk = office.sit_down("approve", asked.id[:9])
    desk.expect("book_flight would run with")
    desk.expect("it cannot be undone")
    desk.expect("means it will NOT run")
    desk.type(desk.expect(CODE))
    desk.expect("Approved")
    assert desk.ended() == 0
    after = office.now(asked.id)
    assert after.status is Status.APPROVED
    assert after.decisions[0].shown


def test_each_wrong_code_says_how_many_tries_are_left_and_the_fifth_ends_it(office: Office) -> None:
    asked = office.ask()
    desk = office.sit_down("approve", asked.id)
    desk.expect(CODE)
    for left in ("4 tries are", "3 tries are", "2 tries are", "1 try is"):
        desk.type("AAAAAA")
        desk.expect(f"the code is wrong. {left} left")
    desk.type("AAAAAA")
    desk.expect("that was the last try")
    assert desk.ended() == 1
    assert office.now(asked.id).status is Status.PENDING


def test_a_y_does_not_cost_a_try_where_a_code_is_asked(office: Office) -> None:
    asked = office.ask()
    desk = office.sit_down("approve", asked.id)
    code = desk.expect(CODE)
    desk.type("y")
    desk.expect("type the code")
    desk.type(code.lower())
    desk.expect("Approved")
    assert desk.ended() == 0
    assert office.now(asked.id).status is Status.APPROVED


@guarantee("G8")
def test_hidden_parts_must_be_opened_one_by_one_before_anything_approves(office: Office) -> None:
    asked = office.ask("send_email", {"body": "b" * 2100, "note": "n" * 2100})
    desk = office.sit_down("approve", asked.id)
    desk.expect("2 parts must be opened")
    desk.type("y")
    desk.expect("2 parts of it cannot be seen yet")
    desk.type("o")
    desk.expect("1 part must be opened")
    desk.type("o")
    desk.expect("Type y to approve")
    desk.type("y")
    desk.expect("Approved")
    assert desk.ended() == 0
    assert desk.screen.count("b" * 40) > 2100 // 80


def test_reject_asks_for_the_reason_and_respond_for_the_words(office: Office) -> None:
    first, second = office.ask(), office.ask(args={"price": 900})
    desk = office.sit_down("approve", first.id)
    desk.expect(CODE)
    desk.type("r")
    desk.expect("Reason for the agent: ")
    desk.type("too dear")
    desk.expect("Rejected")
    assert desk.ended() == 0
    desk = office.sit_down("approve", second.id)
    desk.expect(CODE)
    desk.type("s")
    desk.expect("becomes the tool's result: ")
    desk.type("use the train")
    desk.expect("Answered")
    assert desk.ended() == 0
    messages = [ended.message for each in (first, second) if (ended := office.now(each.id).resolution)]
    assert messages == ["too dear", "use the train"]


def test_bad_json_opens_the_editor_again_with_the_reason_and_all_that_was_typed(office: Office) -> None:
    asked = office.ask()
    good = {"flight": "UA 99", "price": 450, "refundable": True}
    broken = '{"flight": "UA 99", "price": 450,, "refundable": true}\n'
    environment = editor(office.folder, broken, json.dumps(good))
    desk = office.sit_down("edit", asked.id, environment=environment)
    code = desk.expect("Type ([A-Z0-9]{6}) to approve the change: ")
    desk.type(code)
    desk.expect("Approved")
    assert desk.ended() == 0
    first, again = ((office.folder / f"seen.{number}").read_text() for number in range(2))
    assert '"flight": "UA 212",\n' in first
    assert "# `args` is not valid JSON" in again
    assert again.endswith(broken)
    assert office.now(asked.id).effective.args == good
    assert "1847" in desk.screen
    assert "450" in desk.screen


def test_an_edit_policy_denies_goes_back_to_the_editor_with_the_reason(office: Office) -> None:
    (office.folder / "sayso.yaml").write_text(
        'tools:\n  pay: {effect: irreversible}\n  "pa*": {outcome: deny, when: args.amount > 100, effect: irreversible}\n'
    )
    asked = office.ask("pay", {"amount": 50})
    desk = office.sit_down(
        "edit", asked.id, environment=editor(office.folder, '{"amount": 500}', '{"amount": 60}')
    )
    desk.expect("Type y to approve the change: ")
    desk.type("y")
    desk.expect("Type y to approve the change: ")
    desk.type("y")
    desk.expect("Approved")
    assert desk.ended() == 0
    assert "# policy denies the edited action" in (office.folder / "seen.1").read_text()
    assert office.now(asked.id).effective.args == {"amount": 60}


@pytest.mark.parametrize("text", ["KEEP", "", "# nothing but a comment\n"])
def test_leaving_the_editor_without_a_change_decides_nothing(office: Office, text: str) -> None:
    asked = office.ask()
    desk = office.sit_down("edit", asked.id, environment=editor(office.folder, text))
    desk.expect("nothing was decided")
    assert desk.ended() == 1
    assert office.now(asked.id).status is Status.PENDING


def test_what_cannot_be_seen_is_an_escape_in_the_editor_and_survives_it(office: Office) -> None:
    asked = office.ask("send_email", {"to": "b\u00f6b\u202e", "n": 1})
    desk = office.sit_down("edit", asked.id, environment=editor(office.folder, "KEEP"))
    assert desk.ended() == 1
    seen = (office.folder / "seen.0").read_text()
    assert '"to": "b\u00f6b\\u202e"' in seen
    lines = [line for line in seen.splitlines() if not line.startswith("#")]
    assert json.loads("\n".join(lines)) == asked.action.args


def test_nothing_of_the_arguments_is_left_on_disk_after_the_editor(office: Office) -> None:
    asked = office.ask()
    temporary = office.folder / "tmp"
    temporary.mkdir()
    desk = office.sit_down(
        "edit", asked.id, environment={"EDITOR": "true", "VISUAL": "", "TMPDIR": str(temporary)}
    )
    desk.ended()
    assert [name for name in os.listdir(temporary) if not name.startswith("sayso-0")] == []  # noqa: PTH208 - names only


def test_respond_opens_the_editor_and_an_empty_text_decides_nothing(office: Office) -> None:
    asked = office.ask()
    desk = office.sit_down("respond", asked.id, environment=editor(office.folder, "", "take the train\n"))
    assert desk.ended() == 1
    desk = office.sit_down("respond", asked.id, environment=editor(office.folder, "", "take the train\n"))
    desk.expect("Answered")
    assert desk.ended() == 0
    ended = office.now(asked.id).resolution
    assert ended is not None
    assert ended.message == "take the train"


def test_two_people_at_once_one_decides_and_the_other_is_told(office: Office) -> None:
    asked = office.ask("write_file", {"path": "a.txt"})
    ann, ben = office.sit_down("approve", asked.id), office.sit_down("approve", asked.id, person="ben")
    for desk in (ann, ben):
        desk.expect("Type y to approve")
    ann.type("y")
    ann.expect("Approved")
    assert ann.ended() == 0
    ben.type("y")
    ben.expect("already approved by ann at")
    assert ben.ended() == 1
    assert [given.person.id for given in office.now(asked.id).decisions] == ["ann"]


def test_who_looks_while_another_edits_sees_the_new_card_before_they_can_approve(office: Office) -> None:
    (office.folder / "sayso.yaml").write_text(
        "tools:\n  pay: {effect: irreversible, approvers: {finance: 2}}\n"
    )
    asked = office.ask("pay", {"amount": 50})
    ann = office.sit_down("approve", asked.id)
    ann.expect("Type y to approve")
    edited = office.run("edit", asked.id, "--args", "-", "--proof", "y", typed='{"amount": 70}', person="ben")
    assert edited.code == 0
    ann.type("y")
    ann.expect("look at it again")
    ann.expect("70")
    ann.expect("Type y to approve")
    ann.type("y")
    ann.expect("Approved")
    assert ann.ended() == 0
    assert office.now(asked.id).effective.args == {"amount": 70}


def test_ctrl_c_decides_nothing_and_ends_with_130(office: Office) -> None:
    asked = office.ask()
    desk = office.sit_down("approve", asked.id)
    desk.expect(CODE)
    desk.interrupt()
    assert desk.ended() == 130
    assert "Traceback" not in desk.screen
    assert office.now(asked.id).status is Status.PENDING


@pytest.mark.parametrize("columns", [50, 80, 140])
def test_a_card_fits_the_terminal_it_is_shown_on(office: Office, columns: int) -> None:
    asked = office.ask("send_email", {"body": "word " * 200, "to": "a@b.c"})
    screen = office.sit_down("show", asked.id, columns=columns, environment={"TERM": "xterm-256color"})
    assert screen.ended() == 0
    card = re.sub(r"\x1b\[[0-9;]*m", "", screen.screen[: screen.screen.index("status:")])
    assert max(map(len, card.splitlines())) == min(columns, 110)


def test_colours_stand_on_a_terminal_that_has_them(office: Office) -> None:
    asked = office.ask("send_email", {"to": "al\u0456ce@p\u0430ypal.com"})
    screen: Terminal = office.sit_down("show", asked.id, environment={"TERM": "xterm-256color"})
    assert screen.ended() == 0
    assert "\x1b[33m" in screen.screen
    plain = office.sit_down("show", asked.id, environment={"TERM": "xterm-256color", "NO_COLOR": "1"})
    assert plain.ended() == 0
    assert "\x1b[33m" not in plain.screen
