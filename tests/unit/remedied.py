"""A stuck message in a small estate, its remedy, and its verdict after running the statement."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone

from routing.advice.remedies import remedy_of
from routing.advice.remedy import Remedy
from routing.advice.stuck_messages import AdviceEstate, StuckMessage
from routing.cases.background import NO_STATUS
from routing.cases.estate_addresses import EstateAddresses, list_route_addresses
from routing.cases.judged_questions import RemedyFacts
from routing.cases.message_cases import MessageCase
from routing.importing.tsql.instance_state import (
    DatabaseState,
    EndpointState,
    InstanceState,
    RouteState,
    ServiceState,
)
from routing.importing.tsql.script_reader import ReadScript, apply_script, read_script
from routing.rules import estate as rules
from routing.rules.requesting import InstanceRequests
from routing.rules.resolving import NO_DIALOG, RoutedMessage, Verdict
from tests.unit.rules.by_rules import resolve

NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
PAST = NOON - timedelta(days=1)
A, B, C, D, OLD = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "abcdf")
DIALOG = "6b1f0b9a-6a0e-4a52-9c7b-0d6f6d9a0001"

Written = tuple[str | None, ...]


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def route(
    database: str,
    name: str,
    address: str,
    service: str | None = None,
    broker: str | None = None,
    lifetime: datetime | None = None,
    mirror: str | None = None,
) -> RouteState:
    return RouteState(database, name, address, service, broker, lifetime, mirror)


def server(
    databases: Mapping[str, tuple[str | None, bool]],
    services: Sequence[tuple[str, str]] = (),
    routes: Sequence[RouteState] = (),
    *,
    forwards: bool = False,
) -> InstanceState:
    return InstanceState(
        tuple(routes),
        tuple(ServiceState(database, name) for database, name in services),
        tuple(DatabaseState(name, broker, is_on) for name, (broker, is_on) in databases.items()),
        EndpointState("Broker", forwards),
    )


@dataclass(frozen=True)
class Asked:
    """A message of Orders on the instance hub, and the servers that are known with their addresses."""

    servers: Mapping[str, InstanceState]
    service: str = "S"
    broker: str | None = None
    addresses: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: {
            "hub": ["tcp://hub:4022"],
            "shop": ["tcp://shop:4022", "TCP://Shop.example:4022"],
        }
    )
    database: str = "Orders"

    def instances(self) -> dict[str, rules.SqlInstance]:
        """The estate as the rules see it."""
        states = self.servers.items()
        listed = rules.list_instances(
            [
                (
                    name,
                    bool(state.endpoint and state.endpoint.is_message_forwarding_enabled),
                    self.addresses.get(name),
                )
                for name, state in states
            ],
            [
                (name, rules.Database.of_row(each.name, each.service_broker_guid, each.is_broker_enabled))
                for name, state in states
                for each in state.databases
            ],
        )
        services = [(name, each.database_name, each.name) for name, state in states for each in state.services]
        routes = [(name, each.database_name, as_rule(each)) for name, state in states for each in state.routes]
        return rules.with_services_and_routes(listed, services, routes)

    def verdict(self) -> Verdict:
        """Return the verdict of the message at noon."""
        t = microseconds(NOON)
        message = RoutedMessage("m", DIALOG, True, t, "hub", self.database, self.service, self.broker)
        return resolve(message, NO_DIALOG, self.instances()["hub"], InstanceRequests())

    def stuck(self, services_in_use: Collection[str] = ()) -> StuckMessage:
        """The message with the facts of its estate."""
        instances = self.instances()
        addresses = EstateAddresses(self.addresses, list_route_addresses(instances))
        estate = AdviceEstate(RemedyFacts(instances, addresses, services_in_use))
        verdict = self.verdict()
        case = MessageCase("hub", self.database, self.service, None, microseconds(NOON), NO_STATUS, verdict)
        return estate.describe_stuck(case, verdict)

    def remedy(self) -> Remedy:
        """Return the remedy for the message."""
        return remedy_of(self.stuck())

    def apply_remedy(self, remedy: Remedy) -> Asked:
        """Return the estate after running the statement. Fails if the server would refuse any part."""
        applied = apply_script(self.servers["hub"], read(remedy))
        assert not applied.problems
        return replace(self, servers={**self.servers, "hub": applied.state})


def as_rule(row: RouteState) -> rules.EstateRoute:
    """A row of sys.routes as the rules read it."""
    lifetime = None if row.lifetime is None else microseconds(row.lifetime)
    return rules.EstateRoute.of_row(
        row.name,
        row.remote_service_name,
        row.broker_instance,
        row.address,
        row.mirror_address,
        None,
        None,
        lifetime,
    )


def read(remedy: Remedy) -> ReadScript:
    """Read the statements of a remedy as import does. All must be readable."""
    script = read_script(remedy.statement or "", file="remedy.sql", scripted_at=NOON)
    assert not script.problems
    return script
