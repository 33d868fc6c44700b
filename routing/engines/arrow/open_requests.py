"""Find the requests that messages open or wait for (rule book, section 5).

Only a few of the messages that ask for a service in a database can open a request. These are the first one without
a pending request on record, and messages whose own request is on record. The first pass reduces the messages to
these rows. Rows of services with requests on record become Python objects. If messages may come back to ask in
msdb, another pass finds these. The next pass marks the messages that step 4 stops.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.engines.arrow.asking_messages import (
    ORDER,
    PARTS,
    AskingRow,
    AskingRows,
    RequestsOnRecord,
    Scopes,
    kinds_of_rows,
    number_places,
    objects_of,
    own_databases,
)
from routing.engines.arrow.text_numbers import number_groups
from routing.plan.checked_inputs import requests_of
from routing.plan.verdicts import may_ask, requests_on_record
from routing.rules.network import EstateNetwork
from routing.rules.requesting import InstanceRequests, RequestScope, RouteRequest, contract_of, missing_route
from routing.schemas import NEW_ROUTE_REQUESTS
from routing.tables.arrow_rows import arrow_schema, plain_values
from routing.tables.encoded_texts import WAITING, PartReducer
from routing.terms import MSDB, SortKey

if TYPE_CHECKING:
    import pyarrow

    from routing.engines.arrow.decisions import DecisionColumns
    from routing.engines.arrow.resolved_batches import KeyedBatch, MessageScan

# The columns that identify a request, and a request on record.
_GROUP = ("ask_scope", "service")
_POSITION = ("at", "message_id")
# Limits of the rows of requests that are built at a time, and of the bytes of their names.
_REQUESTS_AT_ONCE, _BYTES_AT_ONCE = 200_000, 128 << 20
# Characters that XML 1.0 does not allow.
_NOT_XML = r"[^\x{9}\x{A}\x{D}\x{20}-\x{D7FF}\x{E000}-\x{FFFD}\x{10000}-\x{10FFFF}]"


@dataclass(frozen=True)
class FoundRequests:
    """The requests that messages open or wait for, after all messages have asked.

    ``first`` has the rows of `AskingRows.spell` that open a request as the first of their scope and service, by
    the parts of `AskingRows.split`. The messages of the services ``by_order`` ask one after another, and
    ``by_instance`` has their requests. ``message_ids`` belong to messages that open one of these, and
    ``conversations`` to messages that may wait (D10).
    """

    scopes: Scopes
    first: Mapping[int, pyarrow.Table]
    by_order: pyarrow.Array
    by_instance: Mapping[str, InstanceRequests]
    message_ids: pyarrow.Array
    conversations: pyarrow.Array

    @property
    def is_any_opened(self) -> bool:
        """Whether any message opens a request."""
        is_first = any(map(len, self.first.values()))
        return is_first or any(True for scopes in self.by_instance.values() for _ in scopes.all_opened())

    def find(self, keyed: KeyedBatch, decided: DecisionColumns) -> tuple[pyarrow.Array, pyarrow.Array]:
        """Return masks of the messages that step 4 stops in their own scope, and in msdb after they came back."""
        import pyarrow
        import pyarrow.compute as pc

        asking = AskingRows.of(keyed, decided, self.scopes)
        is_by_order = asking.is_for(self.by_order)
        in_order = asking.filter(is_by_order)
        asking = asking.filter(pc.invert(is_by_order)) if len(in_order) else asking
        ended = [self._ended_by_first(part, rows) for part, rows in asking.split()]
        opens = pc.is_in(in_order.rows["message_id"], value_set=self.message_ids)
        waits = pc.is_in(in_order.rows["conversation_id"], value_set=self.conversations)
        in_scope, in_msdb = list[int](), list[int]()
        for row in in_order.filter(pc.or_(opens, waits)).objects(self.scopes):
            database = row.ask(self.by_instance[row.instance])
            if database is not None:
                (in_scope if row.in_scope and database == row.database else in_msdb).append(row.place)
        masks = []
        for name, places in (("in_scope", in_scope), ("in_msdb", in_msdb)):
            ended_places = [chunk for rows in ended for chunk in rows.filter(rows[name])["place"].chunks]
            all_places = pyarrow.concat_arrays([*ended_places, pyarrow.array(places, pyarrow.int64())])
            masks.append(_mask_of(all_places, len(keyed.rows)))
        return masks[0], masks[1]

    def _ended_by_first(self, part: int, asking: AskingRows) -> pyarrow.Table:
        """Return the rows that open the first request of their scope and service, or share its endpoint."""
        import pyarrow.compute as pc

        marks = ["place", "in_scope", "in_msdb"]
        rows = self.first[part]
        words = pc.index_in(rows["service"], value_set=asking.services).cast("int64")
        first = rows.select(["ask_scope", "at", *ORDER]).append_column("word", words).filter(words.is_valid())
        if not len(first):
            return asking.rows.select(marks)
        joined = asking.rows.join(first, ["ask_scope", "word"], join_type="left outer", right_suffix="_of_first")
        same = {name: pc.equal(joined[name], joined[f"{name}_of_first"]) for name in ("at", *ORDER)}
        opens = pc.and_(same["at"], same["message_id"])
        waits = pc.and_(same["conversation_id"], same["is_initiator"])
        # A message without competitors opens its own request.
        ends = pc.or_kleene(joined["at_of_first"].is_null(), pc.or_(opens, waits))
        return joined.select(marks).filter(ends)

    def drop_lone(self) -> FoundRequests:
        """Drop the written requests of services that only one message asks for.

        This keeps memory small with ten million distinct services. `find` treats a message without a request as
        the only one that asks.
        """
        import pyarrow.compute as pc

        names = ["ask_scope", "service", "at", *ORDER]
        repeated = {
            part: rows.select(names).filter(pc.invert(rows["is_alone"])) for part, rows in self.first.items()
        }
        return replace(self, first=repeated)

    def tables(self, namespace: str, run_id: str, most_bytes: int = _BYTES_AT_ONCE) -> Iterator[pyarrow.Table]:
        """Yield the rows of ``new_route_requests`` in parts, with at most ``most_bytes`` bytes of names each."""
        import pyarrow

        shape = arrow_schema(NEW_ROUTE_REQUESTS.optional())
        instances, databases = (pyarrow.array(names) for names in zip(*own_databases(self.scopes), strict=True))
        constant = {
            "message_type_name": namespace,
            "service_contract_name": contract_of(namespace),
            "run_id": run_id,
        }
        for opened in (*self.first.values(), self._requests_in_order()):
            for part in in_parts(opened, _REQUESTS_AT_ONCE, most_bytes):
                services = part["service"].cast(pyarrow.string())
                columns = {
                    "instance_name": instances.take(part["ask_scope"]),
                    "database_name": databases.take(part["ask_scope"]),
                    "service_name": services,
                    "requested_at": part["at"].cast(shape.field("requested_at").type),
                    **{name: part[name] for name in ORDER},
                    "body": missing_routes(services, namespace),
                }
                columns |= {
                    name: pyarrow.repeat(pyarrow.scalar(constant_value), len(part))
                    for name, constant_value in constant.items()
                }
                yield pyarrow.table([columns[name] for name in shape.names], shape.names).cast(shape)

    def _requests_in_order(self) -> pyarrow.Table:
        """Return the requests of messages that asked one after another, in the columns of ``first``."""
        import pyarrow

        numbers, kinds = number_places(self.scopes), kinds_of_rows()
        columns: dict[str, list[Any]] = {name: [] for name in (*_GROUP, "at", *ORDER)}
        for instance, requests in sorted(self.by_instance.items()):
            for database, service, request in sorted(requests.all_opened(), key=_place_of):
                endpoint = request.endpoint or (None, None)
                row = (numbers[instance, database], service, request.requested_at, request.message_id, *endpoint)
                for name, value in zip(columns, row, strict=True):
                    columns[name].append(value)
        return pyarrow.table({name: pyarrow.array(values, kinds[name]) for name, values in columns.items()})


def in_parts(rows: pyarrow.Table, most: int, most_bytes: int) -> Iterator[pyarrow.Table]:
    """Split rows into parts of limited rows and bytes of names. A part has at least one row."""
    import pyarrow.compute as pc

    size = pc.sum(pc.binary_length(rows["service"])).as_py() or 0
    if len(rows) > 1 and (len(rows) > most or size > most_bytes):
        middle = len(rows) // 2
        yield from in_parts(rows[:middle], most, most_bytes)
        yield from in_parts(rows[middle:], most, most_bytes)
    elif len(rows):
        yield rows


def missing_routes(services: Any, namespace: str) -> Any:
    """Return the MissingRoute message for each service, equal to `rules.requesting.missing_route`."""
    import pyarrow.compute as pc

    names = pc.replace_substring_regex(services, _NOT_XML, "\ufffd")
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        names = pc.replace_substring(names, character, entity)
    before, after = missing_route("\0", namespace).split("\ufffd")
    return pc.binary_join_element_wise(before, names, after, "")


def _place_of(opened: tuple[str, str, RouteRequest]) -> SortKey:
    database, service, request = opened
    return database, service, request.requested_at, request.message_id


def find_requests(
    scan: MessageScan, keyed: Callable[[], Iterable[KeyedBatch]], on_record: Mapping[str, InstanceRequests]
) -> FoundRequests:
    """Find the requests that messages open. ``on_record`` has the earlier requests of each instance.

    Each call of ``keyed`` reads all messages.
    """
    import pyarrow
    import pyarrow.compute as pc

    scopes = scan.decisions.scopes

    def read() -> Iterator[AskingRows]:
        return (AskingRows.of(batch, scan.decisions.decided(), scopes) for batch in keyed())

    record = RequestsOnRecord.of(scopes, on_record)
    firsts, owns = FirstRows(_GROUP), FirstRows((*_GROUP, *_POSITION))
    returning = pyarrow.array([], pyarrow.large_string())
    for asking in read():
        openers = record.find_openers(asking)
        firsts.add(openers.new_requests)
        owns.add(openers.own_requests)
        words = pc.unique(asking.filter(asking.rows["returns"]).rows["word"])
        returning = pc.unique(pyarrow.concat_arrays([returning, asking.services.take(words)]))
    # Messages that ask for a returning service may do so in msdb. There all ask one after another.
    by_order = pc.unique(pyarrow.concat_arrays([record.services, returning]))
    first, ordered = dict[int, pyarrow.Table](), [*owns.all().values()]
    for part, found_first in firsts.all().items():
        is_by_order = pc.is_in(found_first["service"], value_set=by_order)
        ordered.append(found_first.filter(is_by_order))
        first[part] = found_first.filter(pc.invert(is_by_order)) if len(ordered[-1]) else found_first
    rows = pyarrow.concat_tables(ordered) if ordered else _no_rows()
    asking_messages = [
        Asker(row.databases[0], row) for row in objects_of(rows, plain_values(rows["service"]), scopes)
    ]
    _ask_in_order(
        (asking_message for asking_message in asking_messages if asking_message.database != MSDB), on_record
    )
    arrived = find_returned(read(), scopes, on_record) if len(returning) else ()
    _ask_in_order(
        [*arrived, *(asking_message for asking_message in asking_messages if asking_message.database == MSDB)],
        on_record,
    )
    scope_requests = [scope for requests in on_record.values() for scope in requests.scopes.values()]
    opened = [request for scope in scope_requests for request in scope.all_opened()]
    ids = {request.message_id for request in opened}
    waited_for = (*opened, *(request for scope in scope_requests for request in scope.on_record))
    conversations = {waiting.endpoint.conversation_id for waiting in waited_for if waiting.endpoint is not None}
    named = (pyarrow.array(sorted(values), pyarrow.large_string()) for values in (ids, conversations))
    return FoundRequests(scopes, first, by_order, on_record, *named)


@dataclass
class FirstRows:
    """The first of all rows of `AskingRows.spell` that are equal in some columns, in parts by service.

    Parts are reduced separately. With ten million services this takes a sixteenth of the memory.
    """

    names: Sequence[str]
    _parts: dict[int, PartReducer] = field(default_factory=dict)

    def add(self, asking: AskingRows) -> None:
        """Add the messages of a batch."""
        numbered = ["word" if name == "service" else name for name in self.names]
        for part, part_rows in asking.split():
            first = AskingRows(first_of_each(part_rows.rows, numbered), part_rows.services).spell()
            if part not in self._parts:
                self._parts[part] = PartReducer(partial(first_of_each, names=self.names), WAITING // PARTS)
            self._parts[part].add(first)

    def all(self) -> dict[int, pyarrow.Table]:
        """Return the first rows by the number of their part."""
        rows_by_part = ((part, reducer.all()) for part, reducer in sorted(self._parts.items()))
        return {part: rows for part, rows in rows_by_part if rows is not None}


class Asker(NamedTuple):
    """A message that asks in a database."""

    database: str
    row: AskingRow

    def scope(self, on_record: Mapping[str, InstanceRequests]) -> RequestScope:
        """Return the requests for its service in its database."""
        return on_record[self.row.instance].of(self.database, self.row.service)


def _ask_in_order(asking_messages: Iterable[Asker], on_record: Mapping[str, InstanceRequests]) -> None:
    for asking_message in sorted(asking_messages, key=lambda asking_message: asking_message.row.order):
        asking_message.scope(on_record).ask(*asking_message.row.order)


def find_returned(
    asking: Iterable[AskingRows], scopes: Scopes, on_record: Mapping[str, InstanceRequests]
) -> Collection[Asker]:
    """Return the messages that come back and may open a request in msdb.

    The requests of other databases must already be open.
    """
    first_askers: dict[tuple[Any, ...], Asker] = {}
    for asking_rows in asking:
        for row in asking_rows.filter(asking_rows.rows["returns"]).objects(scopes):
            if Asker(row.database, row).scope(on_record).ask(*row.order).stops:
                continue
            asking_message, position = Asker(MSDB, row), (row.at, row.message_id)
            scope = asking_message.scope(on_record)
            if scope.is_pending_on_record(*position):
                continue
            place = (row.instance, row.service, *(position if scope.is_on_record(*position) else ()))
            if place not in first_askers or row.order < first_askers[place].row.order:
                first_askers[place] = asking_message
    return first_askers.values()


def first_of_each(rows: pyarrow.Table, names: Sequence[str]) -> pyarrow.Table:
    """Return the first row in the asking order for each combination of values in some columns."""
    import pyarrow
    import pyarrow.compute as pc

    # Only numbers are grouped and joined, because texts are long.
    columns = {"group": number_groups(rows, names), "row": _count(len(rows))}
    numbered = pyarrow.table({**columns, **{name: rows[name] for name in ("at", "is_alone")}})
    groups = numbered.group_by("group").aggregate([("at", "min"), ("at", "count"), ("is_alone", "all")])
    if len(groups) == len(rows):
        return rows
    least = numbered.join(groups, ["group", "at"], ["group", "at_min"], join_type="inner")
    if len(least) > len(groups):
        least = _first_in_order(rows, least)
    alone = pc.and_(pc.equal(least["at_count"], 1), least["is_alone_all"])
    place = rows.column_names.index("is_alone")
    return rows.take(least["row"]).set_column(place, "is_alone", alone)


def _first_in_order(rows: pyarrow.Table, least: pyarrow.Table) -> pyarrow.Table:
    """Return the first of each group's rows with the same time, by the rest of the order."""
    doubled = rows.select(ORDER).take(least["row"])
    carried = ("row", "at_count", "is_alone_all")
    for name in ("group", *carried):
        doubled = doubled.append_column(name, least[name])
    in_order = doubled.sort_by([(name, "ascending") for name in ORDER]).group_by("group", use_threads=False)
    firsts = in_order.aggregate([(name, "first") for name in carried])
    return firsts.select([f"{name}_first" for name in carried]).rename_columns(list(carried))


def _no_rows() -> pyarrow.Table:
    import pyarrow

    kinds = {name: kind for name, kind in kinds_of_rows().items() if name != "word"}
    return pyarrow.schema(kinds.items()).empty_table()


def _count(rows: int) -> pyarrow.Array:
    """Return the numbers of rows from 0."""
    import pyarrow
    import pyarrow.compute as pc

    return pc.subtract(pc.cumulative_sum(pyarrow.repeat(pyarrow.scalar(1, pyarrow.int64()), rows)), 1)


def may_any_ask(scan: MessageScan) -> bool:
    """Return whether a message from any scope may reach step 4."""
    instances = scan.checked.instances_for(())
    return any(may_ask(instances[instance], database or None) for instance, database in scan.decisions.scopes)


def read_on_record(scan: MessageScan) -> Mapping[str, InstanceRequests]:
    """Read the requests on record by instance."""
    requests = scan.checked.settings.get("route_requests")
    by_service = {} if requests is None else requests_of(requests)
    return requests_on_record(EstateNetwork(scan.checked.instances, by_service))


def _mask_of(places: pyarrow.Array, rows: int) -> pyarrow.Array:
    """Return a mask that is true at some places."""
    import pyarrow
    import pyarrow.compute as pc

    if not len(places):
        return pyarrow.repeat(pyarrow.scalar(False), rows)
    return pc.is_in(_count(rows), value_set=places)
