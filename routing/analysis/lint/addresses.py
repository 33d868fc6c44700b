"""Findings on where a route leads: checks of one route row, beside what is known of the place."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from routing import text
from routing.analysis.lint.estate import host
from routing.analysis.lint.finding import found, listed, utc
from routing.analysis.lint.refused import RouteRow
from routing.matching import Bound, Route, any_service
from routing.terms import LOOPBACK_HOSTS, MSDB

_DAY = 86_400


def checks(row: RouteRow, days: int) -> list[Column]:
    """All findings of a row, each null where it does not apply.

    Besides the columns of routes: own_addresses and databases (of the instance), places (array of the
    instances at the address), ports (of the host), nearly (services whose names are nearly the route's).
    """
    near = near_miss(row)
    places = (pinned_to_nobody, no_port, other_port, local_catch_all, own_address)
    return [near, expired(row), expires_soon(row, days), *(check(row) for check in places)]


def pinned_to_nobody(row: RouteRow) -> Column:
    """SBR015: the place is known, forwards nothing, and none of its databases has the id.

    A place that is not in the tables may host any id, and a forwarder may know the way: both are left alone.
    """
    here = ~F.exists("databases", lambda d: F.coalesce(d["broker"] == row.broker, F.lit(False)))
    places = F.col("places")
    is_dead_end = ~F.exists(places, lambda p: p["is_forwarding"] | F.array_contains(p["brokers"], row.broker))
    nobody = F.when(text.is_local(row.address), here).otherwise(is_dead_end & (F.size(places) > 0))
    where = F.when(text.is_local(row.address), F.col("instance_name")).otherwise(listed(places["instance_name"]))
    pinned = row.is_current & row.service.isNotNull() & row.broker.isNotNull() & row.mirror.isNull()
    return found("SBR015", pinned & nobody, row.name, "no database of %s has broker id %s", where, row.broker)


def near_miss(row: RouteRow) -> Column:
    """SBR016: nobody holds the service, but one whose name differs in case, blanks around or a slash after."""
    nearly = F.col("nearly")
    is_fault = row.is_current & nearly.isNotNull() & ~F.array_contains(nearly, row.service)
    return found(
        "SBR016", is_fault, row.name, "no database holds '%s', but there is '%s'", row.service, listed(nearly)
    )


def no_port(row: RouteRow) -> Column:
    """SBR031: a tcp address, or a mirror's, names no port."""

    def lacks(address: Column) -> Column:
        return F.when(text.is_tcp(address) & (text.port(address) == ""), address)

    without = F.coalesce(lacks(row.address), lacks(row.mirror))
    return found("SBR031", row.is_current & without.isNotNull(), row.name, "address '%s' names no port", without)


def other_port(row: RouteRow) -> Column:
    """SBR032: the host is known, and its endpoint listens elsewhere."""
    port = text.port(row.address)
    is_loopback = host(row.address).isin(*LOOPBACK_HOSTS)
    own_ports = F.filter(F.transform("own_addresses", text.port), lambda p: p != "")
    ports = F.when(is_loopback, own_ports).otherwise(F.col("ports"))
    differs = (port != "") & (F.size(ports) > 0) & ~F.array_contains(ports, port)
    is_fault = row.is_current & text.is_tcp(row.address) & differs
    return found(
        "SBR032", is_fault, row.name, "address '%s', but the endpoint's port is %s", row.address, listed(ports)
    )


def local_catch_all(row: RouteRow) -> Column:
    """SBR036: what arrives for any service of the instance is accepted."""
    message = Bound(F.lit(None).cast("string"), F.lit(None).cast("string"))
    catches = any_service(message, Route(row.service, row.broker)) & text.is_local(row.address)
    is_fault = row.is_current & (F.col("database_name") == MSDB) & catches
    return found("SBR036", is_fault, row.name, "whatever arrives for a service of this instance is accepted")


def own_address(row: RouteRow) -> Column:
    """SBR037: the message comes back as if from the network, and in msdb is a loop."""
    in_msdb = F.col("database_name") == MSDB
    is_fault = row.is_current & F.array_contains("own_addresses", row.compared)
    what = F.when(in_msdb, "what arrives is dropped as a loop").otherwise("msdb's routes decide, as for arrivals")
    return found("SBR037", is_fault, row.name, "address '%s' is this instance's own: %s", row.address, what)


def expired(row: RouteRow) -> Column:
    """SBR029: the lifetime of the current version is over; a version that another one replaced is history."""
    lifetime, valid_to = F.col("lifetime"), F.col("valid_to")
    is_last = valid_to.isNull() | (row.now < valid_to)
    return found("SBR029", is_last & (lifetime <= row.now), row.name, "it expired at %s", utc(lifetime))


def expires_soon(row: RouteRow, days: int) -> Column:
    """SBR030: the lifetime ends within the days asked for, and not because a version ends before."""
    lifetime, valid_to = F.col("lifetime"), F.col("valid_to")
    ends_it = valid_to.isNull() | (lifetime < valid_to)
    is_near = F.unix_micros(lifetime) <= F.unix_micros(row.now) + days * _DAY * 1_000_000
    return found("SBR030", row.is_current & ends_it & is_near, row.name, "it expires at %s", utc(lifetime))
