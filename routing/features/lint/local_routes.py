"""Findings on LOCAL routes of databases: one that names what nobody here holds, services that none names."""

from __future__ import annotations

from collections.abc import Iterator

from routing.features.lint.lint_estate import LintEstate, is_users
from routing.features.lint.lint_finding import LintFinding, finding
from routing.features.lint.probing import ProbeAnswers, is_caught
from routing.terms import BROKER_CONFIGURATION_SERVICE, Outcome, Reason


def lacking_services(probe_answers: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR044: messages on a LOCAL route find no database of the instance that holds the service.

    Left alone: an id that is not here (SBR015), requests for routes (SBR043), services that every database holds.
    """
    for verdict in probe_answers.local:
        service = verdict.asked.service or ""
        if service == BROKER_CONFIGURATION_SERVICE or not is_users(service):
            continue
        for search in verdict.searches:
            if search.end.reason is Reason.SERVICE_NOT_FOUND and search.known_broker == verdict.asked.broker:
                sentence = "no database of %s holds '%s': what takes the route is %s"
                values = (verdict.asked.instance, service, str(search.end.outcome))
                yield finding("SBR044", verdict.place, search.route_name, sentence, *values)


def caught_services(estate: LintEstate, probe_answers: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR045: open messages to a service of the same instance depend on routes for any service.

    One finding for each service that no database's route leads to by its name, under the first that holds it.
    """
    named = {
        (verdict.asked.instance, verdict.asked.service)
        for verdict in probe_answers.local
        if verdict.asked.database is not None and verdict.asked.broker is None
        if any(search.end.outcome is Outcome.DELIVERED and not search.asks for search in verdict.searches)
    }
    for verdict in probe_answers.catching:
        instance, database, service, _ = verdict.asked
        if (instance, service) in named:
            continue
        for search in filter(is_caught, verdict.searches):
            holder = estate.instances[instance].holders_of(service)[0].name
            sentence = "what databases of %s send to it matches only routes for any service, such as %s of %s"
            yield finding("SBR045", (instance, holder), service, sentence, instance, search.route_name, database)
