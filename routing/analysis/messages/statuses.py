"""What SQL Server itself last said of messages: their newest transmission_status, beside the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routing.analysis.explain.background import Status
from routing.rules import text
from routing.rules.observed import Compared
from routing.schemas import OBSERVED_ROUTING, Schema
from routing.storage.columns import Table, is_frame, with_few
from routing.storage.inputs import condition_of
from routing.storage.stored import read_rows
from routing.storage.times import micros_of
from routing.terms import MSDB, TRANSMISSION_QUEUE, Reason

Row = Mapping[str, Any]
_KEY = ("instance_name", "database_name", "message_id")
_READ = Schema(
    tuple(
        field
        for field in OBSERVED_ROUTING
        if field.name in (*_KEY, "observed_at", "error_number", "status_text", "conversation_handle")
    )
)


def newest_statuses(observed: Table | None, messages: Sequence[Row]) -> dict[tuple[Any, ...], Row]:
    """The newest status of each of some messages, by instance, database and message id, where there is one."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in [] if observed is None or not messages else _read(observed, messages):
        key = tuple(row[name] for name in _KEY)
        if key not in found or row["observed_at"] > found[key]["observed_at"]:
            found[key] = row
    return found


def status_of(message: Row, statuses: Mapping[tuple[Any, ...], Row]) -> Row | None:
    """The newest status of a message; None where none is known."""
    return statuses.get(tuple(message[name] for name in _KEY))


def compare_status(message: Row, status: Row) -> Compared:
    """What a status says of a message's reason."""
    database = message["database_name"]
    in_msdb = database is None or database.lower() == MSDB or message["rerouted_from"] is not None
    told = Status(
        micros_of(status["observed_at"]), status["error_number"], text.empty_as_null(status["status_text"])
    )
    return told.compared(Reason(message["reason"]), in_msdb=in_msdb)


def _read(observed: Any, messages: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows of queues that have an id of one of the messages."""
    only = {
        "source": [TRANSMISSION_QUEUE],
        "instance_name": sorted({row["instance_name"] for row in messages}),
        "message_id": sorted({row["message_id"] for row in messages}),
    }
    rows = observed if is_frame(observed) else with_few(observed, condition_of(observed, only))
    return read_rows(rows, _READ, only=only)
