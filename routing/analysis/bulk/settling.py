"""Which messages open a request for a route (rule book, section 5): all that ask, taken in their order.

Few of them have to be remembered for that: of the messages that ask in one database alone, and whose request is
not on record, the first opens one, and every later one finds it pending.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from routing.rules.deciding import Decision
from routing.rules.network import Network
from routing.rules.requesting import Requests, Scope
from routing.rules.resolving import Dialog, Message, judge


@dataclass(frozen=True)
class Asking:
    """A message that meets step 4, with what is decided for it."""

    message: Message
    dialog: Dialog
    decision: Decision

    @property
    def position(self) -> tuple[int, str]:
        """Where it stands in the order of those that ask."""
        return self.message.t, self.message.message_id

    @property
    def databases(self) -> tuple[str, ...]:
        """Where it asks, in this order: in its scope, and in msdb once it has come back."""
        decision = self.decision
        legs = (decision.first, decision.again)
        return tuple(leg.scope for leg in legs if leg is not None and leg.asks)


@dataclass
class Settlement:
    """The messages of one instance that may open a request; ``requests`` are those on record."""

    requests: Requests
    _first: dict[tuple[str, str], Asking] = field(default_factory=dict)
    _others: list[Asking] = field(default_factory=list)

    def add(self, asking: Asking) -> None:
        """Remember a message if it may open a request; they come in any order."""
        databases = asking.databases
        if len(databases) > 1:
            self._others.append(asking)
            return
        place = databases[0], asking.message.service
        scope = self.requests.of(*place)
        if scope.is_pending_on_record(*asking.position):
            return
        if scope.is_on_record(*asking.position):
            self._others.append(asking)
        elif place not in self._first or asking.position < self._first[place].position:
            self._first[place] = asking

    def settle(self) -> Requests:
        """Have the messages open their requests, in order; all that are open then."""
        for asking in sorted(self._all(), key=lambda asking: asking.position):
            judge(asking.message, asking.dialog, asking.decision, self.requests)
        return self.requests

    def _all(self) -> Iterator[Asking]:
        yield from self._first.values()
        yield from self._others


def settlements_of(network: Network) -> dict[str, Settlement]:
    """A settlement for each instance, by the requests on record."""
    found = {name: Settlement(Requests()) for name in network.instances}
    for (instance, database, service), on_record in network.on_record.items():
        if instance in found:
            found[instance].requests.scopes[database, service] = Scope(tuple(on_record))
    return found
