"""Where approvals are remembered. `open_store` is the only place that names a concrete store."""

from pathlib import Path

from sayso.clock import Clock, SystemClock
from sayso.errors import ConfigError
from sayso.stores.base import Alter, Notice, Open, Page, Step, Store, Write
from sayso.stores.memory import MemoryStore

__all__ = ["Alter", "Notice", "Open", "Page", "Step", "Store", "Write", "open_store"]


def open_store(url: str | Path = "sayso.db", *, clock: Clock | None = None, migrate: bool = True) -> Store:
    """Open a store, making it on first use.

    Args:
        url: A file path, `sqlite:///relative/or//absolute/path.db`, or `:memory:`.
        clock: What tells the store the time; the machine's clock by default.
        migrate: Whether to bring an older schema up to date; False raises instead.

    Raises:
        ConfigError: The URL names no store Sayso has.
        StoreError: The store cannot be opened, is locked, read-only, or of a newer schema.
    """
    text = str(url)
    scheme, separator, rest = text.partition("://")
    if separator and scheme != "sqlite":
        raise ConfigError(
            f"no store is called `{scheme}`", hint="use a file path, sqlite:///path.db or :memory:"
        )
    path = rest.removeprefix("/") if separator else text
    if path == ":memory:":
        return MemoryStore(clock=clock or SystemClock())
    if not path:
        raise ConfigError("the store's path is empty", hint="use a file path, sqlite:///path.db or :memory:")
    from sayso.stores.sqlite import SqliteStore  # noqa: PLC0415 - drivers load when they are used

    return SqliteStore(path, clock=clock or SystemClock(), migrate=migrate)
