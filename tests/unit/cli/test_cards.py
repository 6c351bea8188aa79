"""Cards on a terminal and in a pipe: nothing that was presented may be lost on the way."""

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from sayso import Action, present
from sayso.cli.cards import plain_lines, render_card
from tests.builders import T0, action, approval, terms
from tests.guarantees import guarantee

NOT_INK = re.compile(r"[\s\u2502]")


def on_terminal(wanted: Action, width: int, *, opened: frozenset[str] = frozenset()) -> str:
    """Return the card as a terminal of this width without colours shows it."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, width=width)
    render_card(present(approval(wanted), T0, opened=opened), console)
    return out.getvalue()


@guarantee("G8")
@given(text=st.text(max_size=300), width=st.integers(min_value=30, max_value=140))
def test_every_sign_of_a_value_is_on_the_terminal_at_any_width(text: str, width: int) -> None:
    wanted = action(args={"a": text.encode("utf-8", "ignore").decode()})
    (shown,) = present(approval(wanted), T0).fields
    assert NOT_INK.sub("", shown.text) in NOT_INK.sub("", on_terminal(wanted, width))


@guarantee("G8")
@given(st.text(max_size=300))
def test_every_sign_of_a_value_is_in_the_pipe_and_none_stands_where_a_name_does(text: str) -> None:
    wanted = action(args={"a": text.encode("utf-8", "ignore").decode()})
    card = present(approval(wanted), T0)
    lines = "\n".join(plain_lines(card)).split("\n")
    names = {line.partition(": ")[0] for line in lines if not line.startswith("    ")}
    assert names <= {*_NAMES, "args.a"}
    assert NOT_INK.sub("", card.fields[0].text) in NOT_INK.sub("", "".join(lines))


@pytest.mark.parametrize("width", [40, 59, 60, 80, 200])
def test_no_line_of_a_card_is_wider_than_the_terminal(width: int) -> None:
    shown = on_terminal(action(args={"a": "word " * 80, "b" * 60: "x" * 300}), width)
    assert max(map(len, shown.splitlines())) <= width


def test_a_card_says_what_silence_means_how_long_there_is_and_what_approving_takes() -> None:
    shown = " ".join(on_terminal(action(), 100).replace("\u2502", " ").split())
    for words in (
        "it will NOT run",
        "time left 5m 00s",
        "Approving takes no further proof",
        "it cannot be undone",
    ):
        assert words in shown


def test_markup_in_a_value_is_text() -> None:
    assert "[bold]x[/bold]" in on_terminal(action(args={"a": "[bold]x[/bold] :smile:"}), 100)
    assert ":smile:" in on_terminal(action(args={"a": ":smile:"}), 100)


def test_what_is_hidden_is_named_until_it_is_opened() -> None:
    wanted = action(args={"a": "x" * 5000})
    assert "1 part not fully shown: args.a" in on_terminal(wanted, 100)
    assert "not fully shown" not in on_terminal(wanted, 100, opened=frozenset({"args.a"}))


def test_an_edited_value_shows_what_it_was() -> None:
    changed = replace(approval(), edited=action(args={"flight": "UA 212", "price": 380}))
    lines = list(plain_lines(present(changed, T0)))
    assert "args.price: 380" in lines
    assert "args.price was: 1847.5" in lines


def test_a_deadline_that_has_passed_leaves_no_time() -> None:
    late = present(approval(given=terms()), T0 + 10**9)
    assert "time left: none" in list(plain_lines(late))


_NAMES = frozenset(
    {
        "approval",
        "headline",
        "tool",
        "effect",
        "asked by",
        "thread",
        "why",
        "reason",
        "rule",
        "warning",
        "not fully shown",
        "silence",
        "time left",
        "quorum",
        "proof",
        "decisions",
        "shown as",
    }
)
