"""The parts of the oracle are correct, and the random estates are valid configurations."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest

from .dialog_hash import picked, xxhash64
from .estates import Tables, random_estate
from .instances import read_instances
from .messages import faults
from .text import (
    ZERO_GUID,
    address_key,
    broker_id,
    is_address,
    missing_route_body,
    own_address_keys,
    service_address,
)
from .times import utc

GUID = "5FB8D92B-ed69-4c80-afbb-2aa6a7d3cb2d"
KEYS = {
    "routes": ("instance_name", "database_name", "name", "valid_from"),
    "databases": ("instance_name", "name"),
    "services": ("instance_name", "database_name", "name"),
    "instances": ("instance_name",),
}


def test_the_hash_has_its_published_values() -> None:
    assert xxhash64("abc") == 1423657621850124518
    dialog = "6b1f0b9a-6a0e-4a52-9c7b-0d6f6d9a000"
    assert [xxhash64(dialog + digit) for digit in "1234"] == [
        -8367975887838753628,
        -861968757827549059,
        -6838570742282400457,
        5917326566894755064,
    ]
    # The digests that XXH64 itself publishes for the empty text and for "a", without a seed.
    assert xxhash64("", seed=0) % 2**64 == 0xEF46DB3751D8E999
    assert xxhash64("a", seed=0) % 2**64 == 0xD24EC4F1A98C6E5B
    assert picked(["b", "c"], dialog + "3") == "c"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (None, None),
        ("", None),
        (" \t\r\n", None),
        ("{}", None),
        ("{ }", None),
        (ZERO_GUID, None),
        (f" {{{ZERO_GUID}}} ", None),
        (GUID, GUID.lower()),
        (f"\n{{ {GUID} }}\t", GUID.lower()),
        ("DatabaseA", "databasea"),
        ("{{x}}", "{x}"),
        ("{", "{"),
        ("{x", "{x"),
        ("\u00a0x", "\u00a0x"),
    ],
)
def test_a_broker_id(written: str | None, read: str | None) -> None:
    assert broker_id(written) == read


@pytest.mark.parametrize(
    ("service", "address"),
    [
        ("tcp://east:4022", "tcp://east:4022"),
        ("TCP://East:1/a\nb", "TCP://East:1"),
        ("tcp://[2001:db8::7]:04022//", "tcp://[2001:db8::7]:04022"),
        ("tcp://[fe80::1%eth0]:1", "tcp://[fe80::1%eth0]:1"),
        ("tcp://.:1/", "tcp://.:1"),
        ("tcp://east/x", None),
        ("tcp://east:4022 ", None),
        ("tcp://east:4022\n", None),
        (" tcp://east:4022", None),
        ("tcp://east:123456", None),
        ("tcp://east:\u0661", None),
        ("tcp://[]:1", None),
        ("tcp://[east]:1", None),
        ("tcp://ea st:1", None),
        ("tcp://:1", None),
        ("Billing", None),
    ],
)
def test_the_address_in_a_service_name(service: str, address: str | None) -> None:
    assert service_address(service) == address


def test_addresses_are_compared_without_case_blanks_and_slashes() -> None:
    assert address_key(" TCP://Hub:1// \n") == "tcp://hub:1"
    keys = own_address_keys(["TCP://Hub:4022/", None, "", "tcp://bare", "tcp://[::2]:5022"])
    assert {"tcp://hub:4022", "tcp://bare", "tcp://localhost:4022", "tcp://.:5022"} <= keys
    assert {"tcp://localhost", "tcp://[::2]:4022", "tcp://hub:5022"}.isdisjoint(keys)
    assert own_address_keys(None) == frozenset()


def test_the_body_of_a_request_is_xml() -> None:
    body = missing_route_body("ns", "a&b <c> \"d' \x01\ufffe\t")
    name = "a&amp;b &lt;c&gt; \"d' \ufffd\ufffd\t"
    assert body == f'<MissingRoute xmlns="ns"><SERVICE_NAME>{name}</SERVICE_NAME></MissingRoute>'


def test_times_are_utc() -> None:
    noon = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
    assert utc(datetime(2026, 1, 5, 12)) == noon
    east = datetime(2026, 1, 5, 14, tzinfo=timezone(timedelta(hours=2)))
    assert utc(east) == noon
    assert utc(None) is None


def test_every_reason_of_a_bad_message_is_listed_in_order() -> None:
    guid = "00000000-0000-0000-0000-000000000000"
    instances = read_instances({"instances": [{"instance_name": "hub"}]})
    good = {"message_id": "m", "is_initiator": False, "enqueue_time": 1, "to_service_name": " "}
    good |= {"conversation_id": guid, "instance_name": "hub"}
    missing = ["MESSAGE_ID", "CONVERSATION_ID", "IS_INITIATOR", "ENQUEUE_TIME"]
    missing += ["INSTANCE_NAME", "TO_SERVICE_NAME"]
    wanted: list[tuple[dict[str, Any], list[str]]] = [
        ({}, []),
        ({"database_name": ""}, []),
        ({"database_name": "x"}, ["UNKNOWN_DATABASE"]),
        ({"instance_name": "x", "database_name": "x"}, ["UNKNOWN_INSTANCE"]),
        ({"instance_name": ""}, ["MISSING_INSTANCE_NAME"]),
        ({"conversation_id": guid + "\n"}, ["CONVERSATION_ID_NOT_A_GUID"]),
        # Bytes represent a text that is not UTF-8.
        (
            {"from_service_name": b"\x81", "to_broker_instance": b"\xff"},
            ["NOT_UTF8_TO_BROKER_INSTANCE", "NOT_UTF8_FROM_SERVICE_NAME"],
        ),
        ({"conversation_id": guid.encode() + b"\xe9"}, ["NOT_UTF8_CONVERSATION_ID", "CONVERSATION_ID_NOT_A_GUID"]),
        ({"instance_name": b"hub\xe9"}, ["NOT_UTF8_INSTANCE_NAME", "UNKNOWN_INSTANCE"]),
    ]
    for change, reasons in wanted:
        assert faults(good | change, instances) == reasons
    assert faults({}, instances) == [f"MISSING_{column}" for column in missing]
    assert faults(good | {"message_id": None, "conversation_id": "x", "database_name": "x"}, instances) == [
        "MISSING_MESSAGE_ID",
        "CONVERSATION_ID_NOT_A_GUID",
        "UNKNOWN_DATABASE",
    ]


def route_faults(tables: Tables) -> list[str]:
    """List the faults that would stop a run: invalid addresses and overlapping versions."""
    found: list[str] = []
    versions: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in tables["routes"]:
        keyword = address_key(row["address"]) in ("local", "transport")
        mirror = row["mirror_address"]
        if not keyword and not is_address(row["address"]):
            found.append(row["address"])
        if mirror and (keyword or not is_address(mirror)):
            found.append(mirror)
        name = (row["instance_name"], row["database_name"], row["name"])
        versions.setdefault(name, []).append(row)
    earliest = datetime.min.replace(tzinfo=timezone.utc)
    for rows in versions.values():
        rows.sort(key=lambda row: row["valid_from"] or earliest)
        for one, other in pairwise(rows):
            if one["valid_to"] is None or one["valid_to"] > (other["valid_from"] or earliest):
                found.append(f"overlap {one} {other}")
    return found


def test_random_estates_are_valid() -> None:
    rng = random.Random(7)
    for _ in range(200):
        estate = random_estate(rng, 20, prefix="x-")
        assert route_faults(estate) == []
        for table, columns in KEYS.items():
            keys = [tuple(row[column] for column in columns) for row in estate[table]]
            assert len(keys) == len(set(keys))
        for row in estate["instances"]:
            assert all(is_address(own) for own in row["addresses"] or () if own)
        ends = [
            (
                row["instance_name"],
                row["database_name"],
                row["conversation_id"].lower(),
                row["is_initiator"],
            )
            for row in estate["dialogs"]
        ]
        assert len(ends) == len(set(ends))
        names = [row["instance_name"] for rows in estate.values() for row in rows]
        assert all(name in (None, "") or name.startswith("x-") for name in names)


def test_an_estate_depends_only_on_the_random_seed() -> None:
    assert random_estate(random.Random(8), 30) == random_estate(random.Random(8), 30)
