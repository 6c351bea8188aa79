"""Settings: read once, every mistake named, and nothing that is not written down."""

import os
import pwd
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sayso import ManualClock
from sayso.config import Settings, build, load, load_policy, local_person
from sayso.errors import ConfigError, PolicyError, SchemaTooOld, StoreError
from tests.builders import ANN, POLICY, action

ME = pwd.getpwuid(os.getuid()).pw_name


def written(folder: Path, text: str) -> Path:
    path = folder / "sayso.toml"
    path.write_text(text)
    return path


def test_without_a_file_the_settings_are_the_usual_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(environment={}) == Settings()


def test_a_file_in_the_folder_is_read_and_the_environment_beats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(
        tmp_path, 'store = "a.db"\npolicy = "p.yaml"\n[people.ann]\ngroups = ["travel"]\ntotp = "env:X"\n'
    )
    settings = load(environment={"SAYSO_STORE": "b.db", "SAYSO_POLICY": "", "HOME": "/"})
    assert (settings.store, settings.policy) == ("b.db", "p.yaml")
    assert settings.people["ann"].groups == ["travel"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('stroe = "a.db"', "`stroe` is no setting, did you mean `store`"),
        ("store = 7", r"`store`.*got 7"),
        ('[people.ann]\ngroups = "travel"', r"people\.ann\.groups"),
        ("[people.ann]\ngroups = [1]", r"people\.ann\.groups\.0"),
        ('[people.ann]\ntopt = "x"', "did you mean `totp`"),
        ("store = ", "is not valid TOML"),
        ("\xff", "is not valid TOML"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "sayso.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=words) as caught:
        load(path, environment={})
    assert str(path) in caught.value.message


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, "store = 1\npolicy = 2\nother = 3\n"), environment={})
    for name in ("store", "policy", "other"):
        assert f"`{name}`" in caught.value.message


def test_a_file_that_was_named_and_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "missing.toml", environment={})


def test_the_settings_build_store_policy_inbox_and_checkpoints(tmp_path: Path) -> None:
    policy = tmp_path / "sayso.yaml"
    policy.write_text("tools:\n  book_flight: irreversible\n")
    settings = Settings(store=str(tmp_path / "s.db"), policy=str(policy))
    parts = build(settings, clock=ManualClock())
    assert parts.policy is not None
    assert parts.policy.judge(action()).terms is not None
    assert parts.inbox.store is parts.store
    assert parts.signer is not None
    assert parts.checkpoints is not None
    assert parts.checkpoints.path == tmp_path / "s.db.checkpoints"
    assert (tmp_path / "s.db.key").exists()
    parts.store.close()


@pytest.mark.parametrize("store", [":memory:", "sqlite:///:memory:"])
def test_a_store_in_memory_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    monkeypatch.chdir(tmp_path)
    parts = build(Settings(store=store))
    parts.store.close()
    assert parts.signer is None
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        build(Settings(store=str(tmp_path / "missing" / "s.db")))
    with pytest.raises(ConfigError, match="no store is called `postgres`"):
        build(Settings(store="postgres://host/db"))
    assert SchemaTooOld.code == "schema_too_old"


def test_a_totp_secret_can_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, 'store = ":memory:"\n[people.ann]\ntotp = "env:SAYSO_TEST_SECRET"\n')
    with pytest.raises(ConfigError, match="`SAYSO_TEST_SECRET` with the totp secret of `ann` is not set"):
        build(load(path, environment={}))
    monkeypatch.setenv("SAYSO_TEST_SECRET", "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")
    build(load(path, environment={})).store.close()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module with a policy in it."""
    (tmp_path / "rules_of_test.py").write_text("from tests.builders import POLICY\nother = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))  # pyright: ignore[reportUnknownMemberType] - pytest's own types
    yield "rules_of_test"
    sys.modules.pop("rules_of_test", None)


def test_a_policy_can_be_named_in_python(module: str) -> None:
    assert load_policy(f"{module}:POLICY") is POLICY
    with pytest.raises(ConfigError, match="is a int, not a Policy"):
        load_policy(f"{module}:other")
    for name in (f"{module}:missing", "no_such_module:policy"):
        with pytest.raises(ConfigError, match="cannot be loaded"):
            load_policy(name)


def test_a_policy_file_must_be_there_and_right(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no policy file"):
        load_policy(str(tmp_path / "missing.yaml"))
    (tmp_path / "bad.yaml").write_text("tolls: {}\n")
    with pytest.raises(PolicyError, match="tolls"):
        load_policy(str(tmp_path / "bad.yaml"))


def test_the_person_at_the_terminal_is_who_the_system_says() -> None:
    anyone = local_person(Settings())
    assert (anyone.id, anyone.via) == (ME, "cli")
    assert anyone.session


def test_a_listed_person_is_found_by_login(tmp_path: Path) -> None:
    text = f'[people.ann]\ngroups = ["travel"]\nos_user = "{ME}"\n'
    person = local_person(load(written(tmp_path, text), environment={}))
    assert (person.id, person.groups) == ("ann", frozenset({"travel"}))
    assert person.id == ANN.id


def test_where_people_are_listed_nobody_else_decides(tmp_path: Path) -> None:
    settings = load(
        written(tmp_path, '[people.somebody_else_entirely]\ngroups = ["travel"]\n'), environment={}
    )
    with pytest.raises(ConfigError, match=f"the user `{ME}` is none of the people"):
        local_person(settings)


@pytest.mark.parametrize(
    ("text", "store", "policy"),
    [
        ("", "{folder}/sayso.db", ""),
        ('store = "a.db"\npolicy = "p.yaml"', "{folder}/a.db", "{folder}/p.yaml"),
        (
            'store = "sqlite:///a.db"\npolicy = "package.rules:policy"',
            "sqlite:///{folder}/a.db",
            "package.rules:policy",
        ),
        ('store = "/elsewhere/a.db"', "/elsewhere/a.db", ""),
        ('store = ":memory:"', ":memory:", ""),
    ],
)
def test_paths_are_relative_to_the_file_that_names_them(
    tmp_path: Path, text: str, store: str, policy: str
) -> None:
    (tmp_path / "sayso.toml").write_text(text)
    settings = load(tmp_path / "sayso.toml", {})
    assert settings.store == store.format(folder=tmp_path)
    assert settings.policy == policy.format(folder=tmp_path)
    assert load(tmp_path / "sayso.toml", {"SAYSO_STORE": "mine.db"}).store == "mine.db"
