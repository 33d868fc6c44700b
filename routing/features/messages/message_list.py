"""List messages of the outputs: from a configuration or tables to rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from routing.config import Config
from routing.delta import counted_runs
from routing.delta.opening import TableOpener
from routing.engines.traffic_tables import open_traffic
from routing.errors import ContractError, InputError
from routing.features.messages import last_statuses, newest_exports
from routing.features.messages.message_filter import MessageFilter, select
from routing.importing.import_faults import latest_time
from routing.schemas import KEPT, LISTED_MESSAGES, MESSAGE_COUNTS, MESSAGE_GROUPS
from routing.tables.arrow_rows import SchemaRows
from routing.tables.read_rows import cannot_hold, types_of
from routing.tables.table_columns import Table
from routing.tables.times import SECOND, micros_of, moment_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class MessageList:
    """The result of `list_messages`.

    messages: rows of `schemas.LISTED_MESSAGES` in the order that was asked for, as many as its limit. counts: how
    many match in all, by outcome and reason, most first (`MESSAGE_COUNTS`). groups: how many match in each group
    that has a listed message (`MESSAGE_GROUPS`). held: how many messages the newest exports of the queues hold,
    None where only those that wait were not asked for; exported: whether any queue was. asked: what was.
    oldest_stuck: for how many seconds the oldest message waits that is DELAYED or DROPPED, None where none is.
    """

    asked: MessageFilter
    messages: SchemaRows
    counts: SchemaRows
    groups: SchemaRows
    held: int | None
    exported: bool
    oldest_stuck: int | None = None

    @property
    def total(self) -> int:
        """How many messages match."""
        return sum(row["messages"] for row in self.counts)


def open_tables(config: Config, opener: TableOpener, asked: MessageFilter) -> dict[str, Table]:
    """Open ``resolved_routes`` as the last run that counts left it, and the tables that import keeps.

    Raises InputError where no run counts yet, ContractError where it cannot be known which messages wait.
    """
    missing = [f"tables.{key}" for key in KEPT if key not in config.kept]
    if asked.waiting and missing:
        raise ContractError(
            f"--waiting needs {' and '.join(missing)}", "name the tables that sbroute import keeps"
        )
    last = counted_runs.last_run(opener, config.output["runs"])
    if last is None:
        raise InputError.nothing_recorded(str(config.output["runs"]))
    tables = {"resolved_routes": counted_runs.open_left(opener, config, last, "resolved_routes")}
    for key, location in config.kept.items():
        opened = opener.find(f"tables.{key}", location)
        if opened is not None:
            faults = cannot_hold(types_of(opened.rows), KEPT[key])
            if faults:
                raise InputError.wrong_columns(key, faults)
            tables[key] = opened.rows
    return tables


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
        tables: a configuration, or ``resolved_routes`` and, where there are any, ``observed_routing`` and
            ``imports`` by key (tables.md): DataFrames, Arrow tables or datasets.
        asked: the filter, as `ask` builds it.
        now: the time as of which ages are computed (UTC without a zone).
        clock: the time of now; an imported status of a later time counts as no newer than others.
        spark: the session for tables that need one; by default one is started.

    Returns:
        The listed messages (`schemas.LISTED_MESSAGES`), and counts by outcome, reason and group.

    Raises:
        InputError: no run counts yet, or a table breaks its contract.
        ContractError: ``waiting`` needs a table that the configuration does not name.

    Example:
        >>> from datetime import datetime
        >>> config, now = routing.load_config("job.yaml"), datetime(2026, 1, 5, 13)
        >>> found = routing.list_messages(config, routing.ask(outcomes=["sent"]), now=now)
        >>> [(row["message_id"], row["reason"], row["age_seconds"]) for row in found.messages]
        [('m3', 'MIRROR_ADDRESS', 3600)]
    """
    if isinstance(tables, Config):
        tables = open_tables(tables, TableOpener.of_settings(tables.spark, spark), asked)
    observed, imports = (open_traffic(tables[key], key) if key in tables else None for key in KEPT)
    newest = newest_exports.newest_exports(imports)
    waiting_messages = newest_exports.find_held(observed, newest) if asked.waiting else None
    keys = None if waiting_messages is None else waiting_messages.keys
    selected = select(open_traffic(tables["resolved_routes"]), asked, keys)
    latest = None if clock is None else micros_of(latest_time(clock))
    statuses = last_statuses.newest_statuses(observed, selected.rows, latest)
    rows = [_listed(row, status, micros_of(now)) for row, status in zip(selected.rows, statuses, strict=True)]
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


def _age(enqueue_time: datetime, now: int) -> int:
    """Return the seconds that a message has waited; below zero where it is yet to come."""
    return (now - micros_of(enqueue_time)) // SECOND


def _listed(row: Mapping[str, Any], status: Mapping[str, Any] | None, now: int) -> dict[str, Any]:
    """Return a message in the columns of a list."""
    listed = {**row, "age_seconds": _age(row["enqueue_time"], now)}
    if status is not None:
        status_text, compared = last_statuses.compare_status(row, status)
        listed |= {
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
    return {name: listed.get(name) for name in LISTED_MESSAGES.names}


def _waits(
    row: Mapping[str, Any], status: Mapping[str, Any] | None, newest: Mapping[newest_exports.Queue, int]
) -> bool:
    """Return True if the newest export of a message's queue holds it: then its newest status is of that time."""
    at = newest.get((row["instance_name"], row["database_name"]))
    return at is not None and status is not None and status["queued_at"] == at
