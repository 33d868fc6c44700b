"""The requests that messages open or wait for (rule book, section 5): found by one pass, marked by the next.

Of messages that ask in one database alone, for a service of which no request is on record, the first opens one and
what becomes of the others follows from it: they stay rows of Arrow, however many services are invented. Of all
others those that may open a request become objects of Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.plan.estate import requests_of
from routing.plan.keys import FROM_NETWORK
from routing.plan.requests import requests_on_record
from routing.plan.verdicts import may_ask
from routing.rules.network import Network
from routing.rules.requesting import ConversationEndpoint, Request, Requests, contract_of, missing_route
from routing.schemas import NEW_ROUTE_REQUESTS
from routing.storage.arrow import plain_values, table_of
from routing.storage.kinds import arrow_schema
from routing.terms import MSDB

if TYPE_CHECKING:
    import pyarrow

    from routing.engines.arrow.decisions import Decided
    from routing.engines.arrow.resolving import KeyedBatch, MessageScan

_GROUP = ("ask_scope", "service")
# So many rows of requests are made at a time.
_REQUESTS_AT_ONCE = 200_000
# What XML 1.0 does not allow as a character.
_NOT_XML = r"[^\x{9}\x{A}\x{D}\x{20}-\x{D7FF}\x{E000}-\x{FFFD}\x{10000}-\x{10FFFF}]"
# The order of messages that ask at one time.
_ORDER = ("message_id", "conversation_id", "is_initiator")


@dataclass(frozen=True)
class FoundRequests:
    """The requests that messages open or wait for, once all messages have asked.

    ``first`` are the rows of `asking_rows` that open one as the first of their scope and service. The others are
    those of each instance ``by_instance``: for the services ``by_order``, whose messages ask one after the other.
    Of these ``message_ids`` are those of the messages that open one, ``conversations`` those that may wait (D10).
    """

    scopes: list[tuple[str, str]]
    first: pyarrow.Table
    by_order: pyarrow.Array
    by_instance: Mapping[str, Requests]
    message_ids: pyarrow.Array
    conversations: pyarrow.Array

    @property
    def is_any_opened(self) -> bool:
        """Whether any message opens a request."""
        return len(self.first) > 0 or any(True for one in self.by_instance.values() for _ in one.all_opened())

    def find(self, keyed: KeyedBatch, decided: Decided) -> tuple[pyarrow.Array, pyarrow.Array]:
        """Return which messages step 4 ends in their own scope, and which in msdb, after they came back."""
        import pyarrow
        import pyarrow.compute as pc

        rows = asking_rows(keyed, decided, self.scopes)
        is_by_order = pc.is_in(rows["service"], value_set=self.by_order)
        ended = self._ended_by_first(rows.filter(pc.invert(is_by_order)))
        others = rows.filter(is_by_order)
        opens = pc.is_in(others["message_id"], value_set=self.message_ids)
        waits = pc.is_in(others["conversation_id"], value_set=self.conversations)
        in_scope, in_msdb = list[int](), list[int]()
        for row in _rows_of(others.filter(pc.or_(opens, waits)), self.scopes):
            database = row.ask(self.by_instance[row.instance])
            if database is not None:
                (in_scope if row.in_scope and database == row.database else in_msdb).append(row.place)
        sides = []
        for name, places in (("in_scope", in_scope), ("in_msdb", in_msdb)):
            alone = ended.filter(ended[name])["place"].combine_chunks()
            both = pyarrow.concat_arrays([alone, pyarrow.array(places, pyarrow.int64())])
            sides.append(_mask_of(both, len(keyed.rows)))
        return sides[0], sides[1]

    def _ended_by_first(self, rows: pyarrow.Table) -> pyarrow.Table:
        """Return the rows that open the first request of their scope and service, or are of the end that does."""
        import pyarrow.compute as pc

        names = ["at", *_ORDER]
        near = self.first.filter(pc.is_in(self.first["service"], value_set=rows["service"].combine_chunks()))
        first = near.select([*_GROUP, *names]).rename_columns([*_GROUP, *(f"first_{name}" for name in names)])
        found = rows.join(first, list(_GROUP), join_type="inner")
        same = {name: pc.equal(found[name], found[f"first_{name}"]) for name in names}
        opens = pc.and_(same["at"], same["message_id"])
        waits = pc.and_(same["conversation_id"], same["is_initiator"])
        return found.filter(pc.or_(opens, waits))

    def tables(self, namespace: str, run_id: str) -> Iterator[pyarrow.Table]:
        """Yield the rows of ``new_route_requests``, some at a time."""
        import pyarrow

        shape = arrow_schema(NEW_ROUTE_REQUESTS.optional())
        instances, databases = (pyarrow.array(names) for names in zip(*_own_databases(self.scopes), strict=True))
        for start in range(0, len(self.first), _REQUESTS_AT_ONCE):
            part = self.first.slice(start, _REQUESTS_AT_ONCE)
            columns = {
                "instance_name": instances.take(part["ask_scope"]),
                "database_name": databases.take(part["ask_scope"]),
                "service_name": part["service"],
                "requested_at": part["at"].cast(shape.field("requested_at").type),
                **{name: part[name] for name in _ORDER},
                "body": missing_routes(part["service"], namespace),
            }
            constant = {
                "message_type_name": namespace,
                "service_contract_name": contract_of(namespace),
                "run_id": run_id,
            }
            columns |= {name: pyarrow.repeat(pyarrow.scalar(text), len(part)) for name, text in constant.items()}
            yield pyarrow.table([columns[name] for name in shape.names], shape.names).cast(shape)
        others = self._rows_by_order(namespace, run_id)
        while rows := list(islice(others, _REQUESTS_AT_ONCE)):
            yield table_of(rows, NEW_ROUTE_REQUESTS.optional())

    def _rows_by_order(self, namespace: str, run_id: str) -> Iterator[dict[str, Any]]:
        for instance, requests in sorted(self.by_instance.items()):
            for database, service, request in sorted(requests.all_opened(), key=_place_of):
                conversation_id, is_initiator = request.endpoint or (None, None)
                yield {
                    "instance_name": instance,
                    "database_name": database,
                    "service_name": service,
                    "requested_at": request.requested_at,
                    "message_id": request.message_id,
                    "conversation_id": conversation_id,
                    "is_initiator": is_initiator,
                    "message_type_name": namespace,
                    "service_contract_name": contract_of(namespace),
                    "body": missing_route(service, namespace),
                    "run_id": run_id,
                }


def missing_routes(services: Any, namespace: str) -> Any:
    """Return the MissingRoute messages for services: `rules.requesting.missing_route`."""
    import pyarrow.compute as pc

    names = pc.replace_substring_regex(services, _NOT_XML, "\ufffd")
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        names = pc.replace_substring(names, character, entity)
    before, after = missing_route("\0", namespace).split("\ufffd")
    return pc.binary_join_element_wise(before, names, after, "")


def _place_of(opened: tuple[str, str, Request]) -> tuple[str, str, int, str]:
    database, service, request = opened
    return database, service, request.requested_at, request.message_id


class AskingRow(NamedTuple):
    """A message that meets step 4: in its own scope, or in msdb after it came back."""

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
        """Where it stands in the order of those that ask."""
        return self.at, self.message_id, self.endpoint

    def ask(self, requests: Requests) -> str | None:
        """Return the database in which step 4 ends its way, None where it goes on; it may open a request."""
        for database, asks in ((self.database, self.in_scope), (MSDB, self.in_msdb)):
            if asks and requests.of(database, self.service).ask(*self.order).stops:
                return database
        return None


def find_requests(
    scan: MessageScan, keyed: Iterable[KeyedBatch], on_record: Mapping[str, Requests]
) -> FoundRequests:
    """Find the requests that messages open, of all that there are; ``on_record`` are those of each instance."""
    import pyarrow
    import pyarrow.compute as pc

    scopes = scan.decisions.scopes
    services = {service for one in on_record.values() for _, service in one.scopes}
    by_order, endless = pyarrow.array(sorted(services), pyarrow.string()), _endless_requests(scopes, on_record)
    alike, others = [], []
    for batch in keyed:
        rows = asking_rows(batch, scan.decisions.decided(), scopes)
        twice = pc.and_(rows["in_scope"], rows["in_msdb"])
        # Whoever asks for these may come back to ask in msdb: there all ask one after the other.
        tangled = rows.filter(twice)["service"].combine_chunks()
        by_order = pc.unique(pyarrow.concat_arrays([by_order, tangled]))
        is_by_order = pc.is_in(rows["service"], value_set=by_order)
        alike.append(_first_of_each(rows.filter(pc.invert(is_by_order))))
        others.append(_without_pending(rows.filter(is_by_order), endless))
    first = _first_of_each(pyarrow.concat_tables(alike)) if alike else None
    if first is None:
        none = pyarrow.array([], pyarrow.string())
        return FoundRequests(scopes, _no_rows(), by_order, on_record, none, none)
    is_by_order = pc.is_in(first["service"], value_set=by_order)
    asking = pyarrow.concat_tables([*others, first.filter(is_by_order)])
    for row in sorted(_rows_of(asking, scopes), key=lambda row: row.order):
        row.ask(on_record[row.instance])
    found = [scope for one in on_record.values() for scope in one.scopes.values()]
    opened = [request for scope in found for request in scope.all_opened()]
    ids = {request.message_id for request in opened}
    waited_for = (*opened, *(request for scope in found for request in scope.on_record))
    conversations = {one.endpoint.conversation_id for one in waited_for if one.endpoint is not None}
    named = (pyarrow.array(sorted(values), pyarrow.string()) for values in (ids, conversations))
    return FoundRequests(scopes, first.filter(pc.invert(is_by_order)), by_order, on_record, *named)


def _no_rows() -> pyarrow.Table:
    import pyarrow

    kinds = {name: pyarrow.string() for name in ("service", "message_id", "conversation_id")}
    kinds |= {name: pyarrow.int64() for name in ("place", "scope", "ask_scope", "at")}
    kinds |= {name: pyarrow.bool_() for name in ("is_initiator", "in_scope", "in_msdb")}
    return pyarrow.schema(kinds.items()).empty_table()


def may_any_ask(scan: MessageScan) -> bool:
    """Return True if a message from any scope may meet step 4."""
    instances = scan.checked.instances_for(())
    return any(may_ask(instances[one], database or None) for one, database in scan.decisions.scopes)


def read_on_record(scan: MessageScan) -> Mapping[str, Requests]:
    """Return the requests on record of each instance."""
    requests = scan.checked.settings.get("route_requests")
    found = {} if requests is None else requests_of(requests)
    return requests_on_record(Network(scan.checked.instances, found))


def asking_rows(keyed: KeyedBatch, decided: Decided, scopes: list[tuple[str, str]]) -> pyarrow.Table:
    """Return the messages of a batch that meet step 4, with their places in it and the first scope where they ask.

    Of messages of the database msdb, and of those that ask in msdb alone, that is the scope of arrivals.
    """
    import pyarrow
    import pyarrow.compute as pc

    in_scope, in_msdb = (flags.take(keyed.decisions) for flags in (decided.asks, decided.asks_msdb))
    asks = pc.or_(in_scope, in_msdb)
    if keyed.is_expired is not None:
        asks = pc.and_not(asks, keyed.is_expired)
    places = pc.indices_nonzero(asks)
    service, scope = keyed.rows["to_service_name"].take(places), keyed.scopes.take(places)
    own, arrivals = (pyarrow.array(one, pyarrow.int64()) for one in _ask_scopes(scopes))
    asks_here = in_scope.take(places)
    return pyarrow.table(
        {
            "place": places.cast("int64"),
            "scope": scope.cast("int64"),
            "ask_scope": pc.if_else(asks_here, own.take(scope), arrivals.take(scope)),
            "service": service.cast(pyarrow.string()),
            "at": keyed.rows["at"].take(places),
            "message_id": keyed.rows["message_id"].take(places).cast(pyarrow.string()),
            "conversation_id": keyed.rows["conversation_id"].take(places).cast(pyarrow.string()),
            "is_initiator": keyed.rows["is_initiator"].take(places),
            "in_scope": asks_here,
            "in_msdb": in_msdb.take(places),
        }
    )


def _own_databases(scopes: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the instance and the database whose routes are searched of each scope."""
    return [(instance, MSDB if database == FROM_NETWORK else database) for instance, database in scopes]


def _ask_scopes(scopes: list[tuple[str, str]]) -> tuple[list[int], list[int]]:
    """Return of each scope the one in which its messages ask, and that in which they ask once they came back."""
    places = _own_databases(scopes)
    # The scope of arrivals comes before that of a database msdb.
    numbers = {place: number for number, place in reversed(list(enumerate(places)))}
    return [numbers[place] for place in places], [numbers[instance, MSDB] for instance, _ in places]


def _first_of_each(rows: pyarrow.Table) -> pyarrow.Table:
    """Return of each scope and service the first row, by time and what comes next in the order of asking."""
    import pyarrow.compute as pc

    if not len(rows):
        return rows
    times = rows.group_by(list(_GROUP)).aggregate([("at", "min")])
    if len(times) == len(rows):
        return rows
    first = rows.join(times, list(_GROUP), join_type="inner")
    least = first.filter(pc.equal(first["at"], first["at_min"])).drop_columns(["at_min"])
    names = [name for name in rows.column_names if name not in _GROUP]
    in_order = least.sort_by([(name, "ascending") for name in _ORDER])
    found = in_order.group_by(list(_GROUP), use_threads=False).aggregate([(name, "first") for name in names])
    found = found.rename_columns([name.removesuffix("_first") for name in found.column_names])
    return found.select(rows.column_names).cast(rows.schema)


def _endless_requests(scopes: list[tuple[str, str]], on_record: Mapping[str, Requests]) -> pyarrow.Table:
    """Return the first request on record without an end, of each scope and service that has any."""
    import pyarrow

    places = _own_databases(scopes)
    numbers = {places[number]: number for number in _ask_scopes(scopes)[0]}
    columns: dict[str, list[Any]] = {name: [] for name in (*_GROUP, "first_at", "first_id")}
    for instance, requests in on_record.items():
        for (database, service), scope in requests.scopes.items():
            endless = [(one.requested_at, one.message_id) for one in scope.on_record if one.ended_at is None]
            if endless and (instance, database) in numbers:
                row = (numbers[instance, database], service, *min(endless))
                for name, value in zip(columns, row, strict=True):
                    columns[name].append(value)
    kinds = (pyarrow.int64(), pyarrow.string(), pyarrow.int64(), pyarrow.string())
    return pyarrow.table(
        [pyarrow.array(values, kind) for values, kind in zip(columns.values(), kinds, strict=True)], list(columns)
    )


def _without_pending(rows: pyarrow.Table, endless: pyarrow.Table) -> pyarrow.Table:
    """Leave out what opens nothing, since a request on record is pending for ever; not what then asks in msdb."""
    import pyarrow.compute as pc

    if not len(rows) or not len(endless):
        return rows
    found = rows.join(endless, list(_GROUP), join_type="left outer")
    same_time = pc.and_(pc.equal(found["first_at"], found["at"]), pc.less(found["first_id"], found["message_id"]))
    is_pending = pc.fill_null(pc.or_(pc.less(found["first_at"], found["at"]), same_time), fill_value=False)
    asks_once = pc.invert(pc.and_(found["in_scope"], found["in_msdb"]))
    return found.filter(pc.invert(pc.and_(is_pending, asks_once))).select(rows.column_names)


def _mask_of(places: pyarrow.Array, rows: int) -> pyarrow.Array:
    """Return which of so many rows stand in some places."""
    import pyarrow
    import pyarrow.compute as pc

    if not len(places):
        return pyarrow.repeat(pyarrow.scalar(False), rows)
    counted = pc.cumulative_sum(pyarrow.repeat(pyarrow.scalar(1, pyarrow.int64()), rows))
    return pc.is_in(pc.subtract(counted, 1), value_set=places)


def _rows_of(rows: pyarrow.Table, scopes: list[tuple[str, str]]) -> Iterator[AskingRow]:
    names = ("place", "scope", "service", "at", *_ORDER, "in_scope", "in_msdb")
    for place, scope, service, at, message_id, conversation_id, is_initiator, *asks in zip(
        *(plain_values(rows[name]) for name in names), strict=True
    ):
        instance, database = scopes[scope]
        own = MSDB if database == FROM_NETWORK else database
        endpoint = ConversationEndpoint(conversation_id, is_initiator)
        yield AskingRow(place, instance, own, service, at, message_id, endpoint, *asks)
