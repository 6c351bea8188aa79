"""The file of checkpoints and the key that signs them."""

import stat
import threading
from pathlib import Path

import pytest

from sayso.audit import CheckpointFile, Signer, make_checkpoint
from sayso.errors import ConfigError, StoreDamaged
from tests.builders import T0
from tests.guarantees import guarantee
from tests.unit.audit.test_verification import LIFE, log


def test_a_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    first = Signer.from_file(tmp_path / "key")
    assert Signer.from_file(tmp_path / "key").key == first.key
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["key"]


def test_signers_that_start_at_once_share_one_key(tmp_path: Path) -> None:
    keys: list[str] = []
    start = threading.Barrier(2)

    def sign() -> None:
        start.wait()
        keys.append(Signer.from_file(tmp_path / "key").key)

    threads = [threading.Thread(target=sign) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(keys) == 2
    assert len(set(keys)) == 1


@pytest.mark.parametrize(
    "content", ["", "not a key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_a_file_that_is_no_key_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "key").write_text(content)
    with pytest.raises(ConfigError, match="key"):
        Signer.from_file(tmp_path / "key")


def test_a_key_of_another_kind_is_named(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - the only use
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # noqa: PLC0415 - as above

    pem = X25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "key").write_bytes(pem)
    with pytest.raises(ConfigError, match="is not an Ed25519 key"):
        Signer.from_file(tmp_path / "key")


def test_a_key_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        Signer.from_file(tmp_path / "missing" / "key")


def test_checkpoints_are_read_back_in_order(tmp_path: Path) -> None:
    file, by = CheckpointFile(tmp_path / "checkpoints"), Signer.from_file(tmp_path / "key")
    assert file.read() == []
    first = make_checkpoint(None, log(*LIFE)[:2], T0, by)
    second = make_checkpoint(first, log(*LIFE)[2:], T0, by)
    file.append(first)
    file.append(second)
    assert file.read() == [first, second]


@guarantee("G9")
def test_a_line_that_a_crash_cut_off_is_passed_over_and_replaced(tmp_path: Path) -> None:
    file, by = CheckpointFile(tmp_path / "checkpoints"), Signer.from_file(tmp_path / "key")
    first = make_checkpoint(None, log(*LIFE)[:2], T0, by)
    second = make_checkpoint(first, log(*LIFE)[2:], T0, by)
    file.append(first)
    whole = file.path.read_bytes()
    file.append(second)
    file.path.write_bytes(file.path.read_bytes()[:-20])
    assert file.read() == [first]
    file.append(second)
    assert file.read() == [first, second]
    assert file.path.read_bytes().startswith(whole)


@guarantee("G7")
@pytest.mark.parametrize("line", ["{}", "[]", "nonsense", '{"number": 1}'])
def test_a_line_that_is_no_checkpoint_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "checkpoints").write_text(line + "\n")
    with pytest.raises(StoreDamaged, match="line 1 of"):
        CheckpointFile(tmp_path / "checkpoints").read()
