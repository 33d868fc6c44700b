"""What statements do to an instance's endpoints; raises RefusalError for what is refused."""

from __future__ import annotations

from routing.importing.tsql.holdings import NamedRows
from routing.importing.tsql.refusal import RefusalError, UntoldError
from routing.importing.tsql.script_statements import AlterEndpoint, CreateEndpoint, DropEndpoint, quote
from routing.importing.tsql.state import EndpointState

OF_ENDPOINTS = (CreateEndpoint, AlterEndpoint, DropEndpoint)

_MISSING, _SECOND = 15151, 7862
_NO_TABLE = "whether an endpoint is STARTED is in no table"


def change_endpoint(holdings: NamedRows, statement: CreateEndpoint | AlterEndpoint | DropEndpoint) -> str | None:
    """Apply one statement; gives a remark on it, or None."""
    if isinstance(statement, CreateEndpoint):
        return _create_endpoint(holdings, statement)
    if isinstance(statement, AlterEndpoint):
        return _alter_endpoint(holdings, statement)
    _drop_endpoint(holdings, statement)
    return None


def _create_endpoint(holdings: NamedRows, statement: CreateEndpoint) -> str | None:
    endpoint = holdings.endpoint
    if holdings.is_other_endpoint(statement.name) or _is_called(endpoint, statement.name):
        raise RefusalError("the endpoint exists already", by_server=True)
    if not statement.for_service_broker:
        holdings.put_other_endpoint(statement.name)
        return None
    if endpoint is not None and (endpoint.name is not None or endpoint.is_message_forwarding_enabled):
        which = "which forwards messages" if endpoint.name is None else quote(endpoint.name)
        raise RefusalError(f"the instance has a SERVICE_BROKER endpoint already, {which}", _SECOND)
    holdings.endpoint = EndpointState(
        statement.name, statement.listener_port, bool(statement.is_message_forwarding_enabled)
    )
    return None if statement.state == "STARTED" else f"it is made {statement.state}; {_NO_TABLE}"


def _alter_endpoint(holdings: NamedRows, statement: AlterEndpoint) -> str | None:
    endpoint = holdings.endpoint
    is_named = _is_called(endpoint, statement.name)
    if statement.for_service_broker is False or holdings.is_other_endpoint(statement.name):
        return None
    if endpoint is None or (endpoint.name is not None and not is_named):
        raise RefusalError("the instance has no such endpoint", _MISSING)
    remark = f"STATE = {statement.state}: {_NO_TABLE}" if statement.state else None
    if statement.for_service_broker is None and not is_named:
        if statement.listener_port is None:
            return remark
        raise UntoldError("whether it is the SERVICE_BROKER endpoint is not known")
    port, forwarding = statement.listener_port, statement.is_message_forwarding_enabled
    holdings.endpoint = EndpointState(
        endpoint.name or statement.name,
        endpoint.listener_port if port is None else port,
        endpoint.is_message_forwarding_enabled if forwarding is None else forwarding,
    )
    return remark


def _drop_endpoint(holdings: NamedRows, statement: DropEndpoint) -> None:
    endpoint = holdings.endpoint
    if holdings.is_other_endpoint(statement.name):
        holdings.remove_other_endpoint(statement.name)
    elif _is_called(endpoint, statement.name):
        holdings.endpoint = None
    elif endpoint is not None and endpoint.name is None:
        raise UntoldError("whether it is the SERVICE_BROKER endpoint is not known")
    else:
        raise RefusalError("the instance has no such endpoint", _MISSING)


def _is_called(endpoint: EndpointState | None, name: str) -> bool:
    called = endpoint.name if endpoint else None
    return called is not None and called.casefold() == name.casefold()
