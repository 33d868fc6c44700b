"""Which messages open a request for a route (rule book, section 5): all that ask, taken in their order.

The one settling of requests in plain Python; afterwards `rules.requesting.Scope` tells of each message whether it
opens one, waits with its conversation, or goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from routing.rules.deciding import Decision
from routing.rules.network import EstateNetwork
from routing.rules.requesting import InstanceRequests, RouteRequest
from routing.rules.resolving import DialogFacts, RoutedMessage, judge


def order_of_asking(message: RoutedMessage) -> tuple[int, str, str, bool]:
    """Return the place of a message among those that ask; rows equal in (t, message_id) by their endpoint."""
    return message.t, message.message_id, message.conversation_id or "", message.is_initiator


class AskingMessage(NamedTuple):
    """A message that meets step 4, with what is decided for it."""

    message: RoutedMessage
    dialog: DialogFacts
    decision: Decision

    @property
    def position(self) -> tuple[int, str]:
        """When it asks: (t, message_id)."""
        return self.message.t, self.message.message_id

    @property
    def databases(self) -> tuple[str, ...]:
        """Where it asks, in this order: in its scope, and in msdb once it has come back."""
        decision = self.decision
        searches = (decision.first, decision.again)
        return tuple(search.scope for search in searches if search is not None and search.asks)


def open_requests(asking: Iterable[AskingMessage], requests: InstanceRequests) -> None:
    """Open the requests of one instance's messages, which come in the order of `order_of_asking`.

    Afterwards any message can be judged by ``requests``, in any order.
    """
    for one in asking:
        judge(one.message, one.dialog, one.decision, requests)


@dataclass
class AskingMessages:
    """The messages of one instance that may open a request; ``requests`` are those on record.

    Few of them have to be remembered: of the messages that ask in one database alone, and whose request is not on
    record, the first opens one, and every later one finds it pending, whether it then waits or goes on.
    """

    requests: InstanceRequests
    _first: dict[tuple[str, str], AskingMessage] = field(default_factory=dict)
    _others: list[AskingMessage] = field(default_factory=list)

    def add(self, asking: AskingMessage) -> None:
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
        elif place not in self._first or _order(asking) < _order(self._first[place]):
            self._first[place] = asking

    def open_requests(self) -> InstanceRequests:
        """Return all requests, those that the messages open included."""
        open_requests(sorted(self._all(), key=_order), self.requests)
        return self.requests

    def _all(self) -> Iterator[AskingMessage]:
        yield from self._first.values()
        yield from self._others


def _order(asking: AskingMessage) -> tuple[int, str, str, bool]:
    return order_of_asking(asking.message)


def requests_on_record(network: EstateNetwork) -> Mapping[str, InstanceRequests]:
    """Collect the requests on record by instance."""
    rows_by_instance: dict[str, list[tuple[str, str, RouteRequest]]] = {name: [] for name in network.instances}
    for (instance, database, service), requests in network.on_record.items():
        if instance in rows_by_instance:
            rows_by_instance[instance] += [(database, service, request) for request in requests]
    return {name: InstanceRequests.on_record(rows) for name, rows in rows_by_instance.items()}
