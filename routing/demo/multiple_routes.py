"""The estates of the post on multiple routes, with its names: broker ids equal database names.

Each function takes the name of the estate, which starts the names of its instances.
"""

from __future__ import annotations

from datetime import timedelta

from routing.demo.drafting import EstateDraft
from routing.demo.routing_examples import TEN_O_CLOCK

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
        """Return the server's address; every estate has its own, for one network joins them all."""
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
            where = servers.named(gateway)
            servers.draft.route(where, "msdb", name, address, _SERVICE[letter], broker)
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
    """Draft two instances of a service, each behind two gateways of its own."""
    servers = ExampleServers(estate, "ServerA")
    servers.target("LoadBal1Fwd1", "GatewayA", "DatabaseB")
    servers.target("LoadBal1Fwd2", "GatewayB", "DatabaseB")
    servers.target("LoadBal2Fwd1", "GatewayC", "DatabaseC")
    servers.target("LoadBal2Fwd2", "GatewayD", "DatabaseC")
    servers.message("dialog-1", 1, "ServerA.DatabaseA")
    servers.message("dialog-2", 2, "ServerA.DatabaseA")
    return servers.draft


def two_open_routes(estate: str) -> EstateDraft:
    """Draft routes without broker ids to two instances: both may get the message, one will refuse."""
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
    """Return the post's LocalRoute gives ServerC the broker id of DatabaseB."""
    servers = ExampleServers(estate, "ServerC")
    where = servers.named("ServerC")
    servers.draft.route(where, "msdb", "LocalRoute", "LOCAL", "TargetService", "DatabaseB")
    servers.message("bound-to-c", 2, "ServerC", "DatabaseC")
    servers.message("open-at-c", 3, "ServerC")
    return servers.draft
