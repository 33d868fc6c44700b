"""Reconcile with Spark gives the same rows, counts and causes as without it, for hand-written and whole days."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession

import routing
from routing import cli
from routing.errors import ContractError, InputError
from routing.schemas import OBSERVED_ROUTING, RECONCILIATION, TABLES
from routing.tables.frames import rows_of
from routing.views.reconcile.reconciling import Reconciliation
from tests.frames import Tables, arrow_of, frame_of, merged, prefixed, rows_in
from tests.reconciled import ROWS, Row, estate, hostile
from tests.simulated.events import events_of
from tests.simulated.faults import case
from tests.simulated.proof import observe
from tests.stored import save_estate, store_local

VECTORS = "'delta.enableDeletionVectors' = 'true'"


def by_arrow(tables: Tables, rows: list[Row]) -> Reconciliation:
    inputs = {key: arrow_of(some, TABLES[key].optional()) for key, some in tables.items()}
    return routing.reconcile({**inputs, "observed_routing": arrow_of(rows, OBSERVED_ROUTING.optional())})


def by_spark(spark: SparkSession, tables: Tables, rows: list[Row]) -> Reconciliation:
    inputs = {key: frame_of(spark, some, TABLES[key].optional()) for key, some in tables.items()}
    return routing.reconcile({**inputs, "observed_routing": frame_of(spark, rows, OBSERVED_ROUTING.optional())})


def in_order(rows: Any) -> list[tuple[str, ...]]:
    return sorted(tuple(str(row[name]) for name in RECONCILIATION.names) for row in rows)


def assert_equal(one: Reconciliation, other: Reconciliation) -> None:
    assert in_order(rows_in(one.rows)) == in_order(rows_in(other.rows))
    assert (one.observations, one.unobserved, one.percent) == (other.observations, other.unobserved, other.percent)
    for rows, others in ((one.counts, other.counts), (one.causes, other.causes), (one.balanced, other.balanced)):
        assert list(rows) == list(others)


def a_day(fault: str) -> tuple[Tables, list[Row]]:
    """Return the tables and observations of a whole day with a fault."""
    simulated = case(fault, 3)
    return simulated.tables, observe(simulated.day, events_of(random.Random(1), simulated.day))


@pytest.fixture(scope="module")
def observed_tables() -> tuple[Tables, list[Row]]:
    """Return the hand-written observations and a whole day of other instances."""
    (tables, rows), (others, day) = hostile(), a_day("hidden")
    both = merged([{**tables, "rows": rows}, prefixed({**others, "rows": day}, "day/")])
    rows = both.pop("rows")
    return both, rows


@pytest.fixture(scope="module")
def done(spark: SparkSession, observed_tables: tuple[Tables, list[Row]]) -> Reconciliation:
    return by_spark(spark, *observed_tables)


@pytest.mark.core
def test_spark_and_arrow_find_the_same_episodes(
    done: Reconciliation, observed_tables: tuple[Tables, list[Row]]
) -> None:
    assert_equal(done, by_arrow(*observed_tables))
    assert sum(row["observations"] for row in done.counts) == len(observed_tables[1])
    assert {row["instance_name"].startswith("day/") for row in done.causes} == {True, False}


@pytest.mark.classic
def test_the_plan_has_no_python(done: Reconciliation) -> None:
    assert isinstance(done.rows, DataFrame)
    plan = done.rows._jdf.queryExecution().executedPlan().toString()
    assert "Window" in plan
    assert "Python" not in plan


@pytest.mark.long
def test_spark_and_arrow_find_the_same_causes_of_another_fault(spark: SparkSession) -> None:
    tables, rows = a_day("changed")
    done = by_spark(spark, tables, rows)
    assert_equal(done, by_arrow(tables, rows))
    assert [row["cause"] for row in done.causes]


def test_the_table_is_replaced_by_spark(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If only Spark can read one of the tables that grow with the traffic, it reads all of them."""
    tables = {**estate(), "observed_routing": ROWS}
    save_estate(tables, tmp_path, files=1)
    outputs = ("resolved_routes", "new_route_requests", "rejected_messages", "runs", "reconciliation")
    config = {"tables": {key: key for key in tables}, "output": {key: f"out/{key}" for key in outputs}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    place = tmp_path / "out" / "reconciliation"
    store_local(arrow_of([{"instance_name": "of an older run"}], RECONCILIATION), place)
    spark.sql(f"ALTER TABLE delta.`{tmp_path / 'dialogs'}` SET TBLPROPERTIES ({VECTORS})")
    assert cli.main(["reconcile", "--config", str(tmp_path / "job.yaml")]) == 0
    assert "37 observations in 29 episodes" in capsys.readouterr().out
    written = spark.read.format("delta").load(str(place))
    expected = rows_in(by_arrow(estate(), ROWS).rows)
    assert in_order(rows_of(written)) == in_order(expected)


def test_invalid_inputs_are_refused(spark: SparkSession) -> None:
    broken = [{**ROWS[0], "source": None}]
    with pytest.raises(InputError, match="table observed_routing has 1 rows without source"):
        by_spark(spark, estate(), broken)
    inputs = {key: arrow_of(some, TABLES[key]) for key, some in estate().items()}
    with pytest.raises(ContractError, match="are not of one kind"):
        routing.reconcile({**inputs, "observed_routing": frame_of(spark, ROWS, OBSERVED_ROUTING)})
