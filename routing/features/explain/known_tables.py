"""The tables around a question: the estate, its dialogs, the requests on record, and the other messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from routing.plan.checked_inputs import network_of
from routing.plan.paths import trace_request
from routing.plan.planner import Planner
from routing.plan.verdicts import KnownDialogs, order_of_asking
from routing.rules.estate import ARRIVALS, SqlInstance
from routing.rules.following import HopPath, MessageTrace, PathHop
from routing.rules.network import EstateNetwork
from routing.rules.rejecting import rejections
from routing.rules.resolving import MESSAGE_COLUMNS, DialogFacts, RoutedMessage
from routing.rules.timeline import moment_of
from routing.schemas import EXPLAINED_STEPS
from routing.tables.table_columns import TableColumns
from routing.terms import BROKER_CONFIGURATION_SERVICE, Ending, ReadRow, Reason, TableRow

# The lines of a path: one flat row each, so that two explanations can be compared line by line.


Line = TableRow
# How many routes, databases or ids one list shows; the rest are counted.
SHOWN = 20
_TIMES = ("valid_from", "valid_to", "at")


def line(item: str, finding: str, **values: Any) -> Line:
    """Return one line; fields of `EXPLAINED_STEPS` that are not given are null, times are microseconds."""
    return {"item": item, "finding": finding, **values}


def number_lines(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Add missing columns to lines, as rows of `EXPLAINED_STEPS`, and number them from 1."""
    return tuple({**_complete(each), "position": number} for number, each in enumerate(lines, start=1))


def _complete(partial_line: Line) -> Line:
    row = {name: partial_line.get(name) for name in EXPLAINED_STEPS.names}
    return {
        **row,
        **{name: moment_of(partial_line[name]) for name in _TIMES if partial_line.get(name) is not None},
    }


# Where the message goes that asks for a route: from the database that asks to every end that it may have.


@dataclass(frozen=True)
class OtherInstances:
    """The estate around the instance of a message.

    ``read`` returns the other instances, as far as requests that arrive there have to do with them. ``is_known``:
    whether what decides a hop was read whole.
    """

    read: Callable[[], Mapping[str, SqlInstance]] = dict
    is_known: Callable[[PathHop], bool] = lambda hop: True


_LOST = (str(Ending.DELAYED), str(Ending.DROPPED), str(Ending.LOOP))
NO_OTHER_INSTANCES = OtherInstances()


def request_lines(here: SqlInstance, database: str, t: int, others: OtherInstances) -> list[Line]:
    """Return the path of the request that a database makes at a time: each way hop by hop, at most `SHOWN` ways.

    Other instances are read only where the request leaves its own.
    """
    instances: Mapping[str, SqlInstance] = {here.name: here}
    traces = _follow(instances, here, database, t)
    if any(hop_path.ending is Ending.LEFT_ESTATE for trace in traces for hop_path in trace.ways):
        instances = {**others.read(), here.name: here}
        traces = _follow(instances, here, database, t)
    hop_paths = list(dict.fromkeys(hop_path for trace in traces for hop_path in trace.ways))
    ends = [_end_line(hop_path, instances, others) for hop_path in hop_paths]
    is_cut = any(trace.is_cut for trace in traces)
    is_lost = not is_cut and all(end["finding"] in _LOST for end in ends)
    asked = {"service_name": BROKER_CONFIGURATION_SERVICE, "count": len(hop_paths)}
    lines = [line("REQUEST_PATH", "LOST" if is_lost else "FOLLOWED", **_place(here.name, database), **asked)]
    for hop_path, end in list(zip(hop_paths, ends, strict=True))[:SHOWN]:
        lines += [*map(_hop_line, takewhile(others.is_known, hop_path.hops)), end]
    if len(hop_paths) > SHOWN or is_cut:
        lines.append(line("REQUEST_END", str(Ending.TOO_MANY_WAYS), count=len(hop_paths)))
    return lines


def _follow(instances: Mapping[str, SqlInstance], here: SqlInstance, database: str, t: int) -> list[MessageTrace]:
    return list(trace_request(EstateNetwork(instances), Planner().at, here, database, t))


def _hop_line(hop: PathHop) -> Line:
    return line(
        "REQUEST_HOP",
        str(hop.outcome),
        **_place(hop.instance_name, hop.scope),
        step=None if hop.matching_step is None else int(hop.matching_step),
        name=hop.route_name,
        address=hop.address,
        broker_instance=hop.broker_instance,
        outcome=str(hop.outcome),
        reason=str(hop.reason),
    )


def _end_line(hop_path: HopPath, instances: Mapping[str, SqlInstance], others: OtherInstances) -> Line:
    for hop in hop_path.hops:
        if not others.is_known(hop):
            return line("REQUEST_END", str(Ending.NOT_KNOWN), **_place(hop.instance_name, hop.scope))
    is_off = hop_path.reason is Reason.FORWARDING_DISABLED and hop_path.instance is not None
    is_doubtful = is_off and not instances[hop_path.instance or ""].is_forwarding_known
    finding = "FORWARDING_NOT_KNOWN" if is_doubtful else str(hop_path.ending)
    return line("REQUEST_END", finding, **_place(hop_path.instance, hop_path.database), address=hop_path.address)


def _place(instance: str | None, database: str | None) -> dict[str, str | None]:
    return {"instance_name": instance, "database_name": database}


Chunks = Callable[[str, str], Iterable[Mapping[str, TableColumns]]]
"""From an instance and a service to its messages (``messages``) and their dialogs (``dialogs``, if there are any).

In chunks in the order in which they ask (`order_of_asking`); inside a chunk in any order.
"""


def message_of(row: ReadRow, as_of: int | None) -> RoutedMessage:
    """Read a row without a fault as the rules do (section 0); ``as_of`` is the time of all messages, if any."""
    return RoutedMessage.of_row(*(row[name] for name in MESSAGE_COLUMNS), as_of=as_of)


def narrow_to(tables: Mapping[str, TableColumns], row: ReadRow) -> dict[str, TableColumns]:
    """Drop the routes and services of an instance that cannot bear on a message.

    Routes are listed where the message may search, and decide other messages for its service wherever they name
    it, any service, or the one that is asked for routes.
    """
    service, searched = row["to_service_name"], (row["database_name"] or ARRIVALS, ARRIVALS)
    named = (service, None, "", BROKER_CONFIGURATION_SERVICE)
    routes, services = tables["routes"], tables["services"]
    route_names = enumerate(routes.rows("database_name", "remote_service_name"))
    near = [place for place, (database, name) in route_names if database in searched or name in named]
    wanted = (service, BROKER_CONFIGURATION_SERVICE)
    wanted_services = [place for place, name in enumerate(services.values["name"]) if name in wanted]
    return {**tables, "routes": routes.take(near), "services": services.take(wanted_services)}


@dataclass(frozen=True)
class KnownTables:
    """The tables that judge a message; ``others`` is asked only where a request may be pending (section 5).

    ``other_instances`` are asked only where a request for a route leaves the instance.
    """

    network: EstateNetwork
    dialogs: KnownDialogs
    chunks: Chunks
    other_instances: OtherInstances = NO_OTHER_INSTANCES

    @classmethod
    def of_columns(
        cls,
        tables: Mapping[str, TableColumns],
        chunks: Chunks,
        other_instances: OtherInstances = NO_OTHER_INSTANCES,
    ) -> KnownTables:
        """Build the known tables from rows without a fault: the configuration, dialogs and route_requests."""
        return cls(network_of(tables), _dialogs_of(tables), chunks, other_instances)

    def others(self, message: RoutedMessage, as_of: int | None) -> Iterator[tuple[RoutedMessage, DialogFacts]]:
        """Yield all messages of its instance for its service that can be judged, as they ask, with dialogs."""
        for chunk in self.chunks(message.instance, message.service):
            dialogs, rows = _dialogs_of(chunk), chunk["messages"].dicts()
            sound = (row for row in rows if not rejections(row, self.network.instances.get(row["instance_name"])))
            read = sorted((message_of(row, as_of) for row in sound), key=order_of_asking)
            yield from ((each, dialogs.of(each)) for each in read)


def _dialogs_of(tables: Mapping[str, TableColumns]) -> KnownDialogs:
    return KnownDialogs.of_columns([tables["dialogs"]] if "dialogs" in tables else [])
