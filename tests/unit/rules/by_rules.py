"""Whole tables resolved by `routing.rules` alone, a message at a time: rows in, verdicts out."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from routing.rules import text
from routing.rules.deciding import ConcerningRoutes, Decision, RoutingKey
from routing.rules.estate import Database, EstateRoute, SqlInstance, list_instances, with_services_and_routes
from routing.rules.hashing import dialog_id_hash
from routing.rules.requesting import ConversationEndpoint, InstanceRequests, RouteRequest
from routing.rules.resolving import NO_DIALOG, DialogFacts, RoutedMessage, Verdict, bound_broker, judge

Row = dict[str, Any]
Tables = dict[str, list[Row]]
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def micros(time: datetime | None) -> int | None:
    """Convert a time to microseconds since 1970. Without a zone it is UTC."""
    if time is None:
        return None
    return ((time if time.tzinfo else time.replace(tzinfo=timezone.utc)) - _EPOCH) // timedelta(microseconds=1)


def instances_of(tables: Tables) -> dict[str, SqlInstance]:
    """The instances of rows."""
    routes = (
        (
            row["instance_name"],
            row["database_name"],
            EstateRoute.of_row(
                row["name"],
                row.get("remote_service_name"),
                row.get("broker_instance"),
                row["address"],
                row.get("mirror_address"),
                micros(row.get("valid_from")),
                micros(row.get("valid_to")),
                micros(row.get("lifetime")),
            ),
        )
        for row in tables.get("routes", [])
    )
    instances = list_instances(
        (
            (r["instance_name"], r.get("is_message_forwarding_enabled"), r.get("addresses"))
            for r in tables["instances"]
        ),
        (
            (r["instance_name"], Database.of_row(r["name"], r["service_broker_guid"], r.get("is_broker_enabled")))
            for r in tables["databases"]
        ),
    )
    services = ((r["instance_name"], r["database_name"], r["name"]) for r in tables.get("services", []))
    return with_services_and_routes(instances, services, routes)


def dialogs_of(tables: Tables) -> dict[tuple[Any, ...], DialogFacts]:
    """Return the dialogs of rows by instance, database, conversation and end."""
    return {
        (r["instance_name"], r["database_name"], text.fold(r["conversation_id"]), r["is_initiator"]): DialogFacts(
            text.broker_id(r.get("far_broker_instance")),
            text.broker_id(r.get("acknowledged_broker_instance")),
            micros(r.get("acknowledged_at")),
            micros(r.get("lifetime")),
        )
        for r in tables.get("dialogs") or []
    }


def decisions_of(message: RoutedMessage, dialog: DialogFacts, instance: SqlInstance) -> tuple[Decision, ...]:
    """All that may be decided for a message at its time."""
    key = RoutingKey.of_names(
        instance,
        message.database,
        message.service,
        bound_broker(message, dialog),
        is_initiator=message.is_initiator,
    )
    return ConcerningRoutes.of(key, instance).decide(message.t)


def request_of(row: Row) -> RouteRequest:
    """A row of ``route_requests``."""
    endpoint = ConversationEndpoint.of_row(row.get("conversation_id"), row.get("is_initiator"))
    return RouteRequest(micros(row["requested_at"]) or 0, row["message_id"], micros(row.get("ended_at")), endpoint)


def resolve(
    message: RoutedMessage, dialog: DialogFacts, instance: SqlInstance, requests: InstanceRequests
) -> Verdict:
    """Resolve one message of a known dialog. ``requests`` has the earlier requests, and gets a new one."""
    decisions = decisions_of(message, dialog, instance)
    decision = decisions[dialog_id_hash(message.conversation_id or "") % len(decisions)]
    return judge(message, dialog, decision, requests)


def resolved(tables: Tables, as_of: datetime | None = None) -> dict[int, Verdict]:
    """The verdicts of messages without a fault, by the place of their row."""
    instances, dialogs = instances_of(tables), dialogs_of(tables)
    requests: dict[str, InstanceRequests] = {}
    for name in instances:
        requests[name] = InstanceRequests.on_record(
            (row["database_name"], row["service_name"], request_of(row))
            for row in tables.get("route_requests") or []
            if row["instance_name"] == name
        )
    read = []
    for place, row in enumerate(tables["messages"]):
        database = row.get("database_name") or None
        conversation = text.fold(row["conversation_id"])
        dialog = dialogs.get((row["instance_name"], database, conversation, row["is_initiator"]), NO_DIALOG)
        t = micros(decided_at(row, as_of)) or 0
        message = RoutedMessage(
            row["message_id"],
            conversation,
            row["is_initiator"],
            t,
            row["instance_name"],
            database,
            row["to_service_name"],
            text.broker_id(row.get("to_broker_instance")),
            row.get("hops_remaining"),
        )
        read.append((t, message.message_id, message.endpoint, place, message, dialog))
    return {
        place: resolve(message, dialog, instances[message.instance], requests[message.instance])
        for *_, place, message, dialog in sorted(read, key=lambda found: found[:4])
    }


def decided_at(message: Row, as_of: datetime | None) -> datetime:
    """The time of a message's decision."""
    time: datetime = as_of or message.get("observed_at") or message["enqueue_time"]
    return time


def columns(verdict: Verdict) -> Row:
    """The columns of ``resolved_routes`` that a verdict decides."""
    return {
        "broker_instance": verdict.broker_instance,
        "outcome": str(verdict.outcome),
        "reason": str(verdict.reason),
        "matching_step": None if verdict.matching_step is None else int(verdict.matching_step),
        "route_name": verdict.route_name,
        "address": verdict.address,
        "mirror_address": verdict.mirror_address,
        "destination_database": verdict.destination_database,
        "rerouted_from": verdict.rerouted_from,
        "alternative_routes": [
            {"route_name": r.name, "address": r.address, "mirror_address": r.mirror_address}
            for r in verdict.alternative_routes
        ]
        or None,
    }
