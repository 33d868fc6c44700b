"""Rows with every fault that a row can have, and beside each the neighbour that is still right."""

from __future__ import annotations

from tests.estate_rows import conversation, database, endpoint, instance, message, request, route, service
from tests.frames import Tables

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
BETWEEN = "2026-01-15T00:00:00Z"


def faulty_rows() -> Tables:
    far = "tcp://far:4022"
    return {
        "routes": [
            route("doubled", "a", far),
            route("doubled", "b", far),
            route("doubled in time", "a", far, valid_from=EARLY, valid_to=BETWEEN),
            route("doubled in time", "a", far, valid_from=EARLY, valid_to=EARLY),
            route("overlap", "a", far, valid_from=EARLY, valid_to=LATE),
            route("overlap", "a", far, valid_from=BETWEEN),
            route("overlap with all time", "a", far),
            route("overlap with all time", "a", far, valid_from=BETWEEN, valid_to=LATE),
            route("meets", "a", far, valid_from=EARLY, valid_to=BETWEEN),
            route("meets", "a", far, valid_from=BETWEEN),
            route("empty version inside", "a", far, valid_from=EARLY, valid_to=LATE),
            route("empty version inside", "a", far, valid_from=BETWEEN, valid_to=BETWEEN),
            route("no scheme", "a", "far:4022"),
            route("http", "a", "http://far:4022"),
            route("long port", "a", "tcp://far:402200"),
            route("no host", "a", "tcp://:4022"),
            route("inner blank", "a", "tcp://far away:4022"),
            route("ipv6", "a", " TCP://[::1]:4022// "),
            route("no port", "a", "tcp://far"),
            route("empty address", "a", ""),
            route("null address", "a", None),
            route("mirror beside local", "a", "local", mirror_address=far),
            route("mirror beside transport", "a", "TRANSPORT", mirror_address=far),
            route("bad mirror", "a", far, mirror_address="LOCAL"),
            route("empty mirror", "a", "LOCAL", mirror_address=""),
            route("", "a", far),
            route("null instance", "a", far, instance_name=None),
        ],
        "databases": [
            database("doubled", "x"),
            database("doubled", "y"),
            {**instance(), "name": "no guid"},
            database("blank guid", " {} "),
            database("zero guid", "00000000-0000-0000-0000-000000000000"),
            database("null instance", "z", instance_name=None),
        ],
        "services": [service("Sales", name) for name in ("doubled", "doubled", "DOUBLED", "")],
        "instances": [
            instance(),
            instance(),
            instance("bad", "tcp://fine:1", "LOCAL"),
            instance("nothing", addresses=[None, ""]),
        ],
        "messages": [message(1, "//stock")],
        "dialogs": [
            endpoint(1),
            endpoint(1, conversation_id=conversation(1).lower()),
            endpoint(1, is_initiator=False),
            endpoint(2, is_initiator=None),
        ],
        "route_requests": [request("a", requested_at=None, message_id="m1")],
    }
