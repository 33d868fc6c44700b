"""Incremental runs in plain Python: one batch of messages after the other (tables; rule book, 5 and D9)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .instances import read_instances
from .messages import MESSAGE_COLUMNS, as_written, faults
from .requests import end_of
from .resolver import resolve
from .text import text_or_none
from .times import utc

Row = dict[str, Any]
Key = tuple[str, str]


class Increments:
    """The output tables as the runs so far left them."""

    def __init__(self, tables: dict[str, list[Row]]) -> None:
        """Take the configuration; messages come by `run`."""
        self._tables = tables
        self._instances = read_instances(tables)
        self._stored: set[Key] = set()
        self._waiting: dict[Key, tuple[Row, int]] = {}
        self.resolved_routes: list[Row] = []
        self.new_route_requests: list[Row] = []
        self.rejected_messages: list[Row] = []
        self.pending_messages: list[Row] = []

    def run(self, batch: list[Row], now: datetime, run_id: str) -> None:
        """One run over a batch of new messages, and over what is delayed."""
        new = self._without_doubles(batch, run_id)
        attempts = {key: attempt + 1 for key, (_, attempt) in self._waiting.items()}
        again = [{**row, "observed_at": now} for row, _ in self._waiting.values()]
        requests = self._given_requests() + self._on_record()
        tables = {**self._tables, "messages": new + again, "route_requests": requests}
        done = resolve(tables, run_id=run_id)
        as_read = {_key(row): row for row in new} | {key: row for key, (row, _) in self._waiting.items()}
        for row in done.rejected_messages:
            if _key(row) in self._waiting:
                row["observed_at"] = self._waiting[_key(row)][0].get("observed_at")
        self.rejected_messages += done.rejected_messages
        self._waiting = {}
        self.pending_messages = []
        for row in done.resolved_routes:
            key = _key(row)
            row["attempt"] = attempts.get(key, 1)
            self._stored.add(key)
            if row["outcome"] == "DELAYED" and row["database_name"] is not None:
                self._waiting[key] = (as_read[key], row["attempt"])
                read = {column: as_read[key].get(column) for column in MESSAGE_COLUMNS}
                last = {"last_decided_at": row["decided_at"], "last_reason": row["reason"]}
                self.pending_messages.append({**read, "attempt": row["attempt"], **last, "run_id": run_id})
        self.resolved_routes += done.resolved_routes
        known = {_request(row) for row in self.new_route_requests}
        self.new_route_requests += [row for row in done.new_route_requests if _request(row) not in known]

    def _without_doubles(self, batch: list[Row], run_id: str) -> list[Row]:
        """The rows that are judged; doubles are set aside here, with their other faults."""
        sound: dict[Key, list[Row]] = {}
        for row in batch:
            if not faults(row, self._instances):
                sound.setdefault(_key(row), []).append(row)
        first = {key: min(rows, key=_order) for key, rows in sound.items() if key not in self._stored}
        judged = []
        for row in batch:
            key = _key(row)
            is_named = row.get("instance_name") is not None and row.get("message_id") is not None
            if first.get(key) is row or not is_named or (key not in self._stored and key not in sound):
                judged.append(row)
                continue
            reasons = [*faults(row, self._instances), "DUPLICATE_MESSAGE_ID"]
            read = {column: as_written(row.get(column)) for column in MESSAGE_COLUMNS}
            self.rejected_messages.append({**read, "reasons": reasons, "run_id": run_id})
        return judged

    def _given_requests(self) -> list[Row]:
        """The rows of `route_requests`; one that does not tell whose it is takes that of the opening run."""
        ends = {_request(row): _whose(row) for row in self.new_route_requests}
        rows = self._tables.get("route_requests") or []
        return [row if end_of(row) else {**row, **ends.get(_request(row), {})} for row in rows]

    def _on_record(self) -> list[Row]:
        """The requests of earlier runs; where `route_requests` has one as well, that row counts."""
        listed = {_request(row) for row in self._tables.get("route_requests") or []}
        return [row for row in self.new_route_requests if _request(row) not in listed]


def _key(row: Row) -> Key:
    return row["instance_name"], row["message_id"]


def _whose(row: Row) -> Row:
    return {name: row[name] for name in ("conversation_id", "is_initiator")}


def _request(row: Row) -> tuple[Any, ...]:
    names = ("instance_name", "database_name", "service_name", "message_id")
    return (*(row[name] for name in names), utc(row["requested_at"]))


def _order(row: Row) -> list[tuple[bool, Any]]:
    """What decides among doubles: the four columns of the contract, then the others; null comes first."""
    named = ["enqueue_time", "conversation_id", "is_initiator", "message_sequence_number"]
    rest = [column for column in MESSAGE_COLUMNS if column not in named]
    values = {**row, "conversation_id": (text_or_none(row.get("conversation_id")) or "").lower()}
    values |= {name: utc(row.get(name)) for name in ("enqueue_time", "observed_at")}
    return [(values.get(name) is not None, values.get(name)) for name in (*named, *rest)]
