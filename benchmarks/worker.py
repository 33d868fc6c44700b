"""A process for an engine other than Spark: ``python -m benchmarks.worker ENGINE``.

Reads jobs from standard input, a line of JSON each (tables, out), and answers with its peak memory when the
table is committed. Ends with its input.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path


def _peak() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def main() -> int:
    """Serve until the input ends."""
    engine = import_module(f"benchmarks.{sys.argv[1]}")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        job = json.loads(line)
        engine.resolve(job["tables"], job["out"])
        sys.stdout.write(json.dumps({"peak": _peak()}) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
