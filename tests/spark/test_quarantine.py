"""Faulty rows with ``on_config_fault: quarantine``: only the messages of their instances are not decided."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable, write_deltalake

import routing
from routing.config import Config
from routing.delta.opening import LocalOpener, TableOpener
from routing.errors import InputError
from routing.runs.local_runs import local_engine
from routing.runs.pipeline import spark_engine
from routing.runs.running import RunEngine, run_by
from routing.schemas import TABLES
from routing.tables.cached_frames import FRAME_LIMITS, FrameLimits
from tests.frames import Tables, arrow_of, with_moments
from tests.imports import rows_at
from tests.random_estates import Row, assert_same, without_marks
from tests.reference.estate_words import MOMENTS
from tests.reference.estates import draw_estates, joined
from tests.reference.increments import Increments
from tests.reference.instances import read_instances
from tests.reference.messages import faults
from tests.reference.resolver import resolve as reference
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 20261129
CODE = "INSTANCE_QUARANTINED"
OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "pending_messages")
ENGINES: dict[str, Callable[[SparkSession], RunEngine]] = {
    "spark": lambda spark: spark_engine(TableOpener.of_session(spark)),
    # With this limit, dialogs stay in their table, as if they were many.
    "spark, many dialogs": lambda spark: spark_engine(TableOpener.of_session(spark), FrameLimits(held_rows=0)),
    # Python workers validate and decide, as for a large configuration.
    "spark, workers": lambda spark: spark_engine(TableOpener.of_session(spark), FrameLimits(driver_rows=0)),
    "local": lambda _: local_engine(LocalOpener()),
}


# Engines that hold little in the driver take longer.
EACH_ENGINE = pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=pytest.mark.long) if "," in name else name for name in ENGINES]
)


def _config(folder: Path, *overrides: str) -> Config:
    pending = f"output.pending_messages={folder / 'out' / 'pending_messages'}"
    return config_of(folder / "in", folder / "out", pending, "resolve.on_config_fault=quarantine", *overrides)


def _estate(count: int, messages: int) -> Tables:
    return with_moments(joined(draw_estates(random.Random(SEED), count, messages)))


def _busiest(tables: Tables, count: int) -> list[str]:
    """Return the instances with the most messages in their databases, where messages may wait."""
    known = {(row["instance_name"], row["name"]) for row in tables["databases"]}
    counts = Counter(
        row["instance_name"]
        for row in tables["messages"]
        if (row["instance_name"], row.get("database_name")) in known
    )
    return [name for name, _ in counts.most_common(count)]


def _spoil(tables: Tables, *names: str) -> dict[str, list[Row]]:
    """Return a faulty row of each kind by table, each for another instance."""
    bad_route = {"instance_name": names[0], "database_name": "x", "name": "bad", "address": "http://nowhere"}
    doubled = next(row for row in tables["databases"] if row["instance_name"] == names[1])
    lacking = {"instance_name": names[2], "database_name": "x", "conversation_id": "C1", "lifetime": MOMENTS[0]}
    return {"routes": [bad_route], "databases": [doubled], "dialogs": [lacking]}


def _put(folder: Path, tables: Tables, added: dict[str, list[Row]] | None = None) -> None:
    """Replace the configuration and the dialogs."""
    for key in ("routes", "databases", "dialogs"):
        rows = [*tables[key], *(added or {}).get(key, [])]
        write_deltalake(str(folder / "in" / key), arrow_of(rows, TABLES[key]), mode="overwrite")


def _rejected(row: Row, names: frozenset[str], instances: Any) -> list[str]:
    codes = faults(row, instances)
    if row.get("instance_name") in names:
        return [*(code for code in codes if code != "UNKNOWN_DATABASE"), CODE]
    return codes


@EACH_ENGINE
def test_a_full_run_rejects_the_messages_of_faulty_instances(
    engine: str, spark: SparkSession, tmp_path: Path
) -> None:
    tables = _estate(6, 40)
    names = _busiest(tables, 3)
    save_estate(tables, tmp_path / "in", files=1)
    _put(tmp_path, tables, _spoil(tables, *names))
    done = run_by(ENGINES[engine](spark), _config(tmp_path), run_id="full")
    quarantined, instances = frozenset(names), read_instances(tables)
    # Only messages of other instances are decided.
    others = [row for row in tables["messages"] if row.get("instance_name") not in quarantined]
    expected = reference({**tables, "messages": others}, run_id="full")
    config = _config(tmp_path)
    assert_same(rows_at(config.output["resolved_routes"]), expected.resolved_routes, "resolved_routes")
    reasons = Counter((row["message_id"], *row["reasons"]) for row in rows_at(config.output["rejected_messages"]))
    wanted = ((row["message_id"], *_rejected(row, quarantined, instances)) for row in tables["messages"])
    assert reasons == Counter(codes for codes in wanted if len(codes) > 1)
    row = done.row
    assert row["rows_quarantined"] == sum(CODE in codes for codes in reasons.elements()) > 0
    assert row["quarantined_instances"] == sorted(names)
    assert row["rows_read"] == row["rows_resolved"] + row["rows_rejected"] == len(tables["messages"])
    [note] = [note for note in done.notes if "quarantine" in note]
    assert all(name in note for name in names)
    assert "3 faulty rows: databases (" in note
    assert "; routes (" in note


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(FRAME_LIMITS, id="few"),
        pytest.param(FrameLimits(held_rows=0), id="many", marks=pytest.mark.long),
        pytest.param(FrameLimits(held_rows=0, driver_rows=0), id="on workers", marks=pytest.mark.long),
    ],
)
def test_incremental_runs_decide_them_once_the_fault_is_gone(
    limits: FrameLimits, spark: SparkSession, tmp_path: Path
) -> None:
    tables = _estate(6, 40)
    names = _busiest(tables, 3)
    quarantined = frozenset(names)
    messages = tables["messages"]
    parts = [messages[number::4] for number in range(4)]
    save_estate({**tables, "messages": []}, tmp_path / "in", files=1)
    config = _config(tmp_path, "resolve.mode=incremental")
    expected = Increments({**tables, "messages": []})
    engine = spark_engine(TableOpener.of_session(spark), limits)

    def run(number: int, new: list[Row], now: datetime, *, is_faulty: bool) -> Row:
        if new:
            save_estate({"messages": new}, tmp_path / "in", files=1)
        done = run_by(engine, config, run_id=f"run {number}", now=now).row
        expected.run(new, now, f"run {number}", quarantined if is_faulty else frozenset())
        for key in OUTPUTS:
            rows = without_marks(rows_at(config.output[key]))
            assert_same(rows, getattr(expected, key), f"{key} after run {number}")
        assert done["rows_read"] == done["rows_resolved"] + done["rows_unchanged"] + done["rows_rejected"]
        assert done["rows_quarantined"] == expected.withheld
        assert done["rows_unchanged"] == expected.unchanged + expected.withheld
        assert done["quarantined_instances"] == (sorted(names) if is_faulty else [])
        return dict(done)

    run(1, parts[0], MOMENTS[1], is_faulty=False)
    _put(tmp_path, tables, _spoil(tables, *names))
    assert run(2, parts[1], MOMENTS[4], is_faulty=True)["rows_quarantined"] > 0
    if limits is not FRAME_LIMITS:
        run(3, [], MOMENTS[5], is_faulty=True)
        before = DeltaTable(config.output["pending_messages"].text).version()
        # Nothing is new. The same messages wait, and none of their rows is written again.
        run(4, [], MOMENTS[5], is_faulty=True)
        assert DeltaTable(config.output["pending_messages"].text).version() == before
    # These share ids with messages that wait undecided.
    run(5, [*parts[2], *parts[1][:5]], MOMENTS[5], is_faulty=True)
    _put(tmp_path, tables)
    run(6, parts[3], MOMENTS[6], is_faulty=False)


@pytest.mark.long
def test_the_first_run_of_a_job_and_a_window(spark: SparkSession, tmp_path: Path) -> None:
    tables = _estate(4, 40)
    names = _busiest(tables, 3)
    save_estate(tables, tmp_path / "in", files=1)
    _put(tmp_path, tables, _spoil(tables, *names))
    config = _config(tmp_path, "resolve.mode=incremental")
    expected, quarantined = Increments({**tables, "messages": []}), frozenset(names)
    first = routing.run(spark, config, run_id="first", now=MOMENTS[2]).row
    expected.run(tables["messages"], MOMENTS[2], "first", quarantined)
    assert first["rows_quarantined"] == expected.withheld > 0
    _put(tmp_path, tables)
    ends = [f"resolve.window_{end}={time.isoformat()}" for end, time in (("from", MOMENTS[1]), ("to", MOMENTS[4]))]
    routing.run(spark, _config(tmp_path, "resolve.mode=window", *ends), run_id="window")
    expected.run_window(MOMENTS[1], MOMENTS[4], "window")
    for key in OUTPUTS:
        assert_same(without_marks(rows_at(config.output[key])), getattr(expected, key), key)


@EACH_ENGINE
@pytest.mark.parametrize(
    ("key", "row"),
    [
        ("routes", {"database_name": "x", "name": "bad", "address": "LOCAL"}),
        ("dialogs", {"database_name": "x", "conversation_id": "C1", "is_initiator": True}),
    ],
)
def test_a_fault_without_an_instance_stops_the_run(
    key: str, row: Row, engine: str, spark: SparkSession, tmp_path: Path
) -> None:
    tables = _estate(2, 8)
    save_estate(tables, tmp_path / "in", files=1)
    _put(tmp_path, tables, {key: [row]})
    with pytest.raises(InputError, match="instance_name is missing"):
        run_by(ENGINES[engine](spark), _config(tmp_path), run_id="full")
    assert not (tmp_path / "out" / "resolved_routes").exists()
