"""The demo's tables are valid. Its day is the same in every run and has every decision."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timedelta, timezone
from functools import cache
from itertools import combinations
from typing import Any

import pytest

from routing import schemas
from routing.demo.build import generate_day
from routing.demo.example_estates import document_estates
from routing.schemas import INPUTS
from routing.terms import Outcome, Reason
from tests.reference.resolver import Resolution, resolve

Row = dict[str, Any]
Tables = dict[str, list[Row]]

MESSAGES = 12_000
MIDNIGHT = datetime(2026, 1, 5, tzinfo=timezone.utc)
KEYS = {**schemas.KEYS, "messages": ("instance_name", "message_id")}
REJECTIONS = {
    "MISSING_MESSAGE_ID",
    "MISSING_CONVERSATION_ID",
    "MISSING_IS_INITIATOR",
    "MISSING_ENQUEUE_TIME",
    "MISSING_INSTANCE_NAME",
    "MISSING_TO_SERVICE_NAME",
    "CONVERSATION_ID_NOT_A_GUID",
    "UNKNOWN_INSTANCE",
    "UNKNOWN_DATABASE",
}
NETWORK = re.compile(r"tcp://(\[[0-9a-f:]+\]|[^/:\[\]\s]+)(:[0-9]{1,5})?/*", re.IGNORECASE)


@cache
def day() -> Tables:
    return generate_day()


@cache
def resolved_day() -> Resolution:
    return resolve(day())


@cache
def everything() -> Tables:
    parts = [*(estate.tables for estate in document_estates()), day()]
    return {name: [row for part in parts for row in part[name]] for name in INPUTS}


def covers(row: Row, at: datetime) -> bool:
    return (row["valid_from"] is None or row["valid_from"] <= at) and (
        row["valid_to"] is None or at < row["valid_to"]
    )


def overlap(one: Row, other: Row) -> bool:
    starts = [row["valid_from"] or datetime.min.replace(tzinfo=timezone.utc) for row in (one, other)]
    return covers(one, max(starts)) and covers(other, max(starts))


def delivered_share(rows: list[Row]) -> float:
    return sum(row["outcome"] in ("DELIVERED", "SENT", "FORWARDED") for row in rows) / len(rows)


def test_every_row_has_the_columns_of_its_table() -> None:
    tables = everything()
    assert tables.keys() == INPUTS.keys()
    for name, schema in INPUTS.items():
        assert tables[name]
        assert {tuple(row) for row in tables[name]} == {tuple(schema.names)}, name


@pytest.mark.parametrize("table", KEYS)
def test_keys_are_unique_over_all_estates_together(table: str) -> None:
    # Bad messages may lack what a key is made of.
    rows = [row for row in everything()[table] if not str(row.get("message_id")).startswith("bad-")]
    counted = Counter(tuple(row[column] for column in KEYS[table]) for row in rows)
    assert [key for key, count in counted.items() if count > 1] == []


def test_required_values_are_present() -> None:
    for name, schema in INPUTS.items():
        required = [field.name for field in schema if not field.nullable]
        if name != "messages":
            assert all(row[column] not in (None, "") for row in everything()[name] for column in required)


def test_addresses_follow_the_grammar() -> None:
    tables = everything()
    for route in tables["routes"]:
        keyword = route["address"].upper() in ("LOCAL", "TRANSPORT")
        assert keyword or NETWORK.fullmatch(route["address"]), route
        mirror = route["mirror_address"]
        assert mirror is None or (not keyword and NETWORK.fullmatch(mirror)), route
    for instance in tables["instances"]:
        assert instance["addresses"]
        assert all(NETWORK.fullmatch(address) for address in instance["addresses"])


def test_versions_of_a_route_do_not_overlap() -> None:
    versions: dict[tuple[str, ...], list[Row]] = {}
    for route in everything()["routes"]:
        key = (route["instance_name"], route["database_name"], route["name"])
        versions.setdefault(key, []).append(route)
    several = [rows for rows in versions.values() if len(rows) > 1]
    assert several
    assert not [pair for rows in several for pair in combinations(rows, 2) if overlap(*pair)]


def test_routes_and_services_belong_to_listed_databases() -> None:
    tables = everything()
    databases = {(row["instance_name"], row["name"]) for row in tables["databases"]}
    instances = {row["instance_name"] for row in tables["instances"]}
    assert {instance for instance, _ in databases} == instances
    for name in ("routes", "services", "dialogs", "route_requests"):
        assert {(row["instance_name"], row["database_name"]) for row in tables[name]} <= databases


def test_the_same_seed_gives_the_same_day() -> None:
    assert generate_day() == day()
    assert generate_day(seed=1)["messages"] != day()["messages"]


@pytest.mark.parametrize("count", [0, 5, 500, 3000, MESSAGES])
def test_the_day_has_as_many_messages_as_asked_for(count: int) -> None:
    assert len(generate_day(messages=count)["messages"]) == count


def test_the_messages_of_the_day_are_in_order_of_time() -> None:
    times = [row["enqueue_time"] for row in day()["messages"] if row["message_id"] and row["enqueue_time"]]
    good = times[: MESSAGES - len(REJECTIONS)]
    assert good == sorted(good)
    seen = [row["observed_at"] for row in day()["messages"] if row["observed_at"]]
    assert all(MIDNIGHT <= at < MIDNIGHT + timedelta(days=1) for at in [*times, *seen])


def test_twenty_instances_with_several_databases() -> None:
    databases = Counter(row["instance_name"] for row in day()["databases"])
    assert len(databases) == len(day()["instances"]) == 20
    assert min(databases.values()) == 2
    msdb = {row["instance_name"]: row["database_id"] for row in day()["databases"] if row["name"] == "msdb"}
    assert set(msdb.values()) == {4}
    assert msdb.keys() == databases.keys()


def test_counts_add_up() -> None:
    resolution = resolved_day()
    assert len(resolution.resolved_routes) + len(resolution.rejected_messages) == MESSAGES


@pytest.mark.parametrize(("seed", "count"), [(20260105, MESSAGES), (1, 3000), (2, 3000)])
def test_the_day_reaches_every_outcome_and_reason(seed: int, count: int) -> None:
    resolution = resolve(generate_day(seed, count))
    rows = resolution.resolved_routes
    assert {row["outcome"] for row in rows} == {str(outcome) for outcome in Outcome}
    assert {row["reason"] for row in rows} == {str(reason) for reason in Reason}
    assert {row["matching_step"] for row in rows} == {None, *range(8)}
    assert [row["reasons"] for row in resolution.rejected_messages if len(row["reasons"]) > 1] == []
    assert {code for row in resolution.rejected_messages for code in row["reasons"]} == REJECTIONS


def test_a_message_is_rerouted_and_delivered_or_caught_in_a_loop() -> None:
    rerouted = Counter(r["reason"] for r in resolved_day().resolved_routes if r["rerouted_from"])
    assert rerouted.keys() == {"LOCAL_SERVICE", "ROUTING_LOOP"}


def test_most_messages_get_through() -> None:
    assert delivered_share(resolved_day().resolved_routes) > 0.9


def test_sent_messages_arrive_at_the_next_instance() -> None:
    owners = {address.lower(): row["instance_name"] for row in day()["instances"] for address in row["addresses"]}
    arrived = {(row["message_id"], row["instance_name"]) for row in day()["messages"]}
    on_the_way = [
        (row["message_id"], owners[row["address"].lower()])
        for row in resolved_day().resolved_routes
        if row["outcome"] in ("SENT", "FORWARDED") and row["address"].lower() in owners
    ]
    lost = [hop for hop in on_the_way if hop not in arrived]
    assert len(on_the_way) > 5000
    # The very last message of the drawing may be cut off on its way.
    assert len({message_id for message_id, _ in lost}) <= 1


def test_the_pricing_service_is_balanced_over_four_brokers() -> None:
    picks = {
        row["conversation_id"]: row["broker_instance"]
        for row in resolved_day().resolved_routes
        if row["matching_step"] == 3 and row["route_name"].startswith("Pricing-")
    }
    shares = Counter(picks.values())
    assert len(picks) > 300
    assert len(shares) == 4
    assert min(shares.values()) > 0.15 * len(picks)


def test_a_stuck_service_piles_up_in_the_afternoon() -> None:
    delayed = Counter(
        row["decided_at"].hour for row in resolved_day().resolved_routes if row["outcome"] == "DELAYED"
    )
    assert min(delayed[hour] for hour in (14, 15, 16)) > 3 * max(delayed[hour] for hour in range(13))
    assert max(delayed[hour] for hour in range(18, 24)) < 40


def test_busy_by_day_and_quiet_by_night() -> None:
    hours = Counter(row["enqueue_time"].hour for row in resolved_day().resolved_routes)
    assert min(hours[hour] for hour in range(9, 19)) > 3 * max(hours[hour] for hour in range(6))
