"""Whether a session keeps frames (`persist`), and letting go of what it keeps."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from routing.errors import condition, is_refusal
from routing.sessions.session import is_connect
from routing.sessions.settings import find_setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Without it a kept frame has as many partitions as its last Exchange, 200 by default: a task each, for a few rows.
_FEW_PARTITIONS = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
_settings_lock = Lock()
# What the errors of a session are called once it has ended.
_ENDED = ("INVALID_HANDLE", "NO_ACTIVE_SESSION")
# Whether sessions of Spark Connect keep frames, as far as it was tried.
_tried: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


def takes_persist(spark: SparkSession) -> bool:
    """Whether a session keeps frames, found out once by trying: Spark does, serverless compute refuses."""
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


def let_go(kept: DataFrame) -> None:
    """Have a frame kept no longer; a session that has ended keeps none."""
    from pyspark.errors import PySparkException

    try:
        kept.unpersist()
    except PySparkException as error:
        if condition(error).partition(".")[0] not in _ENDED:
            raise


def persist(frame: DataFrame) -> DataFrame:
    """Keep a frame in as many partitions as its rows need, whatever the session's number of shuffle partitions.

    Spark reads the setting when it is told to keep the frame; the session has its own value again afterwards.
    """
    from pyspark.errors import PySparkException

    spark = frame.sparkSession
    with _settings_lock:
        before = find_setting(spark, _FEW_PARTITIONS)
        try:
            spark.conf.set(_FEW_PARTITIONS, "true")
        except PySparkException as error:
            if not is_refusal(error):
                raise
            return frame.persist()
        try:
            return frame.persist()
        finally:
            if before is None:
                spark.conf.unset(_FEW_PARTITIONS)
            else:
                spark.conf.set(_FEW_PARTITIONS, before)
