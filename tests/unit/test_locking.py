"""The lock file beside `runs`: one run at a time, and a killed one's file is taken over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from routing import faultpoints
from routing.config import Location
from routing.errors import StorageError
from routing.locking import lock_file, only_run

_HOLDER = """
import sys, time
from routing.config import Location
from routing.locking import only_run
with only_run(Location(sys.argv[1]), "nightly"):
    print("held", flush=True)
    time.sleep(60)
"""


def _told(file: Path) -> dict[str, object]:
    return dict(json.loads(file.read_text(encoding="utf-8")))


def test_the_file_names_process_and_run_and_goes_away(tmp_path: Path) -> None:
    runs = Location(str(tmp_path / "out" / "runs"))
    file = tmp_path / "out" / "runs.lock"
    with only_run(runs, "first"):
        assert _told(file) == {"pid": os.getpid(), "run_id": "first"}
    # Nothing else was written, so that the folder goes as well.
    assert list(tmp_path.iterdir()) == []


def test_what_a_run_wrote_stays(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with only_run(Location(str(tmp_path / "out" / "runs")), "first"):
        (tmp_path / "out" / "kept").touch()
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["kept"]


def test_another_process_is_refused_until_it_is_gone(tmp_path: Path) -> None:
    runs = Location(str(tmp_path / "runs"))
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
    assert _told(tmp_path / "runs.lock")["run_id"] == "nightly"
    with only_run(runs, "second"):
        assert _told(tmp_path / "runs.lock") == {"pid": os.getpid(), "run_id": "second"}


def test_a_lock_file_of_garbage_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "runs.lock").write_text("[" * 5, encoding="utf-8")
    with only_run(Location(str(tmp_path / "runs")), "first"):
        assert _told(tmp_path / "runs.lock")["run_id"] == "first"


def test_a_place_where_no_file_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StorageError, match=r"locking .*runs\.lock"),
        only_run(Location(f"{tmp_path}/file/runs"), "x"),
    ):
        pytest.fail("locked")


@pytest.mark.parametrize(
    ("location", "file"),
    [
        (Location("/out/runs"), Path("/out/runs.lock")),
        (Location("file:///out/runs"), Path("/out/runs.lock")),
        (Location("file:/out/runs"), Path("/out/runs.lock")),
        (Location("s3a://bucket/runs"), None),
        (Location("dbfs:/out/runs"), None),
        (Location("shop.audit.runs", is_name=True), None),
    ],
)
def test_only_local_paths_have_one(location: Location, file: Path | None) -> None:
    assert lock_file(location) == file


def _environment(**added: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(faultpoints.__file__).parents[1]), **added}


@pytest.mark.parametrize(("named", "status"), [("before runs", -signal.SIGKILL), ("after runs", 0), ("", 0)])
def test_a_fault_point_kills_the_process_that_is_told_to(named: str, status: int) -> None:
    line = "from routing import faultpoints; faultpoints.reached('before runs')"
    done = subprocess.run(
        [sys.executable, "-c", line], env=_environment(SBROUTE_FAULT=named), timeout=60, check=False
    )
    assert done.returncode == status
