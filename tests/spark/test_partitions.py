"""New messages of a partitioned table get the partition values from Delta's log, with any folder names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

import routing
from routing.config import TableLocation
from routing.delta.append_detection import AppendedRows, ClosedDetection, LogDetection, TableVersion
from routing.delta.local_tables import UnreadableTable, dataset_of, open_local
from routing.delta.spark_tables import TableSnapshot, current_version
from routing.delta.table_log import TableLog
from routing.schemas import MESSAGES
from routing.sessions.existing_session import ExistingSession
from tests.estate_rows import database, instance, message, route, service
from tests.frames import arrow_of, frame_of
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.core, pytest.mark.matrix]
NAMES = ("Aufträge", "a=b", "50%", "%C3%A4", "a/b", "a b+c", "[x]{y}*?", "日本", "", None)
# These have several types. Their texts in the log are those of Spark and of delta-rs.
COLUMNS = ("instance_name", "database_name", "hops_remaining", "enqueue_time", "is_initiator")


def _rows() -> list[dict[str, Any]]:
    texts = [
        message(2 * n, "//far", instance_name=name, database_name=f"db {name}", hops_remaining=n % 3 or None)
        for n, name in enumerate(NAMES)
    ]
    others = [message(2 * n + 1, "//far", database_name=name) for n, name in enumerate(NAMES)]
    return [*texts, *others]


def _by_delta_rs(spark: SparkSession, folder: Path, rows: list[dict[str, Any]]) -> None:
    from deltalake import write_deltalake

    write_deltalake(str(folder), arrow_of(rows, MESSAGES), mode="append", partition_by=list(COLUMNS))


def _by_spark(spark: SparkSession, folder: Path, rows: list[dict[str, Any]], **options: str) -> None:
    writer = frame_of(spark, rows, MESSAGES).coalesce(1).write.format("delta").mode("append").partitionBy(*COLUMNS)
    writer.options(**options).save(str(folder))


def _with_prefixes(spark: SparkSession, folder: Path, rows: list[dict[str, Any]]) -> None:
    options = {"delta.randomizeFilePrefixes": "true"} if not folder.exists() else {}
    _by_spark(spark, folder, rows, **options)


def _in_other_folders(spark: SparkSession, folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write like a writer that uses prefixes and leaves partition columns out of the files."""
    _by_delta_rs(spark, folder, rows)
    log = max((folder / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for number, add in enumerate(line["add"] for line in lines if "add" in line):
        moved = folder / f"x{number}" / Path(add["path"]).name
        moved.parent.mkdir(exist_ok=True)
        (folder / unquote(add["path"])).rename(moved)
        add["path"] = str(moved.relative_to(folder))
    log.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")


def _with_empty_texts(spark: SparkSession, folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write by Spark, and replace null in the log by empty text, which means the same in Delta's protocol."""
    _by_spark(spark, folder, rows)
    for file in (folder / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            values = line.get("add", {}).get("partitionValues", {})
            values.update({name: "" for name, value in values.items() if value is None})
        file.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def _as_texts(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the rows as texts, in order. Delta's protocol does not distinguish empty text and null."""
    return sorted(str({name: row[name] or None for name in sorted(MESSAGES.names)}) for row in rows)


@pytest.mark.parametrize("write", [_by_delta_rs, _by_spark, _with_prefixes, _in_other_folders, _with_empty_texts])
def test_new_rows_are_those_of_a_full_read(spark: SparkSession, tmp_path: Path, write: Any) -> None:
    folder = tmp_path / "odd=name é" / "messages"
    write(spark, folder, [message(90, "//far")])
    write(spark, folder, _rows())
    location = TableLocation(str(folder))
    table = TableVersion(TableSnapshot(location, 1), TableLog(ExistingSession(spark), location))
    found = LogDetection().read(spark, table, 0)
    assert isinstance(found, AppendedRows)
    every = table.snapshot.read(spark).where("message_id <> 'm90'")
    expected = _as_texts(row.asDict() for row in every.collect())
    assert _as_texts(row.asDict() for row in found.rows.collect()) == expected
    assert found.count == len(_rows()) == len(expected)


@pytest.mark.parametrize("write", [_by_delta_rs, _with_empty_texts])
def test_both_engines_read_the_same(spark: SparkSession, tmp_path: Path, write: Any) -> None:
    write(spark, tmp_path / "messages", _rows())
    location = TableLocation(str(tmp_path / "messages"))
    opened = open_local(location)
    assert not isinstance(opened, UnreadableTable)
    names = [name for name in MESSAGES.names if name != "enqueue_time"]
    by_arrow = dataset_of(location.text, opened).to_table(columns=names).to_pylist()
    by_spark = TableSnapshot(location, 0).read(spark).select(*names).collect()
    plain = [{**row.asDict(), "enqueue_time": None} for row in by_spark]
    assert _as_texts({**row, "enqueue_time": None} for row in by_arrow) == _as_texts(plain)


def test_an_incremental_run_decides_what_a_full_run_decides(spark: SparkSession, tmp_path: Path) -> None:
    """All instances and databases of the messages are known, so only a misread name is rejected."""
    names = [name for name in NAMES if name]
    estate = {
        "instances": [instance(name, "tcp://hub:4022") for name in (*names, "hub")],
        "databases": [
            database(f"db {name}", guid=f"{n:08}-0000-0000-0000-000000000001", instance_name=name)
            for n, name in enumerate(names)
        ],
        "services": [service(f"db {name}", "//far", instance_name=name) for name in names],
        "routes": [route("Far", "//far", "LOCAL", instance_name=names[0], database_name=f"db {names[0]}")],
    }
    inputs = save_estate(estate, tmp_path / "in", files=1)
    messages = [
        message(n, "//far", instance_name=name, database_name=f"db {name}") for n, name in enumerate(names)
    ]
    _by_delta_rs(spark, inputs / "messages", messages[:1])
    config = config_of(inputs, tmp_path / "out", "resolve.mode=incremental", *_pending(tmp_path / "out"))
    routing.run(spark, config)
    _by_delta_rs(spark, inputs / "messages", messages[1:])
    row = routing.run(spark, config).row
    assert (row["rows_read"], row["rows_rejected"]) == (len(messages) - 1, 0)
    full = config_of(inputs, tmp_path / "full", "resolve.mode=full", *_pending(tmp_path / "full"))
    routing.run(spark, full)
    assert _decisions(spark, tmp_path / "out") == _decisions(spark, tmp_path / "full")
    assert len(_decisions(spark, tmp_path / "out")) == len(messages)


def _pending(outputs: Path) -> list[str]:
    return [f"output.pending_messages={outputs / 'pending_messages'}"]


def _decisions(spark: SparkSession, outputs: Path) -> list[str]:
    rows = spark.read.format("delta").load(str(outputs / "resolved_routes"))
    return sorted(
        str(row)
        for row in rows.select("message_id", "instance_name", "database_name", "outcome", "reason").collect()
    )


def test_files_of_mapped_columns_are_not_read_by_path(spark: SparkSession, tmp_path: Path) -> None:
    """Files from before the removal of the mapping still have its names, so they are not read either."""
    folder = tmp_path / "messages"
    table = f"delta.`{folder}`"
    frame_of(spark, [message(1, "//far")], MESSAGES).write.format("delta").save(str(folder))
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN to_service_name TO other")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN other TO to_service_name")
    frame_of(spark, [message(2, "//far")], MESSAGES).write.format("delta").mode("append").save(str(folder))
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')")
    location = TableLocation(str(folder))
    newest = current_version(ExistingSession(spark), location)
    assert newest is not None
    unmapped = TableVersion(TableSnapshot(location, newest), TableLog(ExistingSession(spark), location))
    assert not unmapped.detail.has_column_mapping
    for since in (0, 1, 3):
        assert isinstance(LogDetection().read(spark, unmapped, since), ClosedDetection), since
    assert isinstance(LogDetection().read(spark, unmapped, newest), AppendedRows)
