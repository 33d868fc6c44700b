"""Load-balancing routes that no open dialog reaches."""

from __future__ import annotations

from collections.abc import Iterator

from routing.analysis.lint.estate import Estate
from routing.analysis.lint.finding import Found, finding, list_names
from routing.rules.estate import Route
from routing.rules.matching import Bound, step_of
from routing.terms import MatchingStep


def unbalanced_routes(estate: Estate) -> Iterator[Found]:
    """SBR017: an open message's search ends with a route without broker id, before several ids are balanced.

    One finding for each such route.
    """
    grouped: dict[tuple[str, str, str], dict[MatchingStep, list[Route]]] = {}
    for instance, database, route in estate.live_routes:
        if route.service is not None:
            step = step_of(Bound(route.service, None), route)
            if step is not None:
                by_step = grouped.setdefault((instance, database, route.service), {})
                by_step.setdefault(step, []).append(route)
    for (instance, database, service), by_step in grouped.items():
        balanced = by_step.get(MatchingStep.BALANCED, [])
        if len({route.broker for route in balanced}) > 1:
            never = list_names(route.name or "" for route in balanced)
            for route in by_step.get(MatchingStep.SERVICE, []):
                said = "open dialogs to '%s' take it and never %s"
                yield finding("SBR017", (instance, database), route.name, said, service, never)
