"""Query the abilities of an existing session: settings, Python UDFs, cached frames and progress of tasks.

Settings are read and set separately, because a platform may refuse any of them. Serverless compute refuses to set
or read most settings, even with a default.
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


# The errors of sessions that refuse a request.


def condition(error: BaseException) -> str:
    """Return the error condition of a Spark error, such as PATH_NOT_FOUND, or an empty text.

    For an error of Java that py4j passes through, such as a missing file in a task, the condition is in the error
    itself or in one of its causes.
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
        # Not an error of Spark.
        return ""


# The refusals of serverless compute, and of any session for static settings. The last one is that of Spark 3.5.
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
    """Return True if a session does not support the request at all, and False for any other error."""
    state = getattr(error, "getSqlState", None)
    is_unsupported = state is not None and str(state() or "").startswith(_NOT_SUPPORTED)
    return is_unsupported or condition(error).partition(".")[0] in _REFUSED


# Settings.


# True by default on Spark 4.2.0, where a Python UDF over a Delta scan then hangs forever (SPARK-58241).
COLUMNAR_UDF = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"


def find_setting(spark: SparkSession, key: str) -> str | None:
    """Return a setting of the session, or None if it is not set or cannot be read."""
    from pyspark.errors import PySparkException

    try:
        return spark.conf.get(key, None)
    except PySparkException as error:
        if not is_refusal(error):
            raise
        return None


def apply_settings(spark: SparkSession, settings: Mapping[str, str], on_note: Callable[[str], None]) -> None:
    """Apply the settings that the session accepts, and write one note about the others with reasons.

    No decision depends on a setting. If a run requires one, it fails later or is refused at its use (`check_udf`).
    Raises ConfigError for an invalid value.
    """
    reasons = {key: _refused(spark, key, value) for key, value in settings.items()}
    refused = [f"{quote(key)} ({why})" for key, why in reasons.items() if why is not None]
    if refused:
        on_note(f"the Spark session has refused {join_bounded(refused, 'setting')}; the command continues without")


def _refused(spark: SparkSession, key: str, value: str) -> str | None:
    """Return the reason why the session refuses a setting, or None if it has the setting."""
    from pyspark.errors import IllegalArgumentException, PySparkException

    if find_setting(spark, key) == value:
        # A session may refuse to set a static setting again.
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
    """Return True if this is a Spark Connect session, which has no JVM here."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def has_ended(spark: SparkSession | None) -> bool:
    """Return whether a session was stopped, or its Java process has ended. A Connect session counts as running."""
    if spark is None or is_connect(spark):
        return False
    context: Any = spark.sparkContext
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except OSError:
        # The connection to Java is closed.
        return True


def too_late(spark: SparkSession, settings: Mapping[str, str]) -> list[str]:
    """Return the settings that an existing session lacks and can no longer get: its memory, master, JARs."""
    return [
        key
        for key, value in settings.items()
        if not spark.conf.isModifiable(key) and spark.conf.get(key, None) != value
    ]


def check_udf(spark: SparkSession) -> None:
    """Refuse a Python UDF if it would hang (README, Versions and platforms). Raises ConfigError."""
    # A session that refuses to show the setting has the default.
    if spark.version.startswith("4.2.0") and str(find_setting(spark, COLUMNAR_UDF)).lower() != "false":
        raise ConfigError.hanging_udf(spark.version, COLUMNAR_UDF)


# Caching of frames (`persist`), and their release.


# The errors of a session that has ended.
_ENDED = ("INVALID_HANDLE", "NO_ACTIVE_SESSION")
# Whether each tested session of Spark Connect can cache frames.
_tried: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


def takes_persist(spark: SparkSession) -> bool:
    """Return True if a session can cache frames. A Connect session is tested once: serverless compute refuses."""
    if not is_connect(spark):
        return True
    if spark not in _tried:
        _tried[spark] = _try_to_persist(spark)
    return _tried[spark]


def _try_to_persist(spark: SparkSession) -> bool:
    from pyspark.errors import PySparkException

    # A session identifies cached frames by their plan, and no other frame has this one.
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
    """Release a cached frame. A session that has ended holds no frames."""
    from pyspark.errors import PySparkException

    try:
        cached_frame.unpersist()
    except PySparkException as error:
        if condition(error).partition(".")[0] not in _ENDED:
            raise


# The progress of Spark's tasks.


def count_tasks(spark: SparkSession) -> Callable[[], tuple[int, int] | None]:
    """Return a function for the numbers of finished and of all tasks in the active stages.

    The function returns None if no stage is active, and always on Spark Connect. It counts all stages of the
    application, including those of other users of a shared session. It raises an error if the session refuses the
    request or its Java process has ended.
    """
    if is_connect(spark):
        return lambda: None

    def count() -> tuple[int, int] | None:
        tracker = spark.sparkContext.statusTracker()
        active = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        # A stage may have ended since.
        stages = [stage for stage in active if stage is not None]
        if not stages:
            return None
        return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)

    return count


# Objects that have a Spark session or may start one.


class HasSession(Protocol):
    """An object with a session. A missing session is started at its first use."""

    @property
    def spark(self) -> SparkSession:
        """The session. Raises EnvironmentFault if none can be started."""


@dataclass(frozen=True)
class ExistingSession:
    """A session that is already running."""

    spark: SparkSession
