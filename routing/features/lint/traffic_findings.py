"""Findings that messages and dialogs show: routes that nobody uses, dialogs that were torn apart."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from routing.engines.traffic_tables import COUNT, TrafficTable, open_traffic
from routing.features.lint.lint_estate import LintEstate, LintFinding, finding
from routing.rules import text
from routing.rules.following import OPEN_STEPS
from routing.rules.resolving import DialogFacts
from routing.tables.table_columns import Table, TableColumns
from routing.terms import MSDB, MatchingStep

# What resolved messages show of their routes and dialogs: groups of them, as few as the configuration's rows.


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
    """Return the routes that messages used (`routes_in_use`)."""
    return routes_in_use(open_traffic(resolved))


def routes_in_use(resolved: TrafficTable) -> set[RouteName]:
    """Return the routes that messages used.

    ``resolved`` has the columns of ``resolved_routes``. A route is used where a message reports it, where it
    led the message back to its own instance (rerouted_from), and where it is one of alternative_routes: the
    transport may take any of these.
    """
    used: set[RouteName] = set()
    for instance, database, rerouted_from, name in resolved.route_uses():
        here = MSDB if database is None else database
        there = here if rerouted_from is None else MSDB
        used |= {(instance, here, rerouted_from), (instance, there, name)}
    return {route for route in used if route[2] is not None}


def read_changed_picks(resolved: Table) -> list[RebalancedDialogs]:
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


def route_names(routes: TableColumns) -> set[RouteName]:
    """Return the routes of a table; versions of a route are one."""
    return set(routes.rows("instance_name", "database_name", "name"))


def coverage(routes: TableColumns, used: set[RouteName]) -> Iterator[dict[str, Any]]:
    """Yield the number of routes that messages used, by instance."""
    counts: dict[str | None, list[int]] = {}
    for route in route_names(routes):
        count = counts.setdefault(route[0], [0, 0])
        count[0] += 1
        count[1] += route in used
    for instance in sorted(counts, key=lambda name: (name is not None, name or "")):
        yield {"instance_name": instance, "routes": counts[instance][0], "used": counts[instance][1]}


def unused_routes(estate: LintEstate, used: set[RouteName]) -> Iterator[LintFinding]:
    """Find SBR028: no message used the route, in any version."""
    for instance, database, name in route_names(estate.tables["routes"]) - used:
        yield finding("SBR028", (instance, database), name, "no message used it")


def changed_picks(changed: list[RebalancedDialogs]) -> Iterator[LintFinding]:
    """Find SBR039: messages of one open dialog went to different broker ids; one a scope and service."""
    sentence = "the set of broker ids changed before the acknowledgement: dialogs %s, such as %s"
    for instance, database, service, dialogs, first in changed:
        yield finding("SBR039", (instance, database), service, sentence, str(dialogs), first)


def torn_groups(estate: LintEstate) -> Iterator[LintFinding]:
    """Find SBR038: dialogs of one conversation group to one service have different ids; one a service.

    A dialog is bound to the id that it was acknowledged with, else to the one that BEGIN DIALOG named.
    """
    names = ("instance_name", "database_name", "far_service", "conversation_group_id")
    ids = ("far_broker_instance", "acknowledged_broker_instance", "acknowledged_at")
    brokers_by_group: dict[tuple[Any, ...], set[str]] = {}
    for is_initiator, *group, far, acknowledged, at in estate.tables["dialogs"].rows("is_initiator", *names, *ids):
        if is_initiator and group[2] and group[3] and (far or acknowledged):
            dialog = DialogFacts(text.broker_id(far), text.broker_id(acknowledged), at)
            broker = dialog.acknowledged(estate.now) or dialog.far_broker
            if broker is not None:
                brokers_by_group.setdefault(tuple(group), set()).add(broker)
    torn: dict[tuple[Any, ...], list[str]] = {}
    for (*service, group_id), brokers in brokers_by_group.items():
        if len(brokers) > 1:
            torn.setdefault(tuple(service), []).append(group_id)
    sentence = "conversation groups are bound to different broker ids: %s, such as %s"
    for (instance, database, far_service), groups in torn.items():
        yield finding("SBR038", (instance, database), far_service, sentence, str(len(groups)), min(groups))
