"""The routing plan: distinct routing keys → rules → rows that messages are joined with.

Small, printable, testable without messages. Columns of a plan: `keying.KEY`, valid_from (inclusive) and valid_to
(exclusive), null where unbounded, and choices, an array of `CHOICE` of which the dialog-ID hash takes one; a row
for each key and interval of time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from routing.messages.keying import KEY, key_of
from routing.rules.deciding import Decision, Key, decide, signature
from routing.rules.estate import ARRIVALS, Instance, Route
from routing.schemas import ALTERNATIVE_ROUTES, AnyKind, ArrayOf, Field, Kind, Schema
from routing.storage import frames, keeping
from routing.storage.columns import Columns

_TEXT, _FLAG = Kind.STRING, Kind.BOOLEAN
# The fields of a choice. reads_address: the address is to be read from the message's service name.
# counts_hops: HOP_LIMIT where no hops remain. asks, asks_msdb: step 4 is reached in the scope, or in msdb after
# the message came back; with a pending request the choice stands, else a request is opened.
_KINDS: dict[str, AnyKind] = {
    "outcome": _TEXT,
    "reason": _TEXT,
    "matching_step": Kind.INT,
    "broker_instance": _TEXT,
    "route_name": _TEXT,
    "address": _TEXT,
    "mirror_address": _TEXT,
    "destination_database": _TEXT,
    "alternative_routes": ALTERNATIVE_ROUTES,
    "rerouted_from": _TEXT,
    "reads_address": _FLAG,
    "counts_hops": _FLAG,
    "asks": _FLAG,
    "asks_msdb": _FLAG,
}
CHOICE = tuple(_KINDS)
_KEY_FIELDS = [Field(name, Kind.INT if name == "key_kind" else _TEXT) for name in KEY]
_DECIDED_FIELDS = [
    *(Field(name, Kind.TIMESTAMP) for name in ("valid_from", "valid_to")),
    Field("choices", ArrayOf(Schema(tuple(Field(name, kind) for name, kind in _KINDS.items())))),
]
# Rough sizes in memory: a row of the plan, a choice, an alternative route; a key beside its timeline's rows.
_ROW, _CHOICE, _ALTERNATIVE, _OF_A_KEY = 300, 250, 120, 300
TIMELINE = "timeline"
_NUMBER = Field(TIMELINE, Kind.INT)

Choices = list[tuple[Any, ...]]
KeyRow = tuple[str, str, str, str, int]


@dataclass(frozen=True)
class Uses:
    """What a plan makes use of; a part of the job that nothing needs is not built.

    has_times: a row has a bound. reads_addresses: a choice reads its address from the service name. asks: a choice
    reaches step 4 in its own scope, asks_in_databases: in one that is not msdb; asks_msdb: in msdb, after the
    message came back.
    """

    has_times: bool = False
    reads_addresses: bool = False
    asks: bool = False
    asks_in_databases: bool = False
    asks_msdb: bool = False

    def __or__(self, other: Uses) -> Uses:
        return Uses(*(mine or theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Plan:
    """A plan as frames, and its size in memory: bytes, roughly.

    ``rows`` have the columns of a plan. Of a large one they have a timeline in place of a key, since many keys may
    share one, and ``keys`` say which is whose: the columns of `keying.KEY` and timeline, a row for each key.
    """

    rows: DataFrame
    keys: DataFrame | None
    size: int
    uses: Uses


@dataclass(frozen=True)
class _Timeline:
    """The rows of a plan that all keys of one decision share: (valid_from, valid_to, choices)."""

    rows: list[tuple[int | None, int | None, Choices]]
    size: int
    uses: Uses


def routing_plan(
    spark: SparkSession, keys: Columns, instances: Mapping[str, Instance], keeper: keeping.Keeper
) -> Plan:
    """Decide for every distinct key, on the driver.

    ``keys`` have the columns of `keying.KEY`; ``instances`` what is known of each instance that they name. What is
    too large to be rows of the driver is given to ``keeper``.
    """
    made = Planner(instances)
    numbers = [made.number(row) for row in keys.rows(*KEY)]
    lengths = [len(timeline.rows) for timeline in made.timelines]
    if sum(lengths[number] for number in numbers) <= keeping.HELD_ROWS:
        size = sum(made.timelines[number].size for number in numbers)
        return Plan(_whole(spark, keys, numbers, made.timelines), None, size, made.uses)
    size = _OF_A_KEY * len(numbers) + sum(timeline.size for timeline in made.timelines)
    numbered = ((*key, number) for key, number in zip(keys.rows(*KEY), numbers, strict=True))
    of_keys = frames.frame_of_tuples(spark, numbered, Schema((*_KEY_FIELDS, _NUMBER)))
    rows = ((number, *row) for number, timeline in enumerate(made.timelines) for row in timeline.rows)
    of_times = frames.frame_of_tuples(spark, rows, Schema((_NUMBER, *_DECIDED_FIELDS)))
    return Plan(keeper.store(of_times), keeper.store(of_keys), size, made.uses)


def _whole(
    spark: SparkSession, keys: Columns, numbers: Sequence[int], timelines: Sequence[_Timeline]
) -> DataFrame:
    """The rows of a small plan."""
    rows = (
        (*key, *row)
        for key, number in zip(keys.rows(*KEY), numbers, strict=True)
        for row in timelines[number].rows
    )
    return frames.frame_of_tuples(spark, rows, Schema((*_KEY_FIELDS, *_DECIDED_FIELDS)))


class Planner:
    """Decides for keys; those that differ in nothing which counts share a timeline."""

    def __init__(self, instances: Mapping[str, Instance]) -> None:
        self.timelines: list[_Timeline] = []
        self.uses = Uses()
        self._instances = instances
        self._numbers: dict[Hashable, int] = {}

    def number(self, row: KeyRow) -> int:
        """The place of a key's timeline."""
        instance = self._instances[row[0]]
        key = key_of(row, instance)
        shared = (instance.name, signature(key, instance))
        found = self._numbers.get(shared)
        if found is None:
            found = self._numbers[shared] = len(self.timelines)
            self.timelines.append(_decide_timeline(key, instance))
            self.uses |= self.timelines[-1].uses
        return found


def _decide_timeline(key: Key, instance: Instance) -> _Timeline:
    """What is decided for a key; neighbours in time that are decided alike are one row."""
    rows: list[tuple[int | None, int | None, Choices]] = []
    for timed in decide(key, instance):
        choices = [_choice(decision) for decision in timed.decisions]
        start = timed.valid_from
        if rows and rows[-1][2] == choices:
            start = rows.pop()[0]
        rows.append((start, timed.valid_to, choices))
    every = [dict(zip(CHOICE, choice, strict=True)) for _, _, choices in rows for choice in choices]
    asks = any(choice["asks"] for choice in every)
    uses = Uses(
        has_times=len(rows) > 1,
        reads_addresses=any(choice["reads_address"] for choice in every),
        asks=asks,
        asks_in_databases=asks and key.scope != ARRIVALS,
        asks_msdb=any(choice["asks_msdb"] for choice in every),
    )
    alternatives = sum(len(choice["alternative_routes"] or ()) for choice in every)
    return _Timeline(rows, _ROW * len(rows) + _CHOICE * len(every) + _ALTERNATIVE * alternatives, uses)


def _choice(decision: Decision) -> tuple[Any, ...]:
    """The fields of `CHOICE`."""
    leg = decision.last
    return (
        str(leg.end.outcome),
        str(leg.end.reason),
        None if leg.step is None else int(leg.step),
        decision.pick,
        leg.route_name,
        leg.address,
        leg.mirror_address,
        decision.destination,
        [_alternative(route) for route in leg.alternatives] or None,
        decision.rerouted_from,
        leg.reads_address,
        leg.end.counts_hops,
        decision.asks,
        decision.asks_again,
    )


def _alternative(route: Route) -> tuple[Any, ...]:
    return (route.name, route.address, route.mirror_address)
