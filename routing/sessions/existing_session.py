"""Ask an existing session what it takes: settings, Python UDFs, cached frames; and how far its tasks are.

Settings are read and set one by one, for a platform may refuse any of them. Serverless compute refuses most: to
set them, and to tell what they are, even with a default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from routing.config import ConfigError
from routing.errors import first_sentence, join_bounded, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# How a session refuses what it is asked for.


def condition(error: BaseException) -> str:
    """Return the error condition that Spark gives its errors, such as PATH_NOT_FOUND; empty where there is none.

    An error of Java that py4j hands on as it is, as of a file that a task does not find, has it within itself or
    in one of its causes.
    """
    get_condition = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    if get_condition is not None:
        return str(get_condition() or "")
    java = getattr(error, "java_exception", None)
    while java is not None:
        java_condition = _condition_in_java(java)
        if java_condition:
            return java_condition
        java = java.getCause()
    return ""


def _condition_in_java(java: Any) -> str:
    from py4j.protocol import Py4JError

    try:
        return str(java.getErrorClass() or "")
    except Py4JError:
        # No error of Spark.
        return ""


# How serverless compute refuses, and any session what it had to begin with; the last one is that of Spark 3.5.
_REFUSED = frozenset(
    (
        "NOT_SUPPORTED_WITH_SERVERLESS",
        "CONFIG_NOT_AVAILABLE",
        "CANNOT_MODIFY_CONFIG",
        "CANNOT_MODIFY_STATIC_CONFIG",
        "_LEGACY_ERROR_TEMP_1325",
    )
)
# The class of SQLSTATE for features that are not supported, in the standard.
_NOT_SUPPORTED = "0A"


def is_refusal(error: BaseException) -> bool:
    """Return True if a session says that it does not do what it was asked for at all; anything else went wrong."""
    state = getattr(error, "getSqlState", None)
    is_unsupported = state is not None and str(state() or "").startswith(_NOT_SUPPORTED)
    return is_unsupported or condition(error).partition(".")[0] in _REFUSED


# Settings.


# True by default on Spark 4.2.0, where a Python UDF over a Delta scan then hangs for ever (SPARK-58241).
COLUMNAR_UDF = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"


def find_setting(spark: SparkSession, key: str) -> str | None:
    """Return a setting as the session has it; None where nobody has set it, or the session does not tell."""
    from pyspark.errors import PySparkException

    try:
        return spark.conf.get(key, None)
    except PySparkException as error:
        if not is_refusal(error):
            raise
        return None


def apply_settings(spark: SparkSession, settings: Mapping[str, str], on_note: Callable[[str], None]) -> None:
    """Set the settings that the session takes, and note in one sentence the others, with reasons.

    No decision depends on a setting; what a run cannot do without is refused where it is used
    (`check_udf`), or fails there. Raises ConfigError for a value that no session takes.
    """
    reasons = {key: _refused(spark, key, value) for key, value in settings.items()}
    refused = [f"{quote(key)} ({why})" for key, why in reasons.items() if why is not None]
    if refused:
        on_note(f"the Spark session has refused {join_bounded(refused, 'setting')}; the command goes on without")


def _refused(spark: SparkSession, key: str, value: str) -> str | None:
    """Return the reason why the session refuses a setting; None where it has it."""
    from pyspark.errors import IllegalArgumentException, PySparkException

    if find_setting(spark, key) == value:
        # What a session has begun with it may not take again.
        return None
    try:
        spark.conf.set(key, value)
    except PySparkException as error:
        if is_refusal(error):
            return first_sentence(error)
        if isinstance(error, IllegalArgumentException):
            raise ConfigError.wrong_setting(key, first_sentence(error)) from error
        raise
    return None


def is_connect(spark: SparkSession) -> bool:
    """Return True if this is a Spark Connect session, where no JVM is at hand."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def too_late(spark: SparkSession, settings: Mapping[str, str]) -> list[str]:
    """Return the settings that a session which is there already cannot take any more: its memory, master, jars."""
    return [
        key
        for key, value in settings.items()
        if not spark.conf.isModifiable(key) and spark.conf.get(key, None) != value
    ]


def check_udf(spark: SparkSession) -> None:
    """Refuse a Python UDF where it would hang (README, Versions and platforms). Raises ConfigError."""
    # A session that does not tell has what is its default.
    if spark.version.startswith("4.2.0") and str(find_setting(spark, COLUMNAR_UDF)).lower() != "false":
        raise ConfigError.hanging_udf(spark.version, COLUMNAR_UDF)


# Whether a session keeps frames (`persist`), and letting go of what it keeps.


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


# How far Spark has come with the tasks of what it works at.


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


# Who has a Spark session, or may have one started.


class HasSession(Protocol):
    """Whatever has a session; where none is there yet it is started when it is first asked for."""

    @property
    def spark(self) -> SparkSession:
        """The session. Raises EnvironmentFault where none can be started."""


@dataclass(frozen=True)
class ExistingSession:
    """A session that is there."""

    spark: SparkSession
