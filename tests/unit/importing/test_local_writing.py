"""deltalake writes imports with any names and times, and keeps the columns that users added."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from routing.config import TableLocation
from routing.delta.local_tables import dataset_of
from routing.errors import InputError, StorageError
from routing.importing.history import TableChanges
from routing.importing.stored_tables import make_ready, put
from routing.schemas import DIALOGS, KEPT, MESSAGES, OBSERVED_ROUTING, ROUTES, Schema
from routing.tables.arrow_rows import arrow_schema, table_of
from tests.hostile import NAMES
from tests.imports import (
    FIRST_VIEWS,
    MONDAY,
    SCRIPT,
    TUESDAY,
    UTC,
    config_in,
    dialog,
    exports,
    import_views,
    make_older_tables,
    newest,
    no_spark,
    open_tables,
    place,
    rows_at,
)

pytest.importorskip("deltalake")
FIRST_TIME = datetime(1, 1, 1, tzinfo=UTC)
LAST_TIME = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
ROOT = Path(__file__).parents[3]


def route(name: str, **columns: Any) -> dict[str, Any]:
    empty = {field.name: None for field in ROUTES}
    return {**empty, "instance_name": "HUB", "database_name": "db", "name": name, "address": "LOCAL", **columns}


def by_name(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["name"], row["database_name"]))


def test_rows_with_any_name_and_time_are_found_again(tmp_path: Path) -> None:
    """Each is found again by its key, whether it is changed, removed or left alone."""

    names = dict.fromkeys([*NAMES, "", *(chr(point) for point in (0x7F, 0xD7FF, 0xFFFF, 0x10FFFF))])
    times = {"valid_from": FIRST_TIME, "valid_to": LAST_TIME, "lifetime": LAST_TIME}
    rows = [route(name, database_name=name, instance_name=name, **times) for name in names]
    store = open_tables(tmp_path, "routes")
    make_ready(store)
    put(store, "routes", TableChanges(put=rows))
    assert by_name(rows_at(place(tmp_path, "routes"))) == by_name(rows)
    for row in rows:
        assert open_tables(tmp_path, "routes").rows("routes", {"instance_name": [row["name"]]}) == [row]
    changed = [{**row, "address": row["name"] or "none"} for row in rows[::3]]
    put(open_tables(tmp_path, "routes"), "routes", TableChanges(put=changed, remove=rows[1::3]))
    assert by_name(rows_at(place(tmp_path, "routes"))) == by_name([*changed, *rows[2::3]])


def test_added_columns_stay(tmp_path: Path) -> None:
    """Their order and spelling stay too. A new row has null in them."""
    import pyarrow
    from deltalake import write_deltalake

    theirs = {"Address": "LOCAL", "tags": [["a", None]], "price": 1.5, "NAME": "r", "at": LAST_TIME}
    table = {name: [value] if name != "tags" else value for name, value in theirs.items()}
    table |= {"instance_name": ["HUB"], "database_name": ["db"]}
    write_deltalake(place(tmp_path, "routes").text, pyarrow.table(table))
    store = open_tables(tmp_path, "routes")
    assert store.rows("routes") == [route("r")]
    make_ready(store)
    put(store, "routes", TableChanges(put=[route("r", address="TRANSPORT"), route("new")]))
    new, kept = sorted(rows_at(place(tmp_path, "routes")), key=lambda row: str(row["NAME"]))
    added = ["remote_service_name", "broker_instance", "lifetime", "mirror_address", "valid_from", "valid_to"]
    assert list(kept) == [*table, *added]
    ours = {"Address": "TRANSPORT", "NAME": "r", "instance_name": "HUB", "database_name": "db"}
    assert kept == {**dict.fromkeys(added), "tags": ["a", None], "price": 1.5, "at": LAST_TIME, **ours}
    assert new == {**dict.fromkeys(kept), **ours, "Address": "LOCAL", "NAME": "new"}
    # The making ready is a commit, and the rows are one.
    assert newest(config_in(tmp_path))["routes"] == 2


def test_a_required_foreign_column_is_reported(tmp_path: Path) -> None:
    import pyarrow
    from deltalake import DeltaTable

    schema = arrow_schema(ROUTES).append(pyarrow.field("theirs", pyarrow.string(), nullable=False))
    DeltaTable.create(place(tmp_path, "routes").text, schema)
    with pytest.raises(StorageError, match=r"writing tables\.routes"):
        put(open_tables(tmp_path, "routes"), "routes", TableChanges(put=[route("new")]))
    assert newest(config_in(tmp_path))["routes"] == 0


def test_dialogs_are_found_without_case(tmp_path: Path) -> None:
    """Over several files and many rows, of which most belong to others."""
    from deltalake import write_deltalake

    end: dict[str, Any] = {field.name: None for field in DIALOGS} | {"database_name": "db", "is_initiator": True}
    rows = [{**end, "instance_name": f"i{number % 9}", "conversation_id": f"ID-{number}"} for number in range(999)]
    where = place(tmp_path, "dialogs").text
    for first in (0, 333, 666):
        write_deltalake(where, table_of(rows[first : first + 333], DIALOGS), mode="append")
    mine = [
        {**row, "conversation_id": row["conversation_id"].lower()} for row in rows if row["instance_name"] == "i3"
    ]
    changed = [{**row, "far_service": "new"} for row in mine[::2]]
    put(open_tables(tmp_path, "dialogs"), "dialogs", TableChanges(put=changed, remove=mine[1::2]))
    rows_by_id = {row["conversation_id"]: row for row in rows_at(place(tmp_path, "dialogs"))}
    assert len(rows_by_id) == 999 - len(mine[1::2])
    assert rows_by_id == {
        **{row["conversation_id"]: row for row in rows if row["instance_name"] != "i3"},
        **{row["conversation_id"]: row for row in changed},
    }


@pytest.mark.parametrize(("key", "schema"), [("messages", MESSAGES), ("observed_routing", OBSERVED_ROUTING)])
def test_growing_tables_are_only_appended_to(tmp_path: Path, key: str, schema: Schema) -> None:
    import json

    first = exports(tmp_path / "first", MONDAY, **FIRST_VIEWS)
    later = exports(tmp_path / "later", TUESDAY, **FIRST_VIEWS)
    config = config_in(tmp_path)
    import_views(no_spark(), config, first)
    # As if the one message had not been there.
    from deltalake import DeltaTable, write_deltalake

    where = place(tmp_path, key).text
    one = dataset_of(where, DeltaTable(where)).to_table().slice(0, 1)
    write_deltalake(where, one, mode="overwrite")
    done = import_views(no_spark(), config, first if key == "messages" else later)
    assert done.written[key]["added"] == (1 if key == "messages" else 2)
    last = max(Path(where, "_delta_log").glob("*.json")).read_text(encoding="utf-8")
    actions = [json.loads(line) for line in last.splitlines()]
    assert not any("remove" in action for action in actions)
    assert sum("add" in action for action in actions) == 1


def test_tables_of_an_older_release_gain_their_columns(tmp_path: Path) -> None:
    """An existing row stays unchanged. An imported row has the sender and the handle."""
    config = config_in(tmp_path)
    make_older_tables(config)
    assert "from_service_name" not in rows_at(place(tmp_path, "messages"))[0]
    assert "conversation_handle" not in rows_at(place(tmp_path, "observed_routing"))[0]
    import_views(no_spark(), config, exports(tmp_path / "first", MONDAY, **FIRST_VIEWS))
    messages, observed = (rows_at(place(tmp_path, key)) for key in ("messages", "observed_routing"))
    first, second = (f"{dialog(1)}:I:{number}:Shop" for number in range(2))
    assert {row["message_id"]: row["from_service_name"] for row in messages} == {
        "theirs": None,
        first: "//shop",
        second: "//shop",
    }
    assert {row["message_id"]: row["conversation_handle"] for row in observed} == {
        "theirs": None,
        first: dialog(1),
        second: dialog(1),
    }


def test_a_table_that_does_not_fit(tmp_path: Path) -> None:
    import pyarrow
    from deltalake import write_deltalake

    columns = {"INSTANCE_NAME": ["a"], "database_name": ["b"], "name": [1], "Lifetime": ["x"]}
    write_deltalake(place(tmp_path, "routes").text, pyarrow.table(columns))
    with pytest.raises(InputError) as caught:
        open_tables(tmp_path, "routes")
    assert "column name is bigint, not string" in str(caught.value)
    assert "column lifetime is string, not timestamp" in str(caught.value)
    assert "instance_name" not in str(caught.value).replace(str(tmp_path), "")


def test_a_wider_number_type_stays_unchanged(tmp_path: Path) -> None:
    import pyarrow
    from deltalake import DeltaTable, write_deltalake

    row = {"instance_name": "HUB", "name": "db", "database_id": 5, "service_broker_guid": "x"}
    write_deltalake(place(tmp_path, "databases").text, pyarrow.Table.from_pylist([row]))
    store = open_tables(tmp_path, "databases")
    make_ready(store)
    put(store, "databases", TableChanges(put=[{**row, "database_id": 6, "is_broker_enabled": True}]))
    assert rows_at(place(tmp_path, "databases")) == [{**row, "database_id": 6, "is_broker_enabled": True}]
    types = {
        field.name: str(field.type) for field in DeltaTable(place(tmp_path, "databases").text).schema().fields
    }
    assert types["database_id"] == 'PrimitiveType("long")'


def test_the_commands_work_without_pyspark(tmp_path: Path) -> None:
    """As a user types them, on a machine with the packages of the extra light."""
    folder = tmp_path / "mine"
    exports(folder / "exports", MONDAY, **FIRST_VIEWS)
    (folder / "change.sql").write_text(SCRIPT, encoding="utf-8")
    keys = ("routes", "databases", "services", "instances", "messages", "dialogs", *KEPT)
    outputs = ("resolved_routes", "new_route_requests", "rejected_messages", "runs")
    lines = ["tables:", *(f"  {key}: data/{key}" for key in keys)]
    lines += ["output:", *(f"  {key}: out/{key}" for key in outputs)]
    (folder / "mine.yaml").write_text("\n".join(lines), encoding="utf-8")
    at = "2026-01-07T12:00:00+00:00"
    for line in (
        ["catalog", "exports"],
        ["tsql", "change.sql", "--instance", "HUB", "--scripted-at", at, "--snapshot"],
    ):
        arguments = ["import", *line, "--config", "mine.yaml", "--verbose"]
        code = (
            "import sys; sys.modules['pyspark'] = None; sys.modules['delta'] = None\n"
            f"from routing.cli import main\nsys.exit(main({arguments!r}))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env={"PYTHONPATH": str(ROOT), "PATH": "", "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "Rows written" in done.stdout
        assert "tables.routes: written by deltalake" in done.stderr
        assert "Spark" not in done.stderr
    assert len(rows_at(TableLocation(str(folder / "data" / "messages")))) == 2
    versions = {
        row["name"]: row["valid_to"] is None for row in rows_at(TableLocation(str(folder / "data" / "routes")))
    }
    assert versions["Billing"] is True
    assert versions["Doomed"] is False
