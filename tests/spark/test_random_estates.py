"""Random estates, resolved by Spark and by the tests' own resolver: every column of every row agrees."""

from __future__ import annotations

import os
import random
from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from tests.frames import frames, rows_of
from tests.reference.estates import joined, random_estate, reachable_cells, reachable_rerouted_cells
from tests.reference.resolver import resolve as reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.core
ESTATES = int(os.environ.get("SBROUTE_RANDOM_ESTATES", "150"))
# Looked at for cells that the first ones leave out, however few those are.
MOST_ESTATES = 20 * max(ESTATES, 300)
MESSAGES = int(os.environ.get("SBROUTE_RANDOM_MESSAGES", "60"))
SEED = int(os.environ.get("SBROUTE_RANDOM_SEED", "20260105"))
# Batches of other estates, one after the other, so that a long run (make test-rules) needs no more memory.
BATCHES = int(os.environ.get("SBROUTE_RANDOM_BATCHES", "1"))
AS_OF = datetime(2026, 1, 5, 10, 0, 0, tzinfo=timezone.utc)


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted((name, _hashable(item)) for name, item in value.items()))
    return value


def multiset(rows: list[dict[str, Any]]) -> Counter[Any]:
    """Whole rows with how often each stands there: message ids repeat on purpose."""
    return Counter(_hashable(row) for row in rows)


def assert_same(got: list[dict[str, Any]], expected: list[dict[str, Any]], table: str) -> None:
    """Both lists hold the same rows; the first differences are shown side by side."""
    mine, theirs = multiset(got), multiset(expected)
    only_mine, only_theirs = mine - theirs, theirs - mine
    shown = "\n".join(
        [f"spark    {row}" for row in sorted(only_mine, key=repr)[:5]]
        + [f"expected {row}" for row in sorted(only_theirs, key=repr)[:5]]
    )
    differs = only_mine + only_theirs
    assert not differs, f"{table}: {sum(only_mine.values())} rows differ\n{shown}"


def _estates(as_of: datetime | None, batch: int) -> list[Any]:
    """A batch of random estates; the first one adds, of many more, those that reach a cell that none reached."""
    rng = random.Random(SEED + batch)
    if as_of is not None or batch:
        count = ESTATES if as_of is None else ESTATES // 4
        return [random_estate(rng, MESSAGES, f"e{n}/") for n in range(count)]
    # A reachable cell counts when any message reaches it, and once more where a rerouted one can.
    wanted = {(c, True) for c in reachable_rerouted_cells()}
    wanted |= {(c, False) for c in reachable_cells() - reachable_rerouted_cells()}
    chosen = []
    for number in range(MOST_ESTATES):
        if number >= ESTATES and not wanted:
            break
        estate = random_estate(rng, MESSAGES, f"e{number}/")
        cells = set(reference(estate).cells())
        if number < ESTATES or cells & wanted:
            chosen.append(estate)
        wanted -= cells
    return chosen


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("as_of", [None, AS_OF], ids=["own time", "as_of"])
def test_random_estates_agree(spark: SparkSession, as_of: datetime | None, batch: int) -> None:
    import routing

    tables = joined(_estates(as_of, batch))
    expected = reference(tables, as_of=as_of, run_id="random")
    done = routing.resolve(spark, frames(spark, tables), as_of=as_of, run_id="random")
    try:
        assert_same(rows_of(done.resolved_routes), expected.resolved_routes, "resolved_routes")
        assert_same(rows_of(done.new_route_requests), expected.new_route_requests, "new_route_requests")
        assert_same(rows_of(done.rejected_messages), expected.rejected_messages, "rejected_messages")
    finally:
        done.unpersist()
    if as_of is None and batch == 0:
        _print_coverage(Counter(expected.cells()))


def test_where_there_are_no_messages_nothing_comes_out(spark: SparkSession) -> None:
    import routing

    tables = random_estate(random.Random(SEED), MESSAGES)
    done = routing.resolve(spark, frames(spark, {**tables, "messages": []}))
    try:
        assert done.resolved_routes.count() == done.rejected_messages.count() == 0
        assert done.new_route_requests.count() == 0
    finally:
        done.unpersist()


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
