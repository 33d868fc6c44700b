"""The list of mutants fits the code: it cannot rot unseen between two runs of ``make mutants``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS, RULE_BOOK
from tests.mutants.mutant import Mutant

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_its_file_once_and_leaves_valid_code(mutant: Mutant) -> None:
    assert mutant.applied(PROJECT) != (PROJECT / mutant.file).read_text(encoding="utf-8")


def test_names_and_changes_are_distinct() -> None:
    assert len(MUTANTS) >= 10
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.before, mutant.after, mutant.tests) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("part", RULE_BOOK)
def test_every_part_of_the_rule_book_is_broken_by_a_fast_mutant(part: str) -> None:
    assert [mutant.name for mutant in MUTANTS if part in mutant.breaks and mutant.is_fast]


def test_mutants_name_only_parts_of_the_rule_book() -> None:
    assert {part for mutant in MUTANTS for part in mutant.breaks} <= set(RULE_BOOK)
    assert len(RULE_BOOK) == len(set(RULE_BOOK)) >= 8 + 4 + 15 + 9


@pytest.mark.parametrize("test", sorted({test for mutant in MUTANTS for test in mutant.tests}))
def test_the_tests_that_must_fail_exist(test: str) -> None:
    assert (PROJECT / test.partition("::")[0]).exists()


def test_a_mutant_that_fits_twice_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rule.py").write_text("a = 1\na = 1\n", encoding="utf-8")
    twice = Mutant(name="twice", rule="none", file="rule.py", before="a = 1", after="a = 2")
    with pytest.raises(ValueError, match=r"2 times in rule\.py"):
        twice.applied(tmp_path)
