"""The table of candidates is replaced in one commit that names its sources. Nothing else is overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from routing.cli import main
from routing.delta.counted_runs import release
from routing.errors import OutputError
from routing.runs import spark_outputs
from routing.runs.run_work import InternalError
from routing.schemas import ROUTE_CANDIDATES
from tests.frames import arrow_of
from tests.stored import config_of, config_text, store, store_local, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

AS_OF = "2026-01-05T13:00:00Z"


# Each candidate's step and route, and whether it is chosen. The hash picks the second id for m1. m5 finds no
# route, and m6 and m7 are rejected.
PRINTED = {
    "m1": [(3, "Store", True), (3, "Stock", False)],
    "m2": [(1, "Store", True), (6, None, False)],
    "m3": [(2, "Far", True)],
    "m4": [(4, "Ask", False)],
}


def _config(stored: Path, folder: Path) -> Config:
    return config_of(stored, folder, f"output.route_candidates={folder / 'candidates'}", f"resolve.as_of={AS_OF}")


@pytest.mark.core
@pytest.mark.matrix
@pytest.mark.parametrize("form", ["table", pytest.param("json", marks=pytest.mark.long)])
def test_the_command_replaces_the_table_and_reports_its_inputs(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(config_text(stored, tmp_path / "out"), encoding="utf-8")
    place = tmp_path / "out" / "candidates"
    store_local(arrow_of([{"message_id": "of an older run"}], ROUTE_CANDIDATES), place)
    arguments = ["candidates", "--config", str(file), "--set", f"output.route_candidates={place}"]
    assert main([*arguments, "--as-of", AS_OF, "--width", "120", "--format", form]) == 0
    shown = capsys.readouterr().out
    table = DeltaTable(place)
    rows = table.to_pyarrow_table().to_pylist()
    printed: dict[str, list[Any]] = {}
    for row in sorted(rows, key=lambda row: (row["message_id"], row["candidate_rank"])):
        printed.setdefault(row["message_id"], []).append(
            (row["matching_step"], row["route_name"], row["is_chosen"])
        )
    assert printed == PRINTED
    if form == "table":
        assert shown.startswith("4 of 7 messages have ")
        assert "Candidates by the step that they match in" in shown
        assert shown.splitlines()[-2:] == [
            "7 messages read = 4 with candidates + 1 without + 2 rejected; version 1 of output.route_candidates",
            "resolve lists the rejected ones with their faults",
        ]
    else:
        done = json.loads(shown)
        counts = {name: value for name, value in done.items() if name != "steps"}
        assert counts == {"version": 1, "read": 7, "ranked": 4, "rejected": 2}
        assert sum(one["candidates"] for one in done["steps"]) == len(rows)
    [written_by_it] = table.history(1)
    inputs = ("routes", "databases", "services", "instances", "messages", "dialogs", "route_requests")
    assert json.loads(written_by_it["userMetadata"]) == {
        "command": "candidates",
        "release": release(),
        "as_of": "2026-01-05T13:00:00+00:00",
        "input_versions": dict.fromkeys(inputs, 0),
    }


def test_a_table_with_another_schema_stays_unchanged(spark: SparkSession, stored: Path, tmp_path: Path) -> None:
    config = _config(stored, tmp_path)
    store(spark.range(3), tmp_path / "candidates")
    before = written(tmp_path)
    with pytest.raises(OutputError, match=r"output.route_candidates: .* is a table with another schema"):
        spark_outputs.write_candidates(spark, config)
    assert written(tmp_path) == before


def test_candidates_without_an_output_fail_before_spark_starts(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(config_text(stored, tmp_path / "out"), encoding="utf-8")
    monkeypatch.setattr("routing.commands.command_context.session", lambda *_: pytest.fail("Spark is started"))
    assert main(["candidates", "--config", str(file)]) == 2
    assert "has no output.route_candidates, which candidates writes" in capsys.readouterr().err


def test_a_lost_candidate_is_reported(
    spark: SparkSession, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = vars(spark_outputs)["route_candidates"]
    monkeypatch.setattr(spark_outputs, "route_candidates", lambda *args: whole(*args).where("candidate_rank != 2"))
    with pytest.raises(InternalError, match=r"the messages have \d+ candidates, but \d+ rows were written"):
        spark_outputs.write_candidates(spark, _config(stored, tmp_path))
