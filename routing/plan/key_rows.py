"""Decide keys of columns as rows of timelines for joins with messages. The rows are few and printable.

A row is an interval of time with its choices. The dialog-ID hash selects one of them. Keys with the same rows
share them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from routing.plan.paths import PathChoice, PathPlanner
from routing.plan.planner import remember
from routing.process import no_search_for_cycles
from routing.rules.deciding import ConcerningRoutes, Decision, RoutingKey, scope_of, signature
from routing.rules.estate import ARRIVALS, NameAddress, SqlInstance, address_of_name
from routing.rules.matching import UNNAMED
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.pathing import PathRow, PathSender, PathWithReturn, path_row, reads_address
from routing.rules.resolving import VERDICT_COLUMNS, verdict_of
from routing.rules.timeline import TimeInterval
from routing.schemas import MESSAGE_PATHS, RESOLVED_ROUTES, ArrayOf, ColumnKind, Field, Schema
from routing.tables.table_columns import TableColumns

# Routing keys as rows of columns, by which Spark and Arrow group messages, and their meaning for the rules.
#
# Unknown names and broker instances fall into one class each, so that garbage in the data does not make a plan
# larger. `KEY` decides within an instance. `PATH_KEY` decides in the whole estate, there and back. In it, a name
# that begins with an address of a known instance counts by this address, and a conversation with recorded requests
# has its own key (D10).


FROM_NETWORK = ""
"""The key_database of arrivals over the network. No database has an empty name."""
KEY = ("instance_name", "key_database", "key_service", "key_broker", "key_kind")


class KeyRow(NamedTuple):
    """A row of the columns `KEY`. An empty text means no value."""

    instance: str
    database: str
    service: str
    broker: str
    kind: int


# The same with the service of a message as written, even if it is unknown. key_role is key_kind without the class
# of a service.
TEXTS = ("instance_name", "key_database", "to_service_name", "key_broker", "key_role")
PATH_KEY = (
    *("instance_name", "key_database", "key_service", "key_broker", "key_from", "key_kind"),
    "key_conversation",
)
HOPS_LEFT = "hops_left"
"""The numbers of hops that the messages of a `PATH_KEY` have left, a list beside the columns of the key."""


def most_hops(instances: int) -> int:
    """Return a number of hops that is more than any path has in an estate of so many instances.

    A path comes twice to an instance: while its dialog is open, and bound to a broker instance.
    """
    return 2 * instances + 2


# Service classes: a known name; other names without an address, with one elsewhere, with an own address.
CLASSES = 4
KNOWN, NO_ADDRESS, ADDRESS_ELSEWHERE, OWN_ADDRESS = range(CLASSES)
_ADDRESSES = {
    NO_ADDRESS: NameAddress.NONE,
    ADDRESS_ELSEWHERE: NameAddress.ELSEWHERE,
    OWN_ADDRESS: NameAddress.OWN,
}
CLASS_OF = {address: number for number, address in _ADDRESSES.items()}
# key_kind = is_initiator + 2 * service class + 8 * (the broker instance is unknown)
# + 16 * class of the sender's service, in a `PATH_KEY`.
SERVICE_FACTOR, OTHER_BROKER = 2, 8
FROM_FACTOR = 2 * OTHER_BROKER
# The columns of a message for its key, except its dialog.
READ = ("instance_name", "database_name", "to_service_name", "to_broker_instance", "is_initiator")


@dataclass(frozen=True)
class KeyTexts:
    """All that messages hold in place of keys: the columns `TEXTS`, distinct, and the places of their keys."""

    rows: TableColumns
    keys: Sequence[int]


@dataclass(frozen=True)
class KeyCounts:
    """The distinct keys of all resolvable messages, the number of messages, and the number of valid ones.

    If not ``is_exact``, only the columns of the key were checked, so that some valid messages may still be
    rejected. ``texts`` are given if they are known and not much more than the keys. ``is_folded`` is True if every
    conversation id is already in its form for comparison.
    """

    keys: TableColumns
    rows_read: int
    rows_valid: int
    is_exact: bool
    texts: KeyTexts | None = None
    is_folded: bool = False

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


class PathKey(NamedTuple):
    """A parsed row of `PATH_KEY`.

    ``back_to`` is the service for replies, or None if it is unknown. ``conversation_id`` is as in `PathSender`.
    """

    instance: str
    database: str | None
    to: ServiceAddress
    broker: str | None
    back_to: ServiceAddress | None
    is_initiator: bool
    conversation_id: str | None

    def sender(self, instance: SqlInstance) -> PathSender:
        """Return the sender of this key's messages on the instance that it names."""
        return PathSender(instance, self.database, self.is_initiator, self.back_to, self.conversation_id)


def path_key_of(
    instance: str, database: str, service: str, broker: str, sender: str, kind: int, conversation: str
) -> PathKey:
    """Return the path key of a row of the columns `PATH_KEY`. An empty text means no value."""
    of_sender = kind // FROM_FACTOR % CLASSES
    back_to = None if (of_sender, sender) == (KNOWN, "") else _addressee(of_sender, sender)
    to = _addressee(kind // SERVICE_FACTOR % CLASSES, service)
    bound_broker = _broker(broker, kind)
    return PathKey(instance, database or None, to, bound_broker, back_to, bool(kind & 1), conversation or None)


def _broker(broker: str, kind: int) -> str | None:
    return UNNAMED if kind & OTHER_BROKER else broker or None


def _addressee(kind: int, name: str) -> ServiceAddress:
    """Return the service of a name. An unknown name has only its address, if it holds one."""
    if kind == KNOWN and name:
        return ServiceAddress.of_name(name)
    if kind == OWN_ADDRESS:
        return ServiceAddress(None, name or None, holds_address=True)
    return ServiceAddress(None, None, holds_address=kind == ADDRESS_ELSEWHERE)


# reads_address: the address comes from the message's service name. counts_hops: HOP_LIMIT if no hops remain. asks,
# asks_msdb: step 4 is reached in the scope, or in msdb after the message came back. The choice is valid while
# requests of other conversation endpoints are pending.
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
"""A path, and True if its last address is that of the message's service name."""
_OWN, _IN_MSDB = 0, 1
_READS_ADDRESS, _ALTERNATIVES = map(CHOICE.names.index, (READS_ADDRESS, "alternative_routes"))
# Rough sizes in memory: a row of the plan, a choice, an alternative route, a choice of paths, a path, a hop.
_ROW, _CHOICE, _ALTERNATIVE, _PATH_CHOICE_SIZE, _PATH, _HOP = 300, 250, 120, 60, 300, 250

Choice = tuple[Any, ...]
TimelineRow = tuple["int | None", "int | None", tuple[Choice, ...]]
"""valid_from, valid_to and choices."""


@dataclass(frozen=True)
class PlanUses:
    """The features of the rules that a plan uses. Unused parts of the job are not built.

    ``has_times`` is True if a row has a bound. ``reads_addresses`` is True if a choice reads its address from the
    service name. ``asks`` is True if a choice reaches step 4 in its own scope, and ``asks_in_databases`` if that
    is not msdb. ``asks_msdb`` is True if step 4 is reached in msdb after the message came back.
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
    decider = KeyDecider(intervals)
    numbers = decider.decide(keys.rows(*KEY), instances)
    return DecidedKeys(KEY, choice, numbers, decider.timelines, decider.uses)


class KeyDecider:
    """Decides keys of one estate in any order. ``timelines`` are the distinct ones so far."""

    def __init__(self, intervals: Intervals = all_choices) -> None:
        self._intervals, self._shared = intervals, SharedRows(_reads_address, _size_of)
        self.timelines: Sequence[TimelineRows] = self._shared.timelines
        self.forget_routes()

    def forget_routes(self) -> None:
        """Forget the routes of earlier decisions, because their objects may be gone."""
        self._places: dict[Hashable, int] = {}

    @property
    def uses(self) -> PlanUses:
        """The features that the timelines use."""
        return self._shared.uses

    def decide(self, rows: Iterable[tuple[Any, ...]], instances: Mapping[str, SqlInstance]) -> list[int]:
        """Return the places of the timelines of rows of the columns `KEY`. Equal signatures share one.

        ``instances`` have all services of these rows. Their routes must live until they are forgotten.
        """
        places, numbers = self._places, list[int]()
        with no_search_for_cycles():
            for name, database, service, broker, kind in rows:
                instance = instances[name]
                key = key_of(instance, database, service, broker, kind)
                same = signature(key, instance)
                number = places.get(same)
                if number is None:
                    added = self._shared.add(self._intervals(key, instance), key.scope)
                    number = remember(places, same, added)
                numbers.append(number)
        return numbers


class PathFields(NamedTuple):
    """The stored fields of a path: those of ``schema``, with an optional `READS_ADDRESS` at the end."""

    schema: Schema
    of: Callable[[PathWithReturn], Choice]

    @property
    def choice(self) -> Schema:
        """The fields of a choice of paths.

        The first path is that of messages with ``most_hops`` left or more, then there is one for each `HOPS_LEFT`.
        """
        return Schema(
            (
                *_ASKS,
                Field("most_hops", ColumnKind.INT),
                Field(HOPS_LEFT, ArrayOf(ColumnKind.INT)),
                Field("paths", ArrayOf(self.schema)),
            )
        )


def follow_keys(keys: TableColumns, network: EstateNetwork, fields: PathFields | None = None) -> DecidedKeys:
    """Follow every distinct key there and back, with the remaining hops of its messages.

    ``keys`` have the columns of `PATH_KEY` and `HOPS_LEFT`. ``network`` has all services in them. By default the
    ``fields`` of a path are those of `PATH`.
    """
    kept = fields or PathFields(PATH, lambda path: (*path_row(path), reads_address(path.there)))
    reads = _path_reads_address if READS_ADDRESS in kept.schema.names else _reads_nothing
    planner, shared, numbers = PathPlanner(network), SharedRows(reads, _size_of_paths), []
    with no_search_for_cycles():
        for *row, hops_left in keys.rows(*PATH_KEY, HOPS_LEFT):
            key = path_key_of(*row)
            sender = key.sender(network.instances[key.instance])
            timeline = planner.timeline(sender, key.to, key.broker)
            most = timeline.most_hops() if hops_left else 0
            left = tuple(sorted(hops for hops in hops_left if hops < most))
            intervals = (
                TimeInterval(one.valid_from, one.valid_to, _choices(one.choices, kept, left))
                for one in timeline.intervals((None, *left))
            )
            numbers.append(shared.add(intervals, scope_of(key.database)))
    return DecidedKeys(PATH_KEY, kept.choice, numbers, shared.timelines, shared.uses)


class SharedRows:
    """The distinct rows of timelines, and the features that they use.

    ``reads_address`` returns True if a choice reads its address from the service name. ``size_of`` returns its
    size in memory.
    """

    def __init__(self, reads_address: Callable[[Choice], bool], size_of: Callable[[Choice], int]) -> None:
        self.timelines: list[TimelineRows] = []
        self.uses = PlanUses()
        self._reads_address, self._size_of = reads_address, size_of
        self._numbers: dict[Hashable, int] = {}

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
    """Return intervals as rows. Neighbours with equal choices are joined."""
    rows: list[TimelineRow] = []
    for one in intervals:
        start = one.valid_from
        if rows and rows[-1][2] == one.choices:
            start = rows.pop()[0]
        rows.append((start, one.valid_to, one.choices))
    return tuple(rows)


def choice_of(decision: Decision) -> Choice:
    """Return the fields of `CHOICE`. The columns describe a message without own facts."""
    search, columns = decision.last, verdict_of(decision, None, None, None).plain()
    return decision.asks, decision.asks_again, search.reads_address, search.end.counts_hops, *columns.values()


def _reads_address(choice: Choice) -> bool:
    reads: bool = choice[_READS_ADDRESS]
    return reads


def _size_of(choice: Choice) -> int:
    return _CHOICE + _ALTERNATIVE * len(choice[_ALTERNATIVES] or ())


def _path_choice(choice: PathChoice, fields: PathFields, left: tuple[int, ...]) -> Choice:
    """Return the fields of `PathFields.choice`."""
    paths = tuple([fields.of(path) for path in choice.paths])
    return choice.decision.asks, choice.decision.asks_again, choice.hops, left, paths


def _choices(choices: Iterable[PathChoice], fields: PathFields, left: tuple[int, ...]) -> tuple[Choice, ...]:
    return tuple([_path_choice(choice, fields, left) for choice in choices])


def _reads_nothing(choice: Choice) -> bool:
    return False


def _path_reads_address(choice: Choice) -> bool:
    *_, paths = choice
    return any(path[-1] for path in paths)


def _size_of_paths(choice: Choice) -> int:
    *_, paths = choice
    lists = (value for path in paths for value in path if isinstance(value, tuple))
    return _PATH_CHOICE_SIZE + _PATH * len(paths) + _HOP * sum(map(len, lists))
