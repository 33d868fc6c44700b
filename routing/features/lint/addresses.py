"""Findings on one route row beside what is known of the place that it leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from routing.features.lint import refused
from routing.features.lint.lint_estate import LintEstate
from routing.features.lint.lint_finding import LintFinding, list_names, utc
from routing.features.lint.refused import OPTIONS, RouteRow, catches_all
from routing.rules import text
from routing.rules.choosing import is_local
from routing.rules.estate import EstateRoute, SqlInstance
from routing.tables.table_columns import TableColumns
from routing.terms import LOOPBACK_HOSTS, MSDB

_DAY = 86_400 * 1_000_000


@dataclass(frozen=True)
class RouteSurroundings:
    """The estate around a route row.

    nearly: services by a form in which nearly equal names are equal. ports: those of endpoints, by host.
    """

    estate: LintEstate
    nearly: dict[str, set[str]]
    ports: dict[str, set[str]]

    def instance(self, row: RouteRow) -> SqlInstance | None:
        """Return the instance of a row, None for one that the tables do not list."""
        name = row.place[0]
        return self.estate.instances[name] if name in self.estate.listed else None


Check = Callable[[RouteRow, RouteSurroundings], "LintFinding | None"]


def route_rows(estate: LintEstate, routes: TableColumns) -> Iterator[LintFinding]:
    """Find SBR001 to SBR009, SBR011, SBR015, SBR016, SBR029 to SBR032, SBR036 and SBR037 in rows of routes."""
    around = _surroundings(estate)
    for row in _rows(routes, estate.now):
        findings = [check(row) for check in refused.CHECKS]
        findings += [check(row, around) for check in CHECKS]
        if row.is_current:
            findings += [check(row, around) for check in OF_CURRENT]
        yield from (one for one in findings if one is not None)


def _surroundings(estate: LintEstate) -> RouteSurroundings:
    nearly: dict[str, set[str]] = {}
    for name in set(estate.tables["services"].values["name"]) - {None}:
        nearly.setdefault(text.comparable_address(name), set()).add(name)
    ports: dict[str, set[str]] = {}
    for address in estate.places:
        # An address without a port says nothing of the endpoint's.
        host, port = text.host(address), text.port(address)
        if host is not None and port is not None:
            ports.setdefault(host, set()).add(port)
    return RouteSurroundings(estate, nearly, ports)


def _rows(columns: TableColumns, now: int) -> Iterator[RouteRow]:
    names = ("instance_name", "database_name", "name", "valid_from", "valid_to", "lifetime")
    names_and_options = zip(columns.rows(*names), columns.rows(*OPTIONS), strict=True)
    for (instance, database, name, valid_from, valid_to, lifetime), options in names_and_options:
        service, broker, address, mirror = options
        route = EstateRoute.of_row(name, service, broker, address, mirror, valid_from, valid_to, lifetime)
        is_current = route.live_to is None or now < route.live_to
        yield RouteRow((instance, database), route, options, valid_to, lifetime, is_current, now)


def near_miss(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR016: no database holds the service, but one whose name differs in case, blanks or a slash after."""
    service = row.route.service
    nearly = None if service is None else around.nearly.get(text.comparable_address(service))
    if nearly is None or service in nearly:
        return None
    return row.finding("SBR016", "no database holds '%s', but there is '%s'", service, list_names(nearly))


def expired_route(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR029: the lifetime of the current version is over; an older version is history."""
    is_last = row.valid_to is None or row.now < row.valid_to
    if row.lifetime is None or not is_last or row.now < row.lifetime:
        return None
    return row.finding("SBR029", "it expired at %s", utc(row.lifetime))


def expires_soon(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR030: the lifetime ends within the days asked for, and not because a version ends before."""
    if row.lifetime is None or (row.valid_to is not None and row.valid_to <= row.lifetime):
        return None
    if row.lifetime > row.now + around.estate.days * _DAY:
        return None
    return row.finding("SBR030", "it expires at %s", utc(row.lifetime))


def pinned_to_nobody(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR015: the place is known, forwards nothing, and none of its databases has the id.

    A place that is not in the tables may host any id, and a forwarder may know the way: both are left alone. A
    place whose forwarding is not known is taken not to forward, and the finding says so.
    """
    route, here = row.route, around.instance(row)
    if route.service is None or route.broker is None or route.mirror_address is not None:
        return None
    if is_local(route):
        places: tuple[SqlInstance, ...] = () if here is None else (here,)
    else:
        places = around.estate.owners(row.place[0], route.compared)
        if any(place.is_forwarding for place in places):
            return None
    if not places or any(route.broker in place.brokers for place in places):
        return None
    where = list_names(place.name for place in places)
    sentence = "no database of %s has broker id %s"
    unknown = [] if is_local(route) else [place.name for place in places if not place.is_forwarding_known]
    if unknown:
        sentence += "; whether %s forwards is not known and taken as off"
        return row.finding("SBR015", sentence, where, route.broker, list_names(unknown))
    return row.finding("SBR015", sentence, where, route.broker)


def no_port(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR031: a tcp address, or a mirror's, names no port."""
    for address in (row.route.address, row.route.mirror_address):
        if text.is_tcp(address) and text.port(address) is None:
            return row.finding("SBR031", "address '%s' names no port", address)
    return None


def other_port(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR032: the host is known, and its endpoint listens at another port."""
    host, port = text.host(row.route.address), text.port(row.route.address)
    if host is None or port is None:
        return None
    if host in LOOPBACK_HOSTS:
        here = around.instance(row)
        # A loopback name leads to any instance of the machine, by the port.
        addresses_here = (
            () if here is None else {*here.own_addresses, *around.estate.network.addresses_beside(here)}
        )
        ports = {own_port for own_port in map(text.port, addresses_here) if own_port is not None}
    else:
        ports = around.ports.get(host, set())
    if not ports or port in ports:
        return None
    return row.finding(
        "SBR032", "address '%s', but the endpoint's port is %s", row.route.address, list_names(ports)
    )


def local_catch_all(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR036: a route of msdb accepts arrivals for any service of the instance."""
    if row.place[1] != MSDB or not catches_all(row.route):
        return None
    return row.finding("SBR036", "whatever arrives for a service of this instance is accepted")


def own_address(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR037: the message comes back as if from the network, and in msdb is a loop."""
    here = around.instance(row)
    if here is None or row.route.compared not in here.own_addresses:
        return None
    in_msdb = row.place[1] == MSDB
    what = "what arrives is dropped as a loop" if in_msdb else "msdb's routes decide, as for arrivals"
    return row.finding("SBR037", "address '%s' is this instance's own: %s", row.route.address, what)


CHECKS: tuple[Check, ...] = (expired_route,)
# Of a version that is in force or will be.
OF_CURRENT: tuple[Check, ...] = (
    *(near_miss, expires_soon, pinned_to_nobody, no_port, other_port, local_catch_all, own_address),
)
