"""A folder that an interrupted creation left is cleaned up by the job that began it, and by nobody else."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from routing.config import TableLocation
from routing.delta.run_lock import only_run
from routing.delta.table_creation import check_vacant, creating, is_vacant
from routing.errors import OutputError, StorageError

JOB, OTHER = "/jobs/runs", "/others/runs"
ID = "0a1b2c3d-0000-4000-8000-00000000000f"
PART = f"part-00000-{ID}-c000.zstd.parquet"
FIRST = "0" * 20
# Files as Spark and delta-rs leave them, in a table's folder.
LEFTOVER = [
    PART,
    f".{PART}.crc",
    f"part-00000-{ID}-c000.snappy.parquet#1",
    f"_delta_log/.{FIRST}.json.{ID}.tmp",
    f"_delta_log/..{FIRST}.json.{ID}.tmp.crc",
    f"_delta_log/{FIRST}.json#1",
    f"_delta_log/_commit_{ID}.json.tmp",
]


class Killed(BaseException):
    """Ends a creation as a kill does."""


def location_in(folder: Path) -> TableLocation:
    return TableLocation(str(folder / "table"))


def put(folder: Path, *names: str) -> None:
    for name in names:
        file = folder / "table" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def files_in(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))


def interrupt(folder: Path, *names: str, job: str = JOB) -> None:
    """Begin to create a table, and stop when some of its files exist."""
    with suppress(Killed), creating(location_in(folder), job):
        put(folder, *names)
        raise Killed


def create(folder: Path) -> None:
    """Create the table."""
    with creating(location_in(folder), JOB):
        put(folder, PART, f"_delta_log/{FIRST}.json")


def test_the_same_job_completes_a_table_creation(tmp_path: Path) -> None:
    interrupt(tmp_path, *LEFTOVER)
    (tmp_path / "table" / "_delta_log" / "_staged_commits").mkdir()
    assert "table.creating" in files_in(tmp_path)
    assert is_vacant(location_in(tmp_path), JOB)
    with creating(location_in(tmp_path), JOB):
        assert files_in(tmp_path / "table") == []
        put(tmp_path, PART, f"_delta_log/{FIRST}.json")
    assert files_in(tmp_path) == ["table", "table/_delta_log", f"table/_delta_log/{FIRST}.json", f"table/{PART}"]


@pytest.mark.parametrize(
    "foreign",
    [
        "notes.txt",
        "part-00000.parquet",
        "_SUCCESS",
        f"sub/{PART}",
        f"_delta_log/{FIRST}.checkpoint.parquet",
        f"_delta_log/{PART}",
        "_delta_log/notes.json",
    ],
)
def test_any_other_file_is_kept_and_refused(foreign: str, tmp_path: Path) -> None:
    interrupt(tmp_path, PART)
    put(tmp_path, foreign)
    before = files_in(tmp_path)
    if "checkpoint" not in foreign:
        with pytest.raises(OutputError, match="is not empty and is not a Delta table"):
            check_vacant("output.runs", location_in(tmp_path), JOB)
        with (
            pytest.raises(StorageError, match="files that are not of this job"),
            creating(location_in(tmp_path), JOB),
        ):
            raise AssertionError("nothing may be created")
    assert set(before) <= set(files_in(tmp_path))


def test_a_folder_without_a_marker_is_refused(tmp_path: Path) -> None:
    put(tmp_path, PART)
    assert not is_vacant(location_in(tmp_path), JOB)


def test_another_job_is_refused(tmp_path: Path) -> None:
    interrupt(tmp_path, PART, job=OTHER)
    assert not is_vacant(location_in(tmp_path), JOB)
    assert is_vacant(location_in(tmp_path), OTHER)


def test_a_file_that_is_older_than_the_marker_is_no_leftover(tmp_path: Path) -> None:
    interrupt(tmp_path, PART)
    os.utime(tmp_path / "table" / PART, (0, 0))
    assert not is_vacant(location_in(tmp_path), JOB)


@pytest.mark.parametrize("what", ["table", "file", "marker"])
def test_links_are_not_followed(what: str, tmp_path: Path) -> None:
    interrupt(tmp_path, PART)
    moved = {
        "table": tmp_path / "table",
        "file": tmp_path / "table" / PART,
        "marker": tmp_path / "table.creating",
    }[what]
    moved.rename(tmp_path / "moved")
    moved.symlink_to(tmp_path / "moved")
    assert not is_vacant(location_in(tmp_path), JOB)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"job": null}', "\ud800"])
def test_a_damaged_marker_is_ignored(content: str, tmp_path: Path) -> None:
    interrupt(tmp_path, PART)
    (tmp_path / "table.creating").write_text(content, encoding="utf-8", errors="surrogatepass")
    assert not is_vacant(location_in(tmp_path), JOB)


def test_one_process_creates_a_table_at_a_time(tmp_path: Path) -> None:
    with only_run(location_in(tmp_path), "creation"), pytest.raises(StorageError, match="another run is at work"):
        create(tmp_path)


def test_an_existing_table_gets_no_marker_and_loses_an_old_one(tmp_path: Path) -> None:
    put(tmp_path, f"_delta_log/{FIRST}.json")
    with creating(location_in(tmp_path), JOB):
        assert not (tmp_path / "table.creating").exists()
    (tmp_path / "table.creating").write_text('{"job": "old"}', encoding="utf-8")
    with creating(location_in(tmp_path), JOB):
        pass
    assert files_in(tmp_path) == ["table", "table/_delta_log", f"table/_delta_log/{FIRST}.json"]


def test_a_failure_before_any_file_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), creating(location_in(tmp_path), JOB):
        raise ZeroDivisionError
    assert files_in(tmp_path) == []
