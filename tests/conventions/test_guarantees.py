"""The manifest of guarantees and the tests that prove them hold each other."""

from pathlib import Path

import pytest

from tests.guarantees import BY_ID, GUARANTEES, Guarantee, guarantee
from tests.proofs import Proof, proofs

ROOT = Path(__file__).parents[2]
PROOFS = proofs(ROOT)


@pytest.mark.parametrize("promised", [each for each in GUARANTEES if each.reached], ids=lambda each: each.id)
def test_a_guarantee_that_is_reached_has_a_test(promised: Guarantee) -> None:
    proven = [each for each in PROOFS if each.guarantee == promised.id]
    assert proven, f'mark the tests that prove it with @guarantee("{promised.id}")'


@pytest.mark.parametrize(
    "promised", [each for each in GUARANTEES if not each.reached], ids=lambda each: each.id
)
def test_a_guarantee_that_tests_prove_is_said_to_be_reached(promised: Guarantee) -> None:
    proven = [each for each in PROOFS if each.guarantee == promised.id]
    assert not proven, f"empty `not_reached` of {promised.id} in tests/guarantees.py"


def test_every_mark_names_a_guarantee() -> None:
    assert {each.guarantee for each in PROOFS} <= BY_ID.keys()


def test_no_id_is_given_twice() -> None:
    assert len(BY_ID) == len(GUARANTEES)


def test_a_mark_for_what_nobody_promised_is_refused() -> None:
    with pytest.raises(ValueError, match="no guarantee `G99`"):
        guarantee("G99")


def test_marks_are_read_from_functions_classes_and_modules(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(
        'pytestmark = [pytest.mark.slow, guarantee("G1")]\n'
        '@pytest.mark.guarantee("G2")\n@guarantee("G3")\ndef test_one_thing(): ...\n'
        '@guarantee("G4")\nclass TestMany:\n    async def test_another(self): ...\n'
        '@guarantee("G5")\ndef helper(): ...\n',
        "utf-8",
    )
    found = proofs(tmp_path)
    assert [(each.test, each.guarantee) for each in found] == [
        ("test_one_thing", "G1"),
        ("test_one_thing", "G3"),
        ("test_one_thing", "G2"),
        ("test_another", "G1"),
        ("test_another", "G4"),
    ]
    assert found[0] == Proof(guarantee="G1", file="tests/test_it.py", test="test_one_thing")
    assert found[0].sentence == "one thing"
