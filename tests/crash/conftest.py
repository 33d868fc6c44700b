"""The setup of all crash tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.conftest import INTERPRETED
from tests.crash.estate import Case, before

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True, scope="session")
def _interpreted(spark: SparkSession) -> Iterator[None]:
    """Make Spark interpret queries over a few rows, because compiling them takes longer.

    Runs in separate processes are not affected.
    """
    for key, value in INTERPRETED.items():
        spark.conf.set(key, value)
    yield
    for key in INTERPRETED:
        spark.conf.unset(key)


@pytest.fixture(scope="session")
def case(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Return the estate after a first run, with new messages. Tests must copy it before they change it."""
    return before(spark, tmp_path_factory.mktemp("crash") / "case")
