"""The estate as nodes, and its messages as edges between them; delayed and dropped messages stop where they are.

Every message of the flows is in one edge or in one stop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from routing.rules import network as rules
from routing.rules import text
from routing.rules.estate import SqlInstance, list_instances
from routing.tables.table_columns import TableColumns
from routing.terms import Outcome, Word
from routing.views.page.facts import EstateInstance, MessageFlow

MOST_NODES = 60
"""More are no picture but a wall: the busiest are nodes, the rest are told as their instance, or as one node."""
_MOVING = (Outcome.SENT, Outcome.FORWARDED)


class NodeKind(Word):
    """The kind of a node; ADDRESS: where messages leave to, that of no instance known, or of several."""

    INSTANCE = "INSTANCE"
    DATABASE = "DATABASE"
    ADDRESS = "ADDRESS"
    OTHERS = "OTHERS"


class _Spot(NamedTuple):
    """The place of a node: an instance, a database of it, or an address as it is compared."""

    kind: NodeKind
    name: str
    database: str = ""

    @property
    def around(self) -> _Spot:
        """The instance of a database; of all else the spot itself."""
        return _Spot(NodeKind.INSTANCE, self.name) if self.kind is NodeKind.DATABASE else self


@dataclass(frozen=True)
class NetworkNode:
    """An instance, a database, an address, or all that has no node of its own.

    ``inside`` is the id of a database's instance. ``messages`` begin, end or stop there; those of an instance's
    databases count for it too. ``folded``: so many databases of the instance have no node and are counted in its
    node.
    """

    id: str
    kind: NodeKind
    name: str
    inside: str | None
    messages: int
    folded: int = 0


@dataclass(frozen=True)
class NetworkEdge:
    """Messages with one outcome from a node to another, or to itself; ids of nodes."""

    source: str
    target: str
    outcome: str
    messages: int


@dataclass(frozen=True)
class NetworkStop:
    """Messages with one outcome that go no further than a node."""

    node: str
    outcome: str
    messages: int


@dataclass(frozen=True)
class ReportNetwork:
    """Nodes, the busiest first, `MOST_NODES` at most; edges and stops, the largest first."""

    nodes: Sequence[NetworkNode]
    edges: Sequence[NetworkEdge]
    stops: Sequence[NetworkStop]
    naming: _Naming

    def ends_of(self, flow: MessageFlow) -> tuple[str, str | None]:
        """Return the ids of the nodes where messages of a flow begin and end; None where they stop where they are.

        Raises:
            KeyError: The network was not made of this flow, and has no node for it.
        """
        return self.naming.ends(flow)

    @property
    def titles(self) -> Mapping[str, str]:
        """What each node is called outside its box, by id: a database as ``instance.database``."""
        names = {node.id: node.name for node in self.nodes}
        return {node.id: f"{names[node.inside]}.{node.name}" if node.inside else node.name for node in self.nodes}


@dataclass(frozen=True)
class _Finder:
    """The places where messages begin and end, by the owners of addresses."""

    estate: rules.EstateNetwork

    @classmethod
    def of_places(cls, places: Iterable[EstateInstance]) -> _Finder:
        """Return a finder of the instances' own addresses."""
        return cls(
            rules.EstateNetwork(list_instances([(one.instance, None, one.addresses) for one in places], ()))
        )

    def ends(self, flow: MessageFlow) -> tuple[_Spot, _Spot | None]:
        """Return where messages of a flow begin, and where they end if they go anywhere."""
        return _at(flow.instance, flow.database), self._end(flow)

    def _end(self, flow: MessageFlow) -> _Spot | None:
        if flow.outcome == Outcome.DELIVERED:
            return _at(flow.instance, flow.destination_database)
        return self._owner(flow.address, flow.instance) if flow.outcome in _MOVING and flow.address else None

    def _owner(self, address: str, sender: str) -> _Spot:
        """Return the only instance that has an address; the address itself where none or several have it."""
        owners = self.estate.owners(address, self.estate.instances.get(sender, SqlInstance(sender)))
        return (
            _at(owners[0].name) if len(owners) == 1 else _Spot(NodeKind.ADDRESS, text.comparable_address(address))
        )


@dataclass(frozen=True)
class _Naming:
    """The id of the node that each spot belongs to: its own, that of its instance, else ``others``."""

    finder: _Finder
    ids: Mapping[_Spot, str]
    others: str | None

    def ends(self, flow: MessageFlow) -> tuple[str, str | None]:
        """Return the ids of the nodes at both ends of a flow."""
        source, target = self.finder.ends(flow)
        return self.id(source), None if target is None else self.id(target)

    def id(self, spot: _Spot) -> str:
        """Return the id of the node that a spot belongs to."""
        node_id = self.ids.get(spot) or self.ids.get(spot.around) or self.others
        if node_id is None:
            raise KeyError(spot)
        return node_id


_FlowCounts = Counter[tuple[_Spot, _Spot | None, str]]
"""Messages by where they begin, where they end, None where they stop, and outcome."""


def _at(instance: str, database: str | None = None) -> _Spot:
    return _Spot(NodeKind.INSTANCE, instance) if database is None else _Spot(NodeKind.DATABASE, instance, database)


def list_places(tables: Mapping[str, TableColumns]) -> list[EstateInstance]:
    """Return the instances with their addresses and databases, in the order of their names."""
    databases: dict[str, list[str]] = {}
    for instance, name in tables["databases"].rows("instance_name", "name"):
        databases.setdefault(instance, []).append(name)
    return [
        EstateInstance(instance, tuple(filter(None, addresses or ())), tuple(sorted(databases.get(instance, ()))))
        for instance, addresses in sorted(tables["instances"].rows("instance_name", "addresses"))
    ]


def network_of(flows: Sequence[MessageFlow], places: Sequence[EstateInstance]) -> ReportNetwork:
    """Return the picture of an estate: its places and what else its messages come by, and the messages."""
    finder = _Finder.of_places(places)
    flow_counts: _FlowCounts = Counter()
    for flow in flows:
        flow_counts[(*finder.ends(flow), flow.outcome)] += flow.messages
    busyness = _busyness(flow_counts, places)
    order = list(NodeKind)
    # An instance is never less busy than a database of it and comes before it: none has a node without it.
    ranked = sorted(busyness, key=lambda spot: (-busyness[spot], order.index(spot.kind), spot))
    shown_spots = _shown_spots(ranked)
    # Of equal length, so that they sort as the nodes do.
    ids = {spot: f"n{number:02d}" for number, spot in enumerate(shown_spots)}
    folded = Counter(spot.around for spot in ranked if spot not in ids)
    nodes = [_node(spot, ids, busyness[spot], folded[spot]) for spot in shown_spots]
    others = _others(set(_without_node(ranked, shown_spots)), flow_counts, f"n{len(shown_spots):02d}")
    return _with_messages([*nodes, *others], flow_counts, _Naming(finder, ids, others[0].id if others else None))


def _shown_spots(ranked: Sequence[_Spot]) -> Sequence[_Spot]:
    """Return the spots that have a node of their own, which leaves one for all others where there are any."""
    most_busy = ranked[:MOST_NODES]
    return most_busy[: MOST_NODES - 1] if _without_node(ranked, most_busy) else most_busy


def _without_node(spots: Iterable[_Spot], with_node: Iterable[_Spot]) -> list[_Spot]:
    """Return the spots that are not kept and whose instance is not either."""
    nodes = set(with_node)
    return [spot for spot in spots if not {spot, spot.around} & nodes]


def _others(left: Set[_Spot], flow_counts: _FlowCounts, number: str) -> list[NetworkNode]:
    """Return one node for all that is left; none where nothing is."""
    messages = sum(messages for (source, target, _), messages in flow_counts.items() if left & {source, target})
    name = f"{len(left):,} {'other' if len(left) == 1 else 'others'}"
    return [NetworkNode(number, NodeKind.OTHERS, name, None, messages)] if left else []


def _busyness(flow_counts: _FlowCounts, places: Iterable[EstateInstance]) -> Mapping[_Spot, int]:
    """Count the messages that begin, end or stop at each spot; places without any are there with 0."""
    busyness: Counter[_Spot] = Counter()
    for place in places:
        busyness.update({_at(place.instance): 0, **{_at(place.instance, name): 0 for name in place.databases}})
    for (source, target, _), messages in flow_counts.items():
        ends = (source,) if target is None else (source, target)
        for spot in {*ends, *(end.around for end in ends)}:
            busyness[spot] += messages
    return busyness


def _node(spot: _Spot, ids: Mapping[_Spot, str], messages: int, folded: int) -> NetworkNode:
    if spot.kind is NodeKind.DATABASE:
        return NetworkNode(ids[spot], spot.kind, spot.database, ids[spot.around], messages)
    return NetworkNode(ids[spot], spot.kind, spot.name, None, messages, folded)


def _with_messages(nodes: Sequence[NetworkNode], flow_counts: _FlowCounts, naming: _Naming) -> ReportNetwork:
    edges: Counter[tuple[str, str, str]] = Counter()
    stops: Counter[tuple[str, str]] = Counter()
    for (source, target, outcome), messages in flow_counts.items():
        if target is None:
            stops[naming.id(source), outcome] += messages
        else:
            edges[naming.id(source), naming.id(target), outcome] += messages
    network_edges = [NetworkEdge(*ends, messages) for ends, messages in edges.items()]
    left = [NetworkStop(*where, messages) for where, messages in stops.items()]
    return ReportNetwork(
        nodes,
        sorted(network_edges, key=lambda edge: (-edge.messages, edge.source, edge.target, edge.outcome)),
        sorted(left, key=lambda stop: (-stop.messages, stop.node, stop.outcome)),
        naming,
    )
