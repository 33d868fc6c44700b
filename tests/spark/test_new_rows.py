"""New message rows of a table with a catalog name, from its change data feed or its log.

Unity Catalog is not available here. A stand-in refuses reading a table by its path.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing.config import TableLocation
from routing.delta.append_detection import (
    AppendedRows,
    ClosedDetection,
    FeedDetection,
    LogDetection,
    TableVersion,
)
from routing.delta.appended_rows import check_detectable, check_files, files_of, read_appended
from routing.delta.spark_tables import TableSnapshot
from routing.delta.table_log import TableLog
from routing.errors import InputError
from routing.sessions.existing_session import ExistingSession
from tests.estate_rows import message, small_estate
from tests.frames import frame_of, rows_of
from tests.plans import EXCHANGE, PYTHON
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.config import Config

pytestmark = [pytest.mark.core, pytest.mark.matrix]
FEED, TRACKING = "'delta.enableChangeDataFeed' = 'true'", "'delta.enableRowTracking' = 'true'"
VECTORS, MAPPING = "'delta.enableDeletionVectors' = 'true'", "'delta.columnMapping.mode' = 'name'"
# The history of each table. The first statement makes version 1.
STORY = (
    "INSERT INTO {t} VALUES ('a'), ('b')",
    "DELETE FROM {t} WHERE message_id = 'a'",
    "INSERT INTO {t} VALUES ('c'), ('d')",
    "OPTIMIZE {t}",
    "ALTER TABLE {t} ADD COLUMNS (hops_remaining INT, extra STRING)",
    "INSERT INTO {t} VALUES ('e', 7, 'x')",
    "DELETE FROM {t} WHERE message_id = 'c'",
    "RESTORE TABLE {t} TO VERSION AS OF 6",
)
KINDS = {"offering": f"{FEED}, {VECTORS}, {MAPPING}", "plain": VECTORS}
WAYS: tuple[tuple[str, Any], ...] = (
    ("offering", FeedDetection()),
    ("plain", LogDetection()),
)


@pytest.fixture(scope="module", autouse=True)
def post(spark: SparkSession) -> Iterator[Path]:
    """Create a schema of the catalog, and return the folder of its tables."""
    spark.sql("CREATE SCHEMA post")
    yield Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:"), "post.db")
    spark.sql("DROP SCHEMA post CASCADE")


def _make(spark: SparkSession, name: str, properties: str = "") -> None:
    clause = f"TBLPROPERTIES ({properties})" if properties else ""
    spark.sql(f"CREATE TABLE post.{name} (message_id STRING) USING delta {clause}")


@pytest.fixture(scope="module")
def story(spark: SparkSession) -> list[str]:
    """Return tables with the same history. One offers everything, and the paths of the other can be read."""
    for name, properties in KINDS.items():
        _make(spark, name, properties)
        for statement in STORY:
            spark.sql(statement.format(t=f"post.{name}"))
    return list(KINDS)


class Refused(Exception):
    """The error of a catalog that hides its paths."""


@pytest.fixture
def paths_refused(spark: SparkSession, post: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to read tables of the schema by path."""
    reader, session = type(spark.read), type(spark)

    def refusing(was: Any) -> Any:
        def reading(self: Any, *arguments: Any, **named: Any) -> Any:
            if str(post) in f"{arguments} {named}":
                raise Refused(f"[INSUFFICIENT_PERMISSIONS] no permission on any file of {post}")
            return was(self, *arguments, **named)

        return reading

    files_of_frame = type(spark.range(1)).inputFiles

    def no_files(self: Any) -> list[str]:
        files: list[str] = files_of_frame(self)
        if any(str(post) in file for file in files):
            raise Refused("[INSUFFICIENT_PERMISSIONS] no files are told")
        return files

    for name in ("load", "json", "parquet", "text", "csv", "orc"):
        monkeypatch.setattr(reader, name, refusing(getattr(reader, name)))
    monkeypatch.setattr(session, "sql", refusing(session.sql))
    monkeypatch.setattr(type(spark.range(1)), "inputFiles", no_files)


def _named(name: str, version: int) -> TableSnapshot:
    return TableSnapshot(TableLocation(f"post.{name}", is_name=True), version)


def _new(spark: SparkSession, name: str, since: int, version: int) -> AppendedRows:
    return read_appended(spark, _named(name, version), since)


def _ids(found: AppendedRows | ClosedDetection) -> list[str]:
    assert isinstance(found, AppendedRows)
    return sorted(row["message_id"] for row in found.rows.collect())


def _tables(spark: SparkSession, version: int) -> Iterator[tuple[Any, TableVersion]]:
    """Return each detection with a table for which it is possible, at a version."""
    logs = {name: TableLog(ExistingSession(spark), _named(name, 0).location) for name in KINDS}
    return ((way, TableVersion(_named(name, version), logs[name])) for name, way in WAYS)


@pytest.mark.usefixtures("story")
def test_appends_from_feed_and_log(spark: SparkSession) -> None:
    """An earlier DELETE is ignored. OPTIMIZE and new columns bring no rows."""
    for access, table in _tables(spark, 6):
        found = access.read(spark, table, 2)
        rows = sorted((row["message_id"], row["hops_remaining"]) for row in found.rows.collect())
        assert (access, rows, found.count) == (access, [("c", None), ("d", None), ("e", 7)], 3)
        # Columns outside the contract are ignored.
        assert found.rows.columns == ["message_id", "hops_remaining"]
    for access, table in _tables(spark, 5):
        assert (access, access.read(spark, table, 3).count) == (access, 0)


@pytest.mark.usefixtures("story")
@pytest.mark.parametrize(
    ("since", "version", "expected"),
    [
        (4, 8, r"version 8 of 'post\.\w+' is neither an append nor a delete \(RESTORE\)"),
        (7, 8, r"version 8 of 'post\.\w+' is neither an append nor a delete \(RESTORE\)"),
    ],
)
def test_operations_other_than_appends_are_refused(
    spark: SparkSession, since: int, version: int, expected: str
) -> None:
    for access, table in _tables(spark, version):
        with pytest.raises(InputError, match=expected) as caught:
            access.read(spark, table, since)
        assert caught.value.exit_code == 2
        assert "run once with --set resolve.mode=full" in str(caught.value)


def test_tables_by_path_are_read(spark: SparkSession, story: list[str], post: Path) -> None:
    """The log is used. With mapped columns, the feed is used instead, or the table is refused."""
    for name in story:
        snapshot = TableSnapshot(TableLocation(str(post / name)), 6)
        check_detectable(spark, snapshot)
        found = read_appended(spark, snapshot, 2)
        assert (name, _ids(found), found.count) == (name, ["c", "d", "e"], 3)
    _make(spark, "mapped", MAPPING)
    with pytest.raises(InputError, match=r"column mapping.*feed is off .ALTER TABLE"):
        check_detectable(spark, TableSnapshot(TableLocation(str(post / "mapped")), 0))


@pytest.mark.usefixtures("story", "paths_refused")
def test_a_table_without_feed_or_path_access_is_refused(spark: SparkSession) -> None:
    """The first run refuses a table that offers nothing and names the setting. So does a later one."""
    expected = "INSUFFICIENT_PERMISSIONS.*SET TBLPROPERTIES .'delta.enableChangeDataFeed' = 'true'"
    with pytest.raises(InputError, match=expected) as caught:
        check_detectable(spark, _named("plain", 6))
    assert "mode=full" not in str(caught.value)
    with pytest.raises(InputError, match=rf"{expected}.*, and run once with --set resolve\.mode=full"):
        _new(spark, "plain", 5, 6)
    check_detectable(spark, _named("offering", 6))
    assert _ids(_new(spark, "offering", 5, 6)) == ["e"]


@pytest.mark.classic
@pytest.mark.usefixtures("story")
def test_the_plan_moves_no_rows(spark: SparkSession) -> None:
    """The plan law forbids Exchange, Sort and Python nodes, also in Delta's plan of its feed."""
    for access, table in _tables(spark, 6):
        plan = access.read(spark, table, 5).rows._jdf.queryExecution()
        plan_text = plan.executedPlan().toString() + plan.toRdd().toDebugString()
        assert "Scan" in plan_text
        assert not [word for word in (EXCHANGE, "Sort", "Shuffled", *PYTHON) if word in plan_text], (
            access,
            plan_text,
        )


@pytest.mark.long
def test_table_properties_enabled_between_versions(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    merged = "USING (SELECT 'd' AS message_id) AS s ON t.message_id = s.message_id WHEN MATCHED"
    _make(spark, "late")
    for statement in (
        "INSERT INTO post.late VALUES ('a')",
        f"ALTER TABLE post.late SET TBLPROPERTIES ({FEED})",
        "INSERT INTO post.late VALUES ('b')",
        "INSERT INTO post.late VALUES ('c')",
        f"MERGE INTO post.late AS t {merged} THEN UPDATE SET message_id = 'z' WHEN NOT MATCHED THEN INSERT *",
    ):
        spark.sql(statement)
    # The log has these rows, but the feed does not.
    assert _ids(_new(spark, "late", 0, 5)) == ["a", "b", "c", "d"]
    request.getfixturevalue("paths_refused")
    with pytest.raises(InputError, match=r"feed was not on .* after 0") as caught:
        _new(spark, "late", 0, 5)
    # The feed is on by now.
    assert "SET TBLPROPERTIES" not in str(caught.value)
    assert "run once with --set resolve.mode=full" in str(caught.value)
    found = _new(spark, "late", 1, 5)
    assert (_ids(found), found.count) == (["b", "c", "d"], 3)
    spark.sql("ALTER TABLE post.late UNSET TBLPROPERTIES ('delta.enableChangeDataFeed')")
    with pytest.raises(InputError, match="its change data feed is off"):
        _new(spark, "late", 5, 6)
    spark.sql(f"CREATE OR REPLACE TABLE post.late USING delta TBLPROPERTIES ({FEED}) AS SELECT 'e' AS message_id")
    with pytest.raises(
        InputError, match=r"is neither an append nor a delete \(CREATE OR REPLACE TABLE AS SELECT\)"
    ):
        _new(spark, "late", 6, 7)


def _store(spark: SparkSession, folder: Path, name: str, properties: str) -> None:
    """Store an estate in which only messages has a catalog name."""
    stored = spark.read.format("delta").load(str(save_estate(small_estate(), folder / "in", files=1) / "messages"))
    columns = ", ".join(f"{column} {kind}" for column, kind in stored.dtypes)
    spark.sql(f"CREATE TABLE post.{name} ({columns}) USING delta TBLPROPERTIES ({properties})")
    stored.write.format("delta").mode("append").saveAsTable(f"post.{name}")


def _config(folder: Path, name: str, mode: str = "incremental") -> Config:
    pending = folder / "out" / "pending_messages"
    changed = (f"tables.messages=spark_catalog.post.{name}", f"resolve.mode={mode}")
    return config_of(folder / "in", folder / "out", *changed, f"output.pending_messages={pending}")


def _append(spark: SparkSession, name: str, *rows: dict[str, Any]) -> None:
    from routing.schemas import MESSAGES

    frame_of(spark, list(rows), MESSAGES).coalesce(1).write.format("delta").mode("append").saveAsTable(
        f"post.{name}"
    )


@pytest.mark.long
@pytest.mark.parametrize("mode", ["incremental", "full"])
def test_runs_in_a_catalog_without_path_access(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, mode: str
) -> None:
    """A run of either mode is followed by one over new messages, which retries the delayed ones."""
    name = f"runs_{mode}"
    _store(spark, tmp_path, name, f"{FEED}, {VECTORS}, {MAPPING}")
    request.getfixturevalue("paths_refused")
    first = routing.run(spark, _config(tmp_path, name, mode), run_id="first").row
    assert (first["rows_read"], first["rows_resolved"], first["rows_rejected"]) == (7, 5, 2)
    _append(spark, name, message(8, "//far"), message(1, "//far"), message(9, "//stock", instance_name="spoke"))
    spark.sql(f"OPTIMIZE post.{name}")
    second = routing.run(spark, _config(tmp_path, name), run_id="second").row
    # One id is a duplicate and one instance is unknown. The message that waits for a route still waits.
    assert (second["rows_read"], second["rows_resolved"], second["rows_rejected"]) == (4, 1, 2)
    assert second["rows_unchanged"] == 1
    rows = rows_of(spark.read.format("delta").load(str(tmp_path / "out" / "resolved_routes")))
    found = {(row["message_id"], row["attempt"]) for row in rows if row["run_id"] == "second"}
    assert found == {("m8", 1)}
    assert len(rows) == 6


@pytest.mark.long
def test_vacuumed_files_of_a_full_run_are_reported(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, post: Path
) -> None:
    """The delayed messages are read by name at the version that the run read."""
    _store(spark, tmp_path, "vacuumed", FEED)
    request.getfixturevalue("paths_refused")
    routing.run(spark, _config(tmp_path, "vacuumed", "full"))
    _append(spark, "vacuumed", message(8, "//far"))
    before = list((post / "vacuumed").glob("*.parquet"))
    spark.sql("OPTIMIZE post.vacuumed")
    # VACUUM would do the same, but with thousands of tasks.
    for file in before:
        file.unlink()
    # The missing files of appended rows are noticed first.
    with pytest.raises(InputError, match=r"files that were appended to .* have been vacuumed"):
        routing.run(spark, _config(tmp_path, "vacuumed"))
    known = TableSnapshot(TableLocation("post.vacuumed", is_name=True), 1)
    check_files(spark, known)
    with pytest.raises(InputError, match=r"files of version 1 of .* have been vacuumed"), files_of(known):
        known.read(spark).select("message_id").collect()


def test_nothing_is_written_if_later_runs_could_not_continue(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Row tracking alone is not enough: the statement turns the change data feed on."""
    _store(spark, tmp_path, "refused", f"{TRACKING}, {VECTORS}")
    request.getfixturevalue("paths_refused")
    with pytest.raises(InputError, match=r"ALTER TABLE \S+post\S+ SET TBLPROPERTIES .'delta.enableChangeDataFeed"):
        routing.run(spark, _config(tmp_path, "refused"))
    assert not list((tmp_path / "out").rglob("*.parquet"))
