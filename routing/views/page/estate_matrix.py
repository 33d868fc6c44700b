"""Build the matrix of senders and destinations: the places of an estate as rows and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from routing.groups import group_pairs
from routing.render.wording import count
from routing.rules import text
from routing.rules.estate import SqlInstance, list_instances
from routing.rules.network import EstateNetwork
from routing.tables.table_columns import TableColumns
from routing.terms import LEAVES
from routing.views.page.facts import CONNECTION_FAILS, STUCK, EstateInstance, MessageFlow

MOST_INSTANCES = 40
"""The number of instances with their own row and column, those with most trouble first."""
MOST_ADDRESSES = 10
"""The number of addresses outside the estate with their own column."""
UNKNOWN = "(not known)"


@dataclass(frozen=True)
class EstateMatrix:
    """A matrix with the titles of its rows and columns.

    ``rows`` are the deciding instances, and ``columns`` the places where their messages end. ``title_of`` has the
    title of each instance and of each address in its form for comparison. ``ends`` are the places by path.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    title_of: Mapping[str, str]
    ends: Mapping[tuple[object, ...], str | None]

    def place(self, flow: MessageFlow) -> tuple[str, str]:
        """Return the titles of the row and the column of a flow."""
        end = self.ends[_path_of(flow)]
        return self.title_of[flow.instance], UNKNOWN if end is None else self.title_of[end]


def list_places(tables: Mapping[str, TableColumns]) -> list[EstateInstance]:
    """Return the instances with their addresses and databases, in the order of their names."""
    databases: dict[str, list[str]] = group_pairs(tables["databases"].rows("instance_name", "name"))
    return [
        EstateInstance(instance, tuple(filter(None, addresses or ())), tuple(sorted(databases.get(instance, ()))))
        for instance, addresses in sorted(tables["instances"].rows("instance_name", "addresses"))
    ]


def matrix_of(flows: Iterable[MessageFlow], places: Iterable[EstateInstance]) -> EstateMatrix:
    """Return the matrix of some flows, without rows and columns of places that have no messages."""
    network = EstateNetwork(list_instances([(place.instance, None, place.addresses) for place in places], ()))
    messages: Counter[str] = Counter()
    trouble: Counter[str] = Counter()
    senders, ends, addresses = set[str](), set[str | None](), set[str]()
    end_by_path: dict[tuple[object, ...], str | None] = {}
    for flow in flows:
        path = _path_of(flow)
        if path not in end_by_path:
            end_by_path[path] = _end_of(flow, network)
        end = end_by_path[path]
        senders.add(flow.instance)
        ends.add(end)
        if end is not None and end != flow.ending_instance and end not in network.instances:
            addresses.add(end)
        for place in {flow.instance, end} - {None}:
            messages[str(place)] += flow.messages
            trouble[str(place)] += flow.messages if flow.end in STUCK else 0
    instances = {*senders, *(end for end in ends if end is not None)} - (addresses - senders)
    ranked = sorted(instances, key=lambda name: (-trouble[name], -messages[name], name))
    outside = sorted(addresses - senders, key=lambda name: (-trouble[name], -messages[name], name))
    titles = _titles(ranked, MOST_INSTANCES, "other instance")
    titles |= _titles(outside, MOST_ADDRESSES, "other address", "other addresses")
    rows = dict.fromkeys(titles[name] for name in ranked if name in senders)
    columns = dict.fromkeys(titles[name] for name in (*ranked, *outside) if name in ends)
    return EstateMatrix(list(rows), [*columns, *([UNKNOWN] if None in ends else [])], titles, end_by_path)


def _titles(ranked: Sequence[str], most: int, noun: str, plural: str | None = None) -> dict[str, str]:
    others_title = count(len(ranked) - most, noun, plural)
    return {name: name if place < most else others_title for place, name in enumerate(ranked)}


def _path_of(flow: MessageFlow) -> tuple[object, ...]:
    """Return the facts that decide where messages end."""
    return flow.instance, flow.outcome, flow.reason is None, flow.address, flow.end, flow.ending_instance


def _end_of(flow: MessageFlow, network: EstateNetwork) -> str | None:
    """Return the instance or address where messages end, or None if it is unknown.

    Messages that leave the estate for an unknown end are counted at the address they were sent to.
    """
    if flow.outcome not in LEAVES:
        # Messages that do not leave end here, unless their decision is unknown.
        return flow.instance if flow.reason is not None else flow.ending_instance
    if flow.ending_instance is not None and flow.end != CONNECTION_FAILS:
        return flow.ending_instance
    if flow.address is None:
        return None
    owners = network.owners(flow.address, network.instances.get(flow.instance, SqlInstance(flow.instance)))
    return owners[0].name if len(owners) == 1 else text.comparable_address(flow.address)
