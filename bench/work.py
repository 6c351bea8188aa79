"""The work every contender does: the same request, the same sizes."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sayso.actions import Json

TOOL = "issue_refund"
"""The tool that needs a person."""

FREE_TOOL = "search_orders"
"""The tool that needs nobody."""

REQUEST_BYTES = 820
"""How many bytes the canonical arguments of a request take, within a few."""

_NOTE = "The parcel arrived with a broken seal, and the customer asks for the money back. "


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much to do.

    Args:
        rounds: How often each contender is measured.
        quick: Whether to do a small part of the work, for a look only.
        full: Whether to include the rows with a million records.
        folder: Where the databases go.
    """

    rounds: int
    quick: bool
    full: bool
    folder: Path

    def count(self, usual: int) -> int:
        """Return how many of something to do: all, or a tenth for a quick look."""
        return max(12, usual // 10) if self.quick else usual


def request(number: int) -> dict[str, Json]:
    """Return the arguments of one call, about `REQUEST_BYTES` in canonical form."""
    return {
        "amount": 100 + number % 300,
        "currency": "EUR",
        "customer": {"id": f"c-{number:08d}", "mail": "ann@example.com", "country": "DE"},
        "lines": [{"sku": f"sku-{line}", "quantity": line + 1, "cents": 1999} for line in range(4)],
        "note": _NOTE * 6 + "Thanks!",
        "order": f"o-{number:08d}",
        "refundable": True,
    }


@contextmanager
def fresh_path(folder: Path, name: str) -> Generator[Path]:
    """Give the path of a database that is gone afterwards."""
    with TemporaryDirectory(dir=folder, prefix=f"{name}-") as place:
        yield Path(place) / f"{name}.db"


def stored_bytes(path: Path) -> int:
    """Return the bytes of a database that hold data, after everything moved out of its log."""
    connection = sqlite3.connect(path)
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    connection.close()
    return (pages - free) * size
