"""Explain where one message goes, and why: the rule book's path of it, by the rules that resolve them all.

`explain` reads what it needs of tables; `answer` is the same for what is known already, in plain Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from routing.analysis.explain import lines
from routing.analysis.explain.asked import DESCRIBED_ID, Described, Question, QuestionError, Stored
from routing.analysis.explain.background import NOTHING, Background
from routing.analysis.explain.finding import find_dialog, find_stored
from routing.analysis.explain.judging import Asked, judge_question
from routing.analysis.explain.known import Known, Row, narrow_to
from routing.analysis.explain.path import path
from routing.analysis.explain.reading import Source
from routing.analysis.explain.verdicts import verdict_row
from routing.config import Config
from routing.schemas import EXPLAINED_STEPS, INPUTS, MESSAGES, RESOLVED_ROUTES
from routing.sessions import session
from routing.storage.columns import Columns, Table
from routing.storage.opening import Opener
from routing.storage.rows import Rows
from routing.storage.times import micros_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Explanation:
    """verdict: one row, the columns of resolved_routes; steps: the path, in the schema `schemas.EXPLAINED_STEPS`.

    A column of the verdict is null where it depends on a dialog that was not given. ``others``: where a
    conversation was asked about, how many more messages are stored of the end that this one is of.
    """

    verdict: Rows
    steps: Rows
    others: int = 0


def explain(
    tables: Mapping[str, Table] | Config,
    question: Question,
    *,
    as_of: datetime | None = None,
    spark: SparkSession | None = None,
) -> Explanation:
    """Explain one message: the verdict of `resolve`, and the path to it.

    ``tables`` are those of `resolve` and, where there are any, those that import keeps (`schemas.KEPT`), as
    DataFrames, Arrow tables or datasets, or a configuration: then each table that it names is opened at its newest
    version as `Opener` does it, by ``spark`` where a session is needed, or one that is started for it. Of each
    table only the rows of the message's instance are read, and checked. ``as_of`` is the one decision time of a
    run that has one (a configuration brings its own); the question's own time wins, and a described message always
    has one. Raises QuestionError where no such message, instance or database is there or the message would be
    rejected, InputError where a table breaks its contract.
    """
    if isinstance(tables, Config):
        settings, as_of = tables, as_of or tables.resolve.as_of
        opener = (
            Opener.of_session(spark) if spark else Opener(lambda: session.start(settings.spark), settings.spark)
        )
        tables = open_tables(settings, opener)
    source = Source.of(tables)
    others = 0
    if isinstance(question, Stored):
        found, moment = find_stored(source, question), question.at or as_of
        asked = Asked(found.row, is_described=False, as_of=None if moment is None else micros_of(moment))
        others = found.others
    else:
        asked = _describe(question, find_dialog(source, question))
    near = source.read_near(asked.row)
    if isinstance(question, Described):
        _check_names(source, near, question)
    kept = source.read_kept(asked.row, is_described=asked.is_described)
    known = Known.of_columns(narrow_to(near, asked.row), source.chunks(asked.as_of))
    return replace(answer(asked, known, Background.of_columns(near, kept)), others=others)


def open_tables(settings: Config, opener: Opener) -> dict[str, Table]:
    """Every input that a configuration names, each at its newest version, and what import keeps if it is there.

    Raises InputError where an input is missing.
    """
    inputs = opener.open({key: settings.tables[key] for key in INPUTS if key in settings.tables})
    found = {key: opener.find(f"tables.{key}", location) for key, location in settings.kept.items()}
    return {**inputs, **{key: opened.rows for key, opened in found.items() if opened is not None}}


def answer(asked: Asked, known: Known, background: Background = NOTHING) -> Explanation:
    """Explain a message by what is known. Raises QuestionError where a run would reject it."""
    found = judge_question(asked, known)
    verdict = verdict_row(found)
    told = path(found, known.instances[found.message.instance], verdict, background)
    return Explanation(
        Rows(RESOLVED_ROUTES.optional(), (verdict,)), Rows(EXPLAINED_STEPS, lines.number_lines(told))
    )


def _describe(question: Described, conversation_id: str | None) -> Asked:
    given: Row = {
        "message_id": DESCRIBED_ID,
        "conversation_id": conversation_id,
        "is_initiator": not question.is_target,
        "enqueue_time": micros_of(question.at),
        "instance_name": question.instance_name,
        "database_name": question.database_name,
        "to_service_name": question.to_service_name,
        "to_broker_instance": question.to_broker_instance,
    }
    return Asked({**dict.fromkeys(MESSAGES.names), **given}, is_described=True)


def _check_names(source: Source, near: Mapping[str, Columns], question: Described) -> None:
    """Whether the instance and the database of a description are listed. Raises QuestionError."""
    instance, database = question.instance_name, question.database_name
    if not len(near["instances"]):
        raise QuestionError.unknown_name("instance", instance, source.instance_names())
    names = near["databases"].values["name"]
    if database is not None and database not in names:
        raise QuestionError.unknown_name("database", database, names, f" on instance {instance!r}")
