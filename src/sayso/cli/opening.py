"""Opening what a command works on: the settings, the store, the inbox and the person at the terminal."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sayso.approvals import Person
from sayso.config import Parts, Settings, build, load, local_person
from sayso.errors import StoreUnavailable
from sayso.inbox import Inbox
from sayso.stores import Store, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What a person who decides works with.

    Args:
        settings: What the settings say.
        inbox: The person's door.
        person: Who sits here, as the operating system knows them.
    """

    settings: Settings
    inbox: Inbox
    person: Person


def settings_for(config: Path | None, store: str | None) -> Settings:
    """Return the settings, with the store that was named on the command line.

    Raises:
        ConfigError: The settings are wrong.
    """
    settings = load(config)
    return replace(settings, store=store) if store else settings


@contextmanager
def reading(config: Path | None, store: str | None) -> Generator[Inbox]:
    """Open the store for a command that looks: without policy, keys or people.

    Raises:
        StoreUnavailable: There is no store yet.
        StoreError: It cannot be opened.
    """
    opened = _open(settings_for(config, store))
    try:
        yield Inbox(store=opened)
    finally:
        opened.close()


@contextmanager
def deciding(config: Path | None, store: str | None) -> Generator[Desk]:
    """Open everything for a command that decides.

    Raises:
        ConfigError: The settings are wrong, or the person is none of those who may decide.
        StoreError: The store cannot be opened.
    """
    settings = settings_for(config, store)
    person = local_person(settings)
    with building(settings) as parts:
        yield Desk(settings=settings, inbox=parts.inbox, person=person)


@contextmanager
def building(settings: Settings) -> Generator[Parts]:
    """Build everything that the settings name, on a store that is there.

    Raises:
        StoreUnavailable: There is no store yet.
        ConfigError: A setting names something that is not there.
    """
    check_exists(settings)
    parts = build(settings, migrate=False)
    try:
        yield parts
    finally:
        parts.store.close()


def check_exists(settings: Settings) -> None:
    """Check that the store is there: a mistyped path must not look like an empty inbox.

    Raises:
        StoreUnavailable: It is not.
    """
    path = store_path(settings)
    if path is not None and not path.exists():
        raise StoreUnavailable(
            f"there is no store at `{path}`",
            hint="an agent makes it when it first asks; or check --store, SAYSO_STORE and sayso.toml",
        )


def store_path(settings: Settings) -> Path | None:
    """Return the file of the store, or None when it is not a file."""
    path = settings.store.removeprefix("sqlite:///")
    return None if path == ":memory:" or "://" in path else Path(path)


def _open(settings: Settings) -> Store:
    check_exists(settings)
    return open_store(settings.store, migrate=False)
