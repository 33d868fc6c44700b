"""Types that are accepted, and those that are not (tables.md)."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing.errors import InputError
from tests.frames import frame_of, frames, rows_of
from tests.golden_texts import assert_golden
from tests.stored import config_of, message, route, small_estate, store, store_estate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[dict[str, Any]]
# Moments that a zone with daylight saving does not have, has twice, or counted in odd seconds.
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
    """Frames of the small estate, for a test to replace some."""
    return frames(spark, small_estate())


def resolved(spark: SparkSession, tables: dict[str, DataFrame]) -> tuple[Rows, Rows]:
    """Resolved and rejected rows in order of message id."""
    done = routing.resolve(spark, tables, run_id="types")
    try:
        both = rows_of(done.resolved_routes), rows_of(done.rejected_messages)
    finally:
        done.unpersist()
    first, second = (sorted(rows, key=lambda row: str(row["message_id"])) for rows in both)
    return first, second


def test_accepted_types_give_the_same_rows(spark: SparkSession, estate: dict[str, DataFrame]) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import TimestampType

    expected = resolved(spark, estate)
    messages = estate["messages"]
    at_noon = F.lit("2026-01-05 12:00:00").cast("timestamp_ntz")
    changed = {
        **estate,
        "messages": messages.withColumns(
            {
                "message_sequence_number": F.col("message_sequence_number").cast("tinyint"),
                "hops_remaining": F.col("hops_remaining").cast("smallint"),
                "enqueue_time": at_noon,
                "observed_at": F.lit(None),
                "to_broker_instance": F.lit(None),
                # Names that the job uses itself are as extra as any other.
                "choice": F.lit(1),
                "key_service": F.lit("//far"),
                "decided_at": F.lit("x"),
                "database_is_known": F.lit(False),
            }
        ),
        "routes": estate["routes"].drop("lifetime", "valid_from").withColumn("live_to", F.lit(True)),
        "databases": estate["databases"].withColumn("database_id", F.col("database_id").cast("bigint")),
        "instances": estate["instances"].withColumn("addresses", F.array()),
        "dialogs": estate["dialogs"].select(*(F.col(name) for name in reversed(estate["dialogs"].columns))),
    }
    assert not isinstance(changed["messages"].schema["enqueue_time"].dataType, TimestampType)
    assert resolved(spark, changed) == expected


def test_varchar_and_char_of_a_table(spark: SparkSession, estate: dict[str, DataFrame], tmp_path: Path) -> None:
    folder = tmp_path / "services"
    columns = "instance_name CHAR(3), database_name VARCHAR(20), name VARCHAR(100)"
    spark.sql(f"CREATE TABLE delta.`{folder}` ({columns}) USING delta")
    store(estate["services"].coalesce(1), folder, mode="append")
    services = spark.read.format("delta").load(str(folder))
    assert resolved(spark, {**estate, "services": services}) == resolved(spark, estate)


def test_collations_do_not_change_how_names_compare(spark: SparkSession, estate: dict[str, DataFrame]) -> None:
    from pyspark.sql import functions as F

    if spark.version < "4":
        pytest.skip("no collations before Spark 4")
    rows = [message(1, "//stock"), message(2, "//STOCK"), message(3, "//stock", instance_name="HUB")]
    tables = {**estate, "messages": frames(spark, {"messages": rows})["messages"]}
    lower = {
        key: frame.withColumns(
            {n: F.col(n).cast("string collate UTF8_LCASE") for n, kind in frame.dtypes if kind == "string"}
        )
        for key, frame in tables.items()
    }
    assert resolved(spark, lower) == resolved(spark, tables)
    assert [row["reason"] for row in resolved(spark, lower)[0]] == ["LOCAL_SERVICE", "ROUTE_REQUESTED"]


def test_times_without_zone_are_utc_whatever_the_session(spark: SparkSession, estate: dict[str, DataFrame]) -> None:
    from pyspark.sql import functions as F

    zone = spark.conf.get("spark.sql.session.timeZone")
    assert zone == "America/New_York"
    rows = [message(n, "//far", enqueue_time=moment) for n, moment in enumerate(MOMENTS)]
    zoned = frames(spark, {"messages": rows})["messages"]
    text = F.create_map(*(F.lit(part) for n, m in enumerate(MOMENTS) for part in (f"m{n}", m[:-1])))
    bare = zoned.withColumn("enqueue_time", F.element_at(text, F.col("message_id")).cast("timestamp_ntz"))
    got, _ = resolved(spark, {**estate, "messages": bare})
    wanted = [datetime.fromisoformat(m[:-1]).replace(tzinfo=timezone.utc) for m in MOMENTS]
    assert [row["enqueue_time"] for row in got] == wanted
    assert [row["decided_at"] for row in got] == wanted


def test_a_bound_without_zone_is_utc(spark: SparkSession, estate: dict[str, DataFrame]) -> None:
    from pyspark.sql import functions as F

    end = datetime(2026, 3, 8, 2, 30, tzinfo=timezone.utc)
    rows = [
        message(1, "//far", enqueue_time=end - timedelta(microseconds=1)),
        message(2, "//far", enqueue_time=end),
    ]
    routes = frame_of(spark, [route("Far", "//far", "tcp://far:1")], estate["routes"].schema)
    bounded = routes.withColumn("lifetime", F.lit("2026-03-08 02:30:00").cast("timestamp_ntz"))
    messages = frames(spark, {"messages": rows})["messages"]
    got, _ = resolved(spark, {**estate, "routes": bounded, "messages": messages})
    assert [row["outcome"] for row in got] == ["SENT", "DELAYED"]


def test_an_integer_that_does_not_fit(spark: SparkSession, estate: dict[str, DataFrame]) -> None:
    from pyspark.sql import functions as F

    hops = F.when(F.col("message_id") == "m5", F.lit(2**31)).when(F.col("message_id") == "m3", F.lit(-(2**31)))
    messages = estate["messages"].withColumn("hops_remaining", hops)
    got, rejected = resolved(spark, {**estate, "messages": messages})
    assert [row["message_id"] for row in got] == ["m1", "m2", "m3", "m4"]
    assert {row["message_id"]: row["reasons"] for row in rejected} == {
        "m5": ["OUT_OF_RANGE_HOPS_REMAINING"],
        "m6": ["CONVERSATION_ID_NOT_A_GUID"],
        "m7": ["UNKNOWN_INSTANCE"],
    }
    assert rejected[0]["hops_remaining"] == 2**31


def test_null_and_empty_addresses_are_ignored(spark: SparkSession, estate: dict[str, DataFrame]) -> None:
    schema = estate["instances"].schema
    instance = {"instance_name": "hub", "addresses": [None, "", "TCP://Far.example:4022/"]}
    messages = frames(spark, {"messages": [message(3, "//far")]})["messages"]
    instances = frame_of(spark, [instance], schema)
    got, _ = resolved(spark, {**estate, "instances": instances, "messages": messages})
    assert [(row["rerouted_from"], row["outcome"]) for row in got] == [("Far", "DELAYED")]


def test_columns_of_other_types_are_told_at_once(spark: SparkSession, estate: dict[str, DataFrame]) -> None:
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


def test_catalog_names(spark: SparkSession, tmp_path: Path) -> None:
    inputs = store_estate(spark, small_estate(), tmp_path / "in")
    spark.sql("CREATE SCHEMA IF NOT EXISTS shop")
    try:
        spark.sql("CREATE TABLE shop.`far routes` USING delta AS SELECT * FROM delta.`" + str(inputs / "routes") + "`")
        config = config_of(
            inputs, tmp_path, "tables.routes=shop.far routes", "output.resolved_routes=spark_catalog.shop.resolved"
        )
        done = routing.run(spark, config)
        assert spark.table("shop.resolved").count() == done.row["rows_resolved"] == 5
        assert done.row["output_versions"]["resolved_routes"] == 0
        assert routing.read_run(spark, config, done.row["run_id"]).resolved_routes.count() == 5
    finally:
        spark.sql("DROP SCHEMA shop CASCADE")

