"""Every edge of the life of an approval, as values."""

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.approvals import (
    FINAL,
    Approval,
    Cause,
    DecisionKind,
    Effect,
    Permit,
    Person,
    Resolution,
    Silence,
    Status,
    evolve,
)
from sayso.clock import clock_text
from sayso.decisions import (
    Change,
    already,
    check_digest,
    check_message,
    check_open,
    claim,
    complete,
    decide,
    expire,
    lapse,
    may_decide,
    missing,
    open_approval,
    reconcile,
    release,
    renew,
    resolve,
    supersede,
    withdraw,
)
from sayso.errors import (
    AlreadyDecided,
    ClaimRefused,
    DecisionRefused,
    DigestMismatch,
    InvalidEdit,
    Late,
    NotAllowed,
    NotPermitted,
)
from tests.builders import ANN, BEN, T0, WINDOW, action, approval, decision, terms
from tests.guarantees import guarantee

DEADLINE = T0 + WINDOW * 1000
NO = DecisionKind.REJECT
TWO = terms(quorum=(("travel", 2),))
TRAVELLERS = [Person(id=name, groups=frozenset({"travel"})) for name in ("ann", "ben", "cas")]


def approved(by: Person = ANN, about: Approval | None = None) -> Approval:
    about = about or approval()
    return decide(about, decision(person=by, about=about), T0 + 1).approval


def running(about: Approval | None = None) -> Approval:
    about = about or approved()
    return claim(about, about.effective.digest, "gate", T0 + 2).approval


def permit(of: Approval) -> Permit:
    assert of.permit is not None
    return of.permit


def kinds(change: Change) -> list[str]:
    return [event.kind for event in change.events]


IN_STATUS: dict[Status, Callable[[], Approval]] = {
    Status.PENDING: approval,
    Status.APPROVED: approved,
    Status.RUNNING: running,
    Status.DONE: lambda: complete(running(), permit(running()), T0 + 3).approval,
    Status.FAILED: lambda: complete(running(), permit(running()), T0 + 3, error="ValueError").approval,
    Status.UNKNOWN: lambda: lapse(running(), DEADLINE * 2).approval,
    Status.REJECTED: lambda: decide(approval(), decision(NO), T0).approval,
    Status.RESPONDED: lambda: (
        decide(approval(), replace(decision(DecisionKind.RESPOND), message="no"), T0).approval
    ),
    Status.EXPIRED: lambda: expire(approval(), DEADLINE + 1).approval,
    Status.WITHDRAWN: lambda: (
        withdraw(approval(), T0, by="g", cause=Cause.CANCELLED, message="gone").approval
    ),
}


def in_status(status: Status) -> Approval:
    return IN_STATUS[status]()


def test_opening_names_the_action_by_digest_and_never_its_arguments() -> None:
    change = open_approval(approval(action(args={"card": "4111 1111 1111 1111"})))
    assert kinds(change) == ["opened"]
    assert change.events[0].data["digest"] == change.approval.action.digest
    assert "4111" not in repr(change.events)


@guarantee("G5")
def test_the_irreversible_cannot_have_terms_under_which_silence_lets_it_run() -> None:
    with pytest.raises(ValueError, match="silence must be a denial"):
        terms(silence=Silence.ALLOW)


# -- what is checked before a decision counts, and in which order ---------------------------


def test_lateness_is_found_before_anything_else_is_wrong() -> None:
    stranger = replace(decision(NO, Person(id="assistant")), digest="other")
    only = approval(given=terms(decisions=(DecisionKind.APPROVE,)))
    change = check_open(only, stranger, DEADLINE + 1)
    assert change is not None
    assert isinstance(change.refusal, Late)


def test_an_ended_approval_is_found_before_a_kind_that_is_not_allowed() -> None:
    ended = evolve(in_status(Status.REJECTED), terms=terms(decisions=(DecisionKind.APPROVE,)))
    with pytest.raises(AlreadyDecided, match="already rejected by ann at 2026-"):
        check_open(ended, decision(NO, Person(id="assistant")), T0)


def test_a_kind_that_is_not_allowed_is_found_before_a_person_who_may_not() -> None:
    only = approval(given=terms(decisions=(DecisionKind.APPROVE, DecisionKind.EDIT)))
    with pytest.raises(NotAllowed) as caught:
        check_open(only, decision(NO, Person(id="assistant")), T0)
    assert caught.value.approval_id == only.id
    assert "approve, edit" in caught.value.hint


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("person", [Person(id=""), Person(id="ann", via="")])
def test_a_decision_by_nobody_is_never_taken_and_never_recorded(person: Person, late: int) -> None:
    with pytest.raises(NotPermitted, match="needs a person"):
        check_open(approval(), decision(person=person), DEADLINE + late)


@guarantee("G1")
@guarantee("G5")
def test_a_decision_counts_up_to_the_deadline_and_not_a_millisecond_longer() -> None:
    assert check_open(approval(), decision(), DEADLINE) is None
    assert check_open(approval(), decision(), DEADLINE + 1) is not None


@guarantee("G5")
def test_a_late_decision_is_recorded_and_changes_nothing_even_before_any_sweep() -> None:
    change = check_open(approval(), decision(), DEADLINE + 1500)
    assert change is not None
    assert kinds(change) == ["expired", "late"]
    assert change.approval.status is Status.EXPIRED
    assert change.approval.decisions == ()
    assert "1.5 s after its deadline" in str(change.refusal)
    assert "denied by silence" in str(change.refusal)


def test_a_second_late_decision_is_recorded_without_expiring_twice() -> None:
    change = check_open(in_status(Status.EXPIRED), decision(person=BEN), DEADLINE + 9)
    assert change is not None
    assert kinds(change) == ["late"]
    assert change.approval is not None
    assert change.events[0].by == "ben"


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.PENDING, Status.EXPIRED}))
def test_whatever_is_no_longer_pending_was_already_decided(status: Status) -> None:
    with pytest.raises(AlreadyDecided) as caught:
        check_open(in_status(status), decision(), T0 + 1)
    assert caught.value.hint


@guarantee("G6")
@pytest.mark.parametrize("name", ["assistant", "researcher", "planner"])
def test_nobody_approves_their_own_request(name: str) -> None:
    wanted = replace(action(), agents=("assistant", "researcher"), requested_by="planner")
    refusal = may_decide(approval(wanted), Person(id=name))
    assert isinstance(refusal, NotPermitted)
    assert "nobody approves their own request" in refusal.message


@guarantee("G6")
def test_only_the_groups_asked_may_decide() -> None:
    refusal = may_decide(approval(given=TWO), Person(id="dan", groups=frozenset({"finance"})))
    assert isinstance(refusal, NotPermitted)
    assert "`travel`" in refusal.message
    assert may_decide(approval(given=TWO), TRAVELLERS[0]) is None


@guarantee("G6")
@pytest.mark.parametrize("kind", [DecisionKind.APPROVE, DecisionKind.EDIT])
def test_the_same_person_does_not_approve_twice(kind: DecisionKind) -> None:
    once = decide(approval(given=TWO), decision(person=TRAVELLERS[0]), T0).approval
    with pytest.raises(NotPermitted, match="has approved"):
        check_open(once, decision(kind, TRAVELLERS[0]), T0)


def test_who_approved_may_still_say_no_while_others_are_asked() -> None:
    once = decide(approval(given=TWO), decision(person=TRAVELLERS[0]), T0).approval
    assert check_open(once, decision(NO, TRAVELLERS[0]), T0) is None
    assert decide(once, decision(NO, TRAVELLERS[0]), T0).approval.status is Status.REJECTED


@guarantee("G2")
@pytest.mark.parametrize("digest", ["", "0" * 64])
def test_a_decision_about_another_action_is_refused(digest: str) -> None:
    with pytest.raises(DigestMismatch) as caught:
        check_digest(approval(), replace(decision(), digest=digest))
    assert caught.value.approval_id


def test_an_edit_needs_arguments_and_a_respond_needs_words() -> None:
    with pytest.raises(InvalidEdit):
        check_message(decision(DecisionKind.EDIT), "ap1")
    with pytest.raises(NotAllowed, match="needs words"):
        check_message(replace(decision(DecisionKind.RESPOND), message=" \n"), "ap1")
    check_message(replace(decision(DecisionKind.EDIT), args={}), "ap1")
    check_message(decision(NO), "ap1")


# -- folding decisions -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (DecisionKind.APPROVE, Status.APPROVED),
        (DecisionKind.REJECT, Status.REJECTED),
        (DecisionKind.RESPOND, Status.RESPONDED),
    ],
)
def test_one_decision_ends_an_approval_that_asks_for_one(kind: DecisionKind, status: Status) -> None:
    change = decide(approval(), replace(decision(kind), message="words"), T0 + 7)
    assert change.approval.status is status
    ended = change.approval.resolution
    assert ended is not None
    assert (ended.cause, ended.at, ended.by) == (Cause.DECISION, T0 + 7, "ann")
    assert ended.message == ("" if kind is DecisionKind.APPROVE else "words")
    assert change.approval.decisions[0].at == T0 + 7


def test_the_words_of_a_decision_stay_out_of_the_audit() -> None:
    change = decide(approval(), replace(decision(NO), message="pin 1234"), T0)
    assert "1234" not in repr(change.events)


def test_an_edit_replaces_what_runs_and_keeps_what_was_asked() -> None:
    edited = replace(action(), args={"price": 310})
    change = decide(approval(), replace(decision(DecisionKind.EDIT), args={"price": 310}), T0, edited=edited)
    assert change.approval.effective is edited
    assert change.approval.action == action()
    assert change.approval.status is Status.APPROVED
    assert change.events[0].data["from"] == action().digest
    assert change.events[0].data["digest"] == edited.digest


def test_a_waiting_gate_gets_the_permit_with_the_decision_itself() -> None:
    change = decide(approval(), decision(), T0, holder="gate-7")
    assert kinds(change) == ["approved", "claimed"]
    assert change.approval.status is Status.RUNNING
    assert permit(change.approval).holder == "gate-7"


@pytest.mark.parametrize("kind", [DecisionKind.REJECT, DecisionKind.RESPOND])
@guarantee("G4")
def test_a_no_hands_out_no_permit(kind: DecisionKind) -> None:
    change = decide(approval(), replace(decision(kind), message="x"), T0, holder="gate-7")
    assert change.approval.permit is None


def test_a_quorum_waits_for_the_last_one_it_needs() -> None:
    first = decide(approval(given=TWO), decision(person=TRAVELLERS[0]), T0)
    assert first.approval.status is Status.PENDING
    assert first.events[0].data["missing"] == {"travel": 1}
    second = decide(first.approval, decision(person=TRAVELLERS[1]), T0)
    assert second.approval.status is Status.APPROVED
    assert "missing" not in second.events[0].data


def test_one_no_ends_a_quorum() -> None:
    first = decide(approval(given=TWO), decision(person=TRAVELLERS[0]), T0).approval
    assert decide(first, decision(NO, TRAVELLERS[1]), T0).approval.status is Status.REJECTED


def test_an_edit_in_a_quorum_starts_the_count_again() -> None:
    first = decide(approval(given=TWO), decision(person=TRAVELLERS[0]), T0).approval
    edited = replace(action(), args={"price": 1})
    second = decide(first, decision(DecisionKind.EDIT, TRAVELLERS[1]), T0, edited=edited).approval
    assert second.status is Status.PENDING
    assert missing(second) == {"travel": 1}
    assert check_open(second, decision(person=TRAVELLERS[0], about=second), T0) is None
    third = decide(second, decision(person=TRAVELLERS[0], about=second), T0).approval
    assert third.status is Status.APPROVED
    assert third.effective == edited


@guarantee("G6")
def test_a_person_in_two_groups_fills_one_seat() -> None:
    both = Person(id="ann", groups=frozenset({"travel", "finance"}))
    asked = approval(given=terms(quorum=(("finance", 1), ("travel", 1))))
    once = decide(asked, decision(person=both), T0).approval
    assert once.status is Status.PENDING
    assert sum(missing(once).values()) == 1


def test_a_person_in_two_groups_gives_way_to_one_who_is_in_one() -> None:
    both = Person(id="ann", groups=frozenset({"travel", "finance"}))
    only = Person(id="ben", groups=frozenset({"finance"}))
    asked = approval(given=terms(quorum=(("finance", 1), ("travel", 1))))
    for order in permutations([both, only]):
        after = asked
        for person in order:
            after = decide(after, decision(person=person), T0).approval
        assert after.status is Status.APPROVED


GROUPS = st.frozensets(st.sampled_from(["a", "b", "c"]), max_size=3)


@given(
    st.lists(GROUPS, max_size=6),
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 2), min_size=1),
)
@guarantee("G6")
def test_a_quorum_is_met_exactly_when_the_seats_can_be_filled_by_different_people(
    people: list[frozenset[str]], quorum: dict[str, int]
) -> None:
    asked = approval(given=terms(quorum=tuple(quorum.items())))
    given_ = tuple(decision(person=Person(id=f"p{n}", groups=groups)) for n, groups in enumerate(people))
    seats = [group for group, needed in quorum.items() for _ in range(needed)]
    possible = len(people) >= len(seats) and any(
        all(seat in people[person] for seat, person in zip(seats, chosen, strict=True))
        for chosen in permutations(range(len(people)), len(seats))
    )
    after = evolve(asked, decisions=given_)
    assert (not missing(after)) == possible
    assert (resolve(after, T0) is not None) == possible


def test_one_person_recorded_twice_still_counts_once() -> None:
    twice = (decision(person=TRAVELLERS[0]), decision(DecisionKind.EDIT, TRAVELLERS[0]))
    assert missing(evolve(approval(given=TWO), decisions=twice)) == {"travel": 1}


# -- silence ---------------------------------------------------------------------------------


@guarantee("G5")
def test_silence_denies() -> None:
    assert expire(approval(), DEADLINE).events == ()
    change = expire(approval(), DEADLINE + 1)
    assert change.approval.status is Status.EXPIRED
    assert change.events[0].data["outcome"] == "denied"


def test_silence_allows_what_can_be_undone_when_the_frozen_terms_say_so() -> None:
    asked = approval(given=terms(effect=Effect.REVERSIBLE, silence=Silence.ALLOW))
    change = expire(asked, DEADLINE + 1)
    assert change.approval.status is Status.APPROVED
    assert change.events[0].data["outcome"] == "allowed"
    assert claim(change.approval, asked.action.digest, "g", DEADLINE + 2).approval.status is Status.RUNNING


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.PENDING}))
def test_only_what_is_pending_expires(status: Status) -> None:
    ended = in_status(status)
    change = expire(ended, DEADLINE * 3)
    assert change.approval is ended
    assert change.events == ()


# -- running once ----------------------------------------------------------------------------


@guarantee("G1")
@guarantee("G3")
@guarantee("G4")
@pytest.mark.parametrize("status", sorted(set(Status) - {Status.APPROVED}))
def test_only_what_is_approved_can_be_claimed(status: Status) -> None:
    with pytest.raises(ClaimRefused) as caught:
        claim(in_status(status), action().digest, "gate", T0)
    assert "gives no right to run" in caught.value.message
    assert caught.value.hint
    assert caught.value.approval_id == "ap1"


@guarantee("G2")
def test_a_claim_for_another_digest_is_refused() -> None:
    with pytest.raises(ClaimRefused, match="is not what was approved"):
        claim(approved(), "0" * 64, "gate", T0)


@guarantee("G1")
def test_a_row_that_says_approved_without_decisions_runs_nothing() -> None:
    now = Resolution(status=Status.APPROVED, cause=Cause.DECISION, at=T0)
    for forged in (
        evolve(approval(), status=Status.APPROVED),
        evolve(approval(), status=Status.APPROVED, resolution=now),
    ):
        with pytest.raises(ClaimRefused, match="no decisions stand behind it"):
            claim(forged, action().digest, "gate", T0)


@guarantee("G5")
def test_a_row_that_says_approved_after_silence_denied_it_runs_nothing() -> None:
    with pytest.raises(ClaimRefused):
        claim(evolve(in_status(Status.EXPIRED), status=Status.APPROVED), action().digest, "gate", T0)


@guarantee("G3")
@pytest.mark.parametrize("status", [Status.DONE, Status.FAILED, Status.RUNNING, Status.UNKNOWN])
def test_a_row_that_was_put_back_to_approved_does_not_run_again(status: Status) -> None:
    with pytest.raises(ClaimRefused):
        claim(evolve(in_status(status), status=Status.APPROVED), action().digest, "gate", T0)


@guarantee("G4")
def test_a_row_that_was_put_from_rejected_to_approved_runs_nothing() -> None:
    with pytest.raises(ClaimRefused):
        claim(evolve(in_status(Status.REJECTED), status=Status.APPROVED), action().digest, "gate", T0)


def test_the_lease_begins_with_the_claim_and_is_renewed_by_its_holder() -> None:
    held = running()
    assert permit(held).until == T0 + 2 + 900_000
    longer = renew(held, permit(held), T0 + 500_000)
    assert permit(longer.approval).until == T0 + 1_400_000
    assert kinds(longer) == ["renewed"]
    with pytest.raises(ClaimRefused, match="no longer held"):
        renew(held, evolve(permit(held), holder="other"), T0)


def test_an_unused_permit_can_be_given_back_and_claimed_again() -> None:
    held = running()
    freed = release(held, permit(held), "gate").approval
    assert freed.status is Status.APPROVED
    assert running(freed).status is Status.RUNNING
    with pytest.raises(ClaimRefused):
        release(freed, permit(held), "gate")


@pytest.mark.parametrize(("error", "status"), [("", Status.DONE), ("ValueError", Status.FAILED)])
def test_the_holder_reports_how_it_ended(error: str, status: Status) -> None:
    held = running()
    change = complete(held, permit(held), T0 + 9, error=error)
    assert change.approval.status is status
    assert kinds(change) == [str(status)]
    with pytest.raises(ClaimRefused, match="already"):
        complete(change.approval, permit(held), T0 + 10)


def test_only_the_holder_reports() -> None:
    with pytest.raises(ClaimRefused):
        complete(running(), evolve(permit(running()), holder="other"), T0)
    with pytest.raises(ClaimRefused):
        complete(running(), evolve(permit(running()), digest="0" * 64), T0)


def test_a_lease_that_ends_without_a_report_leaves_the_outcome_unknown() -> None:
    held = running()
    assert lapse(held, permit(held).until).events == ()
    change = lapse(held, permit(held).until + 1)
    assert change.approval.status is Status.UNKNOWN
    assert kinds(change) == ["unknown"]


def test_a_report_after_the_lease_settles_the_unknown_outcome() -> None:
    lost = in_status(Status.UNKNOWN)
    assert complete(lost, permit(lost), T0).approval.status is Status.DONE


@guarantee("G3")
@pytest.mark.parametrize("ran", [True, False])
def test_an_unknown_outcome_is_settled_by_finding_out_and_never_runs_again(ran: bool) -> None:
    settled = reconcile(in_status(Status.UNKNOWN), T0, ran=ran, by="ann", via="cli").approval
    assert settled.status is (Status.DONE if ran else Status.FAILED)
    with pytest.raises(ClaimRefused):
        claim(settled, action().digest, "gate", T0)


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.UNKNOWN}))
def test_only_an_unknown_outcome_is_reconciled(status: Status) -> None:
    with pytest.raises(DecisionRefused, match="is not unknown"):
        reconcile(in_status(status), T0, ran=True, by="ann")


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.PENDING, Status.APPROVED}))
def test_what_runs_or_is_over_cannot_be_withdrawn(status: Status) -> None:
    with pytest.raises(ClaimRefused, match="cannot be withdrawn"):
        withdraw(in_status(status), T0, by="gate", cause=Cause.CANCELLED, message="")


def test_a_stricter_approval_takes_the_place_of_another() -> None:
    successor = approval(id="ap2")
    change = supersede(approval(), successor, T0, by="ann", via="cli", why="stricter")
    assert change.approval.status is Status.WITHDRAWN
    assert change.approval.resolution is not None
    assert change.approval.resolution.successor == "ap2"
    assert change.opens is not None
    assert change.opens.replaces == "ap1"


@guarantee("G3")
@guarantee("G4")
@pytest.mark.parametrize("status", sorted(FINAL))
def test_nothing_leads_out_of_a_final_state(status: Status) -> None:
    ended = in_status(status)
    held = Permit(approval_id="ap1", digest=action().digest, holder="gate", until=T0)
    steps = [
        lambda: claim(ended, action().digest, "gate", T0),
        lambda: complete(ended, held, T0),
        lambda: release(ended, held, "gate"),
        lambda: renew(ended, held, T0),
        lambda: reconcile(ended, T0, ran=True, by="ann"),
        lambda: withdraw(ended, T0, by="g", cause=Cause.CANCELLED, message=""),
        lambda: expire(ended, DEADLINE * 9),
        lambda: lapse(ended, DEADLINE * 9),
    ]
    for step in steps:
        try:
            assert step().approval is ended
        except (ClaimRefused, DecisionRefused):
            continue


def test_what_became_of_an_approval_is_said_with_who_and_when() -> None:
    assert already(in_status(Status.REJECTED)) == "already rejected by ann at 2026-09-21 14:13:20 UTC"
    assert already(in_status(Status.EXPIRED)).startswith("already denied by silence at ")
    assert already(approval()) == "left pending"
    assert clock_text(0) == "1970-01-01 00:00:00 UTC"
