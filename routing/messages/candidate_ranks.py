"""Rank the candidates of each message by a join with their lists and a window over each message.

The window orders by the columns of `rules.candidate_order`.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routing.messages.results import cut, with_requests
from routing.messages.route_plan import RoutePlan
from routing.plan.candidate_lists import (
    GOES_ON,
    LAST_SEARCH,
    LIST,
    LISTED_CANDIDATE,
    REQUESTED,
    REQUESTED_IN_MSDB,
    CandidateLists,
)
from routing.rules.candidate_order import CANDIDATE_ORDER, ORDER_WITHIN_TIER, OrderTerm
from routing.schemas import ROUTE_CANDIDATES
from routing.tables import spark_forms
from routing.tables.cached_frames import JoinSide
from routing.tables.spark_forms import in_shape
from routing.terms import MSDB, MatchingStep

MESSAGE_ROW = "message_row"
"""The number of a message row. Candidates are ranked by row, because full mode does not check message ids."""
# The approximate size of a listed candidate in memory.
_CANDIDATE = 600


def route_candidates(plan: RoutePlan, lists: CandidateLists) -> DataFrame:
    """Return the rows of ``route_candidates``: the listed candidates of each accepted message, ranked.

    ``plan`` is from `compiling.compile_messages`, with ``lists``. Its messages have the column `MESSAGE_ROW`.
    """
    messages = _add_list(plan)
    # Only this join turns one message into several rows, because a list has many candidates.
    joined = messages.join(_side_of(plan, lists).with_hint(), LIST, how="inner")
    ranked = _rank(joined.withColumn("broker_instance", F.coalesce("broker_instance", "bound_broker")))
    is_decided = (F.col("search") == F.col(LAST_SEARCH)) & (
        F.col("matching_step") != int(MatchingStep.ROUTE_REQUEST)
    )
    is_first_tier, is_first = F.col("tier_rank") == 1, F.col("candidate_rank") == 1
    scope = F.coalesce("database_name", F.lit(MSDB))
    address = F.col("address")
    if plan.uses.reads_addresses:
        in_name = spark_forms.empty_as_null(spark_forms.leading_address(F.col("to_service_name")))
        address = F.when(F.col("reads_address"), in_name).otherwise(address)
    values = {
        "database_name": F.when(F.col("search") == 1, scope).otherwise(MSDB),
        "address": address,
        "is_chosen": is_decided & is_first,
        "is_alternative": is_decided & is_first_tier & ~is_first,
    }
    return in_shape(ranked, ROUTE_CANDIDATES, values)


def _add_list(plan: RoutePlan) -> DataFrame:
    """Return the messages that have candidates, with the number of their list."""
    requests = plan.requests
    messages, choice = cut(plan.choices), F.col("choice")
    number = choice[GOES_ON]
    if requests is not None:
        messages = with_requests(plan, messages)
        in_scope, in_msdb = F.col("requested"), F.col("requested_in_msdb")
        requested_list = F.when(in_scope, choice[REQUESTED]).when(in_msdb, choice[REQUESTED_IN_MSDB])
        number = F.when(in_scope | in_msdb, requested_list).otherwise(number)
    if plan.source.any_ends:
        # A message of an expired dialog is dropped without a search.
        number = F.when(~F.col("is_expired"), number)
    return messages.select(
        MESSAGE_ROW,
        "instance_name",
        "message_id",
        "decided_at",
        "database_name",
        "to_service_name",
        "bound_broker",
        number.alias(LIST),
    )


def _side_of(plan: RoutePlan, lists: CandidateLists) -> JoinSide:
    """Return the lists as the smaller side of a join."""
    source = plan.source
    rows = source.lookups.frame_cache.frame_of(source.lookups.spark, lists.rows, LISTED_CANDIDATE)
    return source.broadcasts.of_size("the candidates of all keys", rows, len(lists.rows) * _CANDIDATE)


def _rank(joined: DataFrame) -> DataFrame:
    """Return candidates with candidate_rank, and with tier_rank, which is 1 in the first tier or step."""
    of_message = Window.partitionBy(MESSAGE_ROW)
    window = of_message.orderBy(*_ordered(CANDIDATE_ORDER))
    numbered = window.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    tiered = of_message.orderBy(*_ordered(term for term in CANDIDATE_ORDER if term not in ORDER_WITHIN_TIER))
    return joined.withColumns(
        {
            "candidate_rank": F.row_number().over(numbered),
            "tier_rank": F.rank().over(tiered.rowsBetween(Window.unboundedPreceding, Window.currentRow)),
        }
    )


def _ordered(terms: Iterable[OrderTerm]) -> list[Column]:
    return [
        F.col(term.column).desc_nulls_last() if term.is_descending else F.col(term.column).asc_nulls_last()
        for term in terms
    ]
