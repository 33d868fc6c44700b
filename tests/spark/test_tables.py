"""Accepted and refused types (tables.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing.config import TableLocation
from routing.delta.appended_rows import read_appended
from routing.delta.spark_tables import TableSnapshot
from routing.errors import InputError
from routing.schemas import ROUTES
from routing.tables.read_rows import read_rows
from routing.tables.spark_forms import conform
from tests.estate_rows import message, route, small_estate
from tests.frames import frame_of, frames, rows_of, with_moments
from tests.golden_texts import assert_golden
from tests.random_estates import assert_same
from tests.reference.resolver import resolve as reference
from tests.stored import store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.core
# Times that a zone with daylight saving lacks, has twice, or had with an offset in odd seconds.
MOMENTS = (
    "2026-03-08T02:30:00.000000Z",
    "2026-11-01T01:30:00.123456Z",
    "2026-07-01T00:00:00.000001Z",
    "1969-12-31T23:59:59.999999Z",
    "1883-11-18T12:00:00.500000Z",
    "1582-10-15T00:00:00.000000Z",
)


@pytest.fixture
def estate(spark: SparkSession) -> dict[str, DataFrame]:
    """Return frames of the small estate, some of which tests replace."""
    return frames(spark, small_estate())


@contextmanager
def resolved(spark: SparkSession, tables: dict[str, DataFrame]) -> Iterator[routing.Resolution]:
    """Resolve tables within a block."""
    done = routing.resolve(spark, tables, run_id="types")
    try:
        yield done
    finally:
        done.unpersist()


def in_order(frame: DataFrame) -> list[dict[str, Any]]:
    """Return rows in the order of their message ids."""
    return sorted(rows_of(frame), key=lambda row: str(row["message_id"]))


def shouted(frame: DataFrame) -> DataFrame:
    """Return a frame with its column names in capitals."""
    return frame.toDF(*(name.upper() for name in frame.columns))


def test_columns_are_matched_without_case(
    spark: SparkSession, estate: dict[str, DataFrame], tmp_path: Path
) -> None:
    """This includes optional columns of single tables. The next test reads whole estates."""
    assert read_rows(shouted(estate["routes"]), ROUTES) == rows_of(estate["routes"])
    for mode in ("overwrite", "append"):
        store(shouted(estate["messages"]), tmp_path, mode)
    new = read_appended(spark, TableSnapshot(TableLocation(str(tmp_path)), 1), 0)
    hops = conform(new.rows, "messages").select("hops_remaining").collect()
    assert sorted(row[0] or 0 for row in hops) == [0, 0, 0, 0, 0, 0, 3]


def test_accepted_types_give_the_same_rows(
    spark: SparkSession, estate: dict[str, DataFrame], tmp_path: Path
) -> None:
    """Column names are in capitals. A missed optional column would not be reported."""
    from pyspark.sql import functions as F

    columns = "INSTANCE_NAME CHAR(3), DATABASE_NAME VARCHAR(20), NAME VARCHAR(100)"
    spark.sql(f"CREATE TABLE delta.`{tmp_path}` ({columns}) USING delta")
    store(estate["services"].coalesce(1), tmp_path, mode="append")
    messages = estate["messages"]
    changed = {
        **estate,
        "services": spark.read.format("delta").load(str(tmp_path)),
        "messages": messages.withColumns(
            {
                "message_sequence_number": F.col("message_sequence_number").cast("tinyint"),
                "hops_remaining": F.col("hops_remaining").cast("smallint"),
                "enqueue_time": F.lit("2026-01-05 12:00:00").cast("timestamp_ntz"),
                "observed_at": F.lit(None),
                "to_broker_instance": F.lit(None),
            }
        ),
        "routes": estate["routes"].drop("lifetime", "valid_from").withColumn("live_to", F.lit(True)),
        "databases": estate["databases"].withColumn("database_id", F.col("database_id").cast("bigint")),
        "instances": estate["instances"].withColumn("addresses", F.array()),
        "dialogs": estate["dialogs"].select(*reversed(estate["dialogs"].columns)),
    }
    tables = {key: shouted(frame) for key, frame in changed.items()}
    # Additional columns may have names that the job uses itself.
    own = {
        "choice": F.lit(1),
        "key_service": F.lit("//far"),
        "decided_at": F.lit("x"),
        "database_is_known": F.lit(False),
    }
    tables["messages"] = tables["messages"].withColumns(own)
    expected = reference(with_moments(small_estate()), as_of=None, run_id="types")
    with resolved(spark, tables) as found:
        rows = rows_of(found.resolved_routes)
        assert_same(rows, expected.resolved_routes, "resolved_routes")
        assert_same(rows_of(found.rejected_messages), expected.rejected_messages, "rejected_messages")
    assert {row["mirror_address"] for row in rows} == {None, "tcp://mirror.example:4022"}


def test_extreme_values_are_accepted(spark: SparkSession, estate: dict[str, DataFrame]) -> None:
    """One run has times without zone, integers that do not fit, empty addresses, and collations."""
    from pyspark.sql import functions as F

    # The times must be correct in a session whose zone has daylight saving.
    assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
    times = [*MOMENTS, "2026-03-08T02:29:59.999999Z", "2026-03-08T02:30:00.000000Z"]
    rows = [message(n, "//ends" if n >= len(MOMENTS) else "//far") for n in range(len(times))]
    rows += [message(20, "//own"), message(21, "//far", hops_remaining=1), message(22, "//far", hops_remaining=2)]
    rows += [message(30, "//FAR"), message(31, "//far", instance_name="HUB")]
    text = F.create_map(*(F.lit(part) for n, m in enumerate(times) for part in (f"m{n}", m[:-1])))
    time = F.coalesce(F.element_at(text, F.col("message_id")), F.lit("2026-01-05 12:00:00"))
    hops = F.when(F.col("hops_remaining") == 1, F.lit(2**31)).when(F.col("hops_remaining") == 2, F.lit(-(2**31)))
    messages = frame_of(spark, rows, estate["messages"].schema).withColumns(
        {"enqueue_time": time.cast("timestamp_ntz"), "hops_remaining": hops}
    )
    routes = [route("Far", "//far", "tcp://far:1"), route("Own", "//own", "tcp://OWN:4022/")]
    routes.append(route("Ends", "//ends", "tcp://ends:1"))
    end = F.when(F.col("name") == "Ends", F.lit("2026-03-08 02:30:00"))
    instance = {"instance_name": "hub", "addresses": [None, "", " tcp://own:4022"]}
    changed = {
        **estate,
        "messages": messages,
        "routes": frame_of(spark, routes, estate["routes"].schema).withColumn(
            "lifetime", end.cast("timestamp_ntz")
        ),
        "instances": frame_of(spark, [instance], estate["instances"].schema),
    }
    # Spark has collations since version 4. They must not change how the rules compare names.
    if spark.version >= "4":
        lower = "string collate UTF8_LCASE"
        changed = {
            key: frame.withColumns({n: F.col(n).cast(lower) for n, kind in frame.dtypes if kind == "string"})
            for key, frame in changed.items()
        }
    with resolved(spark, changed) as done:
        got, rejected = (in_order(frame) for frame in (done.resolved_routes, done.rejected_messages))
    found = {row["message_id"]: row for row in got}
    wanted = [datetime.fromisoformat(m[:-1]).replace(tzinfo=timezone.utc) for m in times]
    for n, moment in enumerate(wanted):
        assert (found[f"m{n}"]["enqueue_time"], found[f"m{n}"]["decided_at"]) == (moment, moment)
    assert (found["m6"]["outcome"], found["m7"]["outcome"]) == ("SENT", "DELAYED")
    assert (found["m20"]["rerouted_from"], found["m22"]["outcome"]) == ("Own", "SENT")
    assert found["m30"]["reason"] == "NO_ROUTE"
    assert [(r["message_id"], r["reasons"], r["hops_remaining"]) for r in rejected] == [
        ("m21", ["OUT_OF_RANGE_HOPS_REMAINING"], 2**31),
        ("m31", ["UNKNOWN_INSTANCE"], None),
    ]


def test_all_columns_of_other_types_are_reported(spark: SparkSession, estate: dict[str, DataFrame]) -> None:
    from pyspark.sql import functions as F

    wrong = {
        "message_id": F.lit(1),
        "conversation_id": F.lit(b"x"),
        "is_initiator": F.lit(1),
        "message_sequence_number": F.lit(1).cast("decimal(18,0)"),
        "enqueue_time": F.lit("2026-01-05"),
        "observed_at": F.current_date(),
        "instance_name": F.lit(None),
        "hops_remaining": F.lit(1.5),
    }
    messages = estate["messages"].withColumns(wrong).drop("to_service_name")
    with pytest.raises(InputError) as caught:
        routing.resolve(spark, {**estate, "messages": messages})
    instances = estate["instances"].withColumn("addresses", F.array(F.lit(1)))
    with pytest.raises(InputError) as others:
        routing.resolve(spark, {**estate, "instances": instances})
    assert_golden("column_faults.txt", f"{caught.value}\n{others.value}")
