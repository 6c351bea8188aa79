"""Ed25519-signed checkpoints over all chains, kept in a file beside the store.

A chain alone cannot show that its tail was cut off. A checkpoint fixes how many entries
there were and a root over every one of them; entries that vanish later no longer match.
Whoever holds both the store and the signing key can forge both, so keep the key elsewhere
where that matters (`SAYSO_AUDIT_KEY`).
"""

import os
import secrets
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fcntl import LOCK_EX, flock
from hashlib import sha256
from pathlib import Path
from typing import cast

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sayso.audit.chain import Entry
from sayso.clock import Millis
from sayso.errors import ConfigError, StoreDamaged


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A signed statement that the log up to `seq` was exactly this.

    Args:
        number: Its place in the file, from 1.
        seq: The last entry it covers.
        entries: How many entries there are up to that one.
        root: The hash over the previous root and all entry hashes since, in hexadecimal.
        previous: The SHA-256 of the previous checkpoint's line, in hexadecimal.
        at: When it was made, in milliseconds since the epoch.
        key: The public key, in hexadecimal.
        signature: The Ed25519 signature over all other fields, in hexadecimal.
    """

    number: int
    seq: int
    entries: int
    root: str
    previous: str
    at: Millis
    key: str
    signature: str = ""

    def signed_bytes(self) -> bytes:
        """Return what the signature is over."""
        return b"sayso checkpoint v1\n" + _dump(replace(self, signature=""))

    def is_signed_by(self, key: str) -> bool:
        """Return whether the signature was made with the private half of `key` (hexadecimal)."""
        try:
            public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
            public.verify(bytes.fromhex(self.signature), self.signed_bytes())
        except (InvalidSignature, ValueError):
            return False
        return self.key == key


class Signer:
    """Signs checkpoints with an Ed25519 key kept in a file that only its owner can read."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        raw = private.public_key().public_bytes_raw()
        self.key = raw.hex()

    @classmethod
    def from_file(cls, path: Path) -> "Signer":
        """Read the key, making one on first use.

        Raises:
            ConfigError: The file cannot be made or does not hold an Ed25519 key.
        """
        try:
            if not path.exists():
                _write_new_key(path)
            private = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"the audit key `{path}` cannot be used: {error}",
                hint="name a readable Ed25519 key in PEM form, or a path where one can be made",
            ) from error
        if not isinstance(private, Ed25519PrivateKey):
            raise ConfigError(f"`{path}` is not an Ed25519 key", hint="remove it to have one made")
        return cls(private)

    def sign(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return the checkpoint with its signature."""
        keyed = replace(checkpoint, key=self.key, signature="")
        return replace(keyed, signature=self._private.sign(keyed.signed_bytes()).hex())


class CheckpointFile:
    """The checkpoints of one store, one JSON object a line, only ever appended to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Checkpoint]:
        """Return all checkpoints.

        Raises:
            StoreDamaged: A line is not a checkpoint.
        """
        if not self.path.exists():
            return []
        found: list[Checkpoint] = []
        whole = self.path.read_bytes()
        # A line without an end was cut off by a crash; the next one takes its place.
        for number, line in enumerate(whole[: whole.rfind(b"\n") + 1].splitlines(), start=1):
            try:
                found.append(Checkpoint(**cast("dict[str, str]", orjson.loads(line))))  # pyright: ignore[reportArgumentType] - checked by its signature
            except (ValueError, TypeError) as error:
                raise StoreDamaged(
                    f"line {number} of `{self.path}` is not a checkpoint: {error}",
                    hint="restore the file from a backup",
                ) from error
        return found

    @contextmanager
    def held(self) -> Generator[None]:
        """Keep every other process from adding a checkpoint meanwhile."""
        with self.path.open("ab") as file:
            flock(file, LOCK_EX)
            yield

    def append(self, checkpoint: Checkpoint) -> None:
        """Write one checkpoint and wait until it is on disk."""
        with self.path.open("ab") as file:
            file.truncate(self.path.read_bytes().rfind(b"\n") + 1)
            file.write(_dump(checkpoint) + b"\n")
            file.flush()
            os.fsync(file.fileno())


def line_hash(checkpoint: Checkpoint | None) -> str:
    """Return what the next checkpoint names as its predecessor."""
    return sha256(_dump(checkpoint)).hexdigest() if checkpoint else ""


def next_root(root: str, hashes: Iterable[bytes]) -> str:
    """Return the root after more entries: SHA-256 over the last root and their hashes."""
    running = sha256(bytes.fromhex(root))
    for each in hashes:
        running.update(each)
    return running.hexdigest()


def make_checkpoint(last: Checkpoint | None, entries: list[Entry], at: Millis, signer: Signer) -> Checkpoint:
    """Sign the state of the log after `entries`, which follow the last checkpoint in order."""
    return signer.sign(
        Checkpoint(
            number=last.number + 1 if last else 1,
            seq=entries[-1].seq,
            entries=(last.entries if last else 0) + len(entries),
            root=next_root(last.root if last else "", (entry.hash for entry in entries)),
            previous=line_hash(last),
            at=at,
            key=signer.key,
        )
    )


def _write_new_key(path: Path) -> None:
    pem = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        with suppress(FileExistsError):  # another process was faster, and its key counts
            os.link(fresh, path)
    finally:
        fresh.unlink()


def _dump(checkpoint: Checkpoint) -> bytes:
    return orjson.dumps(checkpoint)
