"""The messages that Spark compares differ in the same rows as two runs of the tests' own resolver."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from routing.config import TableLocation
from routing.delta.ledger import ReplacedOutput
from routing.result_schemas import MESSAGE_CHANGES
from routing.tables.table_columns import is_frame
from routing.views.diff import spark_diff
from tests.frames import Tables, arrow, frame_of, frames
from tests.plans import main_paths
from tests.random_estates import (
    CHANGED_ENDS,
    SHOWN,
    ComparedSides,
    assert_compared,
    assert_paths_part_everywhere,
    compare_sides,
    draw_network_sides,
    draw_sides,
)
from tests.reference import estate_words as words
from tests.reference.differing import has_changed
from tests.spark.test_plan_law import breaches
from tests.stored import store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from routing.views.diff.diffing import Diff

pytestmark = pytest.mark.spark

SEED = 23
EARLY, LATE = words.MOMENTS[1], words.MOMENTS[5]


class ComparedBySpark(NamedTuple):
    """Two sides, the report of `diff`, its frame of changed messages, and the folder of all tables."""

    sides: ComparedSides
    done: Diff
    written: DataFrame
    messages: str
    changes: str


def _compare(spark: SparkSession, sides: ComparedSides, folder: Path) -> ComparedBySpark:
    """Compare messages of a Delta table, which is visible in plans."""
    messages, changes = str(folder / "messages"), str(folder / "changes")
    written: list[DataFrame] = []
    replace_by_spark = ReplacedOutput.replace_by_spark

    def watched(place: ReplacedOutput, session: SparkSession, rows: DataFrame, metadata: str) -> int:
        written.append(rows)
        return replace_by_spark(place, session, rows, metadata)

    def make(tables: Tables) -> dict[str, Any]:
        traffic = frames(spark, tables)
        store(traffic["messages"], Path(messages))
        stored = {"messages": spark.read.format("delta").load(messages), "dialogs": traffic["dialogs"]}
        return {**arrow(tables), **stored}

    store(frame_of(spark, sides.rows[:1], MESSAGE_CHANGES), Path(changes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReplacedOutput, "replace_by_spark", watched)
        done = compare_sides(make, sides, out=TableLocation(changes))
    [frame] = written
    return ComparedBySpark(sides, done, frame, messages, changes)


@pytest.fixture(scope="module")
def compared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ComparedBySpark:
    """Compare two configurations once, for the result and for the plan."""
    return _compare(spark, draw_sides(SEED, EARLY, EARLY), tmp_path_factory.mktemp("compared"))


@pytest.mark.core
def test_two_configurations_differ_as_two_runs_do(compared: ComparedBySpark) -> None:
    _assert_much_changes(compared.sides.rows)
    _assert_as_two_runs(compared)


def _assert_as_two_runs(found: ComparedBySpark) -> None:
    """Assert that rows, counts and the table equal the difference of two runs, and Arrow's result."""
    done, sides = found.done, found.sides
    assert is_frame(done.messages)
    assert done.messages.columns == MESSAGE_CHANGES.names
    # The returned frame reads the table that was written.
    assert all(found.changes in file for file in done.messages.inputFiles())
    assert_compared(done, sides)
    local = compare_sides(arrow, sides)
    for name in ("counts", "keys", "routes", "findings"):
        assert list(getattr(done, name)) == list(getattr(local, name)), name


def _assert_much_changes(rows: list[dict[str, Any]]) -> None:
    """Assert that the estates have the difficult cases, such as changes on one side only, and twins."""
    seen = Counter(tuple(row[name] for name in CHANGED_ENDS) for row in rows if has_changed(row))
    seen = Counter((*ends[:2], *ends[4:6]) for ends in seen.elements())
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


@pytest.mark.long
@pytest.mark.core
def test_paths_part_as_those_of_two_runs_do(spark: SparkSession, tmp_path: Path) -> None:
    sides = draw_network_sides(2, LATE, LATE)
    assert_paths_part_everywhere(sides)
    _assert_as_two_runs(_compare(spark, sides, tmp_path))


@pytest.mark.core
@pytest.mark.long
@pytest.mark.parametrize("later", [pytest.param(LATE, id="two times"), pytest.param(EARLY, id="one time")])
def test_a_configuration_differs_from_itself_as_two_runs_do(
    spark: SparkSession, tmp_path: Path, later: datetime
) -> None:
    _assert_as_two_runs(_compare(spark, draw_sides(SEED, EARLY, later, is_altered=False), tmp_path))


@pytest.mark.core
@pytest.mark.classic
def test_between_scan_and_write_nothing_is_exchanged_or_sorted(
    spark: SparkSession, compared: ComparedBySpark
) -> None:
    # Few messages, as here, are kept for all passes.
    (path,) = main_paths(compared.written, compared.messages, through_kept=True)
    assert breaches(path, but=("MapInArrow", "PythonMapInArrow")) == []
    assert sum(node.endswith("MapInArrow") for node in path) == 1
    # Each side joins the services, the brokers, the plan and the requests. The dialogs are joined once.
    assert path.count("BroadcastHashJoin") >= 11
    changed = spark.read.format("delta").load(compared.changes)
    (counting,) = main_paths(spark_diff.count_changed(changed), compared.changes)
    assert [name for name in counting if "Aggregate" in name] == ["HashAggregate", "HashAggregate"]
    (showing,) = main_paths(spark_diff.find_examples(changed, SHOWN), compared.changes)
    assert showing.count("WindowGroupLimit") == 2
    assert showing.index("WindowGroupLimit") < showing.index("Exchange")
