"""Routes that changed between two times, and routes that are in force and not in the tables."""

from __future__ import annotations

from routing.analysis.reconcile.causes.lanes import WENT_ON, Lane, routes_in, way, when, where
from routing.analysis.reconcile.groups import Answers, Cause, CauseKind, Group
from routing.errors import quote
from routing.rules import text
from routing.rules.estate import Instance
from routing.terms import Outcome

_NOWHERE = (9795, 9796)
"""Numbers of a LOCAL route that leads nowhere: a route was found."""


def find_change(group: Group, lane: Lane) -> Cause | None:
    """A route of a lane that was right until a time, and wrong since a later one.

    Right was an answer that the tables still predict, and that was not seen again since.
    """
    wrong_since = min(one.first_at for one in lane.off if _seen(one.answers) == _seen(group.answers))
    before = [one for one in lane.right if _is_predicted(one.answers, lane) and one.last_at < wrong_since]
    again = {_seen(one.answers) for one in lane.right if one.last_at >= wrong_since}
    gone = [one for one in before if _seen(one.answers) not in again]
    if not gone:
        return None
    last = max(gone, key=lambda one: one.last_at)
    route = last.answers.route_name
    named = "the routes" if route is None else f"route {quote(route)}"
    told = (
        f"{named} changed between {when(last.last_at)} and {when(wrong_since)}: {where(lane.place)} were"
        f" {way(last.answers)}, as the tables say, and then {way(group.answers)}; import its routes again"
    )
    return Cause(CauseKind.ROUTE_CHANGED, told)


def _seen(answers: Answers) -> tuple[object, ...]:
    return answers.seen_outcome, answers.error_number, answers.next_hop, answers.broker


def _is_predicted(right: Answers, lane: Lane) -> bool:
    """Whether what was right is what the tables go on to predict for what is wrong."""
    return any(right.outcome is one.answers.outcome for one in lane.off)


def find_hidden(group: Group, lane: Lane, instance: Instance) -> Cause | None:
    """A way that no route of the tables gives."""
    answers = group.answers
    went_on = answers.seen_outcome in WENT_ON
    if not went_on and answers.error_number not in _NOWHERE:
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
    told = (
        f"a route {goes} is in force and not in the tables: {where(lane.place)} were {way(answers)}, where the"
        f" tables say {answers.outcome} ({answers.reason}); import the routes of {quote(lane.place.scope)} again"
    )
    return Cause(CauseKind.ROUTE_NOT_IN_TABLES, told)
