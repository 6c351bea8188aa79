"""`sayso.toml` and the environment, read once into frozen settings that build everything else.

Nothing is discovered: a policy, a store or a person exists because a file names it.
"""

import importlib
import os
import pwd
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from sayso.approvals import Person
from sayso.audit import CheckpointFile, Signer
from sayso.clock import Clock
from sayso.errors import ConfigError
from sayso.inbox import Inbox
from sayso.policy import Policy
from sayso.stores import Store, open_store

FILE = "sayso.toml"


@checked(frozen=True, kw_only=True, config={"extra": "forbid", "strict": True})
class PersonSettings:
    """Somebody who may decide.

    Args:
        groups: The groups they belong to.
        os_user: Their login on this machine; their own name by default.
        totp: Their one-time password secret in base 32, or `env:NAME` to read it from there.
    """

    groups: list[str] = field(default_factory=list[str])
    os_user: str = ""
    totp: str = ""


@checked(frozen=True, kw_only=True, config={"extra": "forbid", "strict": True})
class Settings:
    """Everything `sayso.toml` can say.

    Args:
        store: The store's URL or path.
        policy: A policy file, or `package.module:name` of a `Policy` in Python.
        audit_key: The file of the key that signs checkpoints; beside the store by default.
        checkpoints: The file of the checkpoints; beside the store by default.
        people: Who may decide, by id; empty lets every user of this machine decide.
    """

    store: str = "sayso.db"
    policy: str = ""
    audit_key: str = ""
    checkpoints: str = ""
    people: dict[str, PersonSettings] = field(default_factory=dict[str, PersonSettings])


_SETTINGS = TypeAdapter(Settings)
_PATHS = frozenset({"store", "policy", "audit_key", "checkpoints"})
_VARIABLES = {
    "SAYSO_STORE": "store",
    "SAYSO_POLICY": "policy",
    "SAYSO_AUDIT_KEY": "audit_key",
    "SAYSO_CHECKPOINTS": "checkpoints",
}


def load(path: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings; the environment beats the file.

    Paths in the file are relative to its folder, those in the environment to the current one.

    Args:
        path: The file; `sayso.toml` in the current folder by default, if there is one.
        environment: The variables `SAYSO_STORE`, `SAYSO_POLICY`, `SAYSO_AUDIT_KEY` and
            `SAYSO_CHECKPOINTS`; the process's own by default.

    Raises:
        ConfigError: The file is missing or wrong; names every mistake.
    """
    file = path or Path(FILE)
    found: dict[str, object] = {}
    if path is not None or file.exists():
        found = _beside(file.parent, _read(file))
    variables = os.environ if environment is None else environment
    found |= {name: variables[key] for key, name in _VARIABLES.items() if variables.get(key)}
    try:
        return _SETTINGS.validate_python(found, strict=False)  # strict would take a Settings instance only
    except ValidationError as error:
        raise ConfigError(_mistakes(error, file), hint="mend the settings and try again") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the settings build.

    Args:
        store: The open store.
        policy: The policy, when one is named.
        inbox: The person's door.
        signer: What signs checkpoints.
        checkpoints: Where they are kept.
    """

    store: Store
    policy: Policy | None
    inbox: Inbox
    signer: Signer | None
    checkpoints: CheckpointFile | None


def build(settings: Settings, *, clock: Clock | None = None, migrate: bool = True) -> Parts:
    """Open the store and build everything on it.

    Raises:
        ConfigError: A setting names something that is not there.
        StoreError: The store cannot be opened.
    """
    policy = load_policy(settings.policy) if settings.policy else None
    totp = {name: _secret(name, person.totp) for name, person in settings.people.items() if person.totp}
    store = open_store(settings.store, clock=clock, migrate=migrate)
    inbox = Inbox(store=store, policy=policy, totp=totp)
    signer = checkpoints = None
    base = settings.store.removeprefix("sqlite:///")
    if base != ":memory:":
        signer = Signer.from_file(Path(settings.audit_key or f"{base}.key"))
        checkpoints = CheckpointFile(Path(settings.checkpoints or f"{base}.checkpoints"))
    return Parts(store=store, policy=policy, inbox=inbox, signer=signer, checkpoints=checkpoints)


def load_policy(name: str) -> Policy:
    """Return the policy a setting names: a file, or `package.module:name`.

    Raises:
        ConfigError: There is no such file, module or policy.
        PolicyError: The file has mistakes.
    """
    module, separator, attribute = name.partition(":")
    if separator and not Path(name).exists():
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"the policy `{name}` cannot be loaded: {error}", hint="name `package.module:policy`"
            ) from error
        if not isinstance(found, Policy):
            raise ConfigError(
                f"`{name}` is a {type(found).__name__}, not a Policy", hint="name the Policy itself"
            )
        return found
    if not Path(name).exists():
        raise ConfigError(
            f"there is no policy file `{name}`", hint="write one, or mend `policy` in sayso.toml"
        )
    return Policy.from_file(Path(name))


def local_person(settings: Settings, *, via: str = "cli") -> Person:
    """Return the person at this terminal: the user the operating system says they are.

    Raises:
        ConfigError: People are listed, and this user is none of them.
    """
    login = pwd.getpwuid(os.getuid()).pw_name
    session = f"{os.getsid(0)}"
    if not settings.people:
        return Person(id=login, via=via, session=session)
    for name, person in settings.people.items():
        if (person.os_user or name) == login:
            return Person(id=name, groups=frozenset(person.groups), via=via, session=session)
    raise ConfigError(
        f"the user `{login}` is none of the people in sayso.toml",
        hint=f'add them: [people.{login}] groups = ["..."]',
    )


def _read(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"`{file}` cannot be read: {error.strerror}", hint="check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"`{file}` is not valid TOML: {error}", hint="mend the line it names") from error


def _beside(folder: Path, found: dict[str, object]) -> dict[str, object]:
    """Make the relative paths of a settings file relative to its folder."""
    if folder == Path():
        return found
    named: dict[str, object] = {"store": Settings.store} | found
    return {name: _path_from(folder, value) if name in _PATHS else value for name, value in named.items()}


def _path_from(folder: Path, value: object) -> object:
    if not isinstance(value, str) or not value or value == ":memory:":
        return value
    if value.startswith("sqlite:///"):
        return f"sqlite:///{folder / value.removeprefix('sqlite:///')}"
    is_python = ":" in value and not (folder / value).exists()
    return value if is_python else str(folder / value)


def _mistakes(error: ValidationError, file: Path) -> str:
    lines: list[str] = []
    known = ["store", "policy", "audit_key", "checkpoints", "people", "groups", "os_user", "totp"]
    for mistake in error.errors():
        path = ".".join(str(part) for part in mistake["loc"])
        if mistake["type"] == "unexpected_keyword_argument":
            near = get_close_matches(str(mistake["loc"][-1]), known, n=1)
            lines.append(f"`{path}` is no setting" + (f", did you mean `{near[0]}`?" if near else ""))
        else:
            lines.append(f"`{path}`: {mistake['msg'].lower()}, got {cast('object', mistake['input'])!r}")
    return f"`{file}`: " + "; ".join(lines)


def _secret(name: str, value: str) -> str:
    if not value.startswith("env:"):
        return value
    variable = value.removeprefix("env:")
    if variable not in os.environ:
        raise ConfigError(
            f"the variable `{variable}` with the totp secret of `{name}` is not set", hint="set it"
        )
    return os.environ[variable]
