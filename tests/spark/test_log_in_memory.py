"""The log in memory, on which tests visit every state of two runs, behaves like Delta."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing.delta.job_outputs import CommitMark
from routing.delta.ledger import DeltaTables
from routing.delta.opening import TableOpener
from routing.schemas import NEW_ROUTE_REQUESTS
from routing.tables import sql_statements
from tests.estate_rows import small_estate
from tests.frames import frame_of
from tests.log_operations import KEY, A, LogInMemory, assert_like_the_log_in_memory, back_to
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.core, pytest.mark.matrix]


class OnDelta:
    """The same operations on a Delta table. Rows are texts."""

    def __init__(self, spark: SparkSession, tables: DeltaTables) -> None:
        self.spark, self.tables = spark, tables
        self.location = tables.config.output[KEY]

    def write(self, rows: frozenset[str], commit_mark: CommitMark, *, adds: bool) -> None:
        fixed = dict.fromkeys(NEW_ROUTE_REQUESTS.names, "x")
        told = [{**fixed, "requested_at": "2026-01-05T12:00:00Z", "message_id": row} for row in sorted(rows)]
        self.tables.put(KEY, frame_of(self.spark, told, NEW_ROUTE_REQUESTS).coalesce(1), commit_mark, adds=adds)

    def by_hand(self, operation: str) -> None:
        if operation == "OPTIMIZE":
            self.spark.sql(f"OPTIMIZE {sql_statements.sql_name(self.location)}")
        else:
            sql_statements.set_properties(self.spark, self.location, {"note": "x"})

    def restore_by_hand(self, version: int) -> None:
        sql_statements.restore(self.spark, self.location, version)

    def rows(self) -> frozenset[str]:
        from routing.delta.spark_tables import TableSnapshot

        read = TableSnapshot(self.location, self.tables.open_logs([KEY])[KEY].version).read(self.spark)
        return frozenset(row["message_id"] for row in read.select("message_id").collect())


@pytest.fixture
def catalog(spark: SparkSession) -> Iterator[str]:
    """Create a schema of the session's catalog, and drop it afterwards."""
    spark.sql("CREATE SCHEMA in_memory")
    yield "in_memory"
    spark.sql("DROP SCHEMA in_memory CASCADE")


@pytest.mark.parametrize("by", ["path", pytest.param("name", marks=pytest.mark.long)])
def test_operation_by_operation(spark: SparkSession, catalog: str, tmp_path: Path, by: str) -> None:
    estate = {"messages": small_estate()["messages"][:1]}
    inputs = save_estate(estate, tmp_path / "in", files=1)
    named = [] if by == "path" else [f"output.{KEY}={catalog}.requests"]
    paths = dict.fromkeys(("routes", "databases", "services", "instances"), inputs / "messages")
    delta = OnDelta(
        spark, DeltaTables(TableOpener.of_session(spark), config_of(inputs, tmp_path, *named, **paths))
    )
    named_first = int(by == "name")
    every = assert_like_the_log_in_memory(delta, LogInMemory(by_name=by == "name"), named_first)
    log = delta.tables.open_logs([KEY])[KEY]
    assert [*log.history()] == every[::-1]
    assert log.commits_after(3) == every[4:]
    assert log.identity(len(every)) is None


def test_a_restore_is_announced_where_the_session_refuses_to_mark_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Serverless compute refuses the mark. A table property announces the restore, and the restore removes it."""
    from tests.refusing import not_available

    inputs = save_estate({"messages": small_estate()["messages"][:1]}, tmp_path / "in", files=1)
    paths = dict.fromkeys(("routes", "databases", "services", "instances"), inputs / "messages")
    delta = OnDelta(spark, DeltaTables(TableOpener.of_session(spark), config_of(inputs, tmp_path, **paths)))
    delta.write(frozenset({"m1"}), A, adds=False)
    delta.write(frozenset({"m2"}), A, adds=False)
    conf = type(spark.conf)
    was_set = conf.set

    def refuse(self: Any, key: str, value: Any) -> None:
        if key.startswith("spark.databricks."):
            raise not_available(key)
        was_set(self, key, value)

    monkeypatch.setattr(conf, "set", refuse)
    commit_mark = back_to(0)
    delta.tables.restore(KEY, 0, commit_mark)
    found = delta.tables.open_logs([KEY])[KEY].commits_after(1)
    assert [(c.operation, c.commit_mark) for c in found] == [("SET TBLPROPERTIES", None), ("RESTORE", commit_mark)]
    assert found[1].metadata is None
    assert delta.rows() == {"m1"}
    properties = sql_statements.describe_detail(spark, delta.location).select("properties").collect()[0][0]
    assert "sbroute.restore" not in properties
