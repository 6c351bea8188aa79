"""The agent's door: what may run, and the right to run it, once.

`Gate` blocks a thread while it waits, `AsyncGate` suspends a task; the steps are the same
and live in `settling`. A fault anywhere in Sayso ends as an error here, never as a yes (G10).
"""

import inspect
import os
import socket
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import suppress
from functools import partial
from typing import ParamSpec, TypeVar, cast, overload

from sayso.actions import Action, Json, canonical
from sayso.approvals import Approval, Cause, Effect, Permit, Reason, Status
from sayso.clock import Millis
from sayso.decisions import Change, Event, complete, reconcile, renew, withdraw
from sayso.errors import DecisionRefused, Denied
from sayso.guard import guard_coroutine, guard_function
from sayso.policy import Context, Outcome, Policy, Verdict
from sayso.settlement import Settlement
from sayso.settling import Await, Expect, Flow, Need, Note, Observe, Read, Reply, Settling, T, approval_id
from sayso.stores.base import Alter, Store
from sayso.waiting import LoopWaiter, ThreadWaiter, Ticket, send, waiting_on

P = ParamSpec("P")
R = TypeVar("R")
Verify = Callable[[Approval], bool | None]
"""Finds out whether an action ran: True, False, or None when it cannot tell."""


class Gate:
    """Judges actions and lets run what policy or people allow.

    Args:
        store: What remembers.
        policy: Which actions need a person.
        name: How the audit names this gate; the host and process by default.
        observe: What an action relies on, by tool; read when it pauses and again before it runs.
        audit_allowed: Whether actions that need nobody are written down too.
    """

    def __init__(
        self,
        *,
        store: Store,
        policy: Policy,
        name: str = "",
        observe: Mapping[str, Observe] | None = None,
        audit_allowed: bool = True,
    ) -> None:
        self.store = store
        self.policy = policy
        self.name = name or f"gate:{socket.gethostname()}:{os.getpid()}"
        self._audit_allowed = audit_allowed
        self._waiting = waiting_on(store)
        observers = {tool: _closed(tool, observer) for tool, observer in (observe or {}).items()}
        self._settling = Settling(judge=self.judge, name=self.name, now=store.clock.now, observe=observers)

    def judge(self, action: Action, context: Context | None = None) -> Verdict:
        """Return what policy says about an action; changes nothing and asks nobody."""
        try:
            return self.policy.judge(action, context)
        except Exception as error:  # noqa: BLE001 - fail closed: a policy that breaks denies
            return _fault(error)

    def ask(self, action: Action, context: Context | None = None) -> Settlement:
        """Return what may run, waiting for people where policy asks for them.

        The settlement's `permit`, when there is one, must be handed back to `complete`.

        Raises:
            StoreError: The store cannot be used; nothing may run.
        """
        verdict = self.judge(action, context)
        if verdict.outcome is not Outcome.ALLOW:
            return self._run(self._settling.ask(action, verdict, context))
        known = self._known(action)
        return (
            self._run(self._settling.ask_again(known, context)) if known else self._allowed(action, verdict)
        )

    def open(self, action: Action, context: Context | None = None) -> Approval:
        """Ask people about an action without waiting for them; `settle` or `claim` it later.

        Raises:
            Denied: Policy asks nobody about it.
        """
        return self._run(self._settling.open(action, self.judge(action, context)))

    def settle(self, approval_id: str) -> Settlement | None:
        """Return how an approval ended, applying its deadline; None while it is pending."""
        return self._run(self._settling.settle(approval_id))

    def claim(
        self, approval_id: str, action: Action | None = None, context: Context | None = None
    ) -> Settlement:
        """Take the permit of an approved action, once.

        Args:
            approval_id: The approval.
            action: What is about to run, to be checked against what was approved.
            context: What policy's predicates may look at when it is judged once more.

        Raises:
            ClaimRefused: It is about another action, ran already, or needs asking again.
            Refused: It was denied, rejected, withdrawn, or nobody answered.
        """
        return self._run(self._settling.claim(approval_id, action, context))

    def complete(self, settlement: Settlement, *, error: str = "") -> None:
        """Report that what was permitted has run, or failed with `error`; does nothing without a permit.

        Raises:
            ClaimRefused: The permit is not held any more and somebody else settled it.
        """
        if settlement.permit is not None:
            self.store.write(_completion(settlement.permit, error))

    def renew(self, settlement: Settlement) -> None:
        """Extend the lease of something that runs for long.

        Raises:
            ClaimRefused: The lease was lost; stop.
        """
        permit = settlement.permit
        if permit is not None:
            self.store.write(_renewal(permit))

    def withdraw(self, approval_id: str, reason: str = "the run was cancelled") -> None:
        """Take a request back.

        Raises:
            ClaimRefused: It is running or over.
        """
        self.store.write(_withdrawal(approval_id, self.name, reason))

    def reconcile(self, verify: Verify) -> list[Approval]:
        """Settle unknown outcomes by finding out whether each ran; returns those settled.

        Args:
            verify: True when it ran, False when it did not, None when it cannot tell.
        """
        settled: list[Approval] = []
        after: str | None = ""
        while after is not None:
            page = self.store.page(Status.UNKNOWN, after=after)
            after = page.next
            for approval in page.approvals:
                ran = verify(approval)
                if ran is None:
                    continue
                step = partial(reconcile, ran=ran, by=self.name, via="verify")
                with suppress(DecisionRefused):  # somebody settled it meanwhile
                    settled.append(self.store.write(Alter(approval_id=approval.id, step=step)).approval)
        return settled

    @overload
    def guard(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def guard(self, /, *, tool: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]: ...
    def guard(
        self, function: Callable[P, R] | None = None, /, *, tool: str = ""
    ) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
        """Make every call of a function, plain or async, pass this gate first.

        Arguments are bound by name through the signature, so a positional one cannot slip by.
        Who calls is said with `acting`. Refusals are raised; a person's response is returned.

        Args:
            function: The function, when used as a bare decorator.
            tool: The tool's name in policy; the function's own by default.

        Raises:
            UsageError: The function takes *args, whose values have no names.
        """

        def wrap(inner: Callable[P, R]) -> Callable[P, R]:
            name = tool or inner.__name__
            if inspect.iscoroutinefunction(inner):
                wrapped = guard_coroutine(cast("Callable[P, Awaitable[object]]", inner), self, name)
                return cast("Callable[P, R]", wrapped)
            return guard_function(inner, self, name)

        return wrap if function is None else wrap(function)

    async def aask(self, action: Action, context: Context | None = None) -> Settlement:
        """Do as `ask`, suspending the task instead of blocking the thread."""
        verdict = self.judge(action, context)
        if verdict.outcome is not Outcome.ALLOW:
            return await self.arun(lambda steps: steps.ask(action, verdict, context))
        known = self._known(action)
        if known is None:
            return self._allowed(action, verdict)
        return await self.arun(lambda steps: steps.ask_again(known, context))

    async def acomplete(self, settlement: Settlement, *, error: str = "") -> None:
        """Do as `complete`, without blocking the event loop."""
        if settlement.permit is not None:
            await send(self.store, _completion(settlement.permit, error))

    async def aclaim(
        self, approval_id: str, action: Action | None = None, context: Context | None = None
    ) -> Settlement:
        """Do as `claim`, without blocking the event loop."""
        return await self.arun(lambda steps: steps.claim(approval_id, action, context))

    def close(self) -> None:
        """Write down what is still held back."""
        self.store.flush()

    def _known(self, action: Action) -> Approval | None:
        """Return what people were asked about this very request before, under an earlier policy."""
        return self.store.peek(approval_id(action)) if action.call_id else None

    def _allowed(self, action: Action, verdict: Verdict) -> Settlement:
        if self._audit_allowed:
            data: dict[str, Json] = {"tool": action.tool, "digest": action.digest, "rule": verdict.rule}
            self.store.note(Event(kind="allowed", thread=action.thread, by=action.requested_by, data=data))
        return Settlement(action=action, verdict=verdict)

    def _run(self, flow: Flow[T]) -> T:
        """Carry out what a flow needs, in this thread."""
        try:
            need = next(flow)
            while True:
                try:
                    reply = self._do(need)
                except BaseException as error:  # noqa: BLE001 - handed to the flow, which raises it
                    need = flow.throw(error)
                else:
                    need = flow.send(reply)
        except StopIteration as finished:
            return cast("T", finished.value)

    def _do(self, need: Need) -> Reply:
        match need:
            case Expect(approval_id=approval_id, deadline=deadline, holder=holder):
                return Ticket(self._waiting, approval_id, deadline, ThreadWaiter(holder))
            case Await(place=place):
                return cast("Ticket[ThreadWaiter]", place).waiter.wait()
            case Read(approval_id=approval_id):
                return self.store.get(approval_id)
            case Note(event=event):
                self.store.note(event, durable=True)
                return None
            case _:
                return self.store.write(need)

    async def arun(self, start: Callable[[Settling], Flow[T]]) -> T:
        """Carry out what a flow needs, in this event loop."""
        flow = start(self._settling)
        try:
            need = next(flow)
            while True:
                try:
                    reply = await self._ado(need)
                except BaseException as error:  # noqa: BLE001 - handed to the flow, which raises it
                    need = self._throw(flow, error)
                else:
                    need = flow.send(reply)
        except StopIteration as finished:
            return cast("T", finished.value)

    def _throw(self, flow: Generator[Need, Reply, T], error: BaseException) -> Need:
        """Hand an error to a flow; what it still wants to write is queued, for no await may follow a cancel."""
        need = flow.throw(error)
        while isinstance(need, Alter):
            self.store.submit(need, _forget)
            need = flow.send(None)
        return need

    async def _ado(self, need: Need) -> Reply:
        match need:
            case Expect(approval_id=approval_id, deadline=deadline, holder=holder):
                return Ticket(self._waiting, approval_id, deadline, LoopWaiter(holder))
            case Await(place=place):
                return await cast("Ticket[LoopWaiter]", place).waiter.wait()
            case Read(approval_id=approval_id):
                return self.store.get(approval_id)
            case Note(event=event):
                self.store.note(event)
                return None
            case _:
                return await send(self.store, need)


class AsyncGate:
    """The gate for event loops, asyncio's or trio's: the same verbs as `Gate`, awaited.

    Args:
        store: What remembers.
        policy: Which actions need a person.
        name: How the audit names this gate.
        observe: What an action relies on, by tool.
        audit_allowed: Whether actions that need nobody are written down too.
    """

    def __init__(
        self,
        *,
        store: Store,
        policy: Policy,
        name: str = "",
        observe: Mapping[str, Observe] | None = None,
        audit_allowed: bool = True,
    ) -> None:
        self._gate = Gate(store=store, policy=policy, name=name, observe=observe, audit_allowed=audit_allowed)
        self.judge = self._gate.judge
        self.ask = self._gate.aask
        self.claim = self._gate.aclaim
        self.complete = self._gate.acomplete
        self.guard = self._gate.guard
        self.close = self._gate.close

    async def open(self, action: Action, context: Context | None = None) -> Approval:
        """Ask people about an action without waiting for them."""
        return await self._gate.arun(lambda steps: steps.open(action, self.judge(action, context)))

    async def settle(self, approval_id: str) -> Settlement | None:
        """Return how an approval ended, applying its deadline; None while it is pending."""
        return await self._gate.arun(lambda steps: steps.settle(approval_id))

    async def renew(self, settlement: Settlement) -> None:
        """Extend the lease of something that runs for long."""
        if settlement.permit is not None:
            await send(self._gate.store, _renewal(settlement.permit))

    async def withdraw(self, approval_id: str, reason: str = "the run was cancelled") -> None:
        """Take a request back."""
        await send(self._gate.store, _withdrawal(approval_id, self._gate.name, reason))


def _fault(error: Exception) -> Verdict:
    return Verdict(
        outcome=Outcome.DENY,
        effect=Effect.IRREVERSIBLE,
        reasons=(Reason.RULE,),
        rule="gate",
        why=f"the policy could not be asked: {type(error).__name__}",
        terms=None,
    )


def _closed(tool: str, observe: Observe) -> Observe:
    """Turn whatever an observer raises into a denial."""

    def observed(action: Action) -> Mapping[str, Json]:
        try:
            facts = observe(action)
            canonical(facts, "facts")
        except Exception as error:  # fail closed: unread preconditions stop the action
            raise Denied(
                f"what `{tool}` relies on could not be read: {type(error).__name__}", hint="it was not run"
            ) from error
        return facts

    return observed


def _completion(permit: Permit, error: str) -> Alter:
    return Alter(
        approval_id=permit.approval_id,
        step=lambda approval, now: complete(approval, permit, now, error=error),
    )


def _renewal(permit: Permit) -> Alter:
    return Alter(approval_id=permit.approval_id, step=lambda approval, now: renew(approval, permit, now))


def _withdrawal(approval_id: str, by: str, reason: str) -> Alter:
    def step(approval: Approval, now: Millis) -> Change:
        return withdraw(approval, now, by=by, cause=Cause.CANCELLED, message=reason)

    return Alter(approval_id=approval_id, step=step)


def _forget(outcome: Change | BaseException) -> None:
    """Take no notice: the agent that wanted it is gone."""
