"""The files of a folder: links, pipes and too many of them end the walk, and are named."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from routing import cli
from routing.errors import InputError
from routing.importing.import_files import list_files

PIPE = "not read, it is not a regular file"
OUTSIDE = "not followed, it is a link to a place outside the folder"
LOOP = "not followed, it is a link to a folder that contains it"


INSIDE = "not followed, it is a link to {}, which is in the folder too"


def listed(folder: Path) -> tuple[list[str], list[str]]:
    notes: list[str] = []
    files = [str(file.relative_to(folder)) for file in list_files(folder, notes)]
    return files, [note.removeprefix(f"{folder}/") for note in notes]


def test_skipped_entries_are_named(tmp_path: Path) -> None:
    folder, outside = tmp_path / "in", tmp_path / "beside"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "rows.parquet").mkdir()
    outside.mkdir()
    for file in (folder / "z.csv", folder / "a" / "b" / "y.csv", outside / "x.csv", folder / ".hidden.csv"):
        file.touch()
    (folder / "a" / "b" / "up").symlink_to(folder)
    (folder / "a" / "same").symlink_to(folder / "a")
    (folder / "above").symlink_to("/")
    (folder / "beside").symlink_to(outside)
    (folder / "file.csv").symlink_to(outside / "x.csv")
    (folder / "gone.csv").symlink_to(outside / "gone.csv")
    (folder / "null.csv").symlink_to("/dev/null")
    # Two folders that lead to each other.
    (outside / "back").symlink_to(folder / "a")
    (folder / "a" / "to").symlink_to(outside)
    os.mkfifo(folder / "pipe.csv")
    (folder / "inside.csv").symlink_to(folder / "z.csv")
    (folder / "c").symlink_to(folder / "a" / "b")
    # Volumes of Kubernetes have links to hidden folders.
    (folder / "..data").mkdir()
    (folder / "..data" / "x.csv").touch()
    (folder / "mounted.csv").symlink_to(folder / "..data" / "x.csv")
    files, notes = listed(folder)
    assert files == ["a/b/y.csv", "mounted.csv", "rows.parquet", "z.csv"]
    assert notes == [
        f"a/b/up: {LOOP}",
        f"a/same: {LOOP}",
        f"a/to: {OUTSIDE}",
        f"above: {LOOP}",
        f"beside: {OUTSIDE}",
        f"c: {INSIDE.format('a/b')}",
        f"file.csv: {OUTSIDE}",
        "gone.csv: not read, it is a broken link",
        f"inside.csv: {INSIDE.format('z.csv')}",
        f"null.csv: {OUTSIDE}",
        f"pipe.csv: {PIPE}",
    ]


def test_a_folder_that_is_a_link_itself_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.csv").touch()
    (tmp_path / "real" / "b.csv").symlink_to(tmp_path / "real" / "a.csv")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert listed(tmp_path / "link") == (["a.csv"], [f"b.csv: {INSIDE.format('a.csv')}"])


def test_a_file_name_that_is_not_text_is_noted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    (tmp_path / os.fsdecode(b"b\x81.csv")).touch()
    assert listed(tmp_path) == (["a.csv"], [r"b\x81.csv: not read, its name is not UTF-8"])


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.csv").touch()
    assert len(list_files(tmp_path, [], most=4)) == 4
    (tmp_path / "folder").mkdir()
    assert len(list_files(tmp_path, [], most=4)) == 4
    (tmp_path / "folder" / "5.csv").touch()
    with pytest.raises(InputError, match="holds more than 4 files"):
        list_files(tmp_path, [], most=4)


def test_folders_with_many_links_to_each_other(tmp_path: Path) -> None:
    """Twenty levels with four links each to the next one give a billion paths without a file."""
    levels = [tmp_path / ".hidden" / f"{level:02}" for level in range(20)]
    for level in levels:
        level.mkdir(parents=True)
    (tmp_path / "first").symlink_to(levels[0])
    for one, other in pairwise(levels):
        for number in range(4):
            (one / f"to{number}").symlink_to(other)
    with pytest.raises(InputError, match="more than 1,000 folders"):
        list_files(tmp_path, [], most=1000)


COMMANDS = [
    ["check"],
    ["lint"],
    ["import", "catalog", "--config", "job.yaml", "--instance", "hub"],
    ["import", "events", "--config", "job.yaml", "--instance", "hub"],
]


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: " ".join(line[:2]))
def test_every_command_skips_special_files_in_folders(
    line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "routes.csv")
    head = "instance_name,database_name,exported_at,conversation_handle,to_service_name,enqueue_time"
    guid = "00000000-0000-4000-8000-000000000001"
    row = f"hub,Sales,2026-01-05T00:00:00Z,{guid},//stock,2026-01-05T00:00:00Z,1"
    (folder / "transmission_queue.csv").write_text(f"{head},message_sequence_number\n{row}\n", encoding="utf-8")
    keys = ("routes", "databases", "services", "instances", "messages", "dialogs", "observed_routing", "imports")
    outputs = ("resolved_routes", "new_route_requests", "rejected_messages", "runs")
    lines = [
        "tables:",
        *(f"  {key}: t/{key}" for key in keys),
        "output:",
        *(f"  {key}: o/{key}" for key in outputs),
    ]
    (tmp_path / "job.yaml").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    if "events" in line:
        (folder / "transmission_queue.csv").unlink()
        (folder / "events.jsonl").write_text("", encoding="utf-8")
    assert cli.main([*line, str(folder)]) in (0, 1)
    output = "".join(capsys.readouterr())
    assert LOOP in output
    assert PIPE in output
