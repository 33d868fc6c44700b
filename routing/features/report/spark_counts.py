"""Messages counted where Spark has them: each count is one aggregate by hash, which exchanges groups alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from routing.features.report.facts import MessageFlow, TimePoint
from routing.features.report.scale import DECIDED, ENQUEUED, FLOW, POINT, CountedFlows, Dialogs, ReportScale, Spans
from routing.schemas import ColumnKind, Field, Schema
from routing.tables.broadcast_joins import small_side
from routing.tables.frames import collect, frame_of_tuples
from routing.tables.spark_forms import last_rows
from routing.terms import MSDB, MatchingStep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_INSTANCE, _SERVICE, _OUTCOME = POINT
_SERVICES = Schema(
    (Field(_INSTANCE, ColumnKind.STRING), Field(_SERVICE, ColumnKind.STRING), Field("told", ColumnKind.STRING))
)
_SCOPE = (_INSTANCE, "searched", _SERVICE)
_SPANS = Schema(
    (*(Field(n, ColumnKind.STRING) for n in _SCOPE), *(Field(n, ColumnKind.BIGINT) for n in ("since", "until")))
)


@dataclass(frozen=True)
class SparkMessages:
    """The rows that stand."""

    rows: DataFrame

    @classmethod
    def of(cls, resolved: DataFrame) -> SparkMessages:
        """Open the messages of a table ``resolved_routes``; mostly all rows, which its statistics tell."""
        is_tried_again = resolved.where(F.col("attempt") > 1).limit(1).count()
        return cls(last_rows(resolved) if is_tried_again else resolved)

    def count_flows(self) -> CountedFlows:
        """Count as `ArrowMessages.count_flows` does."""
        counts = (F.count(F.lit(1)), F.min(ENQUEUED), F.min(DECIDED), F.max(DECIDED))
        names = ("messages", "oldest", "first", "last")
        named = (count.alias(name) for count, name in zip(counts, names, strict=True))
        found = collect(self.rows.groupBy(*FLOW).agg(*named))
        flows = [MessageFlow(*values) for values in found.rows(*FLOW, *names[:2])]
        first, last = found.values["first"], found.values["last"]
        return CountedFlows(flows, min(first, default=None), max(last, default=None))

    def count_points(self, scale: ReportScale) -> list[TimePoint]:
        """Count as `ArrowMessages.count_points` does."""
        told = [(instance, service, service) for instance, service in scale.services]
        services = small_side(frame_of_tuples(self.rows.sparkSession, told, _SERVICES))
        # A service stands there once.
        rows = self.rows.select(*POINT, DECIDED).join(services, [_INSTANCE, _SERVICE], how="left")
        decided = F.unix_micros(DECIDED)
        points = {
            "at": decided - F.pmod(decided, F.lit(scale.step)),
            "instance": F.when(F.col(_INSTANCE).isin(list(scale.instances)), F.col(_INSTANCE)),
            "service": F.col("told"),
            "outcome": F.col(_OUTCOME),
        }
        groups = rows.groupBy(*(value.alias(name) for name, value in points.items()))
        found = collect(groups.agg(F.count(F.lit(1)).alias("messages")))
        return [TimePoint(*values) for values in found.rows(*points, "messages")]

    def count_dialogs(self, spans: Spans) -> Dialogs:
        """Count as `ArrowMessages.count_dialogs` does."""
        if not spans:
            return {}
        given = ((*scope, *bounds) for scope, bounds in spans.items())
        bounds = small_side(frame_of_tuples(self.rows.sparkSession, given, _SPANS))
        # What arrives, and what comes back from its own address, searches the routes of msdb.
        is_own = F.col("database_name").isNotNull() & F.col("rerouted_from").isNull()
        searched = F.when(is_own, F.col("database_name")).otherwise(F.lit(MSDB))
        balanced = self.rows.where(F.col("matching_step") == int(MatchingStep.BALANCED))
        rows = balanced.withColumn("searched", searched).join(bounds, list(_SCOPE), how="inner")
        decided = F.unix_micros(DECIDED)
        is_begun = F.coalesce(decided >= F.col("since"), F.lit(True))
        is_not_over = F.coalesce(decided < F.col("until"), F.lit(True))
        dialogs = rows.where(is_begun & is_not_over).groupBy(*_SCOPE, "broker_instance")
        found = collect(dialogs.agg(F.count_distinct("conversation_id").alias("dialogs")))
        return {tuple(name): count for *name, count in found.rows(*_SCOPE, "broker_instance", "dialogs")}
