"""What a store keeps reads back as what it was given, or is called damaged."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.actions import MAX_INTEGER, Action, Origin
from sayso.approvals import (
    Approval,
    Cause,
    Challenge,
    Decision,
    DecisionKind,
    Effect,
    Permit,
    Person,
    ProofKind,
    ProofRule,
    Reason,
    Resolution,
    Silence,
    Status,
    Terms,
)
from sayso.errors import StoreDamaged
from sayso.stores.codec import Row, read_approval, read_terms, write_body, write_state, write_terms
from tests.builders import T0, approval
from tests.guarantees import guarantee

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAME = TEXT.filter(bool)
MOMENT = st.integers(0, 2**52)
NUMBERS = st.integers(-MAX_INTEGER, MAX_INTEGER) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: not MAX_INTEGER < abs(number) < 1e21
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)

ACTIONS = st.builds(
    Action,
    tool=NAME,
    args=OBJECTS,
    thread=NAME,
    call_id=TEXT,
    agents=st.lists(TEXT, max_size=2).map(tuple),
    requested_by=TEXT,
    confidence=st.none() | st.floats(0, 1),
    origins=st.dictionaries(TEXT, st.sampled_from(Origin), max_size=2),
    facts=OBJECTS,
)
TERMS = st.builds(
    Terms,
    effect=st.sampled_from(Effect),
    reasons=st.lists(st.sampled_from(Reason), max_size=3).map(tuple),
    decisions=st.lists(st.sampled_from(DecisionKind), min_size=1, max_size=4, unique=True).map(tuple),
    window=st.integers(1, 10**6),
    proof=st.builds(ProofRule, kind=st.sampled_from(ProofKind), template=TEXT),
    quorum=st.lists(st.tuples(NAME, st.integers(1, 5)), max_size=2).map(tuple),
    rule=TEXT,
    args_schema=st.none() | OBJECTS,
    lease=st.integers(1, 10**6),
) | st.just(
    Terms(effect=Effect.REVERSIBLE, reasons=(), decisions=(DecisionKind.APPROVE,), silence=Silence.ALLOW)
)
PEOPLE = st.builds(Person, id=NAME, groups=st.frozensets(NAME, max_size=2), via=NAME)
DECISIONS = st.builds(
    Decision,
    kind=st.sampled_from(DecisionKind),
    person=PEOPLE,
    digest=TEXT,
    shown=TEXT,
    message=TEXT,
    at=MOMENT,
    proof=st.sampled_from(ProofKind),
)
RESOLUTIONS = st.builds(
    Resolution,
    status=st.sampled_from(Status),
    cause=st.sampled_from(Cause),
    at=MOMENT,
    by=TEXT,
    message=TEXT,
    successor=TEXT,
)
CHALLENGES = st.builds(
    Challenge, session=TEXT, digest=TEXT, salt=TEXT, hash=TEXT, until=MOMENT, tries=st.integers(0, 5)
)
PERMITS = st.builds(Permit, approval_id=st.just("ap1"), digest=TEXT, holder=TEXT, until=MOMENT)
APPROVALS = st.builds(
    Approval,
    id=st.just("ap1"),
    seq=st.integers(1, 2**40),
    version=st.integers(0, 99),
    action=ACTIONS,
    terms=TERMS,
    why=TEXT,
    description=TEXT,
    opened_at=MOMENT.filter(bool),
    deadline=MOMENT.filter(bool),
    status=st.sampled_from(Status),
    edited=st.none() | ACTIONS,
    decisions=st.lists(DECISIONS, max_size=2).map(tuple),
    challenges=st.lists(CHALLENGES, max_size=2).map(tuple),
    permit=st.none() | PERMITS,
    resolution=st.none() | RESOLUTIONS,
    replaces=TEXT,
)


def row(of: Approval) -> Row:
    return Row(
        seq=of.seq,
        id=of.id,
        status=of.status.value,
        version=of.version,
        terms=1,
        state=write_state(of),
        digest=bytes.fromhex(of.action.digest),
        args=of.action.canonical_args,
        body=write_body(of),
    )


@given(APPROVALS)
@guarantee("G8")
def test_an_approval_reads_back_as_it_was_written(stored: Approval) -> None:
    read = read_approval(row(stored), read_terms(write_terms(stored.terms)))
    assert read == stored
    assert read.effective.canonical_args == stored.effective.canonical_args


@given(TERMS, TERMS)
def test_terms_are_the_same_text_exactly_when_they_are_equal(one: Terms, other: Terms) -> None:
    assert read_terms(write_terms(one)) == one
    assert (write_terms(one) == write_terms(other)) == (one == other)


@pytest.mark.parametrize(
    ("part", "before", "after"),
    [
        ("args", "1847.5", "1.5"),
        ("args", "{", "["),
        ("args", '{"', '{"x":1,"'),
        ("body", "book_flight", "drop_table"),
        ("body", '"trip"', '"trap"'),
        ("body", '"assistant"]', '"nobody"]'),
        ("body", '"opened"', '"openad"'),
        ("body", "{", "["),
        ("status", "pending", "sleeping"),
        ("state", "", "{"),
        (
            "state",
            "",
            '{"decisions":[{"kind":"maybe","by":"a","via":"b","digest":"","at":0,"proof":"click"}]}',
        ),
        ("state", "", '{"permit":[1]}'),
        ("state", "", '{"resolution":["approved"]}'),
        ("state", "", "[]"),
    ],
)
@guarantee("G2")
def test_a_changed_row_is_called_damaged_by_its_name(part: str, before: str, after: str) -> None:
    good = row(replace(approval(), seq=1))
    value: object = getattr(good, part)
    text: str | bytes = after
    if isinstance(value, bytes):
        text = value.replace(before.encode(), after.encode(), 1)
    elif isinstance(value, str) and before:
        text = value.replace(before, after, 1)
    assert text != value
    with pytest.raises(StoreDamaged, match="approval ap1 cannot be trusted") as caught:
        read_approval(good._replace(**{part: text}), approval().terms)
    assert caught.value.approval_id == "ap1"
    assert caught.value.hint


@guarantee("G2")
@pytest.mark.parametrize("digest", [b"", bytes(32), b"short"])
def test_a_changed_digest_is_called_damaged(digest: bytes) -> None:
    with pytest.raises(StoreDamaged, match="ap1"):
        read_approval(row(replace(approval(), seq=1))._replace(digest=digest), approval().terms)


@guarantee("G2")
def test_a_changed_edit_is_called_damaged() -> None:
    edited = replace(approval(), seq=1, edited=replace(approval().action, args={"price": 310.5}))
    good = row(edited)
    with pytest.raises(StoreDamaged):
        read_approval(good._replace(state=good.state.replace("310.5", "9310.5")), approval().terms)


def test_the_person_who_decided_keeps_groups_and_door_but_no_session() -> None:
    person = Person(id="ann", groups=frozenset({"b", "a"}), via="web", session="secret")
    given_ = Decision(kind=DecisionKind.APPROVE, person=person, digest="d", at=T0)
    state = write_state(replace(approval(), decisions=(given_,)))
    assert "secret" not in state
    assert orjson.loads(state)["decisions"][0]["groups"] == ["a", "b"]


def test_nothing_is_kept_for_what_did_not_happen() -> None:
    assert write_state(approval()) == ""


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"effect":"odd"}'])
def test_terms_that_cannot_be_read_are_called_damaged(text: str) -> None:
    with pytest.raises(StoreDamaged, match="terms"):
        read_terms(text)


@guarantee("G5")
def test_terms_that_were_changed_to_let_silence_pass_are_called_damaged() -> None:
    with pytest.raises(StoreDamaged, match="silence"):
        read_terms(write_terms(approval().terms).replace('"silence":"deny"', '"silence":"allow"'))
