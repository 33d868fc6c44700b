"""One lazy Spark session for the whole run; every setting with its reason."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that all Spark tests share."""
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    # Workers must run this interpreter.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    scratch = tempfile.mkdtemp(prefix="sbroute-tests-")
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # A zone with daylight saving: times must be right whatever a given session's zone is.
        "spark.sql.session.timeZone": "America/New_York",
        # Test data is tiny: more partitions would only cost tasks.
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.ui.enabled": "false",
        # Scratch of its own, so that runs side by side do not meet.
        "spark.sql.warehouse.dir": str(Path(scratch, "warehouse")),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={scratch} -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("sbroute-tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = configure_spark_with_delta_pip(builder).getOrCreate()
    yield session
    session.stop()
