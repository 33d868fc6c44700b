"""A table's newest version and who wrote it, from a log on a local file system."""

from __future__ import annotations

import json
from pathlib import Path

from routing.commits import newest_version, written_by
from routing.config import Location


def log_of(folder: Path, *metadata: str | None) -> Location:
    """A table's log with one commit for each user metadata."""
    log = folder / "_delta_log"
    log.mkdir()
    for version, text in enumerate(metadata):
        info = {"operation": "WRITE", **({} if text is None else {"userMetadata": text})}
        lines = [
            json.dumps({"add": {"path": "commitInfo"}}),
            json.dumps({"commitInfo": info}, separators=(",", ":")),
        ]
        (log / f"{version:020}.json").write_text("\n".join(lines), encoding="utf-8")
    return Location(str(folder))


def test_the_newest_commit_is_the_version(tmp_path: Path) -> None:
    table = log_of(tmp_path, "a", None, "b")
    (tmp_path / "_delta_log" / "00000000000000000009.checkpoint.parquet").touch()
    (tmp_path / "_delta_log" / "00000000000000000009.crc").touch()
    (tmp_path / "_delta_log" / ".00000000000000000009.json.tmp").touch()
    assert newest_version(table) == 2


def test_a_writer_is_told_by_its_metadata(tmp_path: Path) -> None:
    table = log_of(tmp_path, "a", "b", "a", None)
    assert written_by(table, "a") == [0, 2]
    assert written_by(table, "c") == []
    assert written_by(table, "a", newest=2) == [2]
    assert written_by(table, "b", newest=2) == []


def test_what_the_log_cannot_tell_is_left_to_spark(tmp_path: Path) -> None:
    for text in (str(tmp_path), str(tmp_path / "missing"), "s3a://bucket/table"):
        assert newest_version(Location(text)) is None
        assert written_by(Location(text), "a") is None
    log_of(tmp_path, "a")
    assert newest_version(Location(str(tmp_path), is_name=True)) is None
