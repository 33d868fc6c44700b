"""Mutants of the engines' own versions of functions, and of rejections."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_BY_ARROW, _BY_SPARK = ("tests/unit/test_arrow_forms.py",), ("tests/spark/test_spark_forms.py",)

MUTANTS = (
    Mutant(
        name="greatest-integer-is-none",
        rule="tables.md: an INT is one of 32 bits, the greatest included",
        file="routing/rules/rejecting.py",
        before="return least <= number <= most",
        after="return least <= number < most",
    ),
    Mutant(
        name="arrow-least-integer-is-none",
        rule="tables.md: an INT is one of 32 bits, the least included",
        file="routing/tables/arrow_forms.py",
        before="pc.greater_equal(numbers, least)",
        after="pc.greater(numbers, least)",
        tests=_BY_ARROW,
    ),
    Mutant(
        name="arrow-last-attempt-of-one-more",
        rule="current_routes: a row that a later attempt has replaced is left out",
        file="routing/tables/arrow_forms.py",
        before='is_last = pc.equal(both["attempt"], pc.coalesce(both["attempt_max"], both["attempt"]))',
        after='is_last = pc.greater_equal(both["attempt"], 1)',
        tests=_BY_ARROW,
    ),
    Mutant(
        name="spark-first-attempt-stands",
        rule="current_routes: a row that a later attempt has replaced is left out",
        file="routing/tables/spark_forms.py",
        before='F.max("attempt").alias("last_attempt")',
        after='F.min("attempt").alias("last_attempt")',
        tests=_BY_SPARK,
    ),
    Mutant(
        name="spark-empty-text-is-there",
        rule="rejected_messages: empty text in a required column is missing",
        file="routing/tables/spark_forms.py",
        before='value.isNull() | (value == "") if kind',
        after="value.isNull() if kind",
        tests=_BY_SPARK,
    ),
)
