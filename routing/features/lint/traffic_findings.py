"""Findings that messages and dialogs show: routes that nobody uses, dialogs that were torn apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from routing.features.lint.lint_estate import LintEstate
from routing.features.lint.lint_finding import LintFinding, finding
from routing.features.lint.resolved import RebalancedDialogs, RouteName
from routing.rules import text
from routing.rules.resolving import DialogFacts
from routing.tables.table_columns import TableColumns


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
