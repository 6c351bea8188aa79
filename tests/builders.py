"""What the tests of the core are made of: an action, a policy and people, each with sensible fields."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

from sayso import Action, Approval, DecisionKind, Effect, Gate, Inbox, Outcome, Person, Policy, Rule, Terms
from sayso.actions import Json
from sayso.approvals import Decision, Reason
from sayso.clock import elapsed
from sayso.decisions import open_approval
from sayso.settlement import Settlement
from sayso.stores import Store, open_store
from sayso.stores.base import Open

T0 = 1_790_000_000_000
"""Where a `ManualClock` starts, in milliseconds since the epoch."""

WINDOW = 300
"""How long people have, in seconds."""

ANN = Person(id="ann", session="s1")
BEN = Person(id="ben", session="s2")

EVERY_DECISION = tuple(DecisionKind)

BOOKING = Rule(tool="book_flight", effect=Effect.IRREVERSIBLE)
LOOKUP = Rule(tool="search_flights", effect=Effect.READ, outcome=Outcome.ALLOW)
WIPE = Rule(tool="drop_table", effect=Effect.IRREVERSIBLE, outcome=Outcome.DENY)
POLICY = Policy([BOOKING, LOOKUP, WIPE])


def action(
    tool: str = "book_flight",
    args: Mapping[str, Json] | None = None,
    *,
    call_id: str = "call-1",
    thread: str = "trip",
) -> Action:
    """Return an action of the travel agent."""
    return Action(
        tool=tool,
        args={"flight": "UA 212", "price": 1847.5} if args is None else args,
        thread=thread,
        call_id=call_id,
        agents=("assistant",),
        requested_by="assistant",
    )


def terms(**changes: object) -> Terms:
    """Return the terms of an irreversible tool that any one person may decide."""
    usual = Terms(
        effect=Effect.IRREVERSIBLE,
        reasons=(Reason.IRREVERSIBLE,),
        decisions=EVERY_DECISION,
        window=WINDOW,
        rule="r",
    )
    return replace(usual, **changes)  # pyright: ignore[reportArgumentType] - named by the test


def approval(wanted: Action | None = None, given: Terms | None = None, *, id: str = "ap1") -> Approval:  # noqa: A002 - the field's name
    """Return a pending approval that was opened at `T0`."""
    given = given or terms()
    return Approval(
        id=id,
        action=wanted or action(),
        terms=given,
        opened_at=T0,
        deadline=T0 + given.window * 1000,
        why="it cannot be undone",
    )


def decision(
    kind: DecisionKind = DecisionKind.APPROVE, person: Person = ANN, about: Approval | None = None
) -> Decision:
    """Return a decision about an approval as it stands."""
    return Decision(kind=kind, person=person, digest=(about or approval()).effective.digest)


def opened(
    store: Store, count: int = 1, *, given: Terms | None = None, thread: str = "trip"
) -> list[Approval]:
    """Store some approvals, each a second later than the one before, and return them."""
    made: list[Approval] = []
    for number in range(count):
        new = approval(
            action(call_id=f"{thread}-{number}", thread=thread), given, id=f"ap{thread}{number:05}"
        )
        new = replace(new, deadline=new.deadline + number * 1000)
        made.append(store.write(Open(approval=new)).approval)
    return made


def soon(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until something in another thread or process has come about.

    Raises:
        AssertionError: It did not within `seconds`.
    """
    end, pause = elapsed() + seconds, Event()
    while not condition():
        assert elapsed() < end, f"did not happen within {seconds} s"
        pause.wait(0.005)


@contextmanager
def asking(
    gate: Gate, wanted: Action, inbox: Inbox
) -> Generator[tuple[Approval, list[Settlement | BaseException]]]:
    """Let an agent ask in its own thread; yield what waits and, once the block ends, how it was settled."""
    outcomes: list[Settlement | BaseException] = []

    def ask() -> None:
        try:
            outcomes.append(gate.ask(wanted))
        except BaseException as error:  # noqa: BLE001 - handed to the test
            outcomes.append(error)

    known = {each.id for each in inbox.page(status=None, limit=500).approvals}
    agent = Thread(target=ask, daemon=True)
    agent.start()

    def new() -> list[Approval]:
        return [each for each in inbox.page().approvals if each.id not in known]

    soon(lambda: new() or not agent.is_alive())
    found = new()
    assert found, f"nothing waits: {outcomes}"
    yield found[0], outcomes
    agent.join(10)
    assert not agent.is_alive(), "the agent still waits"


def file_store(folder: Path, **options: object) -> Store:
    """Open a store in a file of its own."""
    return open_store(folder / "sayso.db", **options)  # pyright: ignore[reportArgumentType] - named by the test


__all__ = [
    "ANN",
    "BEN",
    "BOOKING",
    "EVERY_DECISION",
    "LOOKUP",
    "POLICY",
    "T0",
    "WINDOW",
    "WIPE",
    "action",
    "approval",
    "asking",
    "decision",
    "file_store",
    "open_approval",
    "opened",
    "soon",
    "terms",
]
