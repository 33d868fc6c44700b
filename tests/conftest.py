"""One lazy Spark session for the whole run, with a reason for every setting."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# For every Java process of the tests. Most code runs a few times only: what Java's second compiler would cost is
# not won back. Without it Java keeps 48 MB of compiled code, which a whole run outgrows: code would be thrown away
# and compiled again.
os.environ.setdefault(
    "JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC"
)
# For queries about a few rows: to generate and compile code takes longer than all that they do.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
# What make test-connect and make test-matrix set; unset, the tests run in a classic session as Spark ships it.
REMOTE, ANSI, WANTED = (os.environ.get(f"SBROUTE_TEST_{name}") for name in ("REMOTE", "ANSI", "SPARK"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On Spark Connect, skip tests of a classic session. Refuse a test that no target would run."""
    for item in items:
        if item.path.parent.name == "spark" and not item.get_closest_marker("core"):
            item.add_marker("spark")
    of_matrix = [item for item in items if item.get_closest_marker("matrix")]
    not_core = [item.nodeid for item in of_matrix if not item.get_closest_marker("core")]
    if not_core:
        raise pytest.UsageError(
            f"`make test` leaves these to targets that run the core alone: {', '.join(not_core)}"
        )
    if REMOTE:
        reason = pytest.mark.skip(reason="looks into a classic session")
        for item in items:
            if item.get_closest_marker("classic"):
                item.add_marker(reason)


def pytest_configure(config: pytest.Config) -> None:
    """Limit Hypothesis, if installed, to a part of its examples. `make test-rules` tries all of them."""
    if not config.pluginmanager.hasplugin("hypothesispytest"):
        return
    from hypothesis import settings

    from tests.examples import count_examples

    settings.register_profile("counted", max_examples=count_examples(100))
    settings.load_profile("counted")


def pytest_collection_finish() -> None:
    """Keep Python's garbage collector from searching all imported objects repeatedly."""
    gc.freeze()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a row after its values, where pytest would number them (``case0``)."""
    from tests.row_ids import describe

    return describe(val)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share the tests out so that one process of two starts a session."""
    from tests.scheduling import make_scheduler

    return make_scheduler(config, log)


def _remember_names_of_java() -> None:
    """Make py4j look up each Java class and method once, not for each new Column.

    Such look-ups are half of pyspark's calls, and take a third of the time of a run with a few messages.
    """
    from py4j.java_gateway import JavaClass, JavaMember, JVMView

    def remember(place: Any, kind: type) -> None:
        look_up = place.__getattr__

        def remembering(self: Any, name: str) -> Any:
            value = look_up(self, name)
            if isinstance(value, kind):
                vars(self)[name] = value
            return value

        place.__getattr__ = remembering

    remember(JVMView, JavaClass)
    remember(JavaClass, JavaMember)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that all Spark tests share."""
    import pyspark
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    assert WANTED in (None, pyspark.__version__), f"this is Spark {pyspark.__version__}"
    if not REMOTE:
        _remember_names_of_java()
    # Workers must run this interpreter.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder
    for key, value in _settings(str(tmp_path_factory.mktemp("spark"))).items():
        builder = builder.config(key, value)
    # Spark Connect names its session otherwise, and takes its master from the address.
    builder = builder.remote(REMOTE) if REMOTE else builder.master("local[2]").appName("sbroute-tests")
    with warnings.catch_warnings():
        # The server of a Connect session has taken the static settings; the client may not set them again.
        warnings.filterwarnings("ignore", message="Failed to set spark", category=UserWarning)
        session = configure_spark_with_delta_pip(builder).getOrCreate()
    yield session
    session.stop()


def _settings(scratch: str) -> dict[str, str]:
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # A zone with daylight saving: times must be right whatever a given session's zone is.
        "spark.sql.session.timeZone": "America/New_York",
        # Test data is tiny: more partitions would only cost tasks.
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "2",
        "spark.sql.leafNodeDefaultParallelism": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        # In another zone than UTC Delta reads its log anew after each commit, to see whether it wrote it right.
        "spark.databricks.delta.allFilesInCrc.verificationMode.forceOnNonUTC.enabled": "false",
        "spark.ui.enabled": "false",
        # What it would show of queries and jobs that have ended.
        "spark.sql.ui.retainedExecutions": "5",
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        # Each query is printed for that page all the same, and again whenever a part of it has ended: as short as
        # can be. A fifth of the time of a large plan went into the texts of its expressions.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.debug.maxToStringFields": "0",
        "spark.sql.maxPlanStringLength": "100000",
        # Scratch of its own, so that runs side by side do not meet.
        "spark.sql.warehouse.dir": str(Path(scratch, "warehouse")),
        # Java begins with little room, and would tidy it up hundreds of times before it takes more.
        "spark.driver.extraJavaOptions": (
            f"-Dderby.system.home={scratch} -Xms2g -Xmn1200m -XX:MetaspaceSize=300m"
        ),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
        # What sbroute's own session sets: Spark 4.2 hangs on a Python UDF over a Delta scan otherwise.
        "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
        # As the command's own local session: fewer questions to the JVM, and no code compiled twice.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.codegen.cache.maxEntries": "1000",
    }
    return {**settings, **({"spark.sql.ansi.enabled": ANSI} if ANSI else {})}
