"""Lists inside a path, each bounded: databases that hold the service, ids of step 3, requests of step 4."""

from __future__ import annotations

from routing.features.explain.judging import JudgedQuestion
from routing.features.explain.lines import SHOWN, Line, line
from routing.features.explain.searches import ShownSearch
from routing.rules.estate import Database
from routing.rules.locating import has_id
from routing.rules.requesting import RouteRequest
from routing.terms import MatchingStep


def holder_lines(search: ShownSearch) -> list[Line]:
    """Return the databases that hold the service, and whether each could be the destination; at most `SHOWN`."""
    return [
        line(
            "DATABASE",
            _holder(holder, search),
            search=search.number,
            database_name=holder.name,
            name=holder.name,
            broker_instance=holder.broker,
        )
        for holder in search.route_search.holders[:SHOWN]
    ]


def _holder(holder: Database, search: ShownSearch) -> str:
    if holder.name == search.route_search.location.destination:
        return "LOCATED"
    if not has_id(holder, search.route_search.known_broker):
        return "OTHER_BROKER_INSTANCE"
    return "NOT_FIRST" if holder.is_enabled else "DISABLED"


def id_lines(judged: JudgedQuestion, search: ShownSearch) -> list[Line]:
    """List the message's verdict for each broker id that may be picked; at most `SHOWN`, this dialog's first."""
    route_search = search.route_search
    if route_search.pick is None:
        return []
    place = {"search": search.number, "step": int(MatchingStep.BALANCED)}
    picked = None if search.is_undecided else route_search.pick
    verdicts = sorted(
        (verdict for _, verdict in judged.possible),
        key=lambda each: (each.broker_instance != picked, each.broker_instance or ""),
    )
    shown = sorted(verdicts[:SHOWN], key=lambda each: (each.broker_instance != picked, each.route_name or ""))
    lines = [
        line(
            "ID",
            "POSSIBLE" if search.is_undecided else "PICKED" if verdict.broker_instance == picked else "OTHER",
            **place,
            broker_instance=verdict.broker_instance,
            name=verdict.route_name,
            address=verdict.address,
            database_name=verdict.destination_database,
            outcome=str(verdict.outcome),
            reason=str(verdict.reason),
        )
        for verdict in shown
    ]
    more = len(verdicts) - SHOWN
    return [*lines, line("OTHER_IDS", "MORE", **place, count=more)] if more > 0 else lines


def find_awaited(judged: JudgedQuestion, search: ShownSearch) -> RouteRequest | None:
    """Return the request that the message's conversation waits for (D10), None where it waits for none."""
    if not search.is_requested:
        return None
    message = judged.message
    scope = judged.requests.of(search.route_search.scope, message.service)
    return scope.find_awaited(message.t, message.message_id, message.endpoint)


def request_lines(judged: JudgedQuestion, search: ShownSearch, step: int) -> list[Line]:
    """Return the requests for the service in this scope, not the message's own; at most `SHOWN`, newest first.

    The one that the message's conversation waits for comes before all others.
    """
    message, awaited = judged.message, find_awaited(judged, search)
    requests = judged.requests.of(search.route_search.scope, message.service).all()
    others = [request for request in requests if not request.is_of(message.t, message.message_id)]
    others.sort(key=lambda each: (each is awaited, each.requested_at, each.message_id), reverse=True)
    return [
        line(
            "REQUEST",
            "OPEN" if request.ended_at is None else "ENDED",
            search=search.number,
            step=step,
            name=request.message_id,
            valid_from=request.requested_at,
            valid_to=request.ended_at,
        )
        for request in others[:SHOWN]
    ]
