"""Two decisions of each message by Spark: row by row the difference of two runs of the tests' own resolver."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from routing.analysis.diff.affected import find_affected
from routing.analysis.diff.sides import OneSide, Sides
from routing.config import Location
from routing.plan.options import Options
from routing.schemas import EXAMPLES, INPUTS, KEY_CHANGES, MESSAGE_CHANGES
from routing.storage.columns import Columns, is_frame
from routing.storage.keeping import Keeper
from routing.storage.times import micros_of
from tests.frames import frame_of, frames, rows_of
from tests.plans import main_paths
from tests.random_estates import assert_same
from tests.reference import estate_words as words
from tests.reference.altered import altered
from tests.reference.differing import both, has_changed
from tests.reference.estates import joined, random_estate
from tests.spark.test_plan_law import breaches
from tests.stored import store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from routing.analysis.diff.comparing import Changed
    from tests.reference.resolver import Tables

ESTATES, MESSAGES, SEED = 60, 40, 23
EARLY, LATE = words.MOMENTS[1], words.MOMENTS[5]
SHOWN = 3
ENDS = ("outcome_before", "reason_before", "outcome_after", "reason_after")
SETTINGS = ("routes", "databases", "services", "instances", "route_requests")


class Estates(NamedTuple):
    """Two configurations for the messages of the first, when each decides, and what must come out."""

    before: Tables
    after: Tables
    as_of: tuple[datetime, datetime]
    expected: list[dict[str, Any]]

    @property
    def sides(self) -> tuple[OneSide, OneSide]:
        """The configurations as columns."""
        return side("A", self.before, self.as_of[0]), side("B", self.after, self.as_of[1])


def side(label: str, tables: Tables, at: datetime) -> OneSide:
    """A configuration as columns."""
    return OneSide(label, micros_of(at), {key: Columns.of_rows(tables[key], INPUTS[key]) for key in SETTINGS})


@cache
def draw(seed: int, as_of: tuple[datetime, datetime], estates: int = ESTATES) -> Estates:
    """Random estates, each beside an altered one."""
    rng = random.Random(seed)
    drawn = [random_estate(rng, MESSAGES, f"e{number}/") for number in range(estates)]
    before, after = joined(drawn), joined([altered(rng, estate) for estate in drawn])
    return Estates(before, after, as_of, both(before, after, as_of))


class Traffic(NamedTuple):
    """Messages and dialogs."""

    messages: DataFrame
    dialogs: DataFrame


def traffic_of(spark: SparkSession, estates: Estates, folder: Path | None = None) -> Traffic:
    """Messages and dialogs as frames; with a folder the messages as a Delta table, so that plans show it."""
    given = frames(spark, estates.before)
    messages = given["messages"]
    if folder is not None:
        messages = spark.read.format("delta").load(str(store(messages, folder)))
    return Traffic(messages, given["dialogs"])


def decided(spark: SparkSession, estates: Estates, traffic: Traffic, keeper: Keeper) -> DataFrame:
    """Every message with both decisions."""
    from routing.messages import changes, validate
    from routing.messages.compiling import compile_messages
    from routing.runs.stages import Untimed
    from routing.storage.conform import conform

    before, after = estates.sides
    known = validate.check(validate.Inputs(before.settings, conform(traffic.dialogs, "dialogs")))
    messages = conform(traffic.messages, "messages")
    sides = [
        compile_messages(messages, checked, Options("diff", as_of=as_of), keeper, Untimed())
        for checked, as_of in zip((known, known.with_settings(after.settings)), estates.as_of, strict=True)
    ]
    return changes.decide_sides(messages, *sides)


class Decided(NamedTuple):
    """Estates, every message of theirs with both decisions, and where the messages lie."""

    estates: Estates
    rows: DataFrame
    messages: str


@pytest.fixture(scope="module")
def every(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Decided]:
    """Decided once, for what comes out and for how."""
    estates, folder = draw(SEED, (EARLY, LATE)), tmp_path_factory.mktemp("decided") / "messages"
    with Keeper() as keeper:
        traffic = traffic_of(spark, estates, folder)
        yield Decided(estates, decided(spark, estates, traffic, keeper), str(folder))


@pytest.mark.core
def test_both_decisions_are_those_of_two_runs(every: Decided) -> None:
    _assert_much_changes(every.estates.expected)
    assert every.rows.columns == MESSAGE_CHANGES.names
    assert_same(rows_of(every.rows), every.estates.expected, "decisions")


def _assert_much_changes(rows: list[dict[str, Any]]) -> None:
    """The estates reach what could go wrong: on either side alone, and twins."""
    seen = Counter(tuple(row[name] for name in ENDS) for row in rows if has_changed(row))
    for end in (
        ("REJECTED", "UNKNOWN_INSTANCE"),
        ("REJECTED", "UNKNOWN_DATABASE"),
        ("DELAYED", "ROUTE_REQUESTED"),
        ("DELAYED", "SCOPE_BROKER_DISABLED"),
        ("SENT", "TRANSPORT_ADDRESS"),
        ("FORWARDED", "NETWORK_ADDRESS"),
        ("DELIVERED", "LOCAL_SERVICE"),
    ):
        assert any(ends[:2] == end != ends[2:] for ends in seen), end
        assert any(ends[:2] != end == ends[2:] for ends in seen), end
    codes = {(ends[1], ends[3]) for ends in seen if ends[0] == ends[2] == "REJECTED"}
    assert any("MISSING" in before and "UNKNOWN" in after for before, after in codes)
    ids = Counter((row["instance_name"], row["message_id"]) for row in rows if has_changed(row))
    assert max(ids.values()) > 1


@pytest.mark.parametrize(
    "as_of",
    [
        pytest.param((EARLY, EARLY), id="one time", marks=pytest.mark.long),
        pytest.param((EARLY, LATE), id="two times", marks=[pytest.mark.core, pytest.mark.long]),
    ],
)
def test_changes_are_counted_shown_and_written(
    spark: SparkSession, tmp_path: Path, as_of: tuple[datetime, datetime]
) -> None:
    estates = draw(SEED, as_of)
    expected = [row for row in estates.expected if has_changed(row)]
    out = Location(str(store(frame_of(spark, estates.expected[:1], MESSAGE_CHANGES), tmp_path / "changes")))
    with Keeper() as keeper:
        changed = compared(spark, estates, keeper, out)
    assert changed.compared == len(estates.before["messages"])
    assert_same([*map(dict, changed.groups)], _count(expected), "groups")
    assert_same([*map(dict, changed.examples)], _lowest(expected), "examples")
    assert_same(rows_of(spark.read.format("delta").load(out.text)), expected, "table of changes")


def compared(spark: SparkSession, estates: Estates, keeper: Keeper, out: Location | None = None) -> Changed:
    """What changes; at one time of what may change alone."""
    from routing.analysis.diff import by_spark

    sides = Sides(*estates.sides)
    affected = find_affected(sides).filters if sides.is_one_time else None
    traffic = by_spark.Traffic(*traffic_of(spark, estates))
    return by_spark.compare(traffic, sides.both, Options("diff"), keeper, [], affected=affected, out=out)


def _count(changed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = [name for name in KEY_CHANGES.names if name != "messages"]
    arrivals = ({**row, "database_name": row["database_name"] or None} for row in changed)
    counted = Counter(tuple(row[name] for name in names) for row in arrivals)
    return [{**dict(zip(names, key, strict=True)), "messages": count} for key, count in counted.items()]


def _lowest(changed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_ends: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in sorted(changed, key=_place):
        by_ends.setdefault(tuple(row[name] for name in ENDS), []).append(row)
    assert any(len(rows) > SHOWN for rows in by_ends.values())
    return [{name: row[name] for name in EXAMPLES.names} for rows in by_ends.values() for row in rows[:SHOWN]]


def _place(row: dict[str, Any]) -> list[tuple[bool, str]]:
    return [
        (row[name] is not None, row[name] or "") for name in ("instance_name", "message_id", "conversation_id")
    ]


@pytest.mark.long
def test_a_configuration_does_not_differ_from_itself(spark: SparkSession, tmp_path: Path) -> None:
    from routing.analysis.diff import by_spark

    estates = draw(SEED + 1, (EARLY, EARLY), 20)
    same = estates._replace(after=estates.before)
    out = Location(str(tmp_path / "changes"))
    with Keeper() as keeper:
        traffic = by_spark.Traffic(*traffic_of(spark, estates))
        # Told that nothing can change, and not told so.
        found = [
            compared(spark, same, keeper, out),
            by_spark.compare(traffic, same.sides, Options("diff"), keeper, []),
        ]
        for changed in found:
            assert (changed.groups, changed.examples) == ([], [])
            assert is_frame(changed.messages)
            assert changed.messages.columns == MESSAGE_CHANGES.names
            assert changed.messages.count() == 0
            assert changed.compared == len(estates.before["messages"])


@pytest.mark.core
@pytest.mark.classic
def test_between_scan_and_write_nothing_is_exchanged_or_sorted(every: Decided) -> None:
    from routing.messages import changes

    changed = changes.find_changed(every.rows)
    (planned,) = main_paths(changed, every.messages)
    rows = rows_of(changed)
    (path,) = main_paths(changed, every.messages)
    assert breaches(planned) == breaches(path) == []
    # Of each side the services, brokers and the plan; the dialogs once.
    assert path.count("BroadcastHashJoin") >= 7
    counted, shown = changes.count_changed(changed), changes.find_examples(changed, SHOWN)
    (counting,) = main_paths(counted, every.messages)
    assert [name for name in counting if "Aggregate" in name] == ["HashAggregate", "HashAggregate"]
    (showing,) = main_paths(shown, every.messages)
    assert showing.count("WindowGroupLimit") == 2
    assert showing.index("WindowGroupLimit") < showing.index("Exchange")
    assert_same(rows, [row for row in every.estates.expected if has_changed(row)], "changes")
