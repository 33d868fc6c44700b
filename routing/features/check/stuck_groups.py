"""Messages with one result, and what of the estate bears on the remedy: who holds their service, and where."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from routing.features.check import pasting
from routing.features.check.near_misses import ROUTE, NearMiss
from routing.rules import text
from routing.rules.deciding import Decision, RouteSearch
from routing.rules.estate import AddressKind, Database, EstateRoute, SqlInstance
from routing.rules.locating import has_id
from routing.rules.resolving import Verdict
from routing.terms import LOOPBACK_HOSTS


@dataclass(frozen=True)
class StuckGroup:
    """One group of messages with the same result.

    ``instances`` are all that are known, ``addresses`` an instance's own addresses as written, where known.
    ``instance`` is where they are stuck, ``database`` the one of it that sent them, None where they came from the
    network; ``scope`` is the database whose routes were searched last: the sender or msdb. ``broker`` is the id
    that the messages are bound to. ``near`` is what `NearMisses` finds for the scope. ``services_in_use`` are
    names of services that messages are sent to: a route that names one stays. ``back_to`` is the instance and the
    database that acknowledgements go back to, None for messages; ``from_service`` the service that sent them, None
    where that is not known.
    """

    instances: Mapping[str, SqlInstance]
    addresses: Mapping[str, Sequence[str]]
    instance: str
    database: str | None
    scope: str
    service: str
    broker: str | None
    verdict: Verdict
    near: Sequence[NearMiss]
    services_in_use: Collection[str] = frozenset()
    back_to: tuple[str, str] | None = None
    from_service: str | None = None

    @property
    def here(self) -> SqlInstance:
        """The sender's instance."""
        return self.instances.get(self.instance) or SqlInstance(self.instance)

    @property
    def first(self) -> RouteSearch:
        """The search of the sender's routes. Only for verdicts that have a decision."""
        return self._decision.first

    @property
    def last(self) -> RouteSearch:
        """The search that decided. Only for verdicts that have a decision."""
        return self._decision.last

    @property
    def came_back(self) -> bool:
        """Whether a route of the sender led back to its own instance, where msdb's routes were searched."""
        return self.verdict.decision is not None and self.verdict.decision.again is not None

    @property
    def cannot_forward(self) -> bool:
        """Return True if they arrived from the network, and no route leads them on while forwarding is off."""
        return self.database is None and not self.here.is_forwarding

    @property
    def holders_here(self) -> tuple[Database, ...]:
        """The databases of the sender's instance that hold the service, whatever their ids."""
        return self.here.holders_of(self.service)

    @property
    def fitting_here(self) -> list[Database]:
        """Those of them that the messages may be delivered to, once their brokers are on."""
        return [holder for holder in self.holders_here if has_id(holder, self.last.known_broker)]

    def holders_elsewhere(self) -> list[tuple[str, Database]]:
        """List databases of other known instances that hold the service and have the id, with instances."""
        return [
            (name, holder)
            for name, instance in sorted(self.instances.items())
            if name != self.instance
            for holder in instance.holders_of(self.service)
            if has_id(holder, self.last.known_broker)
        ]

    def target(self) -> str | None:
        """Return the only other instance that holds the service; None where none or several do."""
        holding_instances = {name for name, _ in self.holders_elsewhere()}
        return holding_instances.pop() if len(holding_instances) == 1 else None

    def address_of(self, instance: str) -> str | None:
        """Return an address under which the sender's instance reaches another: with a port, and not its own."""
        for address in self.addresses.get(instance, ()):
            is_own = text.comparable_address(address) in self.here.own_addresses
            if text.port(address) is not None and text.host(address) not in LOOPBACK_HOSTS and not is_own:
                return address
        return None

    def is_needed(self, service: str | None) -> bool:
        """Return True if a service of this very name is in use, or any known instance holds it."""
        is_held = any(instance.holders_of(service) for instance in self.instances.values())
        return is_held or service in self.services_in_use

    def is_current(self, broker: str | None) -> bool:
        """Return True if a known database that holds the service has this id today."""
        holders = (each for instance in self.instances.values() for each in instance.holders_of(self.service))
        return broker is not None and any(holder.broker == broker for holder in holders)

    def missed_route(self, near: NearMiss) -> EstateRoute | None:
        """Return the route that a near miss tells of, the last of its versions."""
        if near.what != ROUTE:
            return None
        named = self.here.routes.get(near.database, {}).get(near.service, ())
        route_versions = [route for route in named if (route.name, route.broker) == (near.name, near.broker)]
        return route_versions[-1] if route_versions else None

    def would_lead_on(self, route: EstateRoute) -> bool:
        """Return whether a route would, if it matched, take the messages to a known holder of the service.

        Not one back to this very instance, where they do not get on, nor one to another instance than theirs.
        """
        if route.kind is AddressKind.LOCAL:
            broker = self.last.broker or route.broker
            return any(holder.is_enabled and has_id(holder, broker) for holder in self.holders_here)
        if (
            route.kind is not AddressKind.NETWORK
            or route.compared in self.here.own_addresses
            or self.cannot_forward
        ):
            return False
        target = self.target()
        if target is None or not self.addresses.get(target):
            return True
        return route.compared in {text.comparable_address(address) for address in self.addresses[target]}

    @property
    def _decision(self) -> Decision:
        if self.verdict.decision is None:
            raise ValueError("no routes were searched")
        return self.verdict.decision


@dataclass(frozen=True)
class MessageRemedy:
    """A remedy: words, a sentence or two, and the statement to paste.

    ``statement`` is T-SQL, `USE` on a line of its own before it; None where there are only words. Where
    ``is_complete`` it can be run as it is; else a value must be found out first and every line is a comment.
    """

    words: str
    statement: str | None = None
    is_complete: bool = False

    def state_place(self, instance: str) -> str:
        """Return the sentence that says where the statement is run, and what is done to it before."""
        if self.is_complete:
            return f"Run this on {pasting.named(instance)}."
        is_open = "<" in (self.statement or "")
        first = "put a value into each place <…>" if is_open else "choose one of the two ways"
        return f"On {pasting.named(instance)}, {first} before you run this."


class PlacedRemedy(NamedTuple):
    """A remedy, and the instance that it is for."""

    instance: str
    remedy: MessageRemedy


def ready(words: str, database: str, *lines: str | None) -> MessageRemedy:
    """Build a remedy with statements to be run as they are; words alone where a name cannot be pasted."""
    statement = pasting.in_database(database, lines)
    return MessageRemedy(words, statement, True) if statement is not None else _in_words(words)


def to_fill_in(words: str, database: str, *lines: str | None) -> MessageRemedy:
    """Build a remedy whose statements need a value first; words alone where a name cannot be pasted."""
    statement = pasting.as_comment(pasting.in_database(database, lines))
    return MessageRemedy(words, statement) if statement is not None else _in_words(words)


def _in_words(words: str) -> MessageRemedy:
    return MessageRemedy(
        f"{words} (No statement: a name in it cannot be pasted safely, or is too long for SQL Server.)"
    )
