"""The person's door: what is checked, in which order, and that a refusal saves nothing."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from pyotp.totp import TOTP

from sayso import Answer, Effect, Gate, Inbox, ManualClock, Outcome, Policy, Rule, open_store
from sayso.actions import Json
from sayso.approvals import Approval, Decision, DecisionKind, Person, ProofKind, ProofRule, Status, evolve
from sayso.audit import verify
from sayso.decisions import decide
from sayso.errors import (
    AlreadyDecided,
    DecisionRefused,
    DigestMismatch,
    InvalidEdit,
    Late,
    NotAllowed,
    NotFound,
    NotPermitted,
    PartsUnopened,
    ProofExpired,
    ProofMissing,
    ProofWrong,
)
from sayso.stores import Alter, Open, Store
from sayso.worker import run_once
from tests.builders import (
    ANN,
    BEN,
    BOOKING,
    LOOKUP,
    POLICY,
    WINDOW,
    WIPE,
    action,
    approval,
    asking,
    opened,
    soon,
    terms,
)
from tests.guarantees import guarantee

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
CODE = terms(proof=ProofRule(kind=ProofKind.CODE))
TYPE = terms(proof=ProofRule(kind=ProofKind.TYPE, template="{price}"))
DIGITS = terms(proof=ProofRule(kind=ProofKind.TOTP))


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock) -> Iterator[Store]:
    """A store in memory."""
    made = open_store(":memory:", clock=clock)
    yield made
    assert verify(made.entries(), heads=made.heads(), statuses=made.statuses()).sound
    made.close()


@pytest.fixture
def inbox(store: Store) -> Inbox:
    """The person's door."""
    return Inbox(store=store, policy=POLICY, totp={"ann": SECRET})


def unchanged(store: Store, before: Approval) -> bool:
    return store.get(before.id) == before


# -- finding and showing ---------------------------------------------------------------------


def test_an_approval_is_found_by_the_beginning_of_its_id(store: Store, inbox: Inbox) -> None:
    made = opened(store, 2)
    assert inbox.get("aptrip00001") == made[1]
    store.write(Open(approval=approval(action(call_id="x"), id="apx")))
    assert inbox.get("apx").id == "apx"
    store.write(Open(approval=approval(action(call_id="y"), id="apxy")))
    assert inbox.get("apx").id == "apx"
    with pytest.raises(NotFound, match="more than one approval starts with `ap`: "):
        inbox.get("ap")


@pytest.mark.parametrize("name", ["", "nothing", "ap%", "\udcff", "a\0b"])
def test_an_id_that_names_nothing_is_refused(store: Store, inbox: Inbox, name: str) -> None:
    opened(store, 2)
    with pytest.raises(NotFound):
        inbox.get(name)


def test_pages_and_history_are_those_of_the_store(store: Store, inbox: Inbox) -> None:
    made = opened(store, 3)
    inbox.reject(made[0], ANN, "no")
    assert list(inbox.page().approvals) == made[1:]
    assert [each.id for each in inbox.page(status=None).approvals] == [each.id for each in reversed(made)]
    assert [entry.kind for entry in inbox.history(made[0].id)] == ["opened", "rejected"]


# -- the order of the checks at B ------------------------------------------------------------

WRONG: list[tuple[str, type[DecisionRefused]]] = [
    ("late", Late),
    ("decided", AlreadyDecided),
    ("kind", NotAllowed),
    ("person", NotPermitted),
    ("proof", ProofMissing),
    ("digest", DigestMismatch),
    ("edit", InvalidEdit),
]


@pytest.mark.parametrize("first", range(len(WRONG)))
def test_of_several_things_wrong_the_first_in_order_is_named(
    store: Store, inbox: Inbox, clock: ManualClock, first: int
) -> None:
    wrong = {name for name, _ in WRONG[first:]}
    kinds = (DecisionKind.APPROVE,) if "kind" in wrong else tuple(DecisionKind)
    proof = ProofRule(kind=ProofKind.TYPE, template="{price}") if "proof" in wrong else ProofRule()
    asked = opened(store, given=terms(decisions=kinds, proof=proof))[0]
    if "decided" in wrong and "late" not in wrong:
        store.write(
            Alter(
                approval_id=asked.id,
                step=lambda a, now: decide(a, Decision(kind=DecisionKind.REJECT, person=BEN, digest=""), now),
            )
        )
    if "late" in wrong:
        clock.advance(WINDOW + 1)
    before = store.get(asked.id)
    answer = Answer(
        kind=DecisionKind.EDIT,
        person=Person(id="assistant") if "person" in wrong else ANN,
        digest="0" * 64 if "digest" in wrong else asked.action.digest,
        args={"price": float("nan")},
    )
    with pytest.raises(DecisionRefused) as caught:
        inbox.decide(asked.id, answer)
    name, kind = WRONG[first]
    assert type(caught.value) is kind
    assert caught.value.approval_id == asked.id
    assert caught.value.hint
    if name != "late":
        assert unchanged(store, before)


def test_a_decision_for_an_approval_nobody_opened_is_refused(inbox: Inbox) -> None:
    with pytest.raises(NotFound, match="apnone"):
        inbox.decide("apnone", Answer(kind=DecisionKind.APPROVE, person=ANN, digest="x"))


@guarantee("G3")
def test_the_second_of_two_people_learns_who_decided_and_when(store: Store, inbox: Inbox) -> None:
    asked = opened(store)[0]
    inbox.approve(asked, ANN)
    with pytest.raises(AlreadyDecided, match=r"already approved by ann at 2026-09-21 14:13:20 UTC"):
        inbox.reject(asked, BEN)


@guarantee("G1")
@guarantee("G5")
def test_a_late_decision_is_refused_and_recorded_though_no_sweep_has_run(
    store: Store, inbox: Inbox, clock: ManualClock
) -> None:
    asked = opened(store)[0]
    card = inbox.show(asked.id)
    clock.advance(WINDOW + 1)
    for person in (ANN, BEN):
        with pytest.raises(Late):
            inbox.approve(card, person)
    assert inbox.get(asked.id).status is Status.EXPIRED
    assert [entry.kind for entry in inbox.history(asked.id)] == ["opened", "expired", "late", "late"]


@guarantee("G6")
@pytest.mark.parametrize("kind", list(DecisionKind))
def test_who_asked_decides_nothing(store: Store, inbox: Inbox, kind: DecisionKind) -> None:
    asked = opened(store)[0]
    own = Answer(
        kind=kind,
        person=Person(id="assistant"),
        digest=asked.action.digest,
        message="x",
        args=asked.action.args,
    )
    with pytest.raises(NotPermitted, match="nobody approves their own request"):
        inbox.decide(asked.id, own)
    with pytest.raises(NotPermitted):
        inbox.challenge(asked, Person(id="assistant"))
    assert unchanged(store, asked)


@guarantee("G8")
def test_what_was_shown_must_be_what_is_stored(store: Store, inbox: Inbox) -> None:
    asked = opened(store)[0]
    card = inbox.show(asked.id)
    with pytest.raises(DigestMismatch, match="what was shown"):
        inbox.approve(replace(card, digest="0" * 64), ANN)
    with pytest.raises(DigestMismatch):
        inbox.approve(replace(card, action_digest="0" * 64), ANN)
    assert unchanged(store, asked)
    approved = inbox.approve(card, ANN)
    assert approved.decisions[0].shown == card.digest
    assert card.digest in inbox.history(asked.id)[1].body


LONG = {"text": "x" * 5000, "price": 1}


@guarantee("G8")
def test_parts_that_were_not_opened_keep_an_action_from_being_approved(store: Store, inbox: Inbox) -> None:
    asked = store.write(Open(approval=approval(action(args=LONG)))).approval
    card = inbox.show(asked.id)
    assert card.hidden
    for give in (lambda: inbox.approve(card, ANN), lambda: inbox.edit(card, ANN, {"price": 1})):
        with pytest.raises(PartsUnopened) as caught:
            give()
        assert "args.text" in caught.value.message
    with pytest.raises(DigestMismatch):
        inbox.approve(replace(card, opened=frozenset(card.hidden)), ANN)
    assert unchanged(store, asked)
    assert inbox.approve(inbox.show(asked.id, opened=frozenset(card.hidden)), ANN).status is Status.APPROVED


def test_a_no_needs_no_part_opened(store: Store, inbox: Inbox) -> None:
    asked = store.write(Open(approval=approval(action(args=LONG)))).approval
    assert inbox.reject(inbox.show(asked.id), ANN, "too long").status is Status.REJECTED


# -- proof -----------------------------------------------------------------------------------


def test_a_code_shown_in_a_session_approves_there_and_nowhere_else(store: Store, inbox: Inbox) -> None:
    asked = opened(store, given=CODE)[0]
    card = inbox.show(asked.id)
    with pytest.raises(ProofMissing):
        inbox.approve(card, ANN)
    code = inbox.challenge(card, ANN)
    assert code not in repr(store.get(asked.id))
    for other in (BEN, replace(ANN, session="elsewhere")):
        with pytest.raises(ProofMissing):
            inbox.approve(card, other, proof=code)
    approved = inbox.approve(card, ANN, proof=code.lower())
    assert approved.status is Status.APPROVED
    assert approved.decisions[0].proof is ProofKind.CODE
    assert approved.challenges == ()


def test_every_wrong_code_costs_a_try_and_the_fifth_the_code(store: Store, inbox: Inbox) -> None:
    asked = opened(store, given=CODE)[0]
    card = inbox.show(asked.id)
    code = inbox.challenge(card, ANN)
    for left in (4, 3, 2, 1):
        with pytest.raises(ProofWrong, match=f"{left} tr"):
            inbox.approve(card, ANN, proof="AAAAAA" if code != "AAAAAA" else "CCCCCC")
    for typed in ("DDDDDD", code):
        with pytest.raises(ProofExpired):
            inbox.approve(card, ANN, proof=typed)
    assert [entry.kind for entry in inbox.history(asked.id)].count("proof_failed") == 5
    assert inbox.approve(card, ANN, proof=inbox.challenge(card, ANN)).status is Status.APPROVED


def test_a_new_code_makes_the_one_before_worthless(store: Store, inbox: Inbox) -> None:
    asked = opened(store, given=CODE)[0]
    card = inbox.show(asked.id)
    old, new = inbox.challenge(card, ANN), inbox.challenge(card, ANN)
    assert len(store.get(asked.id).challenges) == 1
    with pytest.raises(ProofWrong):
        inbox.approve(card, ANN, proof=old)
    inbox.approve(card, ANN, proof=new)


def test_a_code_for_what_was_edited_since_is_worthless(store: Store) -> None:
    inbox = Inbox(store=store, policy=Policy([replace(BOOKING, confirm=ProofRule(kind=ProofKind.CODE))]))
    asked = opened(store, given=replace(CODE, quorum=(("travel", 2),)))[0]
    people = [Person(id=name, session=name, groups=frozenset({"travel"})) for name in ("ann", "ben")]
    card = inbox.show(asked.id)
    old = inbox.challenge(card, people[1])
    inbox.edit(card, people[0], {"price": 1}, proof=inbox.challenge(card, people[0]))
    with pytest.raises(ProofExpired, match="before an edit"):
        inbox.approve(inbox.show(asked.id), people[1], proof=old)
    with pytest.raises(DecisionRefused):
        inbox.challenge(card, people[1])


@guarantee("G8")
def test_a_proof_without_having_seen_anything_is_refused(store: Store, inbox: Inbox) -> None:
    for given, typed in ((TYPE, "1847.5"), (DIGITS, TOTP(SECRET).generate_otp(store.clock.now() // 30_000))):
        asked = opened(store, given=given, thread=str(given.proof.kind))[0]
        with pytest.raises(ProofMissing, match="about what was shown"):
            inbox.approve(asked, ANN, proof=typed)


def test_a_fact_that_is_typed_must_be_this_actions_own(store: Store, inbox: Inbox) -> None:
    asked = opened(store, given=TYPE)[0]
    card = inbox.show(asked.id)
    with pytest.raises(ProofWrong):
        inbox.approve(card, ANN, proof="1847")
    assert inbox.approve(card, ANN, proof="1,847.50").decisions[0].proof is ProofKind.TYPE


@guarantee("G3")
def test_authenticator_digits_work_once_across_approvals(
    store: Store, inbox: Inbox, clock: ManualClock
) -> None:
    first, second = opened(store, 2, given=DIGITS)
    digits = TOTP(SECRET).generate_otp(clock.now() // 30_000)
    inbox.approve(inbox.show(first.id), ANN, proof=digits)
    with pytest.raises(ProofWrong, match="used already"):
        inbox.approve(inbox.show(second.id), ANN, proof=digits)
    assert store.get(second.id).status is Status.PENDING
    clock.advance(30)
    inbox.approve(inbox.show(second.id), ANN, proof=TOTP(SECRET).generate_otp(clock.now() // 30_000))


def test_an_edit_needs_the_proof_too_and_a_no_needs_none(store: Store, inbox: Inbox) -> None:
    first, second, third = opened(store, 3, given=CODE)
    with pytest.raises(ProofMissing):
        inbox.edit(inbox.show(first.id), ANN, {"price": 1})
    inbox.reject(inbox.show(second.id), ANN)
    inbox.respond(inbox.show(third.id), ANN, "no need")


# -- quorum ----------------------------------------------------------------------------------


def test_a_quorum_ends_with_the_last_it_needs_and_names_who_is_missing(store: Store, inbox: Inbox) -> None:
    asked = opened(store, given=terms(quorum=(("finance", 1), ("travel", 1))))[0]
    both = Person(id="ann", groups=frozenset({"finance", "travel"}))
    first = inbox.approve(asked, both)
    assert first.status is Status.PENDING
    with pytest.raises(NotPermitted, match="has approved"):
        inbox.approve(asked, both)
    with pytest.raises(NotPermitted, match="`finance` or `travel`"):
        inbox.approve(asked, Person(id="dan", groups=frozenset({"legal"})))
    assert '"missing"' in inbox.history(asked.id)[1].body
    assert inbox.approve(asked, Person(id="ben", groups=frozenset({"finance"}))).status is Status.APPROVED


def test_who_approved_can_still_reject_before_the_quorum_is_met(store: Store, inbox: Inbox) -> None:
    asked = opened(store, given=terms(quorum=(("travel", 2),)))[0]
    ann = Person(id="ann", groups=frozenset({"travel"}))
    inbox.approve(asked, ann)
    assert inbox.reject(asked, ann, "on second thought").status is Status.REJECTED


@guarantee("G2")
def test_an_edit_in_a_quorum_makes_every_earlier_approval_void(store: Store, inbox: Inbox) -> None:
    asked = opened(store, given=terms(quorum=(("travel", 2),)))[0]
    ann, ben = (Person(id=name, groups=frozenset({"travel"})) for name in ("ann", "ben"))
    inbox.approve(asked, ann)
    edited = inbox.edit(asked, ben, {"flight": "TP 1", "price": 2000})
    assert edited.status is Status.PENDING
    with pytest.raises(DigestMismatch):
        inbox.approve(asked, ann)
    assert inbox.approve(inbox.get(asked.id), ann).status is Status.APPROVED


# -- edits -----------------------------------------------------------------------------------

SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {"price": {"type": "number", "maximum": 500}, "seats": {"items": {"type": "string"}}},
    "required": ["price"],
    "additionalProperties": False,
}
EDITS = Policy(
    [
        BOOKING,
        LOOKUP,
        WIPE,
        Rule(tool="book_hotel", effect=Effect.IRREVERSIBLE, confirm=ProofRule(kind=ProofKind.CODE)),
        Rule(tool="book_train", effect=Effect.REVERSIBLE, args_schema=SCHEMA),
        Rule(
            tool="book_flight",
            effect=Effect.IRREVERSIBLE,
            outcome=Outcome.DENY,
            when="args.price > 9000",
        ),
    ]
)


@pytest.fixture
def editor(store: Store) -> Inbox:
    """The person's door, with rules that edits can meet."""
    return Inbox(store=store, policy=EDITS)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, "'price' is a required property"),
        ({"price": "1"}, r"`args\.price` does not fit the tool: '1' is not of type 'number'"),
        ({"price": 501}, "maximum of 500"),
        ({"price": 1, "seats": ["a", 2]}, r"`args\.seats\[1\]`"),
        ({"price": 1, "extra": 1}, "extra"),
        ({"price": float("inf")}, r"args\.price"),
        ({"price": 1, "seats": b"x"}, r"args\.seats"),
    ],
)
def test_an_edit_that_does_not_fit_the_tool_is_refused_by_its_path(
    store: Store, editor: Inbox, args: dict[str, Json], words: str
) -> None:
    asked = opened(store, given=terms(args_schema=SCHEMA))[0]
    with pytest.raises(InvalidEdit, match=words) as caught:
        editor.edit(asked, ANN, args)
    assert "nothing was saved" in caught.value.hint
    assert unchanged(store, asked)
    assert editor.edit(asked, ANN, {"price": 400}).status is Status.APPROVED


def test_an_edit_to_another_tool_must_fit_that_tool(store: Store, editor: Inbox) -> None:
    asked = opened(store)[0]
    with pytest.raises(InvalidEdit, match="maximum of 500"):
        editor.edit(asked, ANN, {"price": 501}, tool="book_train")
    edited = editor.edit(asked, ANN, {"price": 499}, tool="book_train")
    assert edited.effective.tool == "book_train"


@pytest.mark.parametrize(("tool", "price"), [("drop_table", 1), ("", 9001)])
@guarantee("G4")
def test_an_edit_that_policy_denies_is_refused(store: Store, editor: Inbox, tool: str, price: int) -> None:
    asked = opened(store)[0]
    with pytest.raises(InvalidEdit, match="policy denies the edited action"):
        editor.edit(asked, ANN, {"price": price}, tool=tool)
    assert unchanged(store, asked)


def test_an_edit_without_a_policy_at_hand_is_refused(store: Store) -> None:
    asked = opened(store)[0]
    with pytest.raises(InvalidEdit, match="no policy is at hand"):
        Inbox(store=store).edit(asked, ANN, {"price": 1})
    assert unchanged(store, asked)


def test_an_edit_to_something_stricter_opens_a_new_approval_that_the_agent_follows(
    store: Store, editor: Inbox
) -> None:
    gate = Gate(store=store, policy=EDITS, name="gate")
    with asking(gate, action(), editor) as (asked, outcomes):
        after = editor.edit(asked, ANN, {"hotel": "Ritz"}, tool="book_hotel")
        assert after.status is Status.WITHDRAWN
        assert after.decisions == ()
        assert after.resolution is not None
        successor = editor.get(after.resolution.successor)
        assert successor.replaces == asked.id
        assert successor.terms.proof.kind is ProofKind.CODE
        assert successor.action.tool == "book_hotel"
        assert outcomes == []
        card = editor.show(successor.id)
        with pytest.raises(ProofMissing):
            editor.approve(card, BEN)
        editor.approve(card, BEN, proof=editor.challenge(card, BEN))
    settlement = outcomes[0]
    assert not isinstance(settlement, BaseException)
    assert settlement.may_run
    assert settlement.action.tool == "book_hotel"


def test_an_edit_to_something_looser_counts_at_once(store: Store, editor: Inbox) -> None:
    asked = opened(store)[0]
    edited = editor.edit(asked, ANN, {"origin": "LIS"}, tool="search_flights")
    assert edited.status is Status.APPROVED
    assert edited.terms == asked.terms


@guarantee("G2")
def test_an_edit_of_what_was_edited_meanwhile_is_refused(store: Store, editor: Inbox) -> None:
    asked = opened(store, given=terms(quorum=(("travel", 2),)))[0]
    ann, ben = (Person(id=name, groups=frozenset({"travel"})) for name in ("ann", "ben"))
    editor.edit(asked, ann, {"price": 1})
    with pytest.raises(DigestMismatch):
        editor.edit(asked, ben, {"price": 2})
    assert editor.get(asked.id).effective.args == {"price": 1}


# -- words and reconciling -------------------------------------------------------------------


@pytest.mark.parametrize("words", ["", "  \n"])
def test_an_answer_in_the_tools_place_needs_words(store: Store, inbox: Inbox, words: str) -> None:
    asked = opened(store)[0]
    with pytest.raises(NotAllowed, match="needs words"):
        inbox.respond(asked, ANN, words)
    assert unchanged(store, asked)


def test_an_unknown_outcome_is_settled_by_a_person_who_did_not_ask(
    store: Store, inbox: Inbox, clock: ManualClock
) -> None:
    gate = Gate(store=store, policy=POLICY, name="gate")
    asked = gate.open(action())
    inbox.approve(asked, ANN)
    with pytest.raises(DecisionRefused, match="is not unknown"):
        inbox.reconcile(asked.id, ANN, ran=True)
    gate.claim(asked.id)
    clock.advance(901)
    run_once(store)
    with pytest.raises(NotPermitted):
        inbox.reconcile(asked.id, Person(id="assistant"), ran=True)
    assert inbox.reconcile(asked.id, ANN, ran=True, note="seen in the bookings").status is Status.DONE


# -- G8 and G11 ------------------------------------------------------------------------------


@guarantee("G11")
def test_no_argument_or_word_in_clear_reaches_the_audit(store: Store, inbox: Inbox) -> None:
    secret = "hunter2-hunter2"
    calls: list[Callable[[Approval], Approval]] = [
        lambda asked: inbox.reject(asked, ANN, secret),
        lambda asked: inbox.respond(asked, ANN, secret),
        lambda asked: inbox.edit(asked, ANN, {"password": secret}),
        lambda asked: inbox.approve(asked, ANN, proof=secret),
    ]
    for number, call in enumerate(calls):
        wanted = action(args={"password": secret}, call_id=str(number))
        call(store.write(Open(approval=approval(wanted, id=f"ap{number}"))).approval)
    assert all(secret not in entry.body for entry in store.entries())


@guarantee("G8")
def test_a_card_of_an_approval_that_was_decided_meanwhile_decides_nothing(store: Store, inbox: Inbox) -> None:
    asked = opened(store)[0]
    card = inbox.show(asked.id)
    inbox.respond(card, BEN, "no")
    with pytest.raises(AlreadyDecided):
        inbox.approve(card, ANN)


def test_a_waiting_agent_in_this_process_gets_its_permit_with_the_decision(
    store: Store, inbox: Inbox
) -> None:
    gate = Gate(store=store, policy=POLICY, name="gate")
    with asking(gate, action(), inbox) as (asked, outcomes):
        soon(lambda: inbox.get(asked.id))
        after = inbox.approve(asked, ANN)
        assert after.status is Status.RUNNING
    assert outcomes
    assert evolve(after, version=0).permit is not None
