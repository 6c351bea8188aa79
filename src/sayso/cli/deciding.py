"""`sayso approve`, `edit`, `reject` and `respond`: the answers a person gives."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sayso.actions import Json, parse_args
from sayso.approvals import Approval, DecisionKind, ProofKind
from sayso.cli.cards import render_card
from sayso.cli.conversation import Conversation, still_pending, undecided
from sayso.cli.editor import compose, edit_args
from sayso.cli.inbox import shown_card
from sayso.cli.opening import Desk, deciding
from sayso.cli.options import (
    ApprovalArgument,
    ConfigOption,
    JsonOption,
    OpenAllOption,
    OpenOption,
    ProofOption,
    ShownOption,
    StoreOption,
)
from sayso.cli.outcomes import outcome_line
from sayso.cli.printing import print_json, print_line, terminal
from sayso.cli.records import approval_json, card_json
from sayso.errors import DigestMismatch, NotAllowed, ProofMissing, UsageError
from sayso.presentation import Presentation

_SHORTEST_DIGEST = 12
ArgsOption = Annotated[
    str,
    typer.Option("--args", metavar="FILE", help="All new arguments as JSON, from a file or - for the input."),
]
ReasonOption = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why not; the agent is told.")
]
MessageOption = Annotated[
    str, typer.Option("--message", metavar="TEXT", help="The words; without them your editor opens.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (approve, edit, reject, respond):
        app.command()(command)


def approve(
    approval: ApprovalArgument,
    *,
    proof: ProofOption = None,
    shown: ShownOption = "",
    open_: OpenOption = None,
    open_all: OpenAllOption = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Look at an approval, then let it run.

    The card comes first, then the proof.
    With --proof nothing is asked. A code comes from `sayso show ID --code`, in the same session.
    """
    with deciding(config, store) as desk:
        card = shown_card(desk.inbox, desk.inbox.get(approval).id, open_ or [], open_all=open_all)
        _check_shown(card, shown)
        if proof is None and not as_json:
            talk = _talk(desk, card)
            _finish(desk, _answered(talk, talk.run), as_json=False, said=True)
            return
        if not as_json:
            render_card(card, terminal())
        given = _given(card, proof)
        _finish(desk, desk.inbox.approve(card, desk.person, proof=given), as_json=as_json, card=card)


def edit(
    approval: ApprovalArgument,
    *,
    args: ArgsOption = "",
    proof: ProofOption = None,
    shown: ShownOption = "",
    open_: OpenOption = None,
    open_all: OpenAllOption = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Change the arguments in your editor, then approve that.

    Policy judges the change first; what needs a stricter approval opens a new one.
    """
    with deciding(config, store) as desk:
        found = desk.inbox.get(approval)
        card = shown_card(desk.inbox, found.id, open_ or [], open_all=open_all)
        _check_shown(card, shown)
        _check_kind(card, DecisionKind.EDIT)
        if as_json:
            given = _given(card, proof)
            _finish(
                desk,
                desk.inbox.edit(card, desk.person, _args_from(args), proof=given),
                as_json=True,
                card=card,
            )
            return
        render_card(card, terminal())
        talk = _talk(desk, card)
        given = None if proof is None else _given(card, proof)
        if args:
            new = _args_from(args)
            _finish(desk, _answered(talk, lambda: talk.change(new, given)), as_json=False)
            return
        action = found.effective
        _finish(
            desk,
            _answered(talk, lambda: edit_args(action.tool, action.args, lambda new: talk.change(new, given))),
            as_json=False,
        )


def reject(
    approval: ApprovalArgument,
    *,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Say no, and why; it will not run."""
    with deciding(config, store) as desk:
        found = desk.inbox.get(approval)
        if reason is not None or as_json:
            _finish(desk, desk.inbox.reject(found, desk.person, reason or ""), as_json=as_json)
            return
        card = desk.inbox.show(found.id)
        render_card(card, terminal())
        words = _ask("Reason for the agent: ", found.id)
        _finish(desk, desk.inbox.reject(card, desk.person, words), as_json=False)


def respond(
    approval: ApprovalArgument,
    *,
    message: MessageOption = "",
    as_json: JsonOption = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Answer in the tool's place.

    It does not run, and your words become its result.
    """
    with deciding(config, store) as desk:
        found = desk.inbox.get(approval)
        if message or as_json:
            _finish(desk, desk.inbox.respond(found, desk.person, message), as_json=as_json)
            return
        card = desk.inbox.show(found.id)
        _check_kind(card, DecisionKind.RESPOND)
        render_card(card, terminal())
        words = compose("", name="answer.txt").strip()
        if not words:
            raise undecided(found.id)
        _finish(desk, desk.inbox.respond(card, desk.person, words), as_json=False)


def _talk(desk: Desk, card: Presentation) -> Conversation:
    return Conversation(
        inbox=desk.inbox,
        approval_id=card.approval_id,
        person=desk.person,
        console=terminal(),
        read=input,
        opened=card.opened,
    )


def _answered(talk: Conversation, ask: Callable[[], Approval | None]) -> Approval:
    """Return the approval once this person answered.

    Raises:
        DecisionRefused: They left it as it was, or the input ended.
    """
    try:
        answered = ask()
    except EOFError:
        raise undecided(talk.approval_id) from None
    if answered is None or still_pending(answered, talk.person):
        raise undecided(talk.approval_id)
    return answered


def _ask(question: str, approval_id: str) -> str:
    try:
        return input(question).strip()
    except EOFError:
        raise undecided(approval_id) from None


def _check_shown(card: Presentation, shown: str) -> None:
    """Check that the card is the one the person names.

    Raises:
        UsageError: Too few digits are named.
        DigestMismatch: It shows something else by now.
    """
    if shown and len(shown) < _SHORTEST_DIGEST:
        raise UsageError(
            f"`--shown` needs at least {_SHORTEST_DIGEST} digits",
            hint="copy them from `shown as` on the card",
        )
    if not card.digest.startswith(shown):
        raise DigestMismatch(
            f"approval {card.approval_id} shows something else than what you saw",
            hint="look at it again with `sayso show`, then decide",
            approval_id=card.approval_id,
        )


def _check_kind(card: Presentation, kind: DecisionKind) -> None:
    """Check that an answer is allowed before a person takes the trouble to write it.

    Raises:
        NotAllowed: It is not.
    """
    if kind not in card.decisions:
        raise NotAllowed(
            f"`{kind}` is not allowed for approval {card.approval_id}",
            hint=f"choose one of: {', '.join(card.decisions)}",
            approval_id=card.approval_id,
        )


def _given(card: Presentation, proof: str | None) -> str:
    """Return the proof that was given; where a click is enough, it takes a y.

    Raises:
        ProofMissing: There is none; says how to get one.
    """
    hints = {
        ProofKind.CLICK: "add --proof y",
        ProofKind.CODE: f"get a code with `sayso show {card.approval_id} --code`, then add --proof CODE",
    }
    if proof is None or (card.proof.kind is ProofKind.CLICK and proof.strip().lower() not in {"y", "yes"}):
        raise ProofMissing(
            f"approval {card.approval_id} needs a proof here",
            hint=hints.get(card.proof.kind, "add --proof VALUE"),
            approval_id=card.approval_id,
        )
    return proof


def _args_from(name: str) -> dict[str, Json]:
    """Read new arguments from a file or the input.

    Raises:
        UsageError: The file cannot be read, or no file is named.
        InvalidAction: It is not a JSON object.
    """
    if not name:
        raise UsageError("the new arguments are missing", hint="name a file with --args, or - for the input")
    try:
        return parse_args(sys.stdin.read() if name == "-" else Path(name).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"`{name}` cannot be read: {error}", hint="check the path") from None


def _finish(
    desk: Desk, approval: Approval, *, as_json: bool, card: Presentation | None = None, said: bool = False
) -> None:
    """Print what the decision led to."""
    if not as_json:
        if not said:
            text, style = outcome_line(approval)
            print_line(text, style=style)
        return
    now = desk.inbox.store.clock.now()
    told: dict[str, Json] = {"approval": approval_json(approval, now)}
    print_json(told | ({"card": card_json(card)} if card else {}))
