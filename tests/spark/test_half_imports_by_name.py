"""The next import completes an import into catalog tables that ended between two commits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from routing.delta.import_times import note_unfinished
from routing.delta.opening import TableOpener
from tests.half_imports import ended_after
from tests.hooks import Killed
from tests.imports import FIRST_VIEWS, KEYS, LATER_VIEWS, MONDAY, TUESDAY, config_in, exports, import_views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

pytestmark = pytest.mark.classic
CHANGED = {key: text for key, text in LATER_VIEWS.items() if key == "routes"}
CHANGED["databases"] = FIRST_VIEWS["databases"].replace("Offline,6", "Offline,7")


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE SCHEMA half_imports")
    yield "half_imports"
    spark.sql("DROP SCHEMA half_imports CASCADE")


def by_name(folder: Path, schema: str, prefix: str) -> Config:
    """Return a configuration with catalog names for its tables."""
    return config_in(folder, *(f"tables.{key}=spark_catalog.{schema}.{prefix}_{key}" for key in KEYS))


def state_of(spark: SparkSession, schema: str, prefix: str) -> dict[str, list[str]]:
    """Return the rows of all tables, including the journal, without their times of import."""
    names = [row["tableName"] for row in spark.sql(f"SHOW TABLES IN {schema}").collect()]
    tables = {name.removeprefix(f"{prefix}_"): name for name in names if name.startswith(f"{prefix}_")}
    rows = {key: spark.table(f"{schema}.{name}").drop("imported_at").collect() for key, name in tables.items()}
    return {key: sorted(str(row.asDict()) for row in found) for key, found in rows.items()}


@pytest.mark.long
def test_an_import_by_names_is_completed(spark: SparkSession, tmp_path: Path, schema: str) -> None:
    """The import ends between two tables. tests/unit/importing/test_half_imports.py tries each commit."""
    opener = TableOpener.of_session(spark)

    def bring(prefix: str, name: str, at: datetime, **views: str) -> list[str]:
        folder = tmp_path / name
        sources = [str(folder)] if folder.exists() else exports(folder, at, **views)
        return import_views(opener, by_name(tmp_path, schema, prefix), sources).notes

    views = {key: FIRST_VIEWS[key] for key in ("databases", "routes", "services")}
    bring("whole", "first", MONDAY, **views)
    with ended_after(None) as done:
        bring("whole", "second", TUESDAY, **CHANGED)
    assert done == [
        *("replace unfinished_imports", "put databases", "put routes"),
        *("put imports", "replace unfinished_imports"),
    ]
    bring("ended", "first", MONDAY, **views)
    with pytest.raises(Killed), ended_after(done.index("put databases")):
        bring("ended", "second", TUESDAY, **CHANGED)
    journal = by_name(tmp_path, schema, "ended").journal
    assert journal is not None
    assert journal.text == f"spark_catalog.{schema}.ended_imports_unfinished"
    assert len(note_unfinished(opener, journal)) == 1
    notes = bring("ended", "second", TUESDAY, **CHANGED)
    assert any("completed" in note for note in notes)
    assert note_unfinished(opener, journal) == []
    assert state_of(spark, schema, "ended") == state_of(spark, schema, "whole")
