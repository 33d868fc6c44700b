"""Decide keys of columns as rows of timelines for joins with messages. The rows are few and printable.

A row is an interval of time with its choices. The dialog-ID hash selects one of them. Keys with the same rows
share them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import or_
from typing import Any

from routing.plan.planner import remember
from routing.process import no_search_for_cycles
from routing.rules.deciding import ConcerningRoutes, Decision, RoutingKey, signature
from routing.rules.estate import ARRIVALS, NameAddress, SqlInstance, address_of_name
from routing.rules.matching import UNNAMED
from routing.rules.resolving import VERDICT_COLUMNS, verdict_of
from routing.rules.timeline import TimeInterval
from routing.schemas import RESOLVED_ROUTES, ColumnKind, Field, Schema
from routing.tables.table_columns import TableColumns
from routing.terms import Outcome

# Routing keys as rows of columns, by which Spark and Arrow group messages.
#
# Service names and broker instances that nothing known names fall into a few classes, so that garbage in the data
# does not make a plan larger. `KEY` has the facts that decide within an instance.


FROM_NETWORK = ""
"""The key_database of arrivals over the network. No database has an empty name."""
KEY = ("instance_name", "key_database", "key_service", "key_broker", "key_kind")


# Service classes: a known name, or an unknown one without an address, with one elsewhere, or with an own address.
CLASSES = 4
KNOWN, NO_ADDRESS, ADDRESS_ELSEWHERE, OWN_ADDRESS = range(CLASSES)
_ADDRESSES = {NO_ADDRESS: NameAddress.NONE, ADDRESS_ELSEWHERE: NameAddress.ELSEWHERE, OWN_ADDRESS: NameAddress.OWN}
# key_kind = is_initiator + 2 * service class + 8 * (the broker instance is one that nothing names).
SERVICE_FACTOR, OTHER_BROKER = 2, 8
# The columns of a message that its key is made of, without those of its dialog.
READ = ("instance_name", "database_name", "to_service_name", "to_broker_instance", "is_initiator")


@dataclass(frozen=True)
class KeyCounts:
    """The number of messages, and of valid ones.

    Unless ``is_exact``, only the columns of keys were read, and some valid ones may still be rejected.
    """

    rows_read: int
    rows_valid: int
    is_exact: bool

    @property
    def rows_rejected(self) -> int | None:
        """The number of rejected messages, or None if it is unknown."""
        return self.rows_read - self.rows_valid if self.is_exact else None


def key_of(instance: SqlInstance, database: str, service: str, broker: str, kind: int) -> RoutingKey:
    """Return the routing key of a row of the columns `KEY`, which names this instance."""
    named = _ADDRESSES.get(kind // SERVICE_FACTOR % CLASSES)
    return RoutingKey(
        database or None,
        service or None,
        _broker(broker, kind),
        bool(kind & 1),
        address_of_name(service, instance.own_addresses) if named is None else named,
    )


def _broker(broker: str, kind: int) -> str | None:
    return UNNAMED if kind & OTHER_BROKER else broker or None


# reads_address: the address comes from the message's service name. counts_hops: HOP_LIMIT if no hops remain.
# asks, asks_msdb: the search reaches step 4 in the scope, or in msdb after the message came back. The choice then
# applies only if requests are pending, but none of the message's own conversation endpoint.
READS_ADDRESS = "reads_address"
CHOICE = Schema(
    (
        Field("asks", ColumnKind.BOOLEAN),
        Field("asks_msdb", ColumnKind.BOOLEAN),
        Field(READS_ADDRESS, ColumnKind.BOOLEAN),
        Field("counts_hops", ColumnKind.BOOLEAN),
        *(Field(field.name, field.kind) for field in RESOLVED_ROUTES if field.name in VERDICT_COLUMNS),
    )
)
"""The fields of a choice of `decide_keys`."""
_OWN, _IN_MSDB = 0, 1
_READS_ADDRESS, _OUTCOME, _ALTERNATIVES = map(CHOICE.names.index, (READS_ADDRESS, "outcome", "alternative_routes"))
# Approximate sizes in memory: a row of the plan, a choice, an alternative route.
_ROW, _CHOICE, _ALTERNATIVE = 300, 250, 120

Choice = tuple[Any, ...]
TimelineRow = tuple["int | None", "int | None", tuple[Choice, ...]]
"""valid_from, valid_to and choices."""


@dataclass(frozen=True)
class PlanUses:
    """The features of the rules that a plan uses. Unused parts of the job are not built.

    ``has_times`` is True if a row has a bound. ``reads_addresses`` is True if a choice reads its address from the
    service name. ``asks`` is True if a choice reaches step 4 in its own scope, and ``asks_in_databases`` if that
    is not msdb. ``asks_msdb`` is True if step 4 is reached in msdb after the message came back. ``delays`` is True
    if a choice may leave a message of a database delayed.
    """

    has_times: bool = False
    reads_addresses: bool = False
    asks: bool = False
    asks_in_databases: bool = False
    asks_msdb: bool = False
    delays: bool = False

    @property
    def may_ask(self) -> bool:
        """Whether any message may open a request for a route."""
        return self.asks or self.asks_msdb

    def __or__(self, other: PlanUses) -> PlanUses:
        return PlanUses(*map(or_, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class TimelineRows:
    """The rows that keys share, and their approximate size in memory (bytes)."""

    rows: Sequence[TimelineRow]
    size: int


@dataclass(frozen=True)
class DecidedKeys:
    """The decisions for distinct keys: ``numbers`` are the places of their timelines, in the keys' order.

    ``choice`` has the fields of a choice.
    """

    choice: Schema
    numbers: Sequence[int]
    timelines: Sequence[TimelineRows]
    uses: PlanUses


Intervals = Callable[[RoutingKey, SqlInstance], Iterable[TimeInterval[Choice]]]
"""Returns the choices of a key at every time."""


def all_choices(key: RoutingKey, instance: SqlInstance) -> Iterator[TimeInterval[Choice]]:
    """Yield the choices of a key in the order of time."""
    for one in ConcerningRoutes.of(key, instance).decide_all():
        yield TimeInterval(one.valid_from, one.valid_to, tuple(map(choice_of, one.choices)))


def decide_keys(
    keys: TableColumns,
    instances: Mapping[str, SqlInstance],
    choice: Schema = CHOICE,
    intervals: Intervals = all_choices,
) -> DecidedKeys:
    """Decide every distinct key.

    ``keys`` have the columns of `KEY`. ``instances`` has each of their instances. ``intervals`` makes choices with
    the fields of ``choice``.
    """
    decider, numbers = KeyDecider(intervals), list[int]()
    with no_search_for_cycles():
        for name, database, service, broker, kind in keys.rows(*KEY):
            instance = instances[name]
            numbers.append(decider.decide_one(key_of(instance, database, service, broker, kind), instance))
    return DecidedKeys(choice, numbers, decider.timelines, decider.uses)


class KeyDecider:
    """Decides keys of one estate in any order.

    ``timelines`` are the distinct ones so far, and ``uses`` are the features of the rules that they use.
    """

    def __init__(self, intervals: Intervals = all_choices) -> None:
        self._intervals = intervals
        self.timelines: list[TimelineRows] = []
        self.uses = PlanUses()
        self._numbers: dict[Hashable, int] = {}
        self.forget_routes()

    def forget_routes(self) -> None:
        """Forget the routes of earlier decisions, because their objects may be gone."""
        self._places: dict[Hashable, int] = {}

    def decide_one(self, key: RoutingKey, instance: SqlInstance) -> int:
        """Return the place of the timeline of a key. Keys with equal signatures share one.

        The instance has the services and routes of the key. They must live until they are forgotten.
        """
        same = signature(key, instance)
        number = self._places.get(same)
        if number is None:
            added = self._add(self._intervals(key, instance), key.scope)
            number = remember(self._places, same, added)
        return number

    def _add(self, intervals: Iterable[TimeInterval[Choice]], scope: str) -> int:
        """Return the place of a timeline of a key in a scope."""
        rows = _join_neighbours(intervals)
        choices = [choice for _, _, choices_of_row in rows for choice in choices_of_row]
        asks = any(choice[_OWN] for choice in choices)
        asks_msdb = any(choice[_IN_MSDB] for choice in choices)
        may_wait = asks or asks_msdb or any(choice[_OUTCOME] == Outcome.DELAYED for choice in choices)
        self.uses |= PlanUses(
            has_times=len(rows) > 1,
            reads_addresses=any(choice[_READS_ADDRESS] for choice in choices),
            asks=asks,
            asks_in_databases=asks and scope != ARRIVALS,
            asks_msdb=asks_msdb,
            delays=may_wait and scope != ARRIVALS,
        )
        number = self._numbers.get(rows)
        if number is None:
            number = self._numbers[rows] = len(self.timelines)
            size = _ROW * len(rows) + sum(
                _CHOICE + _ALTERNATIVE * len(choice[_ALTERNATIVES] or ()) for choice in choices
            )
            self.timelines.append(TimelineRows(rows, size))
        return number


def _join_neighbours(intervals: Iterable[TimeInterval[Choice]]) -> tuple[TimelineRow, ...]:
    """Return intervals as rows. Neighbours with equal choices are joined."""
    rows: list[TimelineRow] = []
    for one in intervals:
        start = one.valid_from
        if rows and rows[-1][2] == one.choices:
            start = rows.pop()[0]
        rows.append((start, one.valid_to, one.choices))
    return tuple(rows)


def choice_of(decision: Decision) -> Choice:
    """Return the fields of `CHOICE` for an open message without hops or an address in its service name."""
    search, columns = decision.last, verdict_of(decision, None, None, None).plain()
    return decision.asks, decision.asks_again, search.reads_address, search.end.counts_hops, *columns.values()
