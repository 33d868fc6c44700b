"""A question and what is known of it: the message as a row, the rows that concern it, and what the rules see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from routing.features.explain.explain_source import ExplainSource
from routing.features.explain.judging import QuestionedMessage
from routing.features.explain.known_tables import KnownTables, Row, narrow_to
from routing.features.explain.message_remedy import RemedyFacts
from routing.features.explain.message_search import find_dialog, find_stored
from routing.features.explain.questions import (
    DESCRIBED_ID,
    DescribedMessage,
    Question,
    QuestionError,
    StoredMessage,
)
from routing.features.explain.request_path import OtherInstances
from routing.schemas import MESSAGES
from routing.tables.table_columns import TableColumns
from routing.tables.times import micros_of


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
    message_values: Row = {
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
