"""Spark runs on a full disk or a read-only disk name the fault."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import routing
from routing.errors import RoutingError
from routing.runs.spark_outputs import write_candidates
from tests.estate_rows import small_estate
from tests.small_disks import nearly_full, read_only, small_disk
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_fault_of_the_disk_is_named(spark: SparkSession, tmp_path: Path) -> None:
    inputs = save_estate(small_estate(), tmp_path / "in", files=1)
    with small_disk() as disk:
        config = config_of(inputs, disk / "out", f"output.route_candidates={disk}/candidates")
        hints = "run again once the file system is mounted read-write", "run again once there is free space"
        for fault, write, place, cause, hint in (
            (read_only, write_candidates, "candidates", "Read-only file system", hints[0]),
            (read_only, routing.run, "out", "Read-only file system", hints[0]),
            (nearly_full, write_candidates, "candidates", "No space left on device", hints[1]),
        ):
            with fault(disk), pytest.raises(RoutingError) as failed:
                write(spark, config)
            text = str(failed.value)
            assert failed.value.exit_code == 2, text
            assert cause in text
            assert hint in text
            assert f"{disk}/{place}" in text
