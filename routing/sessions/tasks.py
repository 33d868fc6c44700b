"""How far Spark has come with the tasks of what it works at."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from routing.sessions.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def count_tasks(spark: SparkSession) -> Callable[[], tuple[int, int] | None]:
    """Return a function that tells how many tasks of the active stages are done, and how many there are.

    None where no stage is active, and always on Spark Connect, which does not tell. All stages of the application
    are counted, in a session that is shared those of others too. It raises what a session raises that refuses to
    tell, or whose Java has ended.
    """
    if is_connect(spark):
        return lambda: None

    def count() -> tuple[int, int] | None:
        tracker = spark.sparkContext.statusTracker()
        active = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        # One that has ended since.
        stages = [stage for stage in active if stage is not None]
        if not stages:
            return None
        return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)

    return count
