"""Measure ``sbroute report`` beside one group-by of Spark over the same columns, as whole processes in turn.

    python -m benchmarks.counting CONFIG [--rounds 3]

CONFIG is a configuration with a valid last run, for example over the tables of ``make bench``, and a local
``resolved_routes``. The time of the group-by is also printed without Spark's start. Exit status 1 means that the
report takes more than 1.3 times the group-by's process plus five seconds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

REPORT, GROUP_BY = "report", "group-by"
_TIMES, _SECONDS = 1.3, 5


def group(table: str) -> float:
    """Return the seconds of the second of two equal aggregates in Spark over the columns of flows and points."""
    from pyspark.sql import functions as F

    from routing.sessions.session import settle_java_logs, start
    from routing.views.report.flows import DECIDED, ENQUEUED, FLOW

    rows = start({}).read.format("delta").load(table)
    counts = (F.count(F.lit(1)).alias("messages"), F.min(ENQUEUED), F.min(DECIDED), F.max(DECIDED))
    groups = rows.groupBy(*FLOW).agg(*counts)
    groups.collect()
    begun = time.monotonic()
    groups.collect()
    warm = time.monotonic() - begun
    settle_java_logs(ended_well=True)
    return warm


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a line for each round and the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counting", description=__doc__)
    parser.add_argument("config", help="a configuration whose last run counts")
    parser.add_argument("--rounds", type=int, default=3, help="how often (%(default)s)")
    parser.add_argument("--group", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.group:
        print(group(options.config))
        return 0
    from routing import load_config

    table = load_config(options.config).output["resolved_routes"].text
    reports, groups = [], []
    for number in range(1, options.rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            page = str(Path(folder, "report.html"))
            seconds, _ = _timed("-m", "routing", REPORT, "--config", options.config, "--out", page)
        reports.append(seconds)
        whole, printed = _timed("-m", "benchmarks.counting", table, "--group")
        # It groups twice.
        groups.append(whole - float(printed))
        line = f"{GROUP_BY} {groups[-1]:.1f} s, or {float(printed):.1f} s in a warm session"
        print(f"{number}. {REPORT} {seconds:.1f} s; {line}", flush=True)
    found, floor = statistics.median(reports), statistics.median(groups)
    most = _TIMES * floor + _SECONDS
    print(f"{REPORT}: {found:.1f} s; {GROUP_BY}: {floor:.1f} s; at most {most:.1f} s")
    return 0 if found <= most else 1


def _timed(*command: str) -> tuple[float, str]:
    """Return the seconds and the output of a process. Raises CalledProcessError if it fails."""
    begun = time.monotonic()
    done = subprocess.run([sys.executable, *command], check=True, stdout=subprocess.PIPE, text=True)
    return time.monotonic() - begun, done.stdout


if __name__ == "__main__":
    sys.exit(main())
