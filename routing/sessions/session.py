"""The only place that builds a SparkSession (README, Versions and platforms).

A session that is given (a notebook, Databricks, spark-submit's own context) is used as it is: it gets what the
configuration sets, as far as it takes that, and nothing of these. Only a session that this command starts by
itself is made small, quiet and UTC.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from routing.errors import ConfigError, EnvironmentFault, NoJavaFault, condition, first_sentence, is_refusal
from routing.sessions import jars
from routing.sessions.session_settings import apply_settings, find_setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from routing.config import Config

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_LOCAL_CORES = 8
# Java leaves methods over 8,000 bytes uncompiled. What Spark makes to resolve messages is shorter; longer is what
# it makes to follow every message where routes read addresses from service names.
JAVA_OPTIONS = "-XX:-DontCompileHugeMethods"
# For a session that sees little data: what Java's second compiler makes, and the code that Spark generates for
# each query, take longer to be made than they ever run. The demo takes a quarter less time so.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_FOR_LITTLE_DATA = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
    # Rows that the driver holds are one task, not one for each core: to send it takes longer than to run it.
    "spark.sql.leafNodeDefaultParallelism": "1",
    **INTERPRETED,
}
# What spark-submit, Spark Connect and Databricks leave in the environment of a process with a session.
_PLATFORMS = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "DATABRICKS_RUNTIME_VERSION")
# True by default on Spark 4.2.0, where a Python UDF over a Delta scan then hangs for ever (SPARK-58241).
_COLUMNAR_UDF = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
# Of the Java processes that this process has started and that no failed command speaks of.
_java_logs: list[Path] = []


def _small_local_run() -> dict[str, str]:
    """Return settings that make a local run start and finish fast; wrong on a cluster."""
    partitions = str(min(_LOCAL_CORES, os.cpu_count() or 1))
    return {
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": partitions,
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.log.level": "ERROR",
        _COLUMNAR_UDF: "false",
        # Spark 4 asks the JVM several times for each Column where in Python it was written; nobody reads it here.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # A run compiles more than the hundred pieces of code that Spark remembers by default.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Adaptive execution prints the plan at each step, kept frames with all that they were made of: without a
        # limit many large ones took four times as long to print, and more memory than there was.
        "spark.sql.maxPlanStringLength": "100000",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        # Names of hosts are not looked up: a laptop without a network resolves itself slowly or not at all.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }


def is_given() -> bool:
    """Return True if a platform has prepared the session: spark-submit, Databricks, or a running context."""
    return is_of_platform() or find_active() is not None


def is_of_platform() -> bool:
    """Return True if spark-submit, Spark Connect or Databricks has prepared this process for a session."""
    return any(name in os.environ for name in _PLATFORMS)


def find_active() -> SparkSession | None:
    """Return the session that is active in this process; None where there is none."""
    if "pyspark.sql" not in sys.modules:
        # To ask for a session is no reason to import Spark.
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def start(
    settings: Mapping[str, str],
    *,
    verbose: bool = False,
    little_data: bool = False,
    tell: Callable[[str], None] = warnings.warn,
) -> SparkSession:
    """Return the session to work in: the given one, or a new local one with Delta.

    ``settings`` are the configuration's own Spark settings and win; ``tell`` hears which of them a given session
    has refused. Java's messages go to a file unless ``verbose``. A new session for ``little_data`` is soon done
    with that, and slow with much. Raises EnvironmentFault where pyspark, delta-spark or Java is missing, and
    ConfigError for a setting of a wrong value.
    """
    check_installed()
    from pyspark.sql import SparkSession

    if is_given():
        builder = SparkSession.builder
        if SparkSession.getActiveSession() is None and _is_submitted():
            for key, value in settings.items():
                builder = builder.config(key, value)
        session = builder.getOrCreate()
        apply_settings(session, settings, tell)
        return session
    own_settings = {**_small_local_run(), **(_FOR_LITTLE_DATA if little_data else {}), **_DELTA}
    return _start_local({**own_settings, **settings}, verbose=verbose)


def start_of_config(config: Config) -> SparkSession:
    """Return the session of this process, or start the small local one that commands start, with Delta.

    Args:
        config: the configuration, whose section ``spark`` has settings of the session.

    Returns:
        The session.

    Raises:
        EnvironmentFault: pyspark, delta-spark or Java is missing.
        ConfigError: a setting has a wrong value.

    Example:
        >>> routing.spark_session(routing.load_config("job.yaml")) is spark
        True
    """
    return start(config.spark)


def check_installed() -> None:
    """Raise EnvironmentFault where there is no pyspark."""
    if find_spec("pyspark") is None:
        raise EnvironmentFault.no_package("pyspark", "local")


def _is_submitted() -> bool:
    """Return whether spark-submit started this process for a session that is still to begin."""
    return "PYSPARK_GATEWAY_PORT" in os.environ and "SPARK_REMOTE" not in os.environ


def _start_local(settings: Mapping[str, str], *, verbose: bool) -> SparkSession:
    from pyspark.sql import SparkSession

    # Workers must run the interpreter of this command: another one may lack pyspark or differ in version.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("sbroute").config("spark.sql.session.timeZone", "UTC")
    for key, value in settings.items():
        builder = builder.config(key, value)
    builder, has_new_jars = _with_delta(builder, settings)
    log = None if verbose else _new_java_log()
    try:
        with _java_messages_in(log):
            session = builder.getOrCreate()
    except Exception as error:
        raise NoJavaFault.no_java(_why_no_start(error, log)) from error
    if has_new_jars:
        jars.remember((session.conf.get("spark.jars", "") or "").split(","))
    return session


def _with_delta(builder: SparkSession.Builder, settings: Mapping[str, str]) -> tuple[SparkSession.Builder, bool]:
    """Add Delta's jars to the builder; tell whether Ivy is asked for them alone, so that they can be kept.

    Where jars, or where Ivy finds them, are named here or in Spark's defaults, Ivy's present answer is taken.
    Raises EnvironmentFault where delta-spark is missing.
    """
    try:
        import pyspark
        from delta import configure_spark_with_delta_pip
    except ImportError as error:
        raise EnvironmentFault.no_package("delta-spark", "local") from error
    defaults = jars.of_defaults(Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent))
    asks_ivy = "PYSPARK_SUBMIT_ARGS" in os.environ or any(key.startswith("spark.jars") for key in settings)
    if not (asks_ivy or defaults):
        remembered = jars.find_remembered()
        if remembered:
            return builder.config("spark.jars", ",".join(remembered)), False
        return configure_spark_with_delta_pip(builder), True
    bring_delta = any("delta-spark" in value for value in defaults.values())
    if bring_delta or any(key in settings for key in ("spark.jars", "spark.jars.packages")):
        return builder, False
    others = defaults.get("spark.jars.packages", "")
    named = [package.strip() for package in others.split(",") if package.strip()]
    return configure_spark_with_delta_pip(builder, named), False


def _new_java_log() -> Path:
    with tempfile.NamedTemporaryFile(prefix="sbroute-java-", suffix=".log", delete=False) as log:
        _java_logs.append(Path(log.name))
    return _java_logs[-1]


def java_logs() -> list[Path]:
    """Return the logs of Java, of the sessions that this process has started."""
    return list(_java_logs)


def settle_java_logs(*, ended_well: bool) -> None:
    """Remove Java's logs when this process ends, if the command that has just ended did so well.

    Java writes to them until then. Once a command has failed they stay, and so they do after a crash.
    """
    if ended_well:
        atexit.register(remove_java_logs)
    else:
        _java_logs.clear()


def remove_java_logs() -> None:
    """Remove Java's logs now; no Java writes to them any more."""
    for log in _java_logs:
        # Windows removes no file that Java has open.
        with suppress(OSError):
            log.unlink()


def _why_no_start(error: Exception, log: Path | None) -> str:
    java = os.environ.get("JAVA_HOME")
    if java and not Path(java, "bin", "java").exists():
        return f"JAVA_HOME is {java}, which holds no bin/java"
    if not java and shutil.which("java") is None:
        return "no Java was found (JAVA_HOME is not set and java is not on the PATH)"
    text = "" if log is None else log.read_text(errors="replace")
    lines = [line for line in text.splitlines() if "rror" in line]
    return f"{lines[0].strip()} (more in {log})" if lines else first_sentence(error)


@contextmanager
def _java_messages_in(file: Path | None) -> Iterator[None]:
    """Redirect standard error, which the Java process inherits when it starts, to a file.

    What Python writes meanwhile, in other threads, goes where it ever does.
    """
    if file is None:
        yield
        return
    # Left open: a thread may be writing there at the very end.
    saved_descriptor, shown = os.dup(2), sys.stderr
    own_stream = None
    if shown is not None:
        shown.flush()
        own_stream = sys.stderr = open(saved_descriptor, "w", 1, shown.encoding, shown.errors, closefd=False)  # noqa: SIM115
    try:
        with file.open("wb") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(saved_descriptor, 2)
        # Unless somebody has led it elsewhere.
        if sys.stderr is own_stream:
            sys.stderr = shown


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
    if spark.version.startswith("4.2.0") and str(find_setting(spark, _COLUMNAR_UDF)).lower() != "false":
        raise ConfigError.hanging_udf(spark.version, _COLUMNAR_UDF)


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
