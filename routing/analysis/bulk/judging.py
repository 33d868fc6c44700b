"""Every message of a batch with its verdict, or the reasons for which it is set aside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from routing.analysis.bulk.courses import Courses
from routing.analysis.bulk.dialogs import Dialogs, Ends
from routing.analysis.bulk.settling import Asking, settlements_of
from routing.rules.deciding import Decision, scope_of
from routing.rules.estate import ARRIVALS, Instance
from routing.rules.network import Network
from routing.rules.rejecting import is_sound, rejections
from routing.rules.requesting import Requests
from routing.rules.resolving import MESSAGE_COLUMNS, NO_DIALOG, Dialog, Message, Verdict, bound_broker
from routing.storage.columns import Columns, Table
from routing.storage.networks import whole_network
from routing.terms import BROKER_CONFIGURATION_SERVICE

_Row = tuple[Any, ...]


class Judged(NamedTuple):
    """A row of messages, judged.

    ``rejections`` are the codes for which it is set aside; then ``message`` and ``verdict`` are None. ``dialog``
    is `NO_DIALOG` where none is listed. Messages of one key, time and pick share a verdict as one object; its
    decision may be shared with messages that are bound to other ids, of which nothing in the instance has any.
    """

    rejections: tuple[str, ...]
    message: Message | None
    dialog: Dialog
    verdict: Verdict | None


@dataclass(frozen=True)
class _Place:
    """Where messages start: a database of an instance, or its network.

    ``may_ask``: whether any of them may meet step 4.
    """

    instance: Instance
    dialogs: Ends
    may_ask: bool


@dataclass
class Judge:
    """Judges messages by the rules, with their dialogs and the requests for routes.

    Messages come in batches of any size and order. Where any may ask for a route (`may_ask`), all must have come
    by `settle` before the first is judged.
    """

    network: Network
    as_of: int | None
    _places: Mapping[tuple[str, str | None], _Place]
    _courses: Courses
    _requests: dict[str, Requests] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Mapping[str, Columns], dialogs: Table | Dialogs | None, as_of: int | None) -> Judge:
        """A judge by routes, databases, services, instances and, if given, route_requests, all without a fault.

        ``dialogs`` is a table of Arrow's, or what another judge has read of it. ``as_of`` is the time at which all
        messages are decided, in microseconds; None for their own. Raises InputError where a dialog is at fault.
        """
        network = whole_network(settings)
        read = dialogs if isinstance(dialogs, Dialogs) else Dialogs.of_table(dialogs)
        return cls(network, as_of, dict(_places(network.instances, read)), Courses(as_of))

    @property
    def instances(self) -> Mapping[str, Instance]:
        """The instances by name, with all that is known of each."""
        return self.network.instances

    @property
    def may_ask(self) -> bool:
        """Whether any message may meet step 4."""
        return any(place.may_ask for place in self._places.values())

    def settle(self, batches: Iterable[Columns]) -> None:
        """Find out which of all messages open a request for a route; nothing is read where none may ask."""
        found = settlements_of(self.network)
        for batch in batches if self.may_ask else ():
            for message, dialog, decision in self._asking(batch):
                found[message.instance].add(Asking(message, dialog, decision))
        self._requests = {name: settlement.settle() for name, settlement in found.items()}

    def judge(self, batch: Columns) -> list[Judged]:
        """The rows of a batch, judged, in their order; it has all columns of messages.

        Raises ValueError where messages may ask for a route and `settle` has not seen them.
        """
        if not self._requests:
            if self.may_ask:
                raise ValueError("messages may ask for routes, and it is not settled which of them do")
            self.settle(())
        return [self._judge(row) for row in batch.rows(*MESSAGE_COLUMNS)]

    def _judge(self, row: _Row) -> Judged:
        read = self._read(row)
        if read is None:
            named = dict(zip(MESSAGE_COLUMNS, row, strict=True))
            codes = rejections(named, self.instances.get(named["instance_name"]))
            return Judged(tuple(codes), None, NO_DIALOG, None)
        place, message, dialog = read
        keyed = self._courses.of(place.instance, message, bound_broker(message, dialog))
        return Judged((), message, dialog, keyed.judge(message, dialog, self._requests[message.instance]))

    def _asking(self, batch: Columns) -> Iterator[tuple[Message, Dialog, Decision]]:
        """The messages of a batch that meet step 4, in whatever search."""
        for row in batch.rows(*MESSAGE_COLUMNS):
            read = self._read(row)
            if read is None or not read[0].may_ask or read[2].is_expired(read[1].t):
                continue
            place, message, dialog = read
            keyed = self._courses.of(place.instance, message, bound_broker(message, dialog))
            decision = keyed.find_decision(message)
            if decision.asks or decision.asks_again:
                yield message, dialog, decision

    def _read(self, row: _Row) -> tuple[_Place, Message, Dialog] | None:
        """A message with where it starts and its dialog; None where it is set aside."""
        message_id, conversation, is_initiator, enqueued, _, instance, database, service, _, hops = row
        place = self._places.get((instance, database))
        if place is None or not is_sound(message_id, conversation, is_initiator, enqueued, service, hops):
            return None
        message = Message.of_row(*row, as_of=self.as_of)
        return place, message, place.dialogs[is_initiator].get(message.conversation_id or "", NO_DIALOG)


def _places(
    instances: Mapping[str, Instance], dialogs: Dialogs
) -> Iterator[tuple[tuple[str, str | None], _Place]]:
    """Wherever a message that is not set aside can start, by instance and database as they are written."""
    for name, instance in instances.items():
        asking = {scope for scope, routes in instance.routes.items() if BROKER_CONFIGURATION_SERVICE in routes}
        for database in (None, *instance.databases):
            # One that comes back to its instance may ask in msdb.
            may_ask = bool({scope_of(database), ARRIVALS} & asking)
            place = _Place(instance, dialogs.of(name, database), may_ask)
            yield (name, database), place
            if database is None:
                # Empty text is null.
                yield (name, ""), place
