"""Two decisions of each message by Spark: row by row the difference of two runs of the tests' own resolver."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from routing.schemas import MESSAGE_CHANGES
from tests.frames import frames, rows_of
from tests.reference import estate_words as words
from tests.reference.altered import altered
from tests.reference.differing import both, has_changed
from tests.reference.estates import joined, random_estate
from tests.spark.test_random_estates import assert_same

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from routing.messages.changes import Compiled
    from tests.reference.resolver import Tables

pytestmark = pytest.mark.core
ESTATES, MESSAGES, SEED = 120, 40, 23
EARLY, LATE = words.MOMENTS[1], words.MOMENTS[5]
MOST = 3
ENDS = ("outcome_before", "reason_before", "outcome_after", "reason_after")


class Estates(NamedTuple):
    """Two configurations for the messages of the first, when each decides, and what must come out."""

    before: Tables
    after: Tables
    as_of: tuple[datetime, datetime]
    expected: list[dict[str, Any]]


def draw(seed: int, as_of: tuple[datetime, datetime]) -> Estates:
    """Random estates, each beside an altered one."""
    rng = random.Random(seed)
    estates = [random_estate(rng, MESSAGES, f"e{number}/") for number in range(ESTATES)]
    before, after = joined(estates), joined([altered(rng, estate) for estate in estates])
    return Estates(before, after, as_of, both(before, after, as_of))


def compiled(spark: SparkSession, estates: Estates, keeper: Any) -> tuple[DataFrame, Compiled, Compiled]:
    """The messages, and how each side decides."""
    from routing.messages import changes, validate
    from routing.messages.job import Options
    from routing.storage.conform import conform

    tables = frames(spark, estates.before)
    messages = conform(tables["messages"], "messages")
    known = validate.check(validate.read(tables))
    others = frames(spark, {**estates.after, "messages": [], "dialogs": []})
    settings = validate.check(validate.read(others)).settings
    sides = [
        changes.compile_side(messages, checked, Options("diff", as_of=as_of), keeper, [])
        for checked, as_of in zip((known, known.with_settings(settings)), estates.as_of, strict=True)
    ]
    return messages, sides[0], sides[1]


@pytest.mark.parametrize("as_of", [(EARLY, EARLY), (EARLY, LATE)], ids=["one time", "two times"])
def test_both_decisions_are_those_of_two_runs(spark: SparkSession, as_of: tuple[datetime, datetime]) -> None:
    from routing.messages import changes
    from routing.storage.keeping import Keeper

    estates = draw(SEED, as_of)
    _assert_much_changes(estates.expected)
    with Keeper() as keeper:
        decided = changes.decide_sides(*compiled(spark, estates, keeper))
        assert decided.columns == MESSAGE_CHANGES.names
        assert_same(rows_of(decided), estates.expected, "decisions")
        changed = keeper.store(changes.find_changed(decided))
        expected = [row for row in estates.expected if has_changed(row)]
        assert_same(rows_of(changed), expected, "changes")
        _assert_counted(rows_of(changes.count_changed(changed)), expected)
        _assert_examples(rows_of(changes.find_examples(changed, MOST)), expected)


def _assert_much_changes(rows: list[dict[str, Any]]) -> None:
    """The estates reach what could go wrong: on either side alone, and twins."""
    seen = Counter(tuple(row[name] for name in ENDS) for row in rows if has_changed(row))
    for outcome, reason in (
        ("REJECTED", "UNKNOWN_INSTANCE"),
        ("REJECTED", "UNKNOWN_DATABASE"),
        ("DELAYED", "ROUTE_REQUESTED"),
        ("DELAYED", "SCOPE_BROKER_DISABLED"),
        ("SENT", "TRANSPORT_ADDRESS"),
        ("FORWARDED", "NETWORK_ADDRESS"),
        ("DELIVERED", "LOCAL_SERVICE"),
    ):
        assert any(key[:2] == (outcome, reason) != key[2:] for key in seen), (outcome, reason)
        assert any(key[:2] != (outcome, reason) == key[2:] for key in seen), (outcome, reason)
    codes = {(key[1], key[3]) for key in seen if key[0] == key[2] == "REJECTED"}
    assert any("MISSING" in before and "UNKNOWN" in after for before, after in codes)
    ids = Counter((row["instance_name"], row["message_id"]) for row in rows if has_changed(row))
    assert max(ids.values()) > 1


def _assert_counted(got: list[dict[str, Any]], changed: list[dict[str, Any]]) -> None:
    names = [name for name in got[0] if name != "messages"]
    counted = Counter(tuple(row[name] for name in names) for row in changed)
    assert {tuple(row[name] for name in names): row["messages"] for row in got} == counted
    assert len(got) == len(counted)


def _assert_examples(got: list[dict[str, Any]], changed: list[dict[str, Any]]) -> None:
    """Of each change the lowest messages, nothing below everything else."""
    by_ends: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in sorted(changed, key=_place):
        by_ends.setdefault(tuple(row[name] for name in ENDS), []).append(row)
    assert_same(got, [row for rows in by_ends.values() for row in rows[:MOST]], "examples")
    assert any(len(rows) > MOST for rows in by_ends.values())


def _place(row: dict[str, Any]) -> list[tuple[bool, Any]]:
    first = ("instance_name", "message_id", "conversation_id")
    names = (*first, *(name for name in MESSAGE_CHANGES.names if name not in (*first, *ENDS)))
    return [(row[name] is not None, "" if row[name] is None else row[name]) for name in names]


def test_a_configuration_does_not_differ_from_itself(spark: SparkSession) -> None:
    from routing.messages import changes
    from routing.storage.keeping import Keeper

    estates = draw(SEED + 1, (EARLY, EARLY))
    with Keeper() as keeper:
        decided = changes.decide_sides(*compiled(spark, estates._replace(after=estates.before), keeper))
        assert changes.find_changed(decided).count() == 0
        assert decided.count() == len(estates.before["messages"])
