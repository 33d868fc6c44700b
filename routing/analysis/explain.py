"""Explain where one message goes, and why: the rule book's path of it, from the code that resolves them all.

`explain` asks one question; `explained` is the same for a frame of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegerType, LongType

from routing import text
from routing.analysis.explaining import path
from routing.analysis.explaining.asked import DESCRIBED_ID, Described, Question, QuestionError, Stored
from routing.analysis.explaining.judging import MARKS, judged
from routing.compiling import Compiled, Options, checked, conformed
from routing.conform import conform
from routing.keeping import held_together, released_on_failure
from routing.schemas import INPUTS, MESSAGES
from routing.terms import BROKER_CONFIGURATION_SERVICE, DEFAULT_BROADCAST_LIMIT

# The run_id of verdicts: no run wrote them.
RUN_ID = "explain"
_SHOWN_INSTANCES = 20
_TIMES = ("enqueue_time", "observed_at")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# A row of messages, its times in microseconds since 1970.
_Message = Mapping[str, Any]
# How many letters a name may differ in to be the one that was meant.
_SLIPS = 2


@dataclass(frozen=True)
class Explanation:
    """verdict: question and the columns of resolved_routes; steps: the path in the schema `lines.STEPS`.

    Both are sorted. A column of the verdict is null where it depends on a dialog that was not given. The frames
    share what the session keeps until `unpersist`.
    """

    verdict: DataFrame
    steps: DataFrame
    job: Compiled

    def unpersist(self) -> None:
        """Let go of what was kept for these frames."""
        self.job.keeper.release()


def explain(
    spark: SparkSession,
    tables: Mapping[str, DataFrame],
    question: Question,
    *,
    as_of: datetime | None = None,
    dialog_hash: str = "builtin",
) -> Explanation:
    """Explain one message: the verdict of `resolve`, and the path to it.

    ``tables`` are those of `resolve`; of each only the rows of the message's instance are read. ``as_of`` is the
    one decision time of a run that has one; the question's own time wins, and a described message always has
    one. Raises QuestionError where no such message, instance or database is there or the message would be
    rejected, InputError where a table breaks its contract.
    """
    frames = conformed(tables)
    if isinstance(question, Stored):
        message, as_of = _stored(frames["messages"], question), question.at or as_of
    else:
        message, as_of = _described(question), None
    near = _concerning(frames, message)
    if isinstance(question, Described):
        _check_names(frames, near, question)
    any_dialog = isinstance(question, Described) and question.conversation_id is None
    marks = {"question": 1, "is_described": isinstance(question, Described), "any_dialog": any_dialog}
    questions = _one_row(spark, message).withColumns({name: F.lit(value) for name, value in marks.items()})
    done = explained(near, questions, as_of=as_of, dialog_hash=dialog_hash)
    if not done.verdict.limit(1).collect():
        rejected = done.job.rejected().where(F.col("message_id") == message["message_id"]).limit(1).collect()
        done.unpersist()
        raise QuestionError.rejected(rejected[0]["reasons"])
    return done


def explained(
    tables: Mapping[str, DataFrame],
    questions: DataFrame,
    *,
    as_of: datetime | None = None,
    dialog_hash: str = "builtin",
) -> Explanation:
    """Explain many messages in one job.

    ``questions`` has the columns of messages and `judging.MARKS` (question, an int that numbers them,
    is_described, any_dialog). The messages of ``tables`` are those that may have asked for a route before
    (rule book, section 5); one that is questioned may stand among them. A message that `resolve` would reject has
    no rows. Raises InputError where a table breaks its contract.
    """
    known = checked(conformed(tables))
    columns = [F.col(name) for name in MARKS]
    asked = questions.select(*(F.col(name) for name in MESSAGES.names), *columns)
    moment = as_of if as_of is None or as_of.tzinfo else as_of.replace(tzinfo=timezone.utc)
    options = Options(
        run_id=RUN_ID, as_of=moment, dialog_hash=dialog_hash, broadcast_limit=DEFAULT_BROADCAST_LIMIT
    )
    with released_on_failure() as keeper:
        found = judged(known, asked, options, keeper)
        steps = path.steps(found, is_as_of=moment is not None)
    return Explanation(found.verdicts.orderBy("question"), steps, found.job)


def _stored(messages: DataFrame, question: Stored) -> _Message:
    """The row of the one message that a question means. Raises QuestionError."""
    found = messages.where(F.col("message_id") == question.message_id)
    if question.instance_name is not None:
        found = found.where(F.col("instance_name") == question.instance_name)
    micros = {name: F.unix_micros(name) for name in _TIMES}
    # Ordered and cut, each partition gives its first rows, in one job.
    rows = found.withColumns(micros).orderBy("instance_name").limit(_SHOWN_INSTANCES).collect()
    if not rows:
        raise QuestionError.unknown_message(question.message_id, question.instance_name)
    names = sorted({str(row["instance_name"]) for row in rows})
    if len(names) > 1:
        raise QuestionError.ambiguous(question.message_id, names)
    if len(rows) > 1:
        raise QuestionError.doubled(question.message_id, names[0])
    return rows[0].asDict()


def _check_names(frames: Mapping[str, DataFrame], near: Mapping[str, DataFrame], question: Described) -> None:
    """Whether the instance and the database of a description are listed. Raises QuestionError.

    ``near`` holds the rows of the instance; the tables are asked for the name that was meant.
    """
    if not near["instances"].select("instance_name").limit(1).collect():
        names = frames["instances"].select(F.col("instance_name").alias("name"))
        raise _unknown_name(names, "instance", question.instance_name)
    if question.database_name is not None:
        databases = near["databases"].select("name")
        if not databases.where(F.col("name") == question.database_name).limit(1).collect():
            where = f" on instance {question.instance_name!r}"
            raise _unknown_name(databases, "database", question.database_name, where)


def _unknown_name(names: DataFrame, what: str, name: str, where: str = "") -> QuestionError:
    distance = F.levenshtein(F.lower(F.trim("name")), F.lower(F.trim(F.lit(name))))
    near = names.select("name", distance.alias("distance")).where(F.col("distance") <= _SLIPS)
    rows = near.orderBy("distance", "name").limit(1).collect()
    return QuestionError.unknown_name(what, name, rows[0]["name"] if rows else None, where)


def _described(question: Described) -> _Message:
    at = question.at if question.at.tzinfo else question.at.replace(tzinfo=timezone.utc)
    return {
        "message_id": DESCRIBED_ID,
        "conversation_id": question.conversation_id,
        "is_initiator": not question.is_target,
        "enqueue_time": (at - _EPOCH) // timedelta(microseconds=1),
        "instance_name": question.instance_name,
        "database_name": question.database_name,
        "to_service_name": question.to_service_name,
        "to_broker_instance": question.to_broker_instance,
    }


def _one_row(spark: SparkSession, message: _Message) -> DataFrame:
    """A row of messages as a frame of its own, so that its table is not read again."""

    def value(name: str) -> Column:
        given = F.lit(message.get(name))
        return F.timestamp_micros(given.cast("long")) if name in _TIMES else given

    return conform(
        spark.range(1).select(*(value(f.name).cast(_wide(f.dataType)).alias(f.name) for f in MESSAGES)), "messages"
    )


def _wide(kind: DataType) -> DataType:
    """As `conform` reads it: an integer that does not fit is the message's own fault, told as its rejection."""
    return LongType() if isinstance(kind, IntegerType) else kind


def _concerning(frames: Mapping[str, DataFrame], message: _Message) -> dict[str, DataFrame]:
    """The rows of each table that can matter to a message, all of its instance, read by one query.

    Other messages matter where a scope has a route for the BrokerConfiguration service: those for the same
    service may have asked for it before (section 5). Then all dialogs of the instance matter, which bind them;
    else those of the message's conversation.
    """
    is_here = F.col("instance_name") == F.lit(message["instance_name"])
    here = {key: frames[key].where(is_here) for key in INPUTS if key in frames}
    messages, dialogs = here.pop("messages"), here.get("dialogs")
    if dialogs is not None:
        mine = text.conversation_id(F.lit(message["conversation_id"]))
        here["dialogs"] = dialogs.where(text.conversation_id(F.col("conversation_id")) == mine)
    near = held_together(here)
    asks = near["routes"].where(F.col("remote_service_name") == BROKER_CONFIGURATION_SERVICE)
    if not asks.select("name").limit(1).collect():
        return {**near, "messages": messages.limit(0)}
    near["messages"] = messages.where(F.col("to_service_name") == F.lit(message["to_service_name"]))
    return near if dialogs is None else {**near, "dialogs": dialogs}
