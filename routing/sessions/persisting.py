"""Whether a session keeps frames (`persist`), and letting go of what it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from routing.errors import condition, is_refusal
from routing.sessions.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What the errors of a session are called once it has ended.
_ENDED = ("INVALID_HANDLE", "NO_ACTIVE_SESSION")
# Whether sessions of Spark Connect keep frames, as far as it was tried.
_tried: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


def takes_persist(spark: SparkSession) -> bool:
    """Return True if a session keeps frames, found out once by trying: Spark does, serverless compute refuses."""
    if not is_connect(spark):
        return True
    if spark not in _tried:
        _tried[spark] = _try_to_persist(spark)
    return _tried[spark]


def _try_to_persist(spark: SparkSession) -> bool:
    from pyspark.errors import PySparkException

    # A session knows kept frames by what they are made of: this one is nobody else's.
    frame = spark.createDataFrame([("whether this session keeps frames",)], "asked string")
    try:
        frame.persist()
        frame.count()
        frame.unpersist()
    except PySparkException as error:
        if not is_refusal(error):
            raise
        return False
    return True


def let_go(cached_frame: DataFrame) -> None:
    """Release a cached frame; a session that has ended keeps none."""
    from pyspark.errors import PySparkException

    try:
        cached_frame.unpersist()
    except PySparkException as error:
        if condition(error).partition(".")[0] not in _ENDED:
            raise
