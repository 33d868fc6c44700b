"""Spark imports the same events as without it, and importing a file twice changes nothing."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from routing.config import Config, load
from routing.delta.opening import TableOpener
from routing.importing.covered_rows import ImportResult
from routing.importing.from_events import import_events
from routing.importing.import_files import on_this_disk
from routing.schemas import OBSERVED_ROUTING, TABLES
from routing.tables.frames import rows_of
from tests.frames import arrow_of
from tests.simulated.events import as_exported, events_of
from tests.simulated.faults import case
from tests.stored import config_text, store_local
from tests.unit.importing.test_events import as_csv

pytestmark = [pytest.mark.core, pytest.mark.matrix]
NOW = datetime(2026, 1, 6, tzinfo=timezone.utc)
SETTINGS = ("routes", "databases", "services", "instances", "dialogs")


def configured(folder: Path, tables: dict[str, list[dict[str, Any]]]) -> Config:
    """Write a configuration without existing observed_routing and imports tables."""
    for key in SETTINGS:
        store_local(arrow_of(tables[key], TABLES[key].optional()), folder / key)
    locations = {key: folder / key for key in ("observed_routing", "imports", "dialogs", "messages")}
    (folder / "job.yaml").write_text(config_text(folder, folder / "out", **locations), encoding="utf-8")
    return load(str(folder / "job.yaml"))


def brought_in(opener: TableOpener, config: Config, file: Path) -> ImportResult:
    # The import has several batches, and each is a commit.
    return import_events(opener, config, [str(file)], on_this_disk, now=NOW, rows_at_once=150)


def as_texts(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return sorted(tuple(str(row[name]) for name in OBSERVED_ROUTING.names) for row in rows)


def test_spark_and_no_spark_import_the_same(spark: SparkSession, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    imported = case("none", 1)
    rows = as_exported(events_of(random.Random(1), imported.day))[:250]
    for name in ("local", "spark"):
        (tmp_path / name).mkdir()
    file = as_csv(tmp_path, [row["event_data"] for row in rows])
    local = brought_in(TableOpener.of_settings({}, None), configured(tmp_path / "local", imported.tables), file)
    by_spark = configured(tmp_path / "spark", imported.tables)
    done = brought_in(TableOpener.of_session(spark), by_spark, file)
    assert done.as_json() == local.as_json()
    assert done.written["observed_routing"]["added"] == len(rows) == 250
    stored = DeltaTable(tmp_path / "local" / "observed_routing").to_pyarrow_dataset().to_table().to_pylist()
    written = spark.read.format("delta").load(str(tmp_path / "spark" / "observed_routing"))
    assert as_texts(rows_of(written)) == as_texts(stored)
    again = brought_in(TableOpener.of_session(spark), by_spark, file)
    assert again.written["observed_routing"]["unchanged"] == len(rows)
    assert written.count() == len(rows)
