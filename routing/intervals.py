"""The times between which the routing of a key stays the same (rule book, section 0: routes in force).

Candidates are an array of the routes that may match a key, each with live_from, live_to and returned (true for
the msdb routes that count only once a message has come back). All functions here are Column → Column.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from routing.matching import Bound, Route, matching_step
from routing.terms import MatchingStep


def step_of(candidate: Column, message: Bound) -> Column:
    """The step in which a candidate matches (int), null for none."""
    return matching_step(message, Route(candidate["service"], candidate["broker"]))


def spans(candidates: Column, message: Bound) -> Column:
    """The half-open intervals of a key, in order: array of struct(valid_from, valid_to), null for no bound.

    They are cut at the bounds of the routes that concern the key. A route for any service concerns it only
    where no route without bounds names its service: such a one ends the search before step 4 at every time.
    """

    def is_named(candidate: Column) -> Column:
        step = step_of(candidate, message)
        return F.coalesce(step < int(MatchingStep.ROUTE_REQUEST), F.lit(False))

    always = F.exists(
        candidates, lambda c: ~c["returned"] & c["live_from"].isNull() & c["live_to"].isNull() & is_named(c)
    )
    concerning = F.filter(candidates, lambda c: c["returned"] | ~always | is_named(c))
    limits = F.concat(
        F.transform(concerning, lambda c: c["live_from"]), F.transform(concerning, lambda c: c["live_to"])
    )
    moments = F.array_sort(F.array_distinct(F.array_compact(limits)))
    no_bound = F.array(F.lit(None).cast("timestamp"))
    return F.zip_with(
        F.concat(no_bound, moments),
        F.concat(moments, no_bound),
        lambda start, end: F.struct(start.alias("valid_from"), end.alias("valid_to")),
    )


def in_force(candidates: Column, valid_from: Column, valid_to: Column) -> Column:
    """The candidates that cover an interval; those which begin or end inside it do not concern the key."""

    def covers(candidate: Column) -> Column:
        start, end = candidate["live_from"], candidate["live_to"]
        starts = start.isNull() | F.coalesce(start <= valid_from, F.lit(False))
        return starts & (end.isNull() | F.coalesce(end >= valid_to, F.lit(False)))

    return F.filter(candidates, covers)
