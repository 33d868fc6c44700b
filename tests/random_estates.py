"""Random estates for all deciders: every row must equal the result of the tests' own resolver.

Each function gets a decider, which decides, runs, traces or compares. A new engine is one more parameter. The
estates are drawn and resolved by the tests' own resolver once for all deciders.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from tests.frames import Tables, arrow, prefixed, rows_in
from tests.hostile import UNDECODABLE
from tests.reference.altered import altered
from tests.reference.cells import Cell
from tests.reference.differing import COMPARED, HOP, both, has_changed
from tests.reference.estate_words import MOMENTS
from tests.reference.estates import draw_estates, joined, random_estate, reachable_cells, reachable_rerouted_cells
from tests.reference.increments import Increments
from tests.reference.networks import random_network
from tests.reference.paths import path_rows
from tests.reference.resolver import Resolution as Expected
from tests.reference.resolver import resolve as reference

if TYPE_CHECKING:
    from routing.views.diff.diffing import Diff

Row = dict[str, Any]
ESTATES = int(os.environ.get("SBROUTE_RANDOM_ESTATES", "40"))
# Looked at for cells that the first ones leave out, however few those are.
MOST_ESTATES = 20 * max(ESTATES, 300)
MESSAGES = int(os.environ.get("SBROUTE_RANDOM_MESSAGES", "60"))
SEED = int(os.environ.get("SBROUTE_RANDOM_SEED", "20260105"))
# Batches of other estates, one after the other, so that a long run (make test-rules) needs no more memory.
BATCHES = int(os.environ.get("SBROUTE_RANDOM_BATCHES", "1"))
# Of the few times that bounds of estates are drawn from, so that many are hit exactly.
AS_OF = MOMENTS[4]
RUN_TIMES = (MOMENTS[1], AS_OF, MOMENTS[6])
RUN_ID = "random"
# So many more have messages with texts that are no UTF-8.
_SPOILT = 6
# Of this seed, those that reach what the first ones leave out; tried before all others.
_REACHING = (
    *(61, 64, 70, 74, 82, 86, 92, 93, 100, 110, 122, 159, 168),
    *(175, 210, 222, 233, 279, 345, 376, 452, 694, 820, 939, 2446),
)
TEXTS = (
    *("message_id", "conversation_id", "instance_name", "database_name"),
    *("to_service_name", "to_broker_instance", "from_service_name"),
)


@dataclass(frozen=True)
class Decided:
    """The rows of a run, or none of a table that the decider does not write.

    Unless it ``is_whole``, a decider has only some columns, and these are compared.
    """

    resolved_routes: Sequence[Row]
    new_route_requests: Sequence[Row] | None
    rejected_messages: Sequence[Row]
    is_whole: bool = field(default=True, kw_only=True)


Decider = Callable[[Tables, datetime | None], Decided]
PartRunner = Callable[[int, list[Row], datetime], Mapping[str, Sequence[Row]]]
"""Runs over the next part of the messages at a time, as ``run<number>``, and returns the rows of output tables."""
Tracer = Callable[[Tables, datetime | None], Sequence[Row]]
"""Tables and a time to rows of ``message_paths``."""
TableMaker = Callable[[Tables], Mapping[str, Any]]
"""Rows to the tables of an engine."""


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted((name, _hashable(item)) for name, item in value.items()))
    return value


def multiset(rows: Sequence[Row]) -> Counter[Any]:
    """Count equal rows, since message ids repeat on purpose."""
    return Counter(_hashable(row) for row in rows)


def assert_same(got: Sequence[Row], expected: Sequence[Row], table: str) -> None:
    """Assert that both lists have the same rows, and show the first differences side by side."""
    mine, theirs = multiset(got), multiset(expected)
    only_mine, only_theirs = mine - theirs, theirs - mine
    shown = "\n".join(
        [f"got      {row}" for row in sorted(only_mine, key=repr)[:5]]
        + [f"expected {row}" for row in sorted(only_theirs, key=repr)[:5]]
    )
    differs = only_mine + only_theirs
    assert not differs, f"{table}: {sum(only_mine.values())} rows differ\n{shown}"


def assert_decided(got: Decided, expected: Expected) -> None:
    """All rows are those of the tests' own resolver."""
    for table in ("resolved_routes", "new_route_requests", "rejected_messages"):
        rows, expected_rows = getattr(got, table), getattr(expected, table)
        if rows is None:
            continue
        if rows and not got.is_whole:
            expected_rows = [{name: row[name] for name in rows[0]} for row in expected_rows]
        assert_same(rows, expected_rows, table)


def spoil_messages(rng: random.Random, tables: Tables) -> Tables:
    """An estate of which every third message has a text that is no UTF-8."""
    data = [some for some, _ in UNDECODABLE]
    spoilt = [
        {**row, rng.choice(TEXTS): rng.choice(data)} if rng.random() < 1 / 3 else row for row in tables["messages"]
    ]
    return {**tables, "messages": spoilt}


@dataclass(frozen=True)
class DrawnEstates:
    """Random estates with the results of the tests' own resolver. Tests must not change them."""

    each: tuple[tuple[Tables, Expected], ...]

    @property
    def has_all_tables(self) -> bool:
        """Whether messages are resolved, open requests, and are rejected."""
        return all(getattr(self.expected, field.name) for field in fields(Expected))

    @cached_property
    def tables(self) -> Tables:
        """All of them in one set of tables."""
        return joined([tables for tables, _ in self.each])

    @cached_property
    def expected(self) -> Expected:
        """Return the decisions on all estates, which have different prefixes."""
        names = [field.name for field in fields(Expected)]
        return Expected(*([row for _, one in self.each for row in getattr(one, name)] for name in names))


def _resolve(tables: Iterable[Tables], as_of: datetime | None) -> DrawnEstates:
    return DrawnEstates(
        tuple((tables_of_estate, reference(tables_of_estate, as_of, run_id=RUN_ID)) for tables_of_estate in tables)
    )


@lru_cache(maxsize=2)
def draw_batch(as_of: datetime | None, batch: int = 0) -> DrawnEstates:
    """Draw a batch of estates. Some have texts that are not UTF-8.

    The first batch also has estates that reach otherwise missing cells.
    """
    if as_of is None and batch == 0:
        chosen = _draw_covering()
    else:
        many = range(ESTATES if as_of is None else ESTATES // 2)
        chosen = _resolve((_estate(batch, number) for number in many), as_of)
    spoilt = [spoil_messages(random.Random(SEED), _estate(batch, number, "s")) for number in range(_SPOILT)]
    return DrawnEstates(chosen.each + _resolve(spoilt, as_of).each)


@lru_cache(maxsize=2)
def draw_few(as_of: datetime | None) -> DrawnEstates:
    """Draw a few estates of the first batch for slow deciders. Together they reach every cell."""
    if as_of is not None:
        return _resolve((tables for tables, _ in draw_few(None).each), as_of)
    reached = [
        ({*expected_rows.cells()}, (tables, expected_rows)) for tables, expected_rows in _draw_covering().each
    ]
    missing, few = _all_cells(), []
    while missing:
        cells, most = max(reached, key=lambda drawn: len(drawn[0] & missing))
        assert cells & missing, missing
        few.append(most)
        missing -= cells
    return DrawnEstates(tuple(few))


def _estate(batch: int, number: int, kind: str = "e") -> Tables:
    return random_estate(random.Random(f"{SEED}/{batch}/{number}"), MESSAGES, f"{kind}{number}/")


def _all_cells() -> set[tuple[Cell, bool]]:
    """A reachable cell counts when any message reaches it, and once more where a rerouted one can."""
    rerouted = reachable_rerouted_cells()
    return {(cell, True) for cell in rerouted} | {(cell, False) for cell in reachable_cells() - rerouted}


@lru_cache(maxsize=1)
def _draw_covering() -> DrawnEstates:
    missing, chosen = _all_cells(), []
    # With many estates those that reach a rare cell are among them: each is taken once.
    for number in dict.fromkeys((*range(ESTATES), *_REACHING, *range(ESTATES, MOST_ESTATES))):
        if number >= ESTATES and not missing:
            break
        [drawn] = _resolve([_estate(0, number)], None).each
        cells = {*drawn[1].cells()}
        if number < ESTATES or cells & missing:
            chosen.append(drawn)
        missing -= cells
    return DrawnEstates(tuple(chosen))


def assert_agrees(decider: Decider, as_of: datetime | None, batch: int = 0) -> None:
    """A decider has the rows of the tests' own resolver."""
    drawn = draw_batch(as_of, batch)
    assert drawn.has_all_tables
    assert_decided(decider(drawn.tables, as_of), drawn.expected)
    if as_of is None and batch == 0:
        _print_coverage(Counter(drawn.expected.cells()))


def assert_few_agree(decider: Decider, as_of: datetime | None, *, is_apart: bool = False) -> None:
    """Assert the same for a slow decider, with one estate at a time if ``is_apart``."""
    drawn = draw_few(as_of)
    assert drawn.has_all_tables
    for tables, expected in drawn.each if is_apart else [(drawn.tables, drawn.expected)]:
        assert_decided(decider(tables, as_of), expected)


def assert_runs_agree(
    run: PartRunner, tables: Tables, parts: Sequence[list[Row]], times: Sequence[datetime]
) -> Increments:
    """Assert that incremental runs over parts of messages equal the tests' own runs, and return these."""
    expected = Increments({key: rows for key, rows in tables.items() if key != "messages"})
    for number, (part, now) in enumerate(zip(parts, times, strict=True)):
        left = run(number, part, now)
        expected.run(part, now, f"run{number}")
        for key, rows in left.items():
            assert_same(without_marks(rows), getattr(expected, key), f"{key} after run {number}")
    return expected


def without_marks(rows: Sequence[Row]) -> list[Row]:
    """Rows without what `pending_messages` keeps to tell whether a message has to be decided again."""
    marks = ("decision_digest", "due_at", "may_ask")
    return [{name: value for name, value in row.items() if name not in marks} for row in rows]


def _print_coverage(cells: Counter[Any]) -> None:
    """Print the coverage table. Fails if no row reached a reachable cell."""
    lines = [f"{'step':>4} {'tier':<10} {'outcome':<10} {'reason':<26} {'rows':>7} {'rerouted':>8}"]
    for cell in sorted(reachable_cells(), key=lambda c: (c.step is None, c.step or 0, *map(str, c[1:]))):
        lines.append(
            f"{'-' if cell.step is None else cell.step:>4} {cell.tier or '-':<10} {cell.outcome:<10}"
            f" {cell.reason:<26} {cells[cell, False]:>7} {cells[cell, True]:>8}"
        )
    print("\n".join(lines))  # noqa: T201
    assert not _all_cells() - cells.keys()


NETWORKS = 30
# A host that is no loopback name: another estate has none of it.
_HOST = re.compile(r"(?i)(tcp://)(?!localhost|127\.)(?=[a-z0-9])")
_SENDERS = ("//sender", "//nobody", "tcp://elsewhere:1/back", "tcp://hub:4022/back", "", None)
_ENDS = {"DELIVERED", "DELAYED", "DROPPED", "LEFT_ESTATE", "LOOP", "NOT_KNOWN"}


def with_own_hosts(value: Any, prefix: str) -> Any:
    """Return the same value with renamed hosts. ``value`` has lists, rows and texts."""
    if isinstance(value, list):
        return [with_own_hosts(item, prefix) for item in value]
    if isinstance(value, dict):
        return {key: with_own_hosts(item, prefix) for key, item in value.items()}
    return _HOST.sub(rf"\g<1>{prefix}", value) if isinstance(value, str) else value


@lru_cache(maxsize=2)
def networks(count: int = NETWORKS) -> Tables:
    """Return networks, and the same number of estates that use every rule. Tests must not change them."""
    rng, many = random.Random(SEED), []
    for number in range(count):
        estate = random_estate(rng, 40)
        for row in estate["messages"]:
            row["from_service_name"] = rng.choice((row["to_service_name"], *_SENDERS))
        for kind, tables in (("e", estate), ("n", random_network(rng, 40))):
            prefix = f"{kind}{number}."
            many.append(with_own_hosts(prefixed(tables, prefix), prefix))
    return joined(many)


@lru_cache(maxsize=2)
def own_rows(as_of: datetime | None) -> Sequence[Row]:
    """The rows of ``message_paths`` of `networks`, by the tests' own walk."""
    return path_rows(networks(), as_of)


def _assert_all_is_met(rows: Sequence[Row]) -> None:
    """Paths end in every way, there and back."""
    assert {row["outcome"] for row in rows} == _ENDS
    assert {row["return_outcome"] for row in rows} == {*_ENDS, None}
    assert {row["reason"] for row in rows} >= {"DIALOG_EXPIRED", "ROUTE_REQUESTED", "HOP_LIMIT", "NO_ROUTE"}
    assert sum(len(row["hops"]) > 2 for row in rows) > 50
    assert {row["ways_agree"] for row in rows} >= {True, False}
    assert {row["multiple_targets"] for row in rows} == {True, False}


def assert_traces(tracer: Tracer, as_of: datetime | None) -> None:
    """A tracer has the rows of the tests' own walk."""
    assert_same(tracer(networks(), as_of), own_rows(as_of), "message_paths")
    if as_of is None:
        _assert_all_is_met(own_rows(as_of))


SIDES, SHOWN = 40, 3
_SETTINGS = ("routes", "databases", "services", "instances", "route_requests")
_SOUGHT = ("outcome", "reason", "ending", "ending_reason")
CHANGED_ENDS = tuple(f"{name}_{side}" for side in ("before", "after") for name in _SOUGHT)
_EXAMPLE = ("instance_name", "message_id", "conversation_id")
_RANKS = {"DELAYED": 1, "NO_RETURN_PATH": 1, "DROPPED": 2, "LOOP": 2, "REJECTED": 3}


@dataclass(frozen=True)
class ComparedSides:
    """Two configurations for the messages of the first, when each decides, and all messages with both decided."""

    before: Tables
    after: Tables
    as_of: tuple[datetime, datetime]
    rows: list[Row]

    @property
    def changed(self) -> list[Row]:
        """Return the messages with different decisions."""
        return [row for row in self.rows if has_changed(row)]


def draw_altered(seed: int, *, is_altered: bool = True, count: int = SIDES) -> tuple[Tables, Tables]:
    """Many random estates, and the same altered, where they are to be."""
    rng = random.Random(seed)
    drawn = draw_estates(rng, count, 40)
    first = joined(drawn)
    return first, joined([altered(rng, estate, rng.randint(0, 9)) for estate in drawn]) if is_altered else first


@lru_cache(maxsize=2)
def draw_network_sides(seed: int, before: datetime, after: datetime, *, count: int = NETWORKS) -> ComparedSides:
    """Return networks with a changed copy or at two times, with paths that differ anywhere.

    Tests must not change them.
    """
    rng, first, second = random.Random(seed), [], []
    for number in range(count):
        tables = random_network(rng, 40)
        for row in tables["messages"]:
            row["from_service_name"] = rng.choice((row["to_service_name"], *_SENDERS, "//i/sales"))
        changed = altered(rng, tables, rng.randint(0, 3))
        prefix = f"n{number}."
        first.append(with_own_hosts(prefixed(tables, prefix), prefix))
        second.append(with_own_hosts(prefixed(changed, prefix), prefix))
    old = joined(first)
    new = joined(second) if before == after else old
    return ComparedSides(old, new, (before, after), both(old, new, (before, after)))


@lru_cache(maxsize=4)
def draw_sides(
    seed: int, before: datetime, after: datetime, *, is_altered: bool = True, count: int = SIDES
) -> ComparedSides:
    """Return random estates with a changed copy, some with many changes and some without.

    Tests must not change them.
    """
    first, second = draw_altered(seed, is_altered=is_altered, count=count)
    return ComparedSides(first, second, (before, after), both(first, second, (before, after)))


def assert_paths_part_everywhere(sides: ComparedSides) -> None:
    """Endings of every kind come and go, at first hops and later ones, there and back."""
    kinds = {"DELIVERED", "DELAYED", "DROPPED", "LOOP", "NO_RETURN_PATH", "NOT_KNOWN"}
    for side in ("before", "after"):
        assert {
            row[f"ending_{side}"] for row in sides.changed if _rank(row, "before") != _rank(row, "after")
        } >= kinds
    further_on = [
        row for row in sides.changed if all(row[f"{name}_before"] == row[f"{name}_after"] for name in COMPARED)
    ]
    assert len(further_on) > 30
    assert {row["hop_direction"] for row in further_on} == {"THERE", "BACK"}
    assert len({row["hop"] for row in further_on}) > 2


def compare_sides(make: TableMaker, sides: ComparedSides, **options: Any) -> Diff:
    """Two configurations at one time, or one at two times, compared in the tables of an engine."""
    from routing.views.diff.diffing import diff

    before, after = sides.as_of
    if sides.before is sides.after:
        return diff(make(sides.before), after, at=before, with_messages=True, **options)
    assert before == after
    settings = {key: rows for key, rows in arrow(sides.after).items() if key in _SETTINGS}
    return diff(make(sides.before), settings, at=before, with_messages=True, **options)


def assert_compared(done: Diff, sides: ComparedSides) -> None:
    """Assert that the reported changes equal the difference of two runs of the tests' own resolver."""
    expected = sides.changed
    assert_same(rows_in(done.messages), expected, "message_changes")
    worse = [row for row in expected if _rank(row, "after") > _rank(row, "before")]
    counts = (done.compared, done.changed, done.worse)
    assert counts == (len(sides.before["messages"]), len(expected), len(worse))
    told_changes = {tuple(row[name] for name in CHANGED_ENDS): row for row in done.counts}
    assert {ends: row["messages"] for ends, row in told_changes.items()} == _count(expected, CHANGED_ENDS)
    for ends, row in told_changes.items():
        assert row["examples"] == _first_three(expected, ends)
    assert_same([*map(dict, done.keys)], _group_changes(expected), "keys")


def _group_changes(changed: Iterable[Row]) -> list[Row]:
    """Count the equal changes of messages by instance, database and service. Empty text means no database."""
    arrivals = [{**row, "database_name": row["database_name"] or None} for row in changed]
    columns_of_sides = [name for name in arrivals[0] if name.endswith(("_before", "_after"))] if arrivals else []
    names = ["instance_name", "database_name", "to_service_name", *columns_of_sides, *HOP]
    return [
        {**dict(zip(names, key, strict=True)), "messages": count} for key, count in _count(arrivals, names).items()
    ]


def _count(rows: Iterable[Row], names: Sequence[str]) -> Counter[tuple[Any, ...]]:
    """Count each combination of values."""
    return Counter(tuple(row[name] for name in names) for row in rows)


def _rank(row: Row, side: str) -> int:
    return _RANKS.get(row[f"ending_{side}"], 0)


def _first_three(rows: Iterable[Row], ends: tuple[Any, ...]) -> list[Row]:
    """The examples of a change from an outcome and reason to others."""
    mine = [
        {name: row[name] for name in _EXAMPLE} for row in rows if tuple(row[name] for name in CHANGED_ENDS) == ends
    ]
    mine.sort(key=lambda row: [(row[name] is not None, row[name] or "") for name in _EXAMPLE])
    return mine[:SHOWN]
