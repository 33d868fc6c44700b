"""Findings on LOCAL routes of databases: one that names what nobody here holds, services that none names."""

from __future__ import annotations

from collections.abc import Iterator

from routing.features.lint.lint_estate import LintEstate, is_users
from routing.features.lint.lint_finding import LintFinding, finding
from routing.features.lint.probing import ProbeAnswers, is_caught
from routing.terms import BROKER_CONFIGURATION_SERVICE, Outcome, Reason


def lacking_services(given: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR044: messages on a LOCAL route find no database of the instance that holds the service.

    Left alone: an id that is not here (SBR015), requests for routes (SBR043), services that every database holds.
    """
    for verdict in given.local:
        service = verdict.asked.service or ""
        if service == BROKER_CONFIGURATION_SERVICE or not is_users(service):
            continue
        for leg in verdict.legs:
            if leg.end.reason is Reason.SERVICE_NOT_FOUND and leg.known_broker == verdict.asked.broker:
                said = "no database of %s holds '%s': what takes the route is %s"
                values = (verdict.asked.instance, service, str(leg.end.outcome))
                yield finding("SBR044", verdict.place, leg.route_name, said, *values)


def caught_services(estate: LintEstate, given: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR045: open messages to a service of the same instance depend on routes for any service.

    One finding for each service that no database's route leads to by its name, under the first that holds it.
    """
    named = {
        (verdict.asked.instance, verdict.asked.service)
        for verdict in given.local
        if verdict.asked.database is not None and verdict.asked.broker is None
        if any(leg.end.outcome is Outcome.DELIVERED and not leg.asks for leg in verdict.legs)
    }
    for verdict in given.catching:
        instance, database, service, _ = verdict.asked
        if (instance, service) in named:
            continue
        for leg in filter(is_caught, verdict.legs):
            holder = estate.instances[instance].holders_of(service)[0].name
            said = "what databases of %s send to it matches only routes for any service, such as %s of %s"
            yield finding("SBR045", (instance, holder), service, said, instance, leg.route_name, database)
