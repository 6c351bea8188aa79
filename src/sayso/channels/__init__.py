"""How notices reach people: one file per channel, all behind the port in `base`."""

from sayso.channels.base import Channel
from sayso.channels.terminal import TerminalChannel

__all__ = ["Channel", "TerminalChannel"]
