"""Findings on requests for routes: where a database asks although it need not, and where nobody is asked."""

from __future__ import annotations

from collections.abc import Iterator

from routing.features.lint.lint_estate import LintEstate
from routing.features.lint.lint_finding import LintFinding, finding, list_names
from routing.features.lint.open_messages import OpenMessageFollower
from routing.features.lint.probing import ProbeAnswers, scopes_that_ask
from routing.rules.estate import ARRIVALS
from routing.rules.ways import HopPath
from routing.terms import Ending, Reason

_STOPPED = (Ending.DELAYED, Ending.DROPPED, Ending.LOOP)


def needless_requests(given: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR033: step 4 comes before a LOCAL route for any service (D15)."""
    for verdict in given.asking:
        if any(leg.asks for leg in verdict.legs):
            said = "an open message for it opens a route request, though the service is in this instance"
            yield finding("SBR033", verdict.place, verdict.asked.service, said)


def lost_requests(estate: LintEstate, walks: OpenMessageFollower) -> Iterator[LintFinding]:
    """Find SBR043: every way of a request is known to its end, and none ends at a BrokerConfiguration service.

    A database whose broker is off asks for no route. Forwarding that is not known is no end, and a request
    that asks for a route itself has no way.
    """
    for instance, database in scopes_that_ask(estate):
        here = estate.instances[instance]
        if not here.is_enabled(database) or (database != ARRIVALS and database not in here.databases):
            continue
        traces = list(walks.traces_of_requests(instance, database))
        ways = [way for trace in traces for way in trace.ways]
        is_known = ways and not any(trace.is_cut for trace in traces)
        if is_known and all(_is_lost(way, estate) for way in ways):
            ends = list_names(f"{way.instance} ({way.reason or way.ending})" for way in ways)
            said = "requests for routes end at %s: what asks for a route waits for ever"
            yield finding("SBR043", (instance, database), ways[0].hops[0].route_name, said, ends)


def _is_lost(way: HopPath, estate: LintEstate) -> bool:
    """Return True if a way is known to its end, and nothing is delivered there."""
    if way.ending not in _STOPPED or way.instance is None:
        return False
    is_known = estate.instances[way.instance].is_forwarding_known
    return is_known or way.reason is not Reason.FORWARDING_DISABLED
