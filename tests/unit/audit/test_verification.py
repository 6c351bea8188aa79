"""Whether the audit is whole: three questions, each with what is wrong and where."""

from collections.abc import Callable
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.audit import Checkpoint, Entry, Signer, genesis, link, make_checkpoint, seal, verify
from sayso.decisions import Event
from tests.builders import T0
from tests.guarantees import guarantee


def signer() -> Signer:
    """Return a signer with a fresh key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - the only use
        Ed25519PrivateKey,
    )

    return Signer(Ed25519PrivateKey.generate())


def log(*events: Event) -> list[Entry]:
    """Link events as a store does."""
    heads: dict[str, tuple[int, bytes]] = {}
    made: list[Entry] = []
    for seq, event in enumerate(events, start=1):
        n, previous = heads.get(event.thread, (0, genesis(event.thread)))
        body = seal(event)
        digest = link(previous, n + 1, T0 + seq, event.kind, event.approval_id, body)
        heads[event.thread] = (n + 1, digest)
        made.append(Entry(seq, event.thread, n + 1, T0 + seq, event.kind, event.approval_id, body, digest))
    return made


def happened(kind: str, approval_id: str = "ap1", thread: str = "trip", **data: object) -> Event:
    return Event(kind=kind, thread=thread, approval_id=approval_id, by="ann", via="cli", data=data)  # pyright: ignore[reportArgumentType]


def heads_of(entries: list[Entry]) -> dict[str, tuple[int, bytes]]:
    return {entry.thread: (entry.n, entry.hash) for entry in entries}


LIFE = (
    happened("opened"),
    happened("opened", "ap2", "other"),
    happened("approved"),
    happened("claimed"),
    happened("rejected", "ap2", "other"),
    happened("done"),
)
STATUSES = {"ap1": "done", "ap2": "rejected"}


def test_a_whole_log_answers_every_question_well() -> None:
    entries, by = log(*LIFE), signer()
    first = make_checkpoint(None, entries[:3], T0, by)
    second = make_checkpoint(first, entries[3:5], T0, by)
    report = verify(entries, [first, second], key=by.key, heads=heads_of(entries), statuses=STATUSES)
    assert report.sound
    assert report.first is None
    assert (report.entries, report.chains, report.checkpoints, report.uncovered) == (6, 2, 2, 1)
    assert verify([]).sound


Tamper = Callable[[list[Entry]], list[Entry]]
TAMPERED: dict[str, Tamper] = {
    "a changed kind": lambda log: [*log[:2], log[2]._replace(kind="rejected"), *log[3:]],
    "a changed time": lambda log: [*log[:2], log[2]._replace(at=0), *log[3:]],
    "a changed body": lambda log: [
        *log[:2],
        log[2]._replace(body=log[2].body.replace("ann", "bob")),
        *log[3:],
    ],
    "another approval": lambda log: [*log[:2], log[2]._replace(approval_id="ap2"), *log[3:]],
    "a changed hash": lambda log: [*log[:2], log[2]._replace(hash=bytes(32)), *log[3:]],
    "a removed entry": lambda log: [*log[:2], *log[3:]],
    "a removed first entry": lambda log: log[1:],
    "two swapped entries": lambda log: [*log[:2], log[3], log[2], *log[4:]],
    "a repeated entry": lambda log: [*log[:3], log[2], *log[3:]],
    "another thread": lambda log: [*log[:2], log[2]._replace(thread="other"), *log[3:]],
}


@guarantee("G7")
@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED)
def test_what_was_changed_inside_a_chain_is_found(tamper: Tamper) -> None:
    report = verify(tamper(log(*LIFE)))
    assert not report.holds("integrity")
    assert report.first is not None
    assert "entry" in report.first.message


def test_what_is_missing_or_out_of_order_is_named_by_its_number() -> None:
    entries = log(*LIFE)
    gone = verify([*entries[:2], *entries[4:]]).first
    moved = verify([*entries[:2], entries[3], entries[2], *entries[4:]])
    assert gone is not None
    assert gone.message == "before entry 6 (done): number 2 to 3 of thread `trip` is missing"
    assert any("is out of order" in finding.message for finding in moved.findings)


@guarantee("G7")
def test_a_tail_that_was_cut_off_is_found_by_heads_and_by_checkpoints() -> None:
    entries, by = log(*LIFE), signer()
    assert verify(entries[:-1]).sound
    assert not verify(entries[:-1], heads=heads_of(entries)).holds("completeness")
    made = make_checkpoint(None, entries, T0, by)
    report = verify(entries[:-1], [made], key=by.key)
    assert not report.holds("completeness")
    assert report.first is not None
    assert "1 are missing" in report.first.message


@guarantee("G7")
def test_a_log_that_was_written_anew_is_found_by_its_checkpoints() -> None:
    entries, by = log(*LIFE), signer()
    made = make_checkpoint(None, entries, T0, by)
    forged = log(*LIFE[:2], happened("rejected"), *LIFE[3:])
    assert verify(forged).holds("integrity")
    assert not verify(forged, [made], key=by.key).holds("integrity")


@guarantee("G7")
def test_entries_of_two_threads_that_changed_places_are_found_by_checkpoints() -> None:
    entries, by = log(*LIFE), signer()
    made = make_checkpoint(None, entries, T0, by)
    swapped = [entries[1], entries[0], *entries[2:]]
    assert not verify(swapped, [made], key=by.key).sound


@guarantee("G7")
@pytest.mark.parametrize("field", ["number", "seq", "entries", "root", "previous", "at", "key", "signature"])
def test_a_checkpoint_that_was_changed_is_found(field: str) -> None:
    entries, by = log(*LIFE), signer()
    first = make_checkpoint(None, entries[:3], T0, by)
    second = make_checkpoint(first, entries[3:], T0, by)
    value = getattr(second, field)
    changed = replace(
        second, **{field: value + 1 if isinstance(value, int) else ("00" + value)[: len(value)]}
    )
    assert not verify(entries, [first, changed], key=by.key).sound


@guarantee("G7")
def test_a_checkpoint_that_was_taken_out_is_found() -> None:
    entries, by = log(*LIFE), signer()
    first = make_checkpoint(None, entries[:3], T0, by)
    second = make_checkpoint(first, entries[3:], T0, by)
    assert not verify(entries, [second], key=by.key).holds("completeness")
    assert not verify(entries, [second, first], key=by.key).sound


def test_a_checkpoint_by_another_key_is_found() -> None:
    entries, by, other = log(*LIFE), signer(), signer()
    made = make_checkpoint(None, entries, T0, other)
    assert verify(entries, [made], key=other.key).sound
    report = verify(entries, [made], key=by.key)
    assert not report.holds("attribution")
    assert report.holds("integrity")


@pytest.mark.parametrize("key", ["", "zz", "00", "f" * 64])
def test_a_key_that_is_none_signed_nothing(key: str) -> None:
    made = make_checkpoint(None, log(*LIFE), T0, signer())
    assert not made.is_signed_by(key)


@guarantee("G7")
@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        ({"ap1": "approved", "ap2": "rejected"}, "stored as approved, but its entries lead to done"),
        ({"ap1": "done"}, "ap2 has entries, but is no longer in the store"),
        ({**STATUSES, "ap3": "approved"}, "ap3 is stored as approved, but it has no entries"),
    ],
)
def test_a_status_its_entries_do_not_lead_to_is_found(statuses: dict[str, str], words: str) -> None:
    report = verify(log(*LIFE), statuses=statuses)
    assert not report.holds("completeness")
    assert report.first is not None
    assert words in report.first.message


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([happened("approved", missing={"travel": 1})], "pending"),
        ([happened("approved", missing={"travel": 1}), happened("approved")], "approved"),
        ([Event(kind="approved", thread="trip", approval_id="ap1", by="missing", via="cli")], "approved"),
        ([happened("edited")], "approved"),
        ([happened("expired", outcome="denied"), happened("late")], "expired"),
        ([happened("expired", outcome="allowed")], "approved"),
        ([happened("approved"), happened("claimed"), happened("released")], "approved"),
        ([happened("approved"), happened("claimed"), happened("renewed")], "running"),
        ([happened("approved"), happened("claimed"), happened("unknown")], "unknown"),
        ([happened("unknown"), happened("reconciled", ran=True, note='"ran":false')], "done"),
        ([happened("unknown"), happened("reconciled", ran=False, note='"ran":true')], "failed"),
        ([happened("superseded")], "withdrawn"),
        ([happened("withdrawn")], "withdrawn"),
        ([happened("code_issued"), happened("proof_failed")], "pending"),
        ([happened("responded")], "responded"),
        ([happened("approved"), happened("claimed"), happened("failed")], "failed"),
    ],
)
def test_the_status_follows_from_the_entries(events: list[Event], status: str) -> None:
    report = verify(log(happened("opened"), *events), statuses={"ap1": status})
    assert report.sound, report.findings


@pytest.mark.parametrize("kind", ["approved", "edited", "rejected", "responded", "late", "reconciled"])
@pytest.mark.parametrize("who", [{"by": ""}, {"via": ""}])
def test_a_decision_of_nobody_is_found(kind: str, who: dict[str, str]) -> None:
    report = verify(log(replace(happened(kind), **who)))
    assert not report.holds("attribution")


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["allowed", "opened"])), min_size=1, max_size=12
    ),
    st.data(),
)
@guarantee("G7")
def test_whichever_entry_is_taken_out_of_a_signed_log_is_missed(
    parts: list[tuple[str, str]], data: st.DataObject
) -> None:
    entries = log(*(happened(kind, "", thread) for thread, kind in parts))
    made = make_checkpoint(None, entries, T0, SIGNER)
    place = data.draw(st.integers(0, len(entries) - 1))
    assert verify(entries, [made], key=SIGNER.key).sound
    assert not verify(entries[:place] + entries[place + 1 :], [made], key=SIGNER.key).sound


SIGNER = signer()


@guarantee("G11")
def test_a_body_holds_who_where_and_the_facts_in_one_order() -> None:
    event = Event(kind="opened", thread="t", by="ann", via="cli", data={"b": 1, "a": 2})
    assert orjson.loads(seal(event)) == {"by": "ann", "via": "cli", "data": {"a": 2, "b": 1}}
    assert seal(event) == '{"by":"ann","data":{"a":2,"b":1},"via":"cli"}'
    assert seal(Event(kind="expired", thread="t")) == "{}"


def test_chains_of_two_threads_begin_differently() -> None:
    assert genesis("a") != genesis("b")
    assert Checkpoint.__dataclass_fields__["signature"].default == ""
