"""What is decided for keys of columns, as rows of timelines, with which messages are joined; small and printable.

A row is an interval of time with its choices, of which the dialog-ID hash takes one. Keys with the same rows share
them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routing.plan.keys import KEY, PATH_KEY, KeyRow, key_of, path_key_of
from routing.plan.paths import PathChoice, PathPlanner
from routing.plan.planner import DecisionTimeline, Planner
from routing.process.garbage import no_search_for_cycles
from routing.rules.deciding import Decision, scope_of, signature
from routing.rules.estate import ARRIVALS, SqlInstance
from routing.rules.network import EstateNetwork
from routing.rules.path_rows import PathRow, path_row, reads_address
from routing.rules.resolving import VERDICT_COLUMNS, verdict_of
from routing.rules.timeline import TimeInterval
from routing.schemas import MESSAGE_PATHS, RESOLVED_ROUTES, ArrayOf, ColumnKind, Field, Schema
from routing.tables.table_columns import TableColumns

# reads_address: the address is to be read from the message's service name. counts_hops: HOP_LIMIT where no hops
# remain. asks, asks_msdb: step 4 is reached in the scope, or in msdb after the message came back; the choice
# stands where requests are pending, none of them of the message's own conversation endpoint.
READS_ADDRESS = "reads_address"
_ASKS = (Field("asks", ColumnKind.BOOLEAN), Field("asks_msdb", ColumnKind.BOOLEAN))
CHOICE = Schema(
    (
        *_ASKS,
        Field(READS_ADDRESS, ColumnKind.BOOLEAN),
        Field("counts_hops", ColumnKind.BOOLEAN),
        *(Field(field.name, field.kind) for field in RESOLVED_ROUTES if field.name in VERDICT_COLUMNS),
    )
)
"""The fields of a choice of `decide_keys`."""
PATH = Schema(
    (
        *(Field(field.name, field.kind) for field in MESSAGE_PATHS if field.name in PathRow._fields),
        Field(READS_ADDRESS, ColumnKind.BOOLEAN),
    )
)
"""A path, by the hops that the message has left, and whether its last address is that of its own service name."""
_PATH_CHOICE = Schema((*_ASKS, Field("paths", ArrayOf(PATH))))
_OWN, _IN_MSDB = 0, 1
_READS_ADDRESS, _ALTERNATIVES = map(CHOICE.names.index, (READS_ADDRESS, "alternative_routes"))
_HOPS = PATH.names.index("hops")
# Rough sizes in memory: a row of the plan, a choice, an alternative route, a choice of paths, a path, a hop.
_ROW, _CHOICE, _ALTERNATIVE, _PATH_CHOICE_SIZE, _PATH, _HOP = 300, 250, 120, 60, 300, 250

Choice = tuple[Any, ...]
TimelineRow = tuple["int | None", "int | None", tuple[Choice, ...]]
"""valid_from, valid_to and choices."""


@dataclass(frozen=True)
class PlanUses:
    """The features of the rules that a plan uses; a part of the job that none needs is not built.

    has_times: a row has a bound. reads_addresses: a choice reads its address from the service name. asks: a choice
    reaches step 4 in its own scope, asks_in_databases: in one that is not msdb; asks_msdb: in msdb, after the
    message came back.
    """

    has_times: bool = False
    reads_addresses: bool = False
    asks: bool = False
    asks_in_databases: bool = False
    asks_msdb: bool = False

    def __or__(self, other: PlanUses) -> PlanUses:
        return PlanUses(
            self.has_times or other.has_times,
            self.reads_addresses or other.reads_addresses,
            self.asks or other.asks,
            self.asks_in_databases or other.asks_in_databases,
            self.asks_msdb or other.asks_msdb,
        )


@dataclass(frozen=True)
class TimelineRows:
    """The rows that keys share, and their size in memory: bytes, roughly."""

    rows: Sequence[TimelineRow]
    size: int


@dataclass(frozen=True)
class DecidedKeys:
    """The decisions for distinct keys: ``numbers`` are the places of their timelines, in the keys' order.

    ``key`` are the key's columns, ``choice`` the fields of a choice.
    """

    key: tuple[str, ...]
    choice: Schema
    numbers: Sequence[int]
    timelines: Sequence[TimelineRows]
    uses: PlanUses


def decide_keys(keys: TableColumns, instances: Mapping[str, SqlInstance]) -> DecidedKeys:
    """Decide for every distinct key.

    ``keys`` have the columns of `keys.KEY`; ``instances`` what is known of each instance that they name.
    """
    decider = KeyDecider()
    numbers = decider.decide(keys.rows(*KEY), instances)
    return DecidedKeys(KEY, CHOICE, numbers, decider.timelines, decider.uses)


class KeyDecider:
    """Decides for keys as they come; ``timelines`` are those so far, each once."""

    def __init__(self) -> None:
        self._shared = SharedRows.of_choices()
        self.timelines: Sequence[TimelineRows] = self._shared.timelines

    @property
    def uses(self) -> PlanUses:
        """What the timelines make use of."""
        return self._shared.uses

    def decide(self, keys: Iterable[KeyRow], instances: Mapping[str, SqlInstance]) -> list[int]:
        """Return the places of the timelines of keys; ``instances`` is what is known for all services of these."""
        planner, places, numbers = (
            Planner(choice_of, signature),
            dict[DecisionTimeline[Choice], int](),
            list[int](),
        )
        with no_search_for_cycles():
            for row in keys:
                instance = instances[row[0]]
                key = key_of(row, instance)
                timeline = planner.timeline(key, instance)
                number = places.get(timeline)
                if number is None:
                    number = places[timeline] = self._shared.add(timeline.intervals(), key.scope)
                numbers.append(number)
        return numbers


def follow_keys(keys: TableColumns, network: EstateNetwork) -> DecidedKeys:
    """Follow every distinct key there and back.

    ``keys`` have the columns of `keys.PATH_KEY`; ``network`` is what is known for the services that they name.
    """
    planner, shared, numbers = PathPlanner(network), SharedRows(_path_reads_address, _size_of_paths), []
    with no_search_for_cycles():
        for row in keys.rows(*PATH_KEY):
            key = path_key_of(row)
            sender = key.sender(network.instances[key.instance])
            timeline = planner.timeline(sender, key.to, key.broker)
            intervals = (
                TimeInterval(one.valid_from, one.valid_to, tuple(map(_path_choice, one.choices)))
                for one in timeline.intervals()
            )
            numbers.append(shared.add(intervals, scope_of(key.database)))
    return DecidedKeys(PATH_KEY, _PATH_CHOICE, numbers, shared.timelines, shared.uses)


class SharedRows:
    """The rows of timelines, each once, and what all of them make use of.

    ``reads_address`` and ``size_of`` tell of a choice whether it reads its address from the service name, and its
    size in memory.
    """

    def __init__(self, reads_address: Callable[[Choice], bool], size_of: Callable[[Choice], int]) -> None:
        self.timelines: list[TimelineRows] = []
        self.uses = PlanUses()
        self._reads_address, self._size_of = reads_address, size_of
        self._numbers: dict[Hashable, int] = {}

    @classmethod
    def of_choices(cls) -> SharedRows:
        """Return none yet, of choices that begin with the fields of `CHOICE`."""
        return cls(_reads_address, _size_of)

    def add(self, intervals: Iterable[TimeInterval[Choice]], scope: str) -> int:
        """Return the place of a timeline of a key in a scope."""
        rows = _join_neighbours(intervals)
        choices = [choice for _, _, choices_of_row in rows for choice in choices_of_row]
        asks = any(choice[_OWN] for choice in choices)
        self.uses |= PlanUses(
            has_times=len(rows) > 1,
            reads_addresses=any(map(self._reads_address, choices)),
            asks=asks,
            asks_in_databases=asks and scope != ARRIVALS,
            asks_msdb=any(choice[_IN_MSDB] for choice in choices),
        )
        number = self._numbers.get(rows)
        if number is None:
            number = self._numbers[rows] = len(self.timelines)
            size = _ROW * len(rows) + sum(map(self._size_of, choices))
            self.timelines.append(TimelineRows(rows, size))
        return number


def _join_neighbours(intervals: Iterable[TimeInterval[Choice]]) -> tuple[TimelineRow, ...]:
    """Return intervals as rows; neighbours in time that are decided alike are one."""
    rows: list[TimelineRow] = []
    for one in intervals:
        start = one.valid_from
        if rows and rows[-1][2] == one.choices:
            start = rows.pop()[0]
        rows.append((start, one.valid_to, one.choices))
    return tuple(rows)


def choice_of(decision: Decision) -> Choice:
    """Return the fields of `CHOICE`; the columns are those of a message that brings nothing of its own."""
    search, columns = decision.last, verdict_of(decision, None, None, None).plain()
    return decision.asks, decision.asks_again, search.reads_address, search.end.counts_hops, *columns.values()


def _reads_address(choice: Choice) -> bool:
    reads: bool = choice[_READS_ADDRESS]
    return reads


def _size_of(choice: Choice) -> int:
    return _CHOICE + _ALTERNATIVE * len(choice[_ALTERNATIVES] or ())


def _path_choice(choice: PathChoice) -> Choice:
    """Return the fields of `_PATH_CHOICE`."""
    paths = tuple([(*path_row(path), reads_address(path.there)) for path in choice.paths])
    return choice.decision.asks, choice.decision.asks_again, paths


def _path_reads_address(choice: Choice) -> bool:
    *_, paths = choice
    return any(path[-1] for path in paths)


def _size_of_paths(choice: Choice) -> int:
    *_, paths = choice
    return _PATH_CHOICE_SIZE + sum(_PATH + _HOP * len(path[_HOPS]) for path in paths)
