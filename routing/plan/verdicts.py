"""The verdicts of messages in plain Python, with their dialogs and the requests for routes that messages open.

Nothing is decided before a message asks for it, and nothing twice as long as there is room to remember it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from routing.plan.dialogs import DialogEnds, KnownDialogs
from routing.plan.planner import MOST_KEYS, DecisionTimeline, Planner, plan_decisions, remember
from routing.plan.requests import AskingMessage, AskingMessages, requests_on_record
from routing.rules.deciding import Decision, RoutingKey, named_broker, scope_of
from routing.rules.estate import ARRIVALS, SqlInstance
from routing.rules.hashing import dialog_id_hash
from routing.rules.network import EstateNetwork
from routing.rules.rejecting import TEXTS, is_sound, rejections
from routing.rules.requesting import InstanceRequests
from routing.rules.resolving import (
    MESSAGE_COLUMNS,
    NO_DIALOG,
    DialogFacts,
    RoutedMessage,
    Verdict,
    bound_broker,
    is_out_of_hops,
    judge,
    requested,
    requested_again,
    verdict_of,
)
from routing.rules.text import address_in_name
from routing.tables.table_columns import TableColumns
from routing.terms import BROKER_CONFIGURATION_SERVICE, ReadRow

_Row = tuple[Any, ...]


@dataclass
class KeyedMessages:
    """The messages for one service from one place, which are bound to one broker instance or to none.

    ``verdicts`` are those that messages share: by interval, pick, and whether they are out of hops.
    """

    timeline: DecisionTimeline[Decision]
    broker: str | None
    service: str
    verdicts: dict[tuple[int | None, int, bool], Verdict] = field(default_factory=dict)

    def decisions(self, t: int) -> tuple[Decision, ...]:
        """Return the possible decisions at a time: one, or one for each id that step 3 may pick."""
        return self.timeline.at(t).choices

    def decision(self, message: RoutedMessage) -> Decision:
        """Return the decision for a message, whatever it asks for."""
        decisions = self.decisions(message.t)
        return decisions[place_of_pick(decisions, message)]

    def possible(
        self, message: RoutedMessage, dialog: DialogFacts, requests: InstanceRequests
    ) -> tuple[tuple[Decision, Verdict], ...]:
        """Return each possible decision for a message with its verdict; ``requests`` as in `verdict`."""
        return tuple((one, judge(message, dialog, one, requests)) for one in self.decisions(message.t))

    def verdicts_at(self, t: int, hops_remaining: int | None) -> Iterator[Verdict]:
        """Yield the possible verdicts on these messages at a time, whichever requests are pending."""
        for decision in self.decisions(t):
            yield self.verdict_of(decision, hops_remaining)
            if decision.asks:
                yield requested(decision, self.broker, decision.first.scope)
            if decision.asks_again:
                yield requested_again(decision, self.broker)

    def verdict(self, message: RoutedMessage, dialog: DialogFacts, requests: InstanceRequests) -> Verdict:
        """Return the verdict of a message. ``requests`` must know all that messages open (section 5)."""
        interval = self.timeline.at(message.t)
        number = place_of_pick(interval.choices, message)
        decision = interval.choices[number]
        if decision.asks or decision.asks_again or (dialog is not NO_DIALOG and dialog.is_expired(message.t)):
            verdict = judge(message, dialog, decision, requests)
            if verdict.requested_in is not None or verdict.decision is None:
                return verdict
        place = interval.valid_from, number, is_out_of_hops(message.hops_remaining)
        shared = self.verdicts.get(place)
        if shared is None:
            shared = self.verdicts[place] = self.verdict_of(decision, message.hops_remaining)
        return shared

    def verdict_of(self, decision: Decision, hops_remaining: int | None) -> Verdict:
        """Return the verdict of a decision for these messages, where step 4 does not end it."""
        return verdict_of(decision, self.broker, hops_remaining, address_in_name(self.service))


def place_of_pick(decisions: Sized, message: RoutedMessage) -> int:
    """Return the place of the decision that a message's dialog gets (section 6); of any dialog the first."""
    if len(decisions) == 1 or message.conversation_id is None:
        return 0
    return dialog_id_hash(message.conversation_id) % len(decisions)


class MessageJudge:
    """Judges messages of an estate, with the requests for routes on record and those that messages open.

    Where a message may ask for a route, all must have come by `find_openers` before the first is judged.
    ``is_exact`` as `plan_decisions` has it.
    """

    def __init__(self, network: EstateNetwork, *, is_exact: bool = False, most_keys: int = MOST_KEYS) -> None:
        self.network, self._is_exact, self._most_keys = network, is_exact, most_keys
        self.requests = requests_on_record(network)
        self._decisions: Planner[Decision] = plan_decisions(is_exact=is_exact, most_keys=most_keys)
        self._keyed: dict[Hashable, KeyedMessages] = {}

    @property
    def instances(self) -> Mapping[str, SqlInstance]:
        """The instances by name, with all that is known of each."""
        return self.network.instances

    def keyed(self, message: RoutedMessage, dialog: DialogFacts) -> KeyedMessages:
        """Return the messages like this one, and what is decided for them."""
        broker = bound_broker(message, dialog)
        names = message.instance, message.database, message.service, broker, message.is_initiator
        keyed = self._keyed.get(names)
        if keyed is None:
            instance = self.instances[message.instance]
            scope = scope_of(message.database)
            named = broker if self._is_exact else named_broker(instance, scope, message.service, broker)
            place = message.database, message.service, named
            key = RoutingKey.of_names(instance, *place, is_initiator=message.is_initiator)
            keyed = KeyedMessages(self._decisions.timeline(key, instance), broker, message.service)
            remember(self._keyed, names, keyed, self._most_keys)
        return keyed

    def find_openers(self, messages: Iterable[tuple[RoutedMessage, DialogFacts]]) -> None:
        """Find out which of all messages, in any order, open a request for a route."""
        asking = {name: AskingMessages(requests) for name, requests in self.requests.items()}
        for message, dialog in messages:
            if dialog.is_expired(message.t):
                continue
            decision = self.keyed(message, dialog).decision(message)
            if decision.asks or decision.asks_again:
                asking[message.instance].add(AskingMessage(message, dialog, decision))
        for theirs in asking.values():
            theirs.open_requests()

    def verdict(self, message: RoutedMessage, dialog: DialogFacts) -> Verdict:
        """Return the verdict of a message."""
        return self.keyed(message, dialog).verdict(message, dialog, self.requests[message.instance])


class JudgedRow(NamedTuple):
    """A row of messages, judged.

    ``rejections`` are the codes for which it is set aside; then ``message`` and ``verdict`` are None. ``dialog``
    is `NO_DIALOG` where none is listed. Messages of one key, time and pick share a verdict as one object; its
    decision may be shared with messages that are bound to other ids, of which nothing in the instance has any.
    """

    rejections: tuple[str, ...]
    message: RoutedMessage | None
    dialog: DialogFacts
    verdict: Verdict | None


class _MessageOrigin(NamedTuple):
    """The origin of messages: a database, or the network; and whether any of them may meet step 4."""

    dialogs: DialogEnds
    may_ask: bool


class RowJudge:
    """Judges rows of messages, which come in batches of any size and order.

    Where any may ask for a route (`may_ask`), all must have come by `find_openers` before the first is judged.
    """

    def __init__(
        self, network: EstateNetwork, dialogs: KnownDialogs, as_of: int | None, *, most_keys: int = MOST_KEYS
    ) -> None:
        """Prepare to judge; ``as_of`` is the time of all messages in microseconds, None for their own."""
        self.messages, self._as_of = MessageJudge(network, most_keys=most_keys), as_of
        self._origins = dict(_origins(network.instances, dialogs))
        self.may_ask = any(origin.may_ask for origin in self._origins.values())
        self._has_openers = not self.may_ask

    def find_openers(self, batches: Iterable[TableColumns]) -> None:
        """Find out which messages open a request for a route; nothing is read where none may ask."""
        if self.may_ask:
            self.messages.find_openers(self._asking(batches))
            self._has_openers = True

    def judge(self, batch: TableColumns) -> list[JudgedRow]:
        """Return the rows of a batch, judged, in their order; it has all columns of messages.

        Raises ValueError where messages may ask for a route and `find_openers` has not seen them.
        """
        if not self._has_openers:
            raise ValueError("messages may ask for routes: find_openers has to see them all first")
        undecoded = _find_undecoded(batch)
        return [
            self._reject(next(batch.take([place]).dicts())) if place in undecoded else self._judge(row)
            for place, row in enumerate(batch.rows(*MESSAGE_COLUMNS))
        ]

    def _reject(self, row: ReadRow) -> JudgedRow:
        codes = rejections(row, self.messages.instances.get(row["instance_name"]))
        return JudgedRow(tuple(codes), None, NO_DIALOG, None)

    def _judge(self, row: _Row) -> JudgedRow:
        read = self._read(row)
        if read is None:
            return self._reject(dict(zip(MESSAGE_COLUMNS, row, strict=True)))
        _, message, dialog = read
        return JudgedRow((), message, dialog, self.messages.verdict(message, dialog))

    def _asking(self, batches: Iterable[TableColumns]) -> Iterator[tuple[RoutedMessage, DialogFacts]]:
        """Yield the messages that may meet step 4, in whatever search."""
        for batch in batches:
            undecoded = _find_undecoded(batch)
            for place, row in enumerate(batch.rows(*MESSAGE_COLUMNS)):
                read = None if place in undecoded else self._read(row)
                if read is not None and read[0].may_ask:
                    yield read[1], read[2]

    def _read(self, row: _Row) -> tuple[_MessageOrigin, RoutedMessage, DialogFacts] | None:
        """Return a message with where it starts and its dialog; None where it is set aside."""
        message_id, conversation, is_initiator, enqueued, _, instance, database, service, _, hops = row
        origin = self._origins.get((instance, database))
        if origin is None or not is_sound(message_id, conversation, is_initiator, enqueued, service, hops):
            return None
        message = RoutedMessage.of_row(*row, as_of=self._as_of)
        return origin, message, origin.dialogs[is_initiator].get(message.conversation_id or "", NO_DIALOG)


def _find_undecoded(batch: TableColumns) -> set[int]:
    """Return the places of messages with a text that is no UTF-8."""
    texts = TableColumns({name: batch.values[name] for name in TEXTS if name in batch.values})
    return {place for _, place, _ in texts.undecoded()}


def _origins(
    instances: Mapping[str, SqlInstance], dialogs: KnownDialogs
) -> Iterator[tuple[tuple[str, str | None], _MessageOrigin]]:
    """Yield wherever a message that is not set aside can start, by instance and database as they are written."""
    for name, instance in instances.items():
        for database in (None, *instance.databases):
            origin = _MessageOrigin(dialogs.ends_of(name, database), may_ask(instance, database))
            yield (name, database), origin
            if database is None:
                # Empty text is null.
                yield (name, ""), origin


def may_ask(instance: SqlInstance, database: str | None) -> bool:
    """Return True if a message from a database, None for an arrival, may meet step 4."""
    # One that comes back to its instance may ask in msdb.
    scopes = (scope_of(database), ARRIVALS)
    return any(BROKER_CONFIGURATION_SERVICE in instance.routes.get(scope, ()) for scope in scopes)
