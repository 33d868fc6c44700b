"""The journal of imports: its content, reasons why it cannot be completed, and the output of dropping it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing.errors import InputError, StorageError
from routing.importing import import_journal
from tests.half_imports import BAR, FIRST, SECOND, THIRD, ended_after, estate, route, script, traffic, views
from tests.hooks import Killed
from tests.imports import (
    DATABASES,
    MONDAY,
    ROUTES,
    TUESDAY,
    WEDNESDAY,
    config_in,
    exports,
    import_script,
    import_views,
    locations_of,
    no_spark,
    rows_at,
)

if TYPE_CHECKING:
    from routing import Config
    from routing.config import TableLocation

pytest.importorskip("deltalake")
STOCK, BILLING = route("stock", "stock"), route("billing", "billing")


def journal_of(config: Config) -> TableLocation:
    assert config.journal is not None
    return config.journal


def end_import(folder: Path, step: Callable[..., None], commit: int) -> list[str]:
    with ended_after(commit) as commits, pytest.raises(Killed):
        step(no_spark(), folder)
    return commits


def half_done(folder: Path) -> Config:
    """Export Tuesday, and write the tables up to services but not routes."""
    config = config_in(folder)
    import_views(no_spark(), config, exports(folder / "monday", MONDAY, databases=DATABASES, routes=ROUTES))
    more = {"databases": DATABASES + BAR, "routes": ROUTES + BILLING, "services": "name\n//new\n"}
    source = exports(folder / "tuesday", TUESDAY, **more)
    with ended_after(2) as commits, pytest.raises(Killed):
        import_views(no_spark(), config, source)
    assert commits == ["replace unfinished_imports", "put databases", "put services"]
    return config


def routes_of(config: Config) -> set[str]:
    return {row["name"] for row in rows_at(config.tables["routes"])}


def test_the_journal_has_the_remaining_changes(tmp_path: Path) -> None:
    config = half_done(tmp_path)
    rows = {(row["table_key"], row["action"], row["part"]): row for row in rows_at(journal_of(config))}
    put = {(key, "put", 1) for key in ("databases", "services", "routes", "imports")}
    # Of a view the last import alone is kept.
    assert set(rows) == {*put, ("imports", "remove", 1)}
    journal_rows = json.loads(rows["services", "put", 1]["rows"])
    assert {key: journal_rows[key] for key in ("columns", "rows")} == {
        "columns": ["instance_name", "database_name", "name"],
        "rows": [["HUB", "Shop", "//new"]],
    }
    assert len({row["import_id"] for row in rows.values()}) == 1


def test_the_journal_has_no_values_of_variables(tmp_path: Path) -> None:
    from routing.importing.from_tsql import import_scripts
    from routing.importing.script_rows import read_scripts

    file = tmp_path / "s.sql"
    file.write_text(
        "PRINT '$(secret)'\nCREATE ROUTE r WITH ADDRESS = 'TCP://$(host):1'\nCREATE SERVICE s ON QUEUE q"
    )
    scripts = read_scripts(
        [str(file)], instance="HUB", database="Shop", scripted_at=MONDAY, variables={"host": "h", "secret": "1234"}
    )
    config = config_in(tmp_path)
    with ended_after(0), pytest.raises(Killed):
        import_scripts(no_spark(), config, scripts, instance="HUB", now=MONDAY)
    text = str(rows_at(journal_of(config)))
    assert "TCP://h:1" in text
    assert "1234" not in text


@pytest.mark.parametrize("what", ["views of another instance", "a script"])
def test_the_next_import_notes_a_completed_one(what: str, tmp_path: Path) -> None:
    config = half_done(tmp_path)
    if what == "a script":
        done = import_script(no_spark(), config, tmp_path / "s.sql", "USE Shop\nDROP ROUTE Doomed")
    else:
        source = exports(tmp_path / "other", WEDNESDAY, routes=ROUTES)
        file = Path(source[0], "routes.csv")
        file.write_text(file.read_text().replace(",HUB,", ",OTHER,"))
        done = import_views(no_spark(), config, source)
    assert done.notes[0] == "the import that began at 2026-02-01T00:00:00Z was completed first"
    assert "billing" in routes_of(config)
    assert rows_at(journal_of(config)) == []


def test_a_dry_run_completes_nothing_and_says_so(tmp_path: Path) -> None:
    config = half_done(tmp_path)
    done = import_views(no_spark(), config, [str(tmp_path / "tuesday")], dry_run=True)
    assert done.notes[0] == (
        "the import that began at 2026-02-01T00:00:00Z is not finished: the next import completes it first, and"
        " this dry run reads the current tables"
    )
    assert "billing" not in routes_of(config)
    assert len(rows_at(journal_of(config))) == 5


def test_an_import_with_one_commit_needs_no_journal(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    import_views(no_spark(), config, exports(tmp_path / "monday", MONDAY, routes=ROUTES))
    with ended_after(None) as commits:
        import_views(no_spark(), config, exports(tmp_path / "tuesday", TUESDAY, routes=ROUTES))
        import_views(no_spark(), config, [str(tmp_path / "tuesday")])
    assert commits == ["put imports"]


def _import_later(config: Config, _: Path) -> None:
    from deltalake import write_deltalake

    from routing.schemas import IMPORTS
    from routing.tables.arrow_rows import table_of

    row: dict[str, Any] = {"instance_name": "HUB", "database_name": "Shop", "view_or_file": "routes"}
    row |= {"exported_at": WEDNESDAY, "imported_at": WEDNESDAY}
    write_deltalake(locations_of(config)["imports"].text, table_of([row], IMPORTS), mode="append")


def _make_anew(config: Config, _: Path) -> None:
    import shutil

    from routing.schemas import ROUTES as SCHEMA
    from tests.imports import make_table

    shutil.rmtree(config.tables["routes"].text)
    make_table(config.tables["routes"], [], SCHEMA)


def _encoded(**values: Any) -> Callable[[Config, Path], None]:
    """Return a part with a correct digest and rows that do not fit a table."""

    def change(config: Config, _: Path) -> None:
        def encode(row: dict[str, Any]) -> dict[str, Any]:
            whole = {**json.loads(row["rows"]), **values}
            del whole["digest"]
            text = json.dumps(whole)[:-1]
            return {**row, "rows": f'{text},"digest":"{import_journal._digest(row, text)}"}}'}

        _rewrite(config, lambda rows: [encode(row) if row["table_key"] == "services" else row for row in rows])

    return change


def _rewrite(config: Config, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    from deltalake import write_deltalake

    from routing.schemas import UNFINISHED_IMPORTS
    from routing.tables.arrow_rows import table_of

    rows = table_of(change(rows_at(journal_of(config))), UNFINISHED_IMPORTS.optional())
    write_deltalake(journal_of(config).text, rows, mode="overwrite", schema_mode="overwrite")


def _change_journal(**columns: Any) -> Callable[[Config, Path], None]:
    return lambda config, _: _rewrite(
        config, lambda rows: [{**row, **columns} if row["table_key"] == "services" else row for row in rows]
    )


def _change_rows(
    change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]],
) -> Callable[[Config, Path], None]:
    return lambda config, _: _rewrite(config, change)


def _without_digest(row: dict[str, Any]) -> dict[str, Any]:
    """A part as release 0.2.0 stored it."""
    whole = json.loads(row["rows"])
    return {
        **row,
        "release": "0.2.0",
        "rows": json.dumps({key: whole[key] for key in ("table_id", "columns", "rows")}),
    }


def _edited(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "rows": row["rows"].replace("//new", "//old")}


def _of_release_0_2_0(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [_without_digest(row) for row in rows]


CANNOT = "part 1 of tables.services cannot be read"
UNFIT = {
    "something later was imported": (_import_later, "routes of HUB, database Shop is of"),
    "a table was made anew": (_make_anew, "tables.routes is not the table that the import began to write"),
    "a column that is not there": (
        _encoded(columns=["instance_name", "database_name", "colour"]),
        "tables.services has no column colour",
    ),
    "a row without a name": (
        _encoded(rows=[["HUB", "Shop", None]]),
        "a row of tables.services has an invalid name",
    ),
    "a row of another type": (_encoded(rows=[["HUB", "Shop", 5]]), "a row of tables.services has an invalid name"),
    "a row that is none": (_encoded(rows=[5]), "a row of tables.services cannot be read"),
    "half a surrogate": (
        _encoded(rows=[["HUB", "Shop", "\ud800"]]),
        "a row of tables.services has an invalid name",
    ),
    "rows that are no list": (_encoded(rows=5), CANNOT),
    "columns that are no list": (_encoded(columns=5), CANNOT),
    "columns that are no names": (_encoded(columns=[["x"]]), "tables.services has no column ['x']"),
    "no JSON": (_change_journal(rows="{"), CANNOT),
    "no object": (_change_journal(rows="[]"), CANNOT),
    "rows that are null": (_change_journal(rows=None), CANNOT),
    "a part that is null": (_change_journal(part=None), "a part of tables.services lacks its number"),
    "a key that is null": (_change_journal(table_key=None), "a part of tables.None lacks its number"),
    "an id that is null": (_change_journal(import_id=None), ""),
    "a time that is null": (_change_rows(lambda rows: [{**row, "started_at": None} for row in rows][1:]), "parts"),
    "a release that is null": (_change_journal(release=None), "differs from the stored import"),
    "an edited row": (_change_rows(lambda rows: [_edited(row) for row in rows]), "differs from the stored import"),
    "a part without its digest": (
        _change_rows(lambda rows: [{**_without_digest(row), "release": "1.0"} for row in rows]),
        "differs from the stored import",
    ),
    "doubled parts": (_change_rows(lambda rows: rows * 2), "is in the journal 2 times"),
    "doubled parts of release 0.2.0": (
        _change_rows(lambda rows: _of_release_0_2_0(rows) * 2),
        "is in the journal 2 times",
    ),
    "a missing part": (
        _change_rows(lambda rows: [row for row in rows if row["table_key"] != "services"]),
        "the journal has 4 of its 5 parts",
    ),
    "a first part of release 0.2.0 is missing": (
        _change_rows(lambda rows: [{**row, "part": 2} for row in _of_release_0_2_0(rows)]),
        "(put) is missing",
    ),
    "a table of a newer release": (
        _change_journal(table_key="queues"),
        "the configuration names no tables.queues",
    ),
    "an output": (_change_journal(table_key="runs"), "the configuration names no tables.runs"),
    "a newer release": (_change_journal(release="99.0"), "release 99.0 stored it, which is newer than"),
    "an unknown action": (
        _change_journal(action="move"),
        "a part of tables.services lacks its number, its action",
    ),
}


def test_an_import_of_release_0_2_0_is_completed(tmp_path: Path) -> None:
    config = half_done(tmp_path)
    _rewrite(config, _of_release_0_2_0)
    done = import_views(no_spark(), config, exports(tmp_path / "friday", WEDNESDAY, databases=DATABASES))
    assert done.notes[0] == "the import that began at 2026-02-01T00:00:00Z was completed first"
    assert "billing" in routes_of(config)


@pytest.mark.parametrize("name", UNFIT)
def test_an_import_that_cannot_be_completed_must_be_dropped(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_journal, "release", lambda: "1.0")
    config = half_done(tmp_path)
    spoil, why = UNFIT[name]
    spoil(config, tmp_path)
    before = {key: rows_at(where) for key, where in locations_of(config).items() if Path(where.text).exists()}
    friday = exports(tmp_path / "friday", WEDNESDAY, routes=ROUTES)
    with pytest.raises(InputError) as caught:
        import_views(no_spark(), config, friday)
    assert caught.value.exit_code == 2
    assert "is not finished and cannot be completed: " in str(caught.value)
    assert why in str(caught.value)
    assert "--drop-unfinished" in str(caught.value)
    assert before == {key: rows_at(where) for key, where in locations_of(config).items() if key in before}
    done = import_views(no_spark(), config, friday, drop_unfinished=True)
    assert "was dropped; tables." in done.notes[0]
    assert rows_at(journal_of(config)) == []


def test_dropping_names_the_tables(tmp_path: Path) -> None:
    config = half_done(tmp_path)
    source = [str(tmp_path / "monday")]
    for is_dry_run, done in ((True, "would be dropped"), (False, "was dropped")):
        note = import_views(no_spark(), config, source, drop_unfinished=True, dry_run=is_dry_run).notes[0]
        assert note == (
            f"the import that began at 2026-02-01T00:00:00Z {done}; tables.databases, tables.services,"
            " tables.routes, tables.imports may hold a part of it. Import complete exports once"
        )
    assert "billing" not in routes_of(config)


def test_messages_are_only_appended_to(tmp_path: Path) -> None:
    """A message that was added since stays unchanged and is stored once."""
    commits = end_import(tmp_path, estate(FIRST, STOCK, **traffic(1, 2)), 14)
    assert commits[-1] == "add messages"
    config = config_in(tmp_path)
    where = config.tables["messages"].text
    version = max(int(file.stem) for file in Path(where, "_delta_log").glob("*.json"))
    views(THIRD, "OTHER", databases=DATABASES)(no_spark(), tmp_path)
    assert len(rows_at(config.tables["messages"])) == 2
    assert version == max(int(file.stem) for file in Path(where, "_delta_log").glob("*.json"))


@pytest.mark.parametrize("commit", [0, 1, 2, 3])
def test_an_overtaken_import_stops_before_its_next_commit(
    commit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a lock another import completes it, and does its own work: nothing of that is undone."""
    from routing.delta import run_lock

    monkeypatch.setattr(run_lock, "lock_file", lambda *_: None)
    estate(FIRST, STOCK)(no_spark(), tmp_path)

    def overtake() -> None:
        script(THIRD, "DROP ROUTE billing\n", name="late.sql")(no_spark(), tmp_path)

    with (
        ended_after(commit, overtake) as commits,
        pytest.raises(StorageError, match="has changed since this import read it") as late,
    ):
        estate(SECOND, STOCK, BILLING, other_databases="")(no_spark(), tmp_path)
    assert late.value.exit_code == 3
    config = config_in(tmp_path)
    assert commits[commit + 1 :][-1] == "replace unfinished_imports"
    ended = {row["name"]: row["valid_to"] for row in rows_at(config.tables["routes"])}
    assert ended == {"AutoCreatedLocal": None, "stock": None, "billing": THIRD}
    assert {row["name"] for row in rows_at(config.tables["databases"])} == {"Shop"}


def test_a_concurrent_journal_commit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another import stores the same changes between the last check and the commit."""
    from routing.delta import local_tables, run_lock

    monkeypatch.setattr(run_lock, "lock_file", lambda *_: None)
    estate(FIRST, STOCK)(no_spark(), tmp_path)
    commit, is_done = local_tables.LocalTable.commit, False

    def commit_late(self: Any, *rows: Any, **how: Any) -> None:
        nonlocal is_done
        if Path(self.folder).name == "imports_unfinished" and not is_done:
            is_done = True
            estate(THIRD, STOCK, BILLING)(no_spark(), tmp_path)
        commit(self, *rows, **how)

    monkeypatch.setattr(local_tables.LocalTable, "commit", commit_late)
    with pytest.raises(StorageError, match=r"tables\.unfinished_imports at .* has changed since") as late:
        estate(SECOND, route("late", "late"))(no_spark(), tmp_path)
    assert late.value.exit_code == 3
    config = config_in(tmp_path)
    assert routes_of(config) == {"AutoCreatedLocal", "stock", "billing"}
    assert rows_at(journal_of(config)) == []


def test_lost_rows_of_imports_do_not_make_an_import_the_first(tmp_path: Path) -> None:
    import shutil

    config = config_in(tmp_path)
    import_views(no_spark(), config, exports(tmp_path / "monday", MONDAY, databases=DATABASES, routes=ROUTES))
    shutil.rmtree(locations_of(config)["imports"].text)
    done = import_views(no_spark(), config, exports(tmp_path / "tuesday", TUESDAY, routes=ROUTES + BILLING))
    begins = {row["name"]: row["valid_from"] for row in rows_at(config.tables["routes"])}
    assert begins == {"AutoCreatedLocal": None, "ToStock": None, "Doomed": None, "billing": TUESDAY}
    assert (
        "tables.routes has routes of HUB, but tables.imports has no import of them: this import does not"
        " count as the first, so new routes are valid from its own time on"
    ) in done.notes
