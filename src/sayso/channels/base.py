"""The port every channel implements. A channel tells people; it never decides anything."""

from typing import Protocol

from sayso.presentation import Presentation


class Channel(Protocol):
    """Somewhere people read.

    Attributes:
        name: How config and the audit name it.
    """

    name: str

    def announce(self, kind: str, card: Presentation) -> None:
        """Tell people about an approval; called again for the same notice after a crash.

        Args:
            kind: What happened, as the audit names it: `opened`, `approved`, `expired`.
            card: What they may be shown, with secrets redacted.

        Raises:
            OSError: It could not be delivered now; it is tried again.
        """
        ...
