"""The table of paths is replaced in one commit that names its sources. Nothing else is overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing.config import ConfigError
from routing.delta.counted_runs import release
from routing.errors import OutputError
from routing.run_context import Progress
from routing.runs import spark_outputs
from routing.runs.run_work import InternalError
from tests.estate_rows import message, small_estate
from tests.frames import rows_of
from tests.stored import config_of, save_estate, store, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

AS_OF = "2026-01-05T13:00:00Z"


def _config(stored: Path, folder: Path) -> Config:
    return config_of(stored, folder, f"output.message_paths={folder / 'paths'}", f"resolve.as_of={AS_OF}")


def _history(spark: SparkSession, folder: Path) -> list[Any]:
    return spark.sql(f"DESCRIBE HISTORY delta.`{folder}`").orderBy("version").collect()


def _paths(spark: SparkSession, folder: Path) -> dict[str, dict[str, Any]]:
    return {row["message_id"]: row for row in rows_of(spark.read.format("delta").load(str(folder)))}


@pytest.mark.long
def test_trace_all_replaces_the_whole_table(spark: SparkSession, tmp_path: Path) -> None:
    """Two of seven messages are rejected, two delivered, one leaves, one asks for a route and one has none."""
    stored, folder = save_estate(small_estate(), tmp_path / "in", files=1), tmp_path / "out"
    config = _config(stored, folder)
    stages: list[Progress] = []
    first = spark_outputs.write_paths(spark, config, progress=stages.append)
    assert (first.version, first.read, first.rejected, first.traced) == (0, 7, 2, 5)
    assert first.outcomes == {"DELAYED": 2, "DELIVERED": 2, "LEFT_ESTATE": 1}
    assert [told.stage for told in stages if told.seconds is not None] == [
        *("read", "validate", "lookups", "keys", "plan", "requests", "write", "counts")
    ]
    rows = _paths(spark, folder / "paths")
    assert {name: row["outcome"] for name, row in rows.items()} == {
        **dict.fromkeys(("m1", "m2"), "DELIVERED"),
        "m3": "LEFT_ESTATE",
        **dict.fromkeys(("m4", "m5"), "DELAYED"),
    }
    assert (rows["m3"]["final_address"], rows["m3"]["ways_agree"]) == ("TCP://far.example:4022", True)
    # Their sending services are unknown.
    assert {row["return_outcome"] for row in rows.values()} == {"NOT_KNOWN", None}
    save_estate({"messages": [message(8, "//far", from_service_name="")]}, stored, files=1)
    second = spark_outputs.write_paths(spark, config)
    assert (second.version, second.read, second.traced) == (1, 8, 6)
    assert _paths(spark, folder / "paths")["m8"]["from_service_name"] is None
    told = [json.loads(row["userMetadata"]) for row in _history(spark, folder / "paths")]
    inputs = dict.fromkeys(config.tables, 0)
    assert told == [
        {
            "command": "trace --all",
            "release": release(),
            "as_of": "2026-01-05T13:00:00+00:00",
            "input_versions": {**inputs, "messages": version},
        }
        for version in (0, 1)
    ]
    assert [path.name for path in folder.iterdir()] == ["paths"]


def test_a_table_with_another_schema_stays_unchanged(spark: SparkSession, stored: Path, tmp_path: Path) -> None:
    config = _config(stored, tmp_path)
    store(spark.range(3), tmp_path / "paths")
    before = written(tmp_path)
    with pytest.raises(OutputError, match=r"output.message_paths: .* is a table with another schema"):
        spark_outputs.write_paths(spark, config)
    assert written(tmp_path) == before


def test_trace_all_without_an_output_is_refused(spark: SparkSession, stored: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no output.message_paths, which trace --all writes"):
        spark_outputs.write_paths(spark, config_of(stored, tmp_path))


def test_a_lost_message_is_reported(
    spark: SparkSession, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = vars(spark_outputs)["message_paths"]
    monkeypatch.setattr(spark_outputs, "message_paths", lambda *args: whole(*args).where("message_id != 'm1'"))
    with pytest.raises(InternalError, match=r"7 messages were read, but 4 traced and 2 rejected"):
        spark_outputs.write_paths(spark, _config(stored, tmp_path))
