"""A table's history and the writer of its commits, from a log on a local file system."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from routing.config import TableLocation
from routing.delta.commits import ANNOUNCEMENT, newest_version
from routing.delta.job_outputs import RESTORE, RUN, CommitMark
from routing.delta.table_log import TableLog
from routing.errors import HistoryGap, StorageError

Row = pytest.importorskip("pyspark.sql").Row
# Nothing here may ask Spark.
NO_SPARK: Any = None
RUN_A, RESTORE_4 = CommitMark(RUN, "a", "/out/runs"), CommitMark(RESTORE, "a", "/out/runs", 4)


def log_of(folder: Path, *infos: dict[str, Any]) -> TableLocation:
    """A table's log with one commit for each commit info, which stands behind an action as it may."""
    log = folder / "_delta_log"
    log.mkdir()
    for version, info in enumerate(infos):
        lines = [json.dumps({"add": {"path": "commitInfo"}}), json.dumps({"commitInfo": info})]
        (log / f"{version:020}.json").write_text("\n".join(lines), encoding="utf-8")
    return TableLocation(str(folder))


def written(mark: str | None = None) -> dict[str, Any]:
    return {"operation": "WRITE", **({} if mark is None else {"userMetadata": mark})}


def test_the_newest_commit_is_the_version(tmp_path: Path) -> None:
    table = log_of(tmp_path, written(), written(), written())
    (tmp_path / "_delta_log" / "00000000000000000009.checkpoint.parquet").touch()
    (tmp_path / "_delta_log" / "00000000000000000009.crc").touch()
    (tmp_path / "_delta_log" / ".00000000000000000009.json.tmp").touch()
    assert newest_version(table) == 2


@pytest.mark.parametrize("text", ["", "missing"])
def test_a_table_without_a_log_has_no_version(tmp_path: Path, text: str) -> None:
    assert newest_version(TableLocation(str(tmp_path / text))) is None
    log_of(tmp_path, written())
    assert newest_version(TableLocation(str(tmp_path), is_name=True)) is None
    assert newest_version(TableLocation("s3a://bucket/table")) is None


def test_marks_are_read_and_other_texts_are_ignored(tmp_path: Path) -> None:
    table = log_of(tmp_path, written(RUN_A.as_text()), written("4c1d"), written('{"sbroute": 1}'), written("[]"))
    commits = TableLog(NO_SPARK, table).commits_after(-1)
    assert [commit.version for commit in commits] == [0, 1, 2, 3]
    assert [commit.commit_mark for commit in commits] == [RUN_A, None, None, None]
    assert [commit.metadata for commit in commits][1:3] == ["4c1d", '{"sbroute": 1}']
    assert [commit.version for commit in TableLog(NO_SPARK, table).commits_after(2)] == [3]
    assert TableLog(NO_SPARK, table).commits_after(3) == []


def _announced(mark: CommitMark) -> dict[str, Any]:
    properties = json.dumps({"delta.x": "y", ANNOUNCEMENT: mark.as_text()})
    return {"operation": "SET TBLPROPERTIES", "operationParameters": {"properties": properties}}


def _restored(version: int) -> dict[str, Any]:
    return {"operation": "RESTORE", "operationParameters": {"version": version, "timestamp": None}}


def test_a_restore_that_was_announced_is_marked_once(tmp_path: Path) -> None:
    table = log_of(tmp_path, _announced(RESTORE_4), {"operation": "OPTIMIZE"}, _restored(4), _restored(4))
    assert [commit.commit_mark for commit in TableLog(NO_SPARK, table).commits_after(-1)] == [
        None,
        None,
        RESTORE_4,
        None,
    ]


@pytest.mark.parametrize(
    "infos",
    [
        [_announced(RESTORE_4), _restored(3)],
        [_announced(RUN_A), _restored(4)],
        [{"operation": "SET TBLPROPERTIES", "operationParameters": {"properties": "{"}}, _restored(4)],
        [{"operation": "SET TBLPROPERTIES", "operationParameters": {"properties": "[1]"}}, _restored(4)],
        [{"operation": "SET TBLPROPERTIES"}, _restored(4)],
    ],
)
def test_an_unannounced_restore_is_foreign(tmp_path: Path, infos: list[dict[str, Any]]) -> None:
    assert [commit.commit_mark for commit in TableLog(NO_SPARK, log_of(tmp_path, *infos)).commits_after(-1)] == [
        None,
        None,
    ]


MERGE: dict[str, Any] = {"operation": "MERGE"}


@pytest.mark.parametrize(
    ("infos", "marked"),
    [
        ([_announced(RUN_A), MERGE, MERGE], [1]),
        ([_announced(RUN_A), {"operation": "OPTIMIZE"}, MERGE], []),
        ([_announced(RESTORE_4), MERGE, _restored(4)], [2]),
        ([MERGE, _announced(RUN_A)], []),
    ],
    ids=["right after it", "later", "a restore was announced", "before"],
)
def test_a_merge_right_after_its_announcement_is_marked(
    tmp_path: Path, infos: list[dict[str, Any]], marked: list[int]
) -> None:
    table = log_of(tmp_path, written(), *infos, written())
    log = TableLog(NO_SPARK, table)
    for commits in (log.commits_after(-1), [*log.history()][::-1]):
        assert [commit.version for commit in commits] == [*range(len(infos) + 2)]
        assert [commit.version - 1 for commit in commits if commit.commit_mark is not None] == marked


@pytest.mark.parametrize(("removed", "after"), [(0, -1), (1, 0), (2, 0)])
def test_missing_commits_are_reported(tmp_path: Path, removed: int, after: int) -> None:
    table = log_of(tmp_path, written(), written(), written(), written())
    (tmp_path / "_delta_log" / f"{removed:020}.json").unlink()
    with pytest.raises(HistoryGap, match=r"has been cleaned up"):
        TableLog(NO_SPARK, table).commits_after(after)
    assert [commit.version for commit in TableLog(NO_SPARK, table).commits_after(2)] == [3]


def _versions(table: TableLocation) -> list[int]:
    return [commit.version for commit in TableLog(NO_SPARK, table).history()]


def test_the_history_goes_back_to_the_first_gap(tmp_path: Path) -> None:
    table = log_of(tmp_path, *(written() for _ in range(130)))
    assert _versions(table) == [*range(129, -1, -1)]
    (tmp_path / "_delta_log" / f"{70:020}.json").unlink()
    assert _versions(table) == [*range(129, 70, -1)]


def test_files_are_read_lazily(tmp_path: Path) -> None:
    table = log_of(tmp_path, written(), written(), written())
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("damaged", encoding="utf-8")
    history = TableLog(NO_SPARK, table).history()
    assert [next(history).version, next(history).version] == [2, 1]
    with pytest.raises(StorageError, match="a line of version 0 is not JSON"):
        next(history)


@pytest.mark.parametrize("between", [0, 60])
def test_an_announced_restore_is_marked_in_the_history(tmp_path: Path, between: int) -> None:
    maintained = [{"operation": "OPTIMIZE"}] * between
    table = log_of(tmp_path, written(), _announced(RESTORE_4), *maintained, _restored(4), written(), _restored(4))
    marks = {commit.version: commit.commit_mark for commit in TableLog(NO_SPARK, table).history()}
    assert {version: mark for version, mark in marks.items() if mark is not None} == {2 + between: RESTORE_4}
    assert [*marks] == [*range(4 + between, -1, -1)]


class _Session:
    """A session with some commits in its DESCRIBE HISTORY. ``limits`` has the requested limits.


    ``marks`` are the user metadata of commits by version. Each has a time of its own from ``timed`` on.
    """

    def __init__(self, commits: int, marks: dict[int, str] | None = None, timed: int = 0) -> None:
        self.commits, self.limits, self.details = commits, list[int](), 0
        self.marks, self.timed = marks or {}, timed

    @property
    def spark(self) -> Any:
        return self

    def sql(self, text: str) -> Any:
        if text.startswith("DESCRIBE DETAIL"):
            self.details += 1
            properties = {"delta.enableInCommitTimestamps": "true"}
            properties["delta.inCommitTimestampEnablementVersion"] = str(self.timed)
            row = Row(location="/post/messages", id="an id", properties=properties)
            return SimpleNamespace(collect=lambda: [row])
        limit = int(text.rpartition("LIMIT ")[2])
        self.limits.append(limit)
        versions = range(self.commits - 1, max(self.commits - 1 - limit, -1), -1)
        rows = [
            Row(
                version=number,
                operation="WRITE",
                timestamp=datetime.fromtimestamp(number, timezone.utc),
                userMetadata=self.marks.get(number),
            )
            for number in versions
        ]
        # Somebody commits between two statements.
        self.commits += 1
        return SimpleNamespace(collect=lambda: rows)


NAMED = TableLocation("post.messages", is_name=True)


@pytest.mark.parametrize(("commits", "taken", "limits"), [(200, 10, [10]), (200, 11, [10, 100]), (8, 8, [10])])
def test_spark_reads_the_history_in_blocks(commits: int, taken: int, limits: list[int]) -> None:
    session = _Session(commits)
    history = TableLog(session, NAMED).history()
    assert [commit.version for commit in islice(history, taken)] == [*range(commits - 1, commits - 1 - taken, -1)]
    assert session.limits == limits


def test_a_long_history_costs_only_the_commits_read() -> None:
    """The second statement leaves room for commits that were added since the first."""
    session = _Session(20_000)
    log = TableLog(session, NAMED)
    assert (log.version, log.newest) == (19_999, 19_999)
    assert [commit.version for commit in log.commits_after(19_995)] == [*range(19_996, 20_000)]
    assert log.identity(19_990) is not None
    assert session.limits == [10]
    assert [commit.version for commit in log.commits_after(17_999)] == [*range(18_000, 20_000)]
    assert session.limits == [10, 2_010]


def test_the_identity_of_a_marked_commit_has_no_time() -> None:
    """Another release may have recorded it with its time. An unmarked one is told by its time, if it has one."""
    session = _Session(3, {1: RUN_A.as_text()}, timed=2)
    log = TableLog(session, NAMED)
    marked = log.identity(1)
    assert marked is not None
    assert session.details == 0
    for version in (0, 2):
        identity = log.identity(version)
        assert identity is not None
        assert [log.is_commit(number, identity) for number in range(4)] == [n == version for n in range(4)]
    assert session.details == 1
    # One that has no time, and one of another time.
    other = _Session(3, {1: RUN_A.as_text()}, timed=9)
    assert TableLog(other, NAMED).identity(1) == marked
    assert TableLog(other, NAMED).identity(2) != log.identity(2)
    assert log.is_commit(2, TableLog(other, NAMED).identity(2) or "")


@pytest.mark.parametrize("line", ["{", "not JSON", '{"add": {"path": "x"}'])
def test_an_invalid_json_line_is_refused(tmp_path: Path, line: str) -> None:
    table = log_of(tmp_path, written(), written())
    with (tmp_path / "_delta_log" / f"{1:020}.json").open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    with pytest.raises(StorageError, match="a line of version 1 is not JSON") as caught:
        TableLog(NO_SPARK, table).commits_after(0)
    assert caught.value.exit_code == 3


def test_commits_of_one_number_have_different_identities(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = log_of(tmp_path / "a", written("x")), log_of(tmp_path / "b", written("y"))
    here, there = TableLog(NO_SPARK, one), TableLog(NO_SPARK, other)
    identity = here.identity(0)
    assert identity is not None
    assert len(identity) == 64
    assert here.identity(0) == identity != there.identity(0)
    assert (here.is_commit(0, identity), there.is_commit(0, identity)) == (True, False)
    assert here.identity(1) is None
    assert not here.is_commit(1, identity)


@pytest.mark.parametrize(
    ("parameters", "restored"),
    [
        ({"version": 4, "timestamp": None}, 4),
        ({"version": "4"}, 4),
        ({"version": None, "timestamp": "2026-01-05 12:00:00"}, None),
        ({"version": "", "datetime": "2026-01-05T12:00:00Z"}, None),
        ({}, None),
    ],
    ids=["a number", "a number as text", "a time", "a time of delta-rs", "neither"],
)
def test_a_restore_names_its_version(tmp_path: Path, parameters: dict[str, Any], restored: int | None) -> None:
    restore = {"operation": "RESTORE", "operationParameters": parameters}
    table = log_of(tmp_path, restore, {"operation": "WRITE", "operationParameters": {"version": 4}})
    assert [commit.restored for commit in TableLog(NO_SPARK, table).commits_after(-1)] == [restored, None]
