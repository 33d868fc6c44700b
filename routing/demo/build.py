"""Build the demo's Delta tables and a configuration beside them: the documents' estates, and a generated day.

The day is 2026-01-05, UTC, of the made-up company of `company`: the same rows for the same seed.
"""

from __future__ import annotations

import os
import random
import shutil
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from routing.config import BESIDE, Config, load
from routing.delta.local_tables import write_new
from routing.demo.company import (
    ANSWERED_PARTNER,
    WAITING_PARTNER,
    CompanyTables,
    ConversationKind,
    all_flows,
    at_hour,
    found_company,
    guid,
    service,
    split,
)
from routing.demo.drafting import EstateDraft, Row, Tables
from routing.demo.example_estates import document_estates
from routing.errors import ContractError, OutputError, StorageError, quote
from routing.schemas import INPUTS, OUTPUTS, REJECTED_MESSAGES, RESOLVED_ROUTES, Schema
from routing.tables.arrow_rows import table_of
from routing.tables.read_rows import read_rows
from routing.terms import TableRow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.delta.opening import TableOpener

# Conversations of the made-up company, written message by message into the tables.


# Messages begun in each hour of the day, in proportion.
_HOURLY = (2, 2, 3, 3, 3, 5, 12, 25, 45, 60, 72, 80, 88, 82, 74, 72, 80, 92, 86, 60, 34, 22, 10, 4)
_MINUTES_A_DAY = 24 * 60
_REPLY_SHARE = 0.8


def _curve() -> list[float]:
    """Return the share of messages that have begun by the end of each minute of the day."""
    minutes = []
    for minute in range(_MINUTES_A_DAY):
        hour, part = divmod(minute, 60)
        this_hour, next_hour = _HOURLY[hour], _HOURLY[(hour + 1) % 24]
        minutes.append(this_hour + (next_hour - this_hour) * part / 60)
    return list(accumulate(minutes))


@dataclass
class _Talk:
    """A conversation under construction, with the facts that each endpoint knows."""

    flow: ConversationKind
    number: int
    conversation_id: str
    path: tuple[str, ...]
    target: str | None
    known_id: str | None
    picked_id: str | None
    expires: datetime | None
    acknowledged: datetime | None = None
    answered: bool = False


class ConversationWriter:
    """One conversation after the other, drawn from the generator."""

    def __init__(self, rng: random.Random, company: CompanyTables) -> None:
        self.rng = rng
        self.company = company
        self.draft: EstateDraft = company.draft
        self._curve = [0.0, *_curve()]
        self._number = 0

    def converse(self, flow: ConversationKind) -> None:
        """Write one conversation of the flow: the initiator's messages, their arrivals and the answers."""
        rng = self.rng
        begins, ends = at_hour(flow.hours[0]), at_hour(flow.hours[1])
        at = max(begins, self._moment(flow.hours))
        conversation = self._begin(flow, at)
        first = at
        for sequence in range(rng.randint(*flow.messages)):
            # Half a minute leaves time for the transport and the answer.
            if at >= ends - timedelta(seconds=30):
                break
            self._send(conversation, sequence, at, ends)
            at += _minutes(rng.uniform(*flow.pause))
        self._end_rows(conversation, first)

    def _moment(self, hours: tuple[float, float]) -> datetime:
        """Return a time within the hours, more likely at busier hours."""
        low, high = (self._curve[round(hour * 60)] for hour in hours)
        minute = bisect(self._curve, self.rng.uniform(low, high)) - 1
        minute = min(minute, round(hours[1] * 60) - 2)
        return at_hour(minute / 60) + timedelta(milliseconds=self.rng.randrange(60_000))

    def _begin(self, flow: ConversationKind, at: datetime) -> _Talk:
        self._number += 1
        ids, conversation_id = self.company.broker_ids, guid(self.rng)
        known_id = ids.get(flow.bound_to, flow.bound_to) if flow.bound_to else None
        path, target, picked = flow.path, flow.target, None
        if flow.balanced:
            by_id = {ids[place]: place for place in flow.balanced}
            picked = _pick(sorted(by_id), conversation_id)
            target = by_id[picked]
            path = (split(target)[0],)
        expires = None if flow.lifetime is None else at + _minutes(flow.lifetime)
        return _Talk(flow, self._number, conversation_id, path, target, known_id, picked, expires)

    def _send(self, conversation: _Talk, sequence: int, at: datetime, ends: datetime) -> None:
        """Write a message of the initiator at every instance that it passes."""
        flow, rng = conversation.flow, self.rng
        start, database = split(flow.start)
        name, message_id = service(flow.service), f"d{conversation.number:05}-i{sequence}"
        observed_at = None
        if flow.seen_waiting:
            observed_at = at + _minutes(rng.uniform(*flow.seen_waiting))
            observed_at = min(observed_at, ends - timedelta(seconds=1))
        # Some senders name the broker instance in the message, for the others the dialog row knows it.
        named_id = conversation.known_id if conversation.number % 3 == 0 else None
        self.draft.message(
            message_id,
            conversation.conversation_id,
            at,
            start,
            database or None,
            name,
            named_id,
            sequence=sequence,
            observed_at=observed_at,
            hops_remaining=None if database else flow.hops,
            from_service_name=self._sender(flow),
        )
        carried = conversation.known_id or conversation.picked_id
        if conversation.acknowledged and conversation.acknowledged <= at:
            carried = self._target_id(conversation)
        arrived = self._travel(conversation, message_id, sequence, at, conversation.path, name, carried)
        if conversation.target and not conversation.acknowledged:
            conversation.acknowledged = arrived + timedelta(milliseconds=rng.randrange(20, 200))
        if (conversation.target or flow.back) and rng.random() < _REPLY_SHARE:
            self._answer(conversation, sequence, arrived + timedelta(milliseconds=rng.randrange(50, 3000)))

    def _answer(self, conversation: _Talk, sequence: int, at: datetime) -> None:
        """Write the target's answer at every instance that it passes."""
        name, message_id = self.company.services[conversation.flow.start], f"d{conversation.number:05}-t{sequence}"
        if conversation.target:
            conversation.answered = True
            self.draft.message(
                message_id,
                conversation.conversation_id,
                at,
                *split(conversation.target),
                name,
                is_initiator=False,
                sequence=sequence,
                from_service_name=service(conversation.flow.service),
            )
        initiator = self.company.broker_ids[conversation.flow.start]
        self._travel(conversation, message_id, sequence, at, conversation.flow.back, name, initiator, reply=True)

    def _travel(
        self,
        conversation: _Talk,
        message_id: str,
        sequence: int,
        at: datetime,
        path: tuple[str, ...],
        name: str,
        broker: str | None,
        reply: bool = False,
    ) -> datetime:
        """Write the arrivals along the path. Return the time of the last one."""
        for number, instance in enumerate(path):
            at += timedelta(milliseconds=self.rng.randrange(4, 90))
            self.draft.message(
                message_id,
                conversation.conversation_id,
                at,
                instance,
                None,
                name,
                broker,
                is_initiator=not reply,
                sequence=sequence,
                hops_remaining=conversation.flow.hops - number,
                from_service_name=service(conversation.flow.service) if reply else self._sender(conversation.flow),
            )
        return at

    def _sender(self, flow: ConversationKind) -> str | None:
        """Return the service that opens a flow's dialogs, or None if the sender is outside."""
        return self.company.services.get(flow.start)

    def _target_id(self, conversation: _Talk) -> str | None:
        return self.company.broker_ids[conversation.target] if conversation.target else None

    def _end_rows(self, conversation: _Talk, begun_at: datetime) -> None:
        """Write the dialogs rows of the ends that lie in databases of the company."""
        flow, group = conversation.flow, guid(self.rng)
        start, database = split(flow.start)
        if database:
            self.draft.dialog(
                start,
                database,
                conversation.conversation_id,
                conversation_group_id=group,
                far_service=service(flow.service),
                far_broker_instance=conversation.known_id,
                lifetime=conversation.expires,
                acknowledged_at=conversation.acknowledged,
                acknowledged_broker_instance=self._target_id(conversation) if conversation.acknowledged else None,
            )
        if conversation.target and conversation.answered:
            self.draft.dialog(
                *split(conversation.target),
                conversation.conversation_id,
                is_initiator=False,
                conversation_group_id=guid(self.rng),
                far_service=self.company.services[flow.start],
                far_broker_instance=self.company.broker_ids[flow.start],
                lifetime=conversation.expires,
                acknowledged_at=begun_at,
                acknowledged_broker_instance=self.company.broker_ids[flow.start],
            )


def _minutes(value: float) -> timedelta:
    return timedelta(milliseconds=round(value * 60_000))


def _pick(broker_ids: list[str], conversation_id: str) -> str:
    """Return the id that balancing picks for a dialog, so that messages arrive at that target."""
    # Only the demo needs it, and it loads Spark anyway.
    from routing.rules.hashing import dialog_id_hash

    return broker_ids[dialog_id_hash(conversation_id) % len(broker_ids)]


_FIRST_ROUNDS = 3
_CAMPAIGNS = ("hq-customers", "Campaigns")


def generate_day(seed: int = 20260105, messages: int = 12_000) -> Tables:
    """Return the input tables of the day with exactly that many messages, ordered by time.

    A message has a row at each instance on its path. With some 2,000 messages or more, the rows reach every
    outcome, reason and rejection.
    """
    rng = random.Random(seed)
    day = ConversationWriter(rng, found_company(rng))
    _ask_for_routes(day)
    bad = _bad_messages(day)
    flows = all_flows()
    weights = list(accumulate(flow.weight for flow in flows))
    # Every flow speaks early, so that a short day has all of them too.
    queue = flows * _FIRST_ROUNDS
    rows = day.draft.tables["messages"]
    while len(rows) + len(bad) < messages:
        flow = queue.pop(0) if queue else rng.choices(flows, cum_weights=weights)[0]
        day.converse(flow)
    rows[:] = sorted(rows[: max(0, messages - len(bad))], key=_time_and_id) + bad[:messages]
    return day.draft.tables


def _time_and_id(row: Row) -> tuple[str, str]:
    # Times of one zone compare as text too, microseconds written out.
    at = row["enqueue_time"]
    assert isinstance(at, datetime)
    return at.isoformat(timespec="microseconds"), str(row["message_id"])


def _ask_for_routes(day: ConversationWriter) -> None:
    """Add two requests to the record: one that still waits, one that was answered with a route."""
    waiting, answered = service(WAITING_PARTNER), service(ANSWERED_PARTNER)
    day.draft.request(*_CAMPAIGNS, waiting, at_hour(-6), "yesterday-1")
    asked_at = at_hour(9.2)
    conversation = guid(day.rng)
    day.draft.request(*_CAMPAIGNS, answered, asked_at, "bluebird-1", at_hour(9.25), conversation)
    day.draft.message("bluebird-1", conversation, asked_at, *_CAMPAIGNS, answered)


def _bad_messages(day: ConversationWriter) -> list[Row]:
    """Return rows that cannot be resolved: one for each fault that a row can have by itself."""
    good: Row = {
        "instance_name": "store-leeds",
        "database_name": "Till",
        "is_initiator": True,
        "message_sequence_number": 0,
        "enqueue_time": at_hour(15.5),
        "to_service_name": service("Orders/Entry"),
    }
    faults: tuple[tuple[str, Row], ...] = (
        ("no-message-id", {"message_id": None}),
        ("no-conversation", {"conversation_id": None}),
        ("no-end", {"is_initiator": None}),
        ("no-time", {"enqueue_time": None}),
        ("no-instance", {"instance_name": None}),
        ("no-service", {"to_service_name": ""}),
        ("not-a-guid", {"conversation_id": "order 4711"}),
        ("unknown-instance", {"instance_name": "store-penzance"}),
        ("unknown-database", {"database_name": "TillOld"}),
    )
    rows = day.draft.tables["messages"]
    columns = dict.fromkeys(rows[0])
    return [
        {**columns, **good, "message_id": f"bad-{name}", "conversation_id": guid(day.rng), **fault}
        for name, fault in faults
    ]


CONFIG_FILE = "demo.yaml"
_MADE = frozenset({CONFIG_FILE, "data", "out"})
_MARK = "# Made by sbroute demo; the folder's content is replaced when demo runs again.\n"
_READ = {"instance_name", "message_id", "to_service_name", "matching_step", "route_name", "address"}
_READ |= {"destination_database", "outcome", "reason"}
_SHOWN = RESOLVED_ROUTES.only(*_READ)
_REASONS = REJECTED_MESSAGES.only("reasons")


def check(folder: Path) -> None:
    """Refuse a folder that cannot be written, or holds anything that an earlier demo did not make.

    Raises ContractError.
    """
    nearest = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if nearest != folder and not nearest.is_dir():
        raise OutputError.folder_not_writable(str(folder), f"{quote(nearest)} is not a folder")
    if not os.access(nearest, os.R_OK | os.W_OK | os.X_OK) and nearest.is_dir():
        raise OutputError.folder_not_writable(str(folder), f"{quote(nearest)} does not allow it")
    entries = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    config_file = folder / CONFIG_FILE
    ours = config_file.is_file() and config_file.read_text(encoding="utf-8", errors="replace").startswith(_MARK)
    if (folder.exists() and not folder.is_dir()) or (entries and (not ours or not entries <= _MADE)):
        raise ContractError(
            f"{quote(folder)} has files that sbroute demo did not create", "name another folder with --out"
        )


def settings(folder: Path, overrides: Sequence[str]) -> Config:
    """Return the configuration of the demo's tables, as `claim` writes it beside them.

    Raises ConfigError, and ContractError where ``overrides`` would have it write anywhere else.
    """
    for override in overrides:
        key = override.partition("=")[0]
        if key.partition(".")[0] in ("tables", "output"):
            raise ContractError(f"--set {key}: demo makes its own tables, and writes nothing beside them")
    return load(str(folder / CONFIG_FILE), overrides, _text())


def _text() -> str:
    lines = [_MARK, "tables:\n", *(f"  {key}: data/{key}\n" for key in INPUTS)]
    lines += ["output:\n", *(f"  {key}: out/{key}\n" for key in (*OUTPUTS, *BESIDE))]
    return "".join(lines)


def claim(folder: Path) -> None:
    """Remove the files of an earlier demo from a folder, and write the configuration. Raises OutputError."""
    try:
        for name in ("data", "out"):
            if (folder / name).is_dir():
                shutil.rmtree(folder / name)
        # Last, for it says whose folder this is.
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CONFIG_FILE).write_text(_text(), encoding="utf-8")
    except OSError as error:
        raise OutputError.folder_not_writable(str(folder), error.strerror or str(error)) from error


def by_deltalake(opener: TableOpener, config: Config) -> bool:
    """Return True if the input tables are made without Spark, which takes some seconds less."""
    return all(opener.open_to_write(config.tables[key], None) is None for key in INPUTS)


def input_rows() -> Tables:
    """Return the rows of every input table: the document estates and the generated day."""
    parts = [*(estate.tables for estate in document_estates()), generate_day()]
    return {key: [row for part in parts for row in part.get(key, ())] for key in INPUTS}


def write_tables(config: Config, spark: SparkSession | None) -> None:
    """Write the input tables of the document estates and of the generated day, by Spark or by delta-rs."""
    rows = input_rows()
    # Rejected messages are part of the day, so that required columns may be null here.
    schemas = {key: schema.optional() for key, schema in INPUTS.items()}
    if spark is None:
        for key in INPUTS:
            write_new(config.tables[key], table_of(rows[key], schemas[key]))
        return
    from routing.delta import spark_tables
    from routing.tables import frames

    def store(key: str) -> None:
        frame = frames.frame_of(spark, rows[key], schemas[key])
        spark_tables.write_output(
            frame.coalesce(1), key, config.tables[key], spark_tables.WriteOptions("demo"), "demo"
        )

    frames.run_concurrently(spark, store, list(INPUTS))


def read_resolved(opener: TableOpener, config: Config, version: int) -> list[TableRow]:
    """Return the resolved messages, in the columns that are shown or counted. Raises StorageError."""
    return _read_output(opener, config, "resolved_routes", version, _SHOWN)


def read_rejections(opener: TableOpener, config: Config, version: int) -> Counter[str]:
    """Return how many rejected messages have each reason. Raises StorageError."""
    rows = _read_output(opener, config, "rejected_messages", version, _REASONS)
    return Counter(reason for row in rows for reason in row["reasons"])


def _read_output(opener: TableOpener, config: Config, key: str, version: int, columns: Schema) -> list[TableRow]:
    location = config.output[key]
    opened = opener.find(f"output.{key}", location, version)
    if opened is None:
        raise StorageError.failed(f"reading output.{key} at {location}", "the table is gone")
    return read_rows(opened.rows, columns)
