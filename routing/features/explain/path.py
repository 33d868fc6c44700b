"""The rule book's path of a judged message as lines: what it brings, its searches, the verdict.

Every finding is read off what the rules return; nothing is decided here.
"""

from __future__ import annotations

from typing import Any

from routing.features.explain import bounded_lists, route_lines
from routing.features.explain.background import MessageBackground
from routing.features.explain.judging import JudgedQuestion
from routing.features.explain.known_tables import KnownTables
from routing.features.explain.lines import SHOWN, Line, line
from routing.features.explain.request_path import request_lines
from routing.features.explain.searches import ShownSearch, searches
from routing.rules.estate import SqlInstance
from routing.rules.matching import STEPS, comes_before
from routing.rules.resolving import Verdict, bound_broker
from routing.terms import MSDB, MatchingStep, Outcome, Reason


def path(
    judged: JudgedQuestion, known_tables: KnownTables, verdict: dict[str, Any], background: MessageBackground
) -> list[Line]:
    """Return all lines of a question in their order; ``verdict`` is its row (`verdicts.verdict_row`)."""
    shown_searches, instance = searches(judged), known_tables.network.instances[judged.message.instance]
    lines = [*_message_lines(judged), *background.before_the_path(instance.name, judged.message.t)]
    for search in shown_searches:
        came_by = shown_searches[0] if search.number > 1 else None
        lines += _scope_lines(judged, search, came_by)
        if search.looks_at_routes:
            lines += _step_lines(judged, search, instance)
        lines += [*_tier_lines(search), *_location_lines(judged, search)]
        lines += _transport_lines(judged, search, instance)
    if verdict["reason"] == Reason.ROUTE_REQUESTED:
        lines += request_lines(
            instance, shown_searches[-1].route_search.scope, judged.message.t, known_tables.other_instances
        )
    in_msdb = bool(shown_searches) and shown_searches[-1].route_search.scope == MSDB
    status_lines = background.after_the_verdict(verdict["outcome"], verdict["reason"], in_msdb=in_msdb)
    return [*lines, _outcome_line(verdict), *status_lines]


def _message_lines(judged: JudgedQuestion) -> list[Line]:
    """List the lines on the message's own columns (section 0)."""
    message, dialog, is_described = judged.message, judged.dialog, judged.asked.is_described
    sent_by = "INITIATOR" if message.is_initiator else "TARGET"
    lines = [
        line(
            "MESSAGE",
            "DESCRIBED" if is_described else "STORED",
            name=message.message_id,
            service_name=message.service,
            database_name=message.database,
            reason=sent_by,
        ),
        line("TIME", _time(judged), at=message.t),
        _broker_line(judged),
    ]
    later = dialog.acknowledged_at is not None and dialog.acknowledged_at > message.t
    if message.broker is None and later and dialog.acknowledged_broker is not None:
        at, broker = dialog.acknowledged_at, dialog.acknowledged_broker
        lines.append(line("ACKNOWLEDGEMENT", "LATER", broker_instance=broker, at=at))
    if dialog.is_expired(message.t):
        lines.append(line("DIALOG", "EXPIRED", at=dialog.lifetime))
    return lines


def _time(judged: JudgedQuestion) -> str:
    """Return the word for the source of the decision time."""
    if judged.asked.as_of is not None:
        return "AS_OF"
    if judged.asked.is_described:
        return "ASKED"
    return "ENQUEUED" if judged.asked.row["observed_at"] is None else "OBSERVED"


def _broker_line(judged: JudgedQuestion) -> Line:
    """Return the line on the source of the broker instance."""
    message, dialog = judged.message, judged.dialog
    broker = bound_broker(message, dialog)
    if broker is None:
        return line("BROKER_INSTANCE", "OPEN")
    if message.broker is not None:
        return line("BROKER_INSTANCE", "MESSAGE", broker_instance=broker)
    if dialog.acknowledged(message.t) is not None:
        return line("BROKER_INSTANCE", "ACKNOWLEDGEMENT", broker_instance=broker, at=dialog.acknowledged_at)
    return line("BROKER_INSTANCE", "FAR_BROKER_INSTANCE", broker_instance=broker)


def _scope_lines(judged: JudgedQuestion, search: ShownSearch, came_by: ShownSearch | None) -> list[Line]:
    """Return the scope, the check for a reply (section 1) and of the scope's broker."""
    route_search, number = search.route_search, search.number
    scope = {"search": number, "database_name": route_search.scope}
    if came_by is None:
        lines = [line("SCOPE", "ARRIVED" if route_search.is_from_network else "SENT_HERE", **scope)]
    else:
        address = came_by.address(judged.message.service)
        lines = [line("SCOPE", "CAME_BACK", **scope, name=came_by.route_search.route_name, address=address)]
    if route_search.is_from_network:
        finding = _reply(judged, search)
        lines.append(
            line(
                "REPLY", finding, search=number, step=int(MatchingStep.REPLY), broker_instance=route_search.broker
            )
        )
    if not route_search.is_reply:
        lines.append(line("BROKER", "DISABLED" if route_search.match is None else "ENABLED", **scope))
    return lines


def _reply(judged: JudgedQuestion, search: ShownSearch) -> str:
    if search.route_search.is_reply:
        return "MATCHED"
    if judged.message.is_initiator:
        return "SENT_BY_INITIATOR"
    return "OPEN" if search.route_search.broker is None else "NOT_HERE"


def _step_lines(judged: JudgedQuestion, search: ShownSearch, instance: SqlInstance) -> list[Line]:
    """Return each step with its routes, what they lead to (step 3) and what was asked before (step 4)."""
    searched_routes = route_lines.searched_routes(judged.message, search, instance)
    routes = route_lines.list_routes(searched_routes, search.number)
    lines = []
    for step in (*(each.number for each in STEPS), MatchingStep.NO_MATCH):
        common = {"search": search.number, "step": int(step)}
        awaited = bounded_lists.find_awaited(judged, search) if step is MatchingStep.ROUTE_REQUEST else None
        asker = None if awaited is None else awaited.message_id
        broker = search.route_search.broker
        lines.append(line("STEP", _step(step, search), **common, broker_instance=broker, name=asker))
        lines += routes.by_step.get(step, [])
        if step is search.route_search.step:
            lines += bounded_lists.id_lines(judged, search)
        if step is MatchingStep.ROUTE_REQUEST and search.route_search.asks:
            lines += bounded_lists.request_lines(judged, search, int(step))
    return [*lines, *routes.others]


def _step(step: MatchingStep, search: ShownSearch) -> str:
    stop = search.stop
    if step is stop:
        return "MATCHED"
    if stop is not None and comes_before(stop, step):
        return "NOT_REACHED"
    return "PENDING" if step is MatchingStep.ROUTE_REQUEST and search.route_search.asks else "NO_MATCH"


def _tier_lines(search: ShownSearch) -> list[Line]:
    """List the tiers that have routes, and which was used (section 3); a route that a rule implies is in none."""
    lines = []
    for tier, routes, finding in search.tiers():
        names = [route.name for route in routes if not route.is_implied]
        if names:
            why = tier.why_not(search.route_search.situation) if finding == "NOT_USABLE" else None
            reason = None if why is None else str(why)
            tier_values = {"routes": names[:SHOWN], "count": len(names), "reason": reason}
            lines.append(line("TIER", finding, search=search.number, name=tier.letter, **tier_values))
    return lines


def _location_lines(judged: JudgedQuestion, search: ShownSearch) -> list[Line]:
    """List where the destination was located, and the databases that were searched (section 4)."""
    if not search.locates:
        return []
    route_search, location = search.route_search, search.route_search.location
    return [
        line(
            "LOCATION",
            "NOT_LOCATED" if location.destination is None else "LOCATED",
            search=search.number,
            database_name=location.destination,
            service_name=judged.message.service,
            broker_instance=route_search.known_broker,
            reason=None if location.reason is None else str(location.reason),
            count=len(route_search.holders),
        ),
        *bounded_lists.holder_lines(search),
    ]


def _transport_lines(judged: JudgedQuestion, search: ShownSearch, instance: SqlInstance) -> list[Line]:
    """List the lines on an address: an own address, forwarding, the hops (section 3)."""
    route_search, number = search.route_search, search.number
    if not search.is_told or not route_search.choice.is_usable or route_search.end.outcome is Outcome.DELIVERED:
        return []
    lines = []
    if route_search.is_from_network:
        lines.append(line("FORWARDING", _forwarding(instance), search=number))
        if route_search.end.counts_hops:
            hops = judged.message.hops_remaining
            lines.append(line("HOPS", _hops(judged.verdict, hops), search=number, count=hops))
    if route_search.end.is_own:
        finding = "LOOP" if route_search.is_from_network else "COMES_BACK"
        address = search.address(judged.message.service)
        lines.append(line("OWN_ADDRESS", finding, search=number, name=route_search.route_name, address=address))
    return lines


def _forwarding(instance: SqlInstance) -> str:
    if not instance.is_forwarding_known:
        return "NOT_KNOWN"
    return "ON" if instance.is_forwarding else "OFF"


def _hops(verdict: Verdict, hops: int | None) -> str:
    if hops is None:
        return "NO_LIMIT"
    return "NONE_LEFT" if verdict.reason is Reason.HOP_LIMIT else "LEFT"


def _outcome_line(verdict: dict[str, Any]) -> Line:
    return line(
        "OUTCOME",
        "DEPENDS_ON_DIALOG" if verdict["outcome"] is None else "DECIDED",
        outcome=verdict["outcome"],
        reason=verdict["reason"],
        name=verdict["route_name"],
        address=verdict["address"],
        mirror_address=verdict["mirror_address"],
        database_name=verdict["destination_database"],
        broker_instance=verdict["broker_instance"],
    )
