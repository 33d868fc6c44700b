"""Lists inside a path, each bounded: databases that hold the service, ids of step 3, requests of step 4."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from routing import locating
from routing.analysis.explaining import candidates
from routing.analysis.explaining.lines import LOCATION, SHOWN, STEP, Line, part
from routing.analysis.explaining.searches import Search, searches
from routing.joining import bounded
from routing.terms import MatchingStep


def holder_lines(line: Line, traced: DataFrame, search: Search) -> DataFrame:
    """The databases that hold the service, and whether each could be the destination; at most `SHOWN`."""
    holder, destination = F.col("holder"), search.leg["destination"]
    has_id = F.size(locating.holders_of(F.array(holder), search.known)) > 0
    finding = (
        F.when(holder["name"] == destination, "LOCATED")
        .when(~has_id, "OTHER_BROKER_INSTANCE")
        .when(~holder["is_enabled"], "DISABLED")
        .when(has_id & holder["is_enabled"], "NOT_FIRST")
    )
    holders = F.slice("choice.trace.holders", 1, SHOWN)
    return (
        traced.where(search.locates)
        .withColumn("holder", F.explode(holders))
        .select(
            "question",
            line(
                part(search.number, LOCATION),
                "DATABASE",
                finding,
                rank=1,
                search=search.number,
                database_name=holder["name"],
                name=holder["name"],
                broker_instance=holder["broker"],
            ).alias("line"),
        )
    )


def searched(traced: DataFrame, search: Search) -> DataFrame:
    """The searches of this number, as `candidates.route_lines` takes them."""
    return traced.where(search.searches).select(
        "question",
        F.lit(search.number).alias("search"),
        "instance_name",
        search.scope.alias("scope"),
        F.col("to_service_name").alias("service"),
        search.broker.alias("broker"),
        F.col("decided_at").alias("t"),
        search.leg["step"].alias("winner"),
        search.stop.alias("stop"),
        search.leg["pick"].alias("pick"),
        search.leg["matches"]["name"].alias("names"),
        search.undecided.alias("undecided"),
    )


def id_lines(line: Line, possible: DataFrame, traced: DataFrame) -> DataFrame:
    """What becomes of the message for each broker id that step 3 may pick; at most `SHOWN` others."""
    balanced = int(MatchingStep.BALANCED)
    first, again = searches()
    number = F.when(first.leg["step"] == balanced, 1).when(again.leg["step"] == balanced, 2)
    picked = F.coalesce(first.leg["pick"], again.leg["pick"])
    asked = traced.where(~F.col("is_expired") & ~F.col("opens") & number.isNotNull()).select(
        "question", number.alias("number"), picked.alias("picked"), "undecided"
    )
    ids = possible.join(asked, "question", how="inner").withColumn(
        "is_picked", ~F.col("undecided") & (F.col("broker_instance") == F.col("picked"))
    )
    order = Window.partitionBy("question").orderBy(F.col("is_picked").desc(), "broker_instance")
    counted = ids.withColumn("nth", F.row_number().over(order)).withColumn(
        "of", F.count("*").over(Window.partitionBy("question"))
    )
    finding = F.when(F.col("undecided"), "POSSIBLE").when(F.col("is_picked"), "PICKED").otherwise("OTHER")
    place = {"search": F.col("number"), "step": balanced}
    where = F.col("number") * 10 + STEP
    # After the step's routes, this dialog's first.
    rank = len(candidates.RANKS) + 2
    shown = counted.where(F.col("nth") <= SHOWN).select(
        "question",
        line(
            where,
            "ID",
            finding,
            rank=F.when(F.col("is_picked"), rank).otherwise(rank + 1),
            **place,
            broker_instance=F.col("broker_instance"),
            name=F.col("route_name"),
            address=F.col("address"),
            database_name=F.col("destination_database"),
            outcome=F.col("outcome"),
            reason=F.col("reason"),
        ).alias("line"),
    )
    rest = counted.where(F.col("nth") == SHOWN + 1).select(
        "question",
        line(where, "OTHER_IDS", "MORE", rank=rank + 2, **place, count=F.col("of") - SHOWN).alias("line"),
    )
    return shown.unionByName(rest)


def request_lines(line: Line, traced: DataFrame, search: Search, requests: DataFrame) -> DataFrame:
    """The newest requests for the service in this scope, where step 4 was reached; not the message's own."""
    asked = traced.where(search.searches & search.leg["asks"]).select(
        "question",
        "instance_name",
        search.scope.alias("database_name"),
        F.col("to_service_name").alias("service"),
        F.col("message_id").alias("own_id"),
        "decided_at",
    )
    is_own = (F.col("message_id") == F.col("own_id")) & (F.col("requested_at") == F.col("decided_at"))
    found = requests.join(bounded(asked), ["instance_name", "database_name", "service"], how="inner")
    newest = Window.partitionBy("question").orderBy(F.col("requested_at").desc(), F.col("message_id").desc())
    nth = F.row_number().over(newest)
    return (
        found.where(~is_own)
        .withColumn("nth", nth)
        .where(F.col("nth") <= SHOWN)
        .select(
            "question",
            line(
                part(search.number, STEP),
                "REQUEST",
                F.when(F.col("ended_at").isNull(), "OPEN").otherwise("ENDED"),
                rank=F.col("nth") + len(candidates.RANKS) + 2,
                search=search.number,
                step=int(MatchingStep.ROUTE_REQUEST),
                name=F.col("message_id"),
                valid_from=F.col("requested_at"),
                valid_to=F.col("ended_at"),
            ).alias("line"),
        )
    )
