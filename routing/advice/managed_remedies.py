"""Advise on Managed Instances, and withhold statements that a server or a database does not take."""

from __future__ import annotations

import re
from dataclasses import replace

from routing.advice import statements
from routing.advice.remedy import Confidence, Remedy, RemedyPlace, correct_route
from routing.advice.status_facts import ReportedStatus
from routing.cases.server_evidence import ServerEvidence
from routing.render.phrases import named
from routing.rules import text

_NOT_ON_MANAGED = (
    *("CREATE ENDPOINT", "ALTER ENDPOINT", "REMOTE SERVICE BINDING", "ENABLE_BROKER", "DISABLE_BROKER"),
    *("MIRROR_ADDRESS", "N'TRANSPORT'"),
)
_CHANGES = ("ALTER ", "CREATE ", "DROP ", "END CONVERSATION", "GRANT ", "REVOKE ")
_ALTERED = re.compile(r"(?:\bALTER DATABASE |\bON DATABASE::)\[((?:[^\]]|\]\]){1,128})\]")
_OPENING = ("READ_WRITE", "MULTI_USER")
_ON_AZURE = "no statement makes it send or take messages."
_LEAVE_AZURE = (
    "Move the database to a managed instance or to SQL Server.",
    "Or send the messages by another service, such as Azure Service Bus.",
)
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


def allow(server: ServerEvidence, remedy: Remedy) -> Remedy:
    """Return a remedy without a statement that its instance does not support or its database does not take."""
    if server.has_no_broker(remedy.instance):
        cause = f"{named(remedy.instance)} is a service of Azure that has no Service Broker: {_ON_AZURE}"
        return Remedy(RemedyPlace(remedy.instance), cause, _LEAVE_AZURE, confidence=Confidence.CERTAIN)
    statement = remedy.statement or ""
    if server.is_managed(remedy.instance) and any(words in statement for words in _NOT_ON_MANAGED):
        note = f"{named(remedy.instance)} is a Managed Instance, which does not support the statement for it."
        return replace(remedy, actions=(*remedy.actions, note), statement=None, is_complete=False)
    is_change = any(words in statement for words in _CHANGES)
    altered = [name.replace("]]", "]") for name in _ALTERED.findall(statement)] or [remedy.place.database]
    refusals = (_refuse_change(server, remedy.instance, name, statement) for name in altered if is_change)
    why = next(filter(None, refusals), None)
    if why is None:
        return remedy
    shown = statements.as_comment(statement) if remedy.is_complete else statement
    return replace(remedy, actions=(*remedy.actions, why), statement=shown, is_complete=False)


def _refuse_change(server: ServerEvidence, instance: str, database: str | None, statement: str) -> str | None:
    """Return a sentence on a database that takes no changes, or None for any other."""
    facts = server.database(instance, database)
    if facts is None or database is None:
        return None
    if server.is_secondary(instance, facts.name):
        return f"{named(database)} of {named(instance)} is a secondary replica: run the statement at the primary."
    is_opened = any(option in statement for option in _OPENING)
    is_read_only = facts.is_read_only and not facts.is_closed and not is_opened
    return f"{named(database)} is read-only: the statement needs it to be writable." if is_read_only else None
