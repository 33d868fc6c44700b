"""What CREATE ROUTE refuses, found in a table of routes: one check a number of the engine."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from routing import text
from routing.analysis.lint.finding import found, utc
from routing.matching import Bound, Route, route_request

_LONGEST = {"remote_service_name": 256, "broker_instance": 128, "address": 256, "mirror_address": 256}
_LONGEST_LIFETIME = 2**31 - 1


@dataclass(frozen=True)
class RouteRow:
    """What the checks of one route row look at; all Columns.

    service, broker, mirror: null where not given. compared: the comparable address. is_current: the version
    is in force or will be.
    """

    name: Column
    service: Column
    broker: Column
    address: Column
    mirror: Column
    compared: Column
    is_current: Column
    now: Column

    @property
    def is_keyword(self) -> Column:
        """The address is LOCAL or TRANSPORT."""
        return text.is_local(self.address) | text.is_transport(self.address)


def checks(row: RouteRow) -> list[Column]:
    """All refusals of a row, each null where it does not apply."""
    refusals = (empty_option, too_long, mirror_alone, broker_alone, mirror_beside_keyword, bad_address)
    more = (transport_with_service, lifetime_range, mirror_is_address, configuration_with_broker)
    return [refusal(row) for refusal in (*refusals, *more)]


def empty_option(row: RouteRow) -> Column:
    """SBR001: an option is empty text; in an optional column it reads as null."""
    empty = F.array_compact(F.array(*(F.when(F.col(name) == "", F.lit(name)) for name in _LONGEST)))
    return found("SBR001", F.size(empty) > 0, row.name, "%s is empty text", F.array_join(empty, " and "))


def too_long(row: RouteRow) -> Column:
    """SBR002: an option is longer than the catalog view's column, counted in UTF-16 units."""
    parts = []
    for name, longest in _LONGEST.items():
        is_long = F.octet_length(F.encode(F.col(name), "UTF-16BE")) > 2 * longest
        parts.append(F.when(is_long, F.lit(f"{name} is longer than {longest} characters")))
    long = F.array_compact(F.array(*parts))
    return found("SBR002", F.size(long) > 0, row.name, "%s", F.array_join(long, " and "))


def mirror_alone(row: RouteRow) -> Column:
    """SBR003: a mirror address needs service name and broker instance."""
    lacks = row.service.isNull() | row.broker.isNull()
    missing = F.when(row.service.isNull() & row.broker.isNull(), "service name and broker instance").when(
        lacks, F.when(row.service.isNull(), "service name").otherwise("broker instance")
    )
    return found(
        "SBR003", row.mirror.isNotNull() & lacks, row.name, "the mirror address stands without %s", missing
    )


def broker_alone(row: RouteRow) -> Column:
    """SBR004: matches in no step (D3)."""
    is_fault = row.broker.isNotNull() & row.service.isNull()
    return found("SBR004", is_fault, row.name, "broker instance %s stands without a service name", row.broker)


def mirror_beside_keyword(row: RouteRow) -> Column:
    """SBR005: LOCAL and TRANSPORT have no mirror, and are none."""
    mirror_is_keyword = text.is_local(row.mirror) | text.is_transport(row.mirror)
    is_fault = row.mirror.isNotNull() & (row.is_keyword | mirror_is_keyword)
    return found(
        "SBR005", is_fault, row.name, "mirror address '%s' stands beside address '%s'", row.mirror, row.address
    )


def bad_address(row: RouteRow) -> Column:
    """SBR006: outside the grammar of tables.md; what is missing or a keyword is another finding."""
    bad = (row.address != "") & ~row.is_keyword & ~text.is_tcp(row.address)
    bad_mirror = ~text.is_tcp(row.mirror) & ~text.is_local(row.mirror) & ~text.is_transport(row.mirror)
    wrong = F.when(bad, F.format_string("address '%s'", row.address)).when(
        bad_mirror, F.format_string("mirror address '%s'", row.mirror)
    )
    return found("SBR006", wrong.isNotNull(), row.name, "%s is no valid address", wrong)


def transport_with_service(row: RouteRow) -> Column:
    """SBR007: TRANSPORT reads the address from any service's name."""
    is_fault = text.is_transport(row.address) & row.service.isNotNull()
    return found("SBR007", is_fault, row.name, "address TRANSPORT stands with service name '%s'", row.service)


def lifetime_range(row: RouteRow) -> Column:
    """SBR008: the end lies before the beginning, or more seconds ahead than LIFETIME can say."""
    begins = F.greatest(F.col("valid_from"), row.now)
    is_late = F.unix_seconds("lifetime") - F.unix_seconds(begins) > _LONGEST_LIFETIME
    is_early = F.col("lifetime") <= F.col("valid_from")
    why = F.when(is_early, "not after the route begins").when(is_late, "more than 2147483647 seconds ahead")
    return found("SBR008", why.isNotNull(), row.name, "lifetime %s is %s", utc(F.col("lifetime")), why)


def mirror_is_address(row: RouteRow) -> Column:
    """SBR009: one server is no mirror of itself."""
    is_fault = text.comparable_address(row.mirror) == row.compared
    return found("SBR009", is_fault, row.name, "address and mirror address are both '%s'", row.address)


def configuration_with_broker(row: RouteRow) -> Column:
    """SBR011: a request for a route carries no broker id."""
    message = Bound(F.lit(None).cast("string"), F.lit(None).cast("string"))
    is_fault = route_request(message, Route(row.service, row.broker)) & row.broker.isNotNull()
    return found("SBR011", is_fault, row.name, "the BrokerConfiguration route has broker instance %s", row.broker)
