"""The estates of the source documents, small enough to follow message by message."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from routing.demo.drafting import EstateDraft, Tables
from routing.terms import BROKER_CONFIGURATION_SERVICE

# The estates of the seven routing examples and of the page on routes.
#
# Each function takes the name of the estate, which starts the names of its instances.


TEN_O_CLOCK = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
ADVENTURE_ID = "11111111-1111-4111-8111-111111111111"
MSDB_ID = "22222222-2222-4222-8222-222222222222"
SERVER_1_ID = "5fb8d92b-ed69-4c80-afbb-2aa6a7d3cb2d"
SERVER_2_ID = "81b1d3d0-288e-4d2c-b1d3-456cbb944b4f"
_SALES = "AdventureWorks2008R2"
_FORWARDER = "TCP://forwarding.Adventure-Works.com:4022/"


class ExampleInstance:
    """One instance with AdventureWorks2008R2 and msdb, and AutoCreatedLocal where not told otherwise."""

    def __init__(
        self,
        name: str,
        *services: str,
        draft: EstateDraft | None = None,
        forwarding: bool = False,
        auto_created_local: bool = True,
    ) -> None:
        self.name = name
        self.draft = draft or EstateDraft()
        self.draft.instance(name, "TCP://host1.Adventure-Works.com:4022", forwarding=forwarding)
        self.draft.database(name, _SALES, ADVENTURE_ID, *(services or ("LocalService",)))
        self.draft.database(name, "msdb", MSDB_ID)
        self.draft.local(name, "msdb")
        if auto_created_local:
            self.draft.local(name, _SALES)

    def route(self, name: str, address: str, service: str | None = None, **other_columns: str) -> None:
        """Add a route of AdventureWorks2008R2."""
        self.draft.route(self.name, _SALES, name, address, service, **other_columns)

    def forward(self, name: str, address: str, service: str | None = None) -> None:
        """Add a route of msdb, for messages from outside."""
        self.draft.route(self.name, "msdb", name, address, service)

    def sent(
        self,
        message_id: str,
        service: str,
        broker: str | None = None,
        *,
        dialog: str | None = None,
        after: int = 0,
    ) -> str:
        """Add a message that AdventureWorks2008R2 created at ten. Return its conversation id."""
        conversation = dialog or conversation_id(self.name, message_id)
        at = TEN_O_CLOCK + timedelta(seconds=after)
        self.draft.message(message_id, conversation, at, self.name, _SALES, service, broker)
        return conversation

    def arrived(self, message_id: str, service: str) -> None:
        """Add a message from outside the instance."""
        conversation = conversation_id(self.name, message_id)
        self.draft.message(message_id, conversation, TEN_O_CLOCK, self.name, None, service)


def conversation_id(instance: str, message_id: str) -> str:
    """Return a GUID that is the same in every run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{instance}/{message_id}"))


def default_configuration(estate: str) -> EstateDraft:
    """Draft example 1: AutoCreatedLocal and nothing else."""
    host = ExampleInstance(f"{estate}/host1")
    host.sent("sent-local", "LocalService")
    host.sent("sent-missing", "NoSuchService")
    host.arrived("arrived-local", "LocalService")
    host.arrived("arrived-missing", "NoSuchService")
    return host.draft


def specific_service(estate: str) -> EstateDraft:
    """Draft example 2: a network route that names a service."""
    host = ExampleInstance(f"{estate}/host1")
    host.route("OrderPartsRoute", "TCP://host2.Adventure-Works.com:4022/", "OrderParts")
    host.sent("sent-orderparts", "OrderParts")
    host.sent("sent-lower-case", "orderparts")
    host.sent("sent-local", "LocalService")
    return host.draft


def mirrored_database(estate: str) -> EstateDraft:
    """Draft example 3: a route with a mirror address."""
    host = ExampleInstance(f"{estate}/host1")
    host.route(
        "OrderPartsRoute",
        "TCP://partner1.Adventure-Works.com:4022/",
        "OrderParts",
        mirror_address="TCP://partner2.Adventure-Works.com:4022/",
    )
    host.sent("sent-orderparts", "OrderParts")
    host.sent("sent-missing", "NoSuchService")
    return host.draft


def all_external_services(estate: str) -> EstateDraft:
    """Draft example 4: all services that are not here go to one address."""
    host = ExampleInstance(f"{estate}/host1")
    host.route("ExternalRoute", _FORWARDER)
    host.sent("sent-local", "LocalService")
    host.sent("sent-elsewhere", "ElsewhereService")
    host.arrived("arrived-elsewhere", "ElsewhereService")
    return host.draft


def balanced_service(estate: str) -> EstateDraft:
    """Draft example 5: two instances of a service, distinguished by their broker instances."""
    host = ExampleInstance(f"{estate}/host1")
    first, second = "TCP://server1.Adventure-Works.com:4022/", "TCP://server2.Adventure-Works.com:4022/"
    host.route("BalancedRouteOne", first, "BalancedService", broker=SERVER_1_ID)
    host.route("BalancedRouteTwo", second, "BalancedService", broker=SERVER_2_ID)
    host.sent("open-a", "BalancedService")
    dialog = host.sent("open-b", "BalancedService")
    # In practice the picked server acknowledges; the other one here, so that the change shows.
    host.draft.dialog(
        host.name,
        _SALES,
        dialog,
        far_service="BalancedService",
        acknowledged_at=TEN_O_CLOCK + timedelta(seconds=1),
        acknowledged_broker_instance=SERVER_1_ID,
    )
    host.sent("open-b-acknowledged", "BalancedService", dialog=dialog, after=2)
    host.sent("names-server2", "BalancedService", SERVER_2_ID)
    host.sent("names-neither", "BalancedService", "99999999-0000-4000-8000-000000000000")
    return host.draft


def forwarding_one_service(estate: str) -> EstateDraft:
    """Draft example 6: msdb forwards one service, even where this instance holds it too."""
    elsewhere = "ElsewhereService"
    to = "TCP://elsewhere.Adventure-Works.com:4022/"
    return _forwarding(estate, to, elsewhere, services=("LocalService", elsewhere))


def forwarding_all_services(estate: str) -> EstateDraft:
    """Draft example 7: msdb forwards all services that this instance does not hold."""
    return _forwarding(estate, _FORWARDER, None, services=())


def _forwarding(estate: str, address: str, service: str | None, *, services: tuple[str, ...]) -> EstateDraft:
    """Draft an instance that forwards, and one that has the same route with forwarding off."""
    draft = EstateDraft()
    for name, forwarding in (("forwarding-on", True), ("forwarding-off", False)):
        host = ExampleInstance(f"{estate}/{name}", *services, draft=draft, forwarding=forwarding)
        host.forward("ForwardingRoute", address, service)
        host.arrived(f"arrived-{name}", "ElsewhereService")
        if forwarding:
            host.arrived("arrived-local", "LocalService")
            host.sent("sent-elsewhere", "ElsewhereService")
    return draft


def parts_of_a_route(estate: str) -> EstateDraft:
    """Return the page on routes: service names and three kinds of address, without AutoCreatedLocal."""
    host = ExampleInstance(f"{estate}/host1", auto_created_local=False)
    host.route("LocalServiceRoute", "LOCAL", "LocalService")
    host.route("OrderPartsRoute", "TCP://host2.Adventure-Works.com:4022/", "OrderParts")
    host.route("ByName", "TRANSPORT")
    host.sent("keyword-local", "LocalService")
    host.sent("network-address", "OrderParts")
    host.sent("any-broker-id", "OrderParts", SERVER_1_ID)
    host.sent("keyword-transport", "tcp://host3.Adventure-Works.com:4022/Billing")
    host.sent("no-address-in-name", "Billing")
    return host.draft


# The estate of the dynamic-routing document: routes that are asked for.


_ELSEWHERE = "https://Adventure-Works.com/Elsewhere"


def dynamic_routing(estate: str) -> EstateDraft:
    """Draft a request, the route that answers it, and the end of that route's lifetime.

    The first request is on record with its end. Resolving opens the same request again.
    """
    draft = EstateDraft()
    host, sales = f"{estate}/host1", "Sales"
    draft.instance(host, "tcp://host1:4022")
    draft.database(host, sales, "33333333-3333-4333-8333-333333333333")
    draft.database(host, "msdb", "44444444-4444-4444-8444-444444444444")
    draft.local(host, sales)
    draft.route(host, sales, "ConfigurationRoute", "tcp://config:4022", BROKER_CONFIGURATION_SERVICE)
    answered = TEN_O_CLOCK + timedelta(seconds=5)
    hour = TEN_O_CLOCK + timedelta(hours=1)
    draft.request(host, sales, _ELSEWHERE, TEN_O_CLOCK, "first-asks", answered)
    draft.route(
        host,
        sales,
        "Created",
        "tcp://elsewhere:4022",
        _ELSEWHERE,
        valid_from=answered,
        lifetime=hour,
    )
    for message_id, at, service in (
        ("first-asks", TEN_O_CLOCK, _ELSEWHERE),
        ("second-waits", TEN_O_CLOCK + timedelta(seconds=1), _ELSEWHERE),
        ("other-service-asks", TEN_O_CLOCK + timedelta(seconds=2), f"{_ELSEWHERE}?a=1&b=2"),
        ("route-created", TEN_O_CLOCK + timedelta(minutes=1), _ELSEWHERE),
        ("lifetime-over-asks", hour, _ELSEWHERE),
    ):
        draft.message(message_id, conversation_id(host, message_id), at, host, sales, service)
    return draft


# The estates of the post on multiple routes, with its names: broker instances equal database names.
#
# Each function takes the name of the estate, which starts the names of its instances.


# Dialogs one and four fall to DatabaseB, two and three to DatabaseC.
DIALOGS = tuple(f"6b1f0b9a-6a0e-4a52-9c7b-0d6f6d9a000{n}" for n in range(1, 5))
_SERVICE = {"A": "InitiatorService", "B": "TargetService", "C": "TargetService"}


class ExampleServers:
    """ServerA with InitiatorService, ServerB and ServerC with TargetService, and gateways."""

    def __init__(self, estate: str, *names: str) -> None:
        self.estate = estate
        self.draft = EstateDraft()
        self._second = 0
        for name in names:
            letter = name[-1]
            server = self.named(name)
            gateway = name.startswith("Gateway")
            self.draft.instance(server, self.address(name), forwarding=gateway)
            self.draft.database(server, "msdb", f"msdb-{name}")
            if not gateway:
                database = f"Database{letter}"
                self.draft.database(server, database, database, _SERVICE[letter])

    def named(self, name: str) -> str:
        """Return the instance's name in the joined tables."""
        return f"{self.estate}/{name}"

    def address(self, name: str) -> str:
        """Return the server's address. Addresses differ between estates, because one network joins all of them."""
        return f"tcp://{name}.{self.estate}:4022"

    def target(self, name: str, to: str, broker: str | None = None) -> None:
        """Add a route of DatabaseA to TargetService."""
        server = self.named("ServerA")
        self.draft.route(server, "DatabaseA", name, self.address(to), "TargetService", broker)

    def back(self, letter: str, name: str, to: str) -> None:
        """Add a route of ServerB or ServerC to InitiatorService."""
        server, database = self.named(f"Server{letter}"), f"Database{letter}"
        service, broker = "InitiatorService", "DatabaseA"
        self.draft.route(server, database, name, self.address(to), service, broker)

    def arrives(self, letter: str) -> None:
        """Add the route of a server's msdb that makes its own service LOCAL."""
        server, broker = self.named(f"Server{letter}"), f"Database{letter}"
        self.draft.route(server, "msdb", "LocalRoute", "LOCAL", _SERVICE[letter], broker)

    def message(
        self, message_id: str, dialog: int, at: str, broker: str | None = None, reply: bool = False
    ) -> None:
        """Add a message, a second after the one before, at ``ServerA.DatabaseA`` or arrived at ``ServerA``."""
        server, _, database = at.partition(".")
        initiator, target = "InitiatorService", "TargetService"
        self.draft.message(
            message_id,
            DIALOGS[dialog - 1],
            TEN_O_CLOCK + timedelta(seconds=self._second),
            self.named(server),
            database or None,
            initiator if reply else target,
            broker,
            is_initiator=not reply,
            from_service_name=target if reply else initiator,
        )
        self._second += 1


def load_balancing(estate: str) -> EstateDraft:
    """Draft two instances of a service that share its dialogs until an acknowledgement binds them."""
    servers = ExampleServers(estate, "ServerA", "ServerB", "ServerC")
    servers.target("LoadBalancingRoute1", "ServerB", "DatabaseB")
    servers.target("LoadBalancingRoute2", "ServerC", "DatabaseC")
    for letter in "BC":
        servers.back(letter, "ReturnRoute", "ServerA")
    for letter in "ABC":
        servers.arrives(letter)
    servers.message("dialog-1", 1, "ServerA.DatabaseA")
    servers.message("dialog-2", 2, "ServerA.DatabaseA")
    servers.message("dialog-2-arrives", 2, "ServerC", "DatabaseC")
    servers.message("dialog-2-reply", 2, "ServerC.DatabaseC", "DatabaseA", reply=True)
    servers.message("dialog-2-reply-arrives", 2, "ServerA", "DatabaseA", reply=True)
    servers.draft.dialog(
        servers.named("ServerA"),
        "DatabaseA",
        DIALOGS[1],
        far_service="TargetService",
        acknowledged_at=TEN_O_CLOCK + timedelta(seconds=4),
        acknowledged_broker_instance="DatabaseC",
    )
    servers.message("dialog-2-acknowledged", 2, "ServerA.DatabaseA")
    return servers.draft


def unfair_load_balancing(estate: str) -> EstateDraft:
    """Return an estate in which a second route to the same broker instance does not double its share."""
    servers = ExampleServers(estate, "ServerA")
    servers.target("LoadBalancingRoute1", "ServerB", "DatabaseB")
    servers.target("LoadBalancingRoute2", "ServerC", "DatabaseC")
    servers.target("LoadBalancingRoute3", "ServerC", "DatabaseC")
    for dialog in range(1, 5):
        servers.message(f"dialog-{dialog}", dialog, "ServerA.DatabaseA")
    return servers.draft


def high_availability(estate: str) -> EstateDraft:
    """Return one target behind two gateways: there and back."""
    servers = ExampleServers(estate, "ServerA", "ServerB", "GatewayA", "GatewayB")
    for number, gateway in enumerate(("GatewayA", "GatewayB"), start=1):
        servers.target(f"HighAvailabilityRoute{number}", gateway, "DatabaseB")
        servers.back("B", f"ReturnRoute{number}", gateway)
        for name, letter in (("ForwardingRoute", "B"), ("ForwardingReturnRoute", "A")):
            address, broker = servers.address(f"Server{letter}"), f"Database{letter}"
            host = servers.named(gateway)
            servers.draft.route(host, "msdb", name, address, _SERVICE[letter], broker)
    servers.arrives("A")
    servers.arrives("B")
    servers.message("sent", 1, "ServerA.DatabaseA")
    servers.message("at-gateway", 1, "GatewayA", "DatabaseB")
    servers.message("at-server-b", 1, "ServerB", "DatabaseB")
    servers.message("reply", 1, "ServerB.DatabaseB", "DatabaseA", reply=True)
    servers.message("reply-at-gateway", 1, "GatewayB", "DatabaseA", reply=True)
    servers.message("reply-at-server-a", 1, "ServerA", "DatabaseA", reply=True)
    return servers.draft


def both_together(estate: str) -> EstateDraft:
    """Draft two instances of a service, each behind its own two gateways."""
    servers = ExampleServers(estate, "ServerA")
    servers.target("LoadBal1Fwd1", "GatewayA", "DatabaseB")
    servers.target("LoadBal1Fwd2", "GatewayB", "DatabaseB")
    servers.target("LoadBal2Fwd1", "GatewayC", "DatabaseC")
    servers.target("LoadBal2Fwd2", "GatewayD", "DatabaseC")
    servers.message("dialog-1", 1, "ServerA.DatabaseA")
    servers.message("dialog-2", 2, "ServerA.DatabaseA")
    return servers.draft


def two_open_routes(estate: str) -> EstateDraft:
    """Draft routes without broker instances to two instances: both may get the message, one will refuse."""
    servers = ExampleServers(estate, "ServerA", "ServerB", "ServerC")
    servers.target("OpenRouteB", "ServerB")
    servers.target("OpenRouteC", "ServerC")
    for letter in "BC":
        servers.draft.local(servers.named(f"Server{letter}"), "msdb")
    servers.message("sent", 1, "ServerA.DatabaseA")
    servers.message("arrives-at-b", 1, "ServerB")
    servers.message("arrives-at-c", 1, "ServerC")
    servers.message("bound-to-b-at-c", 1, "ServerC", "DatabaseB")
    return servers.draft


def another_brokers_id(estate: str) -> EstateDraft:
    """Return the post's LocalRoute gives ServerC the broker instance of DatabaseB."""
    servers = ExampleServers(estate, "ServerC")
    host = servers.named("ServerC")
    servers.draft.route(host, "msdb", "LocalRoute", "LOCAL", "TargetService", "DatabaseB")
    servers.message("bound-to-c", 2, "ServerC", "DatabaseC")
    servers.message("open-at-c", 3, "ServerC")
    return servers.draft


_EXAMPLES = "Service Broker Routing Examples"
_MULTIPLE = "Using multiple routes in Service Broker"
_DYNAMIC = "Service Broker Dynamic Routing"
_ROUTES = "Routes"


class _DocumentEstate(NamedTuple):
    """An estate from a document: its name, its subject, the document, and the function that drafts it."""

    name: str
    title: str
    source: str
    build: Callable[[str], EstateDraft]


_ESTATES = tuple(
    _DocumentEstate(*estate)
    for estate in (
        ("example-1", "Only AutoCreatedLocal", _EXAMPLES, default_configuration),
        ("example-2", "A route that names a service", _EXAMPLES, specific_service),
        ("example-3", "A route with a mirror", _EXAMPLES, mirrored_database),
        ("example-4", "One address for the rest", _EXAMPLES, all_external_services),
        ("example-5", "Two broker instances of a service", _EXAMPLES, balanced_service),
        ("example-6", "Forwarding one service", _EXAMPLES, forwarding_one_service),
        ("example-7", "Forwarding what is not here", _EXAMPLES, forwarding_all_services),
        ("load-balancing", "Load balancing by dialog id", _MULTIPLE, load_balancing),
        ("unfair", "A doubled route, the same share", _MULTIPLE, unfair_load_balancing),
        ("high-availability", "Two gateways, one target", _MULTIPLE, high_availability),
        ("together", "Balanced and highly available", _MULTIPLE, both_together),
        ("two-open-routes", "Open routes to two instances", _MULTIPLE, two_open_routes),
        ("another-id", "Another broker's id in msdb", _MULTIPLE, another_brokers_id),
        ("dynamic-routing", "A route that is asked for", _DYNAMIC, dynamic_routing),
        ("parts-of-a-route", "Service, broker instance and address", _ROUTES, parts_of_a_route),
    )
)


@dataclass(frozen=True)
class DemoEstate:
    """The input tables of one estate: rows by table name, every row with every column."""

    title: str
    source: str
    tables: Tables


def document_estates() -> tuple[DemoEstate, ...]:
    """Return the estates of the documents. They share no instance, so that one run can resolve all of them.

    Instance names begin with the name of the estate, such as ``example-2/host1``.
    """
    return tuple(
        DemoEstate(f"{estate.name}: {estate.title}", estate.source, estate.build(estate.name).tables)
        for estate in _ESTATES
    )
