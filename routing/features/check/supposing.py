"""The verdicts that a message may have whose dialog, or whose estate, is not wholly known.

A dialog without a conversation endpoint is open, or bound to a broker instance: the planner decides for each that
is known of the service. What all of these verdicts have in common holds without knowing which one is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from routing.plan.verdicts import MessageJudge
from routing.rules import text
from routing.rules.estate import SqlInstance
from routing.rules.network import EstateNetwork
from routing.rules.resolving import NO_DIALOG, DialogFacts, RoutedMessage, Verdict
from routing.terms import TableRow

_ANY_MESSAGE = ""


class PossibleVerdicts:
    """Finds what may become of messages, of each instance at one time (microseconds)."""

    def __init__(self, instances: Mapping[str, SqlInstance], times: Mapping[str, int]) -> None:
        self._instances, self._times = instances, times
        self._judges: dict[str, MessageJudge] = {}
        self._known: dict[tuple[str, str, str, str | None], tuple[Verdict, ...]] = {}

    def of_row(self, row: TableRow) -> tuple[Verdict, ...]:
        """Return the verdicts of a row of a queue, of whose dialog nothing is known."""
        broker = text.broker_id(row["to_broker_instance"])
        place = row["instance_name"], row["database_name"], row["to_service_name"], broker
        if place not in self._known:
            message = RoutedMessage(_ANY_MESSAGE, None, True, self._times[place[0]], *place)
            brokers = [broker] if broker is not None else [None, *sorted(self._brokers_of(message))]
            possible_verdicts = (
                each for one in brokers for each in self.of_message(message, DialogFacts(far_broker=one))
            )
            self._known[place] = tuple(possible_verdicts)
        return self._known[place]

    def of_message(self, message: RoutedMessage, dialog: DialogFacts) -> Iterator[Verdict]:
        """Yield the verdicts of a message with a dialog: several where the dialog's hash or a request decides."""
        judge = self._judge(message.instance)
        if dialog is not NO_DIALOG and dialog.is_expired(message.t):
            return
        yield from judge.keyed(message, dialog).verdicts_at(message.t, message.hops_remaining)

    def _judge(self, instance: str) -> MessageJudge:
        if instance not in self._judges:
            self._judges[instance] = MessageJudge(
                EstateNetwork({instance: self._instances[instance]}), is_exact=True
            )
        return self._judges[instance]

    def _brokers_of(self, message: RoutedMessage) -> set[str]:
        """Return the broker instances that are known of a service: of databases and of routes of the sender."""
        holders = (each for one in self._instances.values() for each in one.holders_of(message.service))
        routes = self._instances[message.instance].routes.values()
        named = (route for by_service in routes for route in by_service.get(message.service, ()))
        known_brokers = [*(holder.broker for holder in holders), *(route.broker for route in named)]
        return {broker for broker in known_brokers if broker is not None}
