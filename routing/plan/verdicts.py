"""Judge messages in plain Python, with their dialogs and the route requests that messages open.

Decisions are computed on demand, and cached up to a limit.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from typing import NamedTuple

from routing.plan.planner import MOST_KEYS, DecisionTimeline, Planner, remember
from routing.rules import text
from routing.rules.deciding import Decision, RoutingKey, named_broker, scope_of
from routing.rules.estate import ARRIVALS, SqlInstance
from routing.rules.hashing import dialog_id_hash
from routing.rules.network import EstateNetwork
from routing.rules.requesting import InstanceRequests, RouteRequest
from routing.rules.resolving import (
    DIALOG_COLUMNS,
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
from routing.schemas import KEYS
from routing.tables.table_columns import TableColumns
from routing.terms import BROKER_CONFIGURATION_SERVICE, SortKey

# The dialogs of messages in plain Python, one small object for each relevant dialog.


_END = KEYS["dialogs"]

DialogEnds = tuple[Mapping[str, DialogFacts], Mapping[str, DialogFacts]]
"""The dialogs of a database by folded conversation id: the ends of targets, then those of initiators."""
_NO_ENDS: DialogEnds = ({}, {})


@dataclass(frozen=True)
class KnownDialogs:
    """Dialogs by the instance and database of their end."""

    by_database: Mapping[tuple[str, str], DialogEnds]

    @classmethod
    def of_columns(cls, batches: Iterable[TableColumns]) -> KnownDialogs:
        """Return the dialogs of columns. Rows without a conversation or a role are ignored."""
        by_database: dict[tuple[str, str], tuple[dict[str, DialogFacts], dict[str, DialogFacts]]] = {}
        for batch in batches:
            ends, rows = batch.rows(*_END), list(batch.rows(*DIALOG_COLUMNS))
            # Many dialogs share their facts.
            facts = {row: DialogFacts.of_row(*row) for row in set(rows)}
            for (instance, database, conversation, is_initiator), row in zip(ends, rows, strict=True):
                if conversation is None or is_initiator is None:
                    continue
                by_end = by_database.setdefault((instance, database), ({}, {}))
                by_end[is_initiator][text.fold(conversation)] = facts[row]
        return cls(by_database)

    def ends_of(self, instance: str, database: str | None) -> DialogEnds:
        """Return the dialogs of a database. Arrivals over the network have none."""
        return _NO_ENDS if database is None else self.by_database.get((instance, database), _NO_ENDS)

    def of(self, message: RoutedMessage) -> DialogFacts:
        """Return the dialog of a message. An unknown dialog has no facts."""
        folded_id = message.conversation_id or ""
        return self.find(message.instance, message.database, folded_id, message.is_initiator)

    def find(self, instance: str, database: str | None, folded_id: str, is_initiator: bool) -> DialogFacts:
        """Return the dialog at one end of a conversation, as `of` does."""
        return self.ends_of(instance, database)[is_initiator].get(folded_id, NO_DIALOG)


# Open requests for routes (rule book, section 5): take all messages that ask, in their order.
#
# Plain Python opens requests only here. Afterwards `rules.requesting.InstanceRequests` knows for each message
# whether it opens one, waits with its conversation, or continues.


def order_of_asking(message: RoutedMessage) -> SortKey:
    """Return the sort key of a message among asking ones. Equal (t, message_id) are sorted by endpoint."""
    return message.t, message.message_id, message.conversation_id or "", message.is_initiator


class AskingMessage(NamedTuple):
    """A message that reaches step 4, with its decision."""

    message: RoutedMessage
    dialog: DialogFacts
    decision: Decision

    @property
    def position(self) -> tuple[int, str]:
        """The position at which it asks: (t, message_id)."""
        return self.message.t, self.message.message_id

    @property
    def databases(self) -> tuple[str, ...]:
        """The databases in which it asks, in order: its scope, and msdb after it has come back."""
        decision = self.decision
        searches = (decision.first, decision.second)
        return tuple(search.scope for search in searches if search is not None and search.asks)


def open_requests(asking: Iterable[AskingMessage], requests: InstanceRequests) -> None:
    """Open the requests of one instance's messages, which come in the order of `order_of_asking`.

    Afterwards any message can be judged by ``requests``, in any order.
    """
    for one in asking:
        judge(one.message, one.dialog, one.decision, requests)


@dataclass
class AskingMessages:
    """The messages of one instance that may open a request. ``requests`` are the recorded ones.

    Only a few are stored. Of messages that ask in one database and have no request on record, only the first for
    a service is stored. It opens the request, and every later one finds it pending, even if it does not wait.
    """

    requests: InstanceRequests
    _first: dict[tuple[str, str], AskingMessage] = field(default_factory=dict)
    _in_any_order: list[AskingMessage] = field(default_factory=list)

    def add(self, asking: AskingMessage) -> None:
        """Store a message if it may open a request. Messages come in any order."""
        databases = asking.databases
        if len(databases) > 1:
            self._in_any_order.append(asking)
            return
        place = databases[0], asking.message.service
        scope = self.requests.of(*place)
        if scope.is_pending_on_record(*asking.position):
            return
        if scope.is_on_record(*asking.position):
            self._in_any_order.append(asking)
        elif place not in self._first or _order(asking) < _order(self._first[place]):
            self._first[place] = asking

    def open_requests(self) -> None:
        """Open the requests of the stored messages."""
        open_requests(sorted((*self._first.values(), *self._in_any_order), key=_order), self.requests)


def _order(asking: AskingMessage) -> SortKey:
    return order_of_asking(asking.message)


def requests_on_record(network: EstateNetwork) -> Mapping[str, InstanceRequests]:
    """Collect the requests on record by instance."""
    rows_by_instance: dict[str, list[tuple[str, str, RouteRequest]]] = {name: [] for name in network.instances}
    for (instance, database, service), requests in network.on_record.items():
        if instance in rows_by_instance:
            rows_by_instance[instance] += [(database, service, request) for request in requests]
    return {name: InstanceRequests.on_record(rows) for name, rows in rows_by_instance.items()}


@dataclass
class KeyedMessages:
    """Messages with one timeline and the same broker instance, or without one.

    ``address`` is the address in the name of their service, if it has one. ``verdicts`` are cached by interval,
    pick, and whether no hops remain.
    """

    timeline: DecisionTimeline
    broker: str | None
    address: str | None
    verdicts: dict[tuple[int | None, int, bool], Verdict] = field(default_factory=dict)

    def decisions(self, t: int) -> tuple[Decision, ...]:
        """Return the possible decisions at a time: one, or one for each id that step 3 may pick."""
        return self.timeline.at(t).choices

    def decision(self, message: RoutedMessage) -> Decision:
        """Return the decision for a message, without its request for a route."""
        decisions = self.decisions(message.t)
        return decisions[place_of_pick(decisions, message)]

    def possible(
        self, message: RoutedMessage, dialog: DialogFacts, requests: InstanceRequests
    ) -> tuple[Verdict, ...]:
        """Return the verdict of each possible decision for a message. ``requests`` is as in `verdict`."""
        return tuple(judge(message, dialog, one, requests) for one in self.decisions(message.t))

    def verdicts_at(self, t: int, hops_remaining: int | None) -> Iterator[Verdict]:
        """Yield the possible verdicts on these messages at a time, whichever requests are pending."""
        for decision in self.decisions(t):
            yield self.verdict_of(decision, hops_remaining)
            if decision.asks:
                yield requested(decision, self.broker, decision.first.scope)
            if decision.asks_again:
                yield requested_again(decision, self.broker)

    def is_shared(self, t: int, dialog: DialogFacts) -> bool:
        """Return True if all messages with these facts of a dialog have one verdict, whatever their ids are."""
        decisions = self.decisions(t)
        is_asking = decisions[0].asks or decisions[0].asks_again
        return len(decisions) == 1 and not is_asking and not dialog.is_expired(t)

    def verdict(self, message: RoutedMessage, dialog: DialogFacts, requests: InstanceRequests) -> Verdict:
        """Return the verdict of a message. ``requests`` must include all that messages open (section 5)."""
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
        """Return the verdict of a decision for these messages, if step 4 does not end it."""
        return verdict_of(decision, self.broker, hops_remaining, self.address)


def place_of_pick(decisions: Sized, message: RoutedMessage) -> int:
    """Return the place of the decision for a message's dialog (section 6), or 0 without a dialog."""
    if len(decisions) == 1 or message.conversation_id is None:
        return 0
    return dialog_id_hash(message.conversation_id) % len(decisions)


class MessageJudge:
    """Judges messages of an estate, with route requests that are recorded or that messages open.

    If messages may ask for a route, pass all of them to `find_openers` before the first is judged. ``is_exact`` is
    that of `Planner`.
    """

    def __init__(self, network: EstateNetwork, *, is_exact: bool = False, most_keys: int = MOST_KEYS) -> None:
        self.network, self._is_exact, self._most_keys = network, is_exact, most_keys
        self.requests = requests_on_record(network)
        self._decisions = Planner(is_exact=is_exact, most_keys=most_keys)
        self._keyed: dict[Hashable, KeyedMessages] = {}
        self._shared: dict[Hashable, KeyedMessages] = {}

    @property
    def instances(self) -> Mapping[str, SqlInstance]:
        """The instances by name."""
        return self.network.instances

    def keyed(self, message: RoutedMessage, dialog: DialogFacts) -> KeyedMessages:
        """Return the messages with the verdicts of this one, whichever services they are for."""
        broker = bound_broker(message, dialog)
        names = message.instance, message.database, message.service, broker, message.is_initiator
        keyed = self._keyed.get(names)
        if keyed is None:
            instance = self.instances[message.instance]
            scope = scope_of(message.database)
            named = broker if self._is_exact else named_broker(instance, scope, message.service, broker)
            place = message.database, message.service, named
            key = RoutingKey.of_names(instance, *place, is_initiator=message.is_initiator)
            timeline = self._decisions.timeline(key, instance)
            keyed = self._share(timeline, broker, address_in_name(message.service))
            remember(self._keyed, names, keyed, self._most_keys)
        return keyed

    def _share(self, timeline: DecisionTimeline, broker: str | None, address: str | None) -> KeyedMessages:
        facts = timeline, broker, address
        shared = self._shared.get(facts)
        if shared is None:
            shared = remember(self._shared, facts, KeyedMessages(*facts), self._most_keys)
        return shared

    def find_openers(self, messages: Iterable[tuple[RoutedMessage, DialogFacts]]) -> None:
        """Find the messages that open a request for a route, among all messages in any order."""
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


def may_ask(instance: SqlInstance, database: str | None) -> bool:
    """Return True if a message from a database, None for an arrival, may meet step 4."""
    # A message that comes back to its instance may ask in msdb.
    scopes = (scope_of(database), ARRIVALS)
    return any(BROKER_CONFIGURATION_SERVICE in instance.routes.get(scope, ()) for scope in scopes)
