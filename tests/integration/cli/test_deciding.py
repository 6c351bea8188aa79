"""`sayso approve`, `edit`, `reject` and `respond` without a terminal: for scripts, and for pipes."""

import json

import pytest
from pyotp import random_base32
from pyotp.totp import TOTP

from sayso import DecisionKind, Status
from tests.guarantees import guarantee
from tests.integration.cli.terminal import HOUR, Office


def test_a_click_is_approved_with_a_y_and_the_card_is_printed_first(office: Office) -> None:
    asked = office.ask("write_file", {"path": "a.txt"})
    done = office.run("approve", asked.id, "--proof", "y")
    assert done.code == 0
    assert done.lines[0] == f"approval: {asked.id}"
    assert done.lines[-1] == "Approved. It may run once, exactly as shown."
    after = office.now(asked.id)
    assert after.status is Status.APPROVED
    assert after.decisions[0].person.id == "ann"
    assert after.decisions[0].shown.startswith(_shown_as(done.out))


def test_a_script_that_gives_no_proof_is_told_how_and_nothing_is_approved(office: Office) -> None:
    asked = office.ask("write_file", {"path": "a.txt"})
    done = office.run("approve", asked.id, "--json")
    assert done.code == 1
    assert done.json == {
        "error": {
            "code": "proof_missing",
            "message": f"approval {asked.id} needs a proof here",
            "hint": "add --proof y",
            "approval_id": asked.id,
        }
    }
    assert office.now(asked.id).status is Status.PENDING


def test_a_code_made_by_show_approves_in_the_same_session_and_in_no_other(office: Office) -> None:
    asked = office.ask()
    without = office.run("approve", asked.id, "--proof", "ACDEFG")
    assert without.code == 1
    assert "ask for a code" in without.err
    code = str(office.run("show", asked.id, "--code", "--json").json["code"])
    elsewhere = office.run("approve", asked.id, "--proof", code, other_session=True)
    assert elsewhere.code == 1
    assert "none was shown in this session" in elsewhere.err
    done = office.run("approve", asked.id, "--proof", code, "--json")
    assert done.code == 0
    approval = done.json["approval"]
    assert isinstance(approval, dict)
    assert approval["status"] == "approved"


@guarantee("G8")
def test_a_part_that_was_not_opened_stops_an_approval_and_opening_it_lets_it_through(office: Office) -> None:
    asked = office.ask("send_email", {"body": "b" * 5000})
    refused = office.run("approve", asked.id, "--proof", "y")
    assert refused.code == 1
    assert "args.body" in refused.err
    assert office.now(asked.id).status is Status.PENDING
    assert office.run("approve", asked.id, "--proof", "y", "--open", "args.body").code == 0


def test_shown_refuses_a_card_that_is_not_the_one_that_was_seen(office: Office) -> None:
    asked = office.ask("write_file", {"path": "a.txt"})
    seen = _shown_as(office.run("show", asked.id).out)
    other = office.run("approve", asked.id, "--proof", "y", "--shown", "0" * 12)
    assert other.code == 1
    assert "shows something else" in other.err
    assert office.run("approve", asked.id, "--proof", "y", "--shown", seen[:5]).code == 2
    assert office.run("approve", asked.id, "--proof", "y", "--shown", seen[:12]).code == 0


@pytest.mark.parametrize("typed", ["", "w\n"])
def test_leaving_without_an_answer_decides_nothing_and_is_not_success(office: Office, typed: str) -> None:
    asked = office.ask("write_file", {"path": "a.txt"})
    done = office.run("approve", asked.id, typed=typed)
    assert done.code == 1
    assert "nothing was decided" in done.err
    assert office.now(asked.id).decisions == ()


def test_a_no_needs_no_proof_and_its_reason_is_kept_for_the_agent(office: Office) -> None:
    asked = office.ask()
    done = office.run("reject", asked.id, "--reason", "too dear")
    assert (done.code, done.out) == (0, "Rejected. It will not run, and the agent is told.\n")
    ended = office.now(asked.id).resolution
    assert ended is not None
    assert (ended.by, ended.message) == ("ann", "too dear")


def test_a_respond_answers_in_the_tools_place(office: Office) -> None:
    asked = office.ask()
    assert office.run("respond", asked.id, "--message", "use the train").code == 0
    assert office.now(asked.id).status is Status.RESPONDED


def test_an_answer_that_is_not_allowed_is_refused_with_those_that_are(office: Office) -> None:
    asked = office.ask("send_email", {"to": "a@b.c"})
    done = office.run("respond", asked.id, "--message", "no")
    assert done.code == 1
    assert "choose one of: approve, edit, reject" in done.err


def test_arguments_from_the_input_are_judged_and_approved(office: Office) -> None:
    asked = office.ask("send_email", {"to": "a@b.c", "body": "hi"})
    new = {"to": "a@b.c", "body": "hello"}
    done = office.run("edit", asked.id, "--args", "-", "--proof", "y", typed=json.dumps(new))
    assert done.code == 0
    assert '~ args.body was "hi" becomes "hello"' in done.lines
    assert office.now(asked.id).effective.args == new


def test_an_edit_that_needs_a_stricter_approval_opens_a_new_one(office: Office) -> None:
    policy = office.folder / "sayso.yaml"
    policy.write_text("tools:\n  pay: {effect: irreversible}\n")
    asked = office.ask("pay", {"amount": 50})
    policy.write_text("tools:\n  pay: {effect: irreversible, approvers: {finance: 2}}\n")
    done = office.run("edit", asked.id, "--args", "-", "--proof", "y", typed='{"amount": 500}')
    assert done.code == 0, done
    after = office.now(asked.id)
    assert after.status is Status.WITHDRAWN
    assert after.resolution is not None
    assert done.lines[-1].endswith(f"sayso approve {after.resolution.successor}")
    assert office.now(after.resolution.successor).status is Status.PENDING


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("{", "not valid JSON"),
        ('{"to": "a", "to": "b"}', "the key `to` twice"),
        ("[1]", "must be a JSON object"),
    ],
)
def test_arguments_that_are_not_one_json_object_are_a_usage_error(
    office: Office, args: str, said: str
) -> None:
    asked = office.ask("send_email", {"to": "a@b.c"})
    done = office.run("edit", asked.id, "--args", "-", "--proof", "y", typed=args)
    assert done.code == 2
    assert said in done.err
    assert office.now(asked.id).status is Status.PENDING


@guarantee("G5")
def test_a_decision_after_the_deadline_is_late_and_changes_nothing(office: Office) -> None:
    asked = office.ask("write_file", {"path": "a.txt"}, ago=HOUR)
    done = office.run("approve", asked.id, "--proof", "y", "--json")
    assert done.code == 4
    assert done.out.startswith('{"error": {"code": "late"')
    assert office.now(asked.id).status is Status.EXPIRED
    assert [entry.split("\t")[2] for entry in office.run("audit", "tail").lines] == [
        "opened",
        "expired",
        "late",
    ]


def test_who_comes_second_is_told_who_was_first(office: Office) -> None:
    asked = office.ask("write_file", {"path": "a.txt"})
    assert office.run("reject", asked.id, "--reason", "no", person="ben").code == 0
    done = office.run("approve", asked.id, "--proof", "y")
    assert done.code == 1
    assert "already rejected by ben" in done.err


@guarantee("G6")
def test_nobody_approves_their_own_request_and_nobody_outside_the_group(office: Office) -> None:
    own = office.ask("write_file", {"path": "a.txt"}, by="ann")
    assert "nobody approves their own request" in office.run("approve", own.id, "--proof", "y").err
    paid = office.ask("issue_refund", {"amount": 250.5})
    assert (
        "it needs somebody from `finance`"
        in office.run("approve", paid.id, "--proof", "250.5", person="eve").err
    )
    assert not office.now(own.id).decisions + office.now(paid.id).decisions


def test_a_user_the_settings_do_not_name_can_decide_nothing(office: Office) -> None:
    asked = office.ask()
    stranger = office.folder / "stranger.toml"
    stranger.write_text(f'store = "{office.path}"\n[people.zoe]\nos_user = "somebody-else"\n')
    done = office.run("reject", asked.id, "--reason", "no", "--config", str(stranger))
    assert done.code == 2
    assert "is none of the people in sayso.toml" in done.err


def test_a_quorum_counts_two_people_and_says_what_is_missing(office: Office) -> None:
    asked = office.ask("issue_refund", {"amount": 250.5})
    first = office.run("approve", asked.id, "--proof", "250.50")
    assert first.lines[-1] == "Your approval counts. It still needs 1 from finance."
    again = office.run("approve", asked.id, "--proof", "250.5")
    assert again.code == 1
    assert "each approval needs another person" in again.err
    second = office.run("approve", asked.id, "--proof", "$250.5", person="ben")
    assert second.lines[-1] == "Approved. It may run once, exactly as shown."
    assert [given.kind for given in office.now(asked.id).decisions] == [DecisionKind.APPROVE] * 2


def test_an_authenticator_without_a_secret_is_named_and_one_with_a_secret_approves(office: Office) -> None:
    asked = office.ask("delete_user", {"id": 7})
    missing = office.run("approve", asked.id, "--proof", "123456")
    assert missing.code == 1
    assert "[people.ann] totp" in missing.err
    secret = random_base32()
    office.config("ann", totp=secret)
    assert office.run("approve", asked.id, "--proof", TOTP(secret).now()).code == 0


def _shown_as(text: str) -> str:
    return next(
        line.removeprefix("shown as: ") for line in text.splitlines() if line.startswith("shown as: ")
    )
