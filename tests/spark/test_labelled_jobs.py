"""Every Spark job of a run has the run's id and stage as its description."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import routing
from routing.sessions.job_labels import DESCRIPTION
from tests.estate_rows import small_estate
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.classic


def test_jobs_of_a_run_and_the_users_own_description(spark: SparkSession, tmp_path: Path) -> None:
    config = config_of(save_estate(small_estate(), tmp_path / "in"), tmp_path / "out")
    context = spark.sparkContext._jsc.sc()
    first = context.dagScheduler().numTotalJobs()
    before = spark.sparkContext.getLocalProperty(DESCRIPTION)
    spark.sparkContext.setJobDescription("the user's")
    try:
        done = routing.run(spark, config, run_id="night")
        assert spark.sparkContext.getLocalProperty(DESCRIPTION) == "the user's"
    finally:
        spark.sparkContext.setLocalProperty(DESCRIPTION, before)  # type: ignore[arg-type]
    context.listenerBus().waitUntilEmpty()
    jobs = range(first, context.dagScheduler().numTotalJobs())
    descriptions = [context.statusStore().job(job).description().get() for job in jobs]
    # Delta adds words around the description.
    labels = [re.search(r"sbroute night(?:: ([a-z ]+))?", text) for text in descriptions]
    assert [text for text, label in zip(descriptions, labels, strict=True) if label is None] == []
    stages = {label[1].strip() for label in labels if label is not None and label[1]}
    assert {"keys", "write"} <= stages <= set(done.row["stage_seconds"])
