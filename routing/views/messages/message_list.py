"""List messages of the outputs: from a configuration or tables to rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from routing.arguments import checked
from routing.cases.background import status_of
from routing.cases.observed_statuses import newest_statuses
from routing.config import Config
from routing.delta import counted_runs
from routing.delta.opening import TableOpener
from routing.engines.traffic_tables import TrafficTable, open_traffic
from routing.errors import ContractError, InputError
from routing.importing.import_faults import latest_time
from routing.result_schemas import LISTED_MESSAGES, MESSAGE_COUNTS, MESSAGE_GROUPS
from routing.rules.timeline import SECOND, micros_of, moment_of
from routing.schemas import KEPT
from routing.tables.arrow_rows import SchemaRows
from routing.tables.given_tables import take_tables
from routing.tables.read_rows import cannot_hold
from routing.tables.table_columns import Table, TableColumns, types_of
from routing.terms import MSDB, TRANSMISSION_QUEUE, ImportKind, Outcome, ReadRow, Reason, TableRow
from routing.views.messages.message_filter import MESSAGE_KEY, MessageFilter, select

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Queue = tuple[str, str]
"""An instance and one of its databases."""
_VIEW = "transmission_queue"
_QUEUE = ("instance_name", "database_name")
_EXPORT = (*_QUEUE, "observed_at")


class QueuedMessages(NamedTuple):
    """The messages in queues, in the columns `message_filter.MESSAGE_KEY`, and their number."""

    keys: TrafficTable | TableColumns
    messages: int


def newest_exports(imports: TrafficTable | None) -> dict[Queue, int]:
    """Return the time of the newest export of each database's queue, if there is any.

    Times are microseconds.
    """
    newest: dict[Queue, int] = {}
    if imports is not None:
        exports = imports.rows((*_QUEUE, "exported_at", "kind"), only={"view_or_file": [_VIEW]})
        for *queue, at, kind in exports.rows(*_QUEUE, "exported_at", "kind"):
            # A script may have the name of a view.
            if kind != ImportKind.SCRIPT:
                newest[queue[0], queue[1]] = max(at, newest.get((queue[0], queue[1]), at))
    return newest


def find_queued(observed: TrafficTable | None, exports: Mapping[Queue, int]) -> QueuedMessages:
    """Return the messages that the newest export of each queue holds."""
    if observed is None or not exports:
        return QueuedMessages(TableColumns({name: [] for name in MESSAGE_KEY}), 0)
    instances, databases = zip(*exports, strict=True)
    newest = TableColumns(dict(zip(_EXPORT, (instances, databases, list(exports.values())), strict=True)))
    queued_rows = observed.matching(newest, _EXPORT, names=MESSAGE_KEY, only={"source": [TRANSMISSION_QUEUE]})
    return QueuedMessages(queued_rows, queued_rows.count(MESSAGE_KEY))


@dataclass(frozen=True)
class MessageList:
    """The result of `list_messages`.

    Args:
        messages: rows of `result_schemas.LISTED_MESSAGES` in the requested order, up to its limit.
        counts: the matching messages by outcome and reason, most first (`MESSAGE_COUNTS`).
        groups: the matching messages of each group with a listed message (`MESSAGE_GROUPS`).
        queued_messages: the number of messages in the newest exports of the queues, or None without ``waiting``.
        exported: True if any queue was exported.
        oldest_stuck: the waiting seconds of the oldest DELAYED or DROPPED message, or None.
        last_checked: the time as of which the last run tried delayed messages again, or None if unknown.
    """

    asked: MessageFilter
    messages: SchemaRows
    counts: SchemaRows
    groups: SchemaRows
    queued_messages: int | None
    exported: bool
    oldest_stuck: int | None = None
    last_checked: datetime | None = None

    @property
    def total(self) -> int:
        """The number of matching messages."""
        return sum(row["messages"] for row in self.counts)


def _open_tables(
    config: Config, opener: TableOpener, message_filter: MessageFilter
) -> tuple[dict[str, Table], datetime | None]:
    """Open ``resolved_routes`` as the last run that counts left it, and the tables that import keeps.

    Returns them with the time as of which that run tried delayed messages again, None for a full run. Raises
    InputError if no run counts yet, ContractError if it cannot be known which messages wait.
    """
    missing = [f"tables.{key}" for key in KEPT if key not in config.import_tables]
    if message_filter.waiting and missing:
        raise ContractError(
            f"--waiting needs {' and '.join(missing)}", "name the tables that sbroute import keeps"
        )
    last = counted_runs.last_run(opener, config.output["runs"])
    if last is None:
        raise InputError.nothing_recorded(str(config.output["runs"]))
    tables = {"resolved_routes": counted_runs.open_left(opener, config, last, "resolved_routes")}
    for key in KEPT.keys() & config.import_tables.keys():
        location = config.import_tables[key]
        opened = opener.find(f"tables.{key}", location)
        if opened is not None:
            faults = cannot_hold(types_of(opened.rows), KEPT[key])
            if faults:
                raise InputError.wrong_columns(key, faults)
            tables[key] = opened.rows
    return tables, last.now


@checked
def list_messages(
    tables: Mapping[str, Table] | Config,
    asked: MessageFilter,
    *,
    now: datetime,
    clock: datetime | None = None,
    spark: SparkSession | None = None,
) -> MessageList:
    """List the last row of each message that a filter selects, with SQL Server's last status.

    Args:
        tables: a configuration, or ``resolved_routes`` and optionally ``observed_routing`` and ``imports`` by key
            (tables.md), as DataFrames, Arrow tables or datasets.
        asked: the filter, as `ask` builds it.
        now: the time for ages (UTC without a zone).
        clock: the current time. An imported status with a later time is never newer than others.
        spark: the session for tables that need one. By default one is started.

    Returns:
        The listed messages (`result_schemas.LISTED_MESSAGES`), and counts by outcome, reason and group.

    Raises:
        InputError: there is no valid run yet, or a table breaks its contract.
        ContractError: ``waiting`` needs a table that the configuration does not name.

    Example:
        >>> from datetime import datetime
        >>> config, now = routing.load_config("job.yaml"), datetime(2026, 1, 5, 13)
        >>> found = routing.list_messages(config, routing.ask(outcomes=["sent"]), now=now)
        >>> [(row["message_id"], row["reason"], row["age_seconds"]) for row in found.messages]
        [('m3', 'MIRROR_ADDRESS', 3600)]
    """
    if isinstance(tables, Config):
        return list_stored(tables, TableOpener.of_settings(tables.spark, spark), asked, now=now, clock=clock)
    tables = take_tables(tables, ("resolved_routes",))
    observed, imports = (open_traffic(tables[key], key) if key in tables else None for key in KEPT)
    newest = newest_exports(imports)
    waiting_messages = find_queued(observed, newest) if asked.waiting else None
    keys = None if waiting_messages is None else waiting_messages.keys
    selected = select(open_traffic(tables["resolved_routes"]), asked, keys)
    latest = None if clock is None else micros_of(latest_time(clock))
    statuses = newest_statuses(observed, selected.rows, latest)
    rows = [_make_row(row, status, micros_of(now)) for row, status in zip(selected.rows, statuses, strict=True)]
    if "imports" in tables:
        waiting = (_waits(row, status, newest) for row, status in zip(rows, statuses, strict=True))
        rows = [{**row, "is_waiting": waits} for row, waits in zip(rows, waiting, strict=True)]
    return MessageList(
        asked,
        SchemaRows(LISTED_MESSAGES, tuple(rows)),
        SchemaRows(MESSAGE_COUNTS, tuple(selected.counts)),
        SchemaRows(MESSAGE_GROUPS, tuple(selected.groups)),
        None if waiting_messages is None else waiting_messages.messages,
        bool(newest),
        None if selected.oldest_stuck is None else _age(selected.oldest_stuck, micros_of(now)),
    )


def list_stored(
    config: Config, opener: TableOpener, message_filter: MessageFilter, *, now: datetime, clock: datetime | None
) -> MessageList:
    """List messages of a configuration's outputs, as `list_messages` does."""
    tables, last_checked = _open_tables(config, opener, message_filter)
    return replace(list_messages(tables, message_filter, now=now, clock=clock), last_checked=last_checked)


def _age(enqueue_time: datetime, now: int) -> int:
    """Return the waiting seconds of a message, negative if its time is in the future."""
    return (now - micros_of(enqueue_time)) // SECOND


def _make_row(row: ReadRow, status: ReadRow | None, now: int) -> TableRow:
    since = row["decided_at"] if row["outcome"] == Outcome.DELAYED else None
    listed_row = {**row, "age_seconds": _age(row["enqueue_time"], now), "delayed_since": since}
    if status is not None:
        status_text, database, outcome = status_of(status), row["database_name"], Outcome(row["outcome"])
        in_msdb = database is None or database.lower() == MSDB or row["rerouted_from"] is not None
        compared = status_text.compared(Reason(row["reason"]), in_msdb=in_msdb, outcome=outcome)
        listed_row |= {
            "status_observed_at": moment_of(status_text.observed_at),
            "status_source": status["source"],
            "status_outcome": None if status_text.outcome is None else str(status_text.outcome),
            "status_number": status_text.number,
            "status_text": status_text.text,
            "status_next_hop": status_text.next_hop,
            "agreement": str(compared.agreement),
            "agreement_why": compared.why,
            "conversation_handle": status["conversation_handle"],
        }
    return {name: listed_row.get(name) for name in LISTED_MESSAGES.names}


def _waits(row: ReadRow, status: ReadRow | None, newest: Mapping[Queue, int]) -> bool:
    """Return True if the newest export of a message's queue holds it, so that its newest status is current."""
    at = newest.get((row["instance_name"], row["database_name"]))
    return at is not None and status is not None and status["queued_at"] == at
