"""What a state says to a condition, and how texts phrase one that it cannot answer."""

from __future__ import annotations

from routing.importing.tsql.holdings import NamedRows
from routing.importing.tsql.script_statements import ConditionGuard, GuardSubject, quote


def phrase_guard(guard: ConditionGuard) -> str:
    """Return a condition as a clause: ``the route 'r' exists``."""
    if guard.subject is GuardSubject.BROKER:
        return f"the broker of {quote(guard.name)} is {'' if guard.holds else 'not '}enabled"
    if guard.name == "":
        return f"there is {'a' if guard.holds else 'no'} {guard.subject.value}"
    return f"the {guard.subject.value} {quote(guard.name)} {'exists' if guard.holds else 'does not exist'}"


def answer_guard(holdings: NamedRows, guard: ConditionGuard) -> bool | None:
    """Return whether it exists or its broker is enabled; None where the state cannot tell."""
    database = guard.database
    if guard.subject is GuardSubject.DATABASE:
        return holdings.holds_database(guard.name)
    if guard.subject is GuardSubject.BROKER:
        row = holdings.database(guard.name)
        return row.is_broker_enabled if row else None
    if guard.subject is GuardSubject.ENDPOINT:
        return _has_endpoint(holdings, guard.name)
    if guard.subject is GuardSubject.BROKER_ENDPOINT:
        return _has_broker_endpoint(holdings, guard.name)
    if database is None:
        return None
    if guard.subject is GuardSubject.ROUTE:
        return holdings.route(database, guard.name) is not None
    return holdings.service(database, guard.name) is not None


def _has_endpoint(holdings: NamedRows, name: str) -> bool | None:
    endpoint = holdings.endpoint
    if holdings.is_other_endpoint(name):
        return True
    if endpoint is not None and endpoint.name is None:
        return None
    return endpoint is not None and endpoint.name is not None and endpoint.name.casefold() == name.casefold()


def _has_broker_endpoint(holdings: NamedRows, name: str) -> bool | None:
    """Return one of this name, or of any; an endpoint that forwards is one, whatever its name."""
    endpoint = holdings.endpoint
    if endpoint is None or (name and holdings.is_other_endpoint(name)):
        return False
    if endpoint.name is None:
        return None if name or not endpoint.is_message_forwarding_enabled else True
    return not name or endpoint.name.casefold() == name.casefold()
