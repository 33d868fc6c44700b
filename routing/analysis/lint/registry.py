"""Every family of findings, in one order; each is a named function from what is given to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from routing.analysis.lint import (
    addresses,
    answers,
    balancing,
    contract,
    identities,
    local_routes,
    loops,
    open_routes,
    route_requests,
    shadows,
    targets,
    traffic,
)
from routing.analysis.lint.balancing import BalancedService
from routing.analysis.lint.estate import Estate
from routing.analysis.lint.finding import Found
from routing.analysis.lint.hazards import Hazards
from routing.analysis.lint.probing import ProbeAnswers
from routing.analysis.lint.resolved import Changed, RouteName
from routing.analysis.lint.targets import OpenDialogsOf
from routing.analysis.lint.walks import Walks
from routing.storage.columns import Columns


@dataclass(frozen=True)
class Evidence:
    """What findings are made from.

    hazards: the choices of open dialogs that lead to several targets, proved by walks. used, changed, dialogs_of:
    what `resolved` tells of messages, None and empty where none are given. rows: those of routes that are looked
    at one by one.
    """

    estate: Estate
    answers: ProbeAnswers
    walks: Walks
    hazards: Hazards
    used: set[RouteName] | None
    changed: list[Changed]
    dialogs_of: OpenDialogsOf | None
    rows: Columns

    @cached_property
    def balanced(self) -> list[BalancedService]:
        """The services that several broker ids share."""
        return balancing.balanced_services(self.estate)


FAMILIES: dict[str, Callable[[Evidence], Iterable[Found]]] = {
    "route rows": lambda given: addresses.route_rows(given.estate, given.rows),
    "refused rows": lambda given: contract.refused_rows(given.estate),
    "broker ids": lambda given: identities.broker_ids(given.estate),
    "disabled brokers": lambda given: identities.disabled_brokers(given.estate),
    "doubled services": lambda given: identities.doubled_services(given.estate),
    "unbalanced routes": lambda given: balancing.unbalanced_routes(given.balanced),
    "doubled routes": lambda given: balancing.doubled_routes(given.balanced),
    "answers": lambda given: answers.answers(given.estate, given.answers),
    "returns": lambda given: answers.no_return(given.answers),
    "needless requests": lambda given: route_requests.needless_requests(given.answers),
    "lost requests": lambda given: route_requests.lost_requests(given.estate, given.walks),
    "local routes": lambda given: local_routes.lacking_services(given.answers),
    "services without a route": lambda given: local_routes.caught_services(given.estate, given.answers),
    "open routes": lambda given: open_routes.open_to_several(given.estate, given.answers, given.hazards),
    "open routes to one": lambda given: open_routes.open_to_one(given.estate, given.walks),
    "several targets": lambda given: targets.several_targets(given.walks, given.hazards, given.dialogs_of),
    "shadowed routes": lambda given: shadows.shadowed_routes(given.estate, given.answers, given.balanced),
    "loops": lambda given: loops.loops(given.estate, given.answers),
    "conversation groups": lambda given: (
        traffic.torn_groups(given.estate) if "dialogs" in given.estate.tables else ()
    ),
    "unused routes": lambda given: () if given.used is None else traffic.unused_routes(given.estate, given.used),
    "changed picks": lambda given: traffic.changed_picks(given.changed),
}


def find_all(given: Evidence) -> set[Found]:
    """The findings of all families."""
    return {one for family in FAMILIES.values() for one in family(given)}
