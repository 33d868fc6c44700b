"""The list of mutants fits the code: it cannot rot unseen between two runs of ``make mutants``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS, Mutant

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_stands_once_in_its_file_and_leaves_valid_code(mutant: Mutant) -> None:
    assert mutant.applied(PROJECT) != (PROJECT / mutant.file).read_text(encoding="utf-8")


def test_names_and_changes_are_distinct() -> None:
    assert len(MUTANTS) >= 10
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.before) for mutant in MUTANTS}) == len(MUTANTS)


def test_a_list_that_no_longer_fits_is_told(tmp_path: Path) -> None:
    (tmp_path / "rule.py").write_text("a = 1\na = 1\n", encoding="utf-8")
    twice = Mutant(name="twice", rule="none", file="rule.py", before="a = 1", after="a = 2")
    with pytest.raises(ValueError, match=r"2 times in rule\.py"):
        twice.applied(tmp_path)
