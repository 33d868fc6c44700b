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


def needless_requests(probe_answers: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR033: step 4 comes before a LOCAL route for any service (D15)."""
    for verdict in probe_answers.asking:
        if any(search.asks for search in verdict.searches):
            sentence = "an open message for it opens a route request, though the service is in this instance"
            yield finding("SBR033", verdict.place, verdict.asked.service, sentence)


def lost_requests(estate: LintEstate, follower: OpenMessageFollower) -> Iterator[LintFinding]:
    """Find SBR043: every way of a request is known to its end, and none ends at a BrokerConfiguration service.

    A database whose broker is off asks for no route. Forwarding that is not known is no end, and a request
    that asks for a route itself has no way.
    """
    for instance, database in scopes_that_ask(estate):
        here = estate.instances[instance]
        if not here.is_enabled(database) or (database != ARRIVALS and database not in here.databases):
            continue
        traces = list(follower.traces_of_requests(instance, database))
        paths = [path for trace in traces for path in trace.ways]
        is_known = paths and not any(trace.is_cut for trace in traces)
        if is_known and all(_is_lost(path, estate) for path in paths):
            ends = list_names(f"{path.instance} ({path.reason or path.ending})" for path in paths)
            sentence = "requests for routes end at %s: what asks for a route waits for ever"
            yield finding("SBR043", (instance, database), paths[0].hops[0].route_name, sentence, ends)


def _is_lost(path: HopPath, estate: LintEstate) -> bool:
    """Return True if a way is known to its end, and nothing is delivered there."""
    if path.ending not in _STOPPED or path.instance is None:
        return False
    is_known = estate.instances[path.instance].is_forwarding_known
    return is_known or path.reason is not Reason.FORWARDING_DISABLED
