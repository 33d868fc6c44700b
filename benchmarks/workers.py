"""What a second worker brings: `make bench` on standalone clusters of one and of two workers of one core each.

    python -m benchmarks.workers --messages 3000000

The driver runs beside the workers, so that a machine with two cores shows less than there is to gain. Prints what
`resolve` and the copy of its result take on each, as a table. Everything else is said to `make bench`.
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
    """Measure on one worker, then on two; print."""
    make_parser("python -m benchmarks.workers", __doc__).parse_args()
    rows = [_measured(workers, sys.argv[1:]) for workers in (1, 2)]
    table = DataTable(make_columns(_COLUMNS, _COLUMNS), rows, "Workers of one core each")
    print(write_text([table], width=120))
    return 0


def _measured(workers: int, arguments: list[str]) -> tuple[str, ...]:
    """The line of a cluster. A process of its own: a session keeps the cluster that it was started on."""
    with (
        tempfile.TemporaryDirectory(prefix="sbroute-workers-") as folder,
        standalone(Path(folder), workers, memory="5g") as cluster,
    ):
        command = [sys.executable, "-m", "benchmarks.bench", "--master", cluster.master, "--only", "copy"]
        command += ["--json", "--memory", "4g", *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    medians = {line["contender"]: line["median"] for line in found["contenders"]}
    stages = found["stage_seconds"]
    return (
        str(workers),
        f"{medians['resolve']:.1f}",
        f"{stages['keys']:.1f}",
        f"{stages['write']:.1f}",
        f"{medians['copy']:.1f}",
        f"{found['ratios']['resolve / copy']:.2f}",
    )


if __name__ == "__main__":
    sys.exit(main())
