"""The instance at an address: names, listeners, and loopback names on a machine with several instances."""

from __future__ import annotations

import pytest

from routing.rules.estate import SqlInstance, own_addresses
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.requesting import ConversationEndpoint, RouteRequest

KNOWN = {
    "BOX": ["tcp://box:4022", "tcp://box.example:4022"],
    "BOX\\TWO": ["TCP://BOX:5022"],
    "BOX\\NONE": [],
    "SHOP": ["tcp://shop.example:4022", "tcp://listener:5022"],
    # Called otherwise than its machine: by the host that both have they are of one machine.
    "OLDNAME": ["tcp://win-1:4022"],
    "WIN-1\\B": ["tcp://win-1:7022"],
    # A listener is no machine: both are called like machines of their own.
    "N1": ["tcp://n1:4022", "tcp://listener:4022"],
    "N2": ["tcp://n2:6022", "tcp://listener:6022"],
    # Named with their domain, and one with more of it in its address.
    "E1.EXAMPLE": ["tcp://e1.example:4022", "tcp://listener:4022"],
    "E2.EXAMPLE": ["tcp://e2.example.net:7023", "tcp://listener:7023"],
}
NETWORK = EstateNetwork({name: SqlInstance(name, own_addresses=own_addresses(of)) for name, of in KNOWN.items()})

# From where, the address, and who gets it.
OWNERS = {
    "by its name": ("SHOP", "tcp://BOX:4022/", ["BOX"]),
    "by its other name": ("SHOP", "tcp://box.example:4022", ["BOX"]),
    "one machine name, told apart by the port": ("SHOP", "tcp://box:5022", ["BOX\\TWO"]),
    "a port that nobody has": ("SHOP", "tcp://box:9", []),
    "a name that nobody has": ("SHOP", "tcp://nobody:4022", []),
    "a loopback name with one's own port": ("BOX", "tcp://localhost:4022", ["BOX"]),
    "a loopback name with another instance's port": ("BOX", "tcp://localhost:5022", ["BOX\\TWO"]),
    "and back": ("BOX\\TWO", "tcp://127.0.0.1:4022", ["BOX"]),
    "from an instance of which no address is known": ("BOX\\NONE", "tcp://.:5022", ["BOX\\TWO"]),
    "from another machine": ("SHOP", "tcp://localhost:4022", ["SHOP"]),
    "a port that nobody of the machine has": ("BOX", "tcp://localhost:6022", []),
    "a loopback name without a port": ("BOX", "tcp://localhost", []),
    "an instance that is called otherwise than its machine": ("OLDNAME", "tcp://[::1]:7022", ["WIN-1\\B"]),
    "a listener makes no machine of two": ("N1", "tcp://localhost:6022", []),
    "nor of two that are named with their domain": ("E1.EXAMPLE", "tcp://localhost:7023", []),
    "nor seen from the other one": ("E2.EXAMPLE", "tcp://localhost:4022", []),
}


@pytest.mark.parametrize("name", OWNERS)
def test_instances_at_an_address(name: str) -> None:
    here, address, expected = OWNERS[name]
    owners = NETWORK.owners(address, NETWORK.instances[here])
    assert [owner.name for owner in owners] == expected


@pytest.mark.parametrize(
    ("endpoint", "stops"),
    [
        pytest.param(ConversationEndpoint("c", True), True, id="the endpoint of the request"),
        pytest.param(ConversationEndpoint("c", False), False, id="the other role of its conversation"),
        pytest.param(ConversationEndpoint("d", True), False, id="another conversation"),
        pytest.param(None, False, id="an unknown endpoint"),
    ],
)
def test_only_its_own_endpoint_waits_for_a_pending_request(
    endpoint: ConversationEndpoint | None, *, stops: bool
) -> None:
    hub = SqlInstance("hub")
    request = RouteRequest(5, "m", endpoint=ConversationEndpoint("c", True))
    network = EstateNetwork({"hub": hub}, {("hub", "Orders", "//Ship"): [request]})
    ship = ServiceAddress("//Ship", None, holds_address=False)
    assert network.is_requested(hub, "Orders", ship, 9, endpoint) == (stops, None)
