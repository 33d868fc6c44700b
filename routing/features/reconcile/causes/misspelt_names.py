"""Routes and services whose name is nearly that of a service which messages ask for, and nobody uses."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from routing.errors import quote
from routing.features.reconcile.causes.likeness import is_near
from routing.features.reconcile.causes.observed_lanes import LOCALLY, WENT_ON, ObservedPlace, where
from routing.features.reconcile.groups import CauseKind, GroupAnswers, MismatchCause
from routing.rules import text
from routing.rules.estate import AddressKind, EstateRoute, SqlInstance
from routing.terms import Outcome


def find_near_name(
    answers: GroupAnswers, place: ObservedPlace, instance: SqlInstance, in_use: Collection[str]
) -> MismatchCause | None:
    """Find a name that would explain an answer, were it the service's; ``in_use`` are no slips."""
    for route in _near_routes(place, instance, in_use):
        if _explains(route, answers):
            named = f"route {quote(route.name)} names the service {quote(route.service)}"
            return _cause(place, f"{named}, and goes where SQL Server sent them")
    for service in sorted(instance.holders):
        is_slip = service not in in_use and is_near(place.service, service)
        if is_slip and (answers.seen_outcome is Outcome.DELIVERED or answers.error_number in LOCALLY):
            return _cause(place, f"the instance holds a service {quote(service)}, and SQL Server found them one")
    return None


def _near_routes(place: ObservedPlace, instance: SqlInstance, in_use: Collection[str]) -> Iterator[EstateRoute]:
    for service, routes in instance.routes.get(place.scope, {}).items():
        if service is not None and service not in in_use and is_near(place.service, service):
            yield from routes


def _explains(route: EstateRoute, answers: GroupAnswers) -> bool:
    if answers.seen_outcome not in WENT_ON:
        # A LOCAL route that leads nowhere is told by its number.
        return route.kind is AddressKind.LOCAL and answers.error_number in LOCALLY
    if route.kind is AddressKind.LOCAL:
        return answers.seen_outcome is Outcome.DELIVERED
    if answers.seen_outcome is Outcome.DELIVERED:
        return False
    hops = [text.comparable_address(hop) for hop in (route.address, route.mirror_address) if hop is not None]
    return answers.next_hop is None or answers.next_hop in hops


def _cause(place: ObservedPlace, why: str) -> MismatchCause:
    sentence = f"{where(place)} go another way than the tables say; {why}: is the name misspelt in the tables?"
    return MismatchCause(CauseKind.NEAR_NAME, sentence)
