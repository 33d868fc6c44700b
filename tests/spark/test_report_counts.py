"""Messages counted for a report by Spark and by Arrow: equal flows, points and dialogs."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from routing.features.report import scale
from routing.features.report.flows import count_all, count_dialogs
from routing.schemas import RESOLVED_ROUTES
from tests.counted_messages import BALANCED, FLOWS, ROWS, random_traffic
from tests.frames import arrow_of, frame_of
from tests.unit.test_report_counts import SPANS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_both_ways_count_alike(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    # So that some are told together.
    monkeypatch.setattr(scale, "_MOST_SERVICES", 3)
    monkeypatch.setattr(scale, "_MOST_INSTANCES", 2)
    spans = {**SPANS, ("HUB", "Shop", "//shared"): (None, None), ("HUB", "msdb", "//shared"): (None, None)}
    for rows in ([*ROWS, *BALANCED], random_traffic(random.Random(3), 300), []):
        here, there = arrow_of(rows, RESOLVED_ROUTES), frame_of(spark, rows, RESOLVED_ROUTES)
        assert count_all(there) == count_all(here)
        assert count_dialogs(there, spans) == count_dialogs(here, spans)
    assert len(count_all(frame_of(spark, ROWS, RESOLVED_ROUTES))[0]) == len(FLOWS)
