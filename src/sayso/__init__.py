"""Sayso, the approval layer for AI agents: no agent acts on its own say-so.

An action meets the gate, policy gives a verdict, people give decisions from the inbox, the
store remembers, the audit proves.

Everything named here loads when it is first used, so that a small command starts at once.
"""

from importlib import import_module

_HOMES = {
    "actions": (
        "Action",
        "Json",
        "Origin",
    ),
    "approvals": (
        "Approval",
        "Decision",
        "DecisionKind",
        "Effect",
        "Permit",
        "Person",
        "ProofKind",
        "ProofRule",
        "Reason",
        "Resolution",
        "Silence",
        "Status",
        "Terms",
    ),
    "clock": (
        "Clock",
        "ManualClock",
        "SystemClock",
    ),
    "gate": (
        "AsyncGate",
        "Gate",
    ),
    "guard": (
        "acting",
        "running",
    ),
    "inbox": (
        "Answer",
        "Inbox",
    ),
    "policy": (
        "Context",
        "Money",
        "Outcome",
        "Policy",
        "Rule",
        "Verdict",
    ),
    "presentation": (
        "Presentation",
        "present",
    ),
    "settlement": ("Settlement",),
    "stores": (
        "Store",
        "open_store",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605  # pyright: ignore[reportUnsupportedDunderAll] - the stub spells it out


def __getattr__(name: str) -> object:
    """Load a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module `sayso` has no attribute `{name}`")
    found: object = getattr(import_module(f"sayso.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
