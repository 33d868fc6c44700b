"""Commands and functions read columns with any types of Arrow equally, in files and in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from deltalake import DeltaTable
from pyarrow import dataset, parquet
from pyarrow.types import is_dictionary, is_list, is_map, is_string, is_struct, is_timestamp

import routing
from routing import cli
from routing.delta.local_tables import dataset_of
from routing.errors import InputError
from routing.schemas import TABLES
from routing.tables.arrow_forms import fold_texts
from routing.tables.read_rows import columns_of
from routing.tables.table_columns import as_dataset
from tests.crowded import BROKEN, NOON, QUESTIONS, crowded
from tests.frames import Tables, arrow
from tests.stored import save_job

EXAMPLES = Path(__file__).parents[2] / "conf" / "examples"
FLEETING = {
    "now",
    "age_seconds",
    "run_id",
    "started_at",
    "finished_at",
    "seconds",
    "stage_seconds",
    "table_ids",
    "commit_identities",
}
Change = Callable[[pyarrow.DataType], pyarrow.DataType]


def deeply(change: Change) -> Change:
    """Change a type, and those within it."""

    def changed(kind: Any) -> Any:
        if is_list(kind):
            return pyarrow.list_(changed(kind.value_type))
        if is_map(kind):
            return pyarrow.map_(kind.key_type, changed(kind.item_type))
        if is_struct(kind):
            return pyarrow.struct([field.with_type(changed(field.type)) for field in kind])
        return change(kind)

    return changed


def texts_as(other: pyarrow.DataType) -> Change:
    """Change the type of texts."""
    return lambda kind: other if is_string(kind) else kind


def times_as(other: pyarrow.DataType) -> Change:
    """Change the type of times."""
    return lambda kind: other if is_timestamp(kind) else kind


def large(kind: Any) -> Any:
    """Make texts and lists large, and put times into another zone."""
    if is_list(kind):
        return pyarrow.large_list(kind.value_type)
    return times_as(pyarrow.timestamp("us", "Europe/Berlin"))(texts_as(pyarrow.large_string())(kind))


CHANGES: dict[str, Change] = {
    "views": deeply(texts_as(pyarrow.string_view())),
    "large": large,
    "dictionaries": texts_as(pyarrow.dictionary(pyarrow.int32(), pyarrow.string())),
}
# A Delta table's files have these where its log says otherwise, and what is in memory must not. Views are those
# that delta-rs writes.
FILES: dict[str, Change] = {
    **{form: change for form, change in CHANGES.items() if form != "views"},
    "bytes": texts_as(pyarrow.binary_view()),
}
# And the other way round.
IN_MEMORY: dict[str, Change] = {
    **CHANGES,
    "dictionaries of large texts": texts_as(pyarrow.dictionary(pyarrow.int64(), pyarrow.large_string())),
    "times without a zone": times_as(pyarrow.timestamp("us")),
}


def cast(table: pyarrow.Table, change: Change) -> pyarrow.Table:
    """Convert rows to other types. Arrow needs another function to convert texts to dictionaries."""
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = change(field.type)
        if is_dictionary(kind) and not is_dictionary(field.type):
            column = column.cast(kind.value_type).dictionary_encode().cast(kind)
        elif kind == pyarrow.binary_view():
            column = column.cast(pyarrow.binary()).cast(kind)
        elif kind != field.type:
            column = column.cast(kind)
        columns.append(column)
    fields = [pyarrow.field(f.name, c.type, f.nullable) for f, c in zip(table.schema, columns, strict=True)]
    return pyarrow.Table.from_arrays(columns, schema=pyarrow.schema(fields))


def rewrite_files(folder: Path, change: Change) -> None:
    """Write every data file under a folder in other types, under its own name."""
    for file in folder.rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            parquet.write_table(cast(parquet.ParquetFile(file).read(), change), file, row_group_size=3)


def rewrite_by_deltalake(folder: Path) -> None:
    """Let delta-rs rewrite every table under a folder, as it does for DELETE, UPDATE and MERGE."""
    for log in folder.rglob("_delta_log"):
        table = DeltaTable(log.parent)
        if table.to_pyarrow_dataset().count_rows():
            text = next(
                field.name for field in table.schema().fields if str(field.type) == 'PrimitiveType("string")'
            )
            table.update(updates={text: f'"{text}"'})


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return a command's output without the parts that differ between runs."""
    status = cli.main([*arguments, "--quiet"])
    printed = capsys.readouterr()
    assert status in (0, 1), f"{arguments}: {status}\n{printed.err}"
    return json.dumps(lasting(json.loads(printed.out)))


def lasting(value: Any) -> Any:
    """Return a document without the parts that differ between runs."""
    if isinstance(value, list):
        return [lasting(one) for one in value]
    if isinstance(value, dict):
        return {key: lasting(one) for key, one in value.items() if key not in FLEETING and "version" not in key}
    # Ids of runs, and times of today.
    changing = rf"[0-9a-f]{{32}}|[0-9a-f]{{8}}-[0-9a-f-]{{27}}|{datetime.now(timezone.utc):%Y-%m-%d}T[0-9:.]+Z"
    return re.sub(changing, "", value) if isinstance(value, str) else value


def answers(job: Path, capsys: pytest.CaptureFixture[str], rewrite: Callable[[Path], None]) -> dict[str, Any]:
    """Return the outputs of all commands over a job's tables, which are rewritten before each writing step."""
    folder = job.parent
    config, now = ("--config", str(job), "--format", "json"), ("--now", "2026-01-06T12:00:00Z")
    rewrite(folder / "in")
    printed: dict[str, Any] = {}
    printed["resolve"] = run(capsys, "resolve", *config, "--engine", "local")
    rewrite(folder / "out")
    printed["again"] = run(capsys, "resolve", *config, "--engine", "local")
    rewrite(folder / "out")
    for message in ("m1", "m9"):
        printed[f"explain {message}"] = run(capsys, "explain", *config, "--message-id", message)
        printed[f"trace {message}"] = run(capsys, "trace", *config, "--message-id", message)
    printed["messages"] = run(capsys, "messages", *config)
    printed["waiting"] = run(capsys, "messages", *config, "--waiting", "--instance", "hub")
    printed["report"] = run(capsys, "report", *config, "--out", str(folder / "page.html"), *now)
    printed["lint"] = run(capsys, "lint", *config, *now, "--messages")
    printed["diff"] = run(capsys, "diff", *config, "--with-script", str(script(folder)), "--instance", "hub")
    printed["reconcile"] = run(capsys, "reconcile", *config)
    printed["runs"] = run(capsys, "runs", *config)
    return {name: text.replace(str(folder), "") for name, text in printed.items()}


def script(folder: Path) -> Path:
    """A script that changes a route."""
    file = folder / "change.sql"
    file.write_text("CREATE ROUTE Changed WITH SERVICE_NAME = '//far', ADDRESS = 'LOCAL';\n", encoding="utf-8")
    return file


def sound() -> Tables:
    """The crowded estate without rows that stop a run."""
    tables = crowded()
    tables["routes"] = [row for row in tables["routes"] if row["instance_name"] != BROKEN]
    return tables


def save(folder: Path) -> Path:
    """A job over the crowded estate, which judges and keeps all that there is to keep."""
    folder.mkdir()
    tables = sound()
    # No report shows these times.
    tables["messages"] = [row for row in tables["messages"] if row["message_id"] not in {"early", "late"}]
    job = save_job(tables, folder)
    more = f"output:\n  reconciliation: {folder}/out/reconciliation\n"
    job.write_text(job.read_text(encoding="utf-8").replace("output:\n", more), encoding="utf-8")
    return job


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the outputs of all commands. The first test that needs a step fills it in."""
    return {"folder": tmp_path_factory.mktemp("usual") / "job"}


@pytest.mark.parametrize("form", ["deltalake", *FILES])
def test_every_command_reads_files_of_other_types(
    form: str, usual: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "said" not in usual:
        usual["said"] = answers(save(usual["folder"]), capsys, lambda _: None)
    rewrite = rewrite_by_deltalake if form == "deltalake" else lambda folder: rewrite_files(folder, FILES[form])
    printed = answers(save(tmp_path / "job"), capsys, rewrite)
    for name, text in usual["said"].items():
        assert printed[name] == text, name


def test_deltalake_writes_views_of_texts(tmp_path: Path) -> None:
    """Else the form above shows nothing."""
    job = save(tmp_path / "job")
    rewrite_by_deltalake(job.parent / "in")
    kinds = {
        str(field.type) for file in job.parent.rglob("*-c000*.parquet") for field in parquet.read_schema(file)
    }
    assert "string_view" in kinds


def stored_rows(folder: Path) -> dict[str, Any]:
    """The rows of every table under a folder."""
    tables = {log.parent.name: DeltaTable(log.parent) for log in folder.rglob("_delta_log")}
    return {
        key: sorted(
            json.dumps(row, default=str) for row in dataset_of(str(folder / key), table).to_table().to_pylist()
        )
        for key, table in tables.items()
        if key != "imports"
    }


@pytest.mark.parametrize("form", ["deltalake", *FILES])
def test_imports_write_the_same_over_files_of_other_types(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = []
    for name in ("usual", form):
        folder = tmp_path / name
        folder.mkdir()
        job = folder / "job.yaml"
        text = (EXAMPLES / "import.yaml").read_text(encoding="utf-8")
        job.write_text(text.replace("../../build/demo-import/", ""), encoding="utf-8")
        catalog = ("import", "catalog", str(EXAMPLES / "exports"))
        for time in ("2026-01-05T12:00:00Z", "2026-01-06T12:00:00Z"):
            run(capsys, *catalog, "--config", str(job), "--exported-at", time, "--format", "json")
            if name != "usual":
                rewrite = (
                    rewrite_by_deltalake if form == "deltalake" else lambda at: rewrite_files(at, FILES[form])
                )
                rewrite(folder / "data")
        labels = (
            "--format",
            "json",
            "--instance",
            "SHOP",
            "--database",
            "Shop",
            "--scripted-at",
            "2026-01-07T12:00:00Z",
        )
        run(capsys, "import", "tsql", str(script(folder)), "--config", str(job), *labels)
        rows.append(stored_rows(folder / "data"))
    assert rows[0] == rows[1]
    assert sum(map(len, rows[0].values())) > 30


# Tables and datasets that the caller of a function brings.


def as_given(how: str, table: pyarrow.Table, folder: Path) -> Any:
    """Return rows as a table, a dataset in memory, a dataset of files, or a union of both."""
    if how == "table":
        return table
    if how == "dataset":
        return dataset.dataset(table)
    middle = len(table) // 2
    parquet.write_table(table[:middle], folder / "a.parquet")
    parquet.write_table(table[middle:], folder / "b.parquet")
    if how == "files":
        return dataset.dataset(folder, schema=table.schema)
    return dataset.dataset(
        [dataset.dataset(folder / "a.parquet", schema=table.schema), dataset.dataset(table[middle:])]
    )


@pytest.fixture(scope="module")
def expected() -> tuple[Any, ...]:
    """Return what functions answer over tables of the usual types."""
    tables = arrow(sound())
    paths = [(routing.explain(tables, question), routing.trace(tables, question)) for question in QUESTIONS]
    columns = {key: columns_of(table, key) for key, table in tables.items()}
    return tables, paths, columns, routing.reconcile(tables).counts


# How rows are given and their types do not depend on each other.
GIVEN = list(zip(IN_MEMORY, ("union", "table", "dataset", "files", "union"), strict=True))


@pytest.mark.parametrize(("form", "how"), GIVEN)
def test_every_function_takes_columns_of_other_types(
    form: str, how: str, expected: tuple[Any, ...], tmp_path: Path
) -> None:
    tables, paths, columns, counts = expected
    given = {}
    for key, table in tables.items():
        folder = tmp_path / key
        folder.mkdir()
        given[key] = as_given(how, cast(table, IN_MEMORY[form]), folder)
    for question, path in zip(QUESTIONS, paths, strict=True):
        assert (routing.explain(given, question), routing.trace(given, question)) == path, question
    for key, table in given.items():
        assert columns_of(table, key) == columns[key], key
    assert routing.reconcile(given).counts == counts


@pytest.mark.parametrize("kind", [pyarrow.binary(), pyarrow.binary_view(), pyarrow.large_binary()], ids=str)
def test_bytes_are_not_texts(kind: pyarrow.DataType) -> None:
    routes = cast(arrow(sound())["routes"], texts_as(kind))
    with pytest.raises(InputError, match="column instance_name is binary, not string"):
        columns_of(routes, "routes")


def test_a_column_without_a_type_is_read_as_nulls() -> None:
    tables = arrow(sound())
    for key, table in tables.items():
        empty = [f.name for f in TABLES[key] if f.nullable and table[f.name].null_count == len(table)]
        untyped = cast(table, lambda kind: kind)
        for name in empty:
            untyped = untyped.set_column(untyped.column_names.index(name), name, pyarrow.nulls(len(table)))
        assert columns_of(untyped, key) == columns_of(table, key)


@pytest.mark.parametrize("kind", [pyarrow.large_string(), pyarrow.string_view()], ids=str)
def test_large_texts_in_later_parts_are_folded(kind: pyarrow.DataType, tmp_path: Path) -> None:
    """Arrow reads a file in parts, and its functions mistake all but the first of large texts that it has cast."""
    rows = pyarrow.table({"name": pyarrow.array([f"K{number:06d}" for number in range(300_000)], kind)})
    parquet.write_table(rows, tmp_path / "a.parquet", row_group_size=300_000)
    read = as_dataset(dataset.dataset(tmp_path / "a.parquet"))
    for wanted in ("k000001", "k140000", "k299999"):
        assert read.to_table(filter=fold_texts(dataset.field("name")) == wanted).num_rows == 1, wanted
    in_memory = as_dataset(rows[140_000:]).to_table(filter=fold_texts(dataset.field("name")) == "k140000")
    assert in_memory.num_rows == 1


@pytest.mark.long
def test_large_text_columns_are_split() -> None:
    """One array has at most 2 GiB of texts, but a small dictionary may represent more."""
    long = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 5, "int32"), pyarrow.array(["x" * (1 << 29)]))
    column = as_dataset(pyarrow.table({"name": long})).to_table()["name"]
    assert len(column) == 5
    assert column.num_chunks > 1
    assert column.type == pyarrow.string()


def test_filters_still_choose_files_and_groups(tmp_path: Path) -> None:
    """A filter on a time or a text leaves out groups of rows, of files of views those of the time."""
    job = save(tmp_path / "job")
    rewrite_files(job.parent / "in", CHANGES["views"])
    messages = job.parent / "in" / "messages"
    rows = dataset_of(str(messages), DeltaTable(messages))
    time = pyarrow.scalar(NOON, pyarrow.timestamp("us", "UTC"))
    condition = (dataset.field("enqueue_time") > time) & (dataset.field("message_id") == "m9")
    left = [len(file.subset(condition).row_groups) for file in rows.get_fragments(condition)]
    every = [file.num_row_groups for file in rows.get_fragments()]
    assert sum(left) < sum(every)
    assert rows.to_table(filter=condition).num_rows == 1
