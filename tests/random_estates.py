"""Random estates that whatever decides is held to: every row as the tests' own resolver has it.

A decider takes tables and a time, and returns rows; another engine is one decider more.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

from tests.frames import Tables
from tests.hostile import UNDECODABLE
from tests.reference.estates import joined, random_estate, reachable_cells, reachable_rerouted_cells
from tests.reference.resolver import Resolution as Expected
from tests.reference.resolver import resolve as reference

Row = dict[str, Any]
ESTATES = int(os.environ.get("SBROUTE_RANDOM_ESTATES", "150"))
# Looked at for cells that the first ones leave out, however few those are.
MOST_ESTATES = 20 * max(ESTATES, 300)
MESSAGES = int(os.environ.get("SBROUTE_RANDOM_MESSAGES", "60"))
SEED = int(os.environ.get("SBROUTE_RANDOM_SEED", "20260105"))
# Batches of other estates, one after the other, so that a long run (make test-rules) needs no more memory.
BATCHES = int(os.environ.get("SBROUTE_RANDOM_BATCHES", "1"))
AS_OF = datetime(2026, 1, 5, 10, 0, 0, tzinfo=timezone.utc)
RUN_ID = "random"
# So many more have messages with texts that are no UTF-8.
_SPOILT = 6
# Of this seed, those that reach what the first ones leave out; tried before all others.
_REACHING = (159, 168, 175, 210, 222, 233, 279, 345, 376, 452, 694, 820, 939, 2446)
TEXTS = (
    *("message_id", "conversation_id", "instance_name", "database_name"),
    *("to_service_name", "to_broker_instance", "from_service_name"),
)


@dataclass(frozen=True)
class Decided:
    """The rows of a run; tables of which a decider has no more than some columns have those alone."""

    resolved_routes: Sequence[Row]
    new_route_requests: Sequence[Row]
    rejected_messages: Sequence[Row]


Decider = Callable[[Tables, datetime | None], Decided]


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted((name, _hashable(item)) for name, item in value.items()))
    return value


def multiset(rows: Sequence[Row]) -> Counter[Any]:
    """Whole rows with how often each stands there: message ids repeat on purpose."""
    return Counter(_hashable(row) for row in rows)


def assert_same(got: Sequence[Row], expected: Sequence[Row], table: str) -> None:
    """Both lists hold the same rows; the first differences are shown side by side."""
    mine, theirs = multiset(got), multiset(expected)
    only_mine, only_theirs = mine - theirs, theirs - mine
    shown = "\n".join(
        [f"got      {row}" for row in sorted(only_mine, key=repr)[:5]]
        + [f"expected {row}" for row in sorted(only_theirs, key=repr)[:5]]
    )
    differs = only_mine + only_theirs
    assert not differs, f"{table}: {sum(only_mine.values())} rows differ\n{shown}"


def assert_decided(got: Decided, expected: Expected, *, is_whole: bool = True) -> None:
    """All rows are those of the tests' own resolver; unless ``is_whole`` in the columns that they have."""
    for table in ("resolved_routes", "new_route_requests", "rejected_messages"):
        rows, wanted = getattr(got, table), getattr(expected, table)
        assert rows, table
        if not is_whole:
            wanted = [{name: row[name] for name in rows[0]} for row in wanted]
        assert_same(rows, wanted, table)


def spoil_messages(rng: random.Random, tables: Tables) -> Tables:
    """An estate of which every third message has a text that is no UTF-8."""
    data = [some for some, _ in UNDECODABLE]
    spoilt = [
        {**row, rng.choice(TEXTS): rng.choice(data)} if rng.random() < 1 / 3 else row for row in tables["messages"]
    ]
    return {**tables, "messages": spoilt}


@lru_cache(maxsize=2)
def estates(as_of: datetime | None, batch: int = 0) -> Tables:
    """A batch of random estates, of which some are spoilt; not to be changed.

    The first one adds, of many more, those that reach a cell that none reached.
    """
    if as_of is None and batch == 0:
        chosen = _covering()
    else:
        chosen = [_estate(batch, number) for number in range(ESTATES if as_of is None else ESTATES // 4)]
    spoilt = [spoil_messages(random.Random(SEED), _estate(batch, number, "s")) for number in range(_SPOILT)]
    return joined([*chosen, *spoilt])


def _estate(batch: int, number: int, kind: str = "e") -> Tables:
    return random_estate(random.Random(f"{SEED}/{batch}/{number}"), MESSAGES, f"{kind}{number}/")


def _covering() -> list[Tables]:
    # A reachable cell counts when any message reaches it, and once more where a rerouted one can.
    wanted = {(c, True) for c in reachable_rerouted_cells()}
    wanted |= {(c, False) for c in reachable_cells() - reachable_rerouted_cells()}
    chosen = []
    for number in (*range(ESTATES), *_REACHING, *range(ESTATES, MOST_ESTATES)):
        if number >= ESTATES and not wanted:
            break
        estate = _estate(0, number)
        cells = set(reference(estate).cells())
        if number < ESTATES or cells & wanted:
            chosen.append(estate)
        wanted -= cells
    return chosen


@lru_cache(maxsize=2)
def _expect(as_of: datetime | None, batch: int) -> Expected:
    return reference(estates(as_of, batch), as_of=as_of, run_id=RUN_ID)


def assert_agrees(decider: Decider, as_of: datetime | None, batch: int = 0, *, is_whole: bool = True) -> None:
    """A decider has the rows of the tests' own resolver."""
    wanted = _expect(as_of, batch)
    assert_decided(decider(estates(as_of, batch), as_of), wanted, is_whole=is_whole)
    if as_of is None and batch == 0:
        _print_coverage(Counter(wanted.cells()))


def _print_coverage(cells: Counter[Any]) -> None:
    """The coverage table; fails on a reachable cell that no row reached."""
    lines = [f"{'step':>4} {'tier':<10} {'outcome':<10} {'reason':<26} {'rows':>7} {'rerouted':>8}"]
    for cell in sorted(reachable_cells(), key=lambda c: (c.step is None, c.step or 0, *map(str, c[1:]))):
        lines.append(
            f"{'-' if cell.step is None else cell.step:>4} {cell.tier or '-':<10} {cell.outcome:<10}"
            f" {cell.reason:<26} {cells[cell, False]:>7} {cells[cell, True]:>8}"
        )
    print("\n".join(lines))  # noqa: T201
    seen = {cell for cell, _ in cells}
    assert not reachable_cells() - seen
    assert not reachable_rerouted_cells() - {cell for cell, rerouted in cells if rerouted}
