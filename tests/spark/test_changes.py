"""Two decisions of each message by Spark: row by row the difference of two runs of the tests' own resolver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from routing.config import TableLocation
from routing.plan.checked_inputs import ResolveOptions
from routing.result_schemas import MESSAGE_CHANGES
from routing.tables.cached_frames import FrameCache
from routing.tables.table_columns import is_frame
from tests.frames import Tables, arrow, frame_of, frames, rows_of
from tests.plans import main_paths
from tests.random_estates import (
    CHANGED_ENDS,
    SHOWN,
    ComparedSides,
    assert_compared,
    assert_same,
    compare_sides,
    draw_sides,
)
from tests.reference import estate_words as words
from tests.reference.differing import has_changed
from tests.spark.test_plan_law import AS_IF_LARGE, breaches
from tests.stored import store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEED = 23
EARLY, LATE = words.MOMENTS[1], words.MOMENTS[5]


class DecidedSides(NamedTuple):
    """Two sides, every message with both decisions, and where the messages lie."""

    sides: ComparedSides
    rows: DataFrame
    messages: str


@pytest.fixture(scope="module")
def decided(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DecidedSides]:
    """Decided once, for what comes out and for how."""
    sides, folder = draw_sides(SEED, EARLY, EARLY), tmp_path_factory.mktemp("decided") / "messages"
    with FrameCache(AS_IF_LARGE) as frame_cache:
        yield DecidedSides(sides, _decide(spark, sides, folder, frame_cache), str(folder))


def _decide(spark: SparkSession, sides: ComparedSides, folder: Path, frame_cache: FrameCache) -> DataFrame:
    """Every message with both decisions; messages are a Delta table, so that plans show it."""
    from routing.features.diff import spark_diff
    from routing.runs.run_work import UntimedStages
    from routing.runs.spark_outputs import compile_tables

    store(frames(spark, sides.before)["messages"], folder)
    messages = spark.read.format("delta").load(str(folder))
    traffic = {"messages": messages, "dialogs": frames(spark, sides.before)["dialogs"]}
    before, after = (
        compile_tables(
            {**arrow(tables), **traffic}, ResolveOptions("diff", as_of=as_of), frame_cache, UntimedStages()
        )
        for tables, as_of in zip((sides.before, sides.after), sides.as_of, strict=True)
    )
    return spark_diff.decide_sides(before.source.messages, before, after)


@pytest.mark.core
def test_both_decisions_are_those_of_two_runs(decided: DecidedSides) -> None:
    _assert_much_changes(decided.sides.rows)
    assert decided.rows.columns == MESSAGE_CHANGES.names
    assert_same(rows_of(decided.rows), decided.sides.rows, "decisions")


def _assert_much_changes(rows: list[dict[str, Any]]) -> None:
    """The estates reach what could go wrong: on either side alone, and twins."""
    seen = Counter(tuple(row[name] for name in CHANGED_ENDS) for row in rows if has_changed(row))
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


def _traffic_in(spark: SparkSession) -> Callable[[Tables], dict[str, Any]]:
    """Tables of which messages and dialogs are DataFrames."""

    def make(tables: Tables) -> dict[str, Any]:
        spark_tables = frames(spark, tables)
        return {**arrow(tables), **{key: spark_tables[key] for key in ("messages", "dialogs")}}

    return make


@pytest.mark.parametrize(
    ("later", "is_altered"),
    [
        pytest.param(EARLY, True, id="two configurations", marks=pytest.mark.core),
        pytest.param(LATE, False, id="two times", marks=[pytest.mark.core, pytest.mark.long]),
        pytest.param(EARLY, False, id="a configuration and itself", marks=pytest.mark.long),
    ],
)
def test_sides_differ_as_two_runs_do(spark: SparkSession, tmp_path: Path, later: Any, is_altered: bool) -> None:
    sides = draw_sides(SEED, EARLY, later, is_altered=is_altered)
    out = TableLocation(str(store(frame_of(spark, sides.rows[:1], MESSAGE_CHANGES), tmp_path / "changes")))
    done = compare_sides(_traffic_in(spark), sides, out=out)
    assert is_frame(done.messages)
    assert done.messages.columns == MESSAGE_CHANGES.names
    assert_compared(done, sides)
    assert_same(rows_of(spark.read.format("delta").load(out.text)), sides.changed, "table of changes")
    local = compare_sides(arrow, sides)
    for name in ("counts", "keys", "routes", "findings"):
        assert list(getattr(done, name)) == list(getattr(local, name)), name


@pytest.mark.core
@pytest.mark.classic
def test_between_scan_and_write_nothing_is_exchanged_or_sorted(decided: DecidedSides) -> None:
    from routing.features.diff import spark_diff

    changed = spark_diff.find_changed(decided.rows)
    (planned,) = main_paths(changed, decided.messages)
    rows = rows_of(changed)
    (path,) = main_paths(changed, decided.messages)
    assert breaches(planned) == breaches(path) == []
    # Of each side the services, brokers and the plan; the dialogs once.
    assert path.count("BroadcastHashJoin") >= 7
    counted, shown = spark_diff.count_changed(changed), spark_diff.find_examples(changed, SHOWN)
    (counting,) = main_paths(counted, decided.messages)
    assert [name for name in counting if "Aggregate" in name] == ["HashAggregate", "HashAggregate"]
    (showing,) = main_paths(shown, decided.messages)
    assert showing.count("WindowGroupLimit") == 2
    assert showing.index("WindowGroupLimit") < showing.index("Exchange")
    assert_same(rows, decided.sides.changed, "changes")
