from sayso.actions import Action, Json, Origin
from sayso.approvals import (
    Approval,
    Decision,
    DecisionKind,
    Effect,
    Permit,
    Person,
    ProofKind,
    ProofRule,
    Reason,
    Resolution,
    Silence,
    Status,
    Terms,
)
from sayso.clock import Clock, ManualClock, SystemClock
from sayso.gate import AsyncGate, Gate
from sayso.guard import acting, running
from sayso.inbox import Answer, Inbox
from sayso.policy import Context, Money, Outcome, Policy, Rule, Verdict
from sayso.presentation import Presentation, present
from sayso.settlement import Settlement
from sayso.stores import Store, open_store

__all__ = [
    "Action",
    "Answer",
    "Approval",
    "AsyncGate",
    "Clock",
    "Context",
    "Decision",
    "DecisionKind",
    "Effect",
    "Gate",
    "Inbox",
    "Json",
    "ManualClock",
    "Money",
    "Origin",
    "Outcome",
    "Permit",
    "Person",
    "Policy",
    "Presentation",
    "ProofKind",
    "ProofRule",
    "Reason",
    "Resolution",
    "Rule",
    "Settlement",
    "Silence",
    "Status",
    "Store",
    "SystemClock",
    "Terms",
    "Verdict",
    "acting",
    "open_store",
    "present",
    "running",
]
