"""The inputs without a fault, by which a run decides."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

from routing.process import no_search_for_cycles
from routing.rules import text
from routing.rules.estate import (
    Database,
    EstateRoute,
    SqlInstance,
    list_instances,
    with_services_and_routes,
)
from routing.rules.network import EstateNetwork
from routing.rules.requesting import ConversationEndpoint, RouteRequest
from routing.rules.resolving import MATTERS
from routing.schemas import KEYS, ROUTE_REQUESTS
from routing.tables.row_faults import RowFault, findings, read_suspects, refuse_faults
from routing.tables.table_columns import Table, TableColumns, as_dataset, shape_of
from routing.terms import BROKER_CONFIGURATION_SERVICE

# The estate from columns: instances and requests on record as the rules see them, and what is named.


Settings = Mapping[str, TableColumns]
"""Columns of routes, databases, services, instances and, if there is one, route_requests."""
_ROUTE = ("name", "remote_service_name", "broker_instance", "address", "mirror_address")
_BOUNDS = ("valid_from", "valid_to", "lifetime")
# What routes and services name that concern messages to whatever service.
_FOR_ALL: frozenset[str | None] = frozenset({None, "", BROKER_CONFIGURATION_SERVICE})
REQUEST_COLUMNS = ROUTE_REQUESTS.names
"""What the rules read of ``route_requests``."""


def instances_of(tables: Settings) -> dict[str, SqlInstance]:
    """Return instances from columns of instances, databases and, if given, services and routes."""
    databases, services, routes = tables["databases"], tables.get("services"), tables.get("routes")
    columns = databases.rows("name", "service_broker_guid", "is_broker_enabled")
    listed = list_instances(
        tables["instances"].rows("instance_name", "is_message_forwarding_enabled", "addresses"),
        zip(databases.values["instance_name"], (Database.of_row(*row) for row in columns), strict=True),
    )
    return with_services_and_routes(
        listed,
        () if services is None else _services_of(services),
        () if routes is None else routes_of(routes),
    )


def _rows_naming(settings: Settings, names: Collection[str | None]) -> tuple[TableColumns, TableColumns]:
    """Return the services, and the routes, that have one of these names."""
    return settings["services"].naming("name", names), settings["routes"].naming("remote_service_name", names)


def _with_rows(
    instances: Mapping[str, SqlInstance], services: TableColumns, routes: TableColumns
) -> dict[str, SqlInstance]:
    with no_search_for_cycles():
        return with_services_and_routes(instances, _services_of(services), routes_of(routes))


def network_of(settings: Settings) -> EstateNetwork:
    """Return all instances, and the requests on record."""
    requests = settings.get("route_requests")
    return EstateNetwork(instances_of(settings), {} if requests is None else requests_of(requests))


def requests_of(requests: TableColumns) -> dict[tuple[str, str, str], list[RouteRequest]]:
    """Return requests by instance, database and service."""
    requests_by_service: dict[tuple[str, str, str], list[RouteRequest]] = defaultdict(list)
    for instance, database, service, requested_at, message_id, ended_at, *of in requests.rows(*REQUEST_COLUMNS):
        endpoint = ConversationEndpoint.of_row(*of)
        requests_by_service[instance, database, service].append(
            RouteRequest(requested_at, message_id, ended_at, endpoint)
        )
    return dict(requests_by_service)


def routes_of(routes: TableColumns) -> Iterator[tuple[str, str, EstateRoute]]:
    """Yield routes with their instance and database; equal ones are one object, of any database."""
    routes_by_row: dict[tuple[Any, ...], EstateRoute] = {}
    places = routes.rows("instance_name", "database_name")
    for place, row in zip(places, routes.rows(*_ROUTE, *_BOUNDS), strict=True):
        estate_route = routes_by_row.get(row)
        if estate_route is None:
            estate_route = routes_by_row[row] = EstateRoute.of_row(*row)
        yield *place, estate_route


def _services_of(services: TableColumns) -> Iterator[tuple[str, str, str]]:
    return services.rows("instance_name", "database_name", "name")


@dataclass(frozen=True)
class NamedThings:
    """The names of an estate, each with its instance: services, and broker instances as they are compared.

    Any further name of a message is to the rules like any other: these names share a class.
    ``addresses`` are those of all instances, as they are compared.
    """

    services: frozenset[tuple[str, str]]
    brokers: frozenset[tuple[str, str]]
    requested: frozenset[str]
    addresses: frozenset[str]

    @classmethod
    def of(cls, settings: Settings, instances: Iterable[SqlInstance]) -> NamedThings:
        """Collect the names in routes, databases, services and requests on record."""
        routes, requests = settings["routes"], settings.get("route_requests")
        services = {*_pairs(routes, "remote_service_name"), *_pairs(settings["services"], "name")}
        brokers = {
            *_pairs(routes, "broker_instance"),
            *_pairs(settings["databases"], "service_broker_guid"),
        }
        compared = ((instance, text.broker_id(broker)) for instance, broker in brokers)
        return cls(
            frozenset(services),
            frozenset((instance, broker) for instance, broker in compared if broker is not None),
            frozenset(() if requests is None else filter(None, requests.values["service_name"])),
            frozenset().union(*(instance.own_addresses for instance in instances)),
        )

    def services_anywhere(self) -> set[str]:
        """Return the services that anything in the estate names; requests count, since messages meet them."""
        return {*self.requested, *(service for _, service in self.services)}

    def brokers_anywhere(self) -> set[str]:
        """Return the broker instances that anything in the estate has or names."""
        return {broker for _, broker in self.brokers}


def _pairs(rows: TableColumns, column: str) -> set[tuple[str, str]]:
    """Return the instances, and what their rows have in a column; empty text is nothing."""
    return {pair for pair in rows.rows("instance_name", column) if pair[1]}


@dataclass(frozen=True)
class CheckedInputs:
    """Inputs without a fault, and what was found out meanwhile.

    dialogs: None where there are none that matter; dialog_rows: how many do, ending: how many of them have a
    lifetime.
    """

    settings: Settings
    dialogs: Table | None
    dialog_rows: int = 0
    ending: int = 0

    @cached_property
    def has_transport(self) -> bool:
        """Whether a route may read its address from the service name."""
        return any(text.is_transport(address) for address in set(self.settings["routes"].values["address"]))

    @cached_property
    def instances(self) -> Mapping[str, SqlInstance]:
        """Of each instance what its own rows say; no services, no routes."""
        return instances_of({key: self.settings[key] for key in ("instances", "databases")})

    @cached_property
    def for_all_services(self) -> Mapping[str, SqlInstance]:
        """The instances with the routes that concern all messages: those that name no service, or whom to ask."""
        with_routes = set(self.settings["routes"].values["instance_name"])
        listed = {name: replace(one, has_routes=name in with_routes) for name, one in self.instances.items()}
        return _with_rows(listed, *_rows_naming(self.settings, _FOR_ALL))

    def instances_for(self, services: Iterable[str]) -> dict[str, SqlInstance]:
        """Return the instances with the services and routes that messages to these services need.

        Only rows that name one of them, any, or the service that is asked for routes become objects; those that
        concern messages to whatever service, once for all calls.
        """
        return _with_rows(self.for_all_services, *_rows_naming(self.settings, {*services} - _FOR_ALL))

    def network_for(self, services: Collection[str]) -> EstateNetwork:
        """Return all instances, and the requests on record, as far as messages to these services need them."""
        requests = self.settings.get("route_requests")
        near = {} if requests is None else requests_of(requests.naming("service_name", services))
        return EstateNetwork(self.instances_for(services), near)

    @cached_property
    def named(self) -> NamedThings:
        """What the configuration names."""
        return NamedThings.of(self.settings, self.instances.values())

    def count_unended_requests(self) -> int:
        """Count requests on record without ended_at; a doubled one counts once."""
        requests = self.settings.get("route_requests")
        if requests is None:
            return 0
        rows = requests.rows("ended_at", *KEYS["route_requests"])
        return len({tuple(key) for ended_at, *key in rows if ended_at is None})

    def with_settings(self, settings: Settings) -> CheckedInputs:
        """Replace the configuration by another one without a fault; the dialogs stay."""
        return replace(self, settings=settings)


# An estate that grows holds so many services and routes before it begins anew: some 100 MB.
_MOST_HELD = 200_000


class GrowingEstate:
    """The instances of an estate; a service's holders and routes join them when it is first asked for.

    Where ``most`` services and routes are held, the next ones replace them.
    """

    def __init__(self, checked: CheckedInputs, most: int = _MOST_HELD) -> None:
        self._checked, self._most = checked, most
        self._begin()

    def _begin(self) -> None:
        self._services, self._held = set[str](), 0
        self.instances = self._checked.for_all_services

    def add(self, services: Iterable[str]) -> bool:
        """Add services; return whether others were dropped, so that routes of before may be gone."""
        wanted = {*services}
        if wanted <= self._services:
            return False
        is_full = self._held > self._most
        if is_full:
            self._begin()
        rows = _rows_naming(self._checked.settings, wanted - self._services - _FOR_ALL)
        self.instances = _with_rows(self.instances, *rows)
        self._services |= wanted
        self._held += sum(map(len, rows))
        return is_full


@dataclass(frozen=True)
class DialogSurvey:
    """The counts of dialogs that may change a decision, of those that end, and of faults, with the first ones."""

    rows: int = 0
    ending: int = 0
    faults: int = 0
    first_faults: Sequence[RowFault] = ()


def survey_dialogs(dialogs: Table | None) -> DialogSurvey:
    """Count dialogs of Arrow's, and find their faults. Raises InputError where columns are wrong."""
    if dialogs is None:
        return DialogSurvey()
    import pyarrow.compute as pc

    suspects = read_suspects(dialogs, "dialogs")
    faults = list(findings({"dialogs": suspects}))
    shape, rows = shape_of(dialogs, "dialogs"), as_dataset(dialogs)
    conditions = {name: pc.field(shape[name]).is_valid() for name in MATTERS if name in shape}
    mattering = rows.count_rows(filter=reduce(operator.or_, conditions.values())) if conditions else 0
    ending = rows.count_rows(filter=conditions["lifetime"]) if "lifetime" in conditions else 0
    return DialogSurvey(mattering, ending, len(faults), faults)


def check_inputs(settings: Settings, dialogs: Table | None, survey: DialogSurvey) -> CheckedInputs:
    """Stop where a row of the configuration, or of the dialogs of a survey, is at fault. Raises InputError."""
    refuse_faults(settings, survey.first_faults, survey.faults)
    return CheckedInputs(settings, dialogs if survey.rows else None, survey.rows, survey.ending)


# How messages are resolved, whichever engine does it.
