"""Measure the gain of a second worker: `make bench` on standalone clusters of one and two single-core workers.

    python -m benchmarks.workers --messages 3000000

The driver runs beside the workers, so a machine with two cores shows less than the full gain. It prints the times
of `resolve` and of the copy of its result on each cluster, as a table. Other options are those of `make bench`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.bench import make_parser
from routing.document import DataTable, make_columns
from routing.render.text import write_text
from tests.platforms.standalone import standalone

_COLUMNS = ("workers", "resolve s", "keys s", "write s", "copy s", "× copy")


def main() -> int:
    """Measure on one worker, then on two, and print."""
    make_parser("python -m benchmarks.workers", __doc__).parse_args()
    rows = [_measured(workers, sys.argv[1:]) for workers in (1, 2)]
    table = DataTable(make_columns(_COLUMNS, _COLUMNS), rows, "Workers of one core each")
    print(write_text([table], width=120))
    return 0


def _measured(workers: int, arguments: list[str]) -> tuple[str, ...]:
    """Return the line of a cluster from a separate process, because a session never changes its cluster."""
    with (
        tempfile.TemporaryDirectory(prefix="sbroute-workers-") as folder,
        standalone(Path(folder), workers, memory="5g") as cluster,
    ):
        command = [sys.executable, "-m", "benchmarks.bench", "--master", cluster.master, "--only", "copy"]
        command += ["--json", "--memory", "4g", *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    medians = {line["contender"]: line["median"] for line in report["contenders"]}
    stages = report["stage_seconds"]
    return (
        str(workers),
        f"{medians['resolve']:.1f}",
        f"{stages['keys']:.1f}",
        f"{stages['write']:.1f}",
        f"{medians['copy']:.1f}",
        f"{report['ratios']['resolve / copy']:.2f}",
    )


if __name__ == "__main__":
    sys.exit(main())
