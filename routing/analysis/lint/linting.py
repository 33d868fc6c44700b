"""Lint a configuration: from tables to findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.analysis.lint import probing, registry, traffic
from routing.analysis.lint.catalogue import FINDINGS
from routing.analysis.lint.estate import estate_of
from routing.analysis.lint.finding import SHAPE
from routing.analysis.lint.options import DEFAULT_DAYS, Suppression
from routing.conform import conform, in_shape
from routing.errors import InputError
from routing.keeping import Keeper, released_on_failure
from routing.schemas import OPTIONAL_INPUTS

READ = ("routes", "databases", "services", "instances", "dialogs", "route_requests")
"""The tables that findings are made from."""


@dataclass(frozen=True)
class Lint:
    """What `lint` returns; all frames are in the order in which they are printed.

    findings, suppressed: columns code, severity, instance_name, database_name, object, message, advice,
    error_number. coverage: instance_name, routes, used; None where no resolved messages were given. They share
    small frames that the session keeps until `unpersist`.
    """

    findings: DataFrame
    suppressed: DataFrame
    coverage: DataFrame | None
    kept: Keeper = field(default_factory=Keeper)

    def unpersist(self) -> None:
        """Let go of what was kept for these frames."""
        self.kept.release()


def lint(
    spark: SparkSession,
    tables: Mapping[str, DataFrame],
    *,
    now: datetime,
    expiring_within_days: int = DEFAULT_DAYS,
    suppress: Sequence[Suppression] = (),
    resolved: DataFrame | None = None,
) -> Lint:
    """Faults and hazards of a configuration at one moment.

    ``tables`` maps routes, databases, services, instances and, where there are any, dialogs and
    route_requests to DataFrames (tables.md); they may hold rows that `resolve` refuses. ``now`` is UTC where
    it has no zone. ``resolved`` are rows of ``resolved_routes``: with them routes that no message used
    (SBR028) and dialogs whose pick changed (SBR039) are found, and coverage is known. The work is done at
    once; no table is collected. Raises InputError where a table or column is missing.
    """
    moment = now if now.tzinfo else now.replace(tzinfo=timezone.utc)
    with released_on_failure() as keeper:
        # Every family of findings reads these: each scan of a table is planned anew, files and all.
        conformed = {key: keeper.cached(frame) for key, frame in _conformed(tables).items()}
        given = estate_of(conformed, moment, expiring_within_days)
        given = replace(given, settings=replace(given.settings, routes=keeper.cached(given.settings.routes)))
        verdicts = keeper.keep(probing.verdicts(given))
        used = None if resolved is None else keeper.keep(traffic.used_routes(resolved))
        evidence = registry.Evidence(given, verdicts, resolved, used)
        judged = keeper.keep(_judged(registry.all_found(evidence), suppress))
    return Lint(
        findings=_ordered(judged.where(~F.col("is_suppressed"))),
        suppressed=_ordered(judged.where("is_suppressed")),
        coverage=None if used is None else traffic.coverage(given.tables["routes"], used).orderBy("instance_name"),
        kept=keeper,
    )


def _conformed(tables: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    missing = [key for key in READ if key not in tables and key not in OPTIONAL_INPUTS]
    if missing:
        raise InputError(f"input tables are missing: {', '.join(missing)}", "give a DataFrame for each")
    return {key: conform(tables[key], key) for key in READ if key in tables}


def _judged(found: DataFrame, suppress: Sequence[Suppression]) -> DataFrame:
    """Distinct findings in their full columns, and is_suppressed."""
    facts = F.create_map(
        *(
            part
            for f in FINDINGS
            for part in (
                F.lit(f.code),
                F.struct(F.lit(str(f.severity)).alias("severity"), F.lit(f.advice).alias("advice")),
            )
        )
    )
    known = found.distinct().withColumn("facts", F.element_at(facts, F.col("code")))
    values = {"severity": F.col("facts.severity"), "advice": F.col("facts.advice")}
    full = in_shape(known, SHAPE, values)
    return full.withColumn("is_suppressed", _is_suppressed(suppress))


def _is_suppressed(suppress: Sequence[Suppression]) -> Column:
    """Whether a suppression's every given part is the finding's."""
    return reduce(Column.__or__, (_covers(one) for one in suppress), F.lit(False))


def _covers(one: Suppression) -> Column:
    parts = (F.col(name).eqNullSafe(F.lit(value)) for name, value in vars(one).items() if value is not None)
    return reduce(Column.__and__, parts)


def _ordered(findings: DataFrame) -> DataFrame:
    return findings.select(*SHAPE.names).orderBy(*SHAPE.names)
