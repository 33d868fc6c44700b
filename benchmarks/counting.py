"""What a report counts of ``resolved_routes``, beside one group-by of Spark over the same columns.

    python -m benchmarks.counting TABLE [--rounds 3]

TABLE is the folder of a local Delta table, such as a run over the tables of ``make bench`` leaves. Both are whole
processes that run in turn; told are seconds, and those that the processors worked for them. The group-by is also
told without Spark's start, as its own process measures it the second time. Exit status 1 where counting takes more
than 1.3 times that and five seconds.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

REPORT, GROUP_BY = "report", "group-by"
_TIMES, _SECONDS = 1.3, 5


def count(table: str) -> int:
    """What a report counts, without Java; returns the number of messages."""
    from benchmarks.bare import opened
    from routing.analysis.lint.resolved import used_routes
    from routing.analysis.report.flows import count_all, count_dialogs
    from routing.storage.arrow import leave_pandas_out
    from routing.terms import MSDB

    leave_pandas_out()
    rows = opened(table)
    flows, _ = count_all(rows)
    count_dialogs(rows, {(one.instance, one.database or MSDB, one.service): (None, None) for one in flows})
    used_routes(rows)
    return sum(flow.messages for flow in flows)


def group(table: str) -> int:
    """One aggregate of Spark over the columns of flows and points, made twice; returns the number of messages."""
    from pyspark.sql import functions as F

    from benchmarks.memory import java_process
    from routing.analysis.report.scale import DECIDED, ENQUEUED, FLOW
    from routing.sessions.session import settle_java_logs, start

    spark = start({})
    java = java_process(spark)
    rows = spark.read.format("delta").load(table)
    counts = (F.count(F.lit(1)).alias("messages"), F.min(ENQUEUED), F.min(DECIDED), F.max(DECIDED))
    groups = rows.groupBy(*FLOW).agg(*counts)
    for _ in range(2):
        before, begun = _worked_by(java), time.monotonic()
        found: int = sum(row["messages"] for row in groups.collect())
        warm = time.monotonic() - begun, _worked_by(java) - before
    print(*warm)
    settle_java_logs(ended_well=True)
    return found


_CONTENDERS: dict[str, Callable[[str], int]] = {REPORT: count, GROUP_BY: group}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a line for each round and the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counting", description=__doc__)
    parser.add_argument("table", help="the folder of a table resolved_routes")
    parser.add_argument("--rounds", type=int, default=3, help="how often (%(default)s)")
    parser.add_argument("--one", choices=_CONTENDERS, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        _CONTENDERS[given.one](given.table)
        return 0
    counting, grouping = [], []
    for number in range(1, given.rounds + 1):
        counted, _ = _timed(number, REPORT, given.table)
        _, printed = _timed(number, GROUP_BY, given.table)
        counting.append(counted)
        warm, worked = map(float, printed.split())
        print(f"   warm: {warm:.1f} s, {worked:.1f} s of processors in Java", flush=True)
        grouping.append(warm)
    found, floor = statistics.median(counting), statistics.median(grouping)
    most = _TIMES * floor + _SECONDS
    print(f"{REPORT}: {found:.1f} s; {GROUP_BY}, warm: {floor:.1f} s; at most {most:.1f} s")
    return 0 if found <= most else 1


def _timed(number: int, name: str, table: str) -> tuple[float, str]:
    """The seconds of a process, and what it printed. Raises CalledProcessError where it fails."""
    before, begun = _worked(), time.monotonic()
    command = [sys.executable, "-m", "benchmarks.counting", table, "--one", name]
    done: Any = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds = time.monotonic() - begun
    print(f"{number}. {name}: {seconds:.1f} s, {_worked() - before:.1f} s of processors", flush=True)
    return seconds, done.stdout


def _worked_by(process: int) -> float:
    """Seconds that processors worked for a process so far."""
    told = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def _worked() -> float:
    """The same for the processes that have ended; Java's outlives its own."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
