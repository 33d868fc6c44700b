"""Find faults in messages that must arrive (the questions of `probing`) and in resolved messages.

Resolved messages show unused routes and dialogs with changed picks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from routing.engines.traffic_tables import TrafficTable, open_traffic
from routing.lint import probing
from routing.lint.lint_estate import LintEstate, LintFinding, finding, list_names
from routing.lint.probing import ProbeAnswers, ProbeQuestion, ProbeVerdict, RouteReferrer
from routing.rules import text
from routing.rules.deciding import RouteSearch
from routing.rules.following import OPEN_STEPS
from routing.rules.matching import UNNAMED
from routing.rules.resolving import DialogFacts
from routing.tables.table_columns import COUNT, Table, TableColumns
from routing.terms import (
    BROKER_CONFIGURATION_SERVICE,
    ERROR_NUMBERS,
    MSDB,
    MatchingStep,
    Outcome,
    Reason,
    TableRow,
)

_NOT_HERE = (Reason.SERVICE_NOT_FOUND, Reason.BROKER_INSTANCE_NOT_FOUND)
_NO_WAY = (Reason.NO_ROUTE, *_NOT_HERE, Reason.TRANSPORT_ADDRESS_INVALID)


def answers(estate: LintEstate, probe_answers: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR021 to SBR025 and SBR040."""
    for verdict in probe_answers.arrivals:
        for search in verdict.searches:
            if verdict.referrer is not None:
                yield from routed_here(verdict, search, verdict.referrer)
            if verdict.question.broker is None:
                yield from arrives_open(estate, verdict, search)
    for verdict in probe_answers.arriving:
        for search in verdict.searches:
            if search.end.reason is Reason.FORWARDING_DISABLED:
                instance = estate.instances[verdict.question.instance]
                yield not_forwarded(verdict, search, is_known=instance.is_forwarding_known)


def routed_here(verdict: ProbeVerdict, search: RouteSearch, by: RouteReferrer) -> Iterator[LintFinding]:
    """Find SBR021 and SBR022: arrivals match no route in msdb, or match LOCAL and no database has the service."""
    place, service, reason = verdict.place, verdict.question.service, search.end.reason
    if search.asks:
        return
    if search.step is MatchingStep.NO_MATCH:
        sentence = "route %s of %s leads here, and no route of msdb matches"
        yield finding("SBR021", place, service, sentence, by.name, by.sender)
    elif reason in _NOT_HERE:
        sentence = "route %s of %s leads here, and is dropped here: %s"
        values = (by.name, by.sender, str(reason))
        yield finding("SBR022", place, service, sentence, *values, number=ERROR_NUMBERS[reason])


def not_forwarded(verdict: ProbeVerdict, search: RouteSearch, *, is_known: bool) -> LintFinding:
    """Find SBR025 and SBR040: a route of msdb leads on, and forwarding is off, or is taken to be off."""
    code, sentence = "SBR025", "messages that arrive for it are dropped: forwarding is off"
    if not is_known:
        code = "SBR040"
        sentence = "messages that arrive for it are dropped if forwarding is off, which is not known and assumed"
    return finding(code, verdict.place, search.route_name, sentence)


def arrives_open(estate: LintEstate, verdict: ProbeVerdict, search: RouteSearch) -> Iterator[LintFinding]:
    """Find SBR023 and SBR024: only a LOCAL route for any service delivers arrivals, or no route matches.

    The BrokerConfiguration service is ignored, because a route of msdb for it makes msdb ask.
    """
    place, service = verdict.place, verdict.question.service
    if service == BROKER_CONFIGURATION_SERVICE:
        return
    if probing.is_caught(search):
        sentence = "messages that arrive for it match only route %s"
        yield finding("SBR023", place, service, sentence, search.route_name)
    if search.step is MatchingStep.NO_MATCH and verdict.referrer is None and not search.asks:
        sentence = "an open message that arrives for it is %s (%s)"
        if _takes_bound(estate, verdict.question):
            sentence += "; bound to the broker instance of a database that holds it, it is delivered"
        yield finding("SBR024", place, service, sentence, str(search.end.outcome), str(search.end.reason))


def _takes_bound(estate: LintEstate, question: ProbeQuestion) -> bool:
    """Return True if a message that is bound to the id of a holder of its service is delivered."""
    holders = estate.instances[question.instance].holders_of(question.service)
    brokers = {holder.broker for holder in holders} - {None}
    questions = (question._replace(broker=broker) for broker in brokers)
    searches = (search for asked in questions for search in probing.searches_of(estate, asked))
    return any(search.end.outcome is Outcome.DELIVERED and not search.asks for search in searches)


def no_return(estate: LintEstate) -> Iterator[LintFinding]:
    """Find SBR020: no service of a database that sends here can be answered.

    The tables do not show which service opens a dialog, so one return path is enough.
    """
    pairs: dict[tuple[tuple[str, str], tuple[str, str]], list[ProbeVerdict]] = {}
    for verdict in probing.probe_returns(estate):
        if verdict.referrer is not None:
            pairs.setdefault((verdict.place, verdict.referrer[:2]), []).append(verdict)
    for (place, sender), verdicts in pairs.items():
        searches = [search for verdict in verdicts for search in verdict.searches]
        if all(search.end.reason in _NO_WAY and not search.asks for search in searches):
            services = {verdict.question.service or "" for verdict in verdicts}
            reason = min((search.end.reason for search in searches), key=str)
            sentence = "%s sends here, and no route leads back to %s: %s"
            values = (".".join(sender), list_names(services), str(reason))
            yield finding("SBR020", place, min(services), sentence, *values, number=ERROR_NUMBERS.get(reason))


# Forwarding loops: messages that go from instance to instance and never arrive.


Edge = tuple[str, str]
"""From an instance to one that it forwards to."""
ForwardingTargets = dict["str | None", dict[str, set[str]]]
"""The targets of forwarded messages, by broker instance and instance.

The broker instance is None for open messages, and UNNAMED for any other id.
"""


@dataclass
class InstanceNames:
    """The names that an instance knows: all other services, or ids, are alike to it."""

    services: set[str | None] = field(default_factory=set)
    brokers: set[str | None] = field(default_factory=set)


def loops(estate: LintEstate, probe_answers: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR026: one finding a service and set of instances, under the first of them by name."""
    by_service, for_any_service = _forwarding_targets(estate, probe_answers)
    for service, of_service in by_service.items():
        asked_instances = {instance for by_instance in of_service.values() for instance in by_instance}
        for broker in of_service:
            edges = _reach(asked_instances, _forwarding(broker, of_service, asked_instances, for_any_service))
            yield from _find_loop(service, asked_instances, edges)
    for by_instance in (for_any_service.get(None, {}), for_any_service.get(UNNAMED, {})):
        edges = [(source, target) for source, targets in by_instance.items() for target in targets]
        yield from _find_loop("any other service", by_instance, edges)


def _find_loop(service: str, asked_instances: Iterable[str], edges: list[Edge]) -> Iterator[LintFinding]:
    """Yield the finding on a service with a loop. Loops of routes for any service share a finding."""
    circles = _circles(edges)
    instances = sorted({instance for instance, _ in circles})
    if not set(asked_instances).isdisjoint(instances):
        sentence = "messages for it go round between %s"
        yield finding("SBR026", (instances[0], MSDB), service, sentence, list_names(instances))


def _forwarding_targets(
    estate: LintEstate, probe_answers: ProbeAnswers
) -> tuple[dict[str, ForwardingTargets], ForwardingTargets]:
    """Collect the targets of arrivals on each instance, for each service that it names and for any other."""
    names = _names(estate)
    by_service: dict[str, ForwardingTargets] = {}
    for_any_service: ForwardingTargets = {}
    for verdict in probe_answers.arriving:
        instance, _, service, broker = verdict.question
        instance_names = names[instance]
        of_service = (
            by_service.setdefault(service, {})
            if service is not None and service in instance_names.services
            else for_any_service
        )
        bound_broker = broker if broker is None or broker in instance_names.brokers else UNNAMED
        targets = of_service.setdefault(bound_broker, {}).setdefault(instance, set())
        for search in verdict.searches:
            if search.end.outcome is Outcome.FORWARDED:
                targets.update(probing.owners_of(estate, search, verdict.question))
    return by_service, for_any_service


def _names(estate: LintEstate) -> Mapping[str | None, InstanceNames]:
    """Return the names in the routes (of any version), the services and the databases of each instance."""
    names_by_instance: dict[str | None, InstanceNames] = defaultdict(InstanceNames)
    for name, instance in estate.instances.items():
        names_by_instance[name].brokers.update(instance.brokers)
    routes = estate.tables["routes"].rows("instance_name", "remote_service_name", "broker_instance")
    for instance_name, service, broker in routes:
        names_by_instance[instance_name].services.add(service)
        names_by_instance[instance_name].brokers.add(text.broker_id(broker))
    for instance_name, service in estate.tables["services"].rows("instance_name", "name"):
        names_by_instance[instance_name].services.add(service)
    return names_by_instance


def _forwarding(
    broker: str | None,
    of_service: ForwardingTargets,
    asked_instances: set[str],
    for_any_service: ForwardingTargets,
) -> Callable[[str], set[str]]:
    """Return the function from an instance to those it forwards a message to, for a service and an id.

    If no route of an instance names the service, it forwards the message as for any service. If none names the
    broker instance, it forwards the message as for any other broker instance.
    """
    unbound = None if broker is None else UNNAMED

    def forwards(instance: str) -> set[str]:
        if instance not in asked_instances:
            return for_any_service.get(unbound, {}).get(instance, set())
        bound_broker = broker if instance in of_service[broker] else unbound
        return of_service.get(bound_broker, {}).get(instance, set())

    return forwards


def _reach(starts: Iterable[str], forwards: Callable[[str], set[str]]) -> list[Edge]:
    reached, edges = set(starts), []
    ahead = list(reached)
    while ahead:
        source = ahead.pop()
        for target in forwards(source):
            edges.append((source, target))
            if target not in reached:
                reached.add(target)
                ahead.append(target)
    return edges


def _circles(edges: list[Edge]) -> list[Edge]:
    """Remove edges without a predecessor or successor repeatedly, and return the rest."""
    forward = _prune(edges)
    return [(source, target) for target, source in _prune([(target, source) for source, target in forward])]


def _prune(edges: list[Edge]) -> list[Edge]:
    """Return the remaining edges after edges without a successor are removed repeatedly."""
    before: dict[str, list[str]] = {}
    for source, target in edges:
        before.setdefault(target, []).append(source)
    after = Counter(source for source, _ in edges)
    ends = [target for target in before if not after[target]]
    while ends:
        for source in before.get(ends.pop(), ()):
            after[source] -= 1
            if not after[source]:
                ends.append(source)
    return [(source, target) for source, target in edges if after[source] and after[target]]


# What resolved messages show of their routes and dialogs: groups of them, as few as the configuration's rows.


RouteName = tuple[Any, Any, Any]
"""Instance, database and name."""
_SENDER = ("instance_name", "database_name", "to_service_name")
_CONVERSATION = "conversation_id"


class DialogGroup(NamedTuple):
    """Dialogs of a scope to a service that have a property: their number and the first id."""

    instance: str
    database: str
    service: str
    dialogs: int
    first: str


def used_routes(resolved: TrafficTable) -> set[RouteName]:
    """Return the routes that messages used.

    ``resolved`` has the columns of ``resolved_routes``. A route is used if a message reports it, or if it led the
    message back to its own instance (rerouted_from). It is also used if it is one of alternative_routes, because
    the transport may take any of these.
    """
    used: set[RouteName] = set()
    for use in resolved.route_uses():
        scope = MSDB if use.database is None else use.database
        fallback_scope = scope if use.rerouted_from is None else MSDB
        used |= {(use.instance, scope, use.rerouted_from), (use.instance, fallback_scope, use.route)}
    return {route for route in used if route[2] is not None}


def read_changed_picks(resolved: Table) -> list[DialogGroup]:
    """Return the scopes and services whose open dialogs were balanced to different broker instances."""
    balanced = {"matching_step": [int(MatchingStep.BALANCED)]}
    on = (*_SENDER, _CONVERSATION, "is_initiator")
    dialogs = open_traffic(resolved).groups(on, varying="broker_instance", only=balanced)
    scopes: dict[tuple[Any, ...], DialogGroup] = {}
    for instance, database, service, count, first in (
        dialogs.groups(_SENDER, least=(_CONVERSATION,)).rows().rows(*_SENDER, COUNT, f"min_{_CONVERSATION}")
    ):
        scope = (instance, MSDB if database is None else database, service)
        # What arrived and what msdb sent is of one scope.
        known_dialogs = scopes.get(scope, DialogGroup(*scope, 0, first))
        scopes[scope] = DialogGroup(*scope, known_dialogs.dialogs + count, min(known_dialogs.first, first))
    return list(scopes.values())


def open_dialogs(resolved: Table, services: Collection[str]) -> list[DialogGroup]:
    """Return the open dialogs to some services, by the databases that begin them.

    A dialog is open if a message of its initiator was sent by a route without broker instance, and the dialog is
    bound to none: no target has acknowledged it.
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
    return [DialogGroup(*group) for group in groups if group[1] is not None]


def route_names(routes: TableColumns) -> set[RouteName]:
    """Return the routes of a table. Versions of a route count as one."""
    return set(routes.rows("instance_name", "database_name", "name"))


def coverage(routes: TableColumns, used: set[RouteName]) -> Iterator[TableRow]:
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


def changed_picks(changed: Iterable[DialogGroup]) -> Iterator[LintFinding]:
    """Find SBR039: messages of one open dialog were sent to different broker instances.

    Each scope and service has one finding.
    """
    sentence = "the set of broker instances changed before the acknowledgement: dialogs %s, such as %s"
    for instance, database, service, dialogs, first in changed:
        yield finding("SBR039", (instance, database), service, sentence, str(dialogs), first)


def torn_groups(estate: LintEstate) -> Iterator[LintFinding]:
    """Find SBR038: dialogs of one conversation group to one service have different ids.

    Each service has one finding. A dialog is bound to the id of its acknowledgement, or else to that of BEGIN
    DIALOG.
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
    sentence = "conversation groups are bound to different broker instances: %s, such as %s"
    for (instance, database, far_service), groups in torn.items():
        yield finding("SBR038", (instance, database), far_service, sentence, str(len(groups)), min(groups))
