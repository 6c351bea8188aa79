"""Guarded functions: every call becomes an action by name, and runs only as it was approved."""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from sayso import AsyncGate, Effect, Gate, Inbox, ManualClock, Outcome, Policy, Rule, acting, open_store
from sayso.actions import Json, Origin
from sayso.approvals import Approval, Status
from sayso.errors import ClaimRefused, Denied, Expired, InvalidAction, Rejected, UsageError
from sayso.stores import Store
from tests.builders import ANN, BOOKING, LOOKUP, WINDOW, WIPE, soon
from tests.guarantees import guarantee

LOOSE = Rule(tool="tidy", effect=Effect.READ, outcome=Outcome.ALLOW)
POLICY = Policy([BOOKING, LOOKUP, WIPE, LOOSE])


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock) -> Iterator[Store]:
    """A store in memory."""
    made = open_store(":memory:", clock=clock)
    yield made
    made.close()


@pytest.fixture
def gate(store: Store) -> Gate:
    """The agent's door."""
    return Gate(store=store, policy=POLICY, name="gate")


@pytest.fixture
def inbox(store: Store) -> Inbox:
    """The person's door."""
    return Inbox(store=store, policy=POLICY)


class Running:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.result: object = None
        self.error: BaseException | None = None
        self._call = call
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._call()
        except BaseException as error:  # noqa: BLE001 - handed to the test
            self.error = error

    def end(self) -> "Running":
        self._thread.join(10)
        assert not self._thread.is_alive(), "the call still waits"
        return self


def waiting(inbox: Inbox) -> Approval:
    soon(lambda: inbox.page().approvals)
    return inbox.page().approvals[0]


def test_a_call_that_policy_allows_runs_at_once(gate: Gate, store: Store) -> None:
    @gate.guard
    def search_flights(origin: str) -> str:
        """Look flights up."""
        return f"from {origin}"

    assert search_flights("LIS") == "from LIS"
    assert search_flights.__doc__ == "Look flights up."
    gate.close()
    assert [entry.kind for entry in store.entries()] == ["allowed"]


def test_a_call_that_policy_denies_does_not_run(gate: Gate) -> None:
    ran: list[str] = []

    @gate.guard
    def drop_table(name: str) -> None:
        ran.append(name)

    with pytest.raises(Denied, match="policy denies `drop_table`"):
        drop_table("users")
    assert ran == []


@guarantee("G2")
def test_positional_arguments_and_defaults_are_shown_by_name(gate: Gate, inbox: Inbox) -> None:
    @gate.guard
    def book_flight(flight: str, /, price: float, *, seats: int = 1, **extras: str) -> str:
        return f"{flight} {price} {seats} {extras}"

    call = Running(lambda: book_flight("UA 212", 1847.5, meal="vegan"))
    asked = waiting(inbox)
    assert asked.action.args == {"flight": "UA 212", "price": 1847.5, "seats": 1, "meal": "vegan"}
    inbox.approve(asked, ANN)
    assert call.end().result == "UA 212 1847.5 1 {'meal': 'vegan'}"
    assert inbox.get(asked.id).status is Status.DONE


def test_a_function_whose_arguments_have_no_names_is_refused_when_it_is_guarded(gate: Gate) -> None:
    def book_flight(*flights: str) -> None: ...

    with pytest.raises(UsageError, match=r"\*flights"):
        gate.guard(book_flight)


def test_generators_are_refused_when_they_are_guarded(gate: Gate) -> None:
    def plain() -> Iterator[int]:
        yield 1

    async def coroutine() -> AsyncIterator[int]:
        yield 1

    for function in (plain, coroutine):
        with pytest.raises(UsageError, match="generator"):
            gate.guard(function)


@guarantee("G8")
def test_two_arguments_of_one_name_cannot_hide_each_other(gate: Gate) -> None:
    ran: list[object] = []

    @gate.guard(tool="tidy")
    def tidy(what: str, /, **more: str) -> None:
        ran.append((what, more))

    with pytest.raises(InvalidAction, match="`what`"):
        tidy("everything", what="nothing")
    assert ran == []


def test_a_call_that_does_not_fit_is_refused_before_anybody_is_asked(gate: Gate, inbox: Inbox) -> None:
    @gate.guard
    def book_flight(flight: str) -> None: ...

    with pytest.raises(InvalidAction, match="`book_flight` cannot be called like this"):
        book_flight("UA 212", "extra")  # pyright: ignore[reportCallIssue] - what is refused
    with pytest.raises(InvalidAction, match=r"args\.flight"):
        book_flight(b"UA 212")  # pyright: ignore[reportArgumentType] - what is refused
    with pytest.raises(InvalidAction, match=r"args\.flight.*generator"):
        book_flight(part for part in "ab")  # pyright: ignore[reportArgumentType] - what is refused
    assert inbox.page(status=None).approvals == ()


@guarantee("G2")
def test_a_call_whose_arguments_changed_while_it_waited_does_not_run(gate: Gate, inbox: Inbox) -> None:
    ran: list[object] = []
    flights = ["UA 212"]

    @gate.guard
    def book_flight(flights: list[str]) -> None:
        ran.append(list(flights))

    call = Running(lambda: book_flight(flights))
    asked = waiting(inbox)
    flights.append("UA 9999")
    assert inbox.get(asked.id).action.args == {"flights": ["UA 212"]}
    inbox.approve(inbox.show(asked.id), ANN)
    error = call.end().error
    assert isinstance(error, ClaimRefused)
    assert "changed after they were approved" in str(error)
    assert ran == []
    settled = inbox.get(asked.id)
    assert settled.status is Status.FAILED
    assert settled.resolution is not None
    assert "not run" in settled.resolution.message


@guarantee("G2")
def test_an_edited_call_runs_with_the_edited_arguments(gate: Gate, inbox: Inbox) -> None:
    ran: list[tuple[str, float]] = []

    @gate.guard
    def book_flight(flight: str, price: float = 0.0) -> str:
        ran.append((flight, price))
        return "booked"

    call = Running(lambda: book_flight("UA 212", price=1847.5))
    asked = waiting(inbox)
    inbox.edit(asked, ANN, {"flight": "TP 100", "price": 310.5})
    assert call.end().result == "booked"
    assert ran == [("TP 100", 310.5)]


@pytest.mark.parametrize("args", [{"flight": "a", "unknown": 1}, {}])
def test_an_edit_that_does_not_fit_the_function_does_not_run(
    gate: Gate, inbox: Inbox, args: dict[str, Json]
) -> None:
    ran: list[str] = []

    @gate.guard
    def book_flight(flight: str) -> None:
        ran.append(flight)

    call = Running(lambda: book_flight("UA 212"))
    asked = waiting(inbox)
    inbox.edit(asked, ANN, args)
    assert isinstance(call.end().error, InvalidAction)
    assert ran == []
    assert inbox.get(asked.id).status is Status.FAILED


@guarantee("G2")
def test_an_edit_to_another_tool_does_not_run_this_function(gate: Gate, inbox: Inbox) -> None:
    ran: list[str] = []

    @gate.guard
    def book_flight(flight: str) -> None:
        ran.append(flight)

    call = Running(lambda: book_flight("UA 212"))
    inbox.edit(waiting(inbox), ANN, {"flight": "UA 212"}, tool="search_flights")
    assert isinstance(call.end().error, ClaimRefused)
    assert ran == []


def test_the_words_of_a_person_are_the_result_and_nothing_runs(gate: Gate, inbox: Inbox) -> None:
    ran: list[str] = []

    @gate.guard
    def book_flight(flight: str) -> str:
        ran.append(flight)
        return "booked"

    call = Running(lambda: book_flight("UA 212"))
    inbox.respond(waiting(inbox), ANN, "take the train")
    assert call.end().result == "take the train"
    assert ran == []


@guarantee("G4")
def test_a_rejection_is_raised_with_its_reason(gate: Gate, inbox: Inbox) -> None:
    @gate.guard
    def book_flight(flight: str) -> str:
        raise AssertionError(flight)

    call = Running(lambda: book_flight("UA 212"))
    inbox.reject(waiting(inbox), ANN, "too dear")
    error = call.end().error
    assert isinstance(error, Rejected)
    assert "ann rejected `book_flight` with reason: too dear" in str(error)


@guarantee("G5")
def test_silence_is_raised_as_a_denial(gate: Gate, inbox: Inbox, clock: ManualClock) -> None:
    @gate.guard
    def book_flight(flight: str) -> str:
        raise AssertionError(flight)

    call = Running(lambda: book_flight("UA 212"))
    waiting(inbox)
    clock.advance(WINDOW)
    assert inbox.page().approvals
    clock.advance(0.001)
    assert isinstance(call.end().error, Expired)


@guarantee("G11")
def test_what_a_tool_raises_passes_and_is_recorded_by_its_kind_only(
    gate: Gate, inbox: Inbox, store: Store
) -> None:
    @gate.guard
    def book_flight(card: str) -> None:
        raise LookupError(card)

    call = Running(lambda: book_flight("4111"))
    asked = waiting(inbox)
    inbox.approve(asked, ANN)
    assert isinstance(call.end().error, LookupError)
    assert inbox.get(asked.id).status is Status.FAILED
    assert "LookupError" in store.entries_of(asked.id)[-1].body
    assert all("4111" not in entry.body for entry in store.entries())


def test_a_coroutine_function_is_guarded_alike(store: Store, inbox: Inbox) -> None:
    gate = AsyncGate(store=store, policy=POLICY, name="gate")
    ran: list[str] = []

    @gate.guard
    async def book_flight(flight: str) -> str:
        await asyncio.sleep(0)
        ran.append(flight)
        if flight == "bad":
            raise LookupError
        return "booked"

    @gate.guard
    async def search_flights(origin: str) -> str:
        return origin

    async def agent() -> None:
        assert await search_flights("LIS") == "LIS"
        calls = [asyncio.ensure_future(book_flight(name)) for name in ("one", "two", "three", "bad")]
        while len(inbox.page().approvals) < len(calls):  # noqa: ASYNC110 - the store is what is waited for
            await asyncio.sleep(0)
        by_flight = {asked.action.args["flight"]: asked for asked in inbox.page().approvals}
        inbox.approve(by_flight["one"], ANN)
        inbox.reject(by_flight["two"], ANN)
        inbox.respond(by_flight["three"], ANN, "walk")
        inbox.approve(by_flight["bad"], ANN)
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert results[0] == "booked"
        assert isinstance(results[1], Rejected)
        assert results[2] == "walk"
        assert isinstance(results[3], LookupError)
        assert inbox.get(by_flight["one"].id).status is Status.DONE
        assert inbox.get(by_flight["bad"].id).status is Status.FAILED

    asyncio.run(asyncio.wait_for(agent(), 10))
    assert ran == ["one", "bad"]


def test_who_is_calling_is_part_of_the_action(gate: Gate, inbox: Inbox) -> None:
    @gate.guard
    def book_flight(flight: str) -> None: ...

    def call() -> None:
        with acting(  # noqa: SIM117 - what is kept from the outer one is the point
            thread="trip", agents=("assistant",), requested_by="planner", origins={"flight": Origin.WEB}
        ):
            with acting(call_id="c1", confidence=0.9) as caller:
                assert caller.thread == "trip"
                book_flight("UA 212")

    running = Running(call)
    asked = waiting(inbox).action
    assert (asked.thread, asked.agents, asked.requested_by, asked.call_id) == (
        "trip",
        ("assistant",),
        "planner",
        "c1",
    )
    assert asked.confidence == 0.9
    assert asked.origins == {"flight": "web"}
    inbox.reject(inbox.page().approvals[0], ANN)
    running.end()


@guarantee("G3")
def test_the_same_call_id_runs_once_however_often_it_is_made(gate: Gate, inbox: Inbox) -> None:
    ran: list[str] = []

    @gate.guard
    def book_flight(flight: str) -> None:
        ran.append(flight)

    def call() -> None:
        with acting(call_id="c1"):
            book_flight("UA 212")

    first = Running(call)
    inbox.approve(waiting(inbox), ANN)
    assert first.end().error is None
    for _ in range(3):
        assert isinstance(Running(call).end().error, ClaimRefused)
    assert ran == ["UA 212"]


def test_a_wrapped_function_is_seen_through_its_signature(gate: Gate, inbox: Inbox) -> None:
    def book(flight: str) -> str:
        return flight

    @functools.wraps(book)
    def book_flight(*args: str, **kwargs: str) -> str:
        return book(*args, **kwargs)

    guarded = gate.guard(tool="book_flight")(book_flight)
    call = Running(lambda: guarded("UA 212"))
    asked = waiting(inbox)
    assert asked.action.args == {"flight": "UA 212"}
    inbox.approve(asked, ANN)
    assert call.end().result == "UA 212"
