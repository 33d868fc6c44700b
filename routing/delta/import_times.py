"""Find the last import of tables without a history. Only routes have a history.

Databases with their ids and brokers, services and instances are used in the state of the newest import, for
decisions at any time. Times are microseconds since 1970 in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from routing.config import TableLocation
from routing.delta.opening import TableOpener
from routing.errors import StorageError
from routing.rules.timeline import micros_of
from routing.schemas import IMPORTS, UNFINISHED_IMPORTS
from routing.tables.read_rows import read_rows
from routing.tables.row_faults import phrase, time_text
from routing.terms import ImportKind, ReadRow

# Views with a history (routes) or with traffic. All other views, and all scripts, have facts without a history.
_OTHERS = ("routes", "conversation_endpoints", "transmission_queue")
_SHOWN = 5
AHEAD = timedelta(hours=1)
"""The clocks of servers differ by less than this."""


def read_newest(opener: TableOpener, imports: TableLocation | None) -> dict[str, int]:
    """Read the times of `newest_of` from ``imports``, or nothing if this table is not configured or missing."""
    imports_table = None if imports is None else opener.find("tables.imports", imports)
    return {} if imports_table is None else newest_of(read_rows(imports_table.rows, IMPORTS))


def note_unfinished(opener: TableOpener, journal: TableLocation | None) -> list[str]:
    """Return a note on each import with rows in the journal, if there is a journal."""
    try:
        journal_table = None if journal is None else opener.find("tables.unfinished_imports", journal)
    except StorageError as error:
        # A user who may not read the journal may still read all tables that decide.
        return [f"whether an import is not finished cannot be told: {error}"]
    if journal_table is None:
        return []
    schema = UNFINISHED_IMPORTS.only("started_at", "import_id", "part", "table_key")
    keys: dict[tuple[Any, str], set[str]] = {}
    for row in read_rows(journal_table.rows, schema):
        tables = keys.setdefault((row["started_at"], str(row["import_id"])), set())
        # Part 0 names what is streamed, and holds no rows of a table.
        tables |= set() if row["part"] == 0 else {str(row["table_key"])}
    return [
        say_unfinished(started_at, tables) if tables else say_events(started_at)
        for (started_at, _), tables in sorted(keys.items(), key=lambda item: (item[0][0] is None, str(item[0])))
    ]


def say_unfinished(started_at: datetime | None, tables: Iterable[str]) -> str:
    """Return the sentence on an import that was interrupted between its commits, or is still running."""
    names = ", ".join(sorted(tables))
    return (
        f"the import that began at {begun_at(started_at)} is not finished: {names} may hold a part of it,"
        " and the next import completes it"
    )


def say_events(started_at: datetime | None) -> str:
    """Return the sentence on an import of events that was interrupted between its commits, or is still running."""
    return (
        f"the import of events that began at {begun_at(started_at)} is not finished: the same command completes it"
    )


def begun_at(started_at: datetime | None) -> str:
    """Return the time of an import for a sentence, or a phrase if the journal does not have it."""
    if started_at is None:
        return "an unknown time"
    return started_at.isoformat(timespec="seconds").replace("+00:00", "Z")


def newest_of(rows: Iterable[ReadRow]) -> dict[str, int]:
    """Return for each instance the time of its newest export or script of databases, services or the instance.

    ``rows`` are rows of ``imports``, with aware times. Release 0.2.0 accepted times in the future. A time more
    than `AHEAD` after the import is replaced by the time of the import.
    """
    newest: dict[str, int] = {}
    for row in rows:
        instance, at, imported_at = row["instance_name"], row["exported_at"], row.get("imported_at")
        if at is not None and imported_at is not None and at > imported_at + AHEAD:
            at = imported_at
        is_other = row["view_or_file"] in _OTHERS and row.get("kind") != ImportKind.SCRIPT
        if instance is not None and at is not None and not is_other:
            newest[instance] = max(micros_of(at), newest.get(instance, micros_of(at)))
    return newest


def newest_after(newest: Mapping[str, int], instance: str | None, t: int) -> int | None:
    """Return the time of an instance's newest import if it is after a time, or None."""
    at = None if instance is None else newest.get(instance)
    return at if at is not None and t < at else None


def taken_as_now(late: Mapping[str, int]) -> str:
    """Return the sentence on decisions before the newest imports, by instance, with the first five names."""
    shown = [
        phrase("%s (%s)", name, time_text(late[name]).replace(" ", "T") + "Z") for name in sorted(late)[:_SHOWN]
    ]
    more = f" and {len(late) - _SHOWN} more" if len(late) > _SHOWN else ""
    return (
        f"the decisions are older than the newest import of databases, services or instances of {', '.join(shown)}"
        f"{more}: their current state is used, because only routes have a history"
    )
