"""Follow messages of tables by the rules only, and write paths and hops like the tests' own walk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from routing.plan.paths import PathChoice, PathPlanner
from routing.rules import hashing, text
from routing.rules.following import HopPath, MessageTrace, PathHop, TracedMessage, follow
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.pathing import PathSender, PathWithReturn, trace_back
from routing.rules.requesting import RouteRequest
from routing.rules.resolving import NO_DIALOG, Verdict
from routing.rules.timeline import TimeInterval
from routing.terms import BROKER_CONFIGURATION_SERVICE
from tests.reference import ways
from tests.unit.rules import by_rules
from tests.unit.rules.by_rules import Row, Tables
from tests.unit.rules.made import decide_now


@dataclass(frozen=True)
class Sent:
    """A row of messages and its result at its first instance. ``broker`` is the message's own id."""

    row: Row
    t: int
    verdict: Verdict
    broker: str | None
    hashed: int

    @property
    def hops(self) -> int | None:
        left: int | None = self.row["hops_remaining"]
        return left


class Followed:
    """The messages of an estate without faults, each followed by itself, or by the plan of its key."""

    def __init__(self, tables: Tables) -> None:
        requests: dict[tuple[str, str, str], list[RouteRequest]] = {}
        for row in tables["route_requests"]:
            scope = (row["instance_name"], row["database_name"], row["service_name"])
            requests.setdefault(scope, []).append(by_rules.request_of(row))
        self.network = EstateNetwork(by_rules.instances_of(tables), requests)
        self.tables = tables
        self.planner = PathPlanner(self.network)
        self.named = {row["remote_service_name"] for row in tables["routes"]} | {BROKER_CONFIGURATION_SERVICE}
        self.named |= {row["name"] for row in tables["services"]} | {service for *_, service in requests}
        self._plans: dict[Any, list[TimeInterval[PathChoice]]] = {}

    def sent(self) -> Iterator[Sent]:
        """The messages in their order, decided where they are."""
        dialogs = by_rules.dialogs_of(self.tables)
        verdicts = by_rules.resolved(self.tables)
        for place, row in enumerate(self.tables["messages"]):
            conversation = text.fold(row["conversation_id"])
            at = by_rules.decided_at(row, None)
            dialog = dialogs.get(
                (row["instance_name"], row["database_name"], conversation, row["is_initiator"]), NO_DIALOG
            )
            t = by_rules.micros(at) or 0
            broker = text.broker_id(row["to_broker_instance"]) or dialog.acknowledged(t) or dialog.far_broker
            yield Sent(row, t, verdicts[place], broker, hashing.dialog_id_hash(conversation))

    def walked(self, message: Sent) -> PathWithReturn:
        """Return the path of a message by an independent walk."""
        row = message.row
        conversation = text.fold(row["conversation_id"])
        sender, to = self._sender(row, conversation), ServiceAddress.of_name(row["to_service_name"])
        errand = TracedMessage(to, row["is_initiator"], message.t, message.hashed, conversation)
        scope = row["database_name"] or "msdb"
        args = (errand, sender.instance, message.verdict, scope, message.hops)
        there = follow(self.network, decide_now, *args).trace
        return trace_back(self.network, decide_now, sender, there, message.t)[0]

    def planned(self, message: Sent) -> PathWithReturn | None:
        """Return the path in the plan of a message's key, or None for a waiting or expired message."""
        if message.verdict.decision is None or message.verdict.requested_in is not None:
            return None
        row = message.row
        waiting, conversation = self.network.waiting_conversations, text.fold(row["conversation_id"])
        named = conversation if conversation in waiting else None
        sender, to = self._sender(row, named), self._shared(row["to_service_name"])
        key = (
            sender.instance.name,
            sender.database,
            sender.is_initiator,
            sender.back_to,
            to,
            message.broker,
            named,
            message.hops,
        )
        if key not in self._plans:
            timeline = self.planner.timeline(sender, to, message.broker)
            left = None if message.hops is None else max(0, message.hops)
            self._plans[key] = list(timeline.intervals((left,)))
        [found] = [
            paths
            for paths in self._plans[key]
            if (paths.valid_from is None or paths.valid_from <= message.t)
            and (paths.valid_to is None or message.t < paths.valid_to)
        ]
        [path] = found.pick(message.hashed).paths
        return path

    def _sender(self, row: Row, conversation: str | None) -> PathSender:
        back = row["from_service_name"]
        return PathSender(
            self.network.instances[row["instance_name"]],
            row["database_name"],
            row["is_initiator"],
            ServiceAddress.of_name(back) if back else None,
            conversation,
        )

    def _shared(self, service: str) -> ServiceAddress:
        """The addressee of all messages for services that nothing names, and that begin with no known address."""
        whole = ServiceAddress.of_name(service)
        if service in self.named:
            return whole
        known = whole.address is not None and any(
            text.comparable_address(whole.address) in one.own_addresses for one in self.network.instances.values()
        )
        return ServiceAddress(None, whole.address if known else None, whole.holds_address)


def hop(found: PathHop, service: str) -> ways.Hop:
    """Write a hop as the tests' own walk does. An address from the service name is filled in."""
    address = text.address_in_name(service) if found.reads_address else found.address
    step = None if found.matching_step is None else int(found.matching_step)
    return ways.Hop(
        found.instance_name,
        found.scope,
        step,
        found.route_name,
        address,
        str(found.outcome),
        str(found.reason),
        found.broker_instance,
        found.rerouted_from,
    )


def path_row(found: HopPath, service: str) -> Row:
    """Write a path: its hops and its end."""
    hops = [hop(one, service) for one in found.hops]
    left = found.address
    if found.hops[-1].reads_address and str(found.ending) == "LEFT_ESTATE":
        left = text.address_in_name(service)
    reason = None if found.reason is None else str(found.reason)
    return {
        "hops": hops,
        "end": str(found.ending),
        "reason": reason,
        "instance": found.instance,
        "database": found.database,
        "address": left,
    }


def trace(found: MessageTrace, service: str) -> Row:
    """Write all paths with their combined result."""
    return {
        "ways": [path_row(one, service) for one in found.hop_paths],
        "cut": found.is_cut,
        "end": str(found.ending),
        "agree": found.ways_agree,
        "multiple": found.has_multiple_targets,
    }


def path(found: PathWithReturn, row: Row) -> Row:
    """There and back."""
    back = row["from_service_name"]
    return {
        "there": trace(found.there, row["to_service_name"]),
        "back": None if found.back is None else trace(found.back, back),
        "back_end": None if found.back_ending is None else str(found.back_ending),
    }


def own_trace(found: ways.Trace) -> Row:
    """The same of the tests' own walk."""
    names = ("end", "reason", "instance", "database", "address")
    return {
        "ways": [{"hops": list(one.hops), **{name: getattr(one, name) for name in names}} for one in found.ways],
        "cut": found.is_cut,
        "end": found.end,
        "agree": found.ways_agree,
        "multiple": found.multiple_targets,
    }


def own_path(found: ways.Path) -> Row:
    """The same of the tests' own walk."""
    return {
        "there": own_trace(found.there),
        "back": None if found.back is None else own_trace(found.back),
        "back_end": found.back_end,
    }
