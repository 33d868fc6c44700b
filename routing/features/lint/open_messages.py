"""Open messages followed through the estate to all ends that they may have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from routing.features.lint.lint_estate import LintEstate, sender_of
from routing.plan.paths import trace_open_messages, trace_request
from routing.rules.deciding import Decision, RoutingKey
from routing.rules.estate import NameAddress, SqlInstance
from routing.rules.ways import HopPath, MessageTrace


class OpenChoice(NamedTuple):
    """The scope of routes among which the transport chooses for open messages to a service."""

    instance: str
    scope: str
    service: str


class OpenMessageFollower:
    """Follows open messages through the instances that the tables list."""

    def __init__(self, estate: LintEstate) -> None:
        self.network = estate.network
        self._now = estate.now
        self._decide = estate.decisions.at

    def traces(self, choice: OpenChoice) -> Iterator[MessageTrace]:
        """Follow messages of a choice: one trace for each hash that makes a difference.

        None for what asks for a route first: which requests are pending the tables of lint do not tell.
        """
        here = self.network.instances[choice.instance]
        return trace_open_messages(
            self.network, self._decide, here, sender_of(choice.scope), choice.service, self._now
        )

    def traces_of_requests(self, instance: str, scope: str) -> Iterator[MessageTrace]:
        """Follow requests for routes of a database: one trace for each hash that matters."""
        return trace_request(self.network, self._decide, self.network.instances[instance], scope, self._now)

    def of_any_service(self, instance: SqlInstance, scope: str) -> Decision:
        """Decide in a scope for a service that no route of it names, and that is not held here."""
        key = RoutingKey(sender_of(scope), None, None, True, NameAddress.NONE)
        # What is bound to no id is balanced by the routes for its service alone, and here are none.
        return self._decide(key, instance, self._now).choices[0]

    def target(self, path: HopPath) -> tuple[str, str] | None:
        """Return the database that a way ends at, with its broker id; None where it ends at none that has one."""
        if path.instance is None or path.database is None:
            return None
        broker = self.network.instances[path.instance].databases[path.database].broker
        return None if broker is None else (f"{path.instance}.{path.database}", broker)
