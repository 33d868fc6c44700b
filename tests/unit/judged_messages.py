"""Messages of whole tables, judged by the planner: rows in, verdicts or rows out."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import reduce
from typing import Any, NamedTuple

from routing.plan.checked_inputs import network_of
from routing.plan.planner import MOST_KEYS
from routing.plan.verdicts import DialogEnds, KnownDialogs, MessageJudge, may_ask
from routing.rules.estate import SqlInstance
from routing.rules.network import EstateNetwork
from routing.rules.rejecting import TEXTS, is_sound, rejections
from routing.rules.resolving import (
    MATTERS,
    MESSAGE_COLUMNS,
    NO_DIALOG,
    DialogFacts,
    RoutedMessage,
    Verdict,
)
from routing.rules.timeline import moment_of
from routing.tables.read_rows import columns_of, condition_of
from routing.tables.row_faults import read_suspects, refuse_faults
from routing.tables.table_columns import Only, Table, TableColumns, read_arrow, shape_of
from routing.terms import ReadRow
from tests.frames import Tables, arrow
from tests.random_estates import Decided, Row
from tests.reference.messages import as_written
from tests.unit.rules import by_rules
from tests.unit.rules.by_rules import micros

_Row = tuple[Any, ...]
_SETTINGS = ("routes", "databases", "services", "instances", "route_requests")


def judge_messages(tables: Tables, as_of: datetime | None, size: int | None = None) -> list[JudgedRow]:
    """Judge the messages of tables, in batches of some rows."""
    arrow_tables = arrow(tables)
    judge = judge_of(arrow_tables, arrow_tables.get("dialogs"), micros(as_of))
    judge.find_openers(_batches(arrow_tables["messages"], size))
    return [judged for batch in _batches(arrow_tables["messages"], size) for judged in judge.judge(batch)]


def judge_of(
    arrow_tables: Mapping[str, Any], dialogs: Any, as_of: int | None = None, *, most_keys: int = MOST_KEYS
) -> RowJudge:
    """Return the judge for the messages of Arrow tables."""
    settings = {key: columns_of(arrow_tables[key], key) for key in _SETTINGS if key in arrow_tables}
    return RowJudge(network_of(settings), dialogs_of_table(dialogs), as_of, most_keys=most_keys)


def _batches(messages: Any, size: int | None) -> Iterator[TableColumns]:
    for batch in read_messages(messages):
        step = size or len(batch)
        for start in range(0, len(batch), step):
            yield batch.take(range(start, min(start + step, len(batch))))


def resolved_rows(judged: Iterable[JudgedRow]) -> list[Row]:
    """The columns of ``resolved_routes`` that are a message's own, or decided."""
    return [
        {
            **by_rules.columns(judgement.verdict),
            "message_id": judgement.message.message_id,
            "conversation_id": judgement.message.conversation_id,
            "is_initiator": judgement.message.is_initiator,
            "instance_name": judgement.message.instance,
            "database_name": judgement.message.database,
            "to_service_name": judgement.message.service,
            "to_broker_instance": judgement.message.broker,
            "decided_at": moment_of(judgement.message.t),
        }
        for judgement in judged
        if judgement.message is not None and judgement.verdict is not None
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
    opened = [dict(zip(asked, one, strict=True)) for one in requests]
    return Decided(resolved_rows(judged), opened, rejected, is_whole=False)


def read_messages(messages: Table, only: Only | None = None) -> Iterator[TableColumns]:
    """Read all messages of an Arrow table or dataset, in the declared columns and batches of up to 65,536 rows.

    ``only`` has the allowed values by column. Raises InputError if a required column is missing, or if a column
    has a type that is not accepted.
    """
    return iter([read_arrow(messages, "messages", condition_of(messages, only or {}))])


def dialogs_of_table(dialogs: Table | None) -> KnownDialogs:
    """Return the dialogs of an Arrow table that can change a decision.

    Raises InputError for faulty rows, as a run does.
    """
    if dialogs is None:
        return KnownDialogs({})
    refuse_faults({"dialogs": read_suspects(dialogs, "dialogs")})
    return KnownDialogs.of_columns(_read_mattering(dialogs))


def _read_mattering(dialogs: Table) -> Iterable[TableColumns]:
    """Read the dialogs that may change a decision."""
    import pyarrow.compute as pc

    shape = shape_of(dialogs, "dialogs")
    conditions: list[Any] = [pc.field(shape[name]).is_valid() for name in MATTERS if name in shape]
    if not conditions:
        return ()
    return iter([read_arrow(dialogs, "dialogs", reduce(operator.or_, conditions))])


class JudgedRow(NamedTuple):
    """A judged row of messages.

    ``rejections`` are its rejection codes. If there are any, ``message`` and ``verdict`` are None. ``dialog`` is
    `NO_DIALOG` for a message without one. Messages with the same key, time and pick share a verdict as one object.
    Its decision may be shared with messages for other ids that the instance does not have.
    """

    rejections: tuple[str, ...]
    message: RoutedMessage | None
    dialog: DialogFacts
    verdict: Verdict | None


class _MessageOrigin(NamedTuple):
    """The origin of messages, a database or the network, and whether any of them may reach step 4."""

    dialogs: DialogEnds
    may_ask: bool


class RowJudge:
    """Judges rows of messages, which come in batches of any size and order.

    Where any may ask for a route (`may_ask`), all must have come by `find_openers` before the first is judged.
    """

    def __init__(
        self, network: EstateNetwork, dialogs: KnownDialogs, as_of: int | None, *, most_keys: int = MOST_KEYS
    ) -> None:
        """Prepare to judge. ``as_of`` is the time of all messages in microseconds, or None for their own times."""
        self.messages, self._as_of = MessageJudge(network, most_keys=most_keys), as_of
        self._origins = dict(_origins(network.instances, dialogs))
        self.may_ask = any(origin.may_ask for origin in self._origins.values())
        self._has_openers = not self.may_ask

    def find_openers(self, batches: Iterable[TableColumns]) -> None:
        """Find the messages that open a request for a route. Nothing is read if no message can open one."""
        if self.may_ask:
            self.messages.find_openers(self._asking(batches))
            self._has_openers = True

    def judge(self, batch: TableColumns) -> list[JudgedRow]:
        """Return the judged rows of a batch in order. The batch must have all columns of messages.

        Raises ValueError if messages may ask for routes and `find_openers` has not seen them.
        """
        if not self._has_openers:
            raise ValueError("messages may ask for routes: find_openers has to see them all first")
        undecoded = _find_undecoded(batch)
        return [
            self._reject(next(batch.take([place]).dicts())) if place in undecoded else self._judge(row)
            for place, row in enumerate(batch.rows(*MESSAGE_COLUMNS))
        ]

    def _reject(self, row: ReadRow) -> JudgedRow:
        codes = rejections(row, self.messages.instances.get(row["instance_name"]))
        return JudgedRow(tuple(codes), None, NO_DIALOG, None)

    def _judge(self, row: _Row) -> JudgedRow:
        read = self._read(row)
        if read is None:
            return self._reject(dict(zip(MESSAGE_COLUMNS, row, strict=True)))
        _, message, dialog = read
        return JudgedRow((), message, dialog, self.messages.verdict(message, dialog))

    def _asking(self, batches: Iterable[TableColumns]) -> Iterator[tuple[RoutedMessage, DialogFacts]]:
        """Yield the messages that may reach step 4 in any search."""
        for batch in batches:
            undecoded = _find_undecoded(batch)
            for place, row in enumerate(batch.rows(*MESSAGE_COLUMNS)):
                read = None if place in undecoded else self._read(row)
                if read is not None and read[0].may_ask:
                    yield read[1], read[2]

    def _read(self, row: _Row) -> tuple[_MessageOrigin, RoutedMessage, DialogFacts] | None:
        """Return a message with its origin and dialog, or None if it is rejected."""
        message_id, conversation, is_initiator, enqueued, _, instance, database, service, _, hops = row
        origin = self._origins.get((instance, database))
        if origin is None or not is_sound(message_id, conversation, is_initiator, enqueued, service, hops):
            return None
        message = RoutedMessage.of_row(*row, as_of=self._as_of)
        return origin, message, origin.dialogs[is_initiator].get(message.conversation_id or "", NO_DIALOG)


def _find_undecoded(batch: TableColumns) -> set[int]:
    """Return the places of messages with a text that is no UTF-8."""
    texts = TableColumns({name: batch.values[name] for name in TEXTS if name in batch.values})
    return {place for _, place, _ in texts.undecoded()}


def _origins(
    instances: Mapping[str, SqlInstance], dialogs: KnownDialogs
) -> Iterator[tuple[tuple[str, str | None], _MessageOrigin]]:
    """Yield wherever a message that is not set aside can start, by instance and database as they are written."""
    for name, instance in instances.items():
        for database in (None, *instance.databases):
            origin = _MessageOrigin(dialogs.ends_of(name, database), may_ask(instance, database))
            yield (name, database), origin
            if database is None:
                # Empty text is null.
                yield (name, ""), origin
