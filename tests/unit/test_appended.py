"""The possible contents of Delta's log between two incremental runs, and its notation of paths."""

from __future__ import annotations

from typing import Any

import pytest

from routing.delta.append_detection import _absolute, check_appends
from routing.delta.file_systems import as_pattern
from routing.delta.log_changes import find_changed_files
from routing.errors import InputError


def _commit(version: int, operation: str) -> dict[str, Any]:
    return {"version": version, "operation": operation, "add": None, "remove": None}


def _file(
    version: int, action: str, path: str = "a.parquet", *, data: bool = True, hides: bool = False
) -> dict[str, Any]:
    vector = {"storageType": "u", "pathOrInlineDv": f"v{version}", "offset": 1} if hides else None
    told = {"path": path, "dataChange": data, "deletionVector": vector, "partitionValues": {}}
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
        [_commit(1, "DELETE"), _file(1, "remove"), _file(1, "add", hides=True)],
        [_commit(1, "TRUNCATE"), _file(1, "remove")],
        [],
    ],
)
def test_appends_deletes_and_maintenance(log: list[dict[str, Any]]) -> None:
    check_appends(log, "/data/messages")


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ([_commit(4, "MERGE"), _file(4, "remove", data=True)], r"version 4 .* neither .* nor a delete \(MERGE\)"),
        ([_commit(4, "UPDATE"), _file(4, "add", data=True, hides=True)], r"\(UPDATE\)"),
        (
            [_commit(5, "UPDATE"), _file(5, "remove", data=True), _commit(4, "WRITE"), _file(4, "add", data=True)],
            r"version 5 .*\(UPDATE\)",
        ),
        ([_commit(6, "WRITE"), _file(6, "add", data=True), _file(6, "remove", data=True)], r"\(WRITE\)"),
        ([_commit(7, "RESTORE"), _file(7, "add", data=True)], r"\(RESTORE\)"),
        ([_file(8, "remove", data=True)], r"\(unknown operation\)"),
    ],
)
def test_operations_other_than_appends_are_refused(log: list[dict[str, Any]], expected: str) -> None:
    with pytest.raises(InputError, match=expected) as caught:
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


def test_a_path_is_not_a_pattern() -> None:
    assert as_pattern("/a[1]/{b}*?.parquet") == r"/a\[1\]/\{b\}\*\?.parquet"


CHANGES: dict[str, tuple[list[dict[str, Any]], set[str], set[str]]] = {
    "a file is rewritten": ([_file(2, "remove"), _file(2, "add", "b.parquet")], {"b.parquet"}, {"a.parquet"}),
    "rows are hidden": ([_file(2, "add", hides=True), _file(2, "remove")], {"a.parquet"}, {"a.parquet"}),
    "appended, then removed": ([_file(3, "remove"), _file(2, "add")], set(), set()),
    "hidden twice": (
        [
            *(_file(2, "remove"), _file(2, "add", hides=True)),
            {**_file(3, "add", hides=True), "remove": _file(2, "add", hides=True)["add"]},
        ],
        {"a.parquet"},
        {"a.parquet"},
    ),
    "appended, and rewritten by OPTIMIZE": (
        [_file(2, "add"), _file(3, "remove", data=False), _file(3, "add", "b.parquet", data=False)],
        {"b.parquet"},
        set(),
    ),
    "statistics are computed": ([_file(2, "add", data=False)], set(), set()),
    "a vector's file is removed": ([_file(2, "remove", "v.bin", data=False)], set(), set()),
}


@pytest.mark.parametrize("what", CHANGES)
def test_added_and_removed_files_are_found(what: str) -> None:
    log, added, removed = CHANGES[what]
    changed = find_changed_files(log)
    assert ({file.path for file in changed.added}, {file.path for file in changed.removed}) == (added, removed)
    assert changed.names_for_delta == ({"a.parquet"} if "hidden" in what else set())


def test_names_that_spark_writes_in_another_way() -> None:
    assert find_changed_files([_file(2, "add", "p=a%20b/a.parquet", hides=True)]).has_plain_names
    assert not find_changed_files([_file(2, "add", "a b.parquet", hides=True)]).has_plain_names
    # Only Delta knows the partition values that the log left out.
    action = _file(2, "remove")
    action["remove"]["partitionValues"] = None
    assert find_changed_files([action]).names_for_delta == {"a.parquet"}
