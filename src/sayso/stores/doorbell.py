"""How processes that share a SQLite file hear of each other's commits without polling for it.

Each listening process has a Unix datagram socket in a folder named after the file; a commit
rings all of them. A ring carries no authority: it only makes the listener read the store.
Where sockets cannot be had, the poll underneath still finds every change.
"""

import os
import socket
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from sayso.approvals import Approval
from sayso.clock import elapsed
from sayso.errors import StoreError

POLL_SECONDS = 1.0
"""How often the store is read in case a ring was missed."""

_LARGEST = 8192


class Doorbell:
    """The doorbells of one SQLite file.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        name = sha256(str(path.resolve()).encode()).hexdigest()[:16]
        owner = os.getuid() if hasattr(os, "getuid") else 0
        self._folder = Path(tempfile.gettempdir()) / f"sayso-{owner}" / name
        self._own = ""
        self._known: tuple[int, tuple[str, ...]] = (0, ())
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._ringer = (
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if hasattr(socket, "AF_UNIX") else None
        )
        if self._ringer:
            self._ringer.settimeout(0)

    def ring(self, approval_ids: Sequence[str]) -> None:
        """Tell every other listening process which approvals changed."""
        if self._ringer is None:
            return
        others = self._others()
        if not others:
            return
        message = ",".join(approval_ids).encode()
        for other in others:
            try:
                self._ringer.sendto(message if len(message) <= _LARGEST else b"", other)
            except ConnectionRefusedError:
                Path(other).unlink(missing_ok=True)  # its process is gone
            except OSError:
                continue  # a full queue: its poll will find the change

    def listen(
        self,
        tell: Callable[[dict[str, Approval | None]], None],
        changes_since: Callable[[int], tuple[list[str], int]],
    ) -> None:
        """Start to call `tell` whenever another process changed something; once per doorbell."""
        if self._thread is not None:
            return
        last = changes_since(-1)[1]
        with suppress(OSError):
            self._socket = self._bind()
        self._thread = threading.Thread(
            target=self._serve, args=(tell, changes_since, last), name="sayso-doorbell", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        if self._own and self._ringer:
            with suppress(OSError):
                self._ringer.sendto(b"", self._own)
        if self._thread is not None:
            self._thread.join()
        if self._own:
            Path(self._own).unlink(missing_ok=True)
            with suppress(OSError):  # others still listen
                self._folder.rmdir()
        for each in (self._socket, self._ringer):
            if each is not None:
                each.close()

    def _serve(
        self,
        tell: Callable[[dict[str, Approval | None]], None],
        changes_since: Callable[[int], tuple[list[str], int]],
        last: int,
    ) -> None:
        polled = elapsed()
        while not self._closed.is_set():
            message = self._hear()
            if self._closed.is_set():
                return
            if message:
                tell(dict.fromkeys(message.decode("ascii", "replace").split(",")))
                if elapsed() - polled < POLL_SECONDS:
                    continue  # while rings keep coming, those that were lost must still be found
            polled = elapsed()
            with suppress(StoreError):  # the next poll finds what this one could not read
                changed, last = changes_since(last)
                if changed:
                    tell(dict.fromkeys(changed))

    def _hear(self) -> bytes:
        if self._socket is None:
            self._closed.wait(POLL_SECONDS)
            return b""
        with suppress(TimeoutError):
            return self._socket.recv(_LARGEST)
        return b""

    def _bind(self) -> socket.socket:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = self._folder / f"{os.getpid()}-{id(self):x}"
        own.unlink(missing_ok=True)
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        bound.bind(str(own))
        bound.settimeout(POLL_SECONDS)
        self._own = str(own)
        return bound

    def _others(self) -> tuple[str, ...]:
        """Return the other sockets; the folder is listed again only when it changed."""
        try:
            changed = os.stat(self._folder).st_mtime_ns  # noqa: PTH116 - on every commit's path
        except OSError:
            return ()
        if changed != self._known[0]:
            names = (str(each) for each in self._folder.iterdir())
            self._known = (changed, tuple(name for name in names if name != self._own))
        return self._known[1]
