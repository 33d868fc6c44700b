"""Commands that need no Spark work without it: pyspark, Delta's package and pandas cannot be imported here.

The tables are local ones of delta-rs.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from routing.schemas import RUNS as RUNS_SCHEMA
from tests.estate_rows import small_estate
from tests.frames import arrow_of
from tests.stored import config_text, save_estate, store_local
from tests.unit.test_messages_command import made as stored_messages
from tests.unit.test_runs_command import FULL, RUNS
from tests.without import SPARK, CommandsWithout, EndedCommand, without

_NO_SPARK = (*SPARK, "pandas")
_NO_DELTALAKE = (*SPARK, "deltalake")
_INSTALL = "the Python package pyspark is missing (in a clone: pip install '.[local]')"


Told = Callable[..., str]


@pytest.fixture(scope="module")
def commands() -> Iterator[CommandsWithout]:
    """A process in which commands run where there is no Spark."""
    with CommandsWithout(_NO_SPARK) as without_spark:
        yield without_spark


@pytest.fixture
def output_without_spark(commands: CommandsWithout) -> Told:
    """Return a command's output without Spark: its results, or its one-sentence error."""

    def tell(*arguments: str, status: int = 0) -> str:
        return _output_of(commands.run(*arguments), status)

    return tell


def _output_of(done: EndedCommand, status: int = 0) -> str:
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def output_of_own_process(missing: tuple[str, ...], *arguments: str, status: int = 0) -> str:
    """Return the same output from a separate process."""
    done = without(missing, *arguments)
    return _output_of(EndedCommand(done.returncode, done.stdout, done.stderr), status)


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save the small estate with runs and its configuration. Tests must not change it."""
    return made(tmp_path_factory.mktemp("estate"))


def made(folder: Path) -> Path:
    save_estate(small_estate(), folder, files=1)
    store_local(arrow_of(RUNS, RUNS_SCHEMA), folder / "out" / "runs")
    file = folder / "job.yaml"
    file.write_text(config_text(folder, folder / "out", imports=folder / "imports"), encoding="utf-8")
    return file


def stored(table: Path) -> list[dict[str, Any]]:
    """The rows of a table."""
    from deltalake import DeltaTable

    rows: list[dict[str, Any]] = DeltaTable(table).to_pyarrow_dataset().to_table().to_pylist()
    return rows


def with_deletion_vectors(table: Path) -> None:
    """Have a table say that it may have deletion vectors, as a later commit of Spark's does."""
    log = table / "_delta_log"
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    version = len(list(log.glob("*.json")))
    (log / f"{version:020d}.json").write_text(json.dumps({"protocol": protocol}) + "\n", encoding="utf-8")


def test_messages_need_no_spark(tmp_path: Path, output_without_spark: Told) -> None:
    stored_messages(tmp_path)
    asked = ("messages", "--config", str(tmp_path / "job.yaml"), "--waiting", "--format", "json")
    listed = json.loads(output_of_own_process((*_NO_SPARK, "rich"), *asked))
    assert [row["message_id"] for row in listed["messages"]] == ["a3", "a7", "a2", "a4"]
    assert "3 of 4 messages that wait are stuck" in output_without_spark(*asked[:-2])


def test_runs_need_no_spark(estate: Path, output_without_spark: Told) -> None:
    listed = json.loads(output_without_spark("runs", "--config", str(estate), "--format", "json"))
    assert [row["rows_read"] for row in listed["runs"]] == [0, 2_000, 2_000]
    assert f"run {FULL}: " in output_without_spark("runs", FULL[:6], "--config", str(estate))


def test_explain_of_a_described_message(estate: Path, output_without_spark: Told) -> None:
    described = ["--instance", "hub", "--database", "Sales", "--service", "//stock"]
    assert "DELIVERED" in output_without_spark(
        "explain", "--config", str(estate), *described, "--at", "2026-01-05T12:00:00Z"
    )


def test_lint_needs_no_spark(estate: Path, output_without_spark: Told) -> None:
    now = ["--now", "2026-01-05T12:00:00Z"]
    assert "more: sbroute lint --explain CODE" in output_without_spark("lint", "--config", str(estate), *now)
    assert output_without_spark("lint", "--explain", "SBR001").startswith("# SBR001")


def test_import_of_a_script(tmp_path: Path, output_without_spark: Told) -> None:
    file, script = made(tmp_path), tmp_path / "routes.sql"
    script.write_text(
        "USE Sales;\nGO\nCREATE ROUTE New WITH SERVICE_NAME = N'//new', ADDRESS = N'TCP://new.example:4022';\n",
        encoding="utf-8",
    )
    output_without_spark("import", "tsql", str(script), "--config", str(file), "--instance", "hub")
    routes = {row["name"]: row for row in stored(tmp_path / "routes")}
    assert set(routes) == {"Stock", "Store", "Far", "Ask", "New"}
    assert (routes["New"]["remote_service_name"], routes["New"]["address"]) == ("//new", "TCP://new.example:4022")


def test_import_of_an_export(tmp_path: Path, output_without_spark: Told) -> None:
    """Rows that are missing from the export are closed."""
    folder = tmp_path / "export"
    folder.mkdir()
    columns = {"instance_name": "hub", "exported_at": "2026-01-05T12:00:00Z", "database_name": "Sales"}
    row = {**columns, "name": "New", "remote_service_name": "//new", "address": "LOCAL"}
    with (folder / "sys.routes.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)
    config = made(tmp_path)
    output_without_spark("import", "catalog", str(folder), "--config", str(config))
    assert [found["name"] for found in stored(tmp_path / "routes") if found["valid_to"] is None] == ["New"]


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("output.runs", "runs"),
        ("tables.routes", "lint"),
        ("tables.routes", "explain --instance hub --database Sales --service //stock"),
    ],
)
def test_a_table_that_only_spark_reads_rightly(
    key: str, line: str, tmp_path: Path, output_without_spark: Told
) -> None:
    file = made(tmp_path)
    with_deletion_vectors(tmp_path / ("out/runs" if key == "output.runs" else "routes"))
    assert output_without_spark(*line.split(), "--config", str(file), status=2) == (
        f"sbroute: {key} is read by Spark (its reader version is 3), and {_INSTALL}\n"
    )


def test_a_table_that_is_not_on_this_disk(estate: Path, output_without_spark: Told) -> None:
    assert output_without_spark(
        "runs", "--config", str(estate), "--set", "output.runs=s3://bucket/runs", status=2
    ) == (f"sbroute: output.runs is read by Spark (it is not on this machine's disk), and {_INSTALL}\n")


def test_a_configuration_behind_a_uri(output_without_spark: Told) -> None:
    assert output_without_spark("runs", "--config", "s3://bucket/job.yaml", status=2) == (
        f"sbroute: --config is read by Spark (it is behind a URI), and {_INSTALL}\n"
    )


def test_neither_spark_nor_deltalake(estate: Path) -> None:
    assert output_of_own_process(_NO_DELTALAKE, "runs", "--config", str(estate), status=2) == (
        f"sbroute: output.runs is read by Spark (deltalake is not installed), and {_INSTALL}\n"
    )


def test_commands_over_messages_name_what_is_missing(estate: Path, output_without_spark: Told) -> None:
    incremental = ("--set", "resolve.mode=incremental", "--set", "output.pending_messages=pending")
    assert output_without_spark("resolve", "--config", str(estate), *incremental, status=2) == (
        f"sbroute: the command needs Spark (resolve.mode is incremental), and {_INSTALL}\n"
    )
