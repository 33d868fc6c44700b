"""Whole networks whose messages are followed one by one: rows in, rows of ``message_paths`` out."""

from __future__ import annotations

import random
import re
from datetime import datetime
from typing import Any

from routing.rules import hashing, text
from routing.rules.following import Errand, follow
from routing.rules.network import Addressee, Network
from routing.rules.path_rows import path_row
from routing.rules.pathing import Sender, trace_back
from routing.rules.requesting import Request
from routing.rules.resolving import Verdict
from tests.frames import Tables, prefixed
from tests.reference.estates import joined, random_estate
from tests.reference.networks import random_network
from tests.unit.rules import by_rules
from tests.unit.rules.made import decide_now

Row = dict[str, Any]
# A host that is no loopback name: another estate has none of it.
_HOST = re.compile(r"(?i)(tcp://)(?!localhost|127\.)(?=[a-z0-9])")
_SENDERS = ("//sender", "//nobody", "tcp://elsewhere:1/back", "tcp://hub:4022/back", "", None)
_SAME = (
    "message_id",
    "is_initiator",
    "message_sequence_number",
    "enqueue_time",
    "instance_name",
    "to_service_name",
)
_NEEDED = ("message_id", "conversation_id", "enqueue_time", "instance_name", "to_service_name")


def apart(value: Any, prefix: str) -> Any:
    """The same with hosts of its own; ``value`` is made of lists, rows and texts."""
    if isinstance(value, list):
        return [apart(item, prefix) for item in value]
    if isinstance(value, dict):
        return {key: apart(item, prefix) for key, item in value.items()}
    return _HOST.sub(rf"\g<1>{prefix}", value) if isinstance(value, str) else value


def random_networks(rng: random.Random, count: int, messages: int) -> Tables:
    """As many networks, and as many estates in which every rule has something to do, in one set of tables."""
    many = []
    for number in range(count):
        estate = random_estate(rng, messages)
        for row in estate["messages"]:
            row["from_service_name"] = rng.choice((row["to_service_name"], *_SENDERS))
        for kind, tables in (("e", estate), ("n", random_network(rng, messages))):
            prefix = f"{kind}{number}."
            many.append(apart(prefixed(tables, prefix), prefix))
    return joined(many)


def walked(tables: Tables, as_of: datetime | None = None) -> list[Row]:
    """The rows of all messages that are not rejected, each followed by itself."""
    known = {row["instance_name"] for row in tables["instances"]}
    databases = {(row["instance_name"], row["name"]) for row in tables["databases"]}
    sound = [row for row in tables["messages"] if _is_sound(row, known, databases)]
    network = _known(tables)
    verdicts = by_rules.resolved({**tables, "messages": sound}, as_of)
    return [_walk(network, row, verdicts[place], as_of) for place, row in enumerate(sound)]


def _is_sound(row: Row, known: set[str], databases: set[tuple[str, str]]) -> bool:
    if not all(row[name] for name in _NEEDED) or row["is_initiator"] is None or row["instance_name"] not in known:
        return False
    place = (row["instance_name"], row["database_name"])
    return text.is_guid(row["conversation_id"]) and (not row["database_name"] or place in databases)


def _known(tables: Tables) -> Network:
    on_record: dict[tuple[str, str, str], list[Request]] = {}
    for row in tables["route_requests"]:
        key = (row["instance_name"], row["database_name"], row["service_name"])
        on_record.setdefault(key, []).append(by_rules.request_of(row))
    return Network(by_rules.instances_of(tables), on_record)


def _walk(network: Network, row: Row, verdict: Verdict, as_of: datetime | None) -> Row:
    time, database, sender = (
        by_rules.decided_at(row, as_of),
        row["database_name"] or None,
        row["from_service_name"],
    )
    conversation, is_initiator = text.fold(row["conversation_id"]), row["is_initiator"]
    t, here = by_rules.micros(time) or 0, network.instances[row["instance_name"]]
    to, back_to = Addressee.of_name(row["to_service_name"]), Addressee.of_name(sender) if sender else None
    errand = Errand(to, is_initiator, t, hashing.dialog_id_hash(conversation), conversation)
    args = (errand, here, verdict, database or "msdb", row["hops_remaining"])
    there = follow(network, decide_now, *args).trace
    who = Sender(here, database, is_initiator, back_to, conversation)
    path, _ = trace_back(network, decide_now, who, there, t)
    told = path_row(path)
    return {
        **{name: row.get(name) for name in _SAME},
        "conversation_id": conversation,
        "database_name": database,
        "from_service_name": sender or None,
        "decided_at": time,
        **told._asdict(),
        "hops": [hop._asdict() for hop in told.hops],
    }
