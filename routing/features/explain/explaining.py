"""Explain where one message goes, and why: the rule book's path of it, by the rules that resolve them all.

`explain` reads what it needs of tables; `answer` is the same for what is known already, in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from routing.config import Config
from routing.features.check.stuck_groups import MessageRemedy
from routing.features.explain import lines
from routing.features.explain.background import NOTHING, MessageBackground
from routing.features.explain.explained_tables import open_source
from routing.features.explain.judging import QuestionedMessage, judge_question
from routing.features.explain.known_tables import KnownTables
from routing.features.explain.looking_up import pose
from routing.features.explain.message_remedy import RemedyFacts, find_remedy
from routing.features.explain.path import path
from routing.features.explain.questions import Question
from routing.features.explain.verdict_row import verdict_row
from routing.importing.moments import latest_time
from routing.schemas import EXPLAINED_STEPS, RESOLVED_ROUTES
from routing.tables.schema_rows import SchemaRows
from routing.tables.table_columns import Table
from routing.tables.times import micros_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        SchemaRows(EXPLAINED_STEPS, lines.number_lines(path_lines)),
        remedy=None if read_facts is None else find_remedy(judged, read_facts),
    )
