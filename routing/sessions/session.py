"""Start a SparkSession, or use an existing one. No other module builds one (README, Versions and platforms).

An existing session (a notebook, Databricks, spark-submit's context) stays unchanged, except for the settings of
the configuration that it accepts. Only a new session gets the settings here: small, quiet and UTC.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
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
# In a session with little data, Java's second compiler and Spark's generated code take longer to compile than they
# ever run. Without them the demo takes a quarter less time.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_FOR_LITTLE_DATA = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
    # Rows in the driver are one task, not one for each core, because sending a task takes longer than running it.
    "spark.sql.leafNodeDefaultParallelism": "1",
    **INTERPRETED,
}
# Environment variables of processes with a session, by spark-submit, Spark Connect and Databricks.
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
        # A question for a session must not import Spark.
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def start(
    settings: Mapping[str, str],
    *,
    verbose: bool = False,
    little_data: bool = False,
    on_note: Callable[[str], None] = warnings.warn,
) -> SparkSession:
    """Return the session to work in: an existing one, or a new local one with Delta.

    ``settings`` are the configuration's Spark settings and have priority. ``on_note`` is called with a note on
    settings that an existing session refuses. Java's messages go to a file unless ``verbose``. A new session for
    ``little_data`` is fast for small data and slow for large data. Raises EnvironmentFault if pyspark, delta-spark
    or Java is missing, and ConfigError for an invalid setting.
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
    own_settings = {**_small_local_run(), **(_FOR_LITTLE_DATA if little_data else {}), **_DELTA}
    return _start_local({**own_settings, **settings}, verbose=verbose)


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
    builder, has_new_jars = _with_delta(builder, settings)
    log = None if verbose else _new_java_log(logs)
    try:
        with _java_messages_in(log):
            session = builder.getOrCreate()
    except Exception as error:
        raise NoJavaFault.no_java(_why_no_start(error, log)) from error
    if has_new_jars:
        remember_jars((session.conf.get("spark.jars", "") or "").split(","))
    return session


def _with_delta(builder: SparkSession.Builder, settings: Mapping[str, str]) -> tuple[SparkSession.Builder, bool]:
    """Add Delta's jars to the builder. Return True if Ivy finds only these, so that they can be cached.

    If the settings or Spark's defaults name jars or repositories, Ivy resolves them now. Raises EnvironmentFault
    if delta-spark is missing.
    """
    try:
        import pyspark
        from delta import configure_spark_with_delta_pip
    except ImportError as error:
        raise EnvironmentFault.no_package("delta-spark", "local") from error
    defaults = jars_of_defaults(Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent))
    asks_ivy = "PYSPARK_SUBMIT_ARGS" in os.environ or any(key.startswith("spark.jars") for key in settings)
    if not (asks_ivy or defaults):
        remembered = find_remembered_jars()
        if remembered:
            return builder.config("spark.jars", ",".join(remembered)), False
        return configure_spark_with_delta_pip(builder), True
    bring_delta = any("delta-spark" in value for value in defaults.values())
    if bring_delta or any(key in settings for key in ("spark.jars", "spark.jars.packages")):
        return builder, False
    others = defaults.get("spark.jars.packages", "")
    named = [package.strip() for package in others.split(",") if package.strip()]
    return configure_spark_with_delta_pip(builder, named), False


def _new_java_log(logs: list[Path] = _java_logs) -> Path:
    with tempfile.NamedTemporaryFile(prefix="sbroute-java-", suffix=".log", delete=False) as log:
        logs.append(Path(log.name))
    return logs[-1]


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
    """Remove Java's logs now, when no Java process writes to them."""
    for log in _java_logs:
        # Windows cannot remove a file that Java has open.
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
        # Unless other code has redirected it.
        if sys.stderr is own_stream:
            sys.stderr = shown


# Delta's jars of the last local session on this machine, so that the next one starts without Ivy.
#
# Ivy, which fetches packages for Spark, takes three seconds at each start to find its packages again. The cached
# jars are code that will run. They are used only if no other user could have written them, and while each jar is
# unchanged.


def _is_own(file: Path) -> bool:
    """Return True if a file and all its folders belong to this user or root, and nobody else can write there.

    Folders that all users may write are safe with the sticky bit, such as /tmp. Links are never safe: pass their
    target. Raises OSError if the file does not exist.
    """
    if os.name == "nt":  # pragma: no cover - On Windows only the user can write to the profile.
        return file.is_file()
    return stat.S_ISREG(file.lstat().st_mode) and all(
        _is_safe(part.lstat()) for part in (file, *file.absolute().parents)
    )


def _is_safe(status: os.stat_result) -> bool:
    user = os.getuid()
    if status.st_uid not in (user, 0) or stat.S_ISLNK(status.st_mode):
        return False
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return True
    by_group = status.st_mode & stat.S_IWGRP and not _is_own_group(user, status.st_gid)
    return not (by_group or status.st_mode & stat.S_IWOTH)


def _is_own_group(user: int, group: int) -> bool:
    """Return True if a group has only one user: the group with the user's name, which many systems make."""
    import grp
    import pwd

    try:
        return pwd.getpwuid(user).pw_name == grp.getgrgid(group).gr_name
    except KeyError:
        return False


def _file() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "sbroute", "jars.json")


def _pair() -> str | None:
    """Return the installed pair, or None if pyspark does not come from a package but, say, from ``SPARK_HOME``."""
    try:
        return f"pyspark {version('pyspark')}, delta-spark {version('delta-spark')}"
    except PackageNotFoundError:
        return None


def _read_remembered() -> dict[str, dict[str, str]]:
    """Read each pair's jars with their hashes. Empty if the file is missing, malformed, or another user's."""
    try:
        file = Path(os.path.realpath(_file()))
        stored = json.loads(file.read_text(encoding="utf-8")) if _is_own(file) else None
    except (OSError, ValueError, RuntimeError):
        # RuntimeError: there is no home folder, or the brackets are a thousand deep.
        return {}
    pairs = stored.items() if isinstance(stored, dict) else ()
    # The first release stored lists of paths, which are ignored.
    return {
        pair: jars for pair, jars in pairs if isinstance(jars, dict) and all(_is_text(jar) for jar in jars.items())
    }


def _is_text(jar: tuple[object, object]) -> bool:
    return all(isinstance(part, str) for part in jar)


def _hash(jar: str) -> str | None:
    """Return a jar's SHA-256, or None if it cannot be read or another user may change it."""
    try:
        return hashlib.sha256(Path(jar).read_bytes()).hexdigest() if _is_own(Path(jar)) else None
    except OSError:
        return None


def _hashes(jars: Sequence[str]) -> dict[str, str | None]:
    """Return the hash of each, on several cores at once: 89 MB in 33 jars take 90 ms on one."""
    with ThreadPoolExecutor() as pool:
        return dict(zip(jars, pool.map(_hash, jars), strict=True))


def find_remembered_jars() -> list[str]:
    """Return the jars of the installed pair of pyspark and delta-spark, or none if one is missing or changed."""
    pair = _pair()
    jars = {} if pair is None else _read_remembered().get(pair, {})
    return list(jars) if _hashes(list(jars)) == jars else []


def remember_jars(jars: Sequence[str]) -> None:
    """Keep the paths or file URIs of the jars that a session has for the installed pair, if Delta is one."""
    # Without links, because the owners of folders on the path could change their targets.
    pair, paths = _pair(), [os.path.realpath(jar.removeprefix("file://")) for jar in jars]
    has_delta = any("delta-spark" in Path(path).name for path in paths)
    if pair is None or not has_delta:
        return
    hashes = _hashes(paths)
    if None in hashes.values():
        return
    text = json.dumps({**_read_remembered(), pair: hashes}, indent=1)
    # Without a writable home folder, only the next start takes three seconds longer.
    with suppress(OSError, RuntimeError):
        file = _file()
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Replaced atomically, because another command may be reading it.
        new_file = file.with_name(f"{file.name}.{os.getpid()}")
        new_file.write_text(text, encoding="utf-8")
        new_file.replace(file)


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
