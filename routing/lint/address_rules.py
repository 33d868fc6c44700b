"""Check single rows of routes against the known facts of their target."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from routing.importing.tsql.script_statements import LONGEST_LIFETIME, LONGEST_TEXTS, length
from routing.importing.tsql.vocabulary import is_stand_in
from routing.lint.lint_estate import LintEstate, LintFinding, Place, finding, list_names, utc
from routing.rules import matching, text
from routing.rules.choosing import is_local, is_transport
from routing.rules.estate import AddressKind, EstateRoute, SqlInstance, kind_of
from routing.rules.text import UndecodedText
from routing.rules.timeline import SECOND
from routing.tables import row_faults
from routing.tables.table_columns import TableColumns
from routing.terms import LOCAL_ADDRESS, LOOPBACK_HOSTS, MSDB

# What CREATE ROUTE refuses, found in a row of routes: one check a number of the engine.


OPTIONS = ("remote_service_name", "broker_instance", "address", "mirror_address")


class RouteRow(NamedTuple):
    """The columns that the checks of one route row read.

    ``route`` is the row for the rules. ``options`` are the raw texts of `OPTIONS`. ``is_current`` is True if the
    version is valid now or later. Times are microseconds since 1970.
    """

    place: Place
    route: EstateRoute
    options: tuple[str | None, ...]
    valid_to: int | None
    lifetime: int | None
    is_current: bool
    now: int

    def finding(self, code: str, sentence: str, *values: str | None) -> LintFinding:
        """Return a finding on this route."""
        return finding(code, self.place, self.route.name, sentence, *values)


def empty_option(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR001: an option is empty text. An optional column reads it as null."""
    if "" not in row.options:
        return None
    empty = [name for name, value in zip(OPTIONS, row.options, strict=True) if value == ""]
    return row.finding("SBR001", "%s is empty text", " and ".join(empty))


def too_long(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR002: an option is longer than the catalog view's column, counted in UTF-16 units."""
    long = [
        f"{name} is longer than {longest} characters"
        for name, longest, value in zip(OPTIONS, LONGEST_TEXTS.values(), row.options, strict=True)
        # A character is two units at most.
        if value and 2 * len(value) > longest and length(value) > longest
    ]
    return row.finding("SBR002", "%s", " and ".join(long)) if long else None


def mirror_alone(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR003: a mirror address without service name or broker instance."""
    required = {"service name": row.route.service, "broker instance": row.route.broker}
    missing = [name for name, value in required.items() if value is None]
    if row.route.mirror_address is None or not missing:
        return None
    return row.finding("SBR003", "the mirror address is given without %s", " and ".join(missing))


def broker_alone(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR004: a broker instance without a service name, which matches in no step (D3)."""
    if row.route.broker is None or row.route.service is not None:
        return None
    return row.finding("SBR004", "broker instance %s is given without a service name", row.route.broker)


def mirror_beside_keyword(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR005: LOCAL and TRANSPORT have no mirror, and are none."""
    mirror = row.route.mirror_address
    if mirror is None or not (_is_keyword(row.route.kind) or _is_keyword(kind_of(mirror))):
        return None
    return row.finding("SBR005", "mirror address '%s' is given with address '%s'", mirror, row.route.address)


def _is_keyword(kind: AddressKind | None) -> bool:
    return kind in (AddressKind.LOCAL, AddressKind.TRANSPORT)


def bad_address(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR006: an address is outside the grammar of tables.md. Others cover missing ones and keywords."""
    address, mirror = row.route.address, row.route.mirror_address
    if address and row.route.kind is None:
        wrong = f"address '{address}'"
    elif mirror is not None and kind_of(mirror) is None:
        wrong = f"mirror address '{mirror}'"
    else:
        return None
    return row.finding("SBR006", "%s is not a valid address", wrong)


def transport_with_service(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR007: TRANSPORT reads the address from any service's name."""
    if not is_transport(row.route) or row.route.service is None:
        return None
    return row.finding("SBR007", "address TRANSPORT is given with service name '%s'", row.route.service)


def lifetime_range(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR008: the end lies before the beginning, or more seconds ahead than LIFETIME allows."""
    lifetime, valid_from = row.lifetime, row.route.live_from
    if lifetime is None:
        return None
    begins = row.now if valid_from is None else max(valid_from, row.now)
    if valid_from is not None and lifetime <= valid_from:
        why = "not after the route begins"
    elif lifetime // SECOND - begins // SECOND > LONGEST_LIFETIME:
        why = "more than 2147483647 seconds ahead"
    else:
        return None
    return row.finding("SBR008", "lifetime %s is %s", utc(lifetime), why)


def mirror_is_address(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR009: one server cannot be its own mirror."""
    if row.route.mirror_address is None or row.route.compared_mirror != row.route.compared:
        return None
    return row.finding("SBR009", "address and mirror address are both '%s'", row.route.address)


_REQUEST = matching.MatchKey(None, None)
"""The key of a message that no known object names. A route that matches it matches any message."""


def configuration_with_broker(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR011: a request for a route carries no broker instance."""
    if row.route.broker is None or not matching.route_request(_REQUEST, row.route):
        return None
    return row.finding("SBR011", "the BrokerConfiguration route has broker instance %s", row.route.broker)


def catches_all(route: EstateRoute) -> bool:
    """Return True if a route is the LOCAL one for any service, as AutoCreatedLocal is."""
    return is_local(route) and matching.any_service(_REQUEST, route)


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


def route_rows(estate: LintEstate, routes: TableColumns) -> Iterator[LintFinding]:
    """Find the faults of single rows of routes, those of their addresses included."""
    around = _surroundings(estate)
    for row in _rows(routes, estate.now):
        for check in (*_OF_ALL, *_OF_CURRENT) if row.is_current else _OF_ALL:
            finding = check(row, around)
            if finding is not None:
                yield finding


def _surroundings(estate: LintEstate) -> RouteSurroundings:
    nearly: dict[str, set[str]] = {}
    for name in set(estate.tables["services"].values["name"]) - {None}:
        nearly.setdefault(text.comparable_address(name), set()).add(name)
    ports: dict[str, set[str]] = {}
    for address in estate.network.places:
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
    """Find SBR016: no database has the service, but one has a name that differs in case, blanks or slashes."""
    service = row.route.service
    nearly = None if service is None else around.nearly.get(text.comparable_address(service))
    if nearly is None or service in nearly:
        return None
    return row.finding("SBR016", "no database holds '%s', but there is '%s'", service, list_names(nearly))


def expired_route(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR029: the lifetime of the current version is over. Older versions are history."""
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
    """Find SBR015: the target is known, forwards no message, and lacks a database with the id.

    A target outside the tables may have any id, and a forwarder may know the route, so both are ignored. If it is
    unknown whether a target forwards, the rule assumes that it does not, and the finding mentions this.
    """
    route, instance = row.route, around.instance(row)
    if route.service is None or route.broker is None or route.mirror_address is not None:
        return None
    if is_local(route):
        places: tuple[SqlInstance, ...] = () if instance is None else (instance,)
    else:
        places = around.estate.owners(row.place[0], route.compared)
        if any(place.is_forwarding for place in places):
            return None
    if not places or any(route.broker in place.brokers for place in places):
        return None
    instance_names = list_names(place.name for place in places)
    sentence = "no database of %s has broker instance %s"
    unknown = [] if is_local(route) else [place.name for place in places if not place.is_forwarding_known]
    if unknown:
        sentence += "; the forwarding of %s is not known and assumed to be off"
        return row.finding("SBR015", sentence, instance_names, route.broker, list_names(unknown))
    return row.finding("SBR015", sentence, instance_names, route.broker)


def no_port(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR031: a tcp address, or a mirror's, names no port."""
    for address in (row.route.address, row.route.mirror_address):
        if text.is_tcp(address) and text.port(address) is None:
            return row.finding("SBR031", "address '%s' names no port", address)
    return None


def other_port(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR032: the host is known, and its endpoint listens at another port."""
    address = row.route.address
    host, port = text.host(address), text.port(address)
    if host is None or port is None:
        return None
    if host in LOOPBACK_HOSTS:
        instance = around.instance(row)
        if instance is None:
            return None
        # A loopback name leads to any instance of the machine, by the port.
        addresses_here = {*instance.own_addresses, *around.estate.network.addresses_beside(instance)}
        ports = {own_port for own_port in map(text.port, addresses_here) if own_port is not None}
    else:
        ports = around.ports.get(host, set())
    if not ports or port in ports:
        return None
    return row.finding("SBR032", "address '%s', but the endpoint's port is %s", address, list_names(ports))


_LONGEST_HOST, _LONGEST_LABEL = 255, 63
_HOST_LABEL = re.compile(r"[^\W_](?:[\w-]*[^\W_])?|_?[^\W_](?:[\w-]*\w)?")
_FOUR_NUMBERS = re.compile(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}")
_SAMPLE_HOST = re.compile(r"my[_-]?(?:sql)?[_-]?(?:server|host)(?:[_-]?name)?")


def no_host(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR048: the host of an address or mirror address is a placeholder or not a host name."""
    for address in (row.route.address, row.route.mirror_address):
        host = text.host(address)
        if host is not None and not _is_host(host):
            return row.finding("SBR048", "no host is called '%s'", host)
    return None


def _is_host(host: str) -> bool:
    """Return True if a host name is possible: letters of any language, digits and hyphens, or an IP address."""
    if host.startswith("["):
        return True
    first = host.partition(".")[0]
    if len(host) > _LONGEST_HOST or is_stand_in(first) or _SAMPLE_HOST.fullmatch(first):
        return False
    labels = host.removesuffix(".").split(".")
    if all(label.isdecimal() for label in labels) and len(labels) > 1:
        return _FOUR_NUMBERS.fullmatch(host) is not None and all(int(label) < 256 for label in labels)
    return all(len(label) <= _LONGEST_LABEL and _HOST_LABEL.fullmatch(label) for label in labels)


def local_catch_all(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR036: a route of msdb accepts arrivals for any service of the instance."""
    if row.place[1] != MSDB or not catches_all(row.route):
        return None
    return row.finding("SBR036", "all messages that arrive for a service of this instance are accepted")


def own_address(row: RouteRow, around: RouteSurroundings) -> LintFinding | None:
    """Find SBR037: the message comes back as if from the network, and in msdb is a loop."""
    instance = around.instance(row)
    if instance is None or row.route.compared not in instance.own_addresses:
        return None
    in_msdb = row.place[1] == MSDB
    consequence = "arriving messages are dropped as a loop" if in_msdb else "msdb's routes decide, as for arrivals"
    return row.finding("SBR037", "address '%s' is this instance's own: %s", row.route.address, consequence)


_Check = Callable[[RouteRow, RouteSurroundings], "LintFinding | None"]
_OF_ALL: tuple[_Check, ...] = (
    *(empty_option, too_long, mirror_alone, broker_alone, mirror_beside_keyword, bad_address),
    *(transport_with_service, lifetime_range, mirror_is_address, configuration_with_broker, expired_route),
)
# Judge only versions that are valid now or later.
_OF_CURRENT: tuple[_Check, ...] = (
    *(near_miss, expires_soon, pinned_to_nobody, no_port, other_port, no_host, local_catch_all, own_address),
)


# Rows that resolve refuses, as its own validation finds them.


def refused_rows(estate: LintEstate) -> Iterator[LintFinding]:
    """Find SBR010: a missing required value, a duplicate key, overlapping versions, or an invalid own address.

    Other findings (SBR005, SBR006) cover the addresses of routes. Every route address counts as valid here, unless
    it is not UTF-8.
    """
    routes = estate.tables["routes"].values
    good: dict[str, list[str | None]] = {
        "address": [_undecoded(address) or (address and LOCAL_ADDRESS) for address in routes["address"]],
        "mirror_address": [_undecoded(address) for address in routes["mirror_address"]],
    }
    for fault in row_faults.findings({**estate.tables, "routes": TableColumns({**routes, **good})}):
        # The first part of every key is the instance.
        instance = fault.instance or fault.row_key.partition(", ")[0]
        yield finding("SBR010", (instance, None), fault.row_key, "table %s: %s", fault.table_name, fault.fault)


def _undecoded(address: str | None) -> str | None:
    return address if isinstance(address, UndecodedText) else None
