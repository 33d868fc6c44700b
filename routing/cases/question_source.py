"""Read the tables for a question, as columns of plain Python. `trace` uses the same tables.

No other module of `explain` reads a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING

from routing.arguments import checked
from routing.cases.background import MessageBackground, OtherInstances, StatusText, find_gap, status_of
from routing.cases.judged_questions import (
    Chunks,
    KnownTables,
    QuestionedMessage,
    RemedyFacts,
    find_spellings,
    narrow_to,
)
from routing.cases.observed_statuses import newest_statuses
from routing.cases.questions import (
    AGE,
    DESCRIBED_ID,
    ConversationEnd,
    DescribedMessage,
    Question,
    QuestionError,
    StoredMessage,
)
from routing.cases.server_evidence import evidence_of_tables
from routing.config import Config
from routing.delta.counted_runs import leave_out_missing
from routing.delta.import_times import newest_of
from routing.delta.opening import TableOpener
from routing.engines.traffic_tables import TrafficTable, open_traffic
from routing.importing.import_faults import latest_time
from routing.plan.checked_inputs import instances_of
from routing.rules import text
from routing.rules.text import printed_guid
from routing.rules.timeline import micros_of
from routing.schemas import DIALOGS, INPUTS, MESSAGES, SETTINGS, TABLES
from routing.tables.arrow_rows import with_moments
from routing.tables.given_tables import take_tables
from routing.tables.read_rows import read_each
from routing.tables.row_faults import findings, refuse_faults
from routing.tables.table_columns import COUNT, Filter, Table, TableColumns, joined
from routing.terms import ReadRow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Other messages are read in parts that grow, for the first few mostly settle whether a request is pending.
_LARGEST_PART, _GROWTH = 100_000, 10
_SHOWN_INSTANCES = 20
_END = ConversationEnd._fields
# Not what only groups of dialogs have: reading is what takes the time.
_OF_A_DIALOG = [name for name in DIALOGS.names if name not in ("conversation_group_id", "far_service")]


@dataclass(frozen=True)
class ExplainSource:
    """Input tables, and those of import if given. ``first_part`` is the size of the first chunk of messages."""

    tables: Mapping[str, TrafficTable]
    first_part: int = 1_000

    @classmethod
    def of(cls, tables: Mapping[str, Table]) -> ExplainSource:
        """Return the tables of a question.

        Raises InputError if one is missing or has columns of other types.
        """
        tables = take_tables(tables)
        return cls({key: open_traffic(tables[key], key) for key in TABLES if key in tables})

    @property
    def inputs(self) -> dict[str, Table]:
        """The input tables, unchanged."""
        return {key: table.source for key, table in self.tables.items()}

    def find_stored(self, message_id: str, instance: str | None) -> list[ReadRow]:
        """Return the messages of an id, on one instance or on some at most."""
        only = {"message_id": [message_id]}
        if instance is not None:
            only["instance_name"] = [instance]
        stored = self.tables["messages"].rows(only=only, order=("instance_name",), limit=_SHOWN_INSTANCES)
        return list(stored.dicts())

    @property
    def knows_handles(self) -> bool:
        """True if a table of the import has the handles of conversations."""
        return "observed_routing" in self.tables

    def find_ends(self, handle: str) -> set[ConversationEnd]:
        """Return the ends of conversations that import saw under a folded handle."""
        if not self.knows_handles:
            return set()
        observed = self.tables["observed_routing"].folded("conversation_handle", [handle], names=_END)
        return set(count_ends(observed))

    def read_conversation(self, conversation: str) -> TrafficTable:
        """Return all messages of a conversation, given by its folded id."""
        return self.tables["messages"].folded("conversation_id", [conversation])

    def instance_names(self) -> list[str]:
        """Return all instances that are listed."""
        return list(self.tables["instances"].rows(("instance_name",)).values["instance_name"])

    def read_near(self, row: ReadRow) -> dict[str, TableColumns]:
        """Return the configuration and requests of a message's instance, and the dialogs of its conversation.

        Raises InputError if one of these rows is faulty.
        """
        of_instance = {"instance_name": [row["instance_name"]]}

        def read(key: str) -> TableColumns:
            if key != "dialogs":
                return self.tables[key].rows(only=of_instance)
            return _read_dialogs(self.tables[key], [text.fold(row["conversation_id"] or "")], of_instance)

        near = self._read_each((key for key in INPUTS if key != "messages"), read)
        refuse_faults(near)
        return near

    def read_estate(self, near: Mapping[str, TableColumns], instance_name: str) -> dict[str, TableColumns]:
        """Read the whole configuration. ``near`` has the rows of a message's instance.

        Another instance with a faulty row keeps only its own row, so the explanation continues.
        """
        columns = self._read_each(SETTINGS, lambda key: self.tables[key].rows())
        return {
            key: joined(near[key], others) for key, others in _leave_out_faults(columns, instance_name).items()
        }

    def describe_facts(self, settings: Mapping[str, TableColumns], services: Collection[str]) -> RemedyFacts:
        """Return the facts for remedies of a message to services. ``settings`` are the whole configuration."""
        spellings = find_spellings(settings["routes"].values["remote_service_name"], services)
        facts = RemedyFacts.of_columns(settings, services, self._services_in_use(spellings))
        return replace(facts, server=evidence_of_tables(self.inputs))

    def _services_in_use(self, names: Collection[str]) -> set[str]:
        if not names:
            return set()
        sent = self.tables["messages"].groups(("to_service_name",), only={"to_service_name": names}).rows()
        return set(sent.values["to_service_name"])

    def read_status(self, question: QuestionedMessage, clock: datetime | None) -> StatusText | None:
        """Read the newest status of a message. One from after the clock counts only if there is no other."""
        # Described messages were never observed.
        observed = None if question.is_described else self.tables.get("observed_routing")
        latest = None if clock is None else micros_of(latest_time(clock))
        [newest] = newest_statuses(observed, [question.row], latest)
        return None if newest is None else status_of(newest)

    def read_background(self, posed: PosedQuestion, clock: datetime | None) -> MessageBackground:
        """Read the background of a message, with the status of `read_status`."""
        of_instance = {"instance_name": [posed.question.row["instance_name"]]}
        imports = self.tables["imports"].rows(only=of_instance).dicts() if "imports" in self.tables else ()
        return MessageBackground(
            find_gap(posed.instance_tables),
            self.read_status(posed.question, clock),
            newest_of(with_moments(imports, ["exported_at", "imported_at"])),
        )

    def _read_each(self, keys: Iterable[str], read: Callable[[str], TableColumns]) -> dict[str, TableColumns]:
        return read_each({key: self.tables[key].source for key in keys if key in self.tables}, read)

    def chunks(self, as_of: int | None) -> Chunks:
        """Return the messages of an instance for a service, with their dialogs.

        ``as_of`` is that of `known_tables.message_of`.
        """

        def read_parts(instance: str, service: str) -> Iterator[Mapping[str, TableColumns]]:
            of_instance, messages = {"instance_name": [instance]}, self.tables["messages"]
            only = {**of_instance, "to_service_name": [service]}
            for part in messages.in_asking_order(only, as_of, self._sizes()):
                chunk = {"messages": part}
                if "dialogs" in self.tables:
                    ids = part.values["conversation_id"]
                    conversations = {
                        text.fold(conversation_id) for conversation_id in ids if text.is_guid(conversation_id)
                    }
                    chunk["dialogs"] = _read_dialogs(self.tables["dialogs"], conversations, of_instance)
                yield chunk

        return read_parts

    def _sizes(self) -> Iterator[int]:
        size = self.first_part
        while True:
            yield size
            size = min(size * _GROWTH, _LARGEST_PART)


def _read_dialogs(dialogs: TrafficTable, conversations: Collection[str], of_instance: Filter) -> TableColumns:
    return dialogs.folded("conversation_id", conversations, only=of_instance, names=_OF_A_DIALOG).rows()


def _leave_out_faults(columns_by_key: Mapping[str, TableColumns], instance_name: str) -> dict[str, TableColumns]:
    """Return the rows of all instances but one. An instance with a faulty row keeps only its own row."""
    names = {
        name for name in columns_by_key["instances"].values["instance_name"] if name not in (None, instance_name)
    }
    sound = names - {
        name for fault in findings(columns_by_key) for name in _beginnings(fault.row_key) if name in names
    }
    return {
        key: columns.naming("instance_name", names if key == "instances" else sound)
        for key, columns in columns_by_key.items()
    }


def _beginnings(row_key: str) -> Iterator[str]:
    """Yield candidates for the first part of a row's key, an instance's name: names may hold commas."""
    parts = row_key.split(", ")
    yield from (", ".join(parts[:number]) for number in range(1, len(parts) + 1))


def count_ends(rows: TrafficTable) -> Counter[ConversationEnd]:
    """Return the number of rows for each end of a conversation, in messages or in observations of the import."""
    counts: Counter[ConversationEnd] = Counter()
    groups = rows.groups(_END).rows().rows(*_END, COUNT)
    for conversation, instance, database, is_initiator, count in groups:
        place = (text.empty_as_null(instance), text.empty_as_null(database))
        counts[ConversationEnd(text.fold(conversation), *place, is_initiator)] += count
    return counts


def open_source(
    tables: Mapping[str, Table] | Config, as_of: datetime | None, spark: SparkSession | None
) -> tuple[ExplainSource, datetime | None]:
    """Open the tables, or those of a configuration, with the one decision time if there is any."""
    if isinstance(tables, Config):
        settings, as_of = tables, as_of or tables.resolve.as_of
        tables = open_tables(settings, spark=spark)
    return ExplainSource.of(tables), as_of


@checked
def open_tables(
    settings: Config, opener: TableOpener | None = None, *, spark: SparkSession | None = None
) -> dict[str, Table]:
    """Open every input of a configuration and the existing tables of import, each at its newest version.

    Args:
        settings: the configuration.
        opener: opens the tables. By default delta-rs opens local tables, and Spark opens others.
        spark: the session for tables that need one. By default one is started.

    Returns:
        Tables by configuration key: datasets of Arrow, or DataFrames if Spark reads them.

    Raises:
        InputError: an input is missing.

    Example:
        >>> tables = routing.open_tables(routing.load_config("job.yaml"))
        >>> tables["routes"].count_rows()
        4
    """
    opener = opener or TableOpener.of_settings(settings.spark, spark)
    settings = leave_out_missing(opener, settings)
    kept_tables = opener.find_all(settings.import_tables)
    return {**opener.open({key: settings.tables[key] for key in INPUTS if key in settings.tables}), **kept_tables}


def find_stored(source: ExplainSource, question: StoredMessage) -> tuple[ReadRow, int]:
    """Return the message of a question, and the number of other messages of the conversation's end.

    Raises QuestionError unless there is exactly one.
    """
    if question.conversation is None:
        return _find_by_id(source, question.message_id or "", question.instance_name), 0
    return _find_in_conversation(source, question.conversation, question.instance_name)


def find_dialog(source: ExplainSource, question: DescribedMessage) -> str | None:
    """Find the dialog's id for an id or handle in a description. Text that is not a GUID is returned unchanged.

    Raises QuestionError.
    """
    conversation = question.conversation_id
    guid = None if conversation is None else printed_guid(conversation)
    if conversation is None or guid is None:
        return conversation
    return _name_conversation(conversation, source.find_ends(guid)) or guid


def _find_by_id(source: ExplainSource, message_id: str, instance: str | None) -> ReadRow:
    rows = source.find_stored(message_id, instance)
    if not rows:
        raise QuestionError.unknown_message(message_id, instance)
    names = sorted({str(row["instance_name"]) for row in rows})
    if len(names) > 1:
        raise QuestionError.ambiguous(message_id, names)
    if len(rows) > 1:
        raise QuestionError.doubled(message_id, names[0])
    return rows[0]


def _find_in_conversation(source: ExplainSource, conversation: str, instance: str | None) -> tuple[ReadRow, int]:
    """Find the oldest message of the end that a handle names, or of the only end that has messages."""
    guid = printed_guid(conversation) or ""
    ends = source.find_ends(guid)
    named = _name_conversation(conversation, ends)
    messages = source.read_conversation(named or guid)

    def is_meant(end: ConversationEnd) -> bool:
        return (not ends or end in ends) and instance in (None, end.instance_name)

    matching_ends = {end: count for end, count in count_ends(messages).items() if is_meant(end)}
    if not matching_ends:
        raise QuestionError.unknown_conversation(
            conversation, instance, ends=ends, knows_handles=source.knows_handles
        )
    if len(matching_ends) > 1:
        raise QuestionError.several_ends(conversation, matching_ends)
    [(end, count)] = matching_ends.items()
    own_columns = {name: value for name, value in end._asdict().items() if name != "conversation_id"}
    [row] = messages.rows(same=own_columns, order=AGE, limit=1).dicts()
    return row, count - 1


def _name_conversation(handle: str, ends: Collection[ConversationEnd]) -> str | None:
    """Return the conversation with these ends of a handle, or None without ends.

    Raises QuestionError.
    """
    ids = sorted({end.conversation_id for end in ends})
    if len(ids) > 1:
        raise QuestionError.several_conversations(handle, ids)
    return ids[0] if ids else None


@dataclass(frozen=True)
class PosedQuestion:
    """A question with the rows to answer it.

    ``instance_tables`` are the columns of the message's instance. ``other_count`` is as in `Explanation.others`.
    ``read_estate`` reads the whole configuration once.
    """

    question: QuestionedMessage
    instance_tables: Mapping[str, TableColumns]
    known_tables: KnownTables
    read_estate: Callable[[], Mapping[str, TableColumns]]
    other_count: int = 0


def pose(source: ExplainSource, question: Question, as_of: datetime | None) -> PosedQuestion:
    """Read the rows for a question. The question's own time wins over ``as_of``.

    Raises QuestionError if the message, instance or database does not exist, and InputError if a row is faulty.
    """
    other_count = 0
    if isinstance(question, StoredMessage):
        (row, other_count), moment = find_stored(source, question), question.at or as_of
        at = None if moment is None else micros_of(moment)
        questioned_message = QuestionedMessage(row, is_described=False, as_of=at)
    else:
        questioned_message = _describe(question, find_dialog(source, question))
    near = source.read_near(questioned_message.row)
    if isinstance(question, DescribedMessage):
        _check_names(source, near, question)
    read_estate = cache(partial(source.read_estate, near, questioned_message.row["instance_name"]))
    known_tables = KnownTables.of_columns(
        narrow_to(near, questioned_message.row),
        source.chunks(questioned_message.as_of),
        OtherInstances(lambda: instances_of(read_estate())),
    )
    return PosedQuestion(questioned_message, near, known_tables, read_estate, other_count)


def _describe(question: DescribedMessage, conversation_id: str | None) -> QuestionedMessage:
    message_values: ReadRow = {
        "message_id": DESCRIBED_ID,
        "conversation_id": conversation_id,
        "is_initiator": not question.is_target,
        "enqueue_time": micros_of(question.at),
        "instance_name": question.instance_name,
        "database_name": question.database_name,
        "to_service_name": question.to_service_name,
        "to_broker_instance": question.to_broker_instance,
        "hops_remaining": question.hops_remaining,
        "from_service_name": question.from_service_name,
    }
    return QuestionedMessage({**dict.fromkeys(MESSAGES.names), **message_values}, is_described=True)


def _check_names(source: ExplainSource, near: Mapping[str, TableColumns], question: DescribedMessage) -> None:
    instance, database = question.instance_name, question.database_name
    if not len(near["instances"]):
        raise QuestionError.unknown_name("instance", instance, source.instance_names())
    names = near["databases"].values["name"]
    if database is not None and database not in names:
        raise QuestionError.unknown_name("database", database, names, f" on instance {instance!r}")
