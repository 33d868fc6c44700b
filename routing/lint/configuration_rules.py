"""Findings on databases: doubled broker instances, disabled brokers, services held twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from routing.lint.address_rules import catches_all
from routing.lint.endpoint_hazards import Hazards, OpenChoice, OpenMessageFollower
from routing.lint.lint_estate import (
    MOST_SHOWN,
    LintEstate,
    LintFinding,
    finding,
    is_users,
    list_names,
    sender_of,
    show_names,
)
from routing.lint.probing import (
    ProbeAnswers,
    ProbeQuestion,
    is_caught,
    owners_of,
    probe_catching_routes,
    scopes_that_ask,
    searches_of,
)
from routing.plan.paths import trace_request
from routing.rules import text
from routing.rules.choosing import distinct_routes, has_mirror, tier_of
from routing.rules.estate import ARRIVALS, EstateRoute
from routing.rules.following import HopPath, MessageTrace
from routing.rules.matching import MatchKey, step_of
from routing.terms import BROKER_CONFIGURATION_SERVICE, MSDB, Ending, MatchingStep, Outcome, Reason


def broker_ids(estate: LintEstate) -> Iterator[LintFinding]:
    """Find SBR012 to SBR014: each broker instance that several databases have.

    Where instances share it, it stands under the first of them by name.
    """
    sentence = "databases %s have one broker instance"
    found_in: dict[str, dict[str, set[str]]] = {}
    for instance, name, guid in estate.tables["databases"].rows("instance_name", "name", "service_broker_guid"):
        broker = text.broker_id(guid)
        if instance is not None and name is not None and broker is not None:
            found_in.setdefault(broker, {}).setdefault(instance, set()).add(name)
    for broker, by_instance in found_in.items():
        for instance, names in by_instance.items():
            if len(names) > 1:
                yield finding("SBR012", (instance, None), broker, sentence, list_names(names))
        if len(by_instance) > 1:
            # Between instances the first database by name speaks for each.
            places = sorted((instance, min(names)) for instance, names in by_instance.items())
            code = "SBR014" if len({name for _, name in places}) == 1 else "SBR013"
            yield finding(code, places[0], broker, sentence, list_names(map(".".join, places)))


def disabled_brokers(estate: LintEstate) -> Iterator[LintFinding]:
    """Find SBR034 and SBR035: a database that cannot send or receive, though it has services or routes."""
    in_use = {(instance, database) for instance, database, route in estate.live_routes if not catches_all(route)}
    services = estate.tables["services"].rows("instance_name", "database_name", "name")
    in_use |= {
        (instance, database) for instance, database, name in services if name is not None and is_users(name)
    }
    columns = ("instance_name", "name", "is_broker_enabled")
    for instance, name, is_enabled in estate.tables["databases"].rows(*columns):
        if is_enabled is False and name == MSDB:
            yield finding("SBR035", (instance, name), name, "messages from the network are delayed")
        elif is_enabled is False and (instance, name) in in_use:
            yield finding("SBR034", (instance, name), name, "its services and routes do nothing")


def doubled_services(estate: LintEstate) -> Iterator[LintFinding]:
    """Find SBR019: an open dialog goes to the sender's own database, else to the first by name (D5)."""
    for instance in estate.instances.values():
        for service in estate.services_of_users(instance):
            names = {database.name for database in instance.holders_of(service)}
            if len(names) > 1:
                sentence = "databases %s hold the service"
                yield finding("SBR019", (instance.name, None), service, sentence, list_names(names))


# Findings on LOCAL routes of databases: services that no database holds, and services that no route names.


def lacking_services(probe_answers: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR044: messages on a LOCAL route find no database of the instance that holds the service.

    The rule ignores an id that is not here (SBR015), requests for routes (SBR043) and services that every database
    holds.
    """
    for verdict in probe_answers.local:
        service = verdict.question.service or ""
        if service == BROKER_CONFIGURATION_SERVICE or not is_users(service):
            continue
        for search in verdict.searches:
            if search.end.reason is Reason.SERVICE_NOT_FOUND and search.known_broker == verdict.question.broker:
                sentence = "no database of %s holds '%s': messages that take the route are %s"
                values = (verdict.question.instance, service, str(search.end.outcome))
                yield finding("SBR044", verdict.place, search.route_name, sentence, *values)


def caught_services(estate: LintEstate, probe_answers: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR045: open messages to a service of the same instance depend on routes for any service.

    One finding for each service that no database's route leads to by its name, under the first that holds it.
    """
    named = {
        (verdict.question.instance, verdict.question.service)
        for verdict in probe_answers.local
        if verdict.question.database is not None and verdict.question.broker is None
        if any(search.end.outcome is Outcome.DELIVERED and not search.asks for search in verdict.searches)
    }
    for verdict in probe_catching_routes(estate):
        instance, database, service, _ = verdict.question
        if (instance, service) in named:
            continue
        for search in filter(is_caught, verdict.searches):
            holder = estate.instances[instance].holders_of(service)[0].name
            sentence = "messages to it from databases of %s match only routes for any service, such as %s of %s"
            yield finding("SBR045", (instance, holder), service, sentence, instance, search.route_name, database)


# Load-balancing routes that no open dialog reaches, and duplicates.


class BalancedService(NamedTuple):
    """A service that several broker instances share the open dialogs of, by the routes of a database.

    ``by_broker``: the balanced routes of each id, by name. ``open_routes``: those for the service without an id.
    """

    place: tuple[str, str]
    service: str
    by_broker: dict[str | None, list[EstateRoute]]
    open_routes: Sequence[EstateRoute]


def balanced_services(estate: LintEstate) -> list[BalancedService]:
    """Return the services that valid routes balance over two broker instances or more."""
    grouped: dict[tuple[str, str, str], dict[MatchingStep, list[EstateRoute]]] = {}
    for instance, database, route in estate.live_routes:
        if route.service is not None:
            step = step_of(MatchKey(route.service, None), route)
            if step is not None:
                by_step = grouped.setdefault((instance, database, route.service), {})
                by_step.setdefault(step, []).append(route)
    services = []
    for (instance, database, service), by_step in grouped.items():
        by_broker: dict[str | None, list[EstateRoute]] = {}
        for route in by_step.get(MatchingStep.BALANCED, ()):
            by_broker.setdefault(route.broker, []).append(route)
        if len(by_broker) > 1:
            open_routes = by_step.get(MatchingStep.SERVICE, ())
            services.append(BalancedService((instance, database), service, by_broker, open_routes))
    return services


def unbalanced_routes(balanced: Iterable[BalancedService]) -> Iterator[LintFinding]:
    """Find SBR017: an open message's search ends with a route without broker instance, before ids are balanced.

    One finding for each such route.
    """
    for service in balanced:
        for route in service.open_routes:
            never = list_names(other.name or "" for routes in service.by_broker.values() for other in routes)
            sentence = "open dialogs to '%s' take it and never %s"
            yield finding("SBR017", service.place, route.name, sentence, service.service, never)


def doubled_routes(balanced: Iterable[BalancedService]) -> Iterator[LintFinding]:
    """Find SBR047: a balanced route equals another, so its broker instance gets no greater share (section 2.3)."""
    for service in balanced:
        for broker, routes in service.by_broker.items():
            distinct = distinct_routes(routes)
            for route in routes:
                [first] = [other for other in distinct if _is_same(other, route)]
                if first is not route:
                    sentence = "it is the same as %s: the share of broker instance %s stays one of %s"
                    values = (first.name, broker, str(len(service.by_broker)))
                    yield finding("SBR047", service.place, route.name, sentence, *values)


def _is_same(route: EstateRoute, other: EstateRoute) -> bool:
    return len(distinct_routes([route, other])) == 1


# Routes that no message can take.


def shadowed_routes(
    estate: LintEstate, probe_answers: ProbeAnswers, balanced: Iterable[BalancedService]
) -> Iterator[LintFinding]:
    """Find SBR027: another route takes every message that a route matches.

    The rule ignores routes with other findings. These match in no step, have an unusable address, are
    duplicates among balanced routes, or belong to a database with its broker off. It also ignores the LOCAL route
    for any service, which is kept for future services.
    """
    doubled = {(one.instance_name, one.database_name, one.object) for one in doubled_routes(balanced)}
    used: set[tuple[tuple[str, str], str | None]] = set()
    # The first route by name that answers a route's own question (its service and broker instance).
    winners: dict[tuple[tuple[str, str], str | None, str | None], str] = {}
    for verdict in probe_answers.routes:
        place, (_, _, service, broker) = verdict.place, verdict.question
        for search in verdict.searches:
            used |= {(place, route.name) for route in (search.reported, *search.alternatives) if route is not None}
            name = search.route_name
            if name is not None and service is not None:
                question = (place, service, broker)
                winners[question] = min(name, winners.get(question, name))
    for (instance, database, service, broker), routes in probe_answers.contested.items():
        if not estate.instances[instance].is_enabled(database):
            continue
        place = instance, database
        winner = winners.get((place, service, broker), "another route for any service")
        for route in routes:
            is_usable = tier_of(route) is not None and not catches_all(route)
            is_told = (*place, route.name) in doubled
            if is_usable and not is_told and (place, route.name) not in used:
                yield finding("SBR027", place, route.name, "every message that it matches takes %s", winner)


# Routes without broker instance, to several instances of a service or to only one.


def open_to_several(estate: LintEstate, probe_answers: ProbeAnswers, proved: Hazards) -> Iterator[LintFinding]:
    """Find SBR018: equally good routes without broker instance lead to several holders.

    Only targets in the tables can be judged. Gateways do not have the service and are no hazard. If messages prove
    the hazard for the scope and service, another rule reports it as an error.
    """
    for verdict in probe_answers.routes:
        service = verdict.question.service
        if OpenChoice(*verdict.place, service or "") in proved:
            continue
        for search in verdict.searches:
            if search.step is not MatchingStep.SERVICE or not search.alternatives:
                continue
            owners = owners_of(estate, search, verdict.question)
            targets = {name for name, owner in owners.items() if owner.holders_of(service)}
            if len(targets) > 1:
                sentence = "it and others without broker instance lead to '%s' at %s"
                yield finding("SBR018", verdict.place, search.route_name, sentence, service, list_names(targets))


def open_to_one(estate: LintEstate, follower: OpenMessageFollower) -> Iterator[LintFinding]:
    """Find SBR046: all messages of an open route are delivered at the only broker instance of their service.

    The rule ignores routes for requests, which carry no id, and mirrored routes, which need an id (SBR003).
    """
    sole = _sole_brokers(estate)
    route_names: dict[OpenChoice, set[str]] = {}
    for instance, database, route in estate.live_routes:
        service = route.service
        if service not in sole or instance not in estate.listed or has_mirror(route):
            continue
        if step_of(MatchKey(service, None), route) is MatchingStep.SERVICE:
            route_names.setdefault(OpenChoice(instance, database, service), set()).add(route.name or "")
    for choice, names in route_names.items():
        traces = list(follower.traces(choice))
        if traces and all(_ends_at(follower, trace, sole[choice.service]) for trace in traces):
            hops = (path.hops[0] for trace in traces for path in trace.hop_paths)
            # One that came back to its own instance is reported by a route of msdb.
            used = {hop.route_name for hop in hops if hop.scope == choice.scope}
            for name in names & used:
                sentence = "all that takes it ends at broker instance %s, the only one that is known of '%s'"
                yield finding("SBR046", choice[:2], name, sentence, sole[choice.service], choice.service)


def _sole_brokers(estate: LintEstate) -> dict[str, str]:
    brokers_by_service: dict[str, set[str | None]] = {}
    for holder in estate.holders:
        if holder.service != BROKER_CONFIGURATION_SERVICE:
            brokers_by_service.setdefault(holder.service, set()).add(holder.database.broker)
    sole = {service: next(iter(brokers)) for service, brokers in brokers_by_service.items() if len(brokers) == 1}
    return {service: broker for service, broker in sole.items() if broker is not None}


def _ends_at(follower: OpenMessageFollower, trace: MessageTrace, broker: str) -> bool:
    targets = [follower.target(path) for path in trace.hop_paths]
    return not trace.is_cut and all(target is not None and target[1] == broker for target in targets)


# Findings on requests for routes that are not needed, and on requests that reach no service.


_STOPPED = (Ending.DELAYED, Ending.DROPPED, Ending.LOOP)


def needless_requests(estate: LintEstate) -> Iterator[LintFinding]:
    """Find SBR033: step 4 comes before a LOCAL route for any service (D15).

    A scope treats all services that it does not name equally.
    """
    sorted_services: dict[str, list[str]] = {}
    for name, database in scopes_that_ask(estate):
        instance = estate.instances[name]
        if name not in sorted_services:
            sorted_services[name] = sorted(estate.services_of_users(instance))
        services = sorted_services[name]

        named = {
            service: _asks(estate, name, database, service)
            for service in instance.routes[database]
            if service is not None and service in instance.holders and is_users(service)
        }
        unnamed_service = next((service for service in services if service not in named), None)
        others_ask = unnamed_service is not None and _asks(estate, name, database, unnamed_service)
        total = sum(named.values()) + (len(services) - len(named)) * others_ask
        if total:
            asking = (service for service in services if named.get(service, others_ask))
            [route, *_] = instance.naming(database, BROKER_CONFIGURATION_SERVICE)
            sentence = "an open message for %s opens a route request, though this instance has the service"
            names = show_names(list(islice(asking, MOST_SHOWN)), total)
            yield finding("SBR033", (name, database), route.name, sentence, names)


def _asks(estate: LintEstate, instance: str, scope: str, service: str) -> bool:
    question = ProbeQuestion(instance, sender_of(scope), service, None)
    return any(search.asks for search in searches_of(estate, question))


def lost_requests(estate: LintEstate) -> Iterator[LintFinding]:
    """Find SBR043: every branch of a request has a known end, and no end is a BrokerConfiguration service.

    A database with its broker off asks for no route. The end behind a hop with unknown forwarding is unknown, and
    a request that itself asks for a route has no branch.
    """
    for instance, database in scopes_that_ask(estate):
        sender = estate.instances[instance]
        if not sender.is_enabled(database) or (database != ARRIVALS and database not in sender.databases):
            continue
        # One trace for each hash that matters.
        traces = list(trace_request(estate.network, estate.decisions.at, sender, database, estate.now))
        paths = [path for trace in traces for path in trace.hop_paths]
        is_known = paths and not any(trace.is_cut for trace in traces)
        if is_known and all(_is_lost(path, estate) for path in paths):
            ends = list_names(f"{path.instance} ({path.reason or path.ending})" for path in paths)
            sentence = "requests for routes end at %s: messages that ask for a route wait forever"
            yield finding("SBR043", (instance, database), paths[0].hops[0].route_name, sentence, ends)


def _is_lost(path: HopPath, estate: LintEstate) -> bool:
    if path.ending not in _STOPPED or path.instance is None:
        return False
    is_known = estate.instances[path.instance].is_forwarding_known
    return is_known or path.reason is not Reason.FORWARDING_DISABLED
