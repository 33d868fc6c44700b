"""Processes that a test starts, waits for and ends: those and no others."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path


def free_port() -> int:
    """A port of this host that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process with its output in ``log``, and end it with its children afterwards."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=dict(environment or os.environ),
            # A process group of its own, so that its children end with it.
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGKILL) -> None:
    """End a started process and its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, how)
    process.wait(timeout=30)


def until(holds: Callable[[], bool], what: str, log: Path, seconds: float = 120) -> None:
    """Wait until a condition holds. On timeout, fail with the end of the log."""
    last = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > last:
            raise AssertionError(
                f"{what} did not happen in {seconds} s:\n{log.read_text(errors='replace')[-3000:]}"
            )
        time.sleep(0.2)


def answer(url: str) -> str:
    """Return the response of a web address, or empty text without one."""
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return str(reply.read().decode())
    except (urllib.error.URLError, OSError):
        return ""
