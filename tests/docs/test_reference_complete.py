"""The reference names everything there is: public names, policy keys, settings, entries, exit codes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import cast

import orjson
import pytest

import sayso
from sayso import (
    Action,
    Approval,
    Effect,
    Gate,
    Inbox,
    Json,
    ManualClock,
    Outcome,
    Person,
    Policy,
    ProofKind,
    ProofRule,
    Rule,
    open_store,
)
from sayso import config as settings_module
from sayso.actions import Origin
from sayso.approvals import DecisionKind, Reason, Silence
from sayso.audit import Checkpoint, Entry
from sayso.cli.exits import MEANINGS
from sayso.config import PersonSettings, Settings
from sayso.errors import Late, ProofWrong, Refused
from sayso.policy import conditions, functions, loading
from sayso.policy import fields as field_module
from sayso.worker import run_once

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
ANN = Person(id="ann")


def page(name: str) -> str:
    return (REFERENCE / name).read_text("utf-8")


def undocumented(names: Iterable[str], text: str) -> list[str]:
    """Return the names that do not stand between backticks, alone or as the start of more."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    quoted = re.findall(r"`([^`]+)`", prose)
    return sorted(
        {name for name in names if not any(re.match(rf"{re.escape(name)}\b", each) for each in quoted)}
    )


def without_row(names: Iterable[str], text: str) -> list[str]:
    """Return the names that have no row of a table of their own."""
    rows = re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)
    return sorted(set(names) - set(rows))


def private(module: object, name: str) -> Iterable[str]:
    """Return the words a module keeps to itself: they are what its files may say."""
    return cast("Iterable[str]", vars(module)[name])


def test_every_public_name_has_a_paragraph_of_its_own() -> None:
    headings = re.findall(r"^### (\w+)$", page("python-api.md"), flags=re.MULTILINE)
    assert sorted(headings) == sorted(sayso.__all__)


@pytest.mark.parametrize("door", [Gate, Inbox, Policy])
def test_every_public_method_of_a_door_is_named(door: type) -> None:
    public = [name for name, member in vars(door).items() if not name.startswith("_") and callable(member)]
    told = {"aask", "acomplete", "aclaim", "arun"}  # how `AsyncGate` is made of `Gate`
    assert undocumented(set(public) - told, page("python-api.md").replace("`Policy.", "`")) == []


def test_every_key_of_a_policy_file_is_named() -> None:
    keys = [*private(loading, "_TOP"), *private(loading, "_SILENCE"), *private(loading, "_TOOL")]
    assert without_row([*keys, *private(field_module, "_COST_KEYS")], page("policy-file.md")) == []


def test_every_word_of_a_policy_file_is_named() -> None:
    kinds = (Effect, Outcome, DecisionKind, ProofKind, Silence)
    words = [each.value for kind in kinds for each in kind]
    assert undocumented([*words, *private(loading, "_SHORT")], page("policy-file.md")) == []


def test_every_variable_and_function_of_a_condition_is_named() -> None:
    text = page("policy-file.md")
    fields_of = [f".{field}" for each in functions.FIELDS.values() for field in each]
    names = [*private(conditions, "_VARIABLES"), *private(conditions, "_STANDARD"), *fields_of]
    assert undocumented([*names, *private(functions, "_DIALECTS")], text) == []
    headings = " ".join(line for line in text.splitlines() if line.startswith("#### "))
    assert [name for name in functions.FUNCTIONS if f"{name}(" not in headings] == []


def test_every_origin_and_reason_that_is_given_is_named() -> None:
    later = {Reason.SECRET, Reason.BUDGET}
    assert (
        undocumented([each.value for each in (*Origin, *(set(Reason) - later))], page("policy-file.md")) == []
    )


def test_every_setting_and_variable_is_named() -> None:
    names = [each.name for record in (Settings, PersonSettings) for each in fields(record)]
    assert without_row(names, page("settings.md")) == []
    assert undocumented(private(settings_module, "_VARIABLES"), page("settings.md")) == []


def test_every_exit_code_is_named_with_its_meaning() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page("exit-codes.md"), flags=re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == {
        code.value: text for code, text in MEANINGS.items()
    }


@pytest.mark.parametrize("record", [Entry, Checkpoint])
def test_every_field_of_an_entry_and_a_checkpoint_is_named(record: type) -> None:
    names = getattr(record, "_fields", None) or [each.name for each in fields(record)]
    assert without_row(names, page("audit-entries.md")) == []


def test_the_kinds_of_audit_entries_and_their_facts_are_those_that_are_written() -> None:
    rows = re.findall(r"^\| `(\w+)` \|[^|]+\|[^|]*\|([^|]*)\|$", page("audit-entries.md"), flags=re.MULTILINE)
    told = {kind: set(re.findall(r"`(\w+)`", data)) for kind, data in rows}
    assert told == written()


def written() -> Mapping[str, set[str]]:
    """Bring about every kind of entry and return the facts each held, by kind."""
    clock = ManualClock()
    store = open_store(":memory:", clock=clock)
    policy = Policy(
        [
            Rule(tool="look", effect=Effect.READ, outcome=Outcome.ALLOW),
            Rule(tool="never", outcome=Outcome.DENY),
            Rule(tool="code", confirm=ProofRule(kind=ProofKind.CODE)),
            Rule(tool="pair", approvers={"a": 2}),
            Rule(tool="act", lease=60),
        ]
    )
    facts: dict[str, Json] = {"version": 1}
    gate = Gate(store=store, policy=policy, observe={"watched": lambda _: dict(facts)})
    inbox = Inbox(store=store, policy=policy)
    for act in (_answers, _proofs, _quorums, _runs, _silences):
        act(gate, inbox, clock)
    _drifts(gate, inbox, facts)
    found: dict[str, set[str]] = {}
    for entry in store.entries():
        body = cast("dict[str, dict[str, object]]", orjson.loads(entry.body))
        found.setdefault(entry.kind, set()).update(body.get("data", {}))
    store.close()
    return found


def _opened(gate: Gate, tool: str) -> Approval:
    return gate.open(Action(tool=tool, args={"a": 1}, thread="t", agents=("travel",)))


def _approved(gate: Gate, inbox: Inbox, tool: str) -> Approval:
    return inbox.approve(inbox.show(_opened(gate, tool).id), ANN)


def _answers(gate: Gate, inbox: Inbox, _clock: ManualClock) -> None:
    gate.ask(Action(tool="look", args={}, thread="t"))
    gate.ask(Action(tool="never", args={}, thread="t"))
    inbox.reject(inbox.show(_opened(gate, "act").id), ANN)
    inbox.respond(inbox.show(_opened(gate, "act").id), ANN, "no need")
    inbox.edit(inbox.show(_opened(gate, "act").id), ANN, {"a": 2})
    gate.withdraw(_opened(gate, "act").id)


def _proofs(gate: Gate, inbox: Inbox, _clock: ManualClock) -> None:
    card = inbox.show(_opened(gate, "code").id)
    inbox.challenge(card, ANN)
    with pytest.raises(ProofWrong):
        inbox.approve(card, ANN, proof="wrong!")


def _quorums(gate: Gate, inbox: Inbox, _clock: ManualClock) -> None:
    bob, cem = (Person(id=name, groups=frozenset({"a"})) for name in ("bob", "cem"))
    inbox.approve(inbox.show(_opened(gate, "pair").id), bob)
    inbox.edit(inbox.show(_opened(gate, "pair").id), cem, {"a": 3})


def _runs(gate: Gate, inbox: Inbox, clock: ManualClock) -> None:
    for error in ("", "TimeoutError"):
        settlement = gate.claim(_approved(gate, inbox, "act").id)
        gate.renew(settlement)
        gate.complete(settlement, error=error)
    lost = gate.claim(_approved(gate, inbox, "act").id)
    clock.advance(61)
    run_once(gate.store)
    assert lost.approval
    inbox.reconcile(lost.approval.id, ANN, ran=True)


def _silences(gate: Gate, inbox: Inbox, clock: ManualClock) -> None:
    approval = _opened(gate, "act")
    clock.advance(301)
    with pytest.raises(Late):
        inbox.reject(inbox.show(approval.id), ANN)


def _drifts(gate: Gate, inbox: Inbox, facts: dict[str, Json]) -> None:
    """Change the facts while an agent waits: its permit goes back, and another approval takes the place."""

    def person(changed: Mapping[str, Approval | None]) -> None:
        for approval_id in changed:
            found = inbox.get(approval_id)
            if found.status == "pending" and found.action.tool == "watched":
                facts["version"] = 2
                answer = inbox.reject if found.replaces else inbox.approve
                answer(inbox.show(approval_id), ANN)

    gate.store.subscribe(person)
    settlement = gate.ask(Action(tool="watched", args={}, thread="t"))
    assert isinstance(settlement.refusal, Refused)
