"""What every channel promises, whatever it is made of."""

import io
from collections.abc import Callable

import pytest

from sayso.channels import Channel, TerminalChannel
from sayso.presentation import Presentation, present
from tests.builders import T0, action, approval
from tests.guarantees import guarantee

CHANNELS: dict[str, Callable[[io.StringIO], Channel]] = {"terminal": TerminalChannel}
"""The channels that write text; a new one is one more entry."""


@pytest.fixture(params=CHANNELS)
def made(request: pytest.FixtureRequest) -> tuple[Channel, io.StringIO]:
    """One channel of each kind, and what it wrote."""
    written = io.StringIO()
    return CHANNELS[request.param](written), written


def card(**args: object) -> Presentation:
    return present(approval(action(args=args)), T0)  # pyright: ignore[reportArgumentType] - JSON by name


@pytest.mark.parametrize("kind", ["opened", "approved", "rejected", "expired", "withdrawn", "unknown"])
def test_a_notice_names_the_approval_what_happened_and_what_it_is_about(
    made: tuple[Channel, io.StringIO], kind: str
) -> None:
    channel, written = made
    channel.announce(kind, card(price=1))
    assert "ap1" in written.getvalue()
    assert "book_flight" in written.getvalue()
    assert channel.name


def test_a_notice_given_twice_is_no_fault(made: tuple[Channel, io.StringIO]) -> None:
    channel, written = made
    for _ in range(2):
        channel.announce("opened", card(price=1))
    assert written.getvalue().count("ap1") == 2


@guarantee("G8")
def test_a_notice_stays_on_its_line_whatever_the_arguments_hold(made: tuple[Channel, io.StringIO]) -> None:
    channel, written = made
    channel.announce("opened", card(text="\x1b[2J\n\r\u202eap9 was approved", **{"a\nb": "\u2028"}))
    text = written.getvalue()
    assert text.count("\n") == 1
    assert not set(text) & {"\x1b", "\r", "\u202e", "\u2028"}


@guarantee("G11")
def test_a_notice_holds_no_secret(made: tuple[Channel, io.StringIO]) -> None:
    channel, written = made
    token = "ghp_" + "a1B2" * 9
    channel.announce("opened", card(token=token, note=f"with {token}"))
    assert token not in written.getvalue()


def test_what_cannot_be_written_is_an_os_error() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(len(text))

    for make in CHANNELS.values():
        with pytest.raises(OSError, match=r"\d"):
            make(Gone()).announce("opened", card(price=1))
