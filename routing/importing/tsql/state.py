"""What one instance holds, as far as scripts can change it; columns are called as in the tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

ROUTES, SERVICES, DATABASES = "routes", "services", "databases"


@dataclass(frozen=True)
class RouteState:
    """A row of sys.routes; ``lifetime`` is the expiry, aware and UTC."""

    database_name: str
    name: str
    address: str
    remote_service_name: str | None = None
    broker_instance: str | None = None
    lifetime: datetime | None = None
    mirror_address: str | None = None


@dataclass(frozen=True)
class ServiceState:
    """A row of sys.services."""

    database_name: str
    name: str


@dataclass(frozen=True)
class DatabaseState:
    """A row of sys.databases; ``service_broker_guid`` is None where the server drew a new one."""

    name: str
    service_broker_guid: str | None
    is_broker_enabled: bool = True
    database_id: int | None = None


@dataclass(frozen=True)
class EndpointState:
    """The instance's SERVICE_BROKER endpoint; name and port are None where they are not known."""

    name: str | None = None
    listener_port: int | None = None
    is_message_forwarding_enabled: bool = False


@dataclass(frozen=True)
class InstanceState:
    """All of one instance.

    ``endpoint`` is None where there is none, ``Endpoint()`` where that is not known. ``other_endpoints`` are the
    names of those for something else. A view of which there are rows is whole, except for those ``in_part``, each
    with its database, or an empty text for the view of databases; those that are ``whole`` without rows are named.
    """

    routes: tuple[RouteState, ...] = ()
    services: tuple[ServiceState, ...] = ()
    databases: tuple[DatabaseState, ...] = ()
    endpoint: EndpointState | None = None
    other_endpoints: frozenset[str] = frozenset()
    in_part: frozenset[tuple[str, str]] = frozenset()
    whole: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False)
