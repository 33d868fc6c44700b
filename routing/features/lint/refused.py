"""What CREATE ROUTE refuses, found in a row of routes: one check a number of the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from routing.features.lint.lint_finding import LintFinding, Place, finding, utc
from routing.rules import matching
from routing.rules.choosing import is_local, is_transport
from routing.rules.estate import AddressKind, EstateRoute, kind_of
from routing.tables.times import SECOND

_LONGEST = {"remote_service_name": 256, "broker_instance": 128, "address": 256, "mirror_address": 256}
OPTIONS = tuple(_LONGEST)
_LONGEST_LIFETIME = 2**31 - 1


class RouteRow(NamedTuple):
    """The columns that the checks of one route row read.

    route: as the rules read it. options: the texts of `OPTIONS` as they are. is_current: the version is in force
    or will be. Times are microseconds since 1970.
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


Check = Callable[[RouteRow], "LintFinding | None"]


def empty_option(row: RouteRow) -> LintFinding | None:
    """Find SBR001: an option is empty text; in an optional column it reads as null."""
    if "" not in row.options:
        return None
    empty = [name for name, value in zip(OPTIONS, row.options, strict=True) if value == ""]
    return row.finding("SBR001", "%s is empty text", " and ".join(empty))


def too_long(row: RouteRow) -> LintFinding | None:
    """Find SBR002: an option is longer than the catalog view's column, counted in UTF-16 units."""
    long = [
        f"{name} is longer than {longest} characters"
        for (name, longest), value in zip(_LONGEST.items(), row.options, strict=True)
        # A character is two units at most.
        if value and 2 * len(value) > longest and len(value.encode("utf-16-le", "surrogatepass")) > 2 * longest
    ]
    return row.finding("SBR002", "%s", " and ".join(long)) if long else None


def mirror_alone(row: RouteRow) -> LintFinding | None:
    """Find SBR003: a mirror address without service name or broker instance."""
    required = {"service name": row.route.service, "broker instance": row.route.broker}
    missing = [name for name, value in required.items() if value is None]
    if row.route.mirror_address is None or not missing:
        return None
    return row.finding("SBR003", "the mirror address is given without %s", " and ".join(missing))


def broker_alone(row: RouteRow) -> LintFinding | None:
    """Find SBR004: a broker instance without a service name, which matches in no step (D3)."""
    if row.route.broker is None or row.route.service is not None:
        return None
    return row.finding("SBR004", "broker instance %s is given without a service name", row.route.broker)


def mirror_beside_keyword(row: RouteRow) -> LintFinding | None:
    """Find SBR005: LOCAL and TRANSPORT have no mirror, and are none."""
    mirror = row.route.mirror_address
    if mirror is None or not (_is_keyword(row.route.kind) or _is_keyword(kind_of(mirror))):
        return None
    return row.finding("SBR005", "mirror address '%s' is given beside address '%s'", mirror, row.route.address)


def _is_keyword(kind: AddressKind | None) -> bool:
    return kind in (AddressKind.LOCAL, AddressKind.TRANSPORT)


def bad_address(row: RouteRow) -> LintFinding | None:
    """Find SBR006: outside the grammar of tables.md; what is missing or a keyword is another finding."""
    address, mirror = row.route.address, row.route.mirror_address
    if address and row.route.kind is None:
        wrong = f"address '{address}'"
    elif mirror is not None and kind_of(mirror) is None:
        wrong = f"mirror address '{mirror}'"
    else:
        return None
    return row.finding("SBR006", "%s is not a valid address", wrong)


def transport_with_service(row: RouteRow) -> LintFinding | None:
    """Find SBR007: TRANSPORT reads the address from any service's name."""
    if not is_transport(row.route) or row.route.service is None:
        return None
    return row.finding("SBR007", "address TRANSPORT is given with service name '%s'", row.route.service)


def lifetime_range(row: RouteRow) -> LintFinding | None:
    """Find SBR008: the end lies before the beginning, or more seconds ahead than LIFETIME can say."""
    lifetime, valid_from = row.lifetime, row.route.live_from
    if lifetime is None:
        return None
    begins = row.now if valid_from is None else max(valid_from, row.now)
    if valid_from is not None and lifetime <= valid_from:
        why = "not after the route begins"
    elif lifetime // SECOND - begins // SECOND > _LONGEST_LIFETIME:
        why = "more than 2147483647 seconds ahead"
    else:
        return None
    return row.finding("SBR008", "lifetime %s is %s", utc(lifetime), why)


def mirror_is_address(row: RouteRow) -> LintFinding | None:
    """Find SBR009: one server is no mirror of itself."""
    if row.route.mirror_address is None or row.route.compared_mirror != row.route.compared:
        return None
    return row.finding("SBR009", "address and mirror address are both '%s'", row.route.address)


_REQUEST = matching.MatchKey(None, None)
"""A message that nothing names: what matches it matches any."""


def configuration_with_broker(row: RouteRow) -> LintFinding | None:
    """Find SBR011: a request for a route carries no broker id."""
    if row.route.broker is None or not matching.route_request(_REQUEST, row.route):
        return None
    return row.finding("SBR011", "the BrokerConfiguration route has broker instance %s", row.route.broker)


def catches_all(route: EstateRoute) -> bool:
    """Return True if a route is the LOCAL one for any service, as AutoCreatedLocal is."""
    return is_local(route) and matching.any_service(_REQUEST, route)


CHECKS: tuple[Check, ...] = (
    *(empty_option, too_long, mirror_alone, broker_alone, mirror_beside_keyword, bad_address),
    *(transport_with_service, lifetime_range, mirror_is_address, configuration_with_broker),
)
