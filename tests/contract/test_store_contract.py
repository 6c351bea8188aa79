"""What every store promises, whatever it is made of."""

import asyncio
import threading
from dataclasses import replace
from threading import Event as Signal

import pytest

from sayso.approvals import Approval, Cause, DecisionKind, Person, Status, evolve
from sayso.audit import verify
from sayso.clock import ManualClock, Millis
from sayso.decisions import (
    Change,
    Event,
    check_open,
    claim,
    complete,
    decide,
    expire,
    lapse,
    supersede,
    withdraw,
)
from sayso.errors import AlreadyDecided, ClaimRefused, Late, NotFound, ProofWrong, SaysoError, UsageError
from sayso.stores import Alter, Open, Page, Store
from sayso.stores.base import Changed, Write
from sayso.waiting import send
from tests.builders import ANN, BEN, T0, WINDOW, action, approval, decision, opened, soon
from tests.guarantees import guarantee

DEADLINE = T0 + WINDOW * 1000


def deciding(approval_id: str, kind: DecisionKind = DecisionKind.APPROVE, person: Person = ANN) -> Alter:
    def step(before: Approval, now: Millis) -> Change:
        given = replace(decision(kind, person, before), message="no, thank you")
        late = check_open(before, given, now)
        return late or decide(before, given, now)

    return Alter(approval_id=approval_id, step=step)


def claiming(approval_id: str, holder: str = "gate") -> Alter:
    return Alter(
        approval_id=approval_id, step=lambda before, now: claim(before, before.effective.digest, holder, now)
    )


def raising(approval_id: str, error: BaseException) -> Alter:
    def step(before: Approval, now: Millis) -> Change:
        raise error

    return Alter(approval_id=approval_id, step=step)


def kinds(store: Store, approval_id: str = "") -> list[str]:
    entries = store.entries_of(approval_id) if approval_id else store.entries()
    return [entry.kind for entry in entries]


def is_sound(store: Store) -> bool:
    report = verify(store.entries(), heads=store.heads(), statuses=store.statuses())
    assert report.sound, report.findings
    return True


# -- writing ---------------------------------------------------------------------------------


def test_opening_the_same_request_again_returns_the_one_there_is(store: Store) -> None:
    first = store.write(Open(approval=approval()))
    again = store.write(Open(approval=replace(approval(), why="another story")))
    assert again.approval == first.approval
    assert again.events == ()
    assert first.approval.seq > 0
    assert kinds(store) == ["opened"]


@guarantee("G3")
@guarantee("G4")
def test_opening_a_request_that_ended_returns_how_it_ended(store: Store) -> None:
    opened(store)
    ended = store.write(deciding("aptrip00000", DecisionKind.REJECT, Person(id="ann"))).approval
    again = store.write(Open(approval=replace(ended, status=Status.PENDING, decisions=(), resolution=None)))
    assert again.approval == ended
    assert again.approval.status is Status.REJECTED


def test_a_change_is_saved_with_its_audit_entry_and_the_next_version(store: Store) -> None:
    before = opened(store)[0]
    change = store.write(deciding(before.id))
    assert change.approval.version == before.version + 1
    assert store.get(before.id) == change.approval
    assert kinds(store, before.id) == ["opened", "approved"]


def test_every_field_of_a_decided_approval_is_kept(store: Store) -> None:
    before = opened(store)[0]
    store.write(deciding(before.id))
    after = store.write(claiming(before.id)).approval
    read = store.get(before.id)
    assert read == after
    assert read.permit is not None
    assert read.decisions[0].person.id == "ann"


@guarantee("G3")
def test_only_the_first_of_two_steps_finds_what_it_needs(store: Store) -> None:
    before = opened(store)[0]
    store.write(deciding(before.id))
    store.write(claiming(before.id, "one"))
    with pytest.raises(ClaimRefused):
        store.write(claiming(before.id, "two"))
    permit = store.get(before.id).permit
    assert permit is not None
    assert permit.holder == "one"


@guarantee("G3")
def test_two_openings_of_one_store_never_work_on_a_stale_record(two: tuple[Store, Store]) -> None:
    one, other = two
    made = opened(one, 3)
    for each in made:
        assert other.get(each.id) == each
        other.write(deciding(each.id))
        assert one.get(each.id).status is Status.APPROVED
        one.write(claiming(each.id))
        with pytest.raises(ClaimRefused):
            other.write(claiming(each.id))
    assert is_sound(one)


def test_a_refusal_saves_nothing(store: Store) -> None:
    before = opened(store)[0]
    with pytest.raises(AlreadyDecided):
        store.write(raising(before.id, AlreadyDecided("no")))
    assert store.get(before.id) == before
    assert kinds(store) == ["opened"]


def test_a_step_that_changes_nothing_writes_nothing(store: Store) -> None:
    before = opened(store)[0]
    change = store.write(Alter(approval_id=before.id, step=expire))
    assert change.events == ()
    assert store.get(before.id).version == before.version
    assert kinds(store) == ["opened"]


@guarantee("G5")
def test_a_late_decision_is_refused_and_still_on_record(store: Store, clock: ManualClock) -> None:
    before = opened(store)[0]
    clock.advance(WINDOW + 1)
    for person in (ANN, BEN):
        with pytest.raises(Late):
            store.write(deciding(before.id, person=person))
    assert store.get(before.id).status is Status.EXPIRED
    assert kinds(store, before.id) == ["opened", "expired", "late", "late"]
    assert is_sound(store)


def test_writing_to_an_approval_nobody_opened_is_refused_by_its_id(store: Store) -> None:
    for write in (deciding("apnone"), claiming("apnone")):
        with pytest.raises(NotFound, match="apnone"):
            store.write(write)
    with pytest.raises(NotFound, match="apnone"):
        store.get("apnone")


def test_many_writes_succeed_and_fail_each_on_its_own(store: Store) -> None:
    first, second = opened(store, 2)
    outcomes = store.write_many(
        [deciding(first.id), deciding("apnone"), claiming(first.id), claiming(second.id), deciding(second.id)]
    )
    assert isinstance(outcomes[0], Change)
    assert isinstance(outcomes[1], NotFound)
    assert isinstance(outcomes[2], Change)
    assert isinstance(outcomes[3], ClaimRefused)
    assert isinstance(outcomes[4], Change)
    assert store.get(first.id).status is Status.RUNNING
    assert store.get(second.id).status is Status.APPROVED
    assert store.write_many([]) == []
    assert is_sound(store)


@guarantee("G9")
@pytest.mark.parametrize("error", [ValueError("boom"), KeyboardInterrupt(), SystemExit(1)])
def test_a_write_that_breaks_harms_nobody_else_of_its_group(store: Store, error: BaseException) -> None:
    made = opened(store, 4)
    held = Event(kind="allowed", thread="trip", by="gate", data={"tool": "search"})
    store.note(held)
    new = approval(action(call_id="new"), id="apnew")
    writes: list[Write] = [deciding(each.id) for each in made]
    outcomes = store.write_many([*writes[:2], raising(made[0].id, error), Open(approval=new), *writes[2:]])
    assert outcomes.pop(2) is error
    assert all(isinstance(outcome, Change) for outcome in outcomes)
    assert {store.get(each.id).status for each in made} == {Status.APPROVED}
    assert store.get("apnew").status is Status.PENDING
    assert sorted(kinds(store)) == ["allowed"] + ["approved"] * 4 + ["opened"] * 5
    assert is_sound(store)


def test_an_approval_that_takes_anothers_place_is_stored_with_it(store: Store) -> None:
    before = opened(store)[0]
    successor = approval(action(args={"price": 1}), id="apnext")
    change = store.write(
        Alter(
            approval_id=before.id,
            step=lambda old, now: supersede(old, successor, now, by="ann", via="cli", why="stricter"),
        )
    )
    assert change.opens is not None
    assert store.get("apnext") == change.opens
    assert store.get("apnext").replaces == before.id
    assert kinds(store) == ["opened", "superseded", "opened"]
    assert is_sound(store)


# -- without waiting -------------------------------------------------------------------------


def test_a_submitted_write_reports_from_elsewhere(store: Store) -> None:
    before = opened(store)[0]
    outcomes: list[Change | BaseException] = []
    store.submit(deciding(before.id), outcomes.append)
    store.submit(deciding("apnone"), outcomes.append)
    soon(lambda: len(outcomes) == 2)
    assert isinstance(outcomes[0], Change)
    assert isinstance(outcomes[1], NotFound)
    assert store.get(before.id).status is Status.APPROVED


def test_a_submitted_late_decision_reports_its_refusal(store: Store, clock: ManualClock) -> None:
    before = opened(store)[0]
    clock.advance(WINDOW + 1)
    outcomes: list[Change | BaseException] = []
    store.submit(deciding(before.id), outcomes.append)
    soon(lambda: outcomes)
    assert isinstance(outcomes[0], Late)


def test_writes_of_one_event_loop_are_done_in_the_order_they_were_given(store: Store) -> None:
    before = opened(store)[0]

    async def all_at_once() -> list[Change | BaseException]:
        writes = [
            send(store, deciding(before.id)),
            send(store, claiming(before.id)),
            send(store, claiming(before.id)),
        ]
        return await asyncio.gather(*writes, return_exceptions=True)

    outcomes = asyncio.run(all_at_once())
    assert isinstance(outcomes[1], Change)
    assert isinstance(outcomes[2], ClaimRefused)


@guarantee("G9")
def test_an_event_loop_that_stands_still_holds_up_no_other(store: Store) -> None:
    first, second = opened(store, 2)
    stuck, done = Signal(), Signal()

    async def stand_still() -> None:
        task = asyncio.ensure_future(send(store, deciding(first.id)))
        await asyncio.sleep(0)
        stuck.set()
        done.wait(10)
        await task

    async def go_on() -> Change:
        return await asyncio.wait_for(send(store, deciding(second.id)), 5)

    loop = threading.Thread(target=lambda: asyncio.run(stand_still()), daemon=True)
    loop.start()
    assert stuck.wait(5)
    try:
        assert asyncio.run(go_on()).approval.status is Status.APPROVED
    finally:
        done.set()
        loop.join(10)
    assert store.get(first.id).status is Status.APPROVED


@guarantee("G9")
def test_an_event_loop_that_is_gone_takes_no_write_of_others_with_it(store: Store) -> None:
    first, second = opened(store, 2)
    loop = asyncio.new_event_loop()
    task = send(store, deciding(first.id))

    async def begin() -> None:
        loop.create_task(task)  # noqa: RUF006 - it is left behind on purpose
        await asyncio.sleep(0)
        loop.stop()

    loop.create_task(begin())  # noqa: RUF006 - runs at once
    loop.run_forever()
    loop.close()
    assert (
        asyncio.run(asyncio.wait_for(send(store, deciding(second.id)), 5)).approval.status is Status.APPROVED
    )
    soon(lambda: store.get(first.id).status is Status.APPROVED)


def test_writes_of_an_event_loop_are_not_forgotten_while_others_use_the_store(store: Store) -> None:
    made = opened(store, 150)
    notices = store.notices()
    over = Signal()

    def use() -> None:
        while not over.is_set():
            store.delivered(notices[0])
            store.page(limit=3)
            store.counts()

    async def decide_all() -> None:
        for each in made:
            await asyncio.wait_for(send(store, deciding(each.id)), 5)

    other = threading.Thread(target=use, daemon=True)
    other.start()
    try:
        asyncio.run(decide_all())
    finally:
        over.set()
        other.join(10)
    assert store.counts() == {Status.APPROVED: 150}


# -- notes -----------------------------------------------------------------------------------


def noted(number: int = 0, thread: str = "trip") -> Event:
    return Event(kind="allowed", thread=thread, by="gate", data={"tool": f"search{number}"})


def test_a_note_is_held_back_until_it_is_flushed(store: Store) -> None:
    store.note(noted())
    store.flush()
    store.flush()
    assert kinds(store) == ["allowed"]


def test_a_durable_note_is_written_at_once(two: tuple[Store, Store]) -> None:
    one, other = two
    one.note(noted(), durable=True)
    assert kinds(other) == ["allowed"]


def test_notes_go_with_the_next_write_in_their_order(store: Store) -> None:
    for number in range(3):
        store.note(noted(number))
    opened(store)
    assert kinds(store) == ["allowed"] * 3 + ["opened"]
    assert [f"search{n}" in entry.body for n, entry in enumerate(list(store.entries())[:3])] == [True] * 3


@guarantee("G7")
def test_notes_survive_a_transaction_that_fails(store: Store) -> None:
    before = opened(store)[0]
    store.note(noted())
    with pytest.raises(ValueError, match="boom"):
        store.write(raising(before.id, ValueError("boom")))
    store.flush()
    assert kinds(store) == ["opened", "allowed"]
    assert is_sound(store)


@guarantee("G9")
def test_a_note_that_cannot_be_written_spoils_no_other_write(store: Store) -> None:
    with pytest.raises((SaysoError, TypeError, ValueError)):
        store.note(Event(kind="allowed", thread="trip", data={"tool": "\ud800"}), durable=True)
    before = opened(store)[0]
    assert store.write(deciding(before.id)).approval.status is Status.APPROVED


def test_many_notes_are_written_without_being_asked_to(two: tuple[Store, Store]) -> None:
    one, other = two
    for number in range(1000):
        one.note(noted(number))
    assert len(kinds(other)) >= 500


# -- reading ---------------------------------------------------------------------------------


def test_pages_go_by_deadline_and_miss_none(store: Store) -> None:
    made = opened(store, 23)
    found: list[Approval] = []
    cursor = ""
    for _ in range(10):
        page = store.page(after=cursor, limit=5)
        found += page.approvals
        cursor = page.next or ""
        if page.next is None:
            break
    assert found == made


def test_approvals_with_one_deadline_are_paged_apart(store: Store) -> None:
    for number in range(7):
        store.write(Open(approval=approval(action(call_id=str(number)), id=f"ap{number}")))
    page = store.page(limit=3)
    rest = store.page(after=page.next or "", limit=10)
    assert [each.id for each in (*page.approvals, *rest.approvals)] == [f"ap{number}" for number in range(7)]


def test_a_page_deep_down_does_not_move_when_what_came_before_is_decided(store: Store) -> None:
    made = opened(store, 9)
    page = store.page(limit=3)
    store.write(deciding(made[0].id))
    store.write(deciding(made[4].id))
    after = store.page(after=page.next or "", limit=10)
    assert list(after.approvals) == [made[3], *made[5:]]


def test_pages_can_be_of_any_status_and_of_all_newest_first(store: Store) -> None:
    made = opened(store, 5)
    store.write(deciding(made[1].id, DecisionKind.REJECT))
    assert [each.id for each in store.page(Status.REJECTED).approvals] == [made[1].id]
    page = store.page(None, limit=2)
    rest = store.page(None, after=page.next or "", limit=9)
    assert [each.seq for each in (*page.approvals, *rest.approvals)] == [each.seq for each in reversed(made)]


def test_the_end_of_a_page_and_an_empty_store_have_no_next(store: Store) -> None:
    assert store.page() == Page((), None)
    opened(store, 2)
    assert store.page(limit=3).next is None
    assert store.page(after=store.page(limit=2).next or "", limit=2) == Page((), None)


@pytest.mark.parametrize(
    "cursor", ["x", "1", "-1-2", "1-", "1-2-3", "1.5-2", "9" * 40 + "-1", "1-" + "9" * 40, "²-1"]
)
def test_what_is_no_cursor_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(UsageError, match="cursor"):
        store.page(after=cursor)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_of_nothing_is_refused(store: Store, limit: int) -> None:
    opened(store)
    with pytest.raises(UsageError, match="limit"):
        store.page(limit=limit)


def test_ids_are_found_by_how_they_begin(store: Store) -> None:
    for name in ("apaa1", "apaa2", "apb"):
        store.write(Open(approval=approval(action(call_id=name), id=name)))
    assert store.find("apaa") == ["apaa1", "apaa2"]
    assert store.find("apb") == ["apb"]
    assert store.find("apa%") == []
    assert store.find("ap_") == []
    assert store.find("x") == []


def test_counts_are_by_status(store: Store) -> None:
    made = opened(store, 3)
    store.write(deciding(made[0].id))
    assert store.counts() == {Status.PENDING: 2, Status.APPROVED: 1}


def test_what_is_due_comes_oldest_first_and_only_once_time_has_passed(
    store: Store, clock: ManualClock
) -> None:
    made = opened(store, 4)
    assert store.due(DEADLINE) == []
    assert store.due(DEADLINE + 1) == [made[0].id]
    assert store.due(DEADLINE + 9999) == [each.id for each in made]
    assert store.due(DEADLINE + 9999, 2) == [made[0].id, made[1].id]
    store.write(deciding(made[0].id))
    held = store.write(claiming(made[0].id)).approval
    assert held.permit is not None
    assert made[0].id not in store.due(held.permit.until)
    assert made[0].id in store.due(held.permit.until + 1)
    clock.advance(2000)
    store.write(
        Alter(
            approval_id=made[0].id,
            step=lambda before, _: complete(before, held.permit or pytest.fail("no permit"), T0),
        )
    )
    assert made[0].id not in store.due(held.permit.until + 1)


# -- audit and outbox ------------------------------------------------------------------------


@guarantee("G7")
def test_every_thread_has_a_chain_of_its_own_and_entries_keep_their_order(store: Store) -> None:
    one, other = opened(store, 2, thread="one"), opened(store, 2, thread="two")
    for each in (*one, *other):
        store.write(deciding(each.id))
    entries = list(store.entries())
    assert [entry.seq for entry in entries] == sorted({entry.seq for entry in entries})
    for thread in ("one", "two"):
        chain = [entry for entry in entries if entry.thread == thread]
        assert [entry.n for entry in chain] == [1, 2, 3, 4]
        assert store.heads()[thread] == (4, chain[-1].hash)
    assert list(store.entries(after=entries[2].seq)) == entries[3:]
    assert is_sound(store)


def test_the_entries_of_an_approval_are_its_own_in_order(store: Store, clock: ManualClock) -> None:
    first, second = opened(store, 2)
    store.write(deciding(second.id))
    clock.advance(1)
    store.write(deciding(first.id))
    store.write(claiming(first.id))
    entries = store.entries_of(first.id)
    assert [entry.kind for entry in entries] == ["opened", "approved", "claimed"]
    assert {entry.approval_id for entry in entries} == {first.id}
    assert entries[1].at == T0 + 1000
    assert store.entries_of("apnone") == []


def test_entries_without_a_change_of_the_approval_belong_to_it_too(store: Store, clock: ManualClock) -> None:
    before = opened(store)[0]
    clock.advance(WINDOW + 1)
    store.write(Alter(approval_id=before.id, step=expire))
    for _ in range(3):
        with pytest.raises(Late):
            store.write(deciding(before.id))
    assert kinds(store, before.id) == ["opened", "expired", "late", "late", "late"]


def test_statuses_name_every_approval(store: Store) -> None:
    first, second = opened(store, 2)
    store.write(deciding(first.id))
    assert store.statuses() == {first.id: "approved", second.id: "pending"}


def test_what_happened_stays_in_the_outbox_until_it_was_told(store: Store) -> None:
    first, second = opened(store, 2)
    notices = store.notices()
    assert [(notice.approval_id, notice.kind) for notice in notices] == [
        (first.id, "opened"),
        (second.id, "opened"),
    ]
    store.delivered(notices[0])
    assert store.notices() == notices[1:]
    store.delivered(notices[1])
    store.delivered(notices[0])
    assert store.notices() == []
    store.write(deciding(first.id))
    assert [notice.kind for notice in store.notices()] == ["approved"]
    assert len(store.notices(limit=1)) == 1


@guarantee("G3")
def test_a_one_time_password_step_is_spent_with_its_decision_and_only_once(store: Store) -> None:
    first, second, third = opened(store, 3)

    def with_step(approval_id: str, person: str, step: int) -> Change:
        def deciding_(before: Approval, now: Millis) -> Change:
            return evolve(decide(before, decision(about=before), now), totp=(person, step))

        return store.write(Alter(approval_id=approval_id, step=deciding_))

    with_step(first.id, "ann", 100)
    for step in (100, 99):
        with pytest.raises(ProofWrong, match="used already"):
            with_step(second.id, "ann", step)
    assert store.get(second.id) == second
    assert kinds(store, second.id) == ["opened"]
    with_step(second.id, "ann", 101)
    with_step(third.id, "ben", 100)


# -- telling and closing ---------------------------------------------------------------------


def test_who_subscribed_hears_of_every_change_with_the_record(store: Store) -> None:
    heard: list[Changed] = []
    store.subscribe(heard.append)
    before = opened(store)[0]
    after = store.write(deciding(before.id)).approval
    with pytest.raises(NotFound):
        store.write(deciding("apnone"))
    store.write(Alter(approval_id=before.id, step=lapse))
    assert heard == [{before.id: before}, {before.id: after}]


def test_who_subscribed_hears_of_an_approval_that_takes_anothers_place(store: Store) -> None:
    heard: list[Changed] = []
    before = opened(store)[0]
    store.subscribe(heard.append)
    next_ = approval(action(args={"price": 1}), id="apnext")
    store.write(
        Alter(
            approval_id=before.id, step=lambda old, now: supersede(old, next_, now, by="a", via="b", why="c")
        )
    )
    assert heard[0].keys() == {before.id, "apnext"}


def test_another_opening_hears_of_changes_too(two: tuple[Store, Store]) -> None:
    one, other = two
    heard: list[str] = []
    other.subscribe(heard.extend)
    before = opened(one)[0]
    soon(lambda: before.id in heard)


def test_closing_writes_down_what_was_held_back(two: tuple[Store, Store]) -> None:
    one, other = two
    one.note(noted())
    outcomes: list[Change | BaseException] = []
    one.submit(Open(approval=approval()), outcomes.append)
    one.close()
    assert isinstance(outcomes[0], Change)
    assert sorted(kinds(other)) == ["allowed", "opened"]
    one.close()


@guarantee("G10")
def test_a_closed_store_refuses_and_keeps_nobody_waiting(store: Store) -> None:
    before = opened(store)[0]
    store.close()
    outcomes: list[Change | BaseException] = []
    store.submit(deciding(before.id), outcomes.append)
    soon(lambda: outcomes)
    assert isinstance(outcomes[0], SaysoError)
    for write in (deciding(before.id), Open(approval=approval(id="apmore"))):
        with pytest.raises(SaysoError):
            store.write(write)


@guarantee("G3")
def test_of_many_threads_exactly_one_decides_and_one_claims(store: Store) -> None:
    before = opened(store)[0]
    decided: list[str] = []
    claimed: list[str] = []
    start = threading.Barrier(16)

    def race(number: int) -> None:
        start.wait()
        for write, won in (
            (deciding(before.id, person=Person(id=f"p{number}")), decided),
            (claiming(before.id, f"g{number}"), claimed),
        ):
            try:
                store.write(write)
                won.append(f"{number}")
            except SaysoError:
                pass

    threads = [threading.Thread(target=race, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(decided) == 1
    assert len(claimed) == 1
    assert kinds(store, before.id) == ["opened", "approved", "claimed"]
    assert is_sound(store)


def test_a_withdrawn_approval_is_not_listed_as_pending(store: Store) -> None:
    before = opened(store)[0]
    store.write(
        Alter(
            approval_id=before.id,
            step=lambda old, now: withdraw(old, now, by="g", cause=Cause.CANCELLED, message="gone"),
        )
    )
    assert store.page().approvals == ()
    with pytest.raises(AlreadyDecided, match="withdrawn"):
        store.write(deciding(before.id))


def test_a_look_finds_what_is_there_and_says_so_when_nothing_is(store: Store) -> None:
    before = opened(store)[0]
    found = store.peek(before.id)
    assert found is not None
    assert found.id == before.id
    assert store.peek("ap-of-nobody") is None
