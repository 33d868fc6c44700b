"""Reconcile observations in Spark. The rules are asked once for all equal episodes.

A question has the relevant facts of an episode: the side without its conversation, the answer, the broker
instance, the interval between changes of its routes, and the dialog-ID hash modulo the number of picks. One
episode for each question goes to the driver, and the answers come back as a small frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routing.delta.ledger import ReplacedOutput
from routing.errors import InputError
from routing.messages import validate
from routing.plan.checked_inputs import network_of
from routing.plan.verdicts import MessageJudge
from routing.rules.resolving import DIALOG_COLUMNS
from routing.schemas import OBSERVED_ROUTING, RECONCILIATION, ArrayOf, ColumnKind, Field, Schema
from routing.tables import spark_forms
from routing.tables.cached_frames import FrameCache, small_side
from routing.tables.frames import collect, frame_of_tuples
from routing.tables.spark_forms import conform, in_shape, read_brokers
from routing.tables.table_columns import Table, TableColumns
from routing.terms import ReadRow
from routing.views.reconcile.cause_search import CauseSearch
from routing.views.reconcile.episodes import (
    ANSWER,
    APART,
    END,
    EPISODES,
    OF_ARRIVALS,
    ORDER,
    RENAMED,
    SIDE,
    MismatchCause,
    ObservedEpisodes,
    episode_of,
)
from routing.views.reconcile.predicted_episodes import EpisodePredictor, JudgedEpisodes, PredictionColumns

# Observations of a DataFrame are folded into episodes as in `arrow_episodes`, by windows over conversations.


_EPISODE_KEY, _SERVICE = "observed_routing", "to_service_name"
_ALWAYS = tuple(field.name for field in OBSERVED_ROUTING if not field.nullable)
_CONVERSATION = ("instance_name", "conversation_id", "is_initiator")


def fold(observed: DataFrame, messages: DataFrame | None) -> tuple[DataFrame, int]:
    """Return the episodes in the columns of `EPISODES`, and the number of observations.

    ``messages`` are in their declared columns. Raises InputError if a row lacks a required value.
    """
    rows = conform(observed, _EPISODE_KEY)
    lacking = [F.count_if(F.col(name).isNull()).alias(name) for name in _ALWAYS]
    [counts] = rows.agg(F.count(F.lit(1)).alias("rows"), *lacking).collect()
    for name in _ALWAYS:
        if counts[name]:
            raise InputError.without_value(_EPISODE_KEY, name, counts[name])
    return _episodes(_with_services(_read(rows), messages)), int(counts["rows"])


def _read(rows: DataFrame) -> DataFrame:
    is_arrival = F.col("source").isin(list(OF_ARRIVALS)) | F.coalesce("is_from_network", F.lit(False))
    observations = rows.withColumns(
        {
            "is_arrival": is_arrival,
            "observed_at": F.unix_micros("observed_at"),
            "conversation_id": F.lower("conversation_id"),
            _SERVICE: spark_forms.empty_as_null(F.col(_SERVICE)),
        }
    )
    return observations.withColumn(
        "database_name", F.when(~F.col("is_arrival"), spark_forms.empty_as_null(F.col("database_name")))
    )


def _with_services(rows: DataFrame, messages: DataFrame | None) -> DataFrame:
    if messages is not None:
        by_id = ["instance_name", "message_id"]
        # One service for each id.
        services = messages.groupBy(*by_id).agg(F.min(_SERVICE).alias("service"))
        rows = rows.join(services, by_id, how="left").withColumn(_SERVICE, F.coalesce(_SERVICE, "service"))
    alike = Window.partitionBy(*_CONVERSATION)
    return rows.withColumn(_SERVICE, F.coalesce(F.col(_SERVICE), F.min(_SERVICE).over(alike)))


def _episodes(rows: DataFrame) -> DataFrame:
    in_order = [F.asc_nulls_last(name) for name in dict.fromkeys(ORDER)]
    by_side = Window.partitionBy(*SIDE).orderBy(*in_order)
    before = F.lag("observed_at").over(by_side)
    differs = [~F.lag(name).over(by_side).eqNullSafe(F.col(name)) for name in ANSWER]
    begins = before.isNull() | (F.col("observed_at") - before >= APART)
    for differs_in_column in differs:
        begins = begins | differs_in_column
    numbered = rows.withColumns({"begins": begins, "place": F.row_number().over(by_side)})
    so_far = by_side.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    episodes = numbered.withColumn("episode", F.sum(F.col("begins").cast("int")).over(so_far))
    answer_columns = [name for name in EPISODES.names if name in OBSERVED_ROUTING.names and name not in SIDE]
    first = F.min_by(F.struct(*answer_columns), "place").alias("first")
    times = (F.min("observed_at").alias("first_at"), F.max("observed_at").alias("last_at"))
    grouped = episodes.groupBy(*SIDE, "episode").agg(first, *times, F.count(F.lit(1)).alias("observations"))
    return in_shape(grouped, EPISODES, {name: F.col(f"first.{name}") for name in answer_columns})


# Columns of the conversation that do not come from observations.
_OWN = Schema(
    (
        Field("is_named", ColumnKind.BOOLEAN),
        Field("own", ColumnKind.STRING),
        *(Field(name, ColumnKind.STRING) for name in DIALOG_COLUMNS[:2]),
        *(Field(name, ColumnKind.BIGINT) for name in DIALOG_COLUMNS[2:]),
    )
)
_READ = Schema((*EPISODES, *_OWN))
_KEY, _QUESTION = "key", "question"
_VARYING = Schema(
    (
        Field(_KEY, ColumnKind.STRING),
        Field("changes", ArrayOf(ColumnKind.BIGINT)),
        Field("picks", ColumnKind.INT),
        Field("is_single", ColumnKind.BOOLEAN),
    )
)
_TOLD = Schema(
    (
        Field(_QUESTION, ColumnKind.STRING),
        *(Field(f.name, f.kind) for f in RECONCILIATION if f.name in (*PredictionColumns._fields, "class", "why")),
        Field("group", ColumnKind.BIGINT),
    )
)
_CAUSES = Schema(
    (Field("group", ColumnKind.BIGINT), Field("cause", ColumnKind.STRING), Field("cause_text", ColumnKind.STRING))
)


@contextmanager
def open_episodes(
    tables: Mapping[str, Table], settings: Mapping[str, TableColumns], progress: Callable[[str], None]
) -> Iterator[JudgedFrames]:
    """Reconcile DataFrames as `arrow_reconcile.open_episodes` does for Arrow tables. Raises InputError.

    The session caches the episodes during the block, and computes them again for later reads.
    """
    frames: dict[str, Table] = dict(tables)
    messages = conform(frames["messages"], "messages") if "messages" in frames else None
    progress("folding observations")
    episodes, observations = fold(frames["observed_routing"], messages)
    dialogs = conform(frames["dialogs"], "dialogs") if "dialogs" in frames else None
    validate.check(validate.InputTables(settings, frame=dialogs))
    asking = _with_own(episodes, messages, dialogs)
    progress("judging episodes")
    judge = MessageJudge(network_of(settings))
    with FrameCache() as frame_cache:
        asked_episodes = frame_cache.store(asking.withColumn(_KEY, _key()))
        questions = _ask(judge, asked_episodes)
        judged, answers = _judge(judge, questions)
        progress("looking for causes")
        search = CauseSearch(judge.network)
        search.note(judged.groups)
        causes = search.find_causes(judged.groups)
        counted = ObservedEpisodes(observations, _count_unobserved(messages, asked_episodes))
        counted.add(judged.groups, causes, judged.balanced)
        of_groups = [causes.get(group.answers) for group in judged.groups]
        yield JudgedFrames(counted, _rows(questions, answers, of_groups))


@dataclass(frozen=True)
class JudgedFrames:
    """The judged episodes of DataFrames. ``frame`` computes the rows of ``reconciliation``."""

    counted: ObservedEpisodes
    frame: DataFrame

    def replace_output(self, place: ReplacedOutput, metadata: str) -> tuple[DataFrame, int]:
        """Write all rows in place of an output's, and return them with the version that made."""
        return self.frame, place.replace_by_spark(self.frame.sparkSession, self.frame, metadata)

    def make_rows(self) -> DataFrame:
        """Return all rows, lazily."""
        return self.frame


def _with_own(episodes: DataFrame, messages: DataFrame | None, dialogs: DataFrame | None) -> DataFrame:
    nulls = {field.name: F.lit(None).cast(str(field.kind)) for field in _OWN}
    if messages is not None:
        read = read_brokers(messages, own="to_broker_instance")
        ends = _with_conversation_end(read).groupBy(*_prefixed(END)).agg(F.min("own").alias("own"))
        ends = ends if dialogs is not None else ends.where("own IS NOT NULL")
        episodes = _joined(episodes, ends.withColumn("is_named", F.lit(True)))
        del nulls["own"], nulls["is_named"]
    if dialogs is not None:
        mattering = dialogs.where(validate.may_change_decision())
        times = {name: F.unix_micros(name) for name in DIALOG_COLUMNS[2:]}
        own_dialogs = _with_conversation_end(mattering.withColumns(times)).select(*_prefixed(END), *DIALOG_COLUMNS)
        episodes = _joined(episodes, own_dialogs)
        for name in DIALOG_COLUMNS:
            del nulls[name]
    return in_shape(episodes, _READ, nulls)


def _prefixed(names: Sequence[str]) -> list[str]:
    return [f"_{name}" for name in names]


def _with_conversation_end(rows: DataFrame) -> DataFrame:
    ends = {
        "conversation_id": F.lower("conversation_id"),
        "database_name": spark_forms.empty_as_null(F.col("database_name")),
    }
    return rows.withColumns({f"_{name}": ends.get(name, F.col(name)) for name in END})


def _joined(episodes: DataFrame, ends: DataFrame) -> DataFrame:
    """Join episodes with the row of their conversation endpoint. There is at most one."""
    # Null matches null, because arrivals have no database.
    same = [F.col(name).eqNullSafe(F.col(f"_{name}")) for name in END]
    return episodes.join(ends, same, how="left").drop(*_prefixed(END))


def _key() -> Column:
    """Build the text of an episode's facts that are relevant at any time and for any hash."""
    acknowledged_broker = F.when(
        F.col("acknowledged_at") <= F.col("first_at"), F.col("acknowledged_broker_instance")
    )
    values = {
        **{name: F.col(name) for name in SIDE if name != "conversation_id"},
        "is_guid": spark_forms.is_guid(F.col("conversation_id")),
        **{name: F.col(name) for name in ("source", "outcome", "error_number", "next_hop", "to_broker_instance")},
        "says": F.coalesce(F.col("status_text"), F.lit("")) != "",
        "no_hops": F.col("remaining_hop_count") <= 0,
        "lived": F.col("live_time_seconds") >= F.col("time_to_live_seconds"),
        "is_named": F.col("is_named"),
        "own": F.col("own"),
        "acknowledged": acknowledged_broker,
        "far": F.col("far_broker_instance"),
        "is_over": F.col("lifetime") <= F.col("first_at"),
    }
    return F.to_json(F.struct(*(value.alias(name) for name, value in values.items())))


_OF_EPISODES = [f.name for f in RECONCILIATION if RENAMED.get(f.name, f.name) in EPISODES.names]


def _ask(judge: MessageJudge, episodes: DataFrame) -> DataFrame:
    """Return the episodes with their questions."""
    rows = _collect(episodes.groupBy(_KEY).agg(_first()).select(_KEY, "first.*"))
    predictor = EpisodePredictor(judge)
    varying = [(row[_KEY], *predictor.varies(episode_of(row))) for row in rows]
    varying_keys = small_side(frame_of_tuples(episodes.sparkSession, varying, _VARYING))
    # Keys are unique there.
    varying_episodes = episodes.join(varying_keys, _KEY, how="inner")
    span = F.size(F.filter("changes", lambda moment: moment <= F.col("first_at")))
    remainder = F.pmod(spark_forms.hash_dialog_id(F.col("conversation_id")), F.col("picks"))
    single = F.when(F.col("is_single"), F.struct("conversation_id", "first_at"))
    question = F.to_json(
        F.struct(F.col(_KEY), span.alias("span"), remainder.alias("rest"), single.alias("single"))
    )
    return varying_episodes.withColumn(_QUESTION, question).drop(*_VARYING.names)


def _judge(judge: MessageJudge, questions: DataFrame) -> tuple[JudgedEpisodes, DataFrame]:
    """Judge one episode of each question, which counts for all of them.

    Return the judged episodes, and the answers by their questions (columns of `_TOLD`).
    """
    spread = {
        "_episodes": F.count(F.lit(1)),
        "_observations": F.sum("observations"),
        "_since": F.min("first_at"),
        "_until": F.max("first_at"),
    }
    counts = (column.alias(name) for name, column in spread.items())
    examples = questions.groupBy(_QUESTION).agg(_first(), *counts)
    rows = _collect(examples.select(_QUESTION, "first.*", *spread))
    predictor, judged = EpisodePredictor(judge), JudgedEpisodes()
    episodes = [episode_of(row) for row in rows]
    predictor.find_openers(episodes)
    for row, episode in zip(rows, episodes, strict=True):
        judged.add(episode, predictor.predict(episode), *(row[name] for name in spread))
    predictions = judged.predictions
    places = zip(rows, judged.prediction_of, judged.group_of, strict=True)
    predicted = ((row[_QUESTION], *predictions[place], group) for row, place, group in places)
    return judged, frame_of_tuples(questions.sparkSession, predicted, _TOLD)


def _first() -> Column:
    return F.min_by(F.struct(*_READ.names), F.struct("first_at", "conversation_id")).alias("first")


def _collect(rows: DataFrame) -> list[ReadRow]:
    return list(collect(rows).dicts())


def _rows(questions: DataFrame, answers: DataFrame, causes: Sequence[MismatchCause | None]) -> DataFrame:
    """Return the rows of ``reconciliation``. ``causes`` are those of the groups, in their order."""
    numbered = ((group, str(cause.kind), cause.text) for group, cause in enumerate(causes) if cause is not None)
    named = frame_of_tuples(questions.sparkSession, numbered, _CAUSES)
    # Questions and groups are unique there.
    rows = questions.withColumnsRenamed({old: f"_{old}" for old in EPISODES.names})
    rows = rows.join(small_side(answers), _QUESTION, how="inner")
    rows = rows.join(small_side(named), "group", how="left")
    values = {name: F.col(f"_{RENAMED.get(name, name)}") for name in _OF_EPISODES}
    times = {name: F.timestamp_micros(values[name]) for name in ("first_observed_at", "last_observed_at")}
    return in_shape(rows, RECONCILIATION, {**values, **times})


def _count_unobserved(messages: DataFrame | None, episodes: DataFrame) -> int:
    if messages is None:
        return 0
    by = list(_CONVERSATION)
    ends = messages.withColumn("conversation_id", F.lower("conversation_id")).select(*by).distinct()
    return ends.join(episodes.select(*by).distinct(), by, how="left_anti").count()
