"""One pass of what only time does: it can be repeated, interrupted and run by several at once."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sayso import Effect, Gate, Inbox, ManualClock, Policy, Rule, Silence, open_store
from sayso.approvals import Status
from sayso.audit import CheckpointFile, Signer, verify
from sayso.presentation import Presentation
from sayso.stores import Store
from sayso.worker import run_once, sweep
from tests.builders import ANN, POLICY, WINDOW, action, opened
from tests.guarantees import guarantee


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    """A store in a file."""
    made = open_store(tmp_path / "sayso.db", clock=clock)
    yield made
    made.close()


class Recorder:
    """A channel that remembers what it was told, and fails when it is told to."""

    name = "recorder"

    def __init__(self, *, fails: int = 0) -> None:
        self.told: list[tuple[str, str]] = []
        self.fails = fails

    def announce(self, kind: str, card: Presentation) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError(card.approval_id)
        self.told.append((card.approval_id, kind))


def is_sound(store: Store) -> bool:
    return verify(store.entries(), heads=store.heads(), statuses=store.statuses()).sound


@guarantee("G5")
def test_a_pass_expires_what_is_overdue_and_a_second_pass_finds_nothing(
    store: Store, clock: ManualClock
) -> None:
    made = opened(store, 3)
    assert run_once(store).expired == 0
    clock.advance(WINDOW + 1.5)
    assert run_once(store).expired == 2
    assert [store.get(each.id).status for each in made] == [Status.EXPIRED, Status.EXPIRED, Status.PENDING]
    assert run_once(store).expired == 0
    assert [entry.kind for entry in store.entries()].count("expired") == 2
    assert is_sound(store)


def test_more_than_fit_in_one_transaction_expire_in_one_pass(store: Store, clock: ManualClock) -> None:
    opened(store, 700)
    clock.advance(WINDOW + 701)
    assert sweep(store) == (700, 0, 0)


def test_silence_that_allows_is_counted_and_left_to_be_claimed(store: Store, clock: ManualClock) -> None:
    policy = Policy([Rule(tool="book_flight", effect=Effect.REVERSIBLE, silence=Silence.ALLOW)])
    gate = Gate(store=store, policy=policy, name="gate")
    asked = gate.open(action())
    clock.advance(WINDOW + 1)
    assert run_once(store).expired == 1
    assert gate.claim(asked.id).may_run


@guarantee("G3")
def test_passes_at_the_same_time_settle_everything_once(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    opened(store, 60)
    clock.advance(WINDOW + 61)
    others = [open_store(tmp_path / "sayso.db", clock=clock) for _ in range(3)]
    file, signer = CheckpointFile(tmp_path / "checkpoints"), Signer.from_file(tmp_path / "key")
    totals: list[int] = []
    start = threading.Barrier(4)

    def one(of: Store) -> None:
        start.wait()
        totals.extend(run_once(of, checkpoints=file, signer=signer).expired for _ in range(3))

    threads = [threading.Thread(target=one, args=(each,)) for each in (store, *others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for other in others:
        other.close()
    assert sum(totals) == 60
    assert [entry.kind for entry in store.entries()].count("expired") == 60
    report = verify(
        store.entries(), file.read(), key=signer.key, heads=store.heads(), statuses=store.statuses()
    )
    assert report.sound, report.findings
    assert report.uncovered == 0


def test_every_channel_is_told_in_order_and_only_once(store: Store, clock: ManualClock) -> None:
    first, second = opened(store, 2)
    one, other = Recorder(), Recorder()
    assert run_once(store, channels=[one, other]).delivered == 2
    Inbox(store=store, policy=POLICY).reject(first, ANN)
    clock.advance(WINDOW + 2)
    assert run_once(store, channels=[one, other]).delivered == 2
    assert run_once(store, channels=[one, other]).delivered == 0
    assert one.told == [
        (first.id, "opened"),
        (second.id, "opened"),
        (first.id, "rejected"),
        (second.id, "expired"),
    ]
    assert other.told == one.told


def test_a_channel_that_fails_keeps_its_notice_for_the_next_pass(store: Store) -> None:
    made = opened(store, 3)
    channel = Recorder(fails=1)
    assert run_once(store, channels=[channel]).delivered == 0
    assert len(store.notices()) == 3
    assert run_once(store, channels=[channel]).delivered == 3
    assert [name for name, _ in channel.told] == [each.id for each in made]
    assert store.notices() == []


def test_a_channel_that_fails_halfway_is_not_told_again_what_it_took(store: Store) -> None:
    class Second(Recorder):
        def announce(self, kind: str, card: Presentation) -> None:
            if card.approval_id.endswith("1") and self.fails:
                self.fails -= 1
                raise OSError
            self.told.append((card.approval_id, kind))

    opened(store, 3)
    channel = Second(fails=1)
    assert run_once(store, channels=[channel]).delivered == 1
    assert run_once(store, channels=[channel]).delivered == 2
    assert [name[-1] for name, _ in channel.told] == ["0", "1", "2"]


def test_what_nobody_needs_to_be_told_is_passed_over(store: Store) -> None:
    gate = Gate(store=store, policy=POLICY, name="gate")
    gate.ask(action("search_flights"))
    gate.ask(action("drop_table"))
    channel = Recorder()
    assert run_once(store, channels=[channel]).delivered == 0
    assert channel.told == []
    assert store.notices() == []


@guarantee("G11")
def test_what_a_channel_is_told_has_its_secrets_taken_out(store: Store) -> None:
    token = "ghp_" + "a1B2" * 9
    Gate(store=store, policy=POLICY, name="gate").open(action(args={"token": token, "note": f"use {token}"}))
    cards: list[Presentation] = []

    class Keeper(Recorder):
        def announce(self, kind: str, card: Presentation) -> None:
            super().announce(kind, card)
            cards.append(card)

    run_once(store, channels=[Keeper()])
    assert len(cards) == 1
    assert token not in repr(cards)


@guarantee("G7")
def test_a_pass_signs_what_was_written_since_the_last_one(store: Store, tmp_path: Path) -> None:
    file, signer = CheckpointFile(tmp_path / "checkpoints"), Signer.from_file(tmp_path / "key")
    assert run_once(store, checkpoints=file, signer=signer).checkpoint == 0
    opened(store, 2)
    assert run_once(store, checkpoints=file, signer=signer).checkpoint == 1
    assert run_once(store, checkpoints=file, signer=signer).checkpoint == 0
    opened(store, 1, thread="other")
    assert run_once(store, checkpoints=file, signer=signer).checkpoint == 2
    assert [each.entries for each in file.read()] == [2, 3]
    assert verify(store.entries(), file.read(), key=signer.key).sound


def test_notes_still_held_back_are_part_of_a_pass(store: Store, tmp_path: Path) -> None:
    Gate(store=store, policy=POLICY, name="gate").ask(action("search_flights"))
    file, signer = CheckpointFile(tmp_path / "checkpoints"), Signer.from_file(tmp_path / "key")
    assert run_once(store, checkpoints=file, signer=signer).checkpoint == 1
