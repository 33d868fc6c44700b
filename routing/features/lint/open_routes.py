"""Routes without broker id: those that several instances of a service answer, and those that only one does."""

from __future__ import annotations

from collections.abc import Iterator

from routing.features.lint.hazards import Hazards
from routing.features.lint.lint_estate import LintEstate
from routing.features.lint.lint_finding import LintFinding, finding, list_names
from routing.features.lint.open_messages import OpenChoice, OpenMessageFollower
from routing.features.lint.probing import ProbeAnswers, owners_of
from routing.rules.choosing import has_mirror
from routing.rules.matching import MatchKey, step_of
from routing.rules.ways import MessageTrace
from routing.terms import BROKER_CONFIGURATION_SERVICE, MatchingStep


def open_to_several(estate: LintEstate, probe_answers: ProbeAnswers, proved: Hazards) -> Iterator[LintFinding]:
    """Find SBR018: routes without broker id that the transport may use in turn lead to several holders.

    Only places that the tables know can be judged; gateways do not hold the service and are no hazard. What is
    proved of the same scope and service is an error of its own, and not a warning as well.
    """
    for verdict in probe_answers.routes:
        service = verdict.asked.service
        if OpenChoice(*verdict.place, service or "") in proved:
            continue
        for search in verdict.searches:
            if search.step is not MatchingStep.SERVICE or not search.alternatives:
                continue
            owners = owners_of(estate, search, verdict.asked)
            targets = {name for name, owner in owners.items() if owner.holders_of(service)}
            if len(targets) > 1:
                sentence = "it and others without broker id lead to '%s' at %s"
                yield finding("SBR018", verdict.place, search.route_name, sentence, service, list_names(targets))


def open_to_one(estate: LintEstate, follower: OpenMessageFollower) -> Iterator[LintFinding]:
    """Find SBR046: all messages of an open route are delivered at the only broker id of their service.

    Left alone: routes for requests, which carry no id, and mirrored ones, which need an id (SBR003).
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
            hops = (path.hops[0] for trace in traces for path in trace.ways)
            # One that came back to its own instance is reported by a route of msdb.
            used = {hop.route_name for hop in hops if hop.scope == choice.scope}
            for name in names & used:
                sentence = "all that takes it ends at broker id %s, the only one that is known of '%s'"
                yield finding("SBR046", choice[:2], name, sentence, sole[choice.service], choice.service)


def _sole_brokers(estate: LintEstate) -> dict[str, str]:
    """Return the broker id of each service that databases of one id alone hold."""
    brokers_by_service: dict[str, set[str | None]] = {}
    for holder in estate.holders:
        if holder.service != BROKER_CONFIGURATION_SERVICE:
            brokers_by_service.setdefault(holder.service, set()).add(holder.database.broker)
    sole = {service: next(iter(brokers)) for service, brokers in brokers_by_service.items() if len(brokers) == 1}
    return {service: broker for service, broker in sole.items() if broker is not None}


def _ends_at(follower: OpenMessageFollower, trace: MessageTrace, broker: str) -> bool:
    """Return True if every way of a trace is delivered at a broker id."""
    targets = [follower.target(path) for path in trace.ways]
    return not trace.is_cut and all(target is not None and target[1] == broker for target in targets)
