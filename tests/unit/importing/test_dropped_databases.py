"""The rows of a database that sys.databases no longer lists, with any other imports."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.imports import MONDAY, SHOP_ID, TUESDAY, WEDNESDAY, config_in, dialog, import_views, no_spark, rows_at

pytest.importorskip("deltalake")
_DATABASES = f"name,database_id,service_broker_guid,is_broker_enabled\nShop,5,{SHOP_ID},1\n"
BAR = "Bar,6,22222222-1d3e-4b7a-9d5e-2f0a6b1c7d88,1\n"
_ROUTES = "name,remote_service_name,broker_instance,lifetime,address,mirror_address\n"
_ENDS = "conversation_handle,conversation_id,is_initiator,far_service,far_broker_instance\n"
_SHOP = "r,NULL,NULL,NULL,LOCAL,NULL,Shop\n"
# Nobody knows of which database it was.
_WRONG_LINE = "x\n"
_MONDAY = {
    "databases": _DATABASES + BAR,
    "routes": f"{_ROUTES}{_SHOP}b,NULL,NULL,NULL,TCP://b:1,NULL,Bar\nm,NULL,NULL,NULL,LOCAL,NULL,msdb\n",
    "services": "name\n//shop,Shop\n//bar,Bar\n",
    "conversation_endpoints": "".join(
        (_ENDS, f"{dialog(1)},{dialog(1)},1,//x,NULL,Shop\n", f"{dialog(2)},{dialog(2)},1,//x,NULL,Bar\n")
    ),
}
ROUTES, SERVICES, ENDS = (
    {"routes": _ROUTES + _SHOP},
    {"services": "name\n//shop,Shop\n"},
    {"conversation_endpoints": f"{_ENDS}{dialog(1)},{dialog(1)},1,//x,NULL,Shop\n"},
)
DATABASES = {"databases": _DATABASES}
WHOLE = {**DATABASES, **ROUTES, **SERVICES, **ENDS}


def exports(folder: Path, at: datetime, views: dict[str, str]) -> list[str]:
    """Write a folder of exports. Lines of database views end with the database."""
    folder.mkdir()
    for view, text in views.items():
        of_instance = view == "databases"
        head, *lines = text.strip().split("\n")
        names = "instance_name,exported_at" if of_instance else "database_name,instance_name,exported_at"
        body = "".join(f"{line},HUB,{at.isoformat()}\n" for line in lines)
        (folder / f"{view}.csv").write_text(f"{head},{names}\n{body}", encoding="utf-8")
    return [str(folder)]


def databases_in_force(config: Any) -> dict[str, set[str]]:
    """Return the databases with rows in each table, and for routes only with rows in force."""
    tables = {key: rows_at(config.tables[key]) for key in ("routes", "services", "dialogs")}
    tables["routes"] = [row for row in tables["routes"] if row["valid_to"] is None]
    return {key: {row["database_name"] for row in rows} for key, rows in tables.items()}


_GONE = {"routes": {"Shop", "msdb"}, "services": {"Shop"}, "dialogs": {"Shop"}}
_STAYS = {"routes": {"Shop", "Bar", "msdb"}, "services": {"Shop", "Bar"}, "dialogs": {"Shop", "Bar"}}


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        pytest.param([WHOLE], _GONE, id="all views at once"),
        pytest.param([DATABASES], _GONE, id="databases alone"),
        pytest.param([DATABASES, ROUTES, SERVICES, ENDS], _GONE, id="databases first"),
        pytest.param([ROUTES, SERVICES, ENDS, DATABASES], _GONE, id="databases last"),
        pytest.param([{**WHOLE, "routes": _ROUTES + _SHOP + _WRONG_LINE}], _GONE, id="a rejected route"),
        pytest.param([{**WHOLE, "services": "name\n//shop,Shop\n" + _WRONG_LINE}], _GONE, id="a rejected service"),
        pytest.param(
            [{**WHOLE, "conversation_endpoints": ENDS["conversation_endpoints"] + _WRONG_LINE}],
            _GONE,
            id="a rejected dialog",
        ),
        pytest.param(
            [{**WHOLE, "databases": f"{_DATABASES}Bar,six,no guid,1\n"}], _STAYS, id="a rejected database"
        ),
        pytest.param([ROUTES, SERVICES, ENDS], _STAYS, id="no databases"),
    ],
)
def test_only_sys_databases_decides_which_databases_are_dropped(
    imports: list[dict[str, str]], expected: dict[str, set[str]], tmp_path: Path
) -> None:
    config = config_in(tmp_path)
    import_views(no_spark(), config, exports(tmp_path / "monday", MONDAY, _MONDAY))
    assert databases_in_force(config) == _STAYS
    for number, views in enumerate(imports):
        import_views(no_spark(), config, exports(tmp_path / f"tuesday {number}", TUESDAY, views))
    assert databases_in_force(config) == expected
    ends = {row["valid_to"] for row in rows_at(config.tables["routes"]) if row["database_name"] == "Bar"}
    assert ends == ({TUESDAY} if "Bar" not in expected["routes"] else {None})


def test_the_next_import_removes_leftovers_of_an_earlier_import(tmp_path: Path) -> None:
    """As release 0.2.0 left it: the database is gone from its table, and nothing else is."""
    import pyarrow
    from deltalake import DeltaTable, write_deltalake

    config = config_in(tmp_path)
    import_views(no_spark(), config, exports(tmp_path / "monday", MONDAY, _MONDAY))
    where = config.tables["databases"].text
    rows = DeltaTable(where).to_pyarrow_table()
    write_deltalake(where, rows.filter(pyarrow.compute.equal(rows["name"], "Shop")), mode="overwrite")
    done = import_views(no_spark(), config, exports(tmp_path / "tuesday", TUESDAY, DATABASES))
    assert databases_in_force(config) == _GONE
    gone = {key: counts["removed"] + counts["closed"] for key, counts in done.written.items() if key in _GONE}
    assert gone == {"routes": 1, "services": 1, "dialogs": 1}
    note = "its routes, services and dialogs in the tables are closed or removed"
    assert f"sys.databases does not list HUB.Bar: {note}" in done.notes


def test_databases_exported_after_sys_databases_stay(tmp_path: Path) -> None:
    """The database was created later, and its own views have a later time."""
    config = config_in(tmp_path)
    later = {key: text for key, text in _MONDAY.items() if key != "databases"}
    import_views(no_spark(), config, exports(tmp_path / "wednesday", WEDNESDAY, later))
    import_views(no_spark(), config, exports(tmp_path / "tuesday", TUESDAY, DATABASES))
    assert databases_in_force(config) == _STAYS


def test_routes_of_an_older_file_in_the_same_folder_are_closed(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    folders = exports(tmp_path / "monday", MONDAY, {"routes": _MONDAY["routes"]})
    folders += exports(tmp_path / "tuesday", TUESDAY, DATABASES)
    import_views(no_spark(), config, folders)
    validity = {row["name"]: (row["valid_from"], row["valid_to"]) for row in rows_at(config.tables["routes"])}
    assert validity == {"r": (None, None), "b": (None, TUESDAY), "m": (None, None)}
