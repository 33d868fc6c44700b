"""Peak memory of processes, as Linux records it (VmHWM)."""

from __future__ import annotations

import threading
from pathlib import Path

from pyspark.sql import SparkSession


def peak_of(pid: int | str) -> int:
    """The largest resident size of a process so far, in bytes; 0 where it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peaks[0]) * 1024 if peaks else 0


def java_process(spark: SparkSession) -> int:
    """The id of the session's Java process."""
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


def _descendants(pid: int) -> list[int]:
    """A process and all that it started."""
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        children = [int(c) for task in tasks for c in (task / "children").read_text(encoding="ascii").split()]
    except OSError:
        return [pid]
    return [pid, *(below for child in children for below in _descendants(child))]


class Watch:
    """Looks at a process and those below it from time to time; `peak` is the sum of their peaks, in bytes."""

    def __init__(self, pid: int, every: float = 0.2) -> None:
        self._pid, self._every = pid, every
        self._peaks: dict[int, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._ended.wait(self._every):
            for pid in _descendants(self._pid):
                self._peaks[pid] = max(self._peaks.get(pid, 0), peak_of(pid))

    def peak(self) -> int:
        """Stop looking; the sum of what was seen."""
        self._ended.set()
        self._thread.join()
        return sum(self._peaks.values())
