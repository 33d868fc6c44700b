"""Every family of findings, in one order; each is a named function from frames to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame

from routing.analysis.lint import answers, balancing, contract, identities, loops, route_rows, shadows, traffic
from routing.analysis.lint.estate import Estate


@dataclass(frozen=True)
class Evidence:
    """What findings are made from.

    verdicts: what `probing.verdicts` gives. resolved: rows of ``resolved_routes`` and used: the routes that
    they used, both None where no messages are given.
    """

    estate: Estate
    verdicts: DataFrame
    resolved: DataFrame | None = None
    used: DataFrame | None = None


Family = Callable[[Evidence], "DataFrame | None"]

FAMILIES: dict[str, Family] = {
    "route rows": lambda given: route_rows.route_rows(given.estate),
    "refused rows": lambda given: contract.refused_rows(given.estate),
    "broker ids": lambda given: identities.broker_ids(given.estate),
    "disabled brokers": lambda given: identities.disabled_brokers(given.estate),
    "doubled services": lambda given: identities.doubled_services(given.estate),
    "balancing": lambda given: balancing.unbalanced(given.estate),
    "answers": lambda given: answers.answers(given.estate, given.verdicts),
    "returns": lambda given: answers.no_return(given.estate, given.verdicts),
    "open routes": lambda given: shadows.open_to_several(given.estate, given.verdicts),
    "shadowed routes": lambda given: shadows.shadowed(given.estate, given.verdicts),
    "loops": lambda given: loops.loops(given.estate, given.verdicts),
    "conversation groups": lambda given: (
        traffic.torn_groups(given.estate) if "dialogs" in given.estate.tables else None
    ),
    "unused routes": lambda given: None if given.used is None else traffic.unused(given.estate, given.used),
    "changed picks": lambda given: None if given.resolved is None else traffic.changed_picks(given.resolved),
}


def all_found(given: Evidence) -> DataFrame:
    """The findings of all families (columns `finding.FOUND`); a finding may stand twice."""
    return reduce(DataFrame.unionByName, _parts(given))


def _parts(given: Evidence) -> Iterator[DataFrame]:
    for family in FAMILIES.values():
        part = family(given)
        if part is not None:
            yield part
