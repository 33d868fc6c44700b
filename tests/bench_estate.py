"""A small estate with every rule that the benchmark's comparators know, and the expected rows.

The rows were worked out by hand from the rule book, and the two hashes of step 3 with xxhash of PyPI.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from tests.estate_rows import Row, database, endpoint, instance, route, service
from tests.frames import Tables

_ALPHA_0, _ALPHA_1, _BETA_0 = (f"{digit * 8}-0000-4000-8000-{digit * 12}" for digit in "abc")
_B1, _B2, _K1, _NOBODY = (f"{digit * 8}-0000-4000-8000-{digit * 12}" for digit in "1234")
# xxhash64 with seed 42 gives 7905586284498021964 and -3750268612156062887: even, and odd and negative.
_PICKS_FIRST, _PICKS_SECOND = "10000000-0000-4000-8000-000000000001", "10000000-0000-4000-8000-000000000004"
_NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
_BEFORE, _AFTER = _NOON.replace(hour=9), _NOON.replace(hour=15)


_ALPHA, _BETA = {"instance_name": "alpha"}, {"instance_name": "beta"}
_APP = {**_ALPHA, "database_name": "app_0"}
_MSDB_OF_ALPHA, _MSDB_OF_BETA = ({**one, "database_name": "msdb"} for one in (_ALPHA, _BETA))
_FAR, _ACKNOWLEDGED, _LATER = (f"20000000-0000-4000-8000-00000000000{n}" for n in range(3))

TABLES: Tables = {
    "instances": [
        instance("alpha", is_message_forwarding_enabled=True),
        instance("beta", is_message_forwarding_enabled=False),
    ],
    "databases": [
        database("app_0", _ALPHA_0, **_ALPHA),
        database("app_1", _ALPHA_1, **_ALPHA),
        database("msdb", "00000000-0000-4000-8000-00000000000a", **_ALPHA),
        database("app_0", _BETA_0, **_BETA),
        database("msdb", "00000000-0000-4000-8000-00000000000b", **_BETA),
    ],
    "services": [
        service("app_1", "//held", **_ALPHA),
        service("app_0", "//both", **_ALPHA),
        service("app_1", "//both", **_ALPHA),
    ],
    "routes": [
        route("any", None, "LOCAL", **_APP),
        route("named", "//named", "tcp://named:1", **_APP),
        route("named k1", "//named", "tcp://k1:1", **_APP, broker_instance=_K1),
        route("first", "//balanced", "tcp://first:1", **_APP, broker_instance=_B1),
        route("second", "//balanced", "tcp://second:1", **_APP, broker_instance=_B2),
        route("mirrored", "//mirrored", "tcp://p:1", **_APP, mirror_address="tcp://m:1"),
        route("in no step", None, "tcp://odd:1", **_APP, broker_instance=_NOBODY),
        route("msdb named", "//named", "tcp://msdb:1", **_MSDB_OF_ALPHA),
        route("msdb any", None, "LOCAL", **_MSDB_OF_BETA),
        route("msdb named", "//named", "tcp://beta:1", **_MSDB_OF_BETA),
    ],
    "dialogs": [
        endpoint(0, **_APP, conversation_id=_FAR, far_broker_instance=_B1),
        endpoint(
            0,
            **_APP,
            conversation_id=_ACKNOWLEDGED,
            far_broker_instance=_B1,
            acknowledged_at=_BEFORE,
            acknowledged_broker_instance=_B2,
        ),
        endpoint(0, **_APP, conversation_id=_LATER, acknowledged_at=_AFTER, acknowledged_broker_instance=_B1),
    ],
    "messages": [],
}
EXPECTED: list[Row] = []
_DECIDED = ("outcome", "reason", "matching_step", "route_name", "address", "destination_database")


def _case(
    instance: str,
    database: str | None,
    service: str,
    decided: tuple[Any, ...],
    *,
    broker: str | None = None,
    after: str | None = None,
    conversation: str = _PICKS_FIRST,
    hops: int | None = None,
    mirror: str | None = None,
) -> None:
    """Return a message and its row. ``broker`` is its own id, ``after`` another id after matching."""
    number = len(EXPECTED)
    message = {
        "message_id": f"m{number:02}",
        "conversation_id": conversation,
        "is_initiator": True,
        "message_sequence_number": number,
        "enqueue_time": _NOON,
        "instance_name": instance,
        "database_name": database,
        "to_service_name": service,
        "to_broker_instance": broker,
    }
    TABLES["messages"].append({**message, "hops_remaining": hops})
    EXPECTED.append(
        {
            **message,
            **dict(zip(_DECIDED, decided, strict=True)),
            "decided_at": _NOON,
            "broker_instance": after or broker,
            "mirror_address": mirror,
            "alternative_routes": None,
            "rerouted_from": None,
            "attempt": 1,
        }
    )


_SENT = ("SENT", "NETWORK_ADDRESS")
# Section 2, steps 1, 2, 3, 5 and 7.
_case("alpha", "app_0", "//named", (*_SENT, 2, "named", "tcp://named:1", None))
_case("alpha", "app_0", "//named", (*_SENT, 1, "named k1", "tcp://k1:1", None), broker=_K1)
_case("alpha", "app_0", "//named", (*_SENT, 2, "named", "tcp://named:1", None), broker=_NOBODY)
_case("alpha", "app_0", "//balanced", (*_SENT, 3, "first", "tcp://first:1", None), after=_B1)
_case(
    "alpha",
    "app_0",
    "//balanced",
    (*_SENT, 3, "second", "tcp://second:1", None),
    after=_B2,
    conversation=_PICKS_SECOND,
)
_case("alpha", "app_0", "//balanced", (*_SENT, 1, "second", "tcp://second:1", None), broker=_B2)
_case(
    "alpha",
    "app_0",
    "//balanced",
    ("DELAYED", "BROKER_INSTANCE_NOT_FOUND", 5, "any", None, None),
    broker=_NOBODY,
)
_case("alpha", "app_1", "//named", ("DELAYED", "NO_ROUTE", 7, None, None, None))
# Sections 3 and 4.
_case(
    "alpha",
    "app_0",
    "//mirrored",
    ("SENT", "MIRROR_ADDRESS", 2, "mirrored", "tcp://p:1", None),
    mirror="tcp://m:1",
)
_HERE = ("DELIVERED", "LOCAL_SERVICE", 5, "any", "LOCAL")
_case("alpha", "app_0", "//held", (*_HERE, "app_1"))
_case("alpha", "app_0", "//both", (*_HERE, "app_0"))
_case("alpha", "app_0", "//both", (*_HERE, "app_1"), broker=_ALPHA_1)
_case("alpha", "app_0", "//nobody's", ("DELAYED", "SERVICE_NOT_FOUND", 5, "any", None, None))
_case("alpha", "app_0", "//held", ("DELAYED", "SERVICE_NOT_FOUND", 5, "any", None, None), broker=_ALPHA_0)
# From the network.
_MSDB = (2, "msdb named", "tcp://msdb:1", None)
_case("alpha", None, "//named", ("FORWARDED", "NETWORK_ADDRESS", *_MSDB), hops=3)
_case("alpha", None, "//named", ("FORWARDED", "NETWORK_ADDRESS", *_MSDB))
_case("alpha", None, "//named", ("DROPPED", "HOP_LIMIT", *_MSDB), hops=0)
_case("beta", None, "//named", ("DROPPED", "FORWARDING_DISABLED", 2, "msdb named", "tcp://beta:1", None), hops=0)
_case("beta", None, "//nobody's", ("DROPPED", "SERVICE_NOT_FOUND", 5, "msdb any", None, None))
_case("alpha", None, "//nobody's", ("DELAYED", "NO_ROUTE", 7, None, None, None))
# Section 0: ids of the dialog, and one that is acknowledged only later.
_case("alpha", "app_0", "//balanced", (*_SENT, 1, "first", "tcp://first:1", None), after=_B1, conversation=_FAR)
_case(
    "alpha",
    "app_0",
    "//balanced",
    (*_SENT, 1, "second", "tcp://second:1", None),
    after=_B2,
    conversation=_ACKNOWLEDGED,
)
_case("alpha", "app_0", "//named", (*_SENT, 2, "named", "tcp://named:1", None), conversation=_LATER)
