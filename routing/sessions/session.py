"""Start a SparkSession, or use an existing one. No other module builds one (README, Versions and platforms).

An existing session (a notebook, Databricks, spark-submit's context) stays unchanged, except for the settings of
the configuration that it accepts. Only a new session gets the settings here: small, quiet and UTC.
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

from routing.arguments import checked
from routing.errors import EnvironmentFault, NoJavaFault, first_sentence
from routing.sessions.existing_session import COLUMNAR_UDF, apply_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.config import Config

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_LOCAL_CORES = 8
# Java leaves methods over 8,000 bytes uncompiled. Spark's code for resolving messages is shorter. Its code for
# following every message is longer if routes read addresses from service names.
JAVA_OPTIONS = "-XX:-DontCompileHugeMethods"
# Environment variables that spark-submit, Spark Connect and Databricks set in a process with a session.
_PLATFORMS = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "DATABRICKS_RUNTIME_VERSION")
# Logs of Java processes started here, unless the error of a failed command refers to them.
_java_logs: list[Path] = []


def _small_local_run() -> dict[str, str]:
    """Return settings for a fast start and end of a local run. They are wrong on a cluster."""
    partitions = str(min(_LOCAL_CORES, os.cpu_count() or 1))
    return {
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": partitions,
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.log.level": "ERROR",
        COLUMNAR_UDF: "false",
        # For each Column Spark 4 calls the JVM several times to record its place in Python, which is unused.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # A run compiles more than the hundred pieces of code that Spark caches by default.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Adaptive execution prints the plan at each step, including the plans of cached frames. Without a limit,
        # many large ones took four times as long and ran out of memory.
        "spark.sql.maxPlanStringLength": "100000",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        # Host names are not looked up, because a laptop without a network resolves itself slowly or not at all.
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
    """Return the active session of this process, or None."""
    if "pyspark.sql" not in sys.modules:
        # Looking for a session must not import Spark.
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def start(
    settings: Mapping[str, str],
    *,
    verbose: bool = False,
    on_note: Callable[[str], None] = warnings.warn,
) -> SparkSession:
    """Return the session to work in: an existing one, or a new local one with Delta.

    ``settings`` are the configuration's Spark settings and have priority. ``on_note`` is called with a note on
    settings that an existing session refuses. Java's messages go to a file unless ``verbose``. Raises
    EnvironmentFault if pyspark, delta-spark or Java is missing, and ConfigError for a setting with a wrong value.
    """
    check_installed()
    from pyspark.sql import SparkSession

    if is_given():
        builder = SparkSession.builder
        if SparkSession.getActiveSession() is None and _is_submitted():
            for key, value in settings.items():
                builder = builder.config(key, value)
        session = builder.getOrCreate()
        apply_settings(session, settings, on_note)
        return session
    return _start_local({**_small_local_run(), **_DELTA, **settings}, verbose=verbose)


@checked
def start_of_config(config: Config) -> SparkSession:
    """Return the session of this process, or start a small local one with Delta, as commands do.

    Args:
        config: the configuration. Its section ``spark`` has settings of the session.

    Returns:
        The session.

    Raises:
        EnvironmentFault: pyspark, delta-spark or Java is missing.
        ConfigError: a setting has an invalid value.

    Example:
        >>> routing.spark_session(routing.load_config("job.yaml")) is spark
        True
    """
    return start(config.spark)


def check_installed() -> None:
    """Raise EnvironmentFault if pyspark is missing."""
    if find_spec("pyspark") is None:
        raise EnvironmentFault.no_package("pyspark", "local")


def _is_submitted() -> bool:
    """Return True if spark-submit started this process for a session that has not begun yet."""
    return "PYSPARK_GATEWAY_PORT" in os.environ and "SPARK_REMOTE" not in os.environ


def _start_local(settings: Mapping[str, str], *, verbose: bool, logs: list[Path] = _java_logs) -> SparkSession:
    """Start Spark in this process. Java's messages go to a log in ``logs`` unless they are shown."""
    from pyspark.sql import SparkSession

    # Workers must run the interpreter of this command: another one may lack pyspark or differ in version.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("sbroute").config("spark.sql.session.timeZone", "UTC")
    for key, value in settings.items():
        builder = builder.config(key, value)
    builder = _with_delta(builder, settings)
    log = None if verbose else _new_java_log(logs)
    try:
        with _java_messages_in(log):
            return builder.getOrCreate()
    except Exception as error:
        raise _why_no_start(error, log) from error


def _with_delta(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    """Add Delta's JARs by Ivy, unless settings name JARs or the defaults have Delta. Raises EnvironmentFault."""
    try:
        import pyspark
        from delta import configure_spark_with_delta_pip
    except ImportError as error:
        raise EnvironmentFault.no_package("delta-spark", "local") from error
    defaults = jars_of_defaults(Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent))
    bring_delta = any("delta-spark" in value for value in defaults.values())
    if bring_delta or any(key in settings for key in ("spark.jars", "spark.jars.packages")):
        return builder
    other_packages = defaults.get("spark.jars.packages", "")
    named = [package.strip() for package in other_packages.split(",") if package.strip()]
    return configure_spark_with_delta_pip(builder, named)


def _new_java_log(logs: list[Path] = _java_logs) -> Path:
    with tempfile.NamedTemporaryFile(prefix="sbroute-java-", suffix=".log", delete=False) as log:
        logs.append(Path(log.name))
    return logs[-1]


def java_logs() -> list[Path]:
    """Return the Java logs of the sessions that this process has started."""
    return list(_java_logs)


def settle_java_logs(*, ended_well: bool) -> None:
    """Remove Java's logs when this process ends, if the command that has just ended succeeded.

    Java writes to them until then. After a failed command or a crash, they stay.
    """
    if ended_well:
        atexit.register(remove_java_logs)
    else:
        _java_logs.clear()


def remove_java_logs() -> None:
    """Remove Java's logs now, when no Java process writes to them."""
    for log in _java_logs:
        # Windows cannot remove a file that Java has open.
        with suppress(OSError):
            log.unlink()


def _why_no_start(error: Exception, log: Path | None) -> NoJavaFault:
    java = os.environ.get("JAVA_HOME")
    if java and not Path(java, "bin", "java").exists():
        return NoJavaFault.no_java(f"JAVA_HOME is {java}, which holds no bin/java")
    if not java and shutil.which("java") is None:
        return NoJavaFault.no_java("no Java was found (JAVA_HOME is not set and java is not on the PATH)")
    text = "" if log is None else log.read_text(errors="replace")
    lines = [line.strip() for line in text.splitlines() if "rror" in line or "nvalid" in line]
    return NoJavaFault.no_java(f"{lines[0]} (more in {log})" if lines else first_sentence(error), is_found=True)


@contextmanager
def _java_messages_in(file: Path | None) -> Iterator[None]:
    """Redirect standard error, which the Java process inherits at its start, to a file.

    Other Python threads still write to the original standard error.
    """
    if file is None:
        yield
        return
    # It stays open, because a thread may be writing to it at the very end.
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
        # Restore it unless other code has redirected it.
        if sys.stderr is own_stream:
            sys.stderr = shown


def jars_of_defaults(home: Path) -> dict[str, str]:
    """Return the settings ``spark.jars…`` of the user's ``spark-defaults.conf``. ``home`` is Spark's."""
    folder = os.environ.get("SPARK_CONF_DIR") or home / "conf"
    try:
        text = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return {key: value for key, value in _properties(text) if key == "spark.jars" or key.startswith("spark.jars.")}


def _properties(text: str) -> Iterator[tuple[str, str]]:
    """Yield keys and values of Java's properties: blanks, an equals sign or a colon between them."""
    for line in text.replace("\\\r\n", "").replace("\\\n", "").splitlines():
        bare = line.strip()
        end = next((place for place, sign in enumerate(bare) if sign in "=: \t\f"), len(bare))
        yield bare[:end], bare[end:].lstrip("=: \t\f")
