"""Advise on failed connections by one of several routes between which SQL Server chooses."""

from __future__ import annotations

from routing.advice import statements
from routing.advice.remedy import Remedy, to_fill_in
from routing.advice.server_remedies import find_holder
from routing.advice.status_facts import ReportedStatus
from routing.advice.status_meanings import StatusTrouble
from routing.render.phrases import join_words, named
from routing.rules.estate import AddressKind

_DROP_RISK = (
    "Dialogs that are bound to the broker instance behind the dropped route then have no route. END CONVERSATION …"
    " WITH CLEANUP ends them and discards their messages."
)


def drop_dead_route(status: ReportedStatus) -> Remedy | None:
    """Advise DROP ROUTE for a route of several to the service, if no known endpoint has its address.

    One of the routes must lead to a known endpoint.
    """
    verdict = status.supposed
    if verdict is None or verdict.mirror_address is not None:
        return None
    used = {verdict.route_name: verdict.address, **{one.name: one.address for one in verdict.alternative_routes}}
    dead = [name for name, address in used.items() if not status.knows_endpoint_at(address)]
    are_all_dead = len(dead) == len(used)
    routes = {**used, **_find_rivals(status)} if are_all_dead else used
    live = [address for address in routes.values() if status.knows_endpoint_at(address)]
    if not dead or not live:
        return None
    lines = [statements.drop_route(name) for name in dead]
    places = [f"{named(routes[name])}, the address of route {named(name)}" for name in dead]
    choosing = "For each new dialog SQL Server chooses" if are_all_dead else "SQL Server chooses"
    cause = (
        f"{choosing} between {len(routes)} routes. By these exports no endpoint is known at {join_words(places)},"
        f" but one at {join_words(map(named, live))}."
    )
    actions = (
        f"Test {join_words(named(routes[name]) for name in dead)} first, from the sending server.",
        "Run DROP ROUTE for a server that is gone. Otherwise start its endpoint, or open the firewall.",
    )
    return to_fill_in(status.route_place, cause, actions, *lines, risk=_DROP_RISK)


def _find_rivals(status: ReportedStatus) -> dict[str | None, str | None]:
    """Find the network addresses of all routes to the service by name, between which new dialogs choose.

    There are none if the messages use a route to any service, if only a host name is wrong, or if another instance
    is known to hold the broker instance of the messages.
    """
    rivals: dict[str | None, str | None] = {
        one.name: one.address
        for one in status.sender_instance.naming(status.scope, status.service)
        if one.kind is AddressKind.NETWORK and one.is_live(status.case.status_text.observed_at)
    }
    is_unnamed = status.trouble is StatusTrouble.NAME_NOT_RESOLVED
    if status.route not in rivals or is_unnamed or find_holder(status) is not None:
        return {}
    return rivals


def list_tests(status: ReportedStatus) -> tuple[str, ...]:
    """Return the actions if SQL Server chooses between routes to one broker instance, or none."""
    if status.supposed is None or not status.supposed.alternative_routes:
        return ()
    return (
        "SQL Server chooses between these routes, and the text does not name one: test each address.",
        "Run DROP ROUTE for a route to a server that is gone.",
    )
