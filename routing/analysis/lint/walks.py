"""Open messages followed through the estate to all ends that they may have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from routing.analysis.lint.estate import Estate
from routing.rules.deciding import Decision, Key
from routing.rules.estate import ARRIVALS, Instance, NameAddress
from routing.rules.following import Errand, Followed, follow, follow_dialogs
from routing.rules.network import Addressee
from routing.rules.resolving import settled
from routing.rules.ways import Trace, Way


class Choice(NamedTuple):
    """Where the transport chooses among ways for open messages to a service: the scope of the routes."""

    instance: str
    scope: str
    service: str


class Walks:
    """Follows open messages through the instances that the tables list."""

    def __init__(self, estate: Estate) -> None:
        self.network = estate.network
        self._now = estate.now
        self._decide = estate.decisions.at

    def traces(self, choice: Choice) -> Iterator[Trace]:
        """All that messages of a choice come to: one for each hash that makes a difference.

        None for what asks for a route first: which requests are pending the tables of lint do not tell.
        """
        instance, to = self.network.instances[choice.instance], Addressee.of_name(choice.service)
        key = to.key(instance, _sender(choice.scope), None, is_initiator=True)
        decided = self._decide(key, instance, self._now)

        def follow_one(hashed: int) -> Followed | None:
            decision = decided.pick(hashed)
            if decision.asks or decision.asks_again:
                return None
            verdict = settled(decision, None, None, to.address)
            errand = Errand(to, True, self._now, hashed)
            return follow(self.network, self._decide, errand, instance, verdict, choice.scope, None)

        return (found.trace for found in follow_dialogs(len(decided.choices), follow_one))

    def of_any_service(self, instance: Instance, scope: str) -> Decision:
        """What is decided in a scope for a service that no route of it names, and that is not held here."""
        key = Key(_sender(scope), None, None, True, NameAddress.NONE)
        # What is bound to no id is balanced by the routes for its service alone, and here are none.
        return self._decide(key, instance, self._now).choices[0]

    def target(self, way: Way) -> tuple[str, str] | None:
        """The database that a way ends at, with its broker id; None where it ends at none that has one."""
        if way.instance is None or way.database is None:
            return None
        broker = self.network.instances[way.instance].databases[way.database].broker
        return None if broker is None else (f"{way.instance}.{way.database}", broker)


def _sender(scope: str) -> str | None:
    """The origin whose messages search a database's routes: those of msdb are for arrivals."""
    return None if scope == ARRIVALS else scope
