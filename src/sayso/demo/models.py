"""What thinks for the demo's agent: a model from LangChain, or the scripted one in `script`.

A model sees messages and gives a reply. It never sees the gate: a refusal reaches it as the
result of the call it proposed, and that is all it can react to.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypedDict, cast

from sayso.actions import Json
from sayso.demo.tools import Tool
from sayso.errors import MissingExtra

Role = Literal["system", "user", "agent", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call a model proposes.

    Args:
        id: The id the model gave it.
        tool: The tool's name.
        args: The arguments.
        confidence: How sure the model is, from 0 to 1, or None when it does not say.
    """

    id: str
    tool: str
    args: Mapping[str, Json]
    confidence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model says and proposes to call; without calls it is the answer.

    Args:
        text: The words.
        calls: The calls.
        raw: The model's own record of it, handed back to it as it is.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    raw: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One line of the conversation.

    Args:
        role: Who speaks.
        text: The words, or a tool's result.
        reply: The reply, for the agent's own lines.
        call: The call this is the result of, for a tool's lines.
        status: How the call ended: `done`, `failed`, `responded`, or the code of a refusal.
    """

    role: Role
    text: str
    reply: Reply = field(default_factory=Reply)
    call: Call | None = None
    status: str = ""


class Model(Protocol):
    """What thinks for an agent."""

    name: str

    def reply(self, messages: Sequence[Message]) -> Reply:
        """Return what comes next, given everything said so far."""
        ...


class LangChainModel:
    """Any chat model LangChain can name, such as `anthropic:claude-sonnet-4-6`.

    Args:
        name: The name, as `init_chat_model` takes it.
        tools: What it may propose to call.

    Raises:
        MissingExtra: LangChain is not installed.
    """

    def __init__(self, name: str, tools: Sequence[Tool]) -> None:
        self.name = name
        try:
            chat_models = importlib.import_module("langchain.chat_models")
            self._messages = importlib.import_module("langchain_core.messages")
        except ImportError as error:
            raise MissingExtra.of("langchain", "langchain") from error
        start = cast("Callable[[str], _ChatModel]", chat_models.init_chat_model)
        self._model = start(name).bind_tools([_described(tool) for tool in tools])

    def reply(self, messages: Sequence[Message]) -> Reply:
        """Ask the model."""
        answer = self._model.invoke([self._line(message) for message in messages])
        calls = tuple(
            Call(id=call["id"] or "", tool=call["name"], args=call["args"]) for call in answer.tool_calls
        )
        return Reply(text=str(answer.text), calls=calls, raw=answer)

    def _line(self, message: Message) -> object:
        """Return a message in LangChain's own form."""
        match message.role:
            case "system":
                return self._messages.SystemMessage(message.text)
            case "user":
                return self._messages.HumanMessage(message.text)
            case "agent":
                return message.reply.raw
            case "tool":
                ran = message.status in {"done", "responded"}
                return self._messages.ToolMessage(
                    message.text,
                    tool_call_id=message.call.id if message.call else "",
                    status="success" if ran else "error",
                )


class _Answer(Protocol):
    """As much of LangChain's AIMessage as is used."""

    text: object
    tool_calls: "list[_ToolCall]"


class _ChatModel(Protocol):
    """As much of LangChain's chat models as is used."""

    def bind_tools(self, tools: list[dict[str, object]]) -> "_ChatModel": ...

    def invoke(self, messages: list[object]) -> _Answer: ...


class _ToolCall(TypedDict):
    """LangChain's record of a proposed call."""

    name: str
    args: dict[str, Json]
    id: str | None


def _described(tool: Tool) -> dict[str, object]:
    """Return a tool in the form every provider's adapter reads."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}
