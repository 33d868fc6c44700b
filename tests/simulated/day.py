"""A day of messages: SQL Server's actions on each by the true routes, hop by hop, and its retries."""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from tests.reference.resolver import resolve

from .estate import MORNING, Row, Tables, guid

# After so many seconds a message is tried again, then every 64.
RETRIES = (4, 8, 16, 32, 64, 64, 64)
NEAR_CHANGES = 0.5
HOPS = 5


@dataclass(frozen=True)
class Hop:
    """A message where it is: its row of ``messages``, how often it has been tried there, and hops left."""

    row: Row
    tried: int = 0
    hops: int = HOPS


@dataclass
class Day:
    """An estate and its hops. Each hop has its result, a row of ``resolved_routes``."""

    tables: Tables
    done: list[tuple[Hop, Row]] = field(default_factory=list)


def play(rng: random.Random, tables: Tables, messages: int) -> Day:
    """Send messages through the day and follow them."""
    tables = {**tables, "messages": _draw(rng, tables, messages)}
    tables["dialogs"] = _dialogs(rng, tables)
    day = Day(tables)
    hops = [Hop(row) for row in tables["messages"]]
    while hops:
        decided = decide(tables, hops)
        day.done += decided
        hops = [following for hop, row in decided for following in _go_on(tables, hop, row)]
    return day


def decide(tables: Tables, hops: Sequence[Hop]) -> list[tuple[Hop, Row]]:
    """Decide each hop with another hash than the project's."""
    asked = [
        {**hop.row, "message_id": str(place), "conversation_id": _other(hop.row["conversation_id"])}
        for place, hop in enumerate(hops)
    ]
    dialogs = [{**row, "conversation_id": _other(row["conversation_id"])} for row in tables["dialogs"]]
    rows = resolve({**tables, "messages": asked, "dialogs": dialogs}).resolved_routes
    by_place = {row["message_id"]: row for row in rows}
    return [(hop, by_place[str(place)]) for place, hop in enumerate(hops) if str(place) in by_place]


def _other(conversation_id: str) -> str:
    """The id under which a conversation is hashed: as good as any other hash."""
    return str(uuid.UUID(hashlib.md5(conversation_id.encode()).hexdigest()))


def _draw(rng: random.Random, tables: Tables, messages: int) -> list[Row]:
    """Draw messages from databases to services, many of them near the times of changes to their routes."""
    homes = [row for row in tables["databases"] if row["name"] != "msdb"]
    services = sorted({row["name"] for row in tables["services"]})
    changing = [row for row in tables["routes"] if row["valid_from"] is not None]
    rows = []
    for number in range(messages):
        at = MORNING + timedelta(seconds=rng.uniform(0, 86_000))
        home = rng.choice(homes)
        where, service = (home["instance_name"], home["name"]), rng.choice(services)
        if changing and rng.random() < NEAR_CHANGES:
            route = rng.choice(changing)
            where, service = (route["instance_name"], route["database_name"]), route["remote_service_name"]
            at = route["valid_from"] + timedelta(seconds=rng.uniform(-360, 360))
        rows.append(
            {
                "message_id": f"m{number}",
                "conversation_id": guid(rng),
                "is_initiator": True,
                "message_sequence_number": 0,
                "enqueue_time": at,
                "observed_at": None,
                "instance_name": where[0],
                "database_name": where[1],
                "to_service_name": service,
                "to_broker_instance": _pick_broker(rng, tables, service) if rng.random() < 0.15 else None,
                "hops_remaining": None,
            }
        )
    return rows


def _pick_broker(rng: random.Random, tables: Tables, service: str) -> str:
    ids = {(row["instance_name"], row["name"]): row["service_broker_guid"] for row in tables["databases"]}
    holding = [row for row in tables["services"] if row["name"] == service]
    holder = rng.choice(holding)
    return str(ids[holder["instance_name"], holder["database_name"]])


def _dialogs(rng: random.Random, tables: Tables) -> list[Row]:
    """The dialogs of some open messages: bound to an id, or acknowledged by one later."""
    rows = []
    for row in tables["messages"]:
        if row["to_broker_instance"] is None and rng.random() < 0.1:
            key = ("instance_name", "database_name", "conversation_id", "is_initiator")
            far = _pick_broker(rng, tables, row["to_service_name"])
            rows.append({**{name: row[name] for name in key}, "far_broker_instance": far})
    return rows


def _go_on(tables: Tables, hop: Hop, row: Row) -> list[Hop]:
    """Where a message is next: at the instance that it was sent to, or here again."""
    if row["outcome"] in ("SENT", "FORWARDED"):
        return _arrive(tables, hop, row)
    if row["outcome"] == "DELAYED" and hop.tried < len(RETRIES):
        later = hop.row["enqueue_time"] + timedelta(seconds=RETRIES[hop.tried])
        return [replace(hop, row={**hop.row, "enqueue_time": later}, tried=hop.tried + 1)]
    return []


def _arrive(tables: Tables, hop: Hop, row: Row) -> list[Hop]:
    owners = [one["instance_name"] for one in tables["instances"] if row["address"] in one["addresses"]]
    if not owners or hop.hops == 0:
        return []
    arrived: dict[str, Any] = {
        **hop.row,
        "instance_name": owners[0],
        "database_name": None,
        "to_broker_instance": row["broker_instance"],
        "enqueue_time": hop.row["enqueue_time"] + timedelta(milliseconds=250),
    }
    return [Hop(arrived, hops=hop.hops - 1)]


def time_of(hop: Hop) -> datetime:
    """When it was tried."""
    at: datetime = hop.row["enqueue_time"]
    return at
