"""What policy says about an action: run it, ask people, or do not run it.

A pure function of the rules and the action. Deny beats ask beats allow; whatever cannot be
told asks. Policy reads nothing but the links of a path it is asked about (`matchers`) and the
policy file it is loaded from (`loading`).
"""

from sayso.policy.conditions import Condition
from sayso.policy.matchers import email, host, path
from sayso.policy.money import Money
from sayso.policy.policies import Policy
from sayso.policy.predicates import Call
from sayso.policy.rules import Price, Rule
from sayso.policy.shell import shell
from sayso.policy.sql import sql
from sayso.policy.verdicts import (
    Context,
    Explanation,
    Lint,
    Outcome,
    Step,
    Unmatched,
    Verdict,
    stricter,
)

__all__ = [
    "Call",
    "Condition",
    "Context",
    "Explanation",
    "Lint",
    "Money",
    "Outcome",
    "Policy",
    "Price",
    "Rule",
    "Step",
    "Unmatched",
    "Verdict",
    "email",
    "host",
    "path",
    "shell",
    "sql",
    "stricter",
]
