"""Decide one message by its dialog, its hash, pending requests and its hops.

The columns of a verdict in tables are the fields of `VerdictColumns`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

from routing.rules import text
from routing.rules.deciding import Decision, RouteSearch, scope_of
from routing.rules.estate import ARRIVALS, EstateRoute
from routing.rules.requesting import ConversationEndpoint, InstanceRequests, RequestAction
from routing.terms import MatchingStep, Outcome, Reason, TableRow, Word

ALTERNATIVE_COLUMNS = ("route_name", "address", "mirror_address")
"""The columns of an alternative route."""


def names_of(columns: type) -> tuple[str, ...]:
    """Return the columns of a dataclass, in their order."""
    return tuple(field.name for field in fields(columns))


def plain_columns(row: object, names: tuple[str, ...]) -> TableRow:
    """Return some fields by name, with values for tables. An alternative route is a tuple."""
    values = vars(row)
    return {name: _plain(values[name]) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, Word):
        return str(value)
    if isinstance(value, MatchingStep):
        return int(value)
    if isinstance(value, tuple):
        return tuple([(route.name, route.address, route.mirror_address) for route in value]) or None
    return value


MESSAGE_COLUMNS = (
    "message_id",
    "conversation_id",
    "is_initiator",
    "enqueue_time",
    "observed_at",
    "instance_name",
    "database_name",
    "to_service_name",
    "to_broker_instance",
    "hops_remaining",
)
"""The arguments of `RoutedMessage.of_row`, in this order."""
DIALOG_COLUMNS = ("far_broker_instance", "acknowledged_broker_instance", "acknowledged_at", "lifetime")
"""The arguments of `DialogFacts.of_row`, in this order."""
MATTERS = ("far_broker_instance", "acknowledged_at", "lifetime")
"""The columns of a dialog that can change a decision. Without any of them it counts as unlisted."""


@dataclass(frozen=True, slots=True)
class RoutedMessage:
    """A message with the values that the rules use (section 0).

    ``t`` is the time of the decision. ``database`` is None for an arrival. ``broker`` is the broker instance that
    the message names. ``conversation_id`` is None for any dialog, so that every pick of step 3 counts.
    """

    message_id: str
    conversation_id: str | None
    is_initiator: bool
    t: int
    instance: str
    database: str | None
    service: str
    broker: str | None = None
    hops_remaining: int | None = None

    @property
    def endpoint(self) -> ConversationEndpoint | None:
        """The conversation endpoint that sends the message, or None for any dialog."""
        conversation = self.conversation_id
        return None if conversation is None else ConversationEndpoint(conversation, self.is_initiator)

    @classmethod
    def of_row(
        cls,
        message_id: str,
        conversation_id: str | None,
        is_initiator: bool,
        enqueue_time: int,
        observed_at: int | None,
        instance_name: str,
        database_name: str | None,
        to_service_name: str,
        to_broker_instance: str | None,
        hops_remaining: int | None,
        *,
        as_of: int | None,
    ) -> RoutedMessage:
        """Return the message of a valid row of ``messages``. ``as_of`` is a common decision time, if any."""
        first_observed = enqueue_time if observed_at is None else observed_at
        return cls(
            message_id,
            None if conversation_id is None else text.fold(conversation_id),
            is_initiator,
            first_observed if as_of is None else as_of,
            instance_name,
            text.empty_as_null(database_name),
            to_service_name,
            text.broker_id(to_broker_instance),
            hops_remaining,
        )


@dataclass(frozen=True, slots=True)
class DialogFacts:
    """The broker instances and the lifetime of a message's dialog."""

    far_broker: str | None = None
    acknowledged_broker: str | None = None
    acknowledged_at: int | None = None
    lifetime: int | None = None

    @classmethod
    def of_row(
        cls,
        far_broker_instance: str | None,
        acknowledged_broker_instance: str | None,
        acknowledged_at: int | None,
        lifetime: int | None,
    ) -> DialogFacts:
        """Return the facts of a row of ``dialogs``."""
        far_broker, acknowledged = (
            text.broker_id(far_broker_instance),
            text.broker_id(acknowledged_broker_instance),
        )
        return cls(far_broker, acknowledged, acknowledged_at, lifetime)

    def acknowledged(self, t: int) -> str | None:
        """Return the broker instance that had acknowledged the dialog by a time, or None."""
        return self.acknowledged_broker if self.acknowledged_at is not None and self.acknowledged_at <= t else None

    def is_expired(self, t: int) -> bool:
        """Return True if its lifetime is over at a time."""
        return self.lifetime is not None and self.lifetime <= t


NO_DIALOG = DialogFacts()


def bound_broker(message: RoutedMessage, dialog: DialogFacts) -> str | None:
    """Return the broker instance of a message, or None while it is open (section 0)."""
    return message.broker or dialog.acknowledged(message.t) or dialog.far_broker


@dataclass(frozen=True)
class VerdictColumns:
    """The columns of ``resolved_routes`` that the rules decide. Tables and rows derive from these fields."""

    broker_instance: str | None
    outcome: Outcome
    reason: Reason
    matching_step: MatchingStep | None = None
    route_name: str | None = None
    address: str | None = None
    mirror_address: str | None = None
    destination_database: str | None = None
    alternative_routes: tuple[EstateRoute, ...] = ()
    rerouted_from: str | None = None


VERDICT_COLUMNS = names_of(VerdictColumns)


@dataclass(frozen=True)
class Verdict(VerdictColumns):
    """The verdict on a message.

    ``decision`` is None for an expired dialog. ``requested_in`` is the database in which the message waits for a
    requested route, or None. ``opens_request`` is True if the message opens the request. Otherwise its
    conversation waits for an earlier one (D10).
    """

    decision: Decision | None = None
    requested_in: str | None = None
    opens_request: bool = False

    @property
    def addresses(self) -> list[str]:
        """The addresses and mirror addresses of all routes between which SQL Server chooses, each once."""
        others = ((route.address, route.mirror_address) for route in self.alternative_routes)
        addresses = chain((self.address, self.mirror_address), *others)
        return list(dict.fromkeys(address for address in addresses if address is not None))

    @property
    def last(self) -> RouteSearch | None:
        """The search that ended the routing, or None for an expired dialog."""
        if self.decision is None:
            return None
        is_first = self.requested_in is not None and self.rerouted_from is None
        return self.decision.first if is_first else self.decision.last

    def plain(self) -> TableRow:
        """Return its columns by name, with values as tables hold them."""
        return plain_columns(self, VERDICT_COLUMNS)


def judge(message: RoutedMessage, dialog: DialogFacts, decision: Decision, requests: InstanceRequests) -> Verdict:
    """Judge a message by its expired dialog first, then by requests, then by the decision and its hops."""
    broker = bound_broker(message, dialog)
    if dialog.is_expired(message.t):
        return Verdict(broker, Outcome.DROPPED, Reason.DIALOG_EXPIRED)
    scope, position = scope_of(message.database), (message.t, message.message_id, message.endpoint)
    if decision.asks:
        action = requests.of(scope, message.service).ask(*position)
        if action.stops:
            return replace(requested(decision, broker, scope), opens_request=action is RequestAction.OPENS)
    if decision.asks_again:
        action = requests.of(ARRIVALS, message.service).ask(*position)
        if action.stops:
            return replace(requested_again(decision, broker), opens_request=action is RequestAction.OPENS)
    return verdict_of(decision, broker, message.hops_remaining, text.address_in_name(message.service))


def is_out_of_hops(hops_remaining: int | None) -> bool:
    """Return True if a message must not be forwarded again. None means no limit."""
    return hops_remaining is not None and hops_remaining <= 0


def requested(decision: Decision, broker: str | None, database: str) -> Verdict:
    """Return the verdict of a message that waits for a requested route in a database."""
    step, reason = MatchingStep.ROUTE_REQUEST, Reason.ROUTE_REQUESTED
    return Verdict(broker, Outcome.DELAYED, reason, step, decision=decision, requested_in=database)


def requested_again(decision: Decision, broker: str | None) -> Verdict:
    """Return the verdict of a message that came back and waits in msdb.

    ``broker`` is its broker instance before the search. It keeps an earlier pick, and the route that led it back.
    """
    picked = decision.first.pick
    verdict = requested(decision, broker if picked is None else picked, ARRIVALS)
    return replace(verdict, rerouted_from=decision.rerouted_from)


def verdict_of(
    decision: Decision, broker: str | None, hops_remaining: int | None, address_in_name: str | None
) -> Verdict:
    """Return the verdict of a decision that step 4 does not stop.

    ``broker`` is the broker instance of the message before the search.
    """
    search, picked = decision.last, decision.pick
    no_hops = search.end.counts_hops and is_out_of_hops(hops_remaining)
    return Verdict(
        broker if picked is None else picked,
        Outcome.DROPPED if no_hops else search.end.outcome,
        Reason.HOP_LIMIT if no_hops else search.end.reason,
        search.step,
        search.route_name,
        address_in_name if search.reads_address else search.address,
        search.mirror_address,
        decision.destination,
        search.alternatives,
        decision.rerouted_from,
        decision=decision,
    )
