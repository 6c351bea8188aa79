"""The conversation in which a person decides at a terminal.

They see the whole card first. What they type then is either the proof, which approves, or one
of the words offered; anything else changes nothing. Every answer is about the very card that
is on the screen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from sayso.actions import Json
from sayso.approvals import Approval, DecisionKind, Person, ProofKind, Status
from sayso.cli.cards import render_card
from sayso.cli.editor import edit_args, find_editor
from sayso.cli.outcomes import changes_table, outcome_line
from sayso.cli.printing import LABEL, WARNING, plural
from sayso.errors import (
    DecisionRefused,
    DigestMismatch,
    InvalidAction,
    InvalidEdit,
    NotAllowed,
    PartsUnopened,
    ProofMissing,
    ProofWrong,
)
from sayso.inbox import Inbox
from sayso.presentation import Presentation, diff

Read = Callable[[str], str]
"""Asks a question and returns the line typed; raises EOFError when there is nobody to type."""

PROMPT = "> "

_AGAIN = (ProofWrong, ProofMissing, InvalidAction, InvalidEdit, NotAllowed, PartsUnopened, DigestMismatch)
"""What can be put right in the same conversation; anything else ends it."""

_YES = frozenset({"y", "yes", "a", "approve"})
_WORDS = {
    "e": "edit",
    "edit": "edit",
    "r": "reject",
    "reject": "reject",
    "s": "respond",
    "respond": "respond",
    "o": "open",
    "open": "open",
    "w": "wait",
    "wait": "wait",
    "": "nothing",
}
_OFFERS = {
    DecisionKind.EDIT: ("e", "edit"),
    DecisionKind.REJECT: ("r", "reject"),
    DecisionKind.RESPOND: ("s", "respond in its place"),
}


def prompt_decision(
    inbox: Inbox, approval_id: str, person: Person, console: Console, read: Read = input
) -> Approval:
    """Show an approval and take this person's decision on it.

    Args:
        inbox: The person's door.
        approval_id: The approval, by its id or the beginning of it.
        person: Who decides.
        console: Where to show it.
        read: Asks a question and returns the line typed.

    Returns:
        The approval after the decision; as it was when the person leaves it pending.

    Raises:
        DecisionRefused: It can no longer be decided, or not by this person.
        EOFError: The input ended before anything was decided.
    """
    return Conversation(inbox=inbox, approval_id=approval_id, person=person, console=console, read=read).run()


class TerminalDesk:
    """The person's side of a terminal, for whoever runs an agent beside it."""

    def show(self, card: Presentation, console: Console) -> None:
        """Print a card."""
        render_card(card, console)

    def ask(self, inbox: Inbox, approval_id: str, person: Person, console: Console, read: Read) -> Approval:
        """Show an approval and take a decision on it; see `prompt_decision`."""
        return prompt_decision(inbox, approval_id, person, console, read)


@dataclass(slots=True, kw_only=True)
class Conversation:
    """One person and one approval.

    Args:
        inbox: The person's door.
        approval_id: The approval.
        person: Who decides.
        console: Where to show it.
        read: Asks a question and returns the line typed.
        opened: The parts the person opened.
        code: The code that is on the screen, if one is.
    """

    inbox: Inbox
    approval_id: str
    person: Person
    console: Console
    read: Read
    opened: frozenset[str] = frozenset()
    code: str = ""
    _card: Presentation | None = field(default=None, init=False)

    @property
    def card(self) -> Presentation:
        """What is on the screen."""
        if self._card is None:
            self._card = self.inbox.show(self.approval_id, opened=self.opened)
        return self._card

    def run(self) -> Approval:
        """Show the card and take answers until one counts or the person leaves."""
        self.show()
        while True:
            self.offer()
            decided = self.take(self.read(PROMPT).strip())
            if decided is not None:
                return decided

    def show(self) -> None:
        """Put the card on the screen, as it stands now."""
        self._card = None
        self.code = ""
        self.console.print()
        render_card(self.card, self.console)

    def offer(self) -> None:
        """Say how to approve, and what else can be done."""
        self.console.print()
        if DecisionKind.APPROVE in self.card.decisions:
            self.console.print(self._how_to_approve(), soft_wrap=not self.console.is_terminal)
        offers = [_OFFERS[kind] for kind in self.card.decisions if kind in _OFFERS]
        if self.card.hidden:
            offers.insert(0, ("o", "open the next part"))
        line = Text("Or: " if DecisionKind.APPROVE in self.card.decisions else "", style=LABEL)
        for letter, meaning in (*offers, ("w", "leave it waiting")):
            line.append(letter, style="bold")
            line.append(f" {meaning}   ", style=LABEL)
        line.rstrip()
        self.console.print(line, soft_wrap=not self.console.is_terminal)

    def take(self, typed: str) -> Approval | None:
        """Do what was typed; None when the conversation goes on."""
        word = _WORDS.get(typed.lower(), "approve")
        try:
            match word:
                case "wait":
                    return self._wait()
                case "open":
                    return self._open()
                case "nothing":
                    return None
                case _:
                    return self._decided(self._answer(word, typed))
        except _AGAIN as refusal:
            self.say(str(refusal), WARNING)
            if isinstance(refusal, DigestMismatch):
                self.show()
            return None

    def approve(self, typed: str) -> Approval:
        """Approve with what was typed as proof.

        Raises:
            DecisionRefused: It does not prove enough, or parts are still hidden.
        """
        if self.card.hidden:
            raise PartsUnopened(
                f"{plural(len(self.card.hidden), 'part')} of it cannot be seen yet",
                hint="type o to open the next one",
            )
        if self.card.proof.kind is ProofKind.CLICK and typed.lower() not in _YES:
            raise ProofMissing("only y approves", hint="type y to approve, or one of the letters below")
        if self.card.proof.kind is ProofKind.CODE and typed.lower() in _YES:
            raise ProofMissing("a y does not approve this one", hint="type the code")
        return self.inbox.approve(self.card, self.person, proof=typed)

    def change(self, args: Mapping[str, Json], proof: str | None = None) -> Approval | None:
        """Show what an edit changes and approve that; None when the person thinks better of it.

        Raises:
            InvalidEdit: The arguments do not fit the tool, or policy denies them.
        """
        before = self.inbox.get(self.approval_id).effective.args
        changes = diff(before, args)
        if not changes:
            raise InvalidEdit("nothing was changed", hint="change a value, or approve it as it is")
        self.console.print()
        self.console.print(changes_table(changes, self.console), soft_wrap=not self.console.is_terminal)
        while True:
            typed = self._proof_of_edit() if proof is None else proof
            if not typed:
                return None
            try:
                return self.inbox.edit(self.card, self.person, args, proof=typed)
            except (ProofWrong, ProofMissing) as refusal:
                if proof is not None:
                    raise
                self.say(str(refusal), WARNING)

    def say(self, text: str, style: str = "") -> None:
        """Print a line of Sayso's own."""
        self.console.print(Text(text, style=style), soft_wrap=not self.console.is_terminal)

    def _answer(self, word: str, typed: str) -> Approval | None:
        kind = DecisionKind(word)
        if kind not in self.card.decisions:
            allowed = ", ".join(self.card.decisions)
            raise NotAllowed(f"`{kind}` is not allowed here", hint=f"choose one of: {allowed}")
        match kind:
            case DecisionKind.REJECT:
                return self.inbox.reject(self.card, self.person, self.read("Reason for the agent: ").strip())
            case DecisionKind.RESPOND:
                words = self.read("Your answer, which becomes the tool's result: ").strip()
                return self.inbox.respond(self.card, self.person, words)
            case DecisionKind.EDIT:
                return self._edit()
            case DecisionKind.APPROVE:
                return self.approve(typed)

    def _decided(self, approval: Approval | None) -> Approval | None:
        if approval is not None:
            self.say(*outcome_line(approval))
        return approval

    def _edit(self) -> Approval | None:
        if self.card.hidden:
            raise PartsUnopened("parts of it cannot be seen yet", hint="type o to open the next one")
        action = self.inbox.get(self.approval_id).effective
        if self.console.is_terminal and find_editor():
            return edit_args(action.tool, action.args, self.change)
        return edit_args(
            action.tool,
            action.args,
            self.change,
            edit=lambda _: self.read("All arguments as one line of JSON: "),
        )

    def _open(self) -> None:
        """Show one more part in full."""
        if not self.card.hidden:
            raise NotAllowed("everything is open already", hint="decide, or leave it waiting")
        self.opened |= {self.card.hidden[0]}
        self.show()

    def _wait(self) -> Approval:
        self.say("Left waiting.", LABEL)
        return self.inbox.get(self.approval_id)

    def _how_to_approve(self) -> Text:
        """Say what approves it; a code is made once everything can be seen."""
        if self.card.hidden:
            return Text(
                f"{plural(len(self.card.hidden), 'part')} must be opened before it can be approved.",
                style=WARNING,
            )
        match self.card.proof.kind:
            case ProofKind.CLICK:
                return Text.assemble("Type ", ("y", "bold"), " to approve.")
            case ProofKind.CODE:
                if not self.code:
                    self.code = self.inbox.challenge(self.card, self.person)
                return Text.assemble(
                    "Type ", (self.code, "bold"), " to approve; this code is good for this action only."
                )
            case _:
                return Text(self.card.proof.sentence)

    def _proof_of_edit(self) -> str:
        """Ask for the proof of an edit; an empty line goes back."""
        match self.card.proof.kind:
            case ProofKind.CLICK:
                typed = self.read("Type y to approve the change: ").strip()
                return typed if typed.lower() in _YES else ""
            case ProofKind.CODE:
                self.code = self.code or self.inbox.challenge(self.card, self.person)
                return self.read(f"Type {self.code} to approve the change: ").strip()
            case _:
                self.say(self.card.proof.sentence)
                return self.read(PROMPT).strip()


def still_pending(approval: Approval, person: Person) -> bool:
    """Return whether the person left without deciding."""
    mine = any(given.person.id == person.id for given in approval.decisions)
    return approval.status is Status.PENDING and not mine


def undecided(approval_id: str) -> DecisionRefused:
    """Return the refusal for a person who left without deciding."""
    return DecisionRefused(
        f"approval {approval_id} still waits: nothing was decided",
        hint="run the command again when you know",
        approval_id=approval_id,
    )
