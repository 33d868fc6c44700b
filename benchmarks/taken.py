"""Measure the time and memory of a process and its children.

    python -m benchmarks.taken COMMAND...

prints them as JSON and exits like the command. It is a small separate process, because Linux includes the memory
of the parent in the peak of a new process. It needs Linux.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

# Of prctl: who is left without a parent becomes a child of this process, such as the Java of a Python that ends.
_ADOPT_ORPHANS = 36


@dataclass(frozen=True)
class Taken:
    """The cost of a process. ``begun`` is in seconds since 1970, ``seconds`` is the time to its end.

    ``cpu`` has seconds on all cores. ``peak`` has resident bytes, the sum of the processes' own peaks, so the real
    peak is never higher. Both include children that ended later.
    """

    begun: float
    seconds: float
    cpu: float
    peak: int


def taken_by(name: str, command: Sequence[str]) -> Taken:
    """Run a command to the end of all its processes. Raises RuntimeError if it fails."""
    watched = [sys.executable, "-m", __name__, *command]
    done = subprocess.run(watched, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} ended with exit code {done.returncode}")
    return Taken(**json.loads(done.stdout))


def main() -> int:
    """Be the parent of the command and of its orphans."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.taken", description=__doc__)
    parser.add_argument("command", help="the program to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)
    at, begun = time.time(), time.monotonic()
    process = subprocess.Popen([options.command, *options.arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    ended = [used]
    while True:
        try:
            ended.append(os.wait4(-1, 0)[2])
        except ChildProcessError:
            break
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in ended)
    peak = sum(usage.ru_maxrss for usage in ended) * 1024
    print(json.dumps(asdict(Taken(at, seconds, cpu, peak))))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
