"""The tables and paths that deltalake writes. Spark writes those that deltalake would damage or misread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routing.config import TableLocation
from routing.delta.local_tables import UnreadableTable
from routing.importing.history import TableChanges
from routing.importing.stored_tables import StoredTables, make_ready, put
from routing.schemas import SERVICES
from routing.tables.arrow_rows import arrow_schema
from tests.hostile import NAMES
from tests.imports import make_table, no_spark, open_tables, place, rows_at

pytest.importorskip("deltalake")
# What is changed of a table of services that deltalake would write, and the reason that Spark does.
_UNFIT: dict[str, tuple[Callable[[Any], dict[str, Any]], str]] = {
    "appendOnly": (lambda _: {"configuration": {"delta.appendOnly": "true"}}, "delta.appendOnly"),
    "a change feed": (lambda _: {"configuration": {"delta.enableChangeDataFeed": "true"}}, "writer version is"),
    "partitions": (lambda _: {"partition_by": ["database_name"]}, "it is partitioned"),
    "an invariant": (
        lambda pa: {
            "schema": _with(pa, pa.string(), {"delta.invariants": '{"expression":{"expression":"x > 1"}}'})
        },
        "a column has more than",
    ),
    "a length": (
        lambda pa: {"schema": _with(pa, pa.string(), {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"})},
        "a column has more than",
    ),
    "a length inside": (
        lambda pa: {"schema": _with(pa, pa.struct([pa.field("y", pa.string(), metadata={"__CHAR": "3"})]), {})},
        "a column has more than",
    ),
}


def _with(pa: Any, kind: Any, metadata: dict[str, str]) -> Any:

    return arrow_schema(SERVICES).append(pa.field("x", kind, metadata=metadata))


@pytest.mark.parametrize("what", list(_UNFIT))
def test_tables_that_spark_must_write(tmp_path: Path, what: str) -> None:
    import pyarrow
    from deltalake import DeltaTable

    how, why = _UNFIT[what]
    where = place(tmp_path, "services")
    DeltaTable.create(where.text, **{"schema": arrow_schema(SERVICES), **how(pyarrow)})
    store = open_tables(tmp_path, "services")
    # It is read all the same.
    assert store.rows("services") == []
    table = store.opener.open_to_write(where, 0)
    assert isinstance(table, UnreadableTable)
    assert why in table.why
    with pytest.raises(AssertionError, match="Spark was started"):
        store.writer("services")


def test_a_commented_column_does_not_prevent_writing(tmp_path: Path) -> None:
    import pyarrow
    from deltalake import DeltaTable

    where = place(tmp_path, "services")
    DeltaTable.create(where.text, _with(pyarrow, pyarrow.string(), {"comment": "theirs"}))
    row = {"instance_name": "HUB", "database_name": "db", "name": "s"}
    put(open_tables(tmp_path, "services"), "services", TableChanges(put=[row]))
    put(open_tables(tmp_path, "services"), "services", TableChanges(put=[{**row, "name": "t"}], remove=[row]))
    assert rows_at(where) == [{**row, "name": "t", "x": None}]
    assert DeltaTable(where.text).schema().fields[-1].metadata == {"comment": "theirs"}


# deltalake takes paths for URLs: it opens "a b" for the first, and ends the process at some of the others.
MISTAKEN = ["a%20b", "100%", "a%2Fb", "[x]", "]", "a\\b", "a|b", "a^b", "a\nb", "\x7f", "\x01", "a/../b"]


@pytest.mark.parametrize("name", MISTAKEN)
def test_paths_misread_by_deltalake_use_spark(tmp_path: Path, name: str) -> None:
    make_table(TableLocation(str(tmp_path / "a b" / "services")), [{"name": "wrong"}], SERVICES)
    where = TableLocation(str(tmp_path / name / "services"))
    with pytest.raises(AssertionError, match="Spark was started"):
        _put_service(where)
    Path(where.text, "_delta_log").mkdir(parents=True)
    Path(where.text, "_delta_log", f"{0:020d}.json").touch()
    with pytest.raises(AssertionError, match="Spark was started"):
        no_spark().find("tables.services", where)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "a b",
            "a#b",
            "a?b",
            "~x",
            "a*b",
            "{a}",
            "a&b=c+d",
            "a:b;c",
            'it\'s "all" `here` $(x)',
            "..a",
            "<b>",
            "@",
        ),
        *(name for name in NAMES if not set("%[]\\^|/\x00\n\x7f") & set(name) and len(name) < 100),
    ],
)
def test_other_paths_are_written_by_deltalake(tmp_path: Path, name: str) -> None:
    where = TableLocation(str(tmp_path / name / "services"))
    _put_service(where)
    assert rows_at(where) == [{"instance_name": "HUB", "database_name": "db", "name": "s"}]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def _put_service(where: TableLocation) -> None:

    store = StoredTables(no_spark(), {"services": where}, {}, {"services": None}, str(where))
    make_ready(store)
    row = {"instance_name": "HUB", "database_name": "db", "name": "s"}
    put(store, "services", TableChanges(put=[row]))
