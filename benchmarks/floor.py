"""``make floor``: what small things cost, as whole processes, beside the least that they can take.

Over the demo's tables: `resolve` beside a bare Spark process that starts, reads and writes the same tables;
`explain`, `lint` and `runs` beside a bare reader of them, which needs no Java. With ``--messages``: `explain` and
`lint` over the tables of ``make bench``. All run in turn after a warm-up; medians are held to gates.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import gates
from benchmarks.gates import Gate, Line, Verdict
from benchmarks.processes import Process, over_demo, over_large, rows_differ
from benchmarks.rounds import Mismatch, measure
from benchmarks.shape import Shape
from routing import show

_COLUMNS = ("contender", "median s", "least", "most", "× its floor")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what is missing, measure, print; 1 where ``--gate`` finds a gate missed, or outputs differ."""
    given = options(arguments)
    held: tuple[Gate, ...] = gates.LARGE if given.messages else gates.SMALL
    processes, results = _prepared(given)
    wanted = gates.wanted_with_floors(given.only or list(processes), held)
    try:
        times = measure([processes[name] for name in wanted], results, given.rounds, rows_differ)
    except Mismatch as fault:
        sys.stderr.write(f"the outputs differ from those of the demo's own run, so no time is printed. {fault}\n")
        return 1
    measured = gates.lines({name: times[name].rounds for name in wanted}, held)
    verdicts = gates.judge(measured, held)
    print_json(measured, verdicts) if given.json else print_table(measured, verdicts, given.rounds)
    return 1 if given.gate and not all(verdict.is_met for verdict in verdicts) else 0


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What was asked for; ends with status 2 where that makes no sense."""
    parser = argparse.ArgumentParser(prog="make floor", description=__doc__)
    names = [*dict.fromkeys(name for gate in gates.SMALL for name in (gate.floor, gate.contender) if name)]
    parser.add_argument("--rounds", type=int, default=5, help="rounds after a warm-up (%(default)s)")
    parser.add_argument("--only", nargs="+", choices=names, help="these, and what they are compared with (all)")
    parser.add_argument("--messages", type=int, help="explain and lint over so many messages instead")
    parser.add_argument("--routes", type=int, help=f"with --messages: so many routes ({Shape().routes})")
    parser.add_argument("--folder", help="where tables are kept (build/floor; build/bench with --messages)")
    parser.add_argument("--gate", action="store_true", help="exit status 1 where a gate is missed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    held = {gate.contender for gate in (gates.LARGE if given.messages else gates.SMALL)}
    if given.routes and not given.messages:
        parser.error("--routes goes with --messages")
    if given.messages and not held.issuperset(given.only or ()):
        parser.error(f"with --messages there are {' and '.join(sorted(held))}")
    if given.gate and given.only and not held & set(given.only):
        parser.error("--gate: nothing that has a gate is measured")
    if given.rounds < 1:
        parser.error("--rounds: at least one")
    return given


def _prepared(given: argparse.Namespace) -> tuple[dict[str, Process], Path]:
    """The contenders by name, over tables that are there; and a folder for what they write."""
    folder = Path(given.folder or ("build/bench" if given.messages else "build/floor")).absolute()
    if not given.messages:
        return over_demo(folder / "demo"), folder / "out"
    return over_large(Shape(messages=given.messages, routes=given.routes or Shape().routes), folder)


def print_json(measured: Sequence[Line], verdicts: Sequence[Verdict]) -> None:
    """Everything as one JSON object."""
    judged = [{**vars(verdict.gate), "measured": verdict.measured, "met": verdict.is_met} for verdict in verdicts]
    print(json.dumps({"contenders": [vars(line) for line in measured], "gates": judged}, indent=2))


def print_table(measured: Sequence[Line], verdicts: Sequence[Verdict], rounds: int) -> None:
    """The times as a table, and a line for each gate."""
    title = f"Whole processes, in turn, {rounds} rounds after a warm-up"
    rows = [line.cells() for line in measured]
    Console(highlight=False, soft_wrap=True).print(show.table(title, _COLUMNS, rows, _COLUMNS[1:]))
    print(*verdicts, sep="\n")


if __name__ == "__main__":
    sys.exit(main())
