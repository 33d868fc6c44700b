"""Imports ended by ``os._exit`` after every commit and before every change of a file: none stays half done."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.ending import ALL_SCENARIOS, ENDED
from tests.crash.estate import ROOT
from tests.crash.test_killed import SHORT
from tests.half_imports import Undisturbed, copy_of

pytest.importorskip("deltalake")
_NEVER = 1_000_000


@pytest.fixture(autouse=True)
def _no_session_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let deltalake create tables although this process has a session."""
    monkeypatch.setattr("routing.sessions.session.is_given", lambda: False)


def _import(number: int, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.crash.ending", str(number), name, str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", ["a changed export"] if SHORT else ALL_SCENARIOS)
def test_ended_at_every_moment(name: str, tmp_path: Path) -> None:
    scenario = ALL_SCENARIOS[name]
    undisturbed = Undisturbed.of(scenario, tmp_path)
    counted = _import(_NEVER, name, copy_of(undisturbed.start, tmp_path / "counted"))
    assert counted.returncode == 0, counted.stderr
    moments, faults = int(counted.stdout), []
    # Creating the lock file is a moment too.
    assert moments > len(undisturbed.commits)
    for number in range(moments):
        half = copy_of(undisturbed.start, tmp_path / f"half {number}")
        done = _import(number, name, half)
        assert done.returncode == ENDED, done.stderr
        faults += undisturbed.find_faults(scenario, half, f"moment {number}")
        shutil.rmtree(half)
    assert faults == []
