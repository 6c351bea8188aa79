"""The agent: a loop between a model and its tools, with the gate in the only doorway.

Nothing here decides anything. A call runs only as a settlement lets it run; what it may not do
goes back to the model as the result of the call.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sayso.actions import Action, Json
from sayso.demo.models import Call, Message, Model
from sayso.demo.tools import Tool, ToolFailed
from sayso.errors import InvalidAction, Withdrawn
from sayso.gate import Gate
from sayso.settlement import Settlement

AGENT = "travel-agent"
MOST_TURNS = 16

SYSTEM = """You book flights with the tools you have. Search before you book, and book a fare exactly \
as the search returned it. Flights are in March 2027, around 14 March unless the traveller says otherwise. \
The passenger is Sarah Lindqvist. When a call is refused, its result says why: respect it, never repeat \
the same call, and tell the traveller plainly what was and was not booked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The agent said something.

    Args:
        text: Its words.
    """

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A call ended, run or not.

    Args:
        call: What the model proposed.
        status: `done`, `failed`, `responded`, or the code of a refusal.
        text: What the model is told.
        asked: Whether a person was asked.
    """

    call: Call
    status: str
    text: str
    asked: bool


Happening: TypeAlias = Said | Ended


class Agent:
    """Works on one request until it has an answer.

    Args:
        model: What thinks.
        tools: What may be called.
        gate: What every call passes.
        thread: The conversation's name.
        requested_by: For whom it works; they can never approve it.
        tell: Told what happens, as it happens.
        is_cancelled: Whether to stop before the next call.
    """

    def __init__(
        self,
        *,
        model: Model,
        tools: tuple[Tool, ...],
        gate: Gate,
        thread: str,
        requested_by: str,
        tell: Callable[[Happening], None],
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._model = model
        self._tools = {tool.name: tool for tool in tools}
        self._gate = gate
        self._thread = thread
        self._requested_by = requested_by
        self._tell = tell
        self._is_cancelled = is_cancelled

    def work(self, request: str) -> str:
        """Return the answer to a request.

        Raises:
            Withdrawn: The run was cancelled.
            StoreError: The store cannot be used.
        """
        messages = [Message(role="system", text=SYSTEM), Message(role="user", text=request)]
        for _ in range(MOST_TURNS):
            reply = self._model.reply(messages)
            if not reply.calls:
                return reply.text
            if reply.text:
                self._tell(Said(text=reply.text))
            messages.append(Message(role="agent", text=reply.text, reply=reply))
            messages += [self._answered(call) for call in reply.calls]
        return "I did not get anywhere and stopped; nothing more will be booked."

    def _answered(self, call: Call) -> Message:
        """Return the result of one call, whatever became of it."""
        status, text, asked = self._call(call)
        self._tell(Ended(call=call, status=status, text=text, asked=asked))
        return Message(role="tool", text=text, call=call, status=status)

    def _call(self, call: Call) -> tuple[str, str, bool]:
        tool = self._tools.get(call.tool)
        if tool is None:
            return "failed", f"there is no tool `{call.tool}`; there are: {', '.join(self._tools)}", False
        fault = tool.fault(call.args)
        if fault:
            return "failed", f"the arguments of `{call.tool}` do not fit: {fault}", False
        try:
            action = self._action(call)
        except InvalidAction as error:
            return "failed", str(error), False
        if self._is_cancelled():
            raise Withdrawn("the run was cancelled", hint="nothing more is proposed")
        settlement = self._gate.ask(action)
        asked = settlement.approval is not None
        if settlement.response is not None:
            return "responded", settlement.response, asked
        refusal = settlement.refusal
        if isinstance(refusal, Withdrawn):
            raise refusal
        if refusal is not None:
            return refusal.code, str(refusal), asked
        return (*self._run(settlement), asked)

    def _action(self, call: Call) -> Action:
        return Action(
            tool=call.tool,
            args=call.args,
            thread=self._thread,
            call_id=call.id,
            agents=(AGENT,),
            requested_by=self._requested_by,
            confidence=call.confidence,
        )

    def _run(self, settlement: Settlement) -> tuple[str, str]:
        """Run exactly what the settlement lets run, and report back to the gate."""
        action = settlement.action
        try:
            result = self._tools[action.tool].run(action.args)
        except ToolFailed as error:
            self._gate.complete(settlement, error=type(error).__name__)
            return "failed", str(error)
        self._gate.complete(settlement)
        told: dict[str, Json] = {"result": result}
        if settlement.approval is not None and settlement.was_edited:
            told["changed_by"] = settlement.approval.decisions[-1].person.id
        return "done", json.dumps(told)
