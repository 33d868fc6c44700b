"""Measure how often the fault of a day is named as the most likely cause: `make reconcile-proof`."""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import routing
from routing.importing.events.event_rows import parse_event, read_event
from routing.schemas import OBSERVED_ROUTING, TABLES
from tests.frames import arrow_of
from tests.simulated.day import Day
from tests.simulated.events import Event, as_xml, events_of, queued
from tests.simulated.faults import FAULTS, Case, case

Row = dict[str, object]
LEAST = 95


@dataclass(frozen=True)
class Proved:
    """The fault of one estate, whether it was named, and other named causes."""

    fault: str
    seed: int
    is_named: bool
    others: tuple[str, ...]


def prove(asked: tuple[str, int]) -> Proved:
    """Reconcile a day with a fault, and compare the named causes with it."""
    fault, seed = asked
    simulated = case(fault, seed)
    return compare_causes(simulated, find_causes(simulated, fault, seed), fault, seed)


def find_causes(simulated: Case, fault: str, seed: int) -> list[Row]:
    """Return the causes that reconcile names for a day."""
    rng = random.Random(f"events-{fault}-{seed}")
    observed = [*observe(simulated.day, events_of(rng, simulated.day)), *queued(rng, simulated.day)]
    tables = {key: arrow_of(rows, TABLES[key].optional()) for key, rows in simulated.tables.items()}
    done = routing.reconcile({**tables, "observed_routing": arrow_of(observed, OBSERVED_ROUTING.optional())})
    if sum(row["observations"] for row in done.counts) != len(observed):
        raise ValueError(f"seed {seed} of {fault}: not all observations are in an episode")
    return [dict(row) for row in done.causes]


def compare_causes(simulated: Case, causes: Sequence[Row], fault: str, seed: int) -> Proved:
    """Return whether the causes name the fault of a day, and the other causes."""
    named = [row for row in causes if _is_right(simulated, row)]
    others = [f"{row['instance_name']}: {row['cause_text']}" for row in causes if not _is_right(simulated, row)]
    return Proved(fault, seed, bool(named), tuple(others))


def _is_right(simulated: Case, row: Row) -> bool:
    is_there = row["cause"] == simulated.kind and row["instance_name"] == simulated.instance
    return is_there and all(word in str(row["cause_text"]) for word in simulated.words)


def observe(day: Day, events: Sequence[Event]) -> list[Row]:
    """Events as import reads them into observed_routing."""
    ids = {(row["instance_name"], row["database_id"]): row["name"] for row in day.tables["databases"]}
    rows = []
    for event in events:
        read = read_event(parse_event(as_xml(event)), event["instance"])
        if read is not None:
            name = ids.get((event["instance"], read.database_id))
            rows.append({**read.row, "database_name": name})
    return rows


def main(arguments: Sequence[str]) -> int:
    """Prove many estates of each kind, and print how often the fault was named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--estates", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kind", choices=list(FAULTS), action="append")
    asked = parser.parse_args(arguments)
    out = sys.stdout
    out.write(
        f"seed {asked.seed}\n{'fault':10} {'named':>6} {'of':>5} {'others':>7} {'precision':>10} {'recall':>7}\n"
    )
    is_good = True
    with multiprocessing.Pool() as pool:
        for fault in asked.kind or FAULTS:
            seeds = [(fault, asked.seed + number) for number in range(asked.estates)]
            proofs = pool.map(prove, seeds, chunksize=1)
            is_good &= _print_result(fault, proofs)
    return 0 if is_good else 1


def _print_result(fault: str, proofs: Sequence[Proved]) -> bool:
    named, false = sum(one.is_named for one in proofs), sum(bool(one.others) for one in proofs)
    precision = f"{100 * named / (named + false):.0f} %" if named + false else "-"
    recall = "-" if fault == "none" else f"{100 * named / len(proofs):.0f} %"
    sys.stdout.write(f"{fault:10} {named:6} {len(proofs):5} {false:7} {precision:>10} {recall:>7}\n")
    for one in proofs:
        if one.others or not (one.is_named or fault == "none"):
            what = "" if one.is_named or fault == "none" else "not named; "
            sys.stdout.write(f"    seed {one.seed}: {what}{' | '.join(one.others[:2])[:400]}\n")
    sys.stdout.flush()
    return false == 0 if fault == "none" else 100 * named >= LEAST * len(proofs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
