"""The tables around a question: the estate, its dialogs, the requests on record, and the other messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from routing.features.explain.request_path import NO_OTHER_INSTANCES, OtherInstances
from routing.plan.dialogs import KnownDialogs
from routing.plan.estate import network_of
from routing.plan.requests import order_of_asking
from routing.rules.estate import ARRIVALS
from routing.rules.network import EstateNetwork
from routing.rules.rejecting import rejections
from routing.rules.resolving import MESSAGE_COLUMNS, DialogFacts, RoutedMessage
from routing.tables.table_columns import TableColumns
from routing.terms import BROKER_CONFIGURATION_SERVICE

Row = Mapping[str, Any]
"""A row of messages; times are microseconds since 1970."""
Chunks = Callable[[str, str], Iterable[Mapping[str, TableColumns]]]
"""From an instance and a service to its messages (``messages``) and their dialogs (``dialogs``, if there are any).

In chunks in the order in which they ask (`order_of_asking`); inside a chunk in any order.
"""


def message_of(row: Row, as_of: int | None) -> RoutedMessage:
    """Read a row without a fault as the rules do (section 0); ``as_of`` is the time of all messages, if any."""
    return RoutedMessage.of_row(*(row[name] for name in MESSAGE_COLUMNS), as_of=as_of)


def narrow_to(tables: Mapping[str, TableColumns], row: Row) -> dict[str, TableColumns]:
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
