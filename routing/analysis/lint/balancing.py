"""Load-balancing routes that no open dialog reaches."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing.analysis.lint.estate import Estate
from routing.analysis.lint.finding import exploded, found, listed
from routing.matching import Bound, Route, first_step, matching_step
from routing.terms import MatchingStep


def unbalanced(estate: Estate) -> DataFrame:
    """SBR017: an open message's search ends with a route without broker id, before several ids are balanced.

    One finding for each such route.
    """
    open_message = Bound(F.col("service"), F.lit(None).cast("string"))
    step = matching_step(open_message, Route(F.col("service"), F.col("broker")))
    grouped = (
        estate.settings.routes.where(F.col("service").isNotNull())
        .groupBy("instance_name", "database_name", "service")
        .agg(F.collect_list(F.struct("name", "broker", step.alias("step"))).alias("routes"))
    )
    balanced = F.filter("routes", lambda r: r["step"] == int(MatchingStep.BALANCED))
    opened = F.filter("routes", lambda r: r["step"] == int(MatchingStep.SERVICE))
    ids = F.array_distinct(balanced["broker"])
    shadowed = grouped.where(
        (first_step(F.col("routes")["step"]) == int(MatchingStep.SERVICE)) & (F.size(ids) > 1)
    ).select(
        "instance_name", "database_name", "service", balanced.alias("balanced"), F.explode(opened).alias("open")
    )
    return exploded(
        shadowed,
        [
            found(
                "SBR017",
                F.lit(True),
                F.col("open.name"),
                "open dialogs to '%s' take it and never %s",
                F.col("service"),
                listed(F.col("balanced")["name"]),
            )
        ],
    )
