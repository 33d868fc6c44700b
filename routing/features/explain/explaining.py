"""Explain where one message goes, and why: the rule book's path of it, by the rules that resolve them all.

`explain` reads what it needs of tables; `answer` is the same for what is known already, in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from routing.config import Config, in_reading_order
from routing.delta.opening import TableOpener
from routing.features.check.stuck_groups import MessageRemedy
from routing.features.explain.background import NOTHING, MessageBackground
from routing.features.explain.explain_source import (
    ExplainSource,
    RemedyFacts,
    count_ends,
    find_oldest,
    find_remedy,
)
from routing.features.explain.explained_path import path
from routing.features.explain.judging import QuestionedMessage, judge_question, verdict_row
from routing.features.explain.known_tables import KnownTables, OtherInstances, narrow_to, number_lines
from routing.features.explain.questions import (
    DESCRIBED_ID,
    ConversationEnd,
    DescribedMessage,
    Question,
    QuestionError,
    StoredMessage,
)
from routing.importing.import_faults import latest_time
from routing.rules.text import printed_guid
from routing.schemas import EXPLAINED_STEPS, INPUTS, MESSAGES, RESOLVED_ROUTES
from routing.tables.arrow_rows import SchemaRows
from routing.tables.table_columns import Table, TableColumns
from routing.tables.times import micros_of
from routing.terms import ReadRow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The tables of a question: as they are given, or opened as a configuration names them.


def open_source(
    tables: Mapping[str, Table] | Config, as_of: datetime | None, spark: SparkSession | None
) -> tuple[ExplainSource, datetime | None]:
    """Open the tables, or those of a configuration, with the one decision time if there is any."""
    if isinstance(tables, Config):
        settings, as_of = tables, as_of or tables.resolve.as_of
        tables = open_tables(settings, spark=spark)
    return ExplainSource.of(tables), as_of


def open_tables(
    settings: Config, opener: TableOpener | None = None, *, spark: SparkSession | None = None
) -> dict[str, Table]:
    """Open every input of a configuration, and the tables of import that exist, each at its newest version.

    Args:
        settings: the configuration.
        opener: opens the tables; by default local ones by delta-rs, others by Spark.
        spark: the session for tables that need one; by default one is started.

    Returns:
        Tables by configuration key: datasets of Arrow, or DataFrames where Spark reads them.

    Raises:
        InputError: an input is missing.

    Example:
        >>> tables = routing.open_tables(routing.load_config("job.yaml"))
        >>> tables["routes"].count_rows()
        4
    """
    opener = opener or TableOpener.of_settings(settings.spark, spark)
    kept_locations = {key: settings.kept[key] for key in in_reading_order(settings.kept)}
    kept_tables = {key: opener.find(f"tables.{key}", location) for key, location in kept_locations.items()}
    inputs = opener.open({key: settings.tables[key] for key in INPUTS if key in settings.tables})
    return {**inputs, **{key: opened.rows for key, opened in kept_tables.items() if opened is not None}}


# Which stored message a question means: the one of an id, or the oldest of one end of a conversation.


@dataclass(frozen=True)
class FoundMessage:
    """A stored message; ``others``: of a conversation that was asked about, how many more its end has."""

    row: ReadRow
    others: int = 0


def find_stored(source: ExplainSource, question: StoredMessage) -> FoundMessage:
    """Return the message that a question means. Raises QuestionError where that is none, or more than one."""
    if question.conversation is None:
        return FoundMessage(_find_by_id(source, question.message_id or "", question.instance_name))
    return _find_in_conversation(source, question.conversation, question.instance_name)


def find_dialog(source: ExplainSource, question: DescribedMessage) -> str | None:
    """Return the id of the dialog that a description names by id or handle; what is not a GUID as it is given.

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


def _find_in_conversation(source: ExplainSource, conversation: str, instance: str | None) -> FoundMessage:
    """Find the oldest message of the end that a handle names, or of the only end that has messages."""
    guid = printed_guid(conversation) or ""
    ends = source.find_ends(guid)
    named = _name_conversation(conversation, ends)
    messages = source.read_conversation(named or guid)

    def is_meant(end: ConversationEnd) -> bool:
        return (not ends or end in ends) and instance in (None, end.instance_name)

    meant = {end: count for end, count in count_ends(messages).items() if is_meant(end)}
    if not meant:
        raise QuestionError.unknown_conversation(
            conversation, instance, ends=ends, knows_handles=source.knows_handles
        )
    if len(meant) > 1:
        raise QuestionError.several_ends(conversation, meant)
    [(end, count)] = meant.items()
    return FoundMessage(find_oldest(messages, end), count - 1)


def _name_conversation(handle: str, ends: Collection[ConversationEnd]) -> str | None:
    """Return the conversation of which these are the ends that a handle names; None for no end.

    Raises QuestionError.
    """
    ids = sorted({end.conversation_id for end in ends})
    if len(ids) > 1:
        raise QuestionError.several_conversations(handle, ids)
    return ids[0] if ids else None


# A question and what is known of it: the message as a row, the rows that concern it, and what the rules see.


@dataclass(frozen=True)
class PosedQuestion:
    """``near`` are the columns of the message's instance; ``others`` as in `Explanation`.

    ``read_facts`` reads what bears on the remedy.
    """

    asked: QuestionedMessage
    near: Mapping[str, TableColumns]
    known_tables: KnownTables
    read_facts: Callable[[], RemedyFacts]
    others: int = 0


def pose(source: ExplainSource, question: Question, as_of: datetime | None) -> PosedQuestion:
    """Read the rows that a question is about; the question's own time wins over ``as_of``.

    Raises QuestionError where no such message, instance or database is there, InputError where a row is at fault.
    """
    others = 0
    if isinstance(question, StoredMessage):
        stored_message, moment = find_stored(source, question), question.at or as_of
        asked = QuestionedMessage(
            stored_message.row, is_described=False, as_of=None if moment is None else micros_of(moment)
        )
        others = stored_message.others
    else:
        asked = _describe(question, find_dialog(source, question))
    near = source.read_near(asked.row)
    if isinstance(question, DescribedMessage):
        _check_names(source, near, question)
    beyond = OtherInstances(lambda: source.read_other_instances(asked.row["instance_name"]))
    known_tables = KnownTables.of_columns(narrow_to(near, asked.row), source.chunks(asked.as_of), beyond)
    return PosedQuestion(asked, near, known_tables, lambda: source.read_remedy_facts(near, asked.row), others)


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
    """Check that instance and database of a description are listed. Raises QuestionError."""
    instance, database = question.instance_name, question.database_name
    if not len(near["instances"]):
        raise QuestionError.unknown_name("instance", instance, source.instance_names())
    names = near["databases"].values["name"]
    if database is not None and database not in names:
        raise QuestionError.unknown_name("database", database, names, f" on instance {instance!r}")


@dataclass(frozen=True)
class Explanation:
    """verdict: one row, the columns of resolved_routes; steps: the path, in the schema `schemas.EXPLAINED_STEPS`.

    A column of the verdict is null where it depends on a dialog that was not given. ``others``: where a
    conversation was asked about, how many more messages are stored of the end that this one is of. ``remedy``:
    what to do, with a statement where there is one; None where the message leaves its instance as it should, or
    its dialog decides what to do.
    """

    verdict: SchemaRows
    steps: SchemaRows
    others: int = 0
    remedy: MessageRemedy | None = None


def explain(
    tables: Mapping[str, Table] | Config,
    question: Question,
    *,
    as_of: datetime | None = None,
    clock: datetime | None = None,
    spark: SparkSession | None = None,
) -> Explanation:
    """Explain one message: the verdict of `resolve`, and the path to it (rule book, sections 0 to 6).

    Only the rows of the message's instance are read, and checked.

    Args:
        tables: a configuration, whose tables are opened at their newest versions, or tables by its keys, as
            `resolve` takes them, with those of import (`schemas.KEPT`) where there are any: DataFrames, Arrow
            tables or datasets.
        question: the message.
        as_of: the one decision time of a run that has one (UTC); a question's own time wins.
        clock: the time of now; an imported status of a later time counts as no newer than others.
        spark: the session for tables that need one; by default one is started.

    Returns:
        The verdict (one row of ``resolved_routes``), the steps to it (`schemas.EXPLAINED_STEPS`) and the remedy.

    Raises:
        QuestionError: no such message, instance or database exists, or a run would reject the message.
        InputError: a table breaks its contract.

    Example:
        >>> answer = routing.explain(routing.load_config("job.yaml"), routing.StoredMessage("m3"))
        >>> [verdict] = answer.verdict
        >>> verdict["outcome"], verdict["reason"], verdict["route_name"]
        ('SENT', 'MIRROR_ADDRESS', 'Far')
    """
    source, as_of = open_source(tables, as_of, spark)
    posed = pose(source, question, as_of)
    kept_tables = source.read_kept(posed.asked.row, is_described=posed.asked.is_described)
    latest = None if clock is None else micros_of(latest_time(clock))
    background = MessageBackground.of_columns(posed.near, kept_tables, posed.asked.row, latest)
    return replace(answer(posed.asked, posed.known_tables, background, posed.read_facts), others=posed.others)


def answer(
    asked: QuestionedMessage,
    known_tables: KnownTables,
    background: MessageBackground = NOTHING,
    read_facts: Callable[[], RemedyFacts] | None = None,
) -> Explanation:
    """Explain a message by what is known. Raises QuestionError where a run would reject it.

    ``read_facts`` returns what bears on the remedy; without it the explanation has none.
    """
    judged = judge_question(asked, known_tables)
    verdict = verdict_row(judged)
    path_lines = path(judged, known_tables, verdict, background)
    return Explanation(
        SchemaRows(RESOLVED_ROUTES.optional(), (verdict,)),
        SchemaRows(EXPLAINED_STEPS, number_lines(path_lines)),
        remedy=None if read_facts is None else find_remedy(judged, read_facts),
    )
