"""Find the messages that ask for a route (rule book, section 5), as Arrow rows and as Python objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.plan.key_rows import FROM_NETWORK
from routing.rules.requesting import ConversationEndpoint, InstanceRequests, RequestScope, RouteRequest
from routing.tables.arrow_rows import plain_values
from routing.tables.encoded_texts import split_words
from routing.terms import MSDB

if TYPE_CHECKING:
    import pyarrow

    from routing.engines.arrow.decisions import DecisionColumns
    from routing.engines.arrow.resolved_batches import KeyedBatch

# The order of messages that ask at the same time.
ORDER = ("message_id", "conversation_id", "is_initiator")
# Rows that become Python objects at a time.
_OBJECTS_AT_ONCE = 50_000
# Messages are split into parts by service, so that each part can be sorted separately.
_PARTS_BITS = 4
PARTS = 1 << _PARTS_BITS
# Spreads the last eight bytes of names over the parts. It is 2**64 divided by the golden ratio, an odd number.
_SPREADING = 0x9E3779B97F4A7C15
Scopes = list[tuple[str, str]]
"""Pairs of instance and database. The number of a scope is its place."""


class AskingRows(NamedTuple):
    """The messages of a batch that reach step 4, with their places and the first scope where they ask.

    For messages of the database msdb, and for those that ask only in msdb, this is the scope of arrivals. A
    message that ``returns`` asks there after its own scope. ``word`` is the place of its service in ``services``,
    which are distinct. ``is_alone`` is true if no other compared message asks for this service in this scope.
    """

    rows: pyarrow.Table
    services: pyarrow.Array

    @classmethod
    def of(cls, keyed: KeyedBatch, decided: DecisionColumns, scopes: Scopes) -> AskingRows:
        """Select the rows of a batch that may ask for a route."""
        import pyarrow
        import pyarrow.compute as pc

        in_scope, in_msdb = (flags.take(keyed.decisions) for flags in (decided.asks, decided.asks_msdb))
        asks = pc.or_(in_scope, in_msdb)
        if keyed.is_expired is not None:
            asks = pc.and_not(asks, keyed.is_expired)
        places = pc.indices_nonzero(asks)
        services, words = split_words(keyed.rows["to_service_name"].take(places))
        used = words.dictionary_encode()
        scope, asks_here = keyed.scopes.take(places), in_scope.take(places)
        own_scopes, arrivals = (
            pyarrow.array(scope_places, pyarrow.int64()).take(scope) for scope_places in ask_scopes(scopes)
        )
        asks_in_msdb = in_msdb.take(places)
        columns = {
            "place": places,
            "scope": scope,
            "ask_scope": pc.if_else(asks_here, own_scopes, arrivals),
            "word": used.indices,
            "at": keyed.rows["at"].take(places),
            **{name: keyed.rows[name].take(places) for name in ORDER},
            "in_scope": asks_here,
            "in_msdb": asks_in_msdb,
            "returns": pc.and_(pc.and_(asks_here, asks_in_msdb), pc.not_equal(own_scopes, arrivals)),
            "is_alone": pyarrow.repeat(pyarrow.scalar(True), len(places)),
        }
        kinds = kinds_of_rows()
        rows = pyarrow.table({name: column.cast(kinds[name]) for name, column in columns.items()})
        return cls(rows, services.take(used.dictionary).cast(pyarrow.large_string()))

    def __len__(self) -> int:
        return len(self.rows)

    def filter(self, mask: Any) -> AskingRows:
        """Select rows by a mask."""
        return AskingRows(self.rows.filter(mask), self.services)

    def split(self) -> Iterator[tuple[int, AskingRows]]:
        """Yield the numbers and rows of parts. A service is in the same part in every batch."""
        import pyarrow.compute as pc

        numbers = number_parts(self.services).take(self.rows["word"].combine_chunks())
        for number in pc.unique(numbers).to_pylist():
            rows = self.rows.filter(pc.equal(numbers, number))
            used = rows["word"].combine_chunks().dictionary_encode()
            place = rows.column_names.index("word")
            words = used.indices.cast(rows.schema.field(place).type)
            yield number, AskingRows(rows.set_column(place, "word", words), self.services.take(used.dictionary))

    def is_for(self, services: pyarrow.Array) -> Any:
        """Return a mask of the rows that ask for one of some services."""
        import pyarrow.compute as pc

        return pc.is_in(self.services, value_set=services).take(self.rows["word"])

    def spell(self) -> pyarrow.Table:
        """Return the rows with the service's name, as ``service``, instead of its number."""
        names = self.services.take(self.rows["word"].combine_chunks())
        place = self.rows.column_names.index("word")
        return self.rows.set_column(place, "service", names)

    def objects(self, scopes: Scopes) -> Iterator[AskingRow]:
        """Yield the rows as Python objects, created in parts."""
        for start in range(0, len(self.rows), _OBJECTS_AT_ONCE):
            rows = self.rows[start : start + _OBJECTS_AT_ONCE]
            used = rows["word"].combine_chunks().dictionary_encode()
            names = plain_values(self.services.take(used.dictionary))
            yield from objects_of(rows, [names[place] for place in plain_values(used.indices)], scopes)


def kinds_of_rows() -> dict[str, pyarrow.DataType]:
    """Return the types of `AskingRows` and ``service``, with large texts because these may have gigabytes."""
    import pyarrow

    whole, text, flag = pyarrow.int64(), pyarrow.large_string(), pyarrow.bool_()
    return {
        **dict.fromkeys(("place", "scope", "ask_scope", "word", "at"), whole),
        **dict.fromkeys(("service", "message_id", "conversation_id"), text),
        **dict.fromkeys(("is_initiator", "in_scope", "in_msdb", "returns", "is_alone"), flag),
    }


def number_parts(names: pyarrow.Array) -> pyarrow.Array:
    """Return a number below `PARTS` for each name, from its last bytes."""
    import pyarrow
    import pyarrow.compute as pc

    # Shorter names are padded to eight bytes, which are read as one number.
    last = pc.binary_slice(names.cast(pyarrow.large_binary()), -8).cast(pyarrow.binary())
    whole = pc.binary_slice(pc.binary_join_element_wise(b"\0" * 8, last, b""), -8)
    mixed = pc.multiply(whole.cast(pyarrow.binary(8)).view(pyarrow.uint64()), pyarrow.scalar(_SPREADING, "uint64"))
    return pc.shift_right(mixed, pyarrow.scalar(64 - _PARTS_BITS, "uint64"))


class AskingRow(NamedTuple):
    """A message that reaches step 4, in its own scope or in msdb after it came back."""

    place: int
    instance: str
    database: str
    service: str
    at: int
    message_id: str
    endpoint: ConversationEndpoint
    in_scope: bool
    in_msdb: bool

    @property
    def order(self) -> tuple[int, str, ConversationEndpoint]:
        """The message's position in the asking order."""
        return self.at, self.message_id, self.endpoint

    @property
    def databases(self) -> tuple[str, ...]:
        """The databases in which the message asks, in order."""
        places = ((self.database, self.in_scope), (MSDB, self.in_msdb))
        return tuple(database for database, asks in places if asks)

    def ask(self, requests: InstanceRequests) -> str | None:
        """Ask in each database, which may open a request, and return the one where step 4 stops the message."""
        for database in self.databases:
            if requests.of(database, self.service).ask(*self.order).stops:
                return database
        return None


def objects_of(rows: pyarrow.Table, services: Sequence[str], scopes: Scopes) -> Iterator[AskingRow]:
    """Yield rows of `AskingRows` as Python objects. ``services`` has the service of each row."""
    names = ("place", "scope", "at", *ORDER, "in_scope", "in_msdb")
    databases = own_databases(scopes)
    for service, place, scope, at, message_id, conversation_id, is_initiator, *asks in zip(
        services, *(plain_values(rows[name]) for name in names), strict=True
    ):
        (instance, database), endpoint = databases[scope], ConversationEndpoint(conversation_id, is_initiator)
        yield AskingRow(place, instance, database, service, at, message_id, endpoint, *asks)


def own_databases(scopes: Scopes) -> Scopes:
    """Return each scope's instance and the database with its routes."""
    return [(instance, MSDB if database == FROM_NETWORK else database) for instance, database in scopes]


def number_places(scopes: Scopes) -> dict[tuple[str, str], int]:
    """Return the number of the scope that holds the requests of each database."""
    # The scope of arrivals takes precedence over that of a database msdb.
    return {place: number for number, place in reversed(list(enumerate(own_databases(scopes))))}


def ask_scopes(scopes: Scopes) -> tuple[list[int], list[int]]:
    """Return for each scope where its messages ask first, and where they ask after coming back."""
    numbers = number_places(scopes)
    own_scopes = [numbers[place] for place in own_databases(scopes)]
    return own_scopes, [numbers[instance, MSDB] for instance, _ in scopes]


# Requests on record, which can prevent a message from opening another one (rule book, section 5).


def sort_requests(groups: Sequence[Sequence[RouteRequest]]) -> pyarrow.RecordBatch:
    """Return the requests of groups in the order of group number, time and id."""
    import pyarrow

    requests = [
        (number, request) for number, group in enumerate(groups) for request in sorted(group, key=_position)
    ]
    return pyarrow.record_batch(
        {
            "group": pyarrow.array([number for number, _ in requests], pyarrow.int64()),
            "at": pyarrow.array([request.requested_at for _, request in requests], pyarrow.int64()),
            "message_id": pyarrow.array([request.message_id for _, request in requests], pyarrow.large_string()),
            "ended_at": pyarrow.array([request.ended_at for _, request in requests], pyarrow.int64()),
        }
    )


def find_last(requests: pyarrow.RecordBatch, groups: Any, at: Any, message_id: Any, *, or_own: bool) -> Any:
    """Find by binary search the last request of each message's group before the message, or null.

    ``requests`` must be sorted. With ``or_own``, the message's own request counts too.
    """
    import pyarrow
    import pyarrow.compute as pc

    low = pyarrow.repeat(pyarrow.scalar(0, pyarrow.int64()), len(groups))
    high = pyarrow.repeat(pyarrow.scalar(len(requests), pyarrow.int64()), len(groups))
    comes_before = pc.less_equal if or_own else pc.less
    for _ in range(len(requests).bit_length()):
        is_open = pc.less(low, high)
        middle = pc.if_else(is_open, pc.divide(pc.add(low, high), 2), 0)
        its_group, its_time, its_id = (requests[name].take(middle) for name in ("group", "at", "message_id"))
        in_order = pc.and_(pc.equal(its_time, at), comes_before(its_id, message_id))
        in_time = pc.and_(pc.equal(its_group, groups), pc.or_(pc.less(its_time, at), in_order))
        is_before = pc.or_(pc.less(its_group, groups), in_time)
        low, high = (
            pc.if_else(pc.and_(is_open, is_before), pc.add(middle, 1), low),
            pc.if_else(pc.and_not(is_open, is_before), middle, high),
        )
    place = pc.if_else(pc.greater(low, 0), pc.subtract(low, 1), None)
    return pc.if_else(pc.equal(requests["group"].take(place), groups), place, None)


class Openers(NamedTuple):
    """Messages that may open a request: a new one, or their own on record."""

    new_requests: AskingRows
    own_requests: AskingRows


@dataclass(frozen=True)
class RequestsOnRecord:
    """The requests on record by scope and service.

    Each of the ``codes`` combines a service and a scope. Its place is the number of a group of requests.
    ``lasting`` has the requests that a message may find pending, and ``all`` those that may be its own.
    """

    scopes: int
    services: pyarrow.Array
    codes: pyarrow.Array
    lasting: pyarrow.RecordBatch
    all: pyarrow.RecordBatch

    @classmethod
    def of(cls, scopes: Scopes, on_record: Mapping[str, InstanceRequests]) -> RequestsOnRecord:
        """Collect the requests on record of all instances."""
        import pyarrow

        numbers, services, codes = number_places(scopes), dict[str, int](), list[int]()
        groups = list[RequestScope]()
        for instance, requests in on_record.items():
            for (database, service), group in requests.scopes.items():
                number = numbers.get((instance, database))
                if number is not None:
                    codes.append(services.setdefault(service, len(services)) * len(scopes) + number)
                    groups.append(group)
        return cls(
            len(scopes),
            pyarrow.array(list(services), pyarrow.large_string()),
            pyarrow.array(codes, pyarrow.int64()),
            sort_requests([group.lasting for group in groups]),
            sort_requests([group.on_record for group in groups]),
        )

    def _is_pending(self, groups: Any, at: Any, message_id: Any) -> Any:
        """Return a mask of the messages for which the last earlier request of their group is pending."""
        import pyarrow.compute as pc

        last = find_last(self.lasting, groups, at, message_id, or_own=False)
        has_ended = pc.less_equal(self.lasting["ended_at"].take(last), at)
        return pc.and_not(last.is_valid(), pc.fill_null(has_ended, fill_value=False))

    def _is_own(self, groups: Any, at: Any, message_id: Any) -> Any:
        """Return a mask of the messages that opened a request of their group."""
        import pyarrow.compute as pc

        last = find_last(self.all, groups, at, message_id, or_own=True)
        its_time, its_id = (self.all[name].take(last) for name in ("at", "message_id"))
        return pc.fill_null(pc.and_(pc.equal(its_time, at), pc.equal(its_id, message_id)), fill_value=False)

    def find_openers(self, asking: AskingRows) -> Openers:
        """Return the messages without a pending request on record in the scope where they ask first."""
        import pyarrow
        import pyarrow.compute as pc

        services = pc.index_in(asking.services, value_set=self.services).cast("int64").take(asking.rows["word"])
        codes = pc.add(pc.multiply(services, self.scopes), asking.rows["ask_scope"])
        groups = pc.index_in(codes, value_set=self.codes, skip_nulls=True)
        has_any = groups.is_valid()
        recorded = asking.filter(has_any)
        if not len(recorded.rows):
            return Openers(asking, recorded)
        groups, position = groups.drop_null(), (recorded.rows["at"], recorded.rows["message_id"])
        opens = pc.invert(self._is_pending(groups, *position))
        is_own = self._is_own(groups, *position)
        asking_rows = [asking.filter(pc.invert(has_any)), recorded.filter(pc.and_not(opens, is_own))]
        return Openers(
            AskingRows(pyarrow.concat_tables([rows.rows for rows in asking_rows]), asking.services),
            recorded.filter(pc.and_(opens, is_own)),
        )


def _position(request: RouteRequest) -> tuple[int, str]:
    return request.requested_at, request.message_id
