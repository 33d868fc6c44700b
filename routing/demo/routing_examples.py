"""The estates of the seven routing examples and of the page on routes.

Each function takes the name of the estate, which starts the names of its instances.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone

from routing.demo.drafting import EstateDraft

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

    def route(self, name: str, address: str, service: str | None = None, **more: str) -> None:
        """Add a route of AdventureWorks2008R2."""
        self.draft.route(self.name, _SALES, name, address, service, **more)

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
        """Return a message created in AdventureWorks2008R2 at ten; returns its conversation id."""
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
    """Draft example 5: two instances of a service, told apart by their broker ids."""
    host = ExampleInstance(f"{estate}/host1")
    one, two = "TCP://server1.Adventure-Works.com:4022/", "TCP://server2.Adventure-Works.com:4022/"
    host.route("BalancedRouteOne", one, "BalancedService", broker=SERVER_1_ID)
    host.route("BalancedRouteTwo", two, "BalancedService", broker=SERVER_2_ID)
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
    draft = EstateDraft()
    for name, forwarding in (("forwarding-on", True), ("forwarding-off", False)):
        services = ("LocalService", "ElsewhereService")
        host = ExampleInstance(f"{estate}/{name}", *services, draft=draft, forwarding=forwarding)
        host.forward("ForwardingRoute", "TCP://elsewhere.Adventure-Works.com:4022/", services[1])
        host.arrived(f"arrived-{name}", "ElsewhereService")
        if forwarding:
            host.arrived("arrived-local", "LocalService")
            host.sent("sent-elsewhere", "ElsewhereService")
    return draft


def forwarding_all_services(estate: str) -> EstateDraft:
    """Draft example 7: msdb forwards all services that this instance does not hold."""
    draft = EstateDraft()
    for name, forwarding in (("forwarding-on", True), ("forwarding-off", False)):
        host = ExampleInstance(f"{estate}/{name}", draft=draft, forwarding=forwarding)
        host.forward("ForwardingRoute", _FORWARDER)
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
