"""Paths of all messages by Spark: the worked cases, and random networks beside the walk of each message."""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from routing.rules import hashing, text
from routing.rules.following import Addressee, Errand, Network, decide_now, follow
from routing.rules.path_rows import path_row
from routing.rules.pathing import Path, Sender, trace_back
from routing.rules.requesting import Request
from routing.rules.resolving import Verdict
from routing.runs.tracing import Traced, trace_all
from tests.frames import frames, load_trace_cases, merged, moment, rows_of
from tests.reference.estates import joined, random_estate
from tests.spark.test_random_estates import assert_same
from tests.unit.rules import by_rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
Tables = dict[str, list[Row]]
pytestmark = pytest.mark.core
CASES = load_trace_cases()
ESTATES, MESSAGES, SEED = 120, 40, 20260105
AS_OF = datetime(2026, 3, 1, 13, 0, 0, tzinfo=timezone.utc)
NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
_HOP = {"instance": "instance_name", "step": "matching_step", "route": "route_name"}
_END = {"end": "outcome", "instance": "final_instance_name", "database": "final_database_name"}
_BACK = {"end": "return_outcome", "instance": "return_instance_name", "database": "return_database_name"}


def _apart(value: Any, prefix: str) -> Any:
    """The same with instances and hosts of their own; ``value`` is made of a case's rows, and of what it expects."""
    if isinstance(value, list):
        return [_apart(item, prefix) for item in value]
    if isinstance(value, dict):
        named = ("instance_name", "instance")
        return {
            key: f"{prefix}{item}" if key in named and isinstance(item, str) else _apart(item, prefix)
            for key, item in value.items()
        }
    if isinstance(value, str) and value.lower().startswith("tcp://"):
        return f"{value[:6]}{prefix}{value[6:]}"
    return value


def _asked(case: Row, number: int) -> Row:
    ask = case["ask"]
    return {
        "message_id": f"m{number}",
        "conversation_id": ask["conversation_id"],
        "is_initiator": True,
        "enqueue_time": case["at"],
        "instance_name": ask["instance"],
        "database_name": ask["database"],
        "to_service_name": ask["service"],
        "from_service_name": ask["from_service"],
        "hops_remaining": ask.get("hops_remaining"),
    }


def _expected_end(way: Row, names: dict[str, str]) -> Row:
    return {name: way.get(key) for key, name in names.items()}


def test_worked_cases(spark: SparkSession) -> None:
    cases = [_apart(case, f"case{number}-") for number, case in enumerate(CASES)]
    tables = merged([case["tables"] for case in cases])
    tables["messages"] = [_asked(case, number) for number, case in enumerate(cases)]
    found = trace_all(spark, frames(spark, tables))
    rows = {row["message_id"]: row for row in rows_of(found.message_paths)}
    found.unpersist()
    assert (found.read, found.traced, found.rejected) == (len(CASES), len(CASES), 0)
    assert len(rows) == len(CASES)
    for number, case in enumerate(cases):
        row, first = rows[f"m{number}"], case["ways"][0]
        want = _expected_end(first, {**_END, "reason": "reason", "address": "final_address"})
        want["hops"] = [{_HOP.get(key, key): value for key, value in hop.items()} for hop in first["hops"]]
        want |= {name: case[name] for name in ("ways_agree", "multiple_targets")}
        want["decided_at"] = moment(case["at"])
        assert {name: row[name] for name in want} == want, case["case"]
        if "back" in case:
            back = _expected_end(case["back"][0], {**_BACK, "reason": "return_reason"})
            assert {name: row[name] for name in back} == back, case["case"]


def _network(rng: random.Random, number: int) -> Tables:
    """A random estate whose instances have hosts of their own, so that addresses lead from one to another.

    Some are left to several instances, as a listener is.
    """
    tables = random_estate(rng, MESSAGES, f"e{number}/")
    names = [row["instance_name"] for row in tables["instances"]]
    hosts = [f"h{number}-{place}" for place in range(len(names))]
    for place, row in enumerate(tables["instances"]):
        row["addresses"] = [_moved(rng, one, number, hosts[place : place + 1]) for one in row["addresses"] or ()]
        if rng.random() < 0.9:
            row["addresses"].append(f"tcp://{hosts[place]}:4022")
    for row in tables["routes"]:
        for column in ("address", "mirror_address"):
            row[column] = _moved(rng, row[column], number, hosts)
    services: dict[str, Any] = {}
    for table, column in (
        ("routes", "remote_service_name"),
        ("services", "name"),
        ("messages", "to_service_name"),
    ):
        for row in tables[table]:
            name = row[column]
            row[column] = services.setdefault(name, _moved(rng, name, number, hosts)) if name else name
    for row in tables["route_requests"]:
        row["service_name"] = services.get(row["service_name"], row["service_name"])
    senders = [*services.values(), "//nobody", f"tcp://{hosts[0]}:4022/back", "tcp://elsewhere:1/back", None, ""]
    for row in tables["messages"]:
        row["from_service_name"] = rng.choice(senders)
    # Addresses in names may make two of them one.
    tables["services"] = list({tuple(row.values()): row for row in tables["services"]}.values())
    return tables


def _moved(rng: random.Random, text: Any, number: int, hosts: list[str]) -> Any:
    if not isinstance(text, str):
        return text
    moved = re.sub(r"(?i)\bhub\b", lambda _: rng.choice(hosts), text)
    return moved.replace("10.0.0.5", f"10.0.{number}.5")


def _walked(tables: Tables, as_of: datetime | None) -> list[Row]:
    """The rows of the messages that are not rejected, each followed by itself."""
    known = {row["instance_name"] for row in tables["instances"]}
    databases = {(row["instance_name"], row["name"]) for row in tables["databases"]}
    sound = [row for row in tables["messages"] if _is_sound(row, known, databases)]
    network = _known(tables)
    verdicts = by_rules.resolved({**tables, "messages": sound}, as_of)
    return [_walk(network, message, verdicts[place], as_of) for place, message in enumerate(sound)]


def _is_sound(row: Row, known: set[str], databases: set[tuple[str, str]]) -> bool:
    needed = ("message_id", "conversation_id", "enqueue_time", "instance_name", "to_service_name")
    if not all(row[name] for name in needed) or row["is_initiator"] is None or row["instance_name"] not in known:
        return False
    database = row["database_name"]
    return text.is_guid(row["conversation_id"]) and (not database or (row["instance_name"], database) in databases)


def _known(tables: Tables) -> Network:
    on_record: dict[tuple[str, str, str], list[Request]] = {}
    for row in tables["route_requests"]:
        at, end = by_rules.micros(row["requested_at"]), by_rules.micros(row.get("ended_at"))
        key = (row["instance_name"], row["database_name"], row["service_name"])
        on_record.setdefault(key, []).append(Request(at or 0, row["message_id"], end))
    return Network(by_rules.instances_of(tables), on_record)


def _walk(network: Network, row: Row, verdict: Verdict, as_of: datetime | None) -> Row:
    time, database = by_rules.decided_at(row, as_of), row["database_name"] or None
    conversation, scope = text.fold(row["conversation_id"]), database or "msdb"
    t, here, sender = by_rules.micros(time) or 0, network.instances[row["instance_name"]], row["from_service_name"]
    to = Addressee.of_name(row["to_service_name"])
    errand = Errand(to, row["is_initiator"], t, hashing.dialog_id_hash(conversation))
    there = follow(network, decide_now, errand, here, verdict, scope, row["hops_remaining"]).trace
    back_to = Addressee.of_name(sender) if sender else None
    path, _ = trace_back(network, decide_now, Sender(here, database, row["is_initiator"], back_to), there, t)
    return {**_own(row, database, conversation, time), **_told(path)}


def _own(row: Row, database: str | None, conversation: str, time: datetime) -> Row:
    same = ("message_id", "is_initiator", "message_sequence_number", "enqueue_time", "instance_name")
    return {
        **{name: row[name] for name in same},
        "conversation_id": conversation,
        "database_name": database,
        "to_service_name": row["to_service_name"],
        "from_service_name": row["from_service_name"] or None,
        "decided_at": time,
    }


def _told(path: Path) -> Row:
    told = path_row(path)
    return {**told._asdict(), "hops": [hop._asdict() for hop in told.hops]}


@pytest.mark.parametrize("as_of", [None, AS_OF], ids=["own time", "as_of"])
def test_random_networks_agree_with_the_walk_of_each_message(spark: SparkSession, as_of: datetime | None) -> None:
    rng = random.Random(SEED)
    tables = joined([_network(rng, number) for number in range(ESTATES)])
    expected = _walked(tables, as_of)
    found: Traced = trace_all(spark, frames(spark, tables), as_of=as_of)
    try:
        rows = rows_of(found.message_paths)
        assert_same(rows, expected, "message_paths")
    finally:
        found.unpersist()
    assert found.read == len(tables["messages"])
    assert found.traced == len(expected)
    assert 0 < found.rejected == found.read - found.traced
    _assert_much_is_met(expected)


def _assert_much_is_met(rows: list[Row]) -> None:
    ends = Counter(row["outcome"] for row in rows)
    ends.update(f"back {row['return_outcome']}" for row in rows)
    ends.update(row["reason"] for row in rows)
    ends.update(f"{len(row['hops'])} hops" for row in rows)
    print(ends)
