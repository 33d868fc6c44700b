"""What a process takes, with all that it starts.

    python -m benchmarks.taken COMMAND...

prints it as JSON and ends as the command ends. It is a process of its own, and a small one, for Linux counts as a
process's peak also what its parent held when it was started. Linux only.
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
    """begun: seconds since 1970. seconds: until the process ended.

    cpu: seconds on all cores; peak: resident bytes, the sum of the processes' own peaks, so no less than they held
    at any one time. Both include what ended after it.
    """

    begun: float
    seconds: float
    cpu: float
    peak: int


def taken_by(name: str, command: Sequence[str]) -> Taken:
    """Run a command to its end, and to that of all it started. Raises RuntimeError where it fails."""
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
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)
    at, begun = time.time(), time.monotonic()
    process = subprocess.Popen([given.command, *given.arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    ended = [used]
    while True:
        try:
            ended.append(os.wait4(-1, 0)[2])
        except ChildProcessError:
            break
    cpu = sum(one.ru_utime + one.ru_stime for one in ended)
    peak = sum(one.ru_maxrss for one in ended) * 1024
    print(json.dumps(asdict(Taken(at, seconds, cpu, peak))))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
