"""The processes that this one has started, and that they have started: Java, at any moment of its start."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PAUSE = 0.05


def end_children(seconds: float) -> bool:
    """End all of them, at first as they are asked to; those that live on after some seconds are killed.

    Java removes its scratch files when it is asked. Whether there were any.
    """
    deadline = time.monotonic() + seconds
    were_any = False
    # Again and again: a process that is being started loses what it is sent before it has become another program.
    while children := find_children():
        were_any = True
        _send(children, signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL)
        time.sleep(_PAUSE)
    return were_any


def _send(processes: set[int], number: signal.Signals) -> None:
    for process in processes:
        # It may have ended meanwhile, or be another user's, who alone can end it.
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def find_children() -> set[int]:
    """Return the ids of all processes that descend from this one and still run."""
    parents = dict(_parents())
    descendants, newest = set[int](), {os.getpid()}
    while newest:
        newest = {process for process, parent in parents.items() if parent in newest} - descendants
        descendants |= newest
    return descendants


def _parents() -> Iterator[tuple[int, int]]:
    """Yield each running process with its parent."""
    if not Path("/proc/self/stat").exists():
        yield from _parents_by_ps()
        return
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            # One that ends between these steps.
            with suppress(OSError):
                # After the program's name, which may hold anything, in brackets.
                state, parent, *_ = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if state not in "ZX":
                    yield int(folder.name), int(parent)


def _parents_by_ps() -> Iterator[tuple[int, int]]:
    """Yield processes with their parents where there is no /proc, as on macOS."""
    import subprocess

    listed = subprocess.Popen(["/bin/ps", "-A", "-o", "pid=,ppid=,stat="], stdout=subprocess.PIPE, text=True)
    for line in listed.communicate()[0].splitlines():
        process, parent, state = line.split()[:3]
        if not state.startswith("Z") and int(process) != listed.pid:
            yield int(process), int(parent)
