"""The routes of a searched table, each with why it did or did not match: lines of item ROUTE.

Whether a route matches is asked of the rules' own predicates (`matching`, `intervals`); what this room adds is
how near a route came that did not.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routing import intervals, matching, text
from routing.analysis.explaining.lines import REST, SHOWN, STEP, Line
from routing.joining import bounded
from routing.terms import BLANKS, MatchingStep

# What a route's line finds, in the order in which a step lists them.
MATCHED, EQUAL, NOT_PICKED, NO_MATCH, LATER = "MATCHED", "EQUAL", "NOT_PICKED", "NO_MATCH", "LATER"
RANKS = (MATCHED, EQUAL, NOT_PICKED, NO_MATCH, LATER)
# Why a route did not match.
CASE, AROUND, SLASH = "NAME_CASE", "NAME_BLANKS", "NAME_SLASH"
OTHER_SERVICE, OTHER_BROKER, NO_SERVICE = "OTHER_SERVICE", "OTHER_BROKER_INSTANCE", "NO_SERVICE_NAME"
EXPIRED, NOT_YET = "EXPIRED", "NOT_YET_VALID"
_EDGE = f"{BLANKS}/"


def differences(asked: Column, named: Column) -> Column:
    """How a route's service name differs from the message's (array of text), empty where it does not.

    CASE, AROUND and SLASH for names that are the same but for case, blanks around or slashes after;
    OTHER_SERVICE alone for all others.
    """
    asked_core, named_core = _core(asked), _core(named)
    asked_edge, named_edge = _slashes(asked), _slashes(named)
    found = F.array_compact(
        F.array(
            F.when(asked_core != named_core, CASE),
            F.when(_blanks(asked) != _blanks(named), AROUND),
            F.when(asked_edge != named_edge, SLASH),
        )
    )
    alike = F.lower(asked_core) == F.lower(named_core)
    return F.when(alike, found).otherwise(F.array(F.lit(OTHER_SERVICE)))


def _core(name: Column) -> Column:
    """A name without the blanks around it and the blanks and slashes after."""
    return text.ltrim(text.rtrim(name, _EDGE), BLANKS)


def _edges(name: Column) -> Column:
    """What `_core` leaves out, a bar between what was before and after."""
    before = F.regexp_extract(name, rf"\A([{BLANKS}]*)", 1)
    after = name.substr(F.length(text.rtrim(name, _EDGE)) + 1, F.length(name))
    return F.concat(before, F.lit("|"), after)


def _blanks(name: Column) -> Column:
    return F.replace(_edges(name), F.lit("/"), F.lit(""))


def _slashes(name: Column) -> Column:
    return F.regexp_replace(_edges(name), f"[{BLANKS}]", "")


def is_live(live_from: Column, live_to: Column, t: Column) -> Column:
    """Whether a route is in force at a moment: it covers the microsecond that begins then."""
    route = F.array(F.struct(live_from.alias("live_from"), live_to.alias("live_to")))
    return F.size(intervals.in_force(route, t, t + F.expr("INTERVAL '0.000001' SECOND"))) > 0


def route_lines(line: Line, searches: DataFrame, routes: DataFrame) -> DataFrame:
    """question and line for every route near the message, and for how many others there are.

    ``searches``: question, search, instance_name, scope, service, broker (null while open), t, winner (the
    step that won), stop (the step that ended the search, 4 where a route was asked for), pick, names (of the
    matches that count), undecided. ``routes`` is `Configuration.routes`; thousands in one scope are fine.
    """
    judged = _judged(searches, routes)
    order = ("near_first", "rank", "name", "live_from", "live_to", "address")
    nth = F.row_number().over(Window.partitionBy("question", "search", "home").orderBy(*order))
    placed = judged.withColumn("shown", F.col("near") & (nth <= SHOWN))
    where = F.col("search") * 10 + STEP
    shown = placed.where("shown").select(
        "question",
        line(
            where,
            "ROUTE",
            F.col("finding"),
            rank=F.col("rank"),
            search=F.col("search"),
            step=F.col("home"),
            name=F.col("name"),
            reasons=F.when(F.size("reasons") > 0, F.col("reasons")),
            service_name=F.col("service"),
            broker_instance=F.col("route_broker"),
            address=F.col("address"),
            mirror_address=F.col("mirror_address"),
            valid_from=F.col("live_from"),
            valid_to=F.col("live_to"),
            at=F.when(F.array_contains("reasons", EXPIRED), F.col("live_to")).when(
                F.array_contains("reasons", NOT_YET), F.col("live_from")
            ),
        ).alias("line"),
    )
    # Near ones that were cut belong to their step, the far ones to none: they stand after all steps.
    step = F.when(F.col("near"), F.col("home")).alias("step")
    rest = placed.where(~F.col("shown")).groupBy("question", "search", step).agg(F.count("*").alias("n"))
    is_far = F.col("step").isNull()
    left_out = rest.select(
        "question",
        line(
            F.col("search") * 10 + F.when(is_far, REST).otherwise(STEP),
            "OTHER_ROUTES",
            F.when(is_far, "OTHER").otherwise("MORE"),
            rank=len(RANKS) + 1,
            search=F.col("search"),
            step=F.col("step"),
            count=F.col("n"),
        ).alias("line"),
    )
    return shown.unionByName(left_out)


def _judged(searches: DataFrame, routes: DataFrame) -> DataFrame:
    """Every route of each searched scope with home (the step it belongs to), finding, reasons and near."""
    scoped = routes.withColumnsRenamed(
        {"database_name": "scope", "service": "route_service", "broker": "route_broker"}
    )
    joined = scoped.join(bounded(searches), ["instance_name", "scope"], how="inner")
    message = matching.Bound(F.col("service"), F.col("broker"))
    route = matching.Route(F.col("route_service"), F.col("route_broker"))
    # The step in which the route would match a message that asks for just what it names.
    wanted = F.when(message.broker.isNotNull(), F.coalesce(route.broker, message.broker))
    itself = matching.matching_step(matching.Bound(route.service, wanted), route)
    stepped = joined.withColumns(
        {
            "actual": matching.matching_step(message, route),
            "itself": itself,
            "live": is_live(F.col("live_from"), F.col("live_to"), F.col("t")),
            "is_named": F.coalesce(matching.names_service(message, route), F.lit(False)),
        }
    ).withColumn("home", F.coalesce("actual", "itself", F.lit(int(MatchingStep.ANY_SERVICE))))
    found = stepped.withColumn("reasons", _reasons()).withColumn("finding", _finding())
    far = F.array_contains("reasons", OTHER_SERVICE) | (
        (F.col("finding") == NO_MATCH) & (F.col("home") > F.col("stop"))
    )
    ranks = [F.when(F.col("finding") == name, rank) for rank, name in enumerate(RANKS)]
    return (
        found.withColumn("near", ~far)
        .withColumn("rank", F.coalesce(*ranks) + 1)
        .withColumn("near_first", F.when(far, 1).otherwise(0))
        .drop("service")
        .withColumnRenamed("route_service", "service")
    )


def _reasons() -> Column:
    """Why a route does not match at the moment of the decision; empty where it does."""
    unmatched = F.col("actual").isNull()
    has_service = F.col("route_service").isNotNull()
    other_name = unmatched & has_service & ~F.col("is_named")
    nothing = F.array().cast("array<string>")
    name = F.when(other_name, differences(F.col("service"), F.col("route_service"))).otherwise(nothing)
    others = F.array_compact(
        F.array(
            F.when(unmatched & F.col("is_named"), OTHER_BROKER),
            F.when(unmatched & ~has_service, NO_SERVICE),
            F.when(~F.col("live") & F.coalesce(F.col("live_from") > F.col("t"), F.lit(False)), NOT_YET),
            F.when(~F.col("live") & ~F.coalesce(F.col("live_from") > F.col("t"), F.lit(False)), EXPIRED),
        )
    )
    return F.concat(name, others)


def _finding() -> Column:
    """What became of a route."""
    matches = (F.size("reasons") == 0) & F.col("actual").isNotNull()
    at_step = matches & (F.col("actual") == F.col("winner")) & (F.col("actual") <= F.col("stop"))
    asked = matches & (F.col("actual") == int(MatchingStep.ROUTE_REQUEST)) & (F.col("stop") >= F.col("actual"))
    other_id = F.coalesce(F.col("route_broker") != F.col("pick"), F.lit(False))
    counts = F.col("undecided") | F.array_contains("names", F.col("name"))
    return (
        F.when(~matches, NO_MATCH)
        .when(asked, MATCHED)
        .when(at_step & other_id & ~F.col("undecided"), NOT_PICKED)
        .when(at_step & counts, MATCHED)
        .when(at_step & ~counts, EQUAL)
        .when(matches & ~at_step, LATER)
    )
