"""The examples of public names with a session print their shown output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.estate_rows import small_estate
from tests.frames import frames
from tests.public_api import PublicName, build_folder, public_names, run_example

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WITH_SPARK = [public for public in public_names() if public.needs_spark]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("examples")
    build_folder(folder)
    return folder


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    return frames(spark, small_estate())


@pytest.mark.parametrize("public", WITH_SPARK, ids=lambda public: public.name)
def test_an_example_prints_what_it_shows(
    public: PublicName,
    folder: Path,
    spark: SparkSession,
    tables: dict[str, DataFrame],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    assert run_example(public, spark=spark, tables=tables) == ""
