"""Remedies that correct a route's service name, broker instance or lifetime.

Each function is one case, and returns None if it does not apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv6Address

from routing.advice import statements
from routing.advice.remedy import AlteredRoute, Confidence, Remedy, RemedyPlace, correct_route, ready
from routing.advice.stuck_messages import StuckMessage
from routing.cases.near_misses import ROUTE, NearMiss
from routing.render.phrases import named
from routing.rules.estate import AddressKind, EstateRoute
from routing.rules.matching import comes_before
from routing.rules.text import EXPIRED, OTHER_BROKER, SPELLINGS
from routing.terms import MatchingStep, Reason

_ID = "BROKER_INSTANCE"
_BARE_IPV6 = re.compile(r"tcp://([0-9a-f:]{2,45}):(\d{1,5})/?", re.IGNORECASE | re.ASCII)
_REPLACE_RISK = "The statement drops the route and creates it again in one transaction; you own the new route."


def correct_spelling(stuck: StuckMessage) -> Remedy | None:
    """Correct the spelling of the service in a route, unless another known service needs the route."""
    for near, _ in _missed_routes(stuck):
        if set(near.differences) <= set(SPELLINGS) and not stuck.is_needed(near.service):
            cause = (
                f"Route {named(near.name)} of {named(near.database)} names {named(near.service)}, but the messages"
                f" are for {named(stuck.service)}."
            )
            action = (
                "If the messages are right, give the route their spelling: names are compared exactly, and no"
                " known database holds a service of the route's spelling."
            )
            clause, place = statements.with_clause(service=stuck.service), stuck.place(near.database)
            return correct_route(
                place, near.name, clause, cause, action, option="SERVICE_NAME", confidence=Confidence.CERTAIN
            )
    return None


def correct_invalid(stuck: StuckMessage) -> Remedy | None:
    """Correct the invalid address of a route for the service, such as an IPv6 address without brackets."""
    rows = stuck.estate.server.invalid_routes(stuck.instance, stuck.last.scope, stuck.service, stuck.broker)
    if not rows:
        return None
    route, address = rows[0]["name"], rows[0]["address"]
    cause = (
        f"Route {named(route)} of {named(stuck.last.scope)} has the invalid address {named(address)}, so the"
        " messages have no route."
    )
    action = "Correct it: the form is TCP://HOST:PORT, with an IPv6 address in brackets."
    target = stuck.target()
    of_target = None if target is None else stuck.address_of(target)
    corrected = _bracket(address) or (None if of_target is None else of_target.written)
    is_open = corrected is None
    clause = statements.lead_to(None, None) if is_open else statements.with_clause(address=corrected)
    return correct_route(stuck.place(stuck.last.scope), route, clause, cause, action, is_open=is_open)


def _bracket(address: str) -> str | None:
    """Return an address with brackets around its IPv6 address, or None if it is no such address with a port."""
    match = _BARE_IPV6.fullmatch(address)
    if match is None or not 1 <= int(match[2]) <= 65535:
        return None
    try:
        IPv6Address(match[1])
    except AddressValueError:
        return None
    return f"TCP://[{match[1]}]:{match[2]}"


def renew_route(stuck: StuckMessage) -> Remedy | None:
    """Create an expired route for the service again without a lifetime, which no ALTER can remove."""
    for near, route in _missed_routes(stuck):
        if near.differences == (EXPIRED,):
            cause = (
                f"Route {named(near.name)} of {named(near.database)} has expired, although it is still in"
                " sys.routes."
            )
            options_clause = statements.with_clause(
                route.service, route.broker, route.address, route.mirror_address
            )
            return ready(
                stuck.place(near.database),
                cause,
                ("Create it again without a lifetime.",),
                *statements.replace_route(near.name, options_clause),
                risk=_REPLACE_RISK,
            )
    return None


def correct_route_id(stuck: StuckMessage) -> Remedy | None:
    """Replace a route's old id by the id that the messages are bound to and a holder has now."""
    for near, _ in _missed_routes(stuck):
        is_old = near.differences == (OTHER_BROKER,) and not stuck.is_current(near.broker)
        if is_old and stuck.is_current(stuck.broker):
            cause = (
                f"Route {named(near.name)} of {named(near.database)} has broker instance {named(near.broker)},"
                " which no known database with the service has."
            )
            action = f"Give the route {named(stuck.broker)}, which the messages are bound to."
            return _correct_id(stuck.place(near.database), near.name, stuck.broker, cause, action)
    return None


def renew_route_id(stuck: StuckMessage) -> Remedy | None:
    """Replace a LOCAL route's old id by the id of the only database here that holds the service."""
    search, holders = stuck.last, stuck.holders_here
    matches = () if search.match is None else search.match.routes
    local = [route for route in matches if route.service == stuck.service and route.kind is AddressKind.LOCAL]
    old = [route for route in local if route.broker not in (None, *stuck.sql_instance.brokers)]
    if not old or len(holders) != 1 or holders[0].broker is None or not holders[0].is_enabled:
        return None
    now = holders[0].broker
    cause = (
        f"Route {named(old[0].name)} of {named(search.scope)} has broker instance {named(old[0].broker)}, but the"
        f" service is in {named(holders[0].name)}, whose broker instance is {named(now)} now."
    )
    actions: tuple[str, ...] = ("Give the route the broker instance of today: dialogs that begin later need it.",)
    if not search.pick:
        actions += ("END CONVERSATION for open dialogs, which are bound to the old one, and begin new ones.",)
    lines = [statements.alter_route(route.name, statements.with_clause(broker=now)) for route in old]
    altered = AlteredRoute(old[0].name, _ID)
    return ready(stuck.place(search.scope), cause, actions, *lines, altered=altered)


def pin_anew(stuck: StuckMessage, stuck_there: StuckMessage) -> Remedy | None:
    """Correct a route's old broker instance if its target holds the service with another one.

    Arguments as for `lead_past`. Returns None if the dialog itself has the id.
    """
    decision, holders = stuck.verdict.decision, stuck_there.holders_here
    pick = None if decision is None else decision.pick
    is_old = stuck_there.verdict.reason is Reason.BROKER_INSTANCE_NOT_FOUND and not stuck_there.is_current(pick)
    if pick is None or not is_old or len(holders) != 1 or holders[0].broker is None:
        return None
    cause = (
        f"Route {named(stuck.verdict.route_name)} of {named(stuck.last.scope)} has broker instance {named(pick)},"
        f" but the service is in {named(holders[0].name)} of instance {named(stuck_there.instance)}, whose broker"
        f" instance is {named(holders[0].broker)} now."
    )
    place, action = stuck.place(stuck.last.scope), "Give the route the broker instance of today."
    return _correct_id(place, stuck.verdict.route_name, holders[0].broker, cause, action)


def compare_ids(stuck: StuckMessage) -> Remedy | None:
    """Advise a comparison of the ids of a route and the messages with the unknown id of the target."""
    for near, _ in _missed_routes(stuck):
        if near.differences == (OTHER_BROKER,):
            cause = (
                f"Route {named(near.name)} of {named(near.database)} has broker instance {named(near.broker)}, but"
                f" the messages are bound to {named(stuck.broker)}; no known database says which of the two is"
                " current."
            )
            actions = (
                "Compare both with service_broker_guid of sys.databases at the target.",
                "If the messages are right, correct the route.",
                "If the route is right, the database has a new id: end the dialogs and begin new ones.",
            )
            place, to_be_checked = stuck.place(near.database), Confidence.TO_BE_CHECKED
            return _correct_id(place, near.name, stuck.broker, cause, *actions, confidence=to_be_checked)
    return None


def _correct_id(
    place: RemedyPlace,
    route: str | None,
    broker: str | None,
    cause: str,
    *actions: str,
    confidence: Confidence = Confidence.CERTAIN,
) -> Remedy:
    """Build a remedy that corrects the broker instance of a route. It is a comment if it must be checked."""
    clause, is_open = statements.with_clause(broker=broker), confidence is Confidence.TO_BE_CHECKED
    return correct_route(place, route, clause, cause, *actions, option=_ID, is_open=is_open, confidence=confidence)


def _missed_routes(stuck: StuckMessage) -> Iterable[tuple[NearMiss, EstateRoute]]:
    """Yield the sender's routes that the messages missed, and that would lead them on."""
    if stuck.came_back:
        return
    for near in stuck.near_misses:
        route = (
            stuck.missed_route(near) if near.object_type == ROUTE and near.database == stuck.last.scope else None
        )
        if route is not None and stuck.would_lead_on(route) and _would_match(stuck, route):
            yield near, route


def _would_match(stuck: StuckMessage, route: EstateRoute) -> bool:
    """Return True if a route to the service is searched no later than the matching route."""
    ended = stuck.last.step
    if route.broker is None:
        step = MatchingStep.SERVICE
    else:
        step = MatchingStep.BALANCED if stuck.last.broker is None else MatchingStep.BROKER_INSTANCE
    # Among several ids the dialog's hash may pick another.
    is_one_of_many = ended is step is MatchingStep.BALANCED
    return ended is not None and not comes_before(ended, step) and not is_one_of_many
