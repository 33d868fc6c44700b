"""Which addresses instances are taken to have by their names, where no export tells their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from routing.features.check.evidence import FileEvidence
from routing.features.check.gaps import EstateKnowledge
from routing.rules import text
from routing.rules.estate import SqlInstance, own_addresses, places_of

_PORT_OF_LOGINS = "1433"
"""Where SQL Server itself listens, and no Service Broker endpoint."""


@dataclass(frozen=True)
class AssumedAddresses:
    """Addresses as they are compared, each with the instance that is taken to listen there."""

    owners: Mapping[str, str]

    @classmethod
    def of_estate(cls, knowledge: EstateKnowledge) -> AssumedAddresses:
        """Collect written addresses that name the machine of one known instance alone.

        None is taken to have several ports, nor where another instance of the machine is known.
        """
        known_addresses = places_of(knowledge.instances.values())
        by_instance: dict[str, set[str]] = defaultdict(set)
        for address in _written_addresses(knowledge.evidence):
            compared = text.comparable_address(address)
            if compared in known_addresses or text.port(compared) in (None, _PORT_OF_LOGINS):
                continue
            for instance in knowledge.may_be_at(address):
                by_instance[instance].add(compared)
        machines: dict[str, int] = defaultdict(int)
        for name in knowledge.instances:
            machines[_machine(name)] += 1
        return cls(
            {
                address: instance
                for instance, addresses in by_instance.items()
                if machines[_machine(instance)] == 1 and len(set(map(text.port, addresses))) == 1
                for address in addresses
            }
        )

    def owner_of(self, address: str | None) -> str | None:
        """Return the instance that is taken to listen at an address."""
        return None if address is None else self.owners.get(text.comparable_address(address))

    def added_to(self, instances: Mapping[str, SqlInstance]) -> dict[str, SqlInstance]:
        """Return all instances, some with the addresses that they are taken to have."""
        assumed: dict[str, list[str]] = defaultdict(list)
        for address, name in self.owners.items():
            assumed[name].append(address)
        return {
            name: replace(instance, own_addresses=own_addresses(assumed[name])) if name in assumed else instance
            for name, instance in instances.items()
        }


def _machine(instance: str) -> str:
    return text.fold(instance.partition("\\")[0])


def _written_addresses(evidence: FileEvidence) -> Iterator[str]:
    """Yield the addresses of routes, and those that services' names begin with."""
    for row in evidence.rows["routes"]:
        yield from (address for address in (row["address"], row["mirror_address"]) if text.is_tcp(address))
    services = {
        row.get(name) for row in evidence.rows["messages"] for name in ("to_service_name", "from_service_name")
    }
    for service in services:
        address = text.address_in_name(service)
        if address is not None:
            yield address
