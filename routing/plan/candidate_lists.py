"""Decide keys with lists of all candidate routes. Many keys share a list.

A list has the candidates of a decision in their order, up to a limit. A choice has the number of a message's list:
one for messages that continue, and others for messages that wait for a requested route.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from routing.plan.key_rows import CHOICE, Choice, DecidedKeys, choice_of, decide_keys
from routing.rules.candidate_order import CandidateRow, in_order, list_candidates, row_of
from routing.rules.deciding import ConcerningRoutes, Decision, RouteSearch, RoutingKey
from routing.rules.estate import EstateRoute, SqlInstance
from routing.rules.timeline import TimeInterval, TimeSpan
from routing.schemas import CANDIDATE, ColumnKind, Field, Schema
from routing.tables.table_columns import TableColumns
from routing.terms import MatchingStep

MOST_CANDIDATES = 200
"""The maximal number of stored candidates of a decision."""
_OWN, _IN_MSDB = 1, 2
# The list numbers of a message that continues, or waits for a requested route in its own scope or in msdb.
GOES_ON = "candidates"
REQUESTED, REQUESTED_IN_MSDB = "candidates_requested", "candidates_requested_in_msdb"
LISTED_CHOICE = Schema(
    (*CHOICE, *(Field(name, ColumnKind.INT) for name in (GOES_ON, REQUESTED, REQUESTED_IN_MSDB)))
)
"""A choice of a plan, and the numbers of its lists. An empty or unused list is null."""
LIST, TOTAL, LAST_SEARCH = "candidate_list", "candidates_total", "last_search"
LISTED_CANDIDATE = Schema(
    (*(Field(name, ColumnKind.INT, False) for name in (LIST, TOTAL, LAST_SEARCH)), *CANDIDATE)
)
"""A candidate of a list, with the full length of the list and the deciding search."""


class CandidateLists:
    """The lists of candidates of all keys, which grow as keys are decided."""

    def __init__(self, most: int = MOST_CANDIDATES) -> None:
        self._most = most
        self._numbers: dict[Hashable, int] = {}
        self.rows: list[tuple[Any, ...]] = []
        """Rows of `LISTED_CANDIDATE`."""

    def decide_keys(self, keys: TableColumns, instances: Mapping[str, SqlInstance]) -> DecidedKeys:
        """Decide every distinct key as `key_rows.decide_keys` does, and list the candidates."""
        return decide_keys(keys, instances, LISTED_CHOICE, self._intervals)

    def _intervals(self, key: RoutingKey, instance: SqlInstance) -> Iterator[TimeInterval[Choice]]:
        routes = ConcerningRoutes.of(key, instance, keeps_unreached=True)
        for span in routes.spans():
            choices = [
                (*choice_of(decision), *self._lists(decision, routes, span))
                for decision in routes.decide_span(span)
            ]
            yield TimeInterval(span.valid_from, span.valid_to, tuple(choices))

    def _lists(self, decision: Decision, routes: ConcerningRoutes, span: TimeSpan) -> tuple[int | None, ...]:
        """Return the numbers of the lists of a decision, in the order of `LISTED_CHOICE`."""
        key, instance, (scope_routes, returned) = routes.key, routes.instance, span.tables
        first, second = decision
        before = _candidates(key, instance, first, _OWN, scope_routes)
        goes_on = before
        if second is not None:
            goes_on = before + _candidates(key, instance, second, _IN_MSDB, returned, first.pick)
        requested = requested_in_msdb = None
        if decision.asks:
            requested = self._number(
                _candidates(key, instance, first, _OWN, scope_routes, is_requested=True), _OWN
            )
        if second is not None and decision.asks_again:
            asking = _candidates(key, instance, second, _IN_MSDB, returned, first.pick, is_requested=True)
            requested_in_msdb = self._number(before + asking, _IN_MSDB)
        return self._number(goes_on, _OWN if second is None else _IN_MSDB), requested, requested_in_msdb

    def _number(self, rows: list[CandidateRow], last_search: int) -> int | None:
        """Return the number of a list, or None for an empty one. Equal lists share a number."""
        if not rows:
            return None
        ordered = tuple(in_order(rows)[: self._most])
        listed = (len(rows), last_search, ordered)
        number = self._numbers.get(listed)
        if number is None:
            number = self._numbers[listed] = len(self._numbers)
            self.rows += [(number, len(rows), last_search, *row) for row in ordered]
        return number


def _candidates(
    key: RoutingKey,
    instance: SqlInstance,
    route_search: RouteSearch,
    search: int,
    routes: tuple[EstateRoute, ...],
    picked_before: str | None = None,
    *,
    is_requested: bool = False,
) -> list[CandidateRow]:
    """Return the candidates of a search, with those of step 4 only if it ``is_requested`` there."""
    stop = MatchingStep.ROUTE_REQUEST if is_requested else route_search.step
    candidates = list_candidates(route_search, key.service, instance, routes, stop=stop)
    listed = [one for one in candidates if is_requested or one.step is not MatchingStep.ROUTE_REQUEST]
    return [row_of(one, search, picked_before) for one in listed]
