"""What each reason means: in words, by SQL Server's number, and what to do."""

from __future__ import annotations

from routing.terms import (
    ERROR_NUMBERS,
    MSDB,
    MSDB_BROKER_DISABLED,
    Reason,
)

_TRANSPORT_ADVICE = (
    "If the message still waits, the way is right and the transport is not: name resolution, firewall, endpoint,"
    " certificates."
)


_ADVICE = {
    Reason.LOCAL_SERVICE: "If it does not arrive, look at the target queue: disabled, or a poison message.",
    Reason.NETWORK_ADDRESS: _TRANSPORT_ADVICE,
    Reason.MIRROR_ADDRESS: _TRANSPORT_ADVICE,
    Reason.TRANSPORT_ADDRESS: _TRANSPORT_ADVICE,
    Reason.ROUTE_REQUESTED: "See where the request for a route goes (explain), and where it arrives whether the"
    " BrokerConfiguration service answers and ends its conversation.",
    Reason.NO_ROUTE: "CREATE ROUTE for the service, or the AutoCreatedLocal route that somebody dropped.",
    Reason.SERVICE_NOT_FOUND: "Create the service here, or the route that leads elsewhere; names are compared"
    " exactly: case and blanks count.",
    Reason.BROKER_INSTANCE_NOT_FOUND: "Compare the broker instance with service_broker_guid in sys.databases: a"
    " database was restored with a new id, or a route or BEGIN DIALOG names an old one.",
    Reason.BROKER_DISABLED: "ALTER DATABASE … SET ENABLE_BROKER in the target database.",
    Reason.SCOPE_BROKER_DISABLED: "ALTER DATABASE … SET ENABLE_BROKER in the database whose routes are searched.",
    Reason.TRANSPORT_ADDRESS_INVALID: "Give the route an address, or the service a name that begins with"
    " tcp://HOST:PORT.",
    Reason.FORWARDING_DISABLED: "Enable MESSAGE_FORWARDING on the Service Broker endpoint, or correct the msdb"
    " route.",
    Reason.HOP_LIMIT: "Look for forwarders that send a message round in a circle, or raise the limit.",
    Reason.ROUTING_LOOP: "Use LOCAL where the service is in this instance, else correct the address.",
    Reason.DIALOG_EXPIRED: "The application has to begin a new dialog.",
}


def error_number(reason: str | None, scope: str | None) -> int | None:
    """Return SQL Server's number for a reason, None without one; ``scope`` is the database last searched."""
    if reason is None:
        return None
    if reason == Reason.SCOPE_BROKER_DISABLED and scope == MSDB:
        return MSDB_BROKER_DISABLED
    return ERROR_NUMBERS.get(Reason(reason))


def number_reason(reason: Reason | str, scope: str | None) -> str:
    """Return a reason with SQL Server's number for it, where it has one: "NO_ROUTE, SQL Server's number: 9793"."""
    number = error_number(str(reason), scope)
    return str(reason) if number is None else f"{reason}, SQL Server's number: {number}"


def advice(reason: str | None) -> str | None:
    """Return the advice on a reason; None where the outcome depends on the dialog."""
    return None if reason is None else _ADVICE[Reason(reason)]


REASON_WORDS = {
    Reason.LOCAL_SERVICE: "the service is in this instance, and a LOCAL route leads to it",
    Reason.NETWORK_ADDRESS: "a route leads to a network address",
    Reason.MIRROR_ADDRESS: "a route leads to an address and its mirror",
    Reason.TRANSPORT_ADDRESS: "a TRANSPORT route leads to the address in the service's name",
    Reason.ROUTE_REQUESTED: "a route is being asked for, and the conversation waits until that request ends",
    Reason.NO_ROUTE: "no route matches the service",
    Reason.SERVICE_NOT_FOUND: "a LOCAL route matches, and no database of the instance holds the service",
    Reason.BROKER_INSTANCE_NOT_FOUND: "no database that holds the service has the broker instance that they are"
    " bound to",
    Reason.BROKER_DISABLED: "the broker of the database that holds the service is off",
    Reason.SCOPE_BROKER_DISABLED: "the broker of the database whose routes are searched is off",
    Reason.TRANSPORT_ADDRESS_INVALID: "a TRANSPORT route takes the address from the service name, which has none",
    Reason.FORWARDING_DISABLED: "they have to be forwarded, and forwarding is off",
    Reason.HOP_LIMIT: "they have no hops left",
    Reason.ROUTING_LOOP: "a route leads back to the instance that they come from",
    Reason.DIALOG_EXPIRED: "the lifetime of their dialog is over",
}
"""Why messages have their outcome."""
