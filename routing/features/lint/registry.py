"""Every family of findings, in one order; each is a named function from what is given to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from routing.features.lint import (
    addresses,
    balanced_routes,
    contract,
    identities,
    local_routes,
    loops,
    open_routes,
    probe_findings,
    route_requests,
    shadows,
    targets,
    traffic_findings,
)
from routing.features.lint.balanced_routes import BalancedService
from routing.features.lint.hazards import Hazards
from routing.features.lint.lint_estate import LintEstate
from routing.features.lint.lint_finding import LintFinding
from routing.features.lint.open_messages import OpenMessageFollower
from routing.features.lint.probing import ProbeAnswers
from routing.features.lint.resolved import RebalancedDialogs, RouteName
from routing.features.lint.targets import OpenDialogsOf
from routing.tables.table_columns import TableColumns


@dataclass(frozen=True)
class LintEvidence:
    """The facts that findings are made from.

    hazards: the choices of open dialogs that lead to several targets, proved by walks. used, changed, dialogs_of:
    what `resolved` tells of messages, None and empty where none are given. rows: those of routes that are looked
    at one by one.
    """

    estate: LintEstate
    answers: ProbeAnswers
    walks: OpenMessageFollower
    hazards: Hazards
    used: set[RouteName] | None
    changed: list[RebalancedDialogs]
    dialogs_of: OpenDialogsOf | None
    rows: TableColumns

    @cached_property
    def balanced(self) -> list[BalancedService]:
        """The services that several broker ids share."""
        return balanced_routes.balanced_services(self.estate)


FAMILIES: dict[str, Callable[[LintEvidence], Iterable[LintFinding]]] = {
    "route rows": lambda given: addresses.route_rows(given.estate, given.rows),
    "refused rows": lambda given: contract.refused_rows(given.estate),
    "broker ids": lambda given: identities.broker_ids(given.estate),
    "disabled brokers": lambda given: identities.disabled_brokers(given.estate),
    "doubled services": lambda given: identities.doubled_services(given.estate),
    "unbalanced routes": lambda given: balanced_routes.unbalanced_routes(given.balanced),
    "doubled routes": lambda given: balanced_routes.doubled_routes(given.balanced),
    "answers": lambda given: probe_findings.answers(given.estate, given.answers),
    "returns": lambda given: probe_findings.no_return(given.answers),
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
        traffic_findings.torn_groups(given.estate) if "dialogs" in given.estate.tables else ()
    ),
    "unused routes": lambda given: (
        () if given.used is None else traffic_findings.unused_routes(given.estate, given.used)
    ),
    "changed picks": lambda given: traffic_findings.changed_picks(given.changed),
}


def find_all(given: LintEvidence) -> set[LintFinding]:
    """Return the findings of all families."""
    return {one for family in FAMILIES.values() for one in family(given)}
