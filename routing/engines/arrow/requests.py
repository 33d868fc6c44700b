"""The requests that messages open or wait for (rule book, section 5): found by one pass, marked by the next.

Few of those that ask become objects of Python: of messages that ask in one database for a service of which no
request is on record, the first of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.plan.estate import requests_of
from routing.plan.keys import FROM_NETWORK
from routing.plan.requests import requests_on_record
from routing.plan.verdicts import may_ask
from routing.rules.network import Network
from routing.rules.requesting import ConversationEndpoint, Request, Requests, contract_of, missing_route
from routing.storage.arrow import plain_values
from routing.terms import MSDB

if TYPE_CHECKING:
    import pyarrow

    from routing.engines.arrow.decisions import Decided
    from routing.engines.arrow.resolving import KeyedBatch, MessageScan

_GROUP = ("scope", "in_scope", "service")
# The order of messages that ask at one time.
_ORDER = ("message_id", "conversation_id", "is_initiator")


@dataclass(frozen=True)
class FoundRequests:
    """The requests that messages open or wait for: those of each instance, of which all messages have asked.

    ``message_ids`` are those of the messages that open one, ``conversations`` those that may wait for one (D10).
    """

    scopes: list[tuple[str, str]]
    by_instance: Mapping[str, Requests]
    message_ids: pyarrow.Array
    conversations: pyarrow.Array

    def find(self, keyed: KeyedBatch, decided: Decided) -> tuple[pyarrow.Array, pyarrow.Array]:
        """Return which messages step 4 ends in their own scope, and which in msdb, after they came back."""
        import pyarrow
        import pyarrow.compute as pc

        rows = asking_rows(keyed, decided)
        opens = pc.is_in(rows["message_id"], value_set=self.message_ids)
        waits = pc.is_in(rows["conversation_id"], value_set=self.conversations)
        in_scope: list[int] = []
        in_msdb: list[int] = []
        for row in _rows_of(rows.filter(pc.or_(opens, waits)), self.scopes):
            database = row.ask(self.by_instance[row.instance])
            if database is not None:
                (in_scope if row.in_scope and database == row.database else in_msdb).append(row.place)
        everywhere = pyarrow.array(range(len(keyed.rows)), pyarrow.int64())
        return tuple(
            pc.is_in(everywhere, value_set=pyarrow.array(places, pyarrow.int64()))
            if places
            else pyarrow.repeat(pyarrow.scalar(False), len(keyed.rows))
            for places in (in_scope, in_msdb)
        )

    def rows(self, namespace: str, run_id: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of ``new_route_requests``."""
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

    scopes = scan.decisions.scopes
    services = {service for one in on_record.values() for _, service in one.scopes}
    recorded = pyarrow.array(sorted(services), pyarrow.string())
    parts = [
        _that_may_open(asking_rows(batch, scan.decisions.decided()), recorded)
        for batch in keyed
        if len(batch.rows)
    ]
    asking = _that_may_open(pyarrow.concat_tables(parts), recorded) if parts else None
    for row in [] if asking is None else sorted(_rows_of(asking, scopes), key=lambda row: row.order):
        row.ask(on_record[row.instance])
    found = [scope for one in on_record.values() for scope in one.scopes.values()]
    opened = [request for scope in found for request in scope.all_opened()]
    ids = {request.message_id for request in opened}
    waited_for = (*opened, *(request for scope in found for request in scope.on_record))
    conversations = {one.endpoint.conversation_id for one in waited_for if one.endpoint is not None}
    named = (pyarrow.array(sorted(values), pyarrow.string()) for values in (ids, conversations))
    return FoundRequests(scopes, on_record, *named)


def may_any_ask(scan: MessageScan) -> bool:
    """Return True if a message from any scope may meet step 4."""
    instances = scan.checked.instances_for(())
    return any(may_ask(instances[one], database or None) for one, database in scan.decisions.scopes)


def read_on_record(scan: MessageScan) -> Mapping[str, Requests]:
    """Return the requests on record of each instance."""
    requests = scan.checked.settings.get("route_requests")
    found = {} if requests is None else requests_of(requests)
    return requests_on_record(Network(scan.checked.instances, found))


def asking_rows(keyed: KeyedBatch, decided: Decided) -> pyarrow.Table:
    """Return the messages of a batch that meet step 4, with their places in it."""
    import pyarrow
    import pyarrow.compute as pc

    in_scope, in_msdb = (flags.take(keyed.decisions) for flags in (decided.asks, decided.asks_msdb))
    asks = pc.or_(in_scope, in_msdb)
    if keyed.is_expired is not None:
        asks = pc.and_not(asks, keyed.is_expired)
    places = pc.indices_nonzero(asks)
    service = keyed.rows["to_service_name"].take(places)
    return pyarrow.table(
        {
            "place": places.cast("int64"),
            "scope": keyed.scopes.take(places),
            "service": service.cast(pyarrow.string()),
            "at": keyed.rows["at"].take(places),
            "message_id": keyed.rows["message_id"].take(places).cast(pyarrow.string()),
            "conversation_id": keyed.rows["conversation_id"].take(places).cast(pyarrow.string()),
            "is_initiator": keyed.rows["is_initiator"].take(places),
            "in_scope": in_scope.take(places),
            "in_msdb": in_msdb.take(places),
        }
    )


def _that_may_open(rows: pyarrow.Table, recorded: pyarrow.Array) -> pyarrow.Table:
    """Return the rows that may open a request: of those that ask in one database alone the first of each service.

    ``recorded`` are the services of requests on record, of which all may.
    """
    import pyarrow
    import pyarrow.compute as pc

    others = pc.or_(pc.and_(rows["in_scope"], rows["in_msdb"]), pc.is_in(rows["service"], value_set=recorded))
    kept, alike = rows.filter(others), rows.filter(pc.invert(others))
    first_times = alike.group_by(_GROUP).aggregate([("at", "min")])
    least = alike.join(first_times, list(_GROUP)) if len(alike) else alike
    if len(least):
        least = least.filter(pc.equal(least["at"], least["at_min"])).drop_columns(["at_min"])
        firsts = least.sort_by([(name, "ascending") for name in _ORDER]).group_by(_GROUP, use_threads=False)
        names = [name for name in rows.column_names if name not in _GROUP]
        found = firsts.aggregate([(name, "first") for name in names])
        least = found.rename_columns([name.removesuffix("_first") for name in found.column_names])
    return pyarrow.concat_tables([kept, least.select(rows.column_names).cast(rows.schema)])


def _rows_of(rows: pyarrow.Table, scopes: list[tuple[str, str]]) -> Iterator[AskingRow]:
    names = ("place", "scope", "service", "at", *_ORDER, "in_scope", "in_msdb")
    for place, scope, service, at, message_id, conversation_id, is_initiator, *asks in zip(
        *(plain_values(rows[name]) for name in names), strict=True
    ):
        instance, database = scopes[scope]
        own = MSDB if database == FROM_NETWORK else database
        endpoint = ConversationEndpoint(conversation_id, is_initiator)
        yield AskingRow(place, instance, own, service, at, message_id, endpoint, *asks)
