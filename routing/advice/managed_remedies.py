"""Advise on Managed Instances, which have no endpoint to change and exchange messages only with each other."""

from __future__ import annotations

from routing.advice import statements
from routing.advice.remedy import Confidence, Remedy, RemedyPlace, correct_route
from routing.advice.status_facts import ReportedStatus
from routing.cases.server_evidence import ServerEvidence
from routing.render.phrases import named
from routing.rules import text

_OPEN_PORT = "Open port 4022 of both subnets in their network security groups."
_MANAGED_PORT, _MANAGED_HOST = "4022", ".database.windows.net"


def correct_managed_port(
    server: ServerEvidence, sender: RemedyPlace, route: str | None, address: str | None
) -> Remedy | None:
    """Advise on a route from a Managed Instance to no other one, or to another one with a port other than 4022."""
    host = text.host(address)
    if not server.is_managed(sender.instance) or host is None:
        return None
    if not host.endswith(_MANAGED_HOST):
        return _reach_managed(sender)
    if text.port(address) == _MANAGED_PORT:
        return None
    cause = (
        f"The address {named(address)} is of a Managed Instance, whose Service Broker listens on port 4022 only."
    )
    clause = statements.with_clause(address=f"TCP://{host}:{_MANAGED_PORT}")
    return correct_route(sender, route, clause, cause, f"Correct route {named(route)}.", _OPEN_PORT)


def refuse_on_managed(status: ReportedStatus) -> Remedy | None:
    """Explain that a Managed Instance has no endpoint to change, or return None for other instances."""
    if not status.server.is_managed(status.instance):
        return _refuse_far_managed(status)
    sender = status.route_place
    return correct_managed_port(status.server, sender, status.route, status.address) or _reach_managed(sender)


def _reach_managed(sender: RemedyPlace) -> Remedy:
    cause = (
        f"{named(sender.instance)} is a Managed Instance: it reaches only other managed instances, at port 4022,"
        " and its endpoint cannot be created or altered."
    )
    actions = (
        "Let the route lead to LOCAL, or to the host name of another managed instance with port 4022.",
        _OPEN_PORT,
    )
    return Remedy(sender, cause, actions)


def _refuse_far_managed(status: ReportedStatus) -> Remedy | None:
    is_other = status.server.endpoint(status.instance) is not None
    if not is_other or not (text.host(status.address) or "").endswith(_MANAGED_HOST):
        return None
    cause = (
        f"{named(status.address)} is the address of a Managed Instance, which exchanges messages only with other"
        f" managed instances, and {named(status.instance)} is none."
    )
    actions = ("Send the messages in another way, or host both services on managed instances.",)
    return Remedy(status.route_place, cause, actions, confidence=Confidence.LIKELY)
