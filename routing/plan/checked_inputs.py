"""Check the inputs of a run, and build the estate from them."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

from routing.errors import InputError
from routing.groups import group_pairs
from routing.process import no_search_for_cycles
from routing.rules import text
from routing.rules.estate import Database, EstateRoute, SqlInstance, list_instances, with_services_and_routes
from routing.rules.network import EstateNetwork
from routing.rules.requesting import ConversationEndpoint, RouteRequest
from routing.rules.resolving import MATTERS
from routing.schemas import KEYS, ROUTE_REQUESTS
from routing.tables.row_faults import RowFault, findings, first_texts, read_suspects
from routing.tables.table_columns import Table, TableColumns, as_dataset, by_engine, shape_of
from routing.terms import BROKER_CONFIGURATION_SERVICE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The estate from columns: instances and recorded requests as the rules see them, and all names.


Settings = Mapping[str, TableColumns]
"""Columns of routes, databases, services, instances and optionally route_requests."""
_ROUTE = ("name", "remote_service_name", "broker_instance", "address", "mirror_address")
_BOUNDS = ("valid_from", "valid_to", "lifetime")
FOR_ALL: frozenset[str | None] = frozenset({None, "", BROKER_CONFIGURATION_SERVICE})
"""The service names whose rows in ``routes`` and ``services`` concern all messages."""
REQUEST_COLUMNS = ROUTE_REQUESTS.names
"""The columns of ``route_requests`` that the rules read."""


def instances_of(tables: Settings) -> dict[str, SqlInstance]:
    """Return instances from columns of instances, databases and optionally services and routes."""
    databases, services, routes = tables["databases"], tables.get("services"), tables.get("routes")
    columns = databases.rows("name", "service_broker_guid", "is_broker_enabled")
    listed = list_instances(
        tables["instances"].rows("instance_name", "is_message_forwarding_enabled", "addresses"),
        zip(databases.values["instance_name"], (Database.of_row(*row) for row in columns), strict=True),
    )
    return with_services_and_routes(
        listed, () if services is None else _services_of(services), () if routes is None else routes_of(routes)
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
    return group_pairs(
        (
            (instance, database, service),
            RouteRequest(requested_at, message_id, ended_at, ConversationEndpoint.of_row(*of)),
        )
        for instance, database, service, requested_at, message_id, ended_at, *of in requests.rows(*REQUEST_COLUMNS)
    )


def routes_of(routes: TableColumns) -> Iterator[tuple[str, str, EstateRoute]]:
    """Yield routes with their instance and database. Equal routes share one object across databases."""
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
    """The names of an estate with their instances: services, and broker instances in their form for comparison.

    For the rules all other names in messages are equivalent and share a class. ``addresses`` are those of all
    instances in their form for comparison.
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
        brokers = {*_pairs(routes, "broker_instance"), *_pairs(settings["databases"], "service_broker_guid")}
        compared = ((instance, text.broker_id(broker)) for instance, broker in brokers)
        return cls(
            frozenset(services),
            frozenset((instance, broker) for instance, broker in compared if broker is not None),
            frozenset(() if requests is None else filter(None, requests.values["service_name"])),
            frozenset().union(*(instance.own_addresses for instance in instances)),
        )

    def services_anywhere(self) -> set[str]:
        """Return all services of the estate, including those of requests, because messages can match these."""
        return {*self.requested, *(service for _, service in self.services)}


def _pairs(rows: TableColumns, column: str) -> set[tuple[str, str]]:
    """Return the instances with the values of their rows in a column, except empty texts."""
    return {pair for pair in rows.rows("instance_name", column) if pair[1]}


@dataclass(frozen=True)
class Quarantine:
    """The instances with faulty rows.

    ``fault_count`` counts the faults, and ``first_faults`` describes the first of them. Messages of these
    instances are not decided.
    """

    instances: frozenset[str] = frozenset()
    fault_count: int = 0
    first_faults: Sequence[str] = ()

    @classmethod
    def of(cls, faults: FaultSurvey) -> Quarantine | None:
        """Return the instances at fault, or None if a fault belongs to no single instance."""
        instances = frozenset(name for name in faults.instances if name is not None)
        if len(instances) < len(faults.instances):
            return None
        return cls(instances, faults.count, first_texts(faults.first))


@dataclass(frozen=True)
class FaultSurvey:
    """The faults of tables: their number, the first ones, and their instances. None means no single instance."""

    count: int = 0
    first: Sequence[RowFault] = ()
    instances: frozenset[str | None] = frozenset()

    @classmethod
    def of(cls, tables: Settings) -> FaultSurvey:
        """Find the faults of tables."""
        faults = list(findings(tables))
        return cls(len(faults), faults, frozenset(fault.instance for fault in faults))

    def __or__(self, other: FaultSurvey) -> FaultSurvey:
        return FaultSurvey(self.count + other.count, [*self.first, *other.first], self.instances | other.instances)

    def judge(self, *, quarantines: bool) -> Quarantine:
        """Return the instances at fault. Raises InputError for any fault, unless these instances are quarantined.

        A fault that belongs to no single instance is always an error.
        """
        quarantine = Quarantine.of(self) if quarantines else None
        if quarantine is None and self.count:
            raise InputError.faulty_rows(first_texts(self.first), self.count)
        return quarantine or Quarantine()


@dataclass(frozen=True, kw_only=True)
class CheckedTables(ABC):
    """The valid tables of a run without its messages, with counts from their validation.

    ``dialogs`` is None if no dialogs are relevant. ``dialog_rows`` is the number of relevant ones, and ``ending``
    the number with a lifetime. ``quarantine`` has the instances that are left out.
    """

    dialogs: Table | None = None
    dialog_rows: int = 0
    ending: int = 0
    quarantine: Quarantine = Quarantine()

    @property
    @abstractmethod
    def has_transport(self) -> bool:
        """True if a route may read its address from the service name."""

    @abstractmethod
    def count_unended_requests(self) -> int:
        """Count recorded requests without ended_at. Duplicates count once."""


@dataclass(frozen=True)
class CheckedInputs(CheckedTables):
    """Valid inputs whose configuration is in this process.

    ``read_frames`` reads it with Spark, or is None if this process must decide.
    """

    settings: Settings
    read_frames: Callable[[], Mapping[str, DataFrame]] | None = field(default=None, kw_only=True)

    @cached_property
    def has_transport(self) -> bool:
        """True if a route may read its address from the service name."""
        return any(text.is_transport(address) for address in set(self.settings["routes"].values["address"]))

    @cached_property
    def instances(self) -> Mapping[str, SqlInstance]:
        """The instances without services and routes."""
        return instances_of({key: self.settings[key] for key in ("instances", "databases")})

    @cached_property
    def for_all_services(self) -> Mapping[str, SqlInstance]:
        """The instances with the routes that concern all messages, including those for route requests."""
        with_routes = set(self.settings["routes"].values["instance_name"])
        listed = {name: replace(one, has_routes=name in with_routes) for name, one in self.instances.items()}
        return _with_rows(listed, *_rows_naming(self.settings, FOR_ALL))

    def instances_for(self, services: Iterable[str]) -> dict[str, SqlInstance]:
        """Return the instances with the services and routes for messages to these services.

        Only rows with one of these services, without a service, or with the service for route requests become
        objects. Rows that concern all messages become objects once for all calls.
        """
        return _with_rows(self.for_all_services, *_rows_naming(self.settings, {*services} - FOR_ALL))

    def network_for(self, services: Collection[str]) -> EstateNetwork:
        """Return all instances, and the requests on record, as far as messages to these services need them."""
        requests = self.settings.get("route_requests")
        near = {} if requests is None else requests_of(requests.naming("service_name", services))
        return EstateNetwork(self.instances_for(services), near)

    @cached_property
    def named(self) -> NamedThings:
        """The names in the configuration."""
        return NamedThings.of(self.settings, self.instances.values())

    def count_unended_requests(self) -> int:
        """Count the distinct requests without ended_at in the columns of route_requests."""
        requests = self.settings.get("route_requests")
        if requests is None:
            return 0
        rows = requests.rows("ended_at", *KEYS["route_requests"])
        return len({tuple(key) for ended_at, *key in rows if ended_at is None})

    def with_settings(self, settings: Settings) -> CheckedInputs:
        """Return a copy with another valid configuration and the same dialogs."""
        return replace(self, settings=settings)


# The number of services and routes in a growing estate before it is emptied, about 100 MB.
_MOST_HELD = 200_000


class GrowingEstate:
    """The instances of an estate. A service's holders and routes are added at its first use.

    Above ``most`` services and routes, the next ones replace all.
    """

    def __init__(self, checked: CheckedInputs, most: int = _MOST_HELD) -> None:
        self._checked, self._most = checked, most
        self._begin()

    def _begin(self) -> None:
        self._services, self._held = set[str](), 0
        self.instances = self._checked.for_all_services

    def add(self, services: Iterable[str]) -> bool:
        """Add services. Return True if others were dropped, so that earlier routes may be gone."""
        wanted = {*services}
        if wanted <= self._services:
            return False
        is_full = self._held > self._most
        if is_full:
            self._begin()
        rows = _rows_naming(self._checked.settings, wanted - self._services - FOR_ALL)
        self.instances = _with_rows(self.instances, *rows)
        self._services |= wanted
        self._held += sum(map(len, rows))
        return is_full


@dataclass(frozen=True)
class DialogSurvey:
    """The counts of relevant dialogs and ending dialogs, and the faults of dialogs."""

    rows: int = 0
    ending: int = 0
    faults: FaultSurvey = FaultSurvey()


def survey_dialogs(dialogs: Table | None) -> DialogSurvey:
    """Count dialogs of Arrow tables, and find their faults. Raises InputError if columns are wrong."""
    if dialogs is None:
        return DialogSurvey()
    import pyarrow.compute as pc

    faults = FaultSurvey.of({"dialogs": read_suspects(dialogs, "dialogs")})
    shape, rows = shape_of(dialogs, "dialogs"), as_dataset(dialogs)
    may_change = filter_for_decisions(shape)
    mattering = 0 if may_change is None else rows.count_rows(filter=may_change)
    ending = rows.count_rows(filter=pc.field(shape["lifetime"]).is_valid()) if "lifetime" in shape else 0
    return DialogSurvey(mattering, ending, faults)


def filter_for_decisions(shape: Mapping[str, str]) -> Any:
    """Return Arrow's condition that a dialog may change a decision, or None without a column for it."""
    import pyarrow.compute as pc

    conditions = [pc.field(shape[name]).is_valid() for name in MATTERS if name in shape]
    return reduce(operator.or_, conditions) if conditions else None


def check_inputs(
    settings: Settings,
    dialogs: Table | None,
    survey: DialogSurvey,
    *,
    quarantines: bool = False,
    are_valid: bool = False,
) -> CheckedInputs:
    """Return the checked inputs. Raises InputError for a faulty row of the configuration or of dialogs.

    With ``are_valid``, the settings are not searched for faults.

    With ``quarantines``, all rows of the faulty instances are left out instead. Then only a fault that belongs to
    no single instance is an error.
    """
    faults = survey.faults if are_valid else FaultSurvey.of(settings) | survey.faults
    quarantine = faults.judge(quarantines=quarantines)
    if quarantine.instances:
        settings = {key: rows.without("instance_name", quarantine.instances) for key, rows in settings.items()}
    return CheckedInputs(
        settings,
        dialogs=select_dialogs(dialogs, survey, quarantine),
        dialog_rows=survey.rows,
        ending=survey.ending,
        quarantine=quarantine,
    )


def select_dialogs(dialogs: Table | None, survey: DialogSurvey, quarantine: Quarantine) -> Table | None:
    """Return the dialogs without those of instances in quarantine, or None if none may change a decision."""
    if dialogs is None or not survey.rows:
        return None
    return _without_instances(dialogs, quarantine.instances) if quarantine.instances else dialogs


def _without_instances(dialogs: Table, instances: Collection[str]) -> Table:
    """Return the dialogs without those of some instances. Of Arrow only those that may change a decision."""

    def of_arrow() -> Table:
        import pyarrow.compute as pc

        shape = shape_of(dialogs, "dialogs")
        is_other = ~pc.field(shape["instance_name"]).isin([*instances])
        return as_dataset(dialogs).to_table(filter=filter_for_decisions(shape) & is_other)

    frame: Any = dialogs
    is_of = {"dialogs": dialogs}
    return by_engine(is_of, spark=lambda: frame.where(~frame["instance_name"].isin(*instances)), arrow=of_arrow)
