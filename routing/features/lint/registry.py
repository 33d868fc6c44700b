"""Every family of findings, in one order; each is a named function from the evidence to findings."""

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

    hazards: the choices of open dialogs that lead to several targets, proved by following messages. used, changed,
    dialogs_of: what `resolved` tells of messages, None and empty where none are given. rows: those of routes that
    are looked at one by one.
    """

    estate: LintEstate
    answers: ProbeAnswers
    follower: OpenMessageFollower
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
    "route rows": lambda evidence: addresses.route_rows(evidence.estate, evidence.rows),
    "refused rows": lambda evidence: contract.refused_rows(evidence.estate),
    "broker ids": lambda evidence: identities.broker_ids(evidence.estate),
    "disabled brokers": lambda evidence: identities.disabled_brokers(evidence.estate),
    "doubled services": lambda evidence: identities.doubled_services(evidence.estate),
    "unbalanced routes": lambda evidence: balanced_routes.unbalanced_routes(evidence.balanced),
    "doubled routes": lambda evidence: balanced_routes.doubled_routes(evidence.balanced),
    "answers": lambda evidence: probe_findings.answers(evidence.estate, evidence.answers),
    "returns": lambda evidence: probe_findings.no_return(evidence.answers),
    "needless requests": lambda evidence: route_requests.needless_requests(evidence.answers),
    "lost requests": lambda evidence: route_requests.lost_requests(evidence.estate, evidence.follower),
    "local routes": lambda evidence: local_routes.lacking_services(evidence.answers),
    "services without a route": lambda evidence: local_routes.caught_services(evidence.estate, evidence.answers),
    "open routes": lambda evidence: open_routes.open_to_several(
        evidence.estate, evidence.answers, evidence.hazards
    ),
    "open routes to one": lambda evidence: open_routes.open_to_one(evidence.estate, evidence.follower),
    "several targets": lambda evidence: targets.several_targets(
        evidence.follower, evidence.hazards, evidence.dialogs_of
    ),
    "shadowed routes": lambda evidence: shadows.shadowed_routes(
        evidence.estate, evidence.answers, evidence.balanced
    ),
    "loops": lambda evidence: loops.loops(evidence.estate, evidence.answers),
    "conversation groups": lambda evidence: (
        traffic_findings.torn_groups(evidence.estate) if "dialogs" in evidence.estate.tables else ()
    ),
    "unused routes": lambda evidence: (
        () if evidence.used is None else traffic_findings.unused_routes(evidence.estate, evidence.used)
    ),
    "changed picks": lambda evidence: traffic_findings.changed_picks(evidence.changed),
}


def find_all(evidence: LintEvidence) -> set[LintFinding]:
    """Return the findings of all families."""
    return {one for family in FAMILIES.values() for one in family(evidence)}
