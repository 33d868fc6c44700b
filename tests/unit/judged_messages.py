"""Messages of whole tables, judged by the planner: rows in, verdicts or rows out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from routing.plan.checked_inputs import network_of
from routing.plan.planner import MOST_KEYS
from routing.plan.verdicts import JudgedRow, KnownDialogs, RowJudge
from routing.tables.read_rows import columns_of, read_messages
from routing.tables.table_columns import TableColumns
from routing.tables.times import moment_of
from tests.frames import Tables, arrow
from tests.random_estates import Decided, Row
from tests.reference.messages import as_written
from tests.unit.rules import by_rules
from tests.unit.rules.by_rules import micros

_SETTINGS = ("routes", "databases", "services", "instances", "route_requests")


def judge_messages(tables: Tables, as_of: datetime | None, size: int | None = None) -> list[JudgedRow]:
    """The messages of tables, judged; in batches of so many rows."""
    arrow_tables = arrow(tables)
    judge = judge_of(arrow_tables, arrow_tables.get("dialogs"), micros(as_of))
    judge.find_openers(_batches(arrow_tables["messages"], size))
    return [judged for batch in _batches(arrow_tables["messages"], size) for judged in judge.judge(batch)]


def judge_of(
    arrow_tables: Mapping[str, Any], dialogs: Any, as_of: int | None = None, *, most_keys: int = MOST_KEYS
) -> RowJudge:
    """What judges the messages of Arrow's tables."""
    settings = {key: columns_of(arrow_tables[key], key) for key in _SETTINGS if key in arrow_tables}
    return RowJudge(network_of(settings), KnownDialogs.of_table(dialogs), as_of, most_keys=most_keys)


def _batches(messages: Any, size: int | None) -> Iterator[TableColumns]:
    for batch in read_messages(messages):
        step = size or len(batch)
        for start in range(0, len(batch), step):
            yield batch.take(range(start, min(start + step, len(batch))))


def resolved_rows(judged: Iterable[JudgedRow]) -> list[Row]:
    """The columns of ``resolved_routes`` that are a message's own, or decided."""
    return [
        {
            **by_rules.columns(found.verdict),
            "message_id": found.message.message_id,
            "conversation_id": found.message.conversation_id,
            "is_initiator": found.message.is_initiator,
            "instance_name": found.message.instance,
            "database_name": found.message.database,
            "to_service_name": found.message.service,
            "to_broker_instance": found.message.broker,
            "decided_at": moment_of(found.message.t),
        }
        for found in judged
        if found.message is not None and found.verdict is not None
    ]


def decide_by_planner(tables: Tables, as_of: datetime | None, *, most_keys: int = MOST_KEYS) -> Decided:
    """The rows of a run as the planner decides its messages, in the columns that it knows of."""
    rows, arrow_tables = tables["messages"], arrow(tables)
    judge = judge_of(arrow_tables, arrow_tables.get("dialogs"), micros(as_of), most_keys=most_keys)
    judge.find_openers(_batches(arrow_tables["messages"], None))
    judged = [judged for batch in _batches(arrow_tables["messages"], None) for judged in judge.judge(batch)]
    requests = [
        (instance, database, service, moment_of(one.requested_at), one.message_id, *(one.endpoint or ()))
        for instance, theirs in judge.messages.requests.items()
        for database, service, one in theirs.all_opened()
    ]
    rejected = [
        {"message_id": as_written(row["message_id"]), "reasons": list(found.rejections)}
        for row, found in zip(rows, judged, strict=True)
        if found.rejections
    ]
    of = ("instance_name", "database_name", "service_name", "requested_at", "message_id")
    asked = (*of, "conversation_id", "is_initiator")
    return Decided(resolved_rows(judged), [dict(zip(asked, one, strict=True)) for one in requests], rejected)
