"""`TrafficTable` with Spark: each count is a hash aggregate, which exchanges only groups."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routing.engines.traffic_tables import (
    SENT_KEY,
    BalancedDialogs,
    BalancedTarget,
    RouteUse,
    SentKey,
    TimePoint,
    TimeSpans,
    TrafficTable,
)
from routing.rules.text import fold
from routing.schemas import INPUTS, KEYS, ColumnKind, Field, Schema
from routing.tables import spark_forms
from routing.tables.cached_frames import small_side
from routing.tables.frames import collect, frame_of_tuples, where_in
from routing.tables.spark_forms import conform, is_missing, is_utf8, last_rows, readable
from routing.tables.table_columns import ALL, COUNT, Filter, TableColumns
from routing.terms import MSDB, MatchingStep, ReadRow

# The columns that decide a message, apart from its time. Rows that are equal in all of these get the same
# decision. The first columns give the order in which messages ask for routes.
_DECIDING = ("message_id", "conversation_id", "role", "database_name", "to_broker_instance")
_USE = ("instance_name", "database_name", "rerouted_from")
_SERVICE = ("instance_name", "to_service_name")
_SCOPE = ("instance_name", "searched", "to_service_name")
_SPANS = Schema(
    (*(Field(n, ColumnKind.STRING) for n in _SCOPE), *(Field(n, ColumnKind.BIGINT) for n in ("since", "until")))
)
_ENDED = Schema(
    (
        *(Field(name, ColumnKind.STRING) for name in SENT_KEY[:-1]),
        *(Field("is_initiator", ColumnKind.BOOLEAN), Field("ending", ColumnKind.STRING)),
    )
)
_GROUP = ("instance_name", "database_name", "far_service", "conversation_group_id")


@dataclass(frozen=True)
class SparkTraffic:
    """The rows of a DataFrame. ``source`` is the original table."""

    source: DataFrame
    frame: DataFrame

    @classmethod
    def of(cls, table: DataFrame, key: str | None) -> SparkTraffic:
        """Open a table in the declared columns of table ``key``. Raises InputError."""
        return cls(table, table if key is None else conform(table, key))

    def rows(
        self,
        names: Sequence[str] | None = None,
        *,
        only: Filter = ALL,
        same: ReadRow = ALL,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> TableColumns:
        """Return the first rows in an order. Spark sorts and limits in one step, so partitions return few rows."""
        rows = where_in(self.frame, only)
        for name, value in same.items():
            rows = rows.where(_equals(name, value))
        if order:
            rows = rows.orderBy(*(F.asc_nulls_last(name) for name in order))
        rows = rows if limit is None else rows.limit(limit)
        return collect(rows if names is None else rows.select(*names))

    def count(self, present: Sequence[str] = ()) -> int:
        """Count the rows with a value in each of some columns."""
        return (self.frame.dropna(subset=list(present)) if present else self.frame).count()

    def groups(
        self,
        by: Sequence[str],
        *,
        least: Sequence[str] = (),
        most: Sequence[str] = (),
        varying: str | None = None,
        only: Filter = ALL,
    ) -> SparkTraffic:
        """Count the rows of each group."""
        counts = [F.count(F.lit(1)).alias(COUNT)]
        counts += [F.min(name).alias(f"min_{name}") for name in least]
        counts += [F.max(name).alias(f"max_{name}") for name in most]
        if varying is not None:
            counts.append((F.min(varying) != F.max(varying)).alias("_varies"))
        groups = where_in(self.frame, only).groupBy(*by).agg(*counts)
        return self._with(groups if varying is None else groups.where("_varies").drop("_varies"))

    def last_attempts(self, names: Sequence[str]) -> SparkTraffic:
        """Return the last row of each message. The statistics of files usually show that these are all rows."""
        is_tried_again = self.frame.where(F.col("attempt") > 1).limit(1).count()
        return self._with(last_rows(self.frame) if is_tried_again else self.frame)

    def matching(
        self,
        keys: TrafficTable | TableColumns,
        on: Sequence[str],
        *,
        names: Sequence[str],
        only: Filter = ALL,
    ) -> SparkTraffic:
        """Return the rows that match a key. A small set of keys is broadcast."""
        if isinstance(keys, SparkTraffic):
            key_frame = keys.frame.select(*on)
        elif isinstance(keys, TableColumns):
            key_frame = small_side(self._frame_of(keys, on))
        else:
            key_frame = self._frame_of(keys.rows(on), on)
        # A semi join keeps a row once even if its key occurs several times.
        return self._with(where_in(self.frame, only).join(key_frame, list(on), how="left_semi").select(*names))

    def _frame_of(self, keys: TableColumns, on: Sequence[str]) -> DataFrame:
        kinds = {name: ColumnKind(self.frame.schema[name].dataType.simpleString()) for name in on}
        shape = Schema(tuple(Field(name, kind) for name, kind in kinds.items()))
        return frame_of_tuples(self.frame.sparkSession, keys.rows(*on), shape)

    def folded(
        self, name: str, wanted: Collection[str], *, only: Filter = ALL, names: Sequence[str] | None = None
    ) -> SparkTraffic:
        """Return the rows with one of some folded texts in a column. The texts must be ASCII, as ids are."""
        rows, text = where_in(self.frame, only), F.lower(name)
        if len(wanted) < 2:
            rows = rows.where(text.isin(list(wanted)))
        else:
            shape = Schema((Field("wanted", ColumnKind.STRING),))
            texts = frame_of_tuples(self.frame.sparkSession, ((text,) for text in sorted(wanted)), shape)
            # The texts come from one part of messages, so they are few enough for a broadcast.
            rows = rows.join(small_side(texts), text == F.col("wanted"), how="left_semi")
        return self._with(rows if names is None else rows.select(*names))

    def in_asking_order(self, only: Filter, as_of: int | None, sizes: Iterator[int]) -> Iterator[TableColumns]:
        """Yield messages in parts, which Spark sorts and limits."""
        placed = where_in(self.frame, only).withColumn("_place", _place(as_of)).where("_place.t IS NOT NULL")
        remaining = placed
        while True:
            size = next(sizes)
            part = collect(remaining.orderBy("_place").limit(size).drop("_place"))
            yield part
            if len(part) < size:
                return
            last = max(_place_of(row, as_of) for row in part.dicts())
            remaining = placed.where(F.col("_place") > _literal(last))

    def doubtful_rows(self, key: str, now: int) -> TableColumns:
        """Return the rows with faults or a duplicate key, and the dialogs that share a conversation group."""
        if key != "dialogs":
            return collect(self.frame.where(_is_faulty(key)))
        same = [F.lower(name) if name == "conversation_id" else F.col(name) for name in KEYS[key]]
        in_group = F.col("is_initiator") & (F.col("far_service") != "") & (F.col("conversation_group_id") != "")
        marks = {
            "_doubled": _are_many(F.lit(True), same),
            "_grouped": _are_many(in_group, [F.col(name) for name in _GROUP]),
        }
        doubtful = _is_faulty(key) | F.col("_doubled") | (in_group & F.col("_grouped"))
        return collect(self.frame.withColumns(marks).where(doubtful).drop(*marks))

    def route_uses(self) -> Iterable[RouteUse]:
        """Return the distinct routes of messages, with their places."""
        alternatives = F.coalesce(F.transform("alternative_routes", lambda route: route["route_name"]), F.array())
        names = F.explode(F.concat(F.array("route_name"), alternatives)).alias("route_name")
        return map(RouteUse._make, collect(self.frame.select(*_USE, names).distinct()).rows(*_USE, "route_name"))

    def points(
        self,
        step: int,
        services: Sequence[tuple[str, str]],
        instances: Sequence[str],
        endings: Mapping[SentKey, str],
    ) -> Iterator[TimePoint]:
        """Count the messages of each time step."""
        spark = self.frame.sparkSession
        shape = Schema(tuple(Field(name, ColumnKind.STRING) for name in (*_SERVICE, "service")))
        pairs = ((instance, service, service) for instance, service in services)
        separate_services = small_side(frame_of_tuples(spark, pairs, shape))
        # Each service occurs once in ``separate_services``.
        rows = self.frame.select(*SENT_KEY, "decided_at").join(separate_services, list(_SERVICE), how="left")
        if endings:
            # A broker instance or an address may be null on both sides.
            ended = frame_of_tuples(spark, ((*key, ending) for key, ending in endings.items()), _ENDED)
            ended = ended.select(*(F.col(name).alias(f"_{name}") for name in SENT_KEY), "ending")
            is_alike = reduce(operator.and_, (rows[name].eqNullSafe(ended[f"_{name}"]) for name in SENT_KEY))
            rows = rows.join(ended, is_alike, how="left")
        decided, instance = F.unix_micros("decided_at"), F.col("instance_name")
        by = {
            "at": decided - F.pmod(decided, F.lit(step)),
            "instance": F.when(instance.isin(list(instances)), instance),
            "service": F.col("service"),
            "outcome": F.col("outcome"),
            "ending": F.col("ending") if endings else F.lit(None).cast("string"),
        }
        groups = rows.groupBy(*(value.alias(name) for name, value in by.items()))
        counted = collect(groups.agg(F.count(F.lit(1)).alias(COUNT)))
        return map(TimePoint._make, counted.rows("at", "instance", "service", "outcome", COUNT, "ending"))

    def balanced_dialogs(self, spans: TimeSpans) -> BalancedDialogs:
        """Count the dialogs that were balanced to each broker instance."""
        if not spans:
            return {}
        limits = ((*scope, *span) for scope, span in spans.items())
        limited = small_side(frame_of_tuples(self.frame.sparkSession, limits, _SPANS))
        # For messages that arrive, or come back from the instance's own address, the routes of msdb are searched.
        is_sent = F.col("database_name").isNotNull() & F.col("rerouted_from").isNull()
        searched = F.when(is_sent, F.col("database_name")).otherwise(F.lit(MSDB))
        balanced = self.frame.where(F.col("matching_step") == int(MatchingStep.BALANCED))
        # Each scope and service has one time span.
        rows = balanced.withColumn("searched", searched).join(limited, list(_SCOPE), how="inner")
        decided = F.unix_micros("decided_at")
        is_begun = F.coalesce(decided >= F.col("since"), F.lit(True))
        is_not_over = F.coalesce(decided < F.col("until"), F.lit(True))
        dialogs = rows.where(is_begun & is_not_over).groupBy(*_SCOPE, "broker_instance")
        counted = collect(dialogs.agg(F.count_distinct("conversation_id").alias("dialogs")))
        groups = counted.rows(*_SCOPE, "broker_instance", "dialogs")
        return {BalancedTarget(*target): count for *target, count in groups}

    def _with(self, frame: DataFrame) -> SparkTraffic:
        return SparkTraffic(self.source, frame)


def _equals(name: str, value: Any) -> Column:
    """Return whether a column has a value, where null equals empty text."""
    if isinstance(value, bool):
        return F.col(name).eqNullSafe(F.lit(value))
    return F.coalesce(readable(F.col(name).cast("string")), F.lit("")) == (value or "")


def _is_faulty(key: str) -> Column:
    """Return whether a row lacks a required value or has text that is not UTF-8."""
    texts = [field.name for field in INPUTS[key] if field.kind == ColumnKind.STRING]
    missing = (is_missing(field.name, field.kind) for field in INPUTS[key] if not field.nullable)
    # One check of the joined texts needs less code. The blanks between texts cannot complete a character.
    return reduce(operator.or_, missing, ~is_utf8(F.concat_ws(" ", *texts)))


def _are_many(rows: Column, columns: list[Column]) -> Column:
    """Return whether several of the marked rows are equal in some columns."""
    return F.count(F.when(rows, 1)).over(Window.partitionBy(*columns)) > 1


def _place(as_of: int | None) -> Column:
    """Return a message's position in the asking order: t, its id, and the other facts that decide it."""
    t = F.unix_micros(F.coalesce("observed_at", "enqueue_time")) if as_of is None else F.lit(as_of).cast("long")
    read = {"conversation_id": spark_forms.conversation_id(F.col("conversation_id"))}
    read["role"] = F.when(F.col("is_initiator"), "1").otherwise("0")
    texts = [F.coalesce(read.get(name, F.col(name)), F.lit("")).alias(name) for name in _DECIDING]
    return F.struct(t.alias("t"), *texts)


def _place_of(row: ReadRow, as_of: int | None) -> tuple[Any, ...]:
    """Return the position of a collected row. Python and Spark both compare texts by their code points."""
    first_observed = row["enqueue_time"] if row["observed_at"] is None else row["observed_at"]
    read = {"conversation_id": fold(row["conversation_id"] or ""), "role": "1" if row["is_initiator"] else "0"}
    texts = ((read[name] if name in read else row[name]) or "" for name in _DECIDING)
    return first_observed if as_of is None else as_of, *texts


def _literal(place: tuple[Any, ...]) -> Column:
    t, *texts = place
    named = [F.lit(text).alias(name) for name, text in zip(_DECIDING, texts, strict=True)]
    return F.struct(F.lit(t).cast("long").alias("t"), *named)
