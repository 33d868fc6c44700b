"""Commands in separate processes that get a signal, and their leftovers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SIGNAL_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "ended by SIGTERM"}


class Ended(NamedTuple):
    """How a command ended: its exit code, its streams, and which of its processes were left."""

    code: int
    out: str
    err: str
    left: dict[int, str]


def _take_ctrl_c() -> None:
    # Who runs the tests in the background has them ignore it, and all that they start.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def started(arguments: Sequence[str], **environment: str) -> subprocess.Popen[str]:
    """Start a Python process in its own session, as a terminal or a scheduler does."""
    inherited = {key: value for key, value in os.environ.items() if key != "SPARK_REMOTE"}
    path = os.pathsep.join(filter(None, (environment.pop("first_on_path", ""), str(ROOT))))
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**inherited, **environment, "PYTHONPATH": path},
        start_new_session=True,
        preexec_fn=_take_ctrl_c,
    )


def wait_until_guarded(process: subprocess.Popen[str]) -> None:
    """Wait until signals are the command's: before that they are Python's own, which is starting."""
    while process.poll() is None:
        caught = Path(f"/proc/{process.pid}/status").read_text().partition("SigCgt:")[2].split()[0]
        if int(caught, 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.005)


def ended(process: subprocess.Popen[str], seconds: float = 120) -> Ended:
    """Wait for the end of a command, list its remaining processes, and kill them."""
    try:
        out, err = process.communicate(timeout=seconds)
        return Ended(process.returncode, out, err, left_of(process))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def left_of(process: subprocess.Popen[str]) -> dict[int, str]:
    """The processes of a command's session that still run, with their command lines."""
    processes = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                state, _, _, session, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(session) == process.pid and state not in "ZX":
                    processes[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")[:200]
    return processes
