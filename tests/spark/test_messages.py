"""Spark and Arrow list messages with equal rows and counts."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from routing.config import TableLocation
from routing.delta.local_tables import UnreadableTable, dataset_of, open_local
from routing.engines.traffic_tables import open_traffic
from routing.schemas import IMPORTS as IMPORTS_SCHEMA
from routing.schemas import OBSERVED_ROUTING, RESOLVED_ROUTES
from routing.views.messages.message_filter import ask, select
from routing.views.messages.message_list import list_messages
from tests.frames import arrow_of, frame_of
from tests.listed_messages import IMPORTS, OBSERVED, RESOLVED, list_plainly, random_rows
from tests.stored import store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)


def test_both_engines_give_equal_rows(spark: SparkSession) -> None:
    """test_spark_traffic tests each operation on both engines. Here the operations work together."""
    rows = {"resolved_routes": RESOLVED, "observed_routing": OBSERVED, "imports": IMPORTS}
    schemas = {"resolved_routes": RESOLVED_ROUTES, "observed_routing": OBSERVED_ROUTING, "imports": IMPORTS_SCHEMA}
    here = {key: arrow_of(found, schemas[key]) for key, found in rows.items()}
    there = {key: frame_of(spark, found, schemas[key]) for key, found in rows.items()}
    # The oldest stuck message is not among the listed ones.
    asked = ask(waiting=True, outcomes=["DELAYED"], limit=1)
    wanted = list_messages(here, asked, now=NOW)
    assert (wanted.total, wanted.oldest_stuck) == (3, 4 * 3600)
    assert list_messages(there, asked, now=NOW) == wanted
    # One engine reads the waiting messages, and the other the decisions.
    waiting = ask(waiting=True)
    wanted = list_messages(here, waiting, now=NOW)
    assert [row["message_id"] for row in wanted.messages] == ["a3", "a7", "a2", "a4"]
    for one, other in ((here, there), (there, here)):
        mixed = {**one, "observed_routing": other["observed_routing"]}
        assert list_messages(mixed, waiting, now=NOW) == wanted
    assert wanted.messages.to_spark(spark).count() == 4


# The short tests also read files that Spark wrote (test_explain), and compare both engines (test_spark_traffic).
@pytest.mark.long
@pytest.mark.classic
def test_arrow_lists_messages_in_files_that_spark_wrote(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's files have another type of times, and some have only second attempts."""
    rows = random_rows(random.Random(7), 150)
    folder = tmp_path / "resolved"
    store(frame_of(spark, rows, RESOLVED_ROUTES).repartition(3), folder)
    opened = open_local(TableLocation(str(folder)))
    assert not isinstance(opened, UnreadableTable)
    files, frame = dataset_of(str(folder), opened), spark.read.format("delta").load(str(folder))
    for only, oldest, limit in (({}, False, 10), ({}, True, 10), ({"outcome": ["DELAYED"]}, False, 25)):
        asked = ask(oldest=oldest, limit=limit, outcomes=only.get("outcome", ()))
        wanted = list_plainly(rows, only, oldest=oldest, limit=limit)
        for table in (files, frame):
            found = select(open_traffic(table), asked, None)
            names = ("instance_name", "message_id", "reason", "database_name")
            assert [tuple(row[name] for name in names) for row in found.rows] == wanted["ids"]
            assert {(row["outcome"], row["reason"]): row["messages"] for row in found.counts} == wanted["counts"]
            assert [tuple(row.values()) for row in found.groups] == wanted["groups"]
