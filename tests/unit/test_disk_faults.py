"""Errors name the fault of a disk behind any library's exception. Existing folders are accepted."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from routing import cli
from routing.errors import StorageError, first_sentence
from routing.storage_faults import find_lasting_fault
from tests.estate_rows import small_estate
from tests.stored import save_job

RUST = (
    "Failed to parse parquet: External: Generic LocalFileSystem error:"
    " Unable to copy data to file: No space left on device (os error 28)"
)
JAVA = (
    "[TASK_WRITE_FAILED] Task failed while writing rows.\nCaused by: java.io.IOException: No space left on device"
)
TREE = (
    "Generic LocalFileSystem error\n          \x1b[31m\u21b3\x1b[0m Unable to copy data to file\n"
    "           \x1b[31m\u21b3\x1b[0m No space left on device (os error 28)\n"
)
ARROW = "[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device"
DENIED = "Generic LocalFileSystem error: Unable to open file /out/a.parquet: Permission denied (os error 13)"


@pytest.mark.parametrize(
    ("text", "number", "sentence"),
    [
        (RUST, errno.ENOSPC, "No space left on device (Unable to copy data to file)"),
        (TREE, errno.ENOSPC, "No space left on device (Unable to copy data to file)"),
        (ARROW, errno.ENOSPC, "No space left on device (Error writing bytes to file)"),
        (JAVA, errno.ENOSPC, "No space left on device ([TASK_WRITE_FAILED] Task failed while writing rows.)"),
        (DENIED, errno.EACCES, "Permission denied (Unable to open file /out/a.parquet)"),
        (
            "Cannot write, [Errno 30] Read-only file system",
            errno.EROFS,
            "Read-only file system (Cannot write)",
        ),
        ("the service timed out", None, "the service timed out"),
        ("no module for Permission denied messages", None, "no module for Permission denied messages"),
    ],
)
def test_the_error_number_of_a_disk_fault_is_found(text: str, number: int | None, sentence: str) -> None:
    error = RuntimeError(text)
    assert find_lasting_fault(error) == number
    assert first_sentence(error) == sentence


def test_a_disk_fault_among_the_causes_is_found() -> None:
    error = RuntimeError("Generic LocalFileSystem error")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert first_sentence(error) == "No space left on device (Generic LocalFileSystem error)"


def test_the_message_names_the_file() -> None:
    error = OSError(errno.EROFS, "Read-only file system", "/out/diff.creating")
    assert first_sentence(error) == "Read-only file system (/out/diff.creating)"
    tree = OSError(TREE)
    assert (find_lasting_fault(tree), first_sentence(tree)) == (errno.ENOSPC, first_sentence(RuntimeError(TREE)))
    assert first_sentence(RuntimeError(TREE.replace("No space left on device (os error 28)", "it timed out"))) == (
        "Generic LocalFileSystem error: Unable to copy data to file: it timed out"
    )


def test_each_disk_fault_has_its_hint() -> None:
    assert "run again once there is free space" in str(
        StorageError.failed("writing x", first_sentence(RuntimeError(RUST)))
    )
    assert "run again once this user has write permission" in str(
        StorageError.failed("x", first_sentence(RuntimeError(DENIED)))
    )
    assert "run again once the cause is gone" in str(StorageError.failed("x", "it timed out"))


def test_runs_accept_empty_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = save_job(small_estate(), tmp_path)
    others = ("message_paths", "reconciliation", "pending_messages", "route_candidates")
    lines = "".join(f"  {key}: {tmp_path}/out/{key}\n" for key in others)
    text = job.read_text(encoding="utf-8").replace("output:\n", f"output:\n{lines}")
    if "observed_routing" not in text:
        text = text.replace("tables:\n", f"tables:\n  observed_routing: {tmp_path}/in/observed_routing\n")
    job.write_text(text, encoding="utf-8")
    for key in (*others, "resolved_routes", "new_route_requests", "rejected_messages", "runs"):
        (tmp_path / "out" / key).mkdir(parents=True)
    for command in ("resolve --engine local", "trace --all"):
        status = cli.main([*command.split(), "--config", str(job), "--quiet"])
        assert status == 0, (command, capsys.readouterr().err)


def test_imports_accept_empty_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples = Path(__file__).parents[2] / "conf" / "examples"
    job = tmp_path / "job.yaml"
    text = (examples / "import.yaml").read_text(encoding="utf-8").replace("../../build/demo-import/", "")
    job.write_text(text, encoding="utf-8")
    for key in ("routes", "databases", "messages", "dialogs", "imports", "imports_unfinished", "observed_routing"):
        (tmp_path / "data" / key).mkdir(parents=True)
    status = cli.main(["import", "catalog", str(examples / "exports"), "--config", str(job), "--quiet"])
    assert status == 0, capsys.readouterr().err
    assert (tmp_path / "data" / "routes" / "_delta_log").is_dir()
