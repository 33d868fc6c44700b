"""What resolved messages show of their routes and dialogs: groups of them, as few as the configuration's rows."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from routing.engines.traffic_tables import COUNT, open_traffic
from routing.rules.following import OPEN_STEPS
from routing.tables.table_columns import Table
from routing.terms import MSDB, MatchingStep

RouteName = tuple[Any, Any, Any]
"""Instance, database and name."""
_SENDER = ("instance_name", "database_name", "to_service_name")
_CONVERSATION = "conversation_id"


class RebalancedDialogs(NamedTuple):
    """Open dialogs of a scope to a service that were balanced to several ids: how many, and the first by id."""

    instance: str
    database: str
    service: str
    dialogs: int
    first: str


class OpenDialogs(NamedTuple):
    """Dialogs of a database to a service whose messages take routes while they are bound to no broker id.

    How many there are, and the first by id.
    """

    instance: str
    database: str
    service: str
    dialogs: int
    first: str


def used_routes(resolved: Table) -> set[RouteName]:
    """Return the routes that messages used.

    ``resolved`` has the columns of ``resolved_routes``. A route is used where a message reports it, where it
    led the message back to its own instance (rerouted_from), and where it is one of alternative_routes: the
    transport may take any of these.
    """
    used: set[RouteName] = set()
    for instance, database, rerouted_from, name in open_traffic(resolved).route_uses():
        here = MSDB if database is None else database
        there = here if rerouted_from is None else MSDB
        used |= {(instance, here, rerouted_from), (instance, there, name)}
    return {route for route in used if route[2] is not None}


def changed_picks(resolved: Table) -> list[RebalancedDialogs]:
    """Return the scopes and services of which open dialogs were balanced to different broker ids."""
    balanced = {"matching_step": [int(MatchingStep.BALANCED)]}
    dialogs = open_traffic(resolved).groups(
        (*_SENDER, _CONVERSATION, "is_initiator"), varying="broker_instance", only=balanced
    )
    scopes: dict[tuple[Any, ...], RebalancedDialogs] = {}
    for instance, database, service, count, first in (
        dialogs.groups(_SENDER, least=(_CONVERSATION,)).rows().rows(*_SENDER, COUNT, f"min_{_CONVERSATION}")
    ):
        scope = (instance, MSDB if database is None else database, service)
        # What arrived and what msdb sent is of one scope.
        other = scopes.get(scope, RebalancedDialogs(*scope, 0, first))
        scopes[scope] = RebalancedDialogs(*scope, other.dialogs + count, min(other.first, first))
    return list(scopes.values())


def open_dialogs(resolved: Table, services: Collection[str]) -> list[OpenDialogs]:
    """Return the open dialogs to some services, by the databases that begin them.

    A dialog is open where a message of its initiator was sent by a route without broker id, and is bound to none:
    no target has acknowledged it.
    """
    is_open = {
        "matching_step": [int(step) for step in OPEN_STEPS],
        "to_service_name": services,
        "is_initiator": [True],
        "broker_instance": None,
    }
    dialogs = open_traffic(resolved).groups((*_SENDER, _CONVERSATION), only=is_open)
    counted = dialogs.groups(_SENDER, least=(_CONVERSATION,)).rows()
    groups = counted.rows(*_SENDER, COUNT, f"min_{_CONVERSATION}")
    return [OpenDialogs(*group) for group in groups if group[1] is not None]
