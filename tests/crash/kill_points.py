"""Run a command and copy the files that a kill would leave at each write (``kill_points.c``)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.crash.estate import ROOT

SOURCE = Path(__file__).with_suffix(".c")
STATE_BYTES = 4096


@dataclass(frozen=True)
class KillPoint:
    """A moment of a command, such as "before link out/runs/_delta_log/0….json", and a copy of the folder then."""

    name: str
    copy: Path

    @property
    def is_of_data(self) -> bool:
        """Whether the file has rows, so that it belongs neither to the log nor to the job itself."""
        return Path(self.name).name.lstrip(".").startswith("part-")


def build_library(folder: Path) -> Path:
    """Compile the library that is loaded into commands. Raises CalledProcessError."""
    library = folder / "kill_points.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def run_to_each_point(library: Path, folder: Path, command: Sequence[str], copies: Path) -> list[KillPoint]:
    """Run ``sbroute`` completely and return its points in order. ``copies`` gets a copy of the folder for each."""
    copies.mkdir()
    done = _run(library, folder, command, copies)
    assert done.returncode == 0, done.stderr
    names = (copies / "names").read_text(encoding="utf-8").splitlines()
    return [KillPoint(name, copies / str(number)) for number, name in enumerate(names)]


def kill_at(library: Path, folder: Path, command: Sequence[str], number: int) -> int:
    """Run ``sbroute``, kill it with its children at the point of this number, and return its exit status."""
    scratch = folder.with_name(f"{folder.name} killed")
    scratch.mkdir()
    done = _run(library, folder, command, scratch, {"POINTS_KILL": str(number)})
    shutil.rmtree(scratch)
    return done.returncode


def _run(
    library: Path, folder: Path, command: Sequence[str], copies: Path, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    state = copies.with_name(f"{copies.name}.state")
    state.write_bytes(bytes(STATE_BYTES))
    settings = {
        "LD_PRELOAD": str(library),
        "POINTS_FOLDER": str(folder),
        "POINTS_COPIES": str(copies),
        "POINTS_STATE": str(state),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        **(more or {}),
    }
    return subprocess.run(
        [sys.executable, "-m", "routing", *command],
        env={**{key: value for key, value in os.environ.items() if key != "SPARK_REMOTE"}, **settings},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
        # A separate process group, so that a kill reaches Java but not this process.
        start_new_session=True,
    )
