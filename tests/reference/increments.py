"""Incremental runs in plain Python over consecutive batches of messages (tables; rule book, 5 and D9)."""

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
# The columns of a decision. A message that is tried again has a new row if one of them changes.
DECISION = (
    *("broker_instance", "outcome", "reason", "matching_step", "route_name", "address", "mirror_address"),
    *("destination_database", "alternative_routes", "rerouted_from"),
)


class Increments:
    """The output tables after the runs so far."""

    def __init__(self, tables: dict[str, list[Row]]) -> None:
        """Store the configuration. `run` gets the messages."""
        self._tables = tables
        self._instances = read_instances(tables)
        self._stored: set[Key] = set()
        # Each message as it was read, with its last row, by key.
        self._waiting: dict[Key, tuple[Row, Row]] = {}
        self.resolved_routes: list[Row] = []
        self.new_route_requests: list[Row] = []
        self.rejected_messages: list[Row] = []
        self.pending_messages: list[Row] = []
        self.unchanged = self.withheld = 0
        self._quarantined: frozenset[str] = frozenset()
        self._lost: set[Key] = set()
        self._read: list[Row] = []

    def run(self, batch: list[Row], now: datetime, run_id: str, quarantined: frozenset[str] = frozenset()) -> None:
        """Run over a batch of new messages and over the delayed ones.

        Messages of ``quarantined`` instances wait, unless they have a fault.
        """
        self._read += batch
        self._quarantined = quarantined
        new = self._without_doubles(batch, run_id)
        withheld = self._withhold(new, now, run_id)
        new = [row for row in new if _key(row) not in withheld]
        last_rows = {key: last for key, (_, last) in self._waiting.items()}
        again = [{**row, "observed_at": now} for row, _ in self._waiting.values()]
        requests = self._given_requests() + self._on_record()
        tables = {**self._tables, "messages": new + again, "route_requests": requests}
        done = resolve(tables, run_id=run_id)
        as_read = {_key(row): row for row in new} | {key: row for key, (row, _) in self._waiting.items()}
        for row in done.rejected_messages:
            if row["instance_name"] in quarantined:
                row["reasons"] = [code for code in row["reasons"] if code != "UNKNOWN_DATABASE"]
                row["reasons"].append("INSTANCE_QUARANTINED")
            if _key(row) in self._waiting:
                row["observed_at"] = self._waiting[_key(row)][0].get("observed_at")
        self.rejected_messages += done.rejected_messages
        self._waiting, self.pending_messages, self.unchanged = {}, [], 0
        for decided in done.resolved_routes:
            key = _key(decided)
            last = last_rows.get(key)
            row = {**decided, "attempt": 1 if last is None else last["attempt"] + 1}
            is_same = last is not None and all(last[name] == row[name] for name in DECISION)
            if last is not None and is_same and key not in self._lost:
                row = last
                self.unchanged += 1
            else:
                self.resolved_routes.append(row)
            self._stored.add(key)
            if row["outcome"] == "DELAYED" and row["database_name"] is not None:
                self._waiting[key] = (as_read[key], row)
                read = {column: as_read[key].get(column) for column in MESSAGE_COLUMNS}
                of_last = {"last_decided_at": row["decided_at"], "last_reason": row["reason"]}
                self.pending_messages.append(
                    {**read, "attempt": row["attempt"], **of_last, "run_id": row["run_id"]}
                )
        self._lost = set()
        self._waiting |= withheld
        self.withheld = len(withheld)
        for key, (message, row) in withheld.items():
            read = {column: message.get(column) for column in MESSAGE_COLUMNS}
            of_last = {"last_decided_at": row["decided_at"], "last_reason": "INSTANCE_QUARANTINED"}
            self.pending_messages.append({**read, "attempt": row["attempt"], **of_last, "run_id": row["run_id"]})
            self._stored.add(key)
        known_requests = {_request(row) for row in self.new_route_requests}
        self.new_route_requests += [row for row in done.new_route_requests if _request(row) not in known_requests]

    def run_window(self, first: datetime, end: datetime, run_id: str) -> None:
        """Decide the messages of a window of time again. One row replaces all attempts of a message."""

        def is_inside(row: Row) -> bool:
            time = utc(row.get("enqueue_time"))
            return time is not None and first <= time < end

        for key in ("resolved_routes", "rejected_messages", "pending_messages"):
            setattr(self, key, [row for row in getattr(self, key) if not is_inside(row)])
        outside = {key: found for key, found in self._waiting.items() if not is_inside(found[0])}
        self._stored = {_key(row) for row in self.resolved_routes} | outside.keys()
        others, self._waiting = self.pending_messages, {}
        read, self._read = self._read, []
        self.run([row for row in read if is_inside(row)], first, run_id)
        self._read, self._waiting = read, outside | self._waiting
        self.pending_messages = others + self.pending_messages

    def _withhold(self, new: list[Row], now: datetime, run_id: str) -> dict[Key, tuple[Row, Row]]:
        """Take the messages of instances in quarantine out of those that wait, and return them with new ones."""
        withheld = {key: found for key, found in self._waiting.items() if key[0] in self._quarantined}
        for key in withheld:
            del self._waiting[key]
        for row in new:
            if row.get("instance_name") in self._quarantined and not self._faults(row):
                # No run has decided it: its attempt is 0, and its decision differs from every other.
                never = {**dict.fromkeys(DECISION, self), "attempt": 0, "decided_at": now, "run_id": run_id}
                withheld[_key(row)] = (row, never)
        return withheld

    def _faults(self, row: Row) -> list[str]:
        """Return the faults of a message. The databases of an instance in quarantine are not known."""
        codes = faults(row, self._instances)
        is_quarantined = row.get("instance_name") in self._quarantined
        return [code for code in codes if code != "UNKNOWN_DATABASE" or not is_quarantined]

    def configure(self, tables: dict[str, list[Row]]) -> None:
        """Continue with another configuration."""
        self._tables, self._instances = tables, read_instances(tables)

    def delete_rows(self, left: set[Key]) -> None:
        """Delete the resolved rows of messages without a key in ``left``. Waiting messages are written again."""
        self.resolved_routes = [row for row in self.resolved_routes if _key(row) in left]
        self._stored &= left
        self._lost = self._waiting.keys() - left

    def _without_doubles(self, batch: list[Row], run_id: str) -> list[Row]:
        """Return the rows to judge. Duplicates are rejected here with their other faults."""
        sound: dict[Key, list[Row]] = {}
        for row in batch:
            if not self._faults(row):
                sound.setdefault(_key(row), []).append(row)
        first = {key: min(rows, key=_order) for key, rows in sound.items() if key not in self._stored}
        judged = []
        for row in batch:
            key = _key(row)
            is_named = row.get("instance_name") is not None and row.get("message_id") is not None
            if first.get(key) is row or not is_named or (key not in self._stored and key not in sound):
                judged.append(row)
                continue
            reasons = [*self._faults(row), "DUPLICATE_MESSAGE_ID"]
            read = {column: as_written(row.get(column)) for column in MESSAGE_COLUMNS}
            self.rejected_messages.append({**read, "reasons": reasons, "run_id": run_id})
        return judged

    def _given_requests(self) -> list[Row]:
        """Return the rows of `route_requests`. A row without an owner gets that of the opening run."""
        ends = {_request(row): _whose(row) for row in self.new_route_requests}
        rows = self._tables.get("route_requests") or []
        return [row if end_of(row) else {**row, **ends.get(_request(row), {})} for row in rows]

    def _on_record(self) -> list[Row]:
        """Return the requests of earlier runs. Rows of `route_requests` take precedence."""
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
    """Return the order of duplicates: the four columns of the contract, then the others, with null first."""
    named = ["enqueue_time", "conversation_id", "is_initiator", "message_sequence_number"]
    rest = [column for column in MESSAGE_COLUMNS if column not in named]
    values = {**row, "conversation_id": (text_or_none(row.get("conversation_id")) or "").lower()}
    values |= {name: utc(row.get(name)) for name in ("enqueue_time", "observed_at")}
    return [(values.get(name) is not None, values.get(name)) for name in (*named, *rest)]
