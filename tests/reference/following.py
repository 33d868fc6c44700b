"""Follow a message from instance to instance, and the reply to it, independently of the package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from math import lcm
from typing import Any

from .deciding import Book, Decision, searches
from .instances import MSDB, Instance, Rows, read_instances
from .joint import Place, joint_end
from .messages import Message
from .requests import Asked, End, Moment, end_of
from .text import LOOPBACK_HOSTS, address_key
from .times import utc
from .ways import Hop, Path, Trace, Way

MOST_PATHS = 100
MOST_PICKS = 1000
_OPEN_STEPS = (2, 5)
_ON_ITS_WAY = ("SENT", "FORWARDED")


class _OnRecord:
    """The requests of the route_requests table only. Message ids are ignored."""

    def __init__(self, rows: Rows) -> None:
        self._spans: dict[Asked, list[tuple[Any, Any, End | None]]] = {}
        for row in rows:
            asked = (row["instance_name"], row["database_name"], row["service_name"])
            span = (utc(row["requested_at"]), utc(row.get("ended_at")), end_of(row))
            self._spans.setdefault(asked, []).append(span)

    def stops(self, asked: Asked, moment: Moment, end: End) -> bool:
        at, spans = moment[0], self._spans.get(asked, ())
        pending = {whose for made, over, whose in spans if made < at and (over is None or at < over)}
        return not pending or end in pending


@dataclass
class _Trail:
    """The facts of the path so far."""

    hops: tuple[Hop, ...] = ()
    seen: frozenset[tuple[str, str | None, str]] = frozenset()
    branches: tuple[int, ...] = ()
    choices: tuple[tuple[int, ...], ...] = ()


@dataclass
class _Picks:
    """The least common multiple of the numbers of ids that step 3 could pick on the paths."""

    together: int = field(default=1)


class Network:
    """The instances of the tables, the owners of addresses, and the requests on record."""

    def __init__(self, tables: dict[str, Rows]) -> None:
        """Read the configuration tables and route_requests."""
        self.instances = read_instances(tables)
        self.on_record = _OnRecord(tables.get("route_requests") or [])
        self._machines = {name: _machine(one) for name, one in self.instances.items()}
        self._found: dict[tuple[str, str], list[Instance | None]] = {}
        self._owners: dict[str, set[str]] = {}
        for row in tables.get("instances") or ():
            for address in filter(None, row.get("addresses") or ()):
                if not _is_loopback(address_key(address)):
                    self._owners.setdefault(address_key(address), set()).add(row["instance_name"])

    def trace(self, message: Message, requests: Book, answer_to: str | None) -> Path:
        """Follow a message, which may open a request in the book, and the reply to the service that sent it."""
        there = self.follow(message, requests)
        sender = None if message.database is None else message.instance.databases[message.database].broker
        traced: dict[Place, Trace | None] = {}

        def reply_from(place: Place) -> Trace | None:
            if place not in traced:
                traced[place] = self._reply(message, place, answer_to, sender)
            return traced[place]

        joint = joint_end(there, (message.instance.name, message.database), reply_from)
        delivered = [way for way in there.ways if way.end == "DELIVERED"]
        if not delivered:
            return Path(there, None, None, joint)
        leaves = len(there.ways[0].hops) > 1 or there.ways[0].hops[0].outcome in _ON_ITS_WAY
        places = dict.fromkeys((way.instance, way.database) for way in delivered) if leaves else {}
        answers = tuple(one for one in map(reply_from, places) if one is not None)
        back = reply_from((delivered[0].instance, delivered[0].database))
        return Path(there, back, "NOT_KNOWN" if back is None else back.end, joint, answers)

    def _reply(self, message: Message, place: Place, answer_to: str | None, sender: str | None) -> Trace | None:
        """Follow the reply from a place. Returns None if the sending service or its broker instance is unknown."""
        if not answer_to or sender is None:
            return None
        assert place[0] is not None
        reply = replace(
            message,
            message_id="",
            is_initiator=not message.is_initiator,
            instance=self.instances[place[0]],
            database=place[1],
            service=answer_to,
            own_broker=sender,
            broker=sender,
            hops=None,
            dialog_expired=False,
        )
        return self.follow(reply, self.on_record)

    def follow(self, message: Message, requests: Book) -> Trace:
        """Follow a message, which may open a request in the book, to all its ends."""
        picks = _Picks()
        decisions = searches(message, requests)
        brought = [(message.broker, message.database or MSDB), (decisions[0].broker, MSDB)][: len(decisions)]
        seen = frozenset((message.instance.name, broker, scope) for broker, scope in brought)
        paths = list(
            islice(self._go_on(message, decisions, brought[-1][1], _Trail(seen=seen), picks), MOST_PATHS + 1)
        )
        return Trace(tuple(paths[:MOST_PATHS]), len(paths) > MOST_PATHS or picks.together > MOST_PICKS)

    def _go_on(
        self, message: Message, decisions: list[Decision], scope: str, trail: _Trail, picks: _Picks
    ) -> Iterator[Way]:
        """Yield the paths after an instance's decision, in the order of the transport's choices."""
        decision, here = decisions[-1], message.instance
        hop = Hop(
            here.name,
            scope,
            decision.step,
            decision.route_name,
            decision.address,
            decision.outcome,
            decision.reason,
            decision.broker,
            decision.rerouted_from,
        )
        if decision.outcome not in _ON_ITS_WAY:
            yield _ended(hop, decision, here, trail)
            return
        hops = message.hops
        if decision.outcome == "FORWARDED" and hops is not None:
            hops -= 1
        choices = trail.choices
        if decision.step in _OPEN_STEPS and decision.broker is None:
            choices = (*choices, trail.branches)
        branch = 0
        arrival = replace(message, database=None, broker=decision.broker, hops=hops, dialog_expired=False)
        for route, address in _takes(decision):
            last_hop = hop
            if (route, address) != (hop.route, hop.address):
                last_hop = replace(hop, route=route, address=address)
            for owner in self._at(address, here):
                branch += 1
                ahead = _Trail((*trail.hops, last_hop), trail.seen, (*trail.branches, branch), choices)
                yield from self._arrive(arrival, owner, address, ahead, picks)

    def _arrive(
        self, message: Message, owner: Instance | None, address: str, trail: _Trail, picks: _Picks
    ) -> Iterator[Way]:
        """Yield the paths of a message from the network to the owner of an address."""
        if owner is None:
            yield Way(trail.hops, "LEFT_ESTATE", address=address)
            return
        search = (owner.name, message.broker, MSDB)
        if search in trail.seen:
            yield Way(trail.hops, "LOOP", instance=owner.name)
            return
        if not owner.databases and not owner.scopes:
            yield Way(trail.hops, "NOT_KNOWN", instance=owner.name)
            return
        arrived = replace(message, instance=owner)
        decisions = searches(arrived, self.on_record)
        if decisions[-1].step == 3:
            picks.together = lcm(picks.together, _ids_to_pick(arrived))
        trail = _Trail(trail.hops, trail.seen | {search}, trail.branches, trail.choices)
        yield from self._go_on(arrived, decisions, MSDB, trail, picks)

    def _at(self, address: str, here: Instance) -> list[Instance | None]:
        """List the instances at an address that an instance sends to, by name, or only None if unknown."""
        asked = (address, here.name)
        if asked not in self._found:
            self._found[asked] = self._find(address_key(address), here)
        return self._found[asked]

    def _find(self, key: str, here: Instance) -> list[Instance | None]:
        names = set(self._owners.get(key, ()))
        if _is_loopback(key) and key in here.own_addresses:
            names = {here.name}
        elif _is_loopback(key):
            own = self._machines[here.name]
            neighbours = [one for one in self.instances.values() if not own.isdisjoint(self._machines[one.name])]
            names = {one.name for one in neighbours if key in one.own_addresses}
        return [self.instances[name] for name in sorted(names)] or [None]


def _machine(instance: Instance) -> set[str]:
    """Return the names of a machine: the start of the instance's name, and the hosts named so, or all hosts."""
    name = address_key(instance.name.split("\\")[0])
    hosts = set()
    for key in instance.own_addresses:
        if key.startswith("tcp://") and not _is_loopback(key):
            host = key[len("tcp://") :]
            hosts.add(host[: host.rindex(":")] if host.rpartition(":")[2].isdigit() else host)
    called = {host for host in hosts if host == name or host.startswith(name + ".")}
    return {name} | (called or hosts)


@lru_cache(maxsize=65536)
def _is_loopback(key: str) -> bool:
    return any(key == f"tcp://{host}" or key.startswith(f"tcp://{host}:") for host in LOOPBACK_HOSTS)


def _ended(hop: Hop, decision: Decision, here: Instance, trail: _Trail) -> Way:
    target = None if decision.destination is None else here.databases[decision.destination].broker
    return Way(
        (*trail.hops, hop),
        decision.outcome,
        decision.reason,
        here.name,
        decision.destination,
        target=target,
        choices=trail.choices,
    )


def _takes(decision: Decision) -> Iterator[tuple[str | None, str]]:
    """Yield the routes and addresses that the transport may take, as `resolved_routes` has them."""
    first = {
        "route_name": decision.route_name,
        "address": decision.address,
        "mirror_address": decision.mirror_address,
    }
    for route in [first, *(decision.alternatives or ())]:
        yield route["route_name"], route["address"]
        if route["mirror_address"] is not None:
            yield route["route_name"], route["mirror_address"]


def _ids_to_pick(message: Message) -> int:
    naming = message.instance.scopes[MSDB].naming[message.service]
    return len({route.broker for route in naming if route.broker is not None and route.in_force(message.at)})
