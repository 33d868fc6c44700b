"""One table of operations on tables that grow with the traffic, with the expected answers of both engines.

The rows are hostile: nulls, invalid UTF-8, the first and last possible times, duplicate ids, and very long names
or names that differ only in case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from typing import Any, NamedTuple

from routing.engines.traffic_tables import SentKey, TrafficTable
from routing.rules.timeline import micros_of
from routing.schemas import DIALOGS, MESSAGES, Schema
from routing.tables.table_columns import TableColumns
from tests.estate_rows import endpoint, message

Row = dict[str, Any]
Open = Callable[[list[Row], Schema, "str | None"], TrafficTable]
LONG = "n" * 100_000
HALF, SHOWN = b"\xed\xa0\x80", r"\xed\xa0\x80"
"""Half a surrogate, which is no UTF-8, and as it is shown."""
FIRST, LAST = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"
BEFORE_1970, NOON, AFTER_NOON = (
    "1969-12-31T23:59:59.999999Z",
    "2026-01-05T12:00:00Z",
    "2026-01-05T12:00:00.000001Z",
)
HOUR = 3_600_000_000


def micros(text: str) -> int:
    """Return an ISO text as microseconds since 1970."""
    return micros_of(datetime.fromisoformat(text[:-1]).replace(tzinfo=timezone.utc))


def resolved(message: str, instance: Any, database: Any, service: Any, at: str, **columns: Any) -> Row:
    """Return a row of ``resolved_routes``."""
    fixed = {
        "message_id": message,
        "conversation_id": "c1",
        "is_initiator": True,
        "enqueue_time": at,
        "instance_name": instance,
        "database_name": database,
        "to_service_name": service,
        "decided_at": at,
        "outcome": "SENT",
        "reason": "NETWORK_ADDRESS",
        "run_id": "r",
        "attempt": 1,
    }
    return {**fixed, **columns}


BALANCED: Row = {"matching_step": 3}
OTHERS = [{"route_name": name, "address": "tcp://x:1", "mirror_address": None} for name in ("Two", None)]
ROWS = [
    resolved("m1", "HUB", "Shop", "//a", FIRST, outcome="DELAYED", broker_instance="id-0", **BALANCED),
    resolved("m1", "HUB", "Shop", "//a", FIRST, attempt=2, broker_instance="id-1", **BALANCED),
    # The same id on another instance, whose name differs in case alone.
    resolved("m1", "hub", None, "//A", BEFORE_1970, broker_instance="id-1", **BALANCED),
    # One message in two rows.
    resolved("m2", "HUB", None, "//a", NOON, conversation_id="c2", broker_instance="id-1", **BALANCED),
    resolved("m2", "HUB", None, "//a", NOON, conversation_id="c2", broker_instance="id-1", **BALANCED),
    resolved("m3", "HUB", "Shop", "//a", AFTER_NOON, route_name="One", alternative_routes=OTHERS),
    resolved("m4", HALF, "Shop", LONG, LAST, rerouted_from="Back", is_initiator=False, **BALANCED),
    resolved("m5", "HUB", "msdb", "//\u0130", NOON, conversation_id="c2", broker_instance="id-2", **BALANCED),
    resolved("m6", "HUB", "Shop", "//a", NOON, broker_instance="id-2", **BALANCED),
]


class Operation(NamedTuple):
    """An operation on the rows above, and the rows of its answer, in order if ``is_ordered``."""

    name: str
    ask: Callable[[TrafficTable], Iterable[tuple[Any, ...]]]
    expected: list[tuple[Any, ...]]
    is_ordered: bool = False


def whole(columns: TableColumns) -> list[tuple[Any, ...]]:
    """Return the rows of all columns."""
    return list(columns.rows(*columns.values))


PLACE = ("instance_name", "database_name")
LISTED = ("instance_name", "to_service_name", "enqueue_time", "message_id")
READ = (
    *(*PLACE, "to_service_name", "outcome", "enqueue_time", "decided_at", "broker_instance", "conversation_id"),
    *("matching_step", "rerouted_from", "message_id", "attempt", "address", "is_initiator"),
)
ENDINGS = {
    SentKey("HUB", "Shop", "//a", "SENT", None, "id-1", True): "DELIVERED",
    SentKey("HUB", None, "//a", "SENT", None, "id-1", True): "DELIVERED",
    SentKey("HUB", "Shop", "//a", "SENT", None, None, True): "DROPPED",
    SentKey("HUB", "Shop", "//a", "SENT", None, None, False): "LOOP",
    SentKey("hub", "Shop", "//a", "SENT", "tcp://x:1", "id-1", True): "LOOP",
}


def last(table: TrafficTable) -> TrafficTable:
    """Return the rows that count."""
    return table.last_attempts(READ)


OPERATIONS = [
    Operation(
        "groups; null is a group",
        lambda t: whole(t.groups(PLACE).rows()),
        [
            *(("HUB", "Shop", 4), ("HUB", None, 2), ("HUB", "msdb", 1)),
            *(("hub", None, 1), (SHOWN, "Shop", 1)),
        ],
    ),
    Operation(
        "groups of last attempts",
        lambda t: whole(last(t).groups(PLACE).rows()),
        [
            *(("HUB", "Shop", 3), ("HUB", None, 2), ("HUB", "msdb", 1)),
            *(("hub", None, 1), (SHOWN, "Shop", 1)),
        ],
    ),
    Operation(
        "a group of replaced rows alone is none",
        lambda t: whole(last(t).groups(("outcome",)).rows()),
        [("SENT", 8)],
    ),
    Operation(
        "the least and the greatest",
        lambda t: whole(
            t.groups(("outcome",), least=("enqueue_time",), most=("enqueue_time", "message_id")).rows()
        ),
        [
            ("DELAYED", 1, micros(FIRST), micros(FIRST), "m1"),
            ("SENT", 8, micros(FIRST), micros(LAST), "m6"),
        ],
    ),
    Operation(
        "the least of last attempts",
        lambda t: whole(last(t).groups(("database_name",), least=("broker_instance",)).rows()),
        [("Shop", 4, "id-1"), (None, 3, "id-1"), ("msdb", 1, "id-2")],
    ),
    Operation(
        "the least time of some rows",
        lambda t: whole(t.groups(PLACE[:1], least=("decided_at",), only={"broker_instance": None}).rows()),
        [("HUB", 1, micros(AFTER_NOON)), (SHOWN, 1, micros(LAST))],
    ),
    Operation(
        "only some values; names as they are written",
        lambda t: whole(t.groups(("to_service_name",), only={"instance_name": ["hub", None, "Hub"]}).rows()),
        [("//A", 1)],
    ),
    Operation(
        "only null",
        lambda t: whole(t.groups(PLACE, only={"broker_instance": None, "is_initiator": [True]}).rows()),
        [("HUB", "Shop", 1)],
    ),
    Operation("only nothing", lambda t: whole(t.groups(PLACE, only={"instance_name": []}).rows()), []),
    Operation(
        "groups in which a value varies; null is none",
        lambda t: whole(t.groups(("conversation_id", "database_name"), varying="broker_instance").rows()),
        [("c1", "Shop", 5)],
    ),
    Operation(
        "groups of groups",
        lambda t: whole(
            t.groups(("instance_name", "conversation_id"))
            .groups(("instance_name",), least=("conversation_id",))
            .rows()
        ),
        [("HUB", 2, "c1"), ("hub", 1, "c1"), (SHOWN, 1, "c1")],
    ),
    Operation(
        "the first rows by names and time",
        lambda t: whole(t.rows(LISTED, order=LISTED, limit=3)),
        [
            ("HUB", "//a", micros(FIRST), "m1"),
            ("HUB", "//a", micros(FIRST), "m1"),
            ("HUB", "//a", micros(NOON), "m2"),
        ],
        is_ordered=True,
    ),
    Operation(
        "the first of the last attempts",
        lambda t: whole(last(t).rows(LISTED, order=LISTED, limit=6)),
        [
            ("HUB", "//a", micros(FIRST), "m1"),
            *(("HUB", "//a", micros(NOON), name) for name in ("m2", "m2", "m6")),
            ("HUB", "//a", micros(AFTER_NOON), "m3"),
            ("HUB", "//\u0130", micros(NOON), "m5"),
        ],
        is_ordered=True,
    ),
    Operation(
        "the first by time",
        lambda t: whole(
            t.rows(("message_id",), only={"attempt": [1]}, order=("enqueue_time", "message_id"), limit=3)
        ),
        [("m1",), ("m1",), ("m2",)],
        is_ordered=True,
    ),
    Operation(
        "the first by time, where a replaced row is older",
        lambda t: whole(last(t).rows(PLACE[:1], order=("enqueue_time", "message_id"), limit=2)),
        [("HUB",), ("hub",)],
        is_ordered=True,
    ),
    Operation(
        "nulls come last",
        lambda t: whole(t.rows(("broker_instance",), order=("broker_instance",), limit=9))[-3:],
        [("id-2",), (None,), (None,)],
        is_ordered=True,
    ),
    Operation(
        "the first of names that are null",
        lambda t: whole(t.rows(("database_name", "message_id"), order=("database_name", "message_id"), limit=7)),
        [
            *(("Shop", name) for name in ("m1", "m1", "m3", "m4", "m6")),
            ("msdb", "m5"),
            (None, "m1"),
        ],
        is_ordered=True,
    ),
    Operation(
        "no row of as many as there are",
        lambda t: whole(t.rows(("message_id",), only={"outcome": ["DROPPED"]}, order=("enqueue_time",), limit=5)),
        [],
    ),
    Operation(
        "long names, and what is no UTF-8",
        lambda t: whole(t.rows(("instance_name", "to_service_name"), only={"to_service_name": [LONG]})),
        [(SHOWN, LONG)],
    ),
    Operation(
        "values that are the same, empty text as null",
        lambda t: whole(t.rows(("message_id",), same={"database_name": "", "instance_name": "HUB"})),
        [("m2",), ("m2",)],
    ),
    Operation(
        "what is no UTF-8 by how it is shown",
        lambda t: whole(t.rows(("message_id",), same={"instance_name": SHOWN, "is_initiator": False})),
        [("m4",)],
    ),
    Operation(
        "how many have a value", lambda t: [(t.count(), t.count(("broker_instance", "route_name")))], [(9, 0)]
    ),
    Operation(
        "rows that have a key, once",
        lambda t: whole(
            t.matching(
                TableColumns({"enqueue_time": [micros(NOON)] * 2, "database_name": ["Shop", None]}),
                ("database_name", "enqueue_time"),
                names=("message_id",),
            ).rows()
        ),
        [("m6",)],
    ),
    Operation(
        "rows that have a key of the same table",
        lambda t: whole(
            last(t)
            .matching(
                t.matching(TableColumns({"outcome": ["DELAYED"]}), ("outcome",), names=PLACE), PLACE, names=READ
            )
            .groups(("message_id",))
            .rows()
        ),
        [("m1", 1), ("m3", 1), ("m6", 1)],
    ),
    Operation(
        "folded texts",
        lambda t: whole(t.folded("conversation_id", ["c2"], names=("conversation_id", "message_id")).rows()),
        [("c2", "m2"), ("c2", "m2"), ("c2", "m5")],
    ),
    Operation(
        "folded texts of many, and only some rows",
        lambda t: whole(
            t.folded("to_service_name", ["//a", "//x"], only={"database_name": None})
            .groups(("to_service_name",))
            .rows()
        ),
        [("//A", 1), ("//a", 2)],
    ),
    Operation(
        "uses of routes",
        lambda t: t.route_uses(),
        [
            *((*place, None, None) for place in (("HUB", "Shop"), ("HUB", None), ("HUB", "msdb"), ("hub", None))),
            *(("HUB", "Shop", None, name) for name in ("One", "Two")),
            (SHOWN, "Shop", "Back", None),
        ],
    ),
    Operation(
        "points by step of time",
        lambda t: last(t).points(HOUR, [("HUB", "//a")], ["HUB", "hub"], {}),
        [
            (micros(FIRST), "HUB", "//a", "SENT", 1, None),
            (-HOUR, "hub", None, "SENT", 1, None),
            (micros(NOON), "HUB", "//a", "SENT", 4, None),
            (micros(NOON), "HUB", None, "SENT", 1, None),
            (micros("9999-12-31T23:00:00Z"), None, None, "SENT", 1, None),
        ],
    ),
    Operation(
        "points by where messages end",
        lambda t: last(t).points(HOUR, [("HUB", "//a")], ["HUB", "hub"], ENDINGS),
        [
            (micros(FIRST), "HUB", "//a", "SENT", 1, "DELIVERED"),
            (-HOUR, "hub", None, "SENT", 1, None),
            (micros(NOON), "HUB", "//a", "SENT", 2, "DELIVERED"),
            (micros(NOON), "HUB", "//a", "SENT", 1, "DROPPED"),
            (micros(NOON), "HUB", "//a", "SENT", 1, None),
            (micros(NOON), "HUB", None, "SENT", 1, None),
            (micros("9999-12-31T23:00:00Z"), None, None, "SENT", 1, None),
        ],
    ),
    Operation(
        "dialogs within spans of time",
        lambda t: [
            (*scope, count)
            for scope, count in last(t)
            .balanced_dialogs(
                {
                    ("HUB", "Shop", "//a"): (None, micros(AFTER_NOON)),
                    ("HUB", "msdb", "//a"): (micros(NOON), None),
                    ("HUB", "msdb", "//\u0130"): (micros(AFTER_NOON), None),
                    ("hub", "msdb", "//a"): (None, None),
                    # The time that ends a span is none of it.
                    ("hub", "msdb", "//A"): (None, micros(BEFORE_1970)),
                }
            )
            .items()
        ],
        [("HUB", "Shop", "//a", "id-1", 1), ("HUB", "Shop", "//a", "id-2", 1), ("HUB", "msdb", "//a", "id-1", 1)],
    ),
    Operation("no span", lambda t: list(last(t).balanced_dialogs({})), []),
]
"""Asked of `ROWS` as a table of ``resolved_routes``."""


def in_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows in an order that any have."""
    return sorted(rows, key=repr)


def check(operation: Operation, table: TrafficTable) -> None:
    """See that a table answers as is expected."""
    rows = list(operation.ask(table))
    if operation.is_ordered:
        assert rows == operation.expected
    else:
        assert in_order(rows) == in_order(operation.expected)


def check_empty(operation: Operation, table: TrafficTable) -> None:
    """Check that a table without rows gives no rows, and one row for a count."""
    assert list(operation.ask(table)) in ([], [(0, 0)])


MESSAGE_ROWS = [
    message(1, "//a", enqueue_time=NOON),
    message(2, "//a", enqueue_time=FIRST),
    message(3, "//a", enqueue_time=LAST, observed_at=AFTER_NOON),
    message(4, "//a", enqueue_time=None),
    message(5, "//a", enqueue_time=BEFORE_1970),
    # Another instance's, and another service's.
    message(6, "//a", enqueue_time=FIRST, instance_name="HUB"),
    message(7, "//A", enqueue_time=FIRST),
    message(8, "//a", enqueue_time=None, observed_at=BEFORE_1970),
]


def check_asking_order(open_table: Open) -> None:
    """See that messages come in parts by their times, or by their ids where one time is that of all."""
    table = open_table(MESSAGE_ROWS, MESSAGES, "messages")
    only = {"instance_name": ["hub"], "to_service_name": ["//a"]}
    for as_of, expected in ((None, ["m2", "m5", "m8", "m1", "m3"]), (0, ["m1", "m2", "m3", "m4", "m5", "m8"])):
        for size in (1, 2, 100):
            parts = [part.values["message_id"] for part in table.in_asking_order(only, as_of, iter([size] * 99))]
            assert [one for part in parts for one in sorted(part, key=expected.index)] == expected
            assert len(parts) >= len(expected) / (size + 1)
    assert not [
        row
        for part in open_table([], MESSAGES, "messages").in_asking_order({}, None, iter([5]))
        for row in part.dicts()
    ]


def dialog(conversation: Any, **columns: Any) -> Row:
    """Return a row of ``dialogs``."""
    return endpoint(0, conversation_id=conversation, far_service="//a", **columns)


GROUPED: Row = {"conversation_group_id": "g"}
DIALOG_ROWS = [
    dialog("sound", far_broker_instance="b1"),
    dialog("Doubled"),
    dialog("doubled"),
    dialog("doubled", is_initiator=False),
    dialog(None),
    dialog("", database_name="x"),
    dialog("no name", instance_name=None),
    dialog("no role", is_initiator=None),
    dialog("bytes", database_name=HALF),
    dialog("torn 1", far_broker_instance=" {B1}", **GROUPED),
    dialog("torn 2", acknowledged_broker_instance="b2", acknowledged_at=FIRST, **GROUPED),
]
DOUBTFUL = {"Doubled", "doubled", None, "", "no name", "no role", "bytes", "torn 1", "torn 2"}


def check_doubtful_rows(open_table: Open) -> None:
    """See that no dialog is left out that a finding can be about, and that sound ones are."""
    table = open_table(DIALOG_ROWS, DIALOGS, "dialogs")
    conversations = set(table.doubtful_rows("dialogs", micros(NOON)).values["conversation_id"])
    assert conversations == DOUBTFUL
    assert len(open_table([], DIALOGS, "dialogs").doubtful_rows("dialogs", micros(NOON))) == 0
