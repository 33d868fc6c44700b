"""Compute the three output tables of a full run from its input tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .cells import Cell
from .deciding import Decision, decide
from .instances import read_instances
from .messages import MESSAGE_COLUMNS, Message, as_written, asking_order, faults, read_dialogs, read_message
from .requests import D7_NAMESPACE, RequestBook
from .times import utc

Tables = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Resolution:
    """The rows of a run, in the order of the messages.

    `tiers` has the tier of the reported route of each resolved row, or None without one (steps 0, 4 and 7, and no
    step). Step 6 counts as local.
    """

    resolved_routes: list[dict[str, Any]]
    new_route_requests: list[dict[str, Any]]
    rejected_messages: list[dict[str, Any]]
    tiers: list[str | None]

    def cells(self) -> list[tuple[Cell, bool]]:
        """Return the cell of each resolved row, and whether it was rerouted."""
        return [
            (
                Cell(row["matching_step"], tier, row["outcome"], row["reason"]),
                row["rerouted_from"] is not None,
            )
            for row, tier in zip(self.resolved_routes, self.tiers, strict=True)
        ]


def resolve(
    tables: Tables,
    as_of: datetime | None = None,
    namespace: str = D7_NAMESPACE,
    run_id: str = "run",
) -> Resolution:
    """Resolve every message of the tables as a full run does.

    Takes lists of rows by table name. Missing columns are null, and times without a zone are UTC. The
    configuration must be valid. Times in resolved rows and requests are aware, in UTC.
    """
    instances = read_instances(tables)
    dialogs = read_dialogs(tables.get("dialogs"))
    requests = RequestBook(tables.get("route_requests"))
    moment = utc(as_of)
    messages: list[Message] = []
    rejected: list[dict[str, Any]] = []
    for row in tables.get("messages") or ():
        reasons = faults(row, instances)
        if reasons:
            read = {column: as_written(row.get(column)) for column in MESSAGE_COLUMNS}
            rejected.append({**read, "reasons": reasons, "run_id": run_id})
        else:
            messages.append(read_message(row, instances, dialogs, moment))
    # In this order every earlier request of the run is open before a later message asks,
    # in msdb as well, where messages from other databases may end up on the way.
    order = sorted(range(len(messages)), key=lambda index: asking_order(messages[index]))
    decisions: list[Decision | None] = [None] * len(messages)
    for index in order:
        decisions[index] = decide(messages[index], requests)
    resolved: list[dict[str, Any]] = []
    tiers: list[str | None] = []
    for message, decision in zip(messages, decisions, strict=True):
        assert decision is not None
        resolved.append(_resolved_row(message, decision, run_id))
        tiers.append(decision.tier)
    return Resolution(resolved, requests.rows(namespace, run_id), rejected, tiers)


def _resolved_row(message: Message, decision: Decision, run_id: str) -> dict[str, Any]:
    """Write one resolved_routes row, every column of the tables page in its order."""
    return {
        "message_id": message.message_id,
        "conversation_id": message.conversation_id,
        "is_initiator": message.is_initiator,
        "message_sequence_number": message.sequence_number,
        "enqueue_time": message.enqueue_time,
        "instance_name": message.instance.name,
        "database_name": message.database,
        "to_service_name": message.service,
        "to_broker_instance": message.own_broker,
        "decided_at": message.at,
        "broker_instance": decision.broker,
        "outcome": decision.outcome,
        "reason": decision.reason,
        "matching_step": decision.step,
        "route_name": decision.route_name,
        "address": decision.address,
        "mirror_address": decision.mirror_address,
        "destination_database": decision.destination,
        "alternative_routes": decision.alternatives,
        "rerouted_from": decision.rerouted_from,
        "run_id": run_id,
        "attempt": 1,
    }
