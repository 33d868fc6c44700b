"""What Delta's log or history may say between two incremental runs, and how the log writes paths."""

from __future__ import annotations

import re
from typing import Any

import pytest

from routing.delta.append_detection import _absolute, check_appends, count_appended, switches
from routing.delta.file_systems import as_pattern
from routing.errors import InputError


def _commit(version: int, operation: str) -> dict[str, Any]:
    return {"version": version, "operation": operation, "add": None, "remove": None}


def _file(version: int, action: str, *, data: bool, hides: bool = False) -> dict[str, Any]:
    vector = {"storageType": "u"} if hides else None
    told = {"path": "a.parquet", "dataChange": data, "deletionVector": vector}
    return {"version": version, "operation": None, "add": None, "remove": None, action: told}


@pytest.mark.parametrize(
    "log",
    [
        [_commit(1, "WRITE"), _file(1, "add", data=True)],
        # A MERGE that found nothing to change only adds.
        [_commit(1, "MERGE"), _file(1, "add", data=True)],
        [_commit(1, "OPTIMIZE"), _file(1, "add", data=False), _file(1, "remove", data=False)],
        [_commit(1, "REORG"), _file(1, "add", data=False, hides=True)],
        [_commit(1, "VACUUM START"), _commit(2, "VACUUM END"), _commit(3, "SET TBLPROPERTIES")],
        [],
    ],
)
def test_appends_and_maintenance(log: list[dict[str, Any]]) -> None:
    check_appends(log, "/data/messages")


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ([_commit(4, "DELETE"), _file(4, "remove", data=True)], r"version 4 .* is not an append \(DELETE\)"),
        ([_commit(4, "DELETE"), _file(4, "add", data=True, hides=True)], r"\(DELETE\)"),
        (
            [_commit(5, "UPDATE"), _file(5, "remove", data=True), _commit(4, "WRITE"), _file(4, "add", data=True)],
            r"version 5 .*\(UPDATE\)",
        ),
        ([_commit(6, "WRITE"), _file(6, "add", data=True), _file(6, "remove", data=True)], r"\(WRITE\)"),
        ([_commit(7, "RESTORE"), _file(7, "add", data=True)], r"\(RESTORE\)"),
        ([_file(8, "remove", data=True)], r"\(unknown operation\)"),
    ],
)
def test_everything_else(log: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        check_appends(log, "/data/messages")
    assert caught.value.exit_code == 2
    assert "run once with --set resolve.mode=full" in str(caught.value)


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("part-0.parquet", "/data/x y/part-0.parquet"),
        ("day=a%20b/part-0.parquet", "/data/x y/day=a b/part-0.parquet"),
        ("/elsewhere/a%25.parquet", "/elsewhere/a%.parquet"),
        ("s3a://bucket/a.parquet", "s3a://bucket/a.parquet"),
    ],
)
def test_paths_of_the_log(path: str, file: str) -> None:
    assert _absolute("/data/x y", path) == file


def test_a_path_is_no_pattern() -> None:
    assert as_pattern("/a[1]/{b}*?.parquet") == r"/a\[1\]/\{b\}\*\?.parquet"


def _told(operation: str | None, parameters: Any = None, **metrics: str) -> dict[str, Any]:
    return {"operation": operation, "operationParameters": parameters, "operationMetrics": metrics or None}


@pytest.mark.parametrize(
    ("told", "count"),
    [
        (_told("WRITE", {"mode": "Append"}, numOutputRows="3"), 3),
        # Metrics may be switched off.
        (_told("WRITE", {"mode": "Append"}), None),
        (_told("STREAMING UPDATE", {"outputMode": "Append"}, numOutputRows="0"), 0),
        (_told("COPY INTO", {}, numOutputRows="5"), 5),
        (_told("MERGE", numTargetRowsUpdated="0", numTargetRowsDeleted="0", numTargetRowsInserted="2"), 2),
        (_told("OPTIMIZE", {}, numRemovedFiles="4"), 0),
        (_told("SET TBLPROPERTIES"), 0),
        (_told("ADD COLUMNS"), 0),
        (_told("REORG"), 0),
    ],
)
def test_appends_by_the_history(told: dict[str, Any], count: int | None) -> None:
    assert count_appended("shop.messages", 4, told) == count


@pytest.mark.parametrize(
    "told",
    [
        _told("WRITE", {"mode": "Overwrite"}, numOutputRows="3"),
        _told("WRITE"),
        _told("STREAMING UPDATE", {"outputMode": "Complete"}, numOutputRows="3"),
        _told("MERGE", numTargetRowsUpdated="1", numTargetRowsDeleted="0", numTargetRowsInserted="2"),
        _told("MERGE", numTargetRowsUpdated="0", numTargetRowsDeleted="1", numTargetRowsInserted="2"),
        # What says nothing may have done anything.
        _told("MERGE"),
        _told("DELETE", {}, numDeletedRows="0"),
        *(_told(name) for name in ("UPDATE", "RESTORE", "CLONE", "TRUNCATE", "CREATE OR REPLACE TABLE", None)),
    ],
)
def test_everything_else_by_the_history(told: dict[str, Any]) -> None:
    name = re.escape(f"({told['operation'] or 'unknown operation'})")
    with pytest.raises(InputError, match=rf"version 4 of 'shop\.messages' is not an append {name}"):
        count_appended("shop.messages", 4, told)


@pytest.mark.parametrize(
    ("told", "is_switch"),
    [
        (_told("SET TBLPROPERTIES", {"properties": '{"delta.enableRowTracking":"true"}'}), True),
        (_told("UNSET TBLPROPERTIES", {"ifExists": "true", "properties": '["delta.enableRowTracking"]'}), True),
        (_told("ROW TRACKING BACKFILL", {"batchId": "0"}), True),
        (_told("SET TBLPROPERTIES", {"properties": '{"delta.enableChangeDataFeed":"true"}'}), False),
        (_told("WRITE", {"mode": "Append"}), False),
        (_told("WRITE"), False),
    ],
)
def test_row_tracking_is_switched(told: dict[str, Any], is_switch: bool) -> None:
    assert switches(told) is is_switch
