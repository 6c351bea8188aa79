"""What Sayso promises: every guarantee with its id, its sentence and why it is given.

A test proves a guarantee when it carries the mark, on itself, its class or its module:

    @guarantee("G3")
    def test_a_second_claim_of_the_same_approval_is_refused() -> None: ...

`tests/conventions/test_guarantees.py` holds both directions together: every reached guarantee
has a test, and every mark names a guarantee. `docs/guarantees.md` is generated from this file.
"""

from dataclasses import dataclass

import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """One promise.

    Args:
        id: Its stable name.
        sentence: What is promised, with no exception left out.
        why: What would happen without it.
        not_reached: Why it cannot be proven yet; empty once tests prove it.
    """

    id: str
    sentence: str
    why: str
    not_reached: str = ""

    @property
    def reached(self) -> bool:
        """Whether tests must prove it."""
        return not self.not_reached


GUARANTEES: tuple[Guarantee, ...] = (
    Guarantee(
        id="G1",
        sentence="An irreversible action never runs without a decision recorded before its deadline.",
        why="What cannot be undone has no second chance, so it needs a person, and needs them in time.",
    ),
    Guarantee(
        id="G2",
        sentence="What runs is byte for byte what was approved; the digest is checked at the last moment before "
        "execution, innermost.",
        why="An approval for one flight must not book another because something changed in between.",
    ),
    Guarantee(
        id="G3",
        sentence="There is at most one execution per approval, whatever is retried, raced, resumed twice or "
        "restored.",
        why="A retry that pays a second time is worse than one that stops and asks.",
    ),
    Guarantee(
        id="G4",
        sentence="A rejected or expired action never runs, also if a predicate changes its mind, the "
        "configuration changes or the process restarts.",
        why="A no that wears off is no answer.",
    ),
    Guarantee(
        id="G5",
        sentence="Silence is denial for the irreversible; late answers change nothing.",
        why="Nobody said yes, and an answer to yesterday's question is not about today's price.",
    ),
    Guarantee(
        id="G6",
        sentence="Nobody approves their own request; only permitted people decide.",
        why="An approval is worth as much as the person behind it.",
    ),
    Guarantee(
        id="G7",
        sentence="Every transition is in the audit, in the same transaction; edits, deletions, reordering and "
        "truncation of the log are detected.",
        why="Afterwards somebody must be able to tell what happened without trusting whoever kept the log.",
    ),
    Guarantee(
        id="G8",
        sentence="What the reviewer saw is what was stored: nothing is hidden by length, invisible or "
        "bidirectional characters, look-alike hosts, terminal escapes or markup.",
        why="Whoever writes the arguments must not be able to choose what the reviewer reads.",
    ),
    Guarantee(
        id="G9",
        sentence="No crash, kill -9, lost connection or full disk loses an approval or a decision.",
        why="A person's answer is given once; asking again costs trust, and losing a no costs more.",
    ),
    Guarantee(
        id="G10",
        sentence="A fault in Sayso stops the action, never lets it through.",
        why="Doubt is a reason to ask or to deny, so a broken gate must be a closed one.",
    ),
    Guarantee(
        id="G11",
        sentence="Secrets in arguments never reach a notice, log or audit in clear.",
        why="Notices travel and logs stay; neither may become the place where a password leaks.",
    ),
    Guarantee(
        id="G12",
        sentence="There is no decision by opening a link: GET changes nothing.",
        why="Mail scanners and link previews open every link they see.",
        not_reached="there is no web surface yet: approvals are decided from the command line and in Python, and "
        "notices carry no links",
    ),
)

BY_ID: dict[str, Guarantee] = {each.id: each for each in GUARANTEES}


def guarantee(id: str) -> pytest.MarkDecorator:  # noqa: A002 - the field's name
    """Return the mark of a test that proves the guarantee of this id.

    Raises:
        ValueError: There is no such guarantee.
    """
    if id not in BY_ID:
        raise ValueError(f"there is no guarantee `{id}`; tests/guarantees.py has {', '.join(BY_ID)}")
    return pytest.mark.guarantee(id)
