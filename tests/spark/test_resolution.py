"""The result of `routing.resolve`: a block that releases, a summary that adds up, and its notebook picture."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing.runs import pipeline
from tests.estate_rows import small_estate
from tests.frames import Tables, arrow, frames, rows_of
from tests.random_estates import RUN_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS = ("routes", "databases", "services", "instances")
# The seven messages of the small estate, in the order of outcomes.
COUNTED = [
    ("DELIVERED", "LOCAL_SERVICE", 2),
    ("SENT", "MIRROR_ADDRESS", 1),
    ("DELAYED", "NO_ROUTE", 1),
    ("DELAYED", "ROUTE_REQUESTED", 1),
    ("REJECTED", "CONVERSATION_ID_NOT_A_GUID", 1),
    ("REJECTED", "UNKNOWN_INSTANCE", 1),
]


@pytest.fixture(scope="module")
def estate() -> Tables:
    return small_estate()


@pytest.fixture(scope="module")
def tables(spark: SparkSession, estate: Tables) -> dict[str, DataFrame]:
    return frames(spark, estate)


def test_leaving_a_resolution_releases_cached_frames(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    with routing.resolve(spark, tables) as resolution:
        cached_frames = resolution.frame_cache.frames
        assert cached_frames
        assert resolution.resolved_routes.count() == 5
    assert not resolution.frame_cache.frames
    # Computed again.
    assert resolution.resolved_routes.count() == 5


@pytest.mark.core
def test_a_summary_counts_every_message(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    with routing.resolve(spark, tables) as resolution:
        summary = resolution.summary()
        assert summary.columns == ["outcome", "reason", "messages"]
        rows = [tuple(row) for row in summary.collect()]
        html = resolution._repr_html_()
    assert rows == COUNTED
    assert sum(row[2] for row in rows) == tables["messages"].count() == resolution.messages
    assert html.count("<tr>") == 1 + len(rows)
    assert "<td>DELIVERED</td>" in html


def test_a_notebook_counts_no_large_run(
    spark: SparkSession, tables: dict[str, DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    with routing.resolve(spark, tables) as resolution:
        monkeypatch.setattr(pipeline.Resolution, "summary", lambda self: pytest.fail("it was counted"))
        assert "7 messages" in replace(resolution, most_counted=6)._repr_html_()


def test_a_notebook_shows_why_nothing_can_be_counted(
    spark: SparkSession, tables: dict[str, DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(self: routing.Resolution) -> DataFrame:
        raise RuntimeError("SparkContext <was> stopped")

    with routing.resolve(spark, tables) as resolution:
        monkeypatch.setattr(pipeline.Resolution, "summary", stopped)
        assert "SparkContext &lt;was&gt; stopped" in resolution._repr_html_()


def test_settings_may_be_frames_of_pandas(spark: SparkSession, estate: Tables) -> None:
    expected = routing.resolve(spark, frames(spark, estate), run_id=RUN_ID)
    given: dict[str, Any] = frames(spark, estate)
    given |= {key: arrow({key: estate[key]})[key].to_pandas() for key in SETTINGS}
    found = routing.resolve(spark, given, run_id=RUN_ID)
    assert rows_of(found.resolved_routes) == rows_of(expected.resolved_routes)


@pytest.mark.parametrize("key", ["messages", "dialogs"])
def test_traffic_is_a_frame_of_spark(
    spark: SparkSession, tables: dict[str, DataFrame], estate: Tables, key: str
) -> None:
    frame = arrow({"messages": estate["messages"]})["messages"].to_pandas()
    with pytest.raises(routing.ContractError, match=f"table {key} is a DataFrame, not a DataFrame of Spark"):
        routing.resolve(spark, {**tables, key: frame})
