"""Columns that users add to an output stay, and runs continue. Other changes of its columns are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from routing import cli
from routing.schemas import MESSAGE_PATHS, OUTPUTS
from routing.tables.arrow_rows import arrow_schema
from tests.estate_rows import small_estate
from tests.stored import save_job

ADDED = Field("comment", PrimitiveType("string"), nullable=True)
RUN_OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "runs")
COMMANDS = {
    "full": ("resolve --engine local", RUN_OUTPUTS),
    "trace": ("trace --all", ("message_paths",)),
    "reconcile": ("reconcile", ("reconciliation",)),
}


def job_of(folder: Path) -> Path:
    """A job that writes every output."""
    job = save_job(small_estate() | {"observed_routing": []}, folder)
    more = ("pending_messages", "message_paths", "reconciliation")
    lines = "".join(f"  {key}: {folder}/out/{key}\n" for key in more)
    job.write_text(job.read_text(encoding="utf-8").replace("output:\n", f"output:\n{lines}"), encoding="utf-8")
    return job


def run(capsys: pytest.CaptureFixture[str], job: Path, command: str) -> tuple[int, str]:
    """Run a command, and return its exit code and all that it prints."""
    status = cli.main([*command.split(), "--config", str(job)])
    out, err = capsys.readouterr()
    return status, out + err


def add_column(table: Path, field: Field = ADDED) -> None:
    """Add a column as ALTER TABLE … ADD COLUMNS does."""
    DeltaTable(table).alter.add_columns(field)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_added_column_stays_and_is_null(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, keys = COMMANDS[name]
    job = job_of(tmp_path)
    assert run(capsys, job, command)[0] == 0
    before = {}
    for key in keys:
        table = tmp_path / "out" / key
        add_column(table)
        before[key] = DeltaTable(table).to_pyarrow_dataset().count_rows()
    for _ in range(2):
        status, printed = run(capsys, job, command)
        assert status == 0, printed
        for key in keys:
            note = f"output.{key}: rows of this run have NULL in added columns: comment"
            assert " ".join(printed.split()).count(note) == 1, printed
            rows = DeltaTable(tmp_path / "out" / key).to_pyarrow_dataset().to_table()
            assert "comment" in rows.column_names
            assert rows["comment"].null_count == len(rows)
            assert len(rows) >= before[key]


def test_a_restore_removes_an_added_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second run with the same id leaves the table unchanged."""
    job, table = job_of(tmp_path), tmp_path / "out" / "resolved_routes"
    command, note = (
        "resolve --engine local --run-id {}",
        "output.resolved_routes: rows of this run have NULL in added",
    )
    assert run(capsys, job, command.format("first"))[0] == 0
    recorded = DeltaTable(table).version()
    add_column(table)
    status, printed = run(capsys, job, command.format("second"))
    assert (status, " ".join(printed.split()).count(note)) == (0, 1), printed
    with_column = DeltaTable(table).version()
    for version, has_column in ((recorded, False), (with_column, True)):
        DeltaTable(table).restore(version)
        restored = DeltaTable(table).version()
        status, printed = run(capsys, job, command.format("second"))
        assert (status, note in " ".join(printed.split())) == (0, False), printed
        assert DeltaTable(table).version() == restored
        status, printed = run(capsys, job, command.format(f"after-{version}"))
        assert (status, note in " ".join(printed.split())) == (0, has_column), printed
        rows = DeltaTable(table).to_pyarrow_dataset().to_table()
        assert (ADDED.name in rows.column_names) is has_column
        assert len(rows) > 0


def in_other_case(fields: list[pyarrow.Field]) -> list[pyarrow.Field]:
    """Delta takes no two columns that differ in case alone, so one has the other's place."""
    return [pyarrow.field(fields[0].name.upper(), fields[0].type), *fields[1:]]


def with_required(fields: list[pyarrow.Field]) -> list[pyarrow.Field]:
    """A further column that must have a value."""
    return [*fields, pyarrow.field("comment", pyarrow.string(), nullable=False)]


def with_other_type(fields: list[pyarrow.Field]) -> list[pyarrow.Field]:
    """One of the columns with another type."""
    return [pyarrow.field(fields[0].name, pyarrow.int64()), *fields[1:]]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (in_other_case, "column {upper} differs from {name} only in case"),
        (with_required, "column comment is unknown and NOT NULL"),
        (with_other_type, "column {name} is bigint, not string"),
    ],
)
@pytest.mark.parametrize("key", ["rejected_messages", "message_paths"])
def test_other_columns_are_refused(
    key: str,
    change: Callable[[list[pyarrow.Field]], list[pyarrow.Field]],
    why: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = job_of(tmp_path)
    fields = list(arrow_schema({**OUTPUTS, "message_paths": MESSAGE_PATHS}[key].optional()))
    DeltaTable.create(str(tmp_path / "out" / key), pyarrow.schema(change(fields)))
    status, printed = run(capsys, job, "trace --all" if key == "message_paths" else "resolve --engine local")
    assert status == 2, printed
    name = fields[0].name
    assert why.format(name=name, upper=name.upper()) in " ".join(printed.split())
