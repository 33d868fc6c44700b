"""The routing plan: distinct routing keys → rules → timelines of `CHOICE`, which messages are joined with."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from routing.messages.key_columns import KEY, KeyRow, key_of
from routing.messages.timelines import Decided, Row, Timeline, Uses, add_row
from routing.process.garbage import no_search_for_cycles
from routing.rules.deciding import Decision, Key, decide, signature
from routing.rules.estate import ARRIVALS, Instance, Route
from routing.schemas import ALTERNATIVE_ROUTES, AnyKind, Field, Kind, Schema
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
_READS_ADDRESS, _ASKS, _ASKS_MSDB, _ALTERNATIVE_ROUTES = map(
    CHOICE.index, ("reads_address", "asks", "asks_msdb", "alternative_routes")
)
_FIELDS = Schema(tuple(Field(name, kind) for name, kind in _KINDS.items()))
# Rough sizes in memory: a row of the plan, a choice, an alternative route.
_ROW, _CHOICE, _ALTERNATIVE = 300, 250, 120


def decide_keys(keys: Columns, instances: Mapping[str, Instance]) -> Decided:
    """Decide for every distinct key.

    ``keys`` have the columns of `key_columns.KEY`; ``instances`` what is known of each instance that they name.
    """
    made = Planner(instances)
    with no_search_for_cycles():
        numbers = [made.number(row) for row in keys.rows(*KEY)]
    return Decided(KEY, _FIELDS, numbers, made.timelines, made.uses)


class Planner:
    """Decides for keys; those that differ in nothing which counts share a timeline, of whatever instances."""

    def __init__(self, instances: Mapping[str, Instance]) -> None:
        self.timelines: list[Timeline] = []
        self.uses = Uses()
        self._instances = instances
        self._numbers: dict[Hashable, int] = {}

    def number(self, row: KeyRow) -> int:
        """The place of a key's timeline."""
        instance = self._instances[row[0]]
        key = key_of(row, instance)
        shared = signature(key, instance)
        found = self._numbers.get(shared)
        if found is None:
            found = self._numbers[shared] = len(self.timelines)
            self.timelines.append(_decide_timeline(key, instance))
            self.uses |= self.timelines[-1].uses
        return found


def _decide_timeline(key: Key, instance: Instance) -> Timeline:
    """What is decided for a key; neighbours in time that are decided alike are one row."""
    rows: list[Row] = []
    for timed in decide(key, instance):
        choices = [_choice(decision) for decision in timed.decisions]
        add_row(rows, (timed.valid_from, timed.valid_to, choices))
    every = [choice for _, _, choices in rows for choice in choices]
    asks = any(choice[_ASKS] for choice in every)
    uses = Uses(
        has_times=len(rows) > 1,
        reads_addresses=any(choice[_READS_ADDRESS] for choice in every),
        asks=asks,
        asks_in_databases=asks and key.scope != ARRIVALS,
        asks_msdb=any(choice[_ASKS_MSDB] for choice in every),
    )
    alternatives = sum(len(choice[_ALTERNATIVE_ROUTES] or ()) for choice in every)
    return Timeline(rows, _ROW * len(rows) + _CHOICE * len(every) + _ALTERNATIVE * alternatives, uses)


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
