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


def open_to_several(estate: LintEstate, given: ProbeAnswers, proved: Hazards) -> Iterator[LintFinding]:
    """Find SBR018: routes without broker id that the transport may use in turn lead to several holders.

    Only places that the tables know can be judged; gateways do not hold the service and are no hazard. What is
    proved of the same scope and service is an error of its own, and not a warning as well.
    """
    for verdict in given.routes:
        service = verdict.asked.service
        if OpenChoice(*verdict.place, service or "") in proved:
            continue
        for leg in verdict.legs:
            if leg.step is not MatchingStep.SERVICE or not leg.alternatives:
                continue
            owners = owners_of(estate, leg, verdict.asked)
            targets = {name for name, owner in owners.items() if owner.holders_of(service)}
            if len(targets) > 1:
                said = "it and others without broker id lead to '%s' at %s"
                yield finding("SBR018", verdict.place, leg.route_name, said, service, list_names(targets))


def open_to_one(estate: LintEstate, walks: OpenMessageFollower) -> Iterator[LintFinding]:
    """Find SBR046: all messages of an open route are delivered at the only broker id of their service.

    Left alone: routes for requests, which carry no id, and mirrored ones, which need an id (SBR003).
    """
    sole = _sole_brokers(estate)
    taken: dict[OpenChoice, set[str]] = {}
    for instance, database, route in estate.live_routes:
        service = route.service
        if service not in sole or instance not in estate.listed or has_mirror(route):
            continue
        if step_of(MatchKey(service, None), route) is MatchingStep.SERVICE:
            taken.setdefault(OpenChoice(instance, database, service), set()).add(route.name or "")
    for choice, names in taken.items():
        traces = list(walks.traces(choice))
        if traces and all(_ends_at(walks, trace, sole[choice.service]) for trace in traces):
            hops = (way.hops[0] for trace in traces for way in trace.ways)
            # One that came back to its own instance is reported by a route of msdb.
            used = {hop.route_name for hop in hops if hop.scope == choice.scope}
            for name in names & used:
                said = "all that takes it ends at broker id %s, the only one that is known of '%s'"
                yield finding("SBR046", choice[:2], name, said, sole[choice.service], choice.service)


def _sole_brokers(estate: LintEstate) -> dict[str, str]:
    """Return the broker id of each service that databases of one id alone hold."""
    found: dict[str, set[str | None]] = {}
    for holder in estate.holders:
        if holder.service != BROKER_CONFIGURATION_SERVICE:
            found.setdefault(holder.service, set()).add(holder.database.broker)
    sole = {service: next(iter(brokers)) for service, brokers in found.items() if len(brokers) == 1}
    return {service: broker for service, broker in sole.items() if broker is not None}


def _ends_at(walks: OpenMessageFollower, trace: MessageTrace, broker: str) -> bool:
    """Return True if every way of a trace is delivered at a broker id."""
    targets = [walks.target(way) for way in trace.ways]
    return not trace.is_cut and all(target is not None and target[1] == broker for target in targets)
