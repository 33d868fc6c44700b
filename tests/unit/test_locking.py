"""The lock file beside `runs`: one run at a time, and a killed one's file is taken over."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from routing.config import TableLocation
from routing.delta import run_lock
from routing.delta.run_lock import lock_file, only_run
from routing.errors import StorageError

_HOLDER = """
import sys, time
from routing.config import TableLocation
from routing.delta.run_lock import only_run
with only_run(TableLocation(sys.argv[1]), "nightly"):
    print("held", flush=True)
    time.sleep(60)
"""


def _owner_in(file: Path) -> dict[str, object]:
    return dict(json.loads(file.read_text(encoding="utf-8")))


def test_the_lock_file_names_process_and_run_and_is_removed(tmp_path: Path) -> None:
    runs = TableLocation(str(tmp_path / "out" / "runs"))
    file = tmp_path / "out" / "runs.lock"
    with only_run(runs, "first"):
        assert _owner_in(file) == {"pid": os.getpid(), "run_id": "first"}
    # Nothing else was written, so that the folder goes as well.
    assert list(tmp_path.iterdir()) == []


def test_releasing_the_lock_keeps_other_files(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with only_run(TableLocation(str(tmp_path / "out" / "runs")), "first"):
        (tmp_path / "out" / "kept").touch()
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["kept"]


def test_another_process_is_refused_until_it_is_gone(tmp_path: Path) -> None:
    runs = TableLocation(str(tmp_path / "runs"))
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, runs.text], stdout=subprocess.PIPE, text=True, env=_environment()
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StorageError) as caught, only_run(runs, "second"):
            pytest.fail("two at once")
        assert caught.value.exit_code == 3
        assert str(caught.value) == (
            f"another run is at work on these tables: run 'nightly', process '{holder.pid}', holds"
            f" '{tmp_path}/runs.lock' (run again when it has ended)"
        )
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=30)
    assert _owner_in(tmp_path / "runs.lock")["run_id"] == "nightly"
    with only_run(runs, "second"):
        assert _owner_in(tmp_path / "runs.lock") == {"pid": os.getpid(), "run_id": "second"}


def test_a_lock_file_of_garbage_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "runs.lock").write_text("[" * 5, encoding="utf-8")
    with only_run(TableLocation(str(tmp_path / "runs")), "first"):
        assert _owner_in(tmp_path / "runs.lock")["run_id"] == "first"


def test_a_lock_file_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StorageError, match=r"locking .*runs\.lock"),
        only_run(TableLocation(f"{tmp_path}/file/runs"), "x"),
    ):
        pytest.fail("locked")


def test_garbage_in_a_held_lock_file_is_shown_as_unknown(tmp_path: Path) -> None:
    with (tmp_path / "runs.lock").open("w", encoding="utf-8") as lock:
        lock.write("[" * 5000)
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        with (
            pytest.raises(StorageError, match=r"run 'unknown', process 'unknown'"),
            only_run(TableLocation(str(tmp_path / "runs")), "second"),
        ):
            pytest.fail("two at once")


def _refuse_locks(monkeypatch: pytest.MonkeyPatch, number: int = errno.EOPNOTSUPP) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, None])
@pytest.mark.parametrize("links", [True, False])
def test_without_locks_a_file_names_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int | None, links: bool
) -> None:
    """None: as on Windows, which has no flock."""
    if number is None:
        monkeypatch.setattr(run_lock, "fcntl", None)
    else:
        _refuse_locks(monkeypatch, number)
    if not links:
        monkeypatch.setattr(os, "link", _no_links)
    runs, file = TableLocation(str(tmp_path / "out" / "runs")), tmp_path / "out" / "runs.lock.owner"
    with only_run(runs, "first"):
        assert [one.name for one in file.parent.iterdir()] == ["runs.lock.owner"]
        owner = _owner_in(file)
        assert (owner["host"], owner["pid"], owner["run_id"]) == (socket.gethostname(), os.getpid(), "first")
        with pytest.raises(StorageError) as caught, only_run(runs, "second"):
            pytest.fail("two at once")
        assert caught.value.exit_code == 3
        assert str(caught.value) == (
            f"another run is at work on these tables: run 'first', process '{os.getpid()}' on host"
            f" '{socket.gethostname()}', holds '{file}' for 0.0 hours (run again when it has ended;"
            f" if that process is gone: rm {file})"
        )
        assert _owner_in(file) == owner
    assert list(tmp_path.iterdir()) == []


def _no_links(*_: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_the_file_of_a_process_that_has_ended_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import errno, fcntl\n"
        "def refuse(*_):\n    raise OSError(errno.ENOLCK, 'no locks')\n"
        f"fcntl.flock = refuse\n{_HOLDER}"
    )
    runs = TableLocation(str(tmp_path / "runs"))
    _refuse_locks(monkeypatch)
    with subprocess.Popen(
        [sys.executable, "-c", program, runs.text], stdout=subprocess.PIPE, text=True, env=_environment()
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StorageError, match="run 'nightly'"), only_run(runs, "second"):
            pytest.fail("two at once")
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=30)
    assert _owner_in(tmp_path / "runs.lock.owner")["run_id"] == "nightly"
    with only_run(runs, "second"):
        assert _owner_in(tmp_path / "runs.lock.owner")["run_id"] == "second"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"host": "elsewhere", "pid": 999_999_999}, "process '999999999' on host 'elsewhere'.* for 2.0 hours"),
        ({"host": None}, "on host 'None'"),
        ({"pid": "x"}, "process 'x'"),
        ({"since": "yesterday", "host": "elsewhere"}, "for an unknown time"),
        # Another process has the number by now.
        ({"process_started": "1"}, None),
        ({"pid": 999_999_999}, None),
    ],
)
def test_the_lock_of_an_ended_process_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, object], expected: str | None
) -> None:
    _refuse_locks(monkeypatch)
    since = (datetime.now(timezone.utc) - timedelta(hours=2)).isoformat()
    owner = {"host": socket.gethostname(), "pid": os.getpid(), "run_id": "other", "since": since, **changed}
    file = tmp_path / "runs.lock.owner"
    file.write_text(json.dumps(owner), encoding="utf-8")
    runs = TableLocation(str(tmp_path / "runs"))
    if expected is None:
        with only_run(runs, "mine"):
            assert _owner_in(file)["run_id"] == "mine"
        assert not file.exists()
    else:
        with pytest.raises(StorageError, match=expected) as caught, only_run(runs, "mine"):
            pytest.fail("locked")
        assert (caught.value.exit_code, _owner_in(file)) == (3, owner)


@pytest.mark.parametrize("content", ["", "{", "[]", "5"])
def test_an_unreadable_owner_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    _refuse_locks(monkeypatch)
    file = tmp_path / "runs.lock.owner"
    file.write_text(content, encoding="utf-8")
    with (
        pytest.raises(StorageError, match=r"run 'unknown', process 'unknown' on host 'unknown'.*rm "),
        only_run(TableLocation(str(tmp_path / "runs")), "mine"),
    ):
        pytest.fail("locked")
    assert file.read_text(encoding="utf-8") == content


def test_an_owner_is_not_written_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _refuse_locks(monkeypatch)
    (tmp_path / "runs.lock.owner").symlink_to(tmp_path / "made")
    with pytest.raises(StorageError, match="is a link"), only_run(TableLocation(str(tmp_path / "runs")), "mine"):
        pytest.fail("locked")
    assert not (tmp_path / "made").exists()


def _symbolic(victim: Path, file: Path) -> None:
    file.symlink_to(victim)


def _second_name(victim: Path, file: Path) -> None:
    file.hardlink_to(victim)


def _pipe(_: Path, file: Path) -> None:
    os.mkfifo(file)


@pytest.mark.parametrize("put", [_symbolic, _second_name, _pipe])
def test_the_target_of_a_link_is_not_written(tmp_path: Path, put: Callable[[Path, Path], None]) -> None:
    victim = tmp_path / "victim"
    victim.write_text("somebody's", encoding="utf-8")
    file = tmp_path / "runs.lock"
    put(victim, file)
    with pytest.raises(StorageError) as caught, only_run(TableLocation(str(tmp_path / "runs")), "first"):
        pytest.fail("locked")
    assert str(caught.value) == (
        f"'{file}' is a link or not a regular file, so it is not used (remove it and run again)"
    )
    assert victim.read_text(encoding="utf-8") == "somebody's"
    assert file.exists()


def test_a_link_to_nowhere_makes_no_file(tmp_path: Path) -> None:
    (tmp_path / "runs.lock").symlink_to(tmp_path / "made")
    with (
        pytest.raises(StorageError, match="is a link"),
        only_run(TableLocation(str(tmp_path / "runs")), "first"),
    ):
        pytest.fail("locked")
    assert not (tmp_path / "made").exists()


def test_a_link_put_there_after_the_opening_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is replaced between locking and writing. The opened file gets the data."""
    victim, file = tmp_path / "victim", tmp_path / "runs.lock"
    victim.write_text("somebody's", encoding="utf-8")
    told = json.dumps

    def swapping(what: object) -> str:
        if not file.is_symlink():
            file.unlink()
            file.symlink_to(victim)
        return told(what)

    monkeypatch.setattr("routing.delta.run_lock.json.dumps", swapping)
    with only_run(TableLocation(str(tmp_path / "runs")), "first"):
        assert victim.read_text(encoding="utf-8") == "somebody's"
    # Nor is it removed: it is not this run's.
    assert file.is_symlink()


def test_a_longer_text_of_a_killed_run_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "runs.lock").write_text(json.dumps({"pid": 1, "run_id": "x" * 500}), encoding="utf-8")
    with only_run(TableLocation(str(tmp_path / "runs")), "first"):
        assert _owner_in(tmp_path / "runs.lock") == {"pid": os.getpid(), "run_id": "first"}


@pytest.mark.parametrize(
    ("location", "file"),
    [
        (TableLocation("/out/runs"), Path("/out/runs.lock")),
        (TableLocation("file:///out/runs"), Path("/out/runs.lock")),
        (TableLocation("file:/out/runs"), Path("/out/runs.lock")),
        (TableLocation("s3a://bucket/runs"), None),
        (TableLocation("dbfs:/out/runs"), None),
        (TableLocation("shop.audit.runs", is_name=True), None),
    ],
)
def test_only_local_paths_have_a_lock(location: TableLocation, file: Path | None) -> None:
    assert lock_file(location) == file


def _environment(**added: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(run_lock.__file__).parents[1]), **added}
