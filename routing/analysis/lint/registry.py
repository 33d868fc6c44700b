"""Every family of findings, in one order; each is a named function from what is given to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from routing.analysis.lint import (
    addresses,
    answers,
    balancing,
    contract,
    identities,
    loops,
    shadows,
    targets,
    traffic,
)
from routing.analysis.lint.estate import Estate
from routing.analysis.lint.finding import Found
from routing.analysis.lint.hazards import Hazards
from routing.analysis.lint.probing import Answers
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
    answers: Answers
    walks: Walks
    hazards: Hazards
    used: set[RouteName] | None
    changed: list[Changed]
    dialogs_of: OpenDialogsOf | None
    rows: Columns


FAMILIES: dict[str, Callable[[Evidence], Iterable[Found]]] = {
    "route rows": lambda given: addresses.route_rows(given.estate, given.rows),
    "refused rows": lambda given: contract.refused_rows(given.estate),
    "broker ids": lambda given: identities.broker_ids(given.estate),
    "disabled brokers": lambda given: identities.disabled_brokers(given.estate),
    "doubled services": lambda given: identities.doubled_services(given.estate),
    "balancing": lambda given: balancing.unbalanced_routes(given.estate),
    "answers": lambda given: answers.answers(given.estate, given.answers),
    "returns": lambda given: answers.no_return(given.answers),
    "open routes": lambda given: shadows.open_to_several(given.estate, given.answers, given.hazards),
    "several targets": lambda given: targets.several_targets(given.walks, given.hazards, given.dialogs_of),
    "shadowed routes": lambda given: shadows.shadowed_routes(given.estate, given.answers),
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
