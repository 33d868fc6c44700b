"""The table of askers (rule book, section 5): the action of each message in step 4, and the new requests.

The versions in Python and Spark, and the tests' own resolver, are compared with it. Each case is a separate
instance. Messages of Sales continue to a LOCAL route for any service. Those of Parts come back to msdb and ask
there again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from tests.estate_rows import ASK, SALES, STOCK, STORE, database, estate, instance, request, route
from tests.frames import Tables, merged, prefixed

Row = dict[str, Any]
_NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
_OWN = "tcp://hub:4022"
SERVICE = "//elsewhere"


class OnRecord(NamedTuple):
    """A request on record: its minute, its message, its conversation and its end."""

    at: int
    message_id: str
    whose: str | tuple[str | None, bool | None] = (None, None)
    ended: int | None = None
    database: str = "Sales"


class Asker(NamedTuple):
    """A message that reaches step 4 at a minute, and its action (opens, waits, continues).

    ``action`` names the database if it is not the message's own.
    """

    at: int
    message_id: str
    whose: str
    action: str
    database: str | None = "Sales"


class Opened(NamedTuple):
    """A row of ``new_route_requests``."""

    at: int
    message_id: str
    whose: str
    database: str = "Sales"


class Case(NamedTuple):
    """Requests on record, messages with their actions, and new requests."""

    name: str
    record: Sequence[OnRecord]
    messages: Sequence[Asker]
    opened: Sequence[Opened]


def conversation(whose: str) -> tuple[str, bool]:
    """Return the id and the role of an endpoint as the table spells it: ``a+``, the initiator's of one."""
    letter, role = whose[0], whose[1]
    return f"{letter * 8}-0000-4000-8000-{letter * 12}", role == "+"


_A_UPPER = ("AAAAAAAA-0000-4000-8000-AAAAAAAAAAAA", True)
_A_BRACED = ("{aaaaaaaa-0000-4000-8000-aaaaaaaaaaaa}", True)

CASES = (
    Case(
        "a conversation waits with its first message, others go on",
        [],
        [
            Asker(1, "m1", "a+", "opens"),
            Asker(2, "m2", "a+", "waits"),
            Asker(2, "m3", "b+", "goes on"),
            Asker(9, "m4", "a+", "waits"),
        ],
        [Opened(1, "m1", "a+")],
    ),
    Case(
        "the other role of a conversation is another endpoint",
        [],
        [Asker(1, "m1", "a+", "opens"), Asker(2, "m2", "a-", "goes on"), Asker(3, "m3", "a+", "waits")],
        [Opened(1, "m1", "a+")],
    ),
    Case(
        "at one time the message id is the order",
        [],
        [Asker(1, "m2", "a+", "waits"), Asker(1, "m1", "a+", "opens"), Asker(1, "m3", "b+", "goes on")],
        [Opened(1, "m1", "a+")],
    ),
    Case(
        "a message before the first of its conversation does not wait for it",
        [OnRecord(5, "m5", "a+")],
        [Asker(1, "m1", "b+", "opens"), Asker(2, "m2", "a+", "goes on"), Asker(6, "m6", "a+", "waits")],
        [Opened(1, "m1", "b+")],
    ),
    Case(
        "a request on record is waited for until it has ended, that moment not included",
        [OnRecord(1, "m0", "a+", ended=3)],
        [
            Asker(2, "m1", "a+", "waits"),
            Asker(2, "m2", "b+", "goes on"),
            Asker(3, "m3", "b+", "opens"),
            Asker(4, "m4", "a+", "goes on"),
            Asker(4, "m5", "b+", "waits"),
        ],
        [Opened(3, "m3", "b+")],
    ),
    Case(
        "any pending request of one's own is waited for, not the first or the last alone",
        [OnRecord(1, "x1", "b+"), OnRecord(2, "x2", "a+", ended=8), OnRecord(3, "x3", "c+", ended=9)],
        [Asker(4, "m1", "a+", "waits"), Asker(4, "m2", "d+", "goes on"), Asker(8, "m3", "a+", "goes on")],
        [],
    ),
    Case(
        "once its own request has ended and another's is pending, a conversation goes on",
        [OnRecord(1, "x1", "a+", ended=2), OnRecord(3, "x2", "b+")],
        [Asker(4, "m1", "a+", "goes on"), Asker(4, "m2", "b+", "waits")],
        [],
    ),
    Case(
        "a conversation that asked twice waits for the request that is pending",
        [OnRecord(1, "x1", "a+", ended=2), OnRecord(3, "x2", "a+", ended=6), OnRecord(3, "x3", "a+", ended=4)],
        [Asker(5, "m1", "a+", "waits"), Asker(6, "m2", "a+", "opens"), Asker(7, "m3", "a+", "waits")],
        [Opened(6, "m2", "a+")],
    ),
    Case(
        "ids are compared in lower case",
        [OnRecord(1, "x1", _A_UPPER)],
        [Asker(2, "m1", "a+", "waits"), Asker(2, "m2", "a-", "goes on")],
        [],
    ),
    *(
        Case(
            f"nobody waits for a request whose endpoint is not known: {what}",
            [OnRecord(1, "m1", whose)],
            [Asker(2, "m2", "a+", "goes on"), Asker(3, "m1", "a+", "goes on")],
            [],
        )
        for what, whose in (
            ("nothing", (None, None)),
            ("no role", (_A_UPPER[0], None)),
            ("no id", (None, True)),
            ("empty text", ("", True)),
            ("no GUID", ("a conversation", True)),
            ("braces", _A_BRACED),
            ("blanks", (f" {_A_UPPER[0]}", True)),
        )
    ),
    Case(
        "a message that opens its own request again gives it its endpoint",
        [OnRecord(1, "m1", ended=5)],
        [
            Asker(1, "m1", "a+", "opens"),
            Asker(2, "m2", "a+", "waits"),
            Asker(3, "m3", "b+", "goes on"),
            Asker(5, "m4", "b+", "opens"),
            Asker(6, "m5", "a+", "goes on"),
        ],
        [Opened(1, "m1", "a+"), Opened(5, "m4", "b+")],
    ),
    Case(
        "a message that finds another request pending opens its own not again, and gives it nothing",
        [OnRecord(1, "x1", "b+"), OnRecord(2, "m2")],
        [Asker(2, "m2", "a+", "goes on"), Asker(3, "m3", "a+", "goes on"), Asker(3, "m4", "b+", "waits")],
        [],
    ),
    Case(
        "a message that waits opens its own request not again",
        [OnRecord(1, "x1", "a+"), OnRecord(2, "m2", "a+")],
        [Asker(2, "m2", "a+", "waits"), Asker(3, "m3", "a+", "waits")],
        [],
    ),
    Case(
        "of rows equal in time and id the smallest endpoint opens, false first",
        [],
        [
            Asker(1, "m1", "b+", "opens"),
            Asker(1, "m1", "a+", "opens"),
            Asker(1, "m1", "a-", "opens"),
            Asker(2, "m2", "a-", "waits"),
            Asker(2, "m3", "a+", "goes on"),
            Asker(2, "m4", "b+", "goes on"),
        ],
        [Opened(1, "m1", "a-")],
    ),
    Case(
        "of equal rows the smallest opens a request on record again",
        [OnRecord(1, "m1")],
        [
            Asker(1, "m1", "b-", "opens"),
            Asker(1, "m1", "a+", "opens"),
            Asker(2, "m2", "a+", "waits"),
            Asker(2, "m3", "b-", "goes on"),
        ],
        [Opened(1, "m1", "a+")],
    ),
    Case(
        "equal rows of which one waits",
        [OnRecord(1, "x1", "b+", ended=4)],
        [Asker(2, "m1", "a+", "goes on"), Asker(2, "m1", "b+", "waits"), Asker(4, "m2", "b+", "opens")],
        [Opened(4, "m2", "b+")],
    ),
    Case(
        "doubled rows of one request, of which one tells whose it is",
        [OnRecord(1, "x1", ended=3), OnRecord(1, "x1", "a+", ended=5)],
        [Asker(2, "m1", "a+", "waits"), Asker(4, "m2", "a+", "waits"), Asker(4, "m3", "b+", "goes on")],
        [],
    ),
    Case(
        "doubled rows of one's own request lie on record until the last has ended",
        [OnRecord(1, "m1", ended=3), OnRecord(1, "m1", ended=5)],
        [Asker(1, "m1", "a+", "opens"), Asker(4, "m2", "a+", "waits"), Asker(5, "m3", "a+", "opens")],
        [Opened(1, "m1", "a+"), Opened(5, "m3", "a+")],
    ),
    Case(
        "an arrival waits in msdb, the sender's request there is of another database",
        [OnRecord(1, "x1", "a+", database="msdb"), OnRecord(1, "x2", "b+")],
        [Asker(2, "m1", "a+", "waits", database=None), Asker(2, "m2", "b+", "goes on", database=None)],
        [],
    ),
    Case(
        "a message that waits in its own database asks nothing in msdb",
        [],
        [
            Asker(1, "m1", "a+", "opens", database="Parts"),
            Asker(2, "m2", "a+", "waits", database="Parts"),
            Asker(3, "m3", "b+", "opens msdb", database="Parts"),
            Asker(4, "m4", "a+", "waits", database="Parts"),
            Asker(5, "m5", "b+", "waits msdb", database="Parts"),
            Asker(6, "m6", "c+", "goes on", database="Parts"),
            Asker(6, "m7", "b+", "waits", database=None),
        ],
        [Opened(1, "m1", "a+", "Parts"), Opened(3, "m3", "b+", "msdb")],
    ),
    Case(
        "a message waits in msdb for the request on record that came back with its conversation",
        [OnRecord(1, "x1", "c+", database="Parts"), OnRecord(1, "x2", "a+", ended=4, database="msdb")],
        [
            Asker(2, "m1", "a+", "waits msdb", database="Parts"),
            Asker(2, "m2", "c+", "waits", database="Parts"),
            Asker(3, "m3", "b+", "goes on", database="Parts"),
            Asker(4, "m4", "b+", "opens msdb", database="Parts"),
            Asker(5, "m5", "a+", "goes on", database="Parts"),
        ],
        [Opened(4, "m4", "b+", "msdb")],
    ),
)


def estate_of(case: Case) -> Tables:
    """The tables of a case."""
    databases = {"Parts": STOCK, "Sales": SALES, "msdb": STORE}
    return estate(
        instances=[instance("hub", _OWN, is_message_forwarding_enabled=True)],
        databases=[database(name, guid) for name, guid in databases.items()],
        routes=[
            *(route("Ask", ASK, "tcp://config:4022", database_name=name) for name in databases),
            *(route("Any", None, _OWN if name == "Parts" else "LOCAL", database_name=name) for name in databases),
        ],
        messages=[_message(asker) for asker in case.messages],
        route_requests=[_request(on_record) for on_record in case.record],
    )


def estates() -> Tables:
    """Return the tables of all cases together, each with a separate instance."""
    return merged([prefixed(estate_of(case), f"{number}/") for number, case in enumerate(CASES)])


def at(minute: int) -> datetime:
    """A minute of the table as a time."""
    return _NOON + timedelta(minutes=minute)


def _message(asker: Asker) -> Row:
    conversation_id, is_initiator = conversation(asker.whose)
    return {
        "message_id": asker.message_id,
        "conversation_id": conversation_id.upper() if asker.at % 2 else conversation_id,
        "is_initiator": is_initiator,
        "enqueue_time": at(asker.at),
        "instance_name": "hub",
        "database_name": asker.database,
        "to_service_name": SERVICE,
    }


def _request(on_record: OnRecord) -> Row:
    conversation_id, is_initiator = (
        conversation(on_record.whose) if isinstance(on_record.whose, str) else on_record.whose
    )
    return request(
        SERVICE,
        database_name=on_record.database,
        requested_at=at(on_record.at),
        message_id=on_record.message_id,
        ended_at=None if on_record.ended is None else at(on_record.ended),
        conversation_id=conversation_id,
        is_initiator=is_initiator,
    )


def expected_stops(case: Case) -> list[tuple[Any, ...]]:
    """Return each message of a case with the database where step 4 stops it, or None, in order."""
    stops = []
    for asker in case.messages:
        action, *where = asker.action.split()
        place = None if action == "goes" else where[0] if where else asker.database or "msdb"
        stops.append((at(asker.at), asker.message_id, *conversation(asker.whose), place))
    return sorted(stops)


def expected_requests(case: Case) -> list[tuple[Any, ...]]:
    """Return the new requests of a case as database, time, message id, conversation and role, in order."""
    return sorted(
        (asker.database, at(asker.at), asker.message_id, *conversation(asker.whose)) for asker in case.opened
    )


def stops_of(resolved: Sequence[Row], prefix: str = "") -> list[tuple[Any, ...]]:
    """The same as `expected_stops` of rows of ``resolved_routes``, of the instance of a case."""
    return sorted(
        (
            row["decided_at"],
            row["message_id"],
            row["conversation_id"],
            row["is_initiator"],
            _stop_of(row),
        )
        for row in resolved
        if row["instance_name"] == f"{prefix}hub"
    )


def _stop_of(row: Row) -> str | None:
    if row["matching_step"] != 4:
        return None
    return "msdb" if row["rerouted_from"] or not row["database_name"] else str(row["database_name"])


def requests_of(rows: Sequence[Row], prefix: str = "") -> list[tuple[Any, ...]]:
    """The same as `expected_requests` of rows of ``new_route_requests``."""
    names = ("database_name", "requested_at", "message_id", "conversation_id", "is_initiator")
    return sorted(tuple(row[name] for name in names) for row in rows if row["instance_name"] == f"{prefix}hub")
