"""What the tests without Spark have in common."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def without_a_session() -> Iterator[None]:
    """Hide the session that tests with Spark may have started in this process: commands would use it."""
    if "pyspark.sql" not in sys.modules:
        yield
        return
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None:
        yield
        return
    sessions = active._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    sessions.clearActiveSession()
    assert SparkSession.getActiveSession() is None
    yield
    sessions.setActiveSession(active._jsparkSession)
