"""Everything the demo puts on stage, and the agent at work in a thread of its own.

The agent waits inside the gate, as it would anywhere; the person sits in the main thread.
"""

import json
import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from queue import Queue
from typing import TypeAlias

from sayso.approvals import Person, Status
from sayso.config import Parts, Settings, build, load, local_person
from sayso.demo.agent import Agent, Happening
from sayso.demo.models import LangChainModel
from sayso.demo.script import ScriptedModel
from sayso.demo.tools import Travel
from sayso.errors import ClaimRefused, ConfigError, SaysoError, Withdrawn
from sayso.gate import Gate
from sayso.policy import Policy
from sayso.stores.base import Changed

TRAVELLER = "sarah@example.com"
REQUEST = (
    "Book me a flight from San Francisco (SFO) to New York (JFK), around 14 March: "
    "economy class, under $400, flexible dates."
)
_SHIPPED_WINDOW = "after: 5m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A call waits for a person.

    Args:
        approval_id: The approval.
        tool: The tool it would run.
    """

    approval_id: str
    tool: str


Moment: TypeAlias = Happening | Stopped


class Scene:
    """The store, the policy, the tools and the agent.

    Args:
        folder: Where the demo keeps its files.
        store: The store's path; in the folder by default.
        window: How long a person has, in seconds.
        model: A model's name for LangChain; the scripted one by default.

    Raises:
        MissingExtra: A model was named and LangChain is not installed.
        StoreError: The store cannot be opened.
    """

    def __init__(self, *, folder: Path, store: str, window: int, model: str) -> None:
        self.config = folder / "sayso.toml"
        settings = _write_settings(folder, store or str(folder / "sayso.db"), window)
        self.window = window
        self.thread = f"trip-{secrets.token_hex(3)}"
        self.travel = Travel(folder / "travel.db")
        self.model = LangChainModel(model, self.travel.tools()) if model else ScriptedModel()
        self.parts: Parts = build(settings)
        self.store = self.parts.store
        self.inbox = self.parts.inbox
        self.person: Person = local_person(settings)
        self.gate = Gate(store=self.store, policy=_policy_of(self.parts), name="gate:demo")
        self.answer = ""
        self._work: Future[str] | None = None
        self._moments: Queue[Moment | Future[str]] = Queue()
        self._seen: set[str] = set()
        self._cancelled = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="travel-agent")
        self._agent = Agent(
            model=self.model,
            tools=self.travel.tools(),
            gate=self.gate,
            thread=self.thread,
            requested_by=TRAVELLER,
            tell=self._moments.put,
            is_cancelled=self._cancelled.is_set,
        )
        self.store.subscribe(self._changed)

    def run(self) -> Iterator[Moment]:
        """Let the agent work on the request and yield what happens, until it has its answer.

        Raises:
            SaysoError: The agent broke off.
        """
        self._work = self._pool.submit(self._agent.work, REQUEST)
        self._work.add_done_callback(self._moments.put)
        while not isinstance(moment := self._moments.get(), Future):
            yield moment
        error = moment.exception()
        if error is None:
            self.answer = moment.result()
        elif isinstance(error, SaysoError):
            raise error
        else:
            problem = f"the agent broke off, with model `{self.model.name}`: {type(error).__name__}: {error}"
            raise SaysoError(problem, hint="for a model, check its name and its API key") from error

    def cancel(self) -> None:
        """Take back what still waits for a person and stop the agent."""
        self._cancelled.set()
        for approval in self.store.page(Status.PENDING, limit=1000).approvals:
            if approval.action.thread == self.thread:
                self._withdraw(approval.id)

    def close(self) -> None:
        """Stop the agent if it still works, and let go of the store."""
        while self._work is not None and not self._work.done():
            # Again and again: the agent may have been just about to ask.
            self.cancel()
            wait((self._work,), timeout=0.1)
        self._pool.shutdown()
        self.store.close()

    def _withdraw(self, approval_id: str) -> None:
        try:
            self.gate.withdraw(approval_id, "the demo was interrupted")
        except (ClaimRefused, Withdrawn):
            # Somebody settled it in the same moment; what they decided stands.
            return

    def _changed(self, changed: Changed) -> None:
        """Notice what started to wait for a person; called from the store's threads."""
        for approval in changed.values():
            if approval is None or approval.action.thread != self.thread:
                continue
            successor = approval.resolution.successor if approval.resolution else ""
            waiting = self.store.get(successor) if successor else approval
            if waiting.status is Status.PENDING and waiting.id not in self._seen:
                self._seen.add(waiting.id)
                self._moments.put(Stopped(approval_id=waiting.id, tool=waiting.action.tool))


def policy_text(window: int) -> str:
    """Return the demo's policy file with people having `window` seconds."""
    text = files("sayso.demo").joinpath("policy.yaml").read_text("utf-8")
    return text.replace(_SHIPPED_WINDOW, f"after: {window}s")


def _write_settings(folder: Path, store: str, window: int) -> Settings:
    """Write the files a person would write, so that every other command can use them too."""
    policy = folder / "policy.yaml"
    policy.write_text(policy_text(window), "utf-8")
    config = folder / "sayso.toml"
    config.write_text(f"store = {json.dumps(store)}\npolicy = {json.dumps(str(policy))}\n", "utf-8")
    return load(config, {})


def _policy_of(parts: Parts) -> Policy:
    if parts.policy is None:
        raise ConfigError("the demo's settings name no policy", hint="install sayso again")
    return parts.policy
