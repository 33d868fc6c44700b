"""Call a function for the commits of a Delta table, as a query of Structured Streaming."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from routing.config import TableLocation
from routing.tables import sql_statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


def watch_commits(
    spark: SparkSession,
    location: TableLocation,
    checkpoint: str,
    trigger: Mapping[str, object] | None,
    on_commits: Callable[[], None],
) -> StreamingQuery:
    """Start a query that calls a function for each batch of new commits, and return it.

    Commits that rewrite rows are skipped. No row is read: Spark only lists the files of a batch.
    """
    reader = spark.readStream.format("delta").option("skipChangeCommits", "true")
    rows = sql_statements.read_named(reader, location) if location.is_name else reader.load(location.text)

    def call(_: DataFrame, batch_id: int) -> None:
        on_commits()

    writer = rows.writeStream.foreachBatch(call).option("checkpointLocation", checkpoint)
    options: Any = trigger
    return (writer if trigger is None else writer.trigger(**options)).start()
