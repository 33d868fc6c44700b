"""Findings on what becomes of the questions of `probing`."""

from __future__ import annotations

from collections.abc import Iterator

from routing.features.lint.lint_estate import LintEstate
from routing.features.lint.lint_finding import LintFinding, finding, list_names
from routing.features.lint.probing import (
    ProbeAnswers,
    ProbeQuestion,
    ProbeVerdict,
    RouteReferrer,
    is_caught,
    searches_of,
)
from routing.rules.deciding import RouteSearch
from routing.terms import BROKER_CONFIGURATION_SERVICE, ERROR_NUMBERS, MatchingStep, Outcome, Reason

_NOT_HERE = (Reason.SERVICE_NOT_FOUND, Reason.BROKER_INSTANCE_NOT_FOUND)
_NO_WAY = (Reason.NO_ROUTE, *_NOT_HERE, Reason.TRANSPORT_ADDRESS_INVALID)


def answers(estate: LintEstate, probe_answers: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR021 to SBR025 and SBR040."""
    for verdict in probe_answers.arrivals:
        for search in verdict.searches:
            if verdict.by is not None:
                yield from routed_here(verdict, search, verdict.by)
            if verdict.asked.broker is None:
                yield from arrives_open(estate, verdict, search)
    for verdict in probe_answers.arriving:
        for search in verdict.searches:
            if search.end.reason is Reason.FORWARDING_DISABLED:
                yield not_forwarded(
                    verdict, search, is_known=estate.instances[verdict.asked.instance].is_forwarding_known
                )


def routed_here(verdict: ProbeVerdict, search: RouteSearch, by: RouteReferrer) -> Iterator[LintFinding]:
    """Find SBR021 and SBR022: arrivals match nothing in msdb, or LOCAL and no database has the service."""
    place, service, reason = verdict.place, verdict.asked.service, search.end.reason
    if search.asks:
        return
    if search.step is MatchingStep.NO_MATCH:
        sentence = "route %s of %s leads here, and no route of msdb matches"
        yield finding("SBR021", place, service, sentence, by.name, by.sender)
    elif reason in _NOT_HERE:
        sentence = "route %s of %s leads here, and is dropped here: %s"
        yield finding(
            "SBR022", place, service, sentence, by.name, by.sender, str(reason), number=ERROR_NUMBERS[reason]
        )


def not_forwarded(verdict: ProbeVerdict, search: RouteSearch, *, is_known: bool) -> LintFinding:
    """Find SBR025 and SBR040: a route of msdb leads on, and forwarding is off, or is taken to be off."""
    if is_known:
        return finding(
            "SBR025", verdict.place, search.route_name, "what arrives for it is dropped: forwarding is off"
        )
    sentence = "what arrives for it is dropped if forwarding is off, which is not known and taken as off"
    return finding("SBR040", verdict.place, search.route_name, sentence)


def arrives_open(estate: LintEstate, verdict: ProbeVerdict, search: RouteSearch) -> Iterator[LintFinding]:
    """Find SBR023 and SBR024: only a LOCAL route for any service delivers arrivals, or nothing matches.

    The service that is asked for routes is left alone: a route of msdb for it makes msdb ask.
    """
    place, service = verdict.place, verdict.asked.service
    if service == BROKER_CONFIGURATION_SERVICE:
        return
    if is_caught(search):
        yield finding("SBR023", place, service, "what arrives for it matches only route %s", search.route_name)
    if search.step is MatchingStep.NO_MATCH and verdict.by is None and not search.asks:
        sentence = "an open message that arrives for it is %s (%s)"
        if _takes_bound(estate, verdict.asked):
            sentence += "; bound to the broker id of a database that holds it, it is delivered"
        yield finding("SBR024", place, service, sentence, str(search.end.outcome), str(search.end.reason))


def _takes_bound(estate: LintEstate, asked: ProbeQuestion) -> bool:
    """Return True if a message that is bound to the id of a holder of its service is delivered."""
    brokers = {holder.broker for holder in estate.instances[asked.instance].holders_of(asked.service)} - {None}
    searches = (search for broker in brokers for search in searches_of(estate, asked._replace(broker=broker)))
    return any(search.end.outcome is Outcome.DELIVERED and not search.asks for search in searches)


def no_return(probe_answers: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR020: no service of a database that sends here can be answered.

    Which service opens a dialog is not in the tables, so that one way back is enough.
    """
    pairs: dict[tuple[tuple[str, str], tuple[str, str]], list[ProbeVerdict]] = {}
    for verdict in probe_answers.returns:
        if verdict.by is not None:
            pairs.setdefault((verdict.place, verdict.by[:2]), []).append(verdict)
    for (place, sender), verdicts in pairs.items():
        searches = [search for verdict in verdicts for search in verdict.searches]
        if all(search.end.reason in _NO_WAY and not search.asks for search in searches):
            services = {verdict.asked.service or "" for verdict in verdicts}
            reason = min((search.end.reason for search in searches), key=str)
            sentence = "%s sends here, and no route leads back to %s: %s"
            values = (".".join(sender), list_names(services), str(reason))
            yield finding("SBR020", place, min(services), sentence, *values, number=ERROR_NUMBERS.get(reason))
