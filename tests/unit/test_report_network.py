"""The estate as nodes, edges and stops: where messages of a flow begin and end, and which nodes there are."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import NamedTuple

import pytest

from routing.views.page.facts import EstateInstance, MessageFlow
from routing.views.page.report_network import (
    NetworkEdge,
    NetworkNode,
    NetworkStop,
    NodeKind,
    ReportNetwork,
    network_of,
)
from tests.hostile import NAMES

HUB = EstateInstance("hub", ("tcp://hub:4022", "TCP://10.0.0.1:4022/"), ("Shop", "Stock"))
SPOKE = EstateInstance("spoke", ("tcp://spoke:4022",), ("Pay",))
# Two of one address, as a listener of two has it.
LEFT, RIGHT = (EstateInstance(name, ("tcp://pair:4022",), ()) for name in ("left", "right"))
PLACES = (HUB, SPOKE, LEFT, RIGHT)


class Line(NamedTuple):
    """An edge or a stop in words; ``target`` is None for a stop."""

    source: str
    target: str | None
    outcome: str
    messages: int


def lines(network: ReportNetwork) -> list[Line]:
    """All edges and stops, the largest first."""
    titles = network.titles
    edges = [Line(titles[one.source], titles[one.target], one.outcome, one.messages) for one in network.edges]
    stops = [Line(titles[one.node], None, one.outcome, one.messages) for one in network.stops]
    return sorted(edges + stops, key=lambda line: -line.messages)


def flow(sender: str, outcome: str, to: str | None = None, messages: int = 1) -> MessageFlow:
    """Messages of ``instance/database``; ``to``: an address, or the database that they are delivered to."""
    instance, _, database = sender.partition("/")
    is_delivered = outcome == "DELIVERED"
    address, destination = (None, to) if is_delivered else (to, None)
    return MessageFlow(instance, database or None, "S", outcome, "R", "Route", address, destination, messages, 0)


def ends(network: ReportNetwork, one: MessageFlow) -> tuple[str, str | None]:
    source, target = network.ends_of(one)
    return network.titles[source], target and network.titles[target]


@pytest.mark.parametrize(
    ("one", "begin", "end"),
    [
        (flow("hub/Shop", "DELIVERED", "Stock"), "hub.Shop", "hub.Stock"),
        (flow("hub/Shop", "DELIVERED", "Shop"), "hub.Shop", "hub.Shop"),
        # Over the network.
        (flow("hub", "DELIVERED", "Stock"), "hub", "hub.Stock"),
        # Of where in the instance nothing is known.
        (flow("hub", "DELIVERED", None), "hub", "hub"),
        (flow("hub/Shop", "SENT", "tcp://spoke:4022"), "hub.Shop", "spoke"),
        (flow("hub/Shop", "SENT", " TCP://Spoke:4022// "), "hub.Shop", "spoke"),
        (flow("spoke/Pay", "SENT", "tcp://10.0.0.1:4022"), "spoke.Pay", "hub"),
        (flow("hub", "FORWARDED", "tcp://spoke:4022"), "hub", "spoke"),
        # A mirror at the instance itself.
        (flow("hub/Shop", "SENT", "tcp://localhost:4022"), "hub.Shop", "hub"),
        (flow("hub/Shop", "SENT", "tcp://localhost:4023"), "hub.Shop", "tcp://localhost:4023"),
        (flow("hub/Shop", "SENT", "TCP://Far.example:4022/"), "hub.Shop", "tcp://far.example:4022"),
        (flow("hub/Shop", "SENT", "tcp://pair:4022"), "hub.Shop", "tcp://pair:4022"),
        # Of an instance that is not among the places.
        (flow("new/Db", "SENT", "tcp://hub:4022"), "new.Db", "hub"),
        (flow("hub/Shop", "DELAYED", None), "hub.Shop", None),
        (flow("hub/Shop", "DELAYED", "LOCAL"), "hub.Shop", None),
        (flow("hub", "DROPPED", "tcp://spoke:4022"), "hub", None),
        (flow("hub/Shop", "NOT_KNOWN", None), "hub.Shop", None),
        (flow("hub/Shop", "SENT", None), "hub.Shop", None),
    ],
)
def test_where_messages_begin_and_end(one: MessageFlow, begin: str, end: str | None) -> None:
    assert ends(network_of([one], PLACES), one) == (begin, end)


FLOWS = (
    flow("hub/Shop", "SENT", "tcp://spoke:4022", 100),
    flow("hub/Shop", "SENT", "tcp://SPOKE:4022/", 20),
    flow("spoke", "DELIVERED", "Pay", 110),
    flow("spoke", "DROPPED", None, 3),
    flow("hub/Shop", "DELIVERED", "Stock", 50),
    flow("hub/Shop", "DELAYED", None, 7),
    flow("spoke/Pay", "SENT", "tcp://far:4022", 5),
)


def test_the_whole() -> None:
    network = network_of(FLOWS, (HUB, SPOKE))
    assert network.nodes == [
        # 120 sent to it, 110 and 3 from the network, 5 of its database: each counted once.
        NetworkNode("n00", NodeKind.INSTANCE, "spoke", None, 238),
        NetworkNode("n01", NodeKind.INSTANCE, "hub", None, 177),
        NetworkNode("n02", NodeKind.DATABASE, "Shop", "n01", 177),
        NetworkNode("n03", NodeKind.DATABASE, "Pay", "n00", 115),
        NetworkNode("n04", NodeKind.DATABASE, "Stock", "n01", 50),
        NetworkNode("n05", NodeKind.ADDRESS, "tcp://far:4022", None, 5),
    ]
    assert network.edges == [
        NetworkEdge("n02", "n00", "SENT", 120),
        NetworkEdge("n00", "n03", "DELIVERED", 110),
        NetworkEdge("n02", "n04", "DELIVERED", 50),
        NetworkEdge("n03", "n05", "SENT", 5),
    ]
    assert network.stops == [NetworkStop("n02", "DELAYED", 7), NetworkStop("n00", "DROPPED", 3)]
    assert lines(network) == [
        Line("hub.Shop", "spoke", "SENT", 120),
        Line("spoke", "spoke.Pay", "DELIVERED", 110),
        Line("hub.Shop", "hub.Stock", "DELIVERED", 50),
        Line("hub.Shop", None, "DELAYED", 7),
        Line("spoke.Pay", "tcp://far:4022", "SENT", 5),
        Line("spoke", None, "DROPPED", 3),
    ]


def test_nothing_is_no_node() -> None:
    network = network_of([], [])
    assert (network.nodes, network.edges, network.stops, lines(network)) == ([], [], [], [])


def test_places_without_messages_are_nodes() -> None:
    assert [(node.name, node.messages) for node in network_of([], (SPOKE,)).nodes] == [("spoke", 0), ("Pay", 0)]


def test_names_that_look_alike_are_several_nodes() -> None:
    """``b.c`` of instance ``a`` is not ``c`` of ``a.b``, however they are joined; no instance is an address."""
    named = replace(flow("a", "SENT", "tcp://far:1"), instance="tcp://far:1")
    flows = [flow("a/b.c", "DELAYED"), flow("a.b/c", "DELAYED"), named]
    network = network_of(flows, [])
    assert len(network.nodes) == 6
    assert len({network.ends_of(one) for one in flows}) == 3


def test_any_name_is_a_name() -> None:
    flows = [flow(f"i/{name}", "DELAYED") for name in NAMES] + [flow("i", "DELIVERED", name) for name in NAMES]
    network = network_of(flows, [])
    assert {node.name for node in network.nodes if node.kind is NodeKind.DATABASE} == set(NAMES)


def crowd(instances: int) -> tuple[list[MessageFlow], list[EstateInstance]]:
    """Instances with a database each; the first has most messages, each sends some to the next and keeps some."""
    flows = []
    for number in range(instances):
        flows.append(flow(f"i{number:03d}/Db", "SENT", f"tcp://i{(number + 1) % instances:03d}:1", 1000 - number))
        flows.append(flow(f"i{number:03d}/Db", "DELAYED", None, 1))
    return flows, [
        EstateInstance(f"i{number:03d}", (f"tcp://i{number:03d}:1",), ("Db",)) for number in range(instances)
    ]


@pytest.mark.parametrize(
    ("instances", "others", "folded"),
    [(30, None, 0), (31, None, 2), (60, None, 60), (61, "4 others", 59), (100, "82 others", 59)],
)
def test_no_more_than_sixty_nodes(instances: int, others: str | None, folded: int) -> None:
    """An instance without a node leaves its database without one, one with a node takes its messages."""
    flows, places = crowd(instances)
    network = network_of(flows, places)
    assert len(network.nodes) == 60
    assert [node.name for node in network.nodes if node.kind is NodeKind.OTHERS] == ([others] if others else [])
    assert sum(node.folded for node in network.nodes) == folded
    # 1000 - n of each n, and one more of each that is delayed.
    sent = {30: 29_565, 31: 30_535, 60: 58_230, 61: 59_170, 100: 95_050}[instances]
    assert sum(edge.messages for edge in network.edges) == sent
    assert sum(stop.messages for stop in network.stops) == instances


def test_the_busiest_have_nodes_of_their_own() -> None:
    """Of instance n 1001 - n messages begin and 1001 - n end there; where the first ends, those of the last."""
    network = network_of(*crowd(100))
    *kept, others = network.nodes
    assert [(node.name, node.messages) for node in kept[:3]] == [("i001", 2000), ("i002", 1998), ("i003", 1996)]
    assert [(node.name, node.messages) for node in kept[48:51]] == [("i049", 1904), ("i000", 1902), ("i050", 1902)]
    assert [(node.name, node.messages, node.folded) for node in kept[58:]] == [("i058", 1886, 1)]
    # What the 41 from the 60th on send or keep, and what the 59th sends them.
    assert others == NetworkNode("n59", NodeKind.OTHERS, "82 others", None, 37_802 + 942)


def test_edges_of_what_has_no_node() -> None:
    flows, places = crowd(100)
    network = network_of(flows, places)
    assert ends(network, flow("i001/Db", "SENT", "tcp://i002:1")) == ("i001", "i002")
    assert ends(network, flow("i058/Db", "SENT", "tcp://i059:1")) == ("i058", "82 others")
    assert ends(network, flow("i099/Db", "SENT", "tcp://i000:1")) == ("82 others", "i000")
    assert ends(network, flow("i070/Db", "SENT", "tcp://i071:1")) == ("82 others", "82 others")
    assert ends(network, flow("i070/Db", "DELAYED")) == ("82 others", None)
    titles = {title: node for node, title in network.titles.items()}
    assert NetworkEdge(titles["i001"], titles["i002"], "SENT", 999) in network.edges
    assert NetworkEdge(titles["i058"], titles["82 others"], "SENT", 942) in network.edges
    assert NetworkEdge(titles["82 others"], titles["i000"], "SENT", 901) in network.edges
    assert NetworkEdge(titles["82 others"], titles["82 others"], "SENT", 36_860) in network.edges
    assert NetworkStop(titles["82 others"], "DELAYED", 41) in network.stops
    assert NetworkStop(titles["i001"], "DELAYED", 1) in network.stops


def test_the_order_of_what_is_given_does_not_matter() -> None:
    flows, places = crowd(100)
    once = network_of(flows, places)
    for seed in range(3):
        random.Random(seed).shuffle(flows)
        random.Random(seed).shuffle(places)
        again = network_of(flows, places)
        assert (again.nodes, again.edges, again.stops) == (once.nodes, once.edges, once.stops)


def test_a_flow_of_elsewhere_has_no_ends_here() -> None:
    with pytest.raises(KeyError):
        network_of(FLOWS, (HUB, SPOKE)).ends_of(flow("else/where", "DELAYED"))
