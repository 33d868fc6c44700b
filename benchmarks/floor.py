"""Measure ``make floor``: commands as whole processes, beside their minimum cost.

Over the demo's tables, `resolve` runs beside a bare Spark process that starts, reads and writes the same tables.
`explain`, `lint` and `runs` run beside a bare reader of them, which needs no Java.

With ``--messages``, the tables are those of ``make bench``. `resolve` runs beside the copy of its result, Polars
and DuckDB, and `report` beside one group-by of Spark. `explain` and `lint` run too. `diff` runs once with changes
to nearly all routes and once without changes. All run in turn after a warm-up, and gates limit the medians.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks import gates
from benchmarks.gates import RESOLVE, Gate, Line, Verdict
from benchmarks.parts import of_middle_round
from benchmarks.processes import Process, over_demo, over_large, results_differ
from benchmarks.rounds import Mismatch, measure
from benchmarks.shape import Shape
from routing.document import DataTable, make_columns
from routing.render.text import write_text
from routing.render.wording import count

_COLUMNS = ("contender", "median s", "least", "most", "× its floor", "CPU s", "peak GiB")


def prepared(arguments: argparse.Namespace) -> tuple[dict[str, Process], Path]:
    """Return the contenders by name over existing tables, and a folder for their output."""
    folder = Path(arguments.folder or ("build/bench" if arguments.messages else "build/floor")).absolute()
    if not arguments.messages:
        return over_demo(folder / "demo"), folder / "out"
    return over_large(_shape(arguments), folder)


def _shape(arguments: argparse.Namespace) -> Shape:
    return Shape(messages=arguments.messages, routes=arguments.routes or Shape().routes)


def main(
    arguments: Sequence[str] | None = None,
    prepare: Callable[[argparse.Namespace], tuple[dict[str, Process], Path]] = prepared,
) -> int:
    """Make missing tables, measure, and print. Return 1 if ``--gate`` finds a missed gate, or outputs differ."""
    given = options(arguments)
    gate_list = gates.held_to(given.messages)
    processes, results = prepare(given)
    wanted = chosen(processes, given.only, gate_list)
    try:
        measure(wanted, results, given.rounds, results_differ)
    except Mismatch as fault:
        sys.stderr.write(f"the results differ, so no time is printed. {fault}\n")
        return 1
    # The first is the warm-up.
    measured = gates.lines({process.name: process.taken[1:] for process in wanted}, gate_list)
    verdicts = gates.judge(measured, gate_list)
    parts = next((of_middle_round(one.taken[1:], one.runs[1:]) for one in wanted if one.name == RESOLVE), {})
    if given.json:
        print_json(measured, verdicts, parts)
    else:
        print_table(_title(given), measured, verdicts, parts)
    return 1 if given.gate and not all(verdict.is_met for verdict in verdicts) else 0


def chosen(
    processes: Mapping[str, Process], only: Sequence[str] | None, gate_list: Sequence[Gate]
) -> list[Process]:
    """Return the requested and installed contenders with their floors, in the order of measuring."""
    for name in only or dict.fromkeys(gate.contender for gate in gate_list):
        if name not in processes:
            sys.stderr.write(f"{name} is left out: not installed (pip install -e '.[bench]')\n")
    names = gates.with_floors([name for name in only or processes if name in processes], gate_list)
    names |= {process.after for process in processes.values() if process.name in names and process.after}
    return [process for process in processes.values() if process.name in names]


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the parsed options. Exit with status 2 if they contradict each other."""
    parser = argparse.ArgumentParser(prog="make floor", description=__doc__)
    names = list(dict.fromkeys([*gates.names(gates.SMALL), *gates.names(gates.LARGE)]))
    parser.add_argument("--rounds", type=int, help="rounds after a warm-up (5; 3 with --messages)")
    parser.add_argument("--only", nargs="+", choices=names, help="these, and what they are compared with (all)")
    parser.add_argument("--messages", type=int, help="over the tables of `make bench`, with so many messages")
    parser.add_argument("--routes", type=int, help=f"with --messages: so many routes ({Shape().routes})")
    parser.add_argument("--folder", help="where tables are kept (build/floor; build/bench with --messages)")
    parser.add_argument("--gate", action="store_true", help="exit status 1 where a gate is missed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    if given.rounds is None:
        given.rounds = 3 if given.messages else 5
    gate_list = gates.held_to(given.messages)
    there = gates.names(gate_list)
    if given.routes and not given.messages:
        parser.error("--routes goes with --messages")
    if not set(there).issuperset(given.only or ()):
        parser.error(f"{'with' if given.messages else 'without'} --messages there are {', '.join(there)}")
    if given.gate and given.only and not {gate.contender for gate in gate_list if gate.at_most} & set(given.only):
        parser.error("--gate: nothing that has a gate is measured")
    if given.rounds < 1:
        parser.error("--rounds: at least one")
    return given


def print_json(measured: Sequence[Line], verdicts: Sequence[Verdict], parts: Mapping[str, float]) -> None:
    """Everything as one JSON object."""
    judged = [{**vars(verdict), "met": verdict.is_met} for verdict in verdicts]
    result = {"contenders": [vars(line) for line in measured], "gates": judged, "parts of resolve": parts}
    print(json.dumps(result, indent=2))


def _title(arguments: argparse.Namespace) -> str:
    over = (
        f"{arguments.messages:,} messages, {_shape(arguments).routes:,} routes"
        if arguments.messages
        else "The demo's tables"
    )
    return f"{over}: whole processes in turn, {count(arguments.rounds, 'round')} after a warm-up"


def print_table(
    title: str, measured: Sequence[Line], verdicts: Sequence[Verdict], parts: Mapping[str, float]
) -> None:
    """Print the times as a table, the parts of `resolve`, and a line for each gate."""
    rows = [line.cells() for line in measured]
    print(write_text([DataTable(make_columns(_COLUMNS, _COLUMNS[1:]), rows, title)], width=120))
    if parts:
        parts_text = " + ".join(f"{name} {seconds:.2f}" for name, seconds in parts.items())
        print(f"{RESOLVE}: {parts_text} = {sum(parts.values()):.2f} s")
    print(*verdicts, sep="\n")


if __name__ == "__main__":
    sys.exit(main())
