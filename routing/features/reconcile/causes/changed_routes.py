"""Routes that changed between two times, and routes that are in force and not in the tables."""

from __future__ import annotations

from collections.abc import Sequence

from routing.errors import quote
from routing.features.reconcile.causes.observed_lanes import (
    LOCALLY,
    WENT_ON,
    ObservedLane,
    describe_answer,
    routes_in,
    when,
    where,
)
from routing.features.reconcile.groups import CauseKind, EpisodeGroup, GroupAnswers, MismatchCause
from routing.rules import text
from routing.rules.estate import EstateRoute, SqlInstance
from routing.terms import Outcome


def find_change(group: EpisodeGroup, lane: ObservedLane, instance: SqlInstance) -> MismatchCause | None:
    """Return a route of a lane that was right until a time, and wrong since a later one.

    Right was an answer that the tables still predict, and that was not seen again since.
    """
    wrong_since = min(one.first_at for one in lane.off if _seen(one.answers) == _seen(group.answers))
    before = [one for one in lane.right if _is_predicted(one.answers, lane) and one.last_at < wrong_since]
    again = {_seen(one.answers) for one in lane.right if one.last_at >= wrong_since}
    gone = [one for one in before if _seen(one.answers) not in again and _differs(one.answers, group.answers)]
    if not gone:
        return None
    last = max(gone, key=lambda one: one.last_at)
    named = _named(last.answers, routes_in(instance, lane.place))
    sentence = (
        f"{named} changed between {when(last.last_at)} and {when(wrong_since)}: {where(lane.place)} were"
        f" {describe_answer(last.answers)}, as the tables say, and then {describe_answer(group.answers)};"
        " import its routes again"
    )
    return MismatchCause(CauseKind.ROUTE_CHANGED, sentence)


def _named(right: GroupAnswers, routes: Sequence[EstateRoute]) -> str:
    """Name the route of a right answer: of several that are balanced, the one with its id or address."""
    by_broker = [one.name for one in routes if one.broker is not None and one.broker == right.broker]
    by_hop = [one.name for one in routes if right.next_hop in (one.compared, one.compared_mirror)]
    name = next(iter((*by_broker, *(by_hop if right.next_hop else ()), right.route_name)), None)
    return "the routes" if name is None else f"route {quote(name)}"


def _seen(answers: GroupAnswers) -> tuple[object, ...]:
    return answers.seen_outcome, answers.error_number, answers.next_hop, answers.broker


def _differs(right: GroupAnswers, wrong: GroupAnswers) -> bool:
    """Return whether two answers surely differ: one without a next hop may be any that has the same outcome."""
    return right.seen_outcome is not wrong.seen_outcome or None not in (right.next_hop, wrong.next_hop)


def _is_predicted(right: GroupAnswers, lane: ObservedLane) -> bool:
    """Return True if what was right is what the tables go on to predict for what is wrong."""
    return any(right.route_name == one.answers.route_name for one in lane.off)


def find_hidden(group: EpisodeGroup, lane: ObservedLane, instance: SqlInstance) -> MismatchCause | None:
    """Return a way that no route of the tables gives."""
    answers = group.answers
    went_on = answers.seen_outcome in WENT_ON
    if not went_on and answers.error_number not in LOCALLY:
        return None
    hops = {
        text.comparable_address(hop)
        for route in routes_in(instance, lane.place)
        for hop in (route.address, route.mirror_address)
        if hop is not None and route.service is not None
    }
    if answers.next_hop is not None and answers.next_hop in hops:
        return None
    goes = "to LOCAL" if not went_on or answers.seen_outcome is Outcome.DELIVERED else ""
    goes = f"to {quote(answers.next_hop)}" if answers.next_hop is not None else goes or "over the network"
    sentence = (
        f"a route {goes} is in force and not in the tables: {where(lane.place)} were {describe_answer(answers)},"
        f" where the tables say {answers.outcome} ({answers.reason}); import the routes of"
        f" {quote(lane.place.scope)} again"
    )
    return MismatchCause(CauseKind.ROUTE_NOT_IN_TABLES, sentence)
