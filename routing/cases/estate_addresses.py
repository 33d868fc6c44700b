"""Choose addresses for remedies: as the estate's own routes write them, else with a full name."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from routing.cases.server_evidence import ServerEvidence
from routing.rules import text
from routing.rules.estate import SqlInstance
from routing.terms import LOOPBACK_HOSTS

_CONTAINER = re.compile(r"[0-9a-f]{12}", re.ASCII)


class TargetAddress(NamedTuple):
    """An address as it is written into a route.

    ``is_certain``: a route of the estate has it, or its host is an IP address or a name with a domain. A short
    machine name may not be found from elsewhere.
    """

    written: str
    is_certain: bool


class EstateAddresses:
    """The own addresses of instances, and how routes write them.

    ``own`` has the addresses of each instance as written, ``in_routes`` the addresses of routes, each with the
    instance of the route. Routes are read once, and not before an address is chosen.
    """

    def __init__(self, own: Mapping[str, Sequence[str]], in_routes: Iterable[tuple[str, str | None]] = ()) -> None:
        self._own, self._in_routes = own, in_routes

    def _list_routes(self) -> Iterator[tuple[str, str | None]]:
        """Yield the addresses of routes. They are read only if somebody asks for them."""
        yield from self._read_routes

    @cached_property
    def _read_routes(self) -> Sequence[tuple[str, str | None]]:
        return tuple(self._in_routes)

    def completed_by(self, server: ServerEvidence) -> EstateAddresses:
        """Return the addresses by which routes reach instances. Replicas of a group use their listener.

        An instance without known addresses gets those of routes with its machine's name and its endpoint's port,
        and the bare name of its machine.
        """
        unknown = {
            (text.machine_of(name), str(endpoint.port)): name
            for name, endpoint in server.endpoints.items()
            if endpoint.port is not None and not self.of(name)
        }
        completed: dict[str, Sequence[str]] = dict(self._own)
        if unknown:
            by_name: dict[str, dict[str, None]] = defaultdict(dict)
            for _, address in self._read_routes:
                machine, port = text.fold((text.host(address) or "").partition(".")[0]), text.port(address) or ""
                if address is not None and (machine, port) in unknown:
                    by_name[unknown[machine, port]][address] = None
            for (machine, port), name in unknown.items():
                completed[name] = [*by_name[name], f"tcp://{machine}:{port}"]
        for name, endpoint in server.endpoints.items():
            listeners = server.listeners_of(name)
            if listeners and endpoint.port is not None and name in completed:
                completed[name] = [f"tcp://{listener.name}:{endpoint.port}" for listener in listeners]
        return EstateAddresses(completed, self._list_routes())

    def of(self, instance: str) -> Sequence[str]:
        """Return an instance's own addresses as written."""
        return self._own.get(instance, ())

    def choose(self, instance: str, sender: SqlInstance) -> TargetAddress | None:
        """Return the address by which ``sender`` reaches an instance, or None if no address with a port is known.

        Addresses in routes of ``sender`` come first, then those in most routes. Others are ranked by their host:
        a name with a domain, an IP address, a short name.
        """
        usable = [address for address in self.of(instance) if self._leads_away(address, sender)]
        if not usable:
            return None
        best = min(usable, key=lambda address: (*self._count_uses(address, sender), _rank_host(address)))
        uses = self._uses.get(text.comparable_address(best))
        if uses is None:
            return TargetAddress(best, _rank_host(best) < _SHORT_NAME)
        _, writing = min(uses, key=lambda use: (use[0] != sender.name, -uses[use], use))
        return TargetAddress(writing, True)

    def _leads_away(self, address: str, sender: SqlInstance) -> bool:
        compared = text.comparable_address(address)
        is_hidden = is_container(text.host(address)) and compared not in self._uses
        is_own = compared in sender.own_addresses or text.host(address) in LOOPBACK_HOSTS
        return text.port(address) is not None and not is_own and not is_hidden

    def _count_uses(self, address: str, sender: SqlInstance) -> tuple[int, int]:
        """Return the negative number of routes with an address, first in ``sender``, then in the estate."""
        uses = self._uses.get(text.comparable_address(address), Counter())
        return -sum(number for (user, _), number in uses.items() if user == sender.name), -sum(uses.values())

    @cached_property
    def _uses(self) -> Mapping[str, Counter[tuple[str, str]]]:
        """How many routes have each address that an instance has, by the route's instance and writing."""
        uses: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        owned = {text.comparable_address(address) for addresses in self._own.values() for address in addresses}
        for user, address in self._read_routes:
            if address is not None and text.comparable_address(address) in owned:
                uses[text.comparable_address(address)][user, address.strip().rstrip("/")] += 1
        return uses


def list_route_addresses(instances: Mapping[str, SqlInstance]) -> Iterator[tuple[str, str | None]]:
    """Yield the addresses and mirror addresses of the routes of instances, each with the route's instance."""
    for name, instance in instances.items():
        for route in instance.every_route:
            yield name, route.address
            yield name, route.mirror_address


_SHORT_NAME = 2


def _rank_host(address: str) -> int:
    """Return the rank of an address by its host: a name with a domain, an IP address, a short name."""
    host = text.host(address) or ""
    if is_ip(host):
        return 1
    return 0 if "." in host else _SHORT_NAME


def is_container(host: str | None) -> bool:
    """Return True if a host reads like the id of a container, which other machines cannot find."""
    return host is not None and _CONTAINER.fullmatch(host) is not None


def is_ip(host: str | None) -> bool:
    """Return True if a host is written as an IP address."""
    return host is not None and (":" in host or host.replace(".", "").isdecimal())
