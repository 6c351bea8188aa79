"""A small world to live in: processes on one file, agents that wait, people, a clock, a policy.

Everything here goes through Sayso's doors and holds what comes of it to the `Ledger`.
"""

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sayso import (
    Action,
    Answer,
    Approval,
    DecisionKind,
    Effect,
    Gate,
    Inbox,
    ManualClock,
    Outcome,
    Person,
    Policy,
    ProofKind,
    ProofRule,
    Rule,
    Silence,
    Status,
    open_store,
)
from sayso.clock import elapsed
from sayso.errors import Denied, SaysoError
from sayso.settlement import Settlement
from sayso.stores import Store
from sayso.waiting import waiting_on
from tests.acceptance.ledger import Edit, Held, Ledger, Life, digest_of

PROCESSES = 2
LIVES = 10
"""How many requests one life of this world has at most."""

AGENTS = ("assistant",)
REQUESTER = "zoe"
IRREVERSIBLE, REVERSIBLE = Effect.IRREVERSIBLE, Effect.REVERSIBLE
OPS, LAW = frozenset({"ops"}), frozenset({"law"})
PEOPLE = [
    Person(id="ann", session="s"),
    Person(id="bob", groups=OPS, session="s"),
    Person(id="cyd", groups=OPS | LAW, session="s"),
    Person(id="dee", groups=LAW, session="s"),
    Person(id="missing", groups=OPS, session="s"),
    Person(id="assistant", groups=OPS | LAW, session="s"),
    Person(id=REQUESTER, groups=OPS | LAW, session="s"),
]
YES_OR_NO = (DecisionKind.APPROVE, DecisionKind.REJECT)
CODE = ProofRule(kind=ProofKind.CODE)

LOOSE, USUAL, STRICT, CLOSED = range(4)
"""The policies that take each other's place."""

TOO_MUCH = 500
TOO_FAR = Rule(tool="book", outcome=Outcome.DENY, when="args.n > 500")
DEAR = Rule(tool="dear", approvers={"ops": 1})

POLICIES = [
    Policy(
        [
            Rule(tool="book", outcome=Outcome.ALLOW),
            Rule(tool="pay", approvers={"ops": 1}),
            Rule(tool="wire"),
            Rule(tool="memo", effect=REVERSIBLE, silence=Silence.ALLOW),
            Rule(tool="tidy", effect=REVERSIBLE, decisions=YES_OR_NO),
            TOO_FAR,
            DEAR,
        ]
    ),
    Policy(
        [
            Rule(tool="book"),
            Rule(tool="pay", approvers={"ops": 2, "law": 1}),
            Rule(tool="wire", confirm=CODE),
            Rule(tool="memo", effect=REVERSIBLE, silence=Silence.ALLOW),
            Rule(tool="tidy", effect=REVERSIBLE, decisions=YES_OR_NO),
            TOO_FAR,
            DEAR,
        ]
    ),
    Policy(
        [
            Rule(tool="book", approvers={"ops": 1}),
            Rule(tool="pay", approvers={"ops": 2, "law": 2}),
            Rule(tool="wire", confirm=CODE, approvers={"law": 1}),
            Rule(tool="memo", effect=REVERSIBLE, silence=Silence.DENY),
            Rule(tool="tidy", effect=IRREVERSIBLE, decisions=YES_OR_NO),
            TOO_FAR,
            DEAR,
        ]
    ),
    Policy([Rule(tool="*", outcome=Outcome.DENY)]),
]
ALLOWED = -1.0
STRICTNESS = {
    "book": (ALLOWED, 0.0, 1.0, Ledger.DENY),
    "dear": (1.0, 1.0, 1.0, Ledger.DENY),
    "pay": (-0.5, 0.0, 1.0, Ledger.DENY),
    "wire": (-0.5, 0.0, 1.0, Ledger.DENY),
    "memo": (0.0, 0.0, 1.0, Ledger.DENY),
    "tidy": (0.0, 0.0, 1.0, Ledger.DENY),
}


def strictness(level: int, tool: str, n: int) -> float:
    """Return how strict a policy is about a call; whatever is larger is stricter."""
    return Ledger.DENY if tool == "book" and n > TOO_MUCH else STRICTNESS[tool][level]


@dataclass(kw_only=True)
class Asking:
    """An agent that waits in the event loop of its process."""

    process: int
    task: asyncio.Task[Settlement]
    life: Life
    started: bool = False


class Process:
    """One process on the file: its store, both doors and an event loop that only runs when told to."""

    def __init__(self, path: Path, clock: ManualClock, policy: Policy, name: str) -> None:
        self.store: Store = open_store(path, clock=clock)
        self.gate = Gate(store=self.store, policy=policy, name=name)
        self.inbox = Inbox(store=self.store, policy=policy)
        self.loop = asyncio.new_event_loop()

    def obey(self, policy: Policy) -> None:
        """Judge by another policy from now on."""
        self.gate.policy = self.inbox.policy = policy

    def until(self, condition: Callable[[], object]) -> None:
        """Run the event loop until something has come about, for five seconds at most."""
        end, turns = elapsed() + 5, 0
        while not condition():
            assert elapsed() < end, "an agent did not go on"
            turns += 1
            self.loop.run_until_complete(asyncio.sleep(0 if turns < 50 else 0.001))

    def close(self) -> None:
        """Let go of everything, as a process that ends by itself."""
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.wait(tasks))
        self.store.close()
        self.loop.close()


class World:
    """The processes, the people, the clock, and the ledger beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="sayso-lives-")
        self.path = Path(self.folder.name) / "sayso.db"
        self.clock = ManualClock()
        self.level = USUAL
        self.living = [self._born(number) for number in range(PROCESSES)]
        self.dead: list[Process] = []
        self.ledger = Ledger()
        self.asking: list[Asking] = []
        self.settlements: dict[str, Settlement] = {}
        self.returned: list[Settlement] = []
        self.requests: dict[tuple[str, int, str], Life] = {}

    def end(self) -> None:
        """Let go of everything that was made."""
        for each in self.living + self.dead:
            each.close()
        self.folder.cleanup()

    def _born(self, number: int) -> Process:
        return Process(self.path, self.clock, POLICIES[self.level], f"gate {number}")

    def _asks_already(self, tool: str, n: int, call: str) -> bool:
        life = self.requests.get((tool, n, call))
        return life is not None and any(each.life in self._line(life) for each in self.asking)

    def _appeared(self, process: Process, task: asyncio.Task[Settlement], action: Action) -> Approval:
        def found() -> list[Approval]:
            page = process.store.page(None, limit=200).approvals
            same = [each for each in page if each.action.digest == action.digest and not each.replaces]
            return [each for each in same if each.action.call_id == action.call_id]

        process.until(lambda: found() or task.done())
        return found()[0]

    def _request(self, tool: str, n: int, call: str, door: Callable[[Action], Approval]) -> Life | None:
        """Let an agent ask through a door; return the life of what is new, if anything is."""
        strict = strictness(self.level, tool, n)
        if strict == ALLOWED or (len(self.requests) >= LIVES and (tool, n, call) not in self.requests):
            return None
        action = Action(
            tool=tool, args={"n": n}, thread=f"trip {n}", call_id=call, agents=AGENTS, requested_by=REQUESTER
        )
        if strict == Ledger.DENY:
            with pytest.raises(Denied):
                door(action)
            return None
        found = door(action)
        known = self.requests.get((tool, n, call))
        if known is not None:
            assert found.id == known.id, "the same request was opened twice"
            return None
        life = self.requests[tool, n, call] = self._enter(found, n, strict)
        return life

    def _enter(self, found: Approval, n: int, strict: float) -> Life:
        """Write a new approval into the ledger, after checking that it is what was asked for."""
        tool, thread = found.action.tool, found.action.thread
        digest = digest_of(tool, n, thread, AGENTS)
        assert found.id not in self.ledger.lives
        assert (found.action.digest, found.opened_at) == (digest, self.clock.now())
        assert found.deadline == self.clock.now() + found.terms.window * 1000
        life = Life(
            id=found.id,
            tool=tool,
            n=n,
            thread=thread,
            terms=found.terms,
            strictness=strict,
            requesters=frozenset({*AGENTS, REQUESTER}),
            deadline=found.deadline,
            first=digest,
            effective=digest,
        )
        self.ledger.lives[life.id] = life
        return life

    def _action(self, life: Life, *, n: int) -> Action:
        return Action(
            tool=life.tool, args={"n": n}, thread=life.thread, agents=AGENTS, requested_by=REQUESTER
        )

    def _succeed(self, life: Life, tool: str, n: int) -> Life:
        """Write the approval that took the place of another into the ledger."""
        ended = self.living[0].store.get(life.id).resolution
        assert ended is not None
        assert ended.successor
        life.successor = ended.successor
        fresh = self.living[0].store.get(ended.successor)
        assert fresh.replaces == life.id
        assert fresh.action.tool == tool
        return self._enter(fresh, n, strictness(self.level, tool, n))

    def _held(self, life: Life) -> Held | None:
        """Return the permit somebody alive holds, if any."""
        return life.held if life.id in self.settlements else None

    def _open(self) -> list[Life]:
        now = self.clock.now()
        return [
            each
            for each in self.ledger.lives.values()
            if each.status is Status.PENDING and now <= each.deadline
        ]

    def _startable(self) -> list[Life]:
        return [
            each
            for each in self.ledger.lives.values()
            if each.status is Status.APPROVED
            or (each.status is Status.RUNNING and each.id in self.settlements)
        ]

    def _answer(
        self, life: Life, inbox: Inbox, kind: DecisionKind, person: Person, proof: str, sees: str
    ) -> Answer:
        card = inbox.show(life.id)
        digest, shown = card.action_digest, card.digest
        if sees != "it":
            digest, shown = life.first if sees == "first" else "", ""
        if sees == "first" and digest == life.effective:
            shown = card.digest
        return Answer(kind=kind, person=person, digest=digest, shown=shown, proof=proof, message="so be it")

    def _edit(self, life: Life, tool: str, n: int) -> Edit:
        digest = digest_of(tool, n, life.thread, AGENTS)
        return Edit(tool=tool, n=n, digest=digest, strictness=strictness(self.level, tool, n))

    def _proof(self, life: Life, person: Person, proof: str) -> str:
        code = life.codes.get(person.id)
        right = code.text if code else "AAAAAA"
        return {"right": right, "wrong": "ZZZZZZ", "none": ""}[proof]

    def _die(self, number: int) -> None:
        self.dead.append(self.living[number])
        for agent in [each for each in self.asking if each.process == number]:
            self.asking.remove(agent)
            if (
                agent.life.status is Status.APPROVED
            ):  # the decision handed the permit to an agent that is dead now
                self.ledger.start(agent.life, number, self.clock.now())
        for life in self.ledger.lives.values():
            if life.held and life.held.process == number:
                self.settlements.pop(life.id, None)
        self.living[number] = self._born(number)

    def _expect(self, refusal: type[SaysoError] | None, attempt: Callable[[], object]) -> None:
        if refusal is None:
            attempt()
            return
        with pytest.raises(refusal) as refused:
            attempt()
        assert type(refused.value) is refusal or refusal is SaysoError

    def _line(self, life: Life) -> list[Life]:
        """Return a request and every approval that took its place."""
        line = [life]
        while line[-1].successor:
            line.append(self.ledger.lives[line[-1].successor])
        return line

    def _settle_agents(self) -> None:
        """Let the agents that wait go as far as they must, and hold how they end to the ledger."""
        for agent in list(self.asking):
            agent.life = self._follow(agent)
            if agent.life.status is Status.PENDING:
                self._goes_on_waiting(agent)
                continue
            self.asking.remove(agent)
            self.living[agent.process].until(agent.task.done)
            settlement = self._ended(agent)
            if settlement.permit:
                assert settlement.permit.digest == settlement.action.digest == agent.life.effective
                self.settlements[agent.life.id] = settlement

    def _follow(self, agent: Asking) -> Life:
        """Work out where a waiting agent ends: its approval, or the last that took its place."""
        now, process, life = self.clock.now(), self.living[agent.process], agent.life
        while True:
            life = self._line(life)[-1]
            agent.life = life
            self.ledger.expire(life, now)
            if life.status is not Status.APPROVED:
                return life
            outcome = self.ledger.claim(life, agent.process, strictness(self.level, life.tool, life.n), now)
            agent.started = outcome == "run"
            if outcome != "again":
                return life
            process.until(lambda: process.store.get(agent.life.id).status is Status.WITHDRAWN)
            self._succeed(life, life.tool, life.n)

    def _goes_on_waiting(self, agent: Asking) -> None:
        store = self.living[agent.process].store
        self.living[agent.process].until(lambda: waiting_on(store).holder(agent.life.id) or agent.task.done())
        assert not agent.task.done(), f"an agent stopped waiting: {agent.task}"

    def _ended(self, agent: Asking) -> Settlement:
        """Check how an agent's wait ended against the ledger."""
        settlement = agent.task.result()
        assert settlement.may_run == agent.started
        assert (settlement.response == "so be it") == (agent.life.status is Status.RESPONDED)
        if not settlement.may_run and settlement.response is None:
            assert settlement.refusal is not None
        return settlement

    def _compare(self, life: Life, found: Approval) -> None:
        assert found.status is life.status
        assert (found.terms, found.deadline, found.action.digest) == (life.terms, life.deadline, life.first)
        assert found.effective.digest == life.effective
        taken = [(each.kind, each.person.id, each.digest, each.at) for each in found.decisions]
        assert taken == [(each.kind, each.person.id, each.digest, each.at) for each in life.given]
        if life.status is Status.RUNNING:
            assert found.permit is not None
            assert (found.permit.digest, found.permit.until) == (life.effective, life.until)
        if life.successor:
            assert found.resolution is not None
            assert found.resolution.successor == life.successor
