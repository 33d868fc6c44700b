"""What several Spark tests read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.stored import small_estate, store_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def stored(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small estate as Delta tables; not to be changed."""
    return store_estate(spark, small_estate(), tmp_path_factory.mktemp("estate"))
