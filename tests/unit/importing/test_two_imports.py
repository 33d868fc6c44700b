"""Two imports at once: one of them ends with exit code 3, at once beside a lock file, and else when it writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing.errors import StorageError
from tests.imports import (
    DATABASES,
    MONDAY,
    NOW,
    ROUTES,
    SCRIPT,
    TUESDAY,
    WEDNESDAY,
    config_in,
    exports,
    import_script,
    import_views,
    locations_of,
    newest,
    no_spark,
    rows_at,
)

if TYPE_CHECKING:
    from routing import Config

pytest.importorskip("deltalake")
VIEWS = {"databases": DATABASES, "routes": ROUTES}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return config_in(tmp_path)


@pytest.mark.parametrize("engine", ["deltalake", "Spark"])
def test_the_lock_is_held_from_the_first_read_to_the_last_commit(
    engine: str, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever engine comes second: it has looked at nothing yet, and started no session."""
    from routing.delta import local_tables

    older = exports(tmp_path / "older", MONDAY, **VIEWS)
    newer = exports(tmp_path / "newer", TUESDAY, **VIEWS)
    caught: list[tuple[str, StorageError]] = []

    def come_second(moment: str) -> None:
        with monkeypatch.context() as patch:
            if engine == "Spark":
                patch.setattr(local_tables, "find_spec", lambda name: None)
            with pytest.raises(StorageError) as error:
                import_views(no_spark(), config, newer)
            caught.append((moment, error.value))
            with pytest.raises(StorageError, match="another run is at work"):
                import_script(no_spark(), config, tmp_path / "s.sql", SCRIPT)

    commit = local_tables.LocalTable.commit

    def commit_last(self: Any, *rows: Any, **how: Any) -> None:
        commit(self, *rows, **how)
        if Path(self.table.table_uri).name == "imports":
            come_second("after the last commit")

    monkeypatch.setattr(local_tables.LocalTable, "commit", commit_last)
    import_views(no_spark(), config, older, progress=come_second)
    assert [moment for moment, _ in caught] == [
        "reading the tables",
        "writing the tables",
        "after the last commit",
    ]
    for _, error in caught:
        assert error.exit_code == 3
        expected = f"another run is at work on these tables: run 'import of {NOW.isoformat()}'"
        assert expected in str(error)
    assert not list(tmp_path.rglob("*.lock"))


def test_a_write_since_the_tables_were_read_is_detected(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no lock, as on another system."""
    from routing.delta import run_lock

    monkeypatch.setattr(run_lock, "lock_file", lambda *_: None)
    import_views(no_spark(), config, exports(tmp_path / "older", MONDAY, **VIEWS))
    newer = exports(tmp_path / "newer", TUESDAY, routes=ROUTES.replace("TCP://stock:4022", "TCP://late:4022"))
    moved = ROUTES.replace("TCP://stock:4022", "TCP://moved:4022")
    newest_one = exports(tmp_path / "newest", WEDNESDAY, routes=moved)

    def bring_newest(moment: str) -> None:
        if moment == "writing the tables":
            import_views(no_spark(), config, newest_one)

    with pytest.raises(StorageError, match=r"tables\.\w+ at .* has changed since .* \(import again") as late:
        import_views(no_spark(), config, newer, progress=bring_newest)
    assert late.value.exit_code == 3
    rows = [row for row in rows_at(config.tables["routes"]) if row["name"] == "ToStock" and not row["valid_to"]]
    assert [row["address"] for row in rows] == ["TCP://moved:4022"]


@pytest.mark.parametrize("adds", [True, False])
def test_a_concurrent_write_just_before_the_commit_is_detected(
    adds: bool, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the last look and the commit, which deltalake would put after the other one by itself."""
    from deltalake import write_deltalake

    from routing.delta import local_tables
    from routing.schemas import INPUTS
    from routing.tables.arrow_rows import table_of

    import_views(no_spark(), config, exports(tmp_path / "older", MONDAY, **VIEWS))
    key = "services" if adds else "routes"
    where = locations_of(config)[key]
    views = {"services": "name\n//shop\n"} if adds else {"routes": ROUTES.replace("stock:4022", "new:4022")}
    commit = local_tables.LocalTable.commit

    def commit_late(self: Any, *rows: Any, **how: Any) -> None:
        if Path(self.folder) != Path(where.text):
            commit(self, *rows, **how)
            return
        assert how == {"adds": adds}
        theirs = dict.fromkeys(("instance_name", "database_name", "name", "address"), "theirs")
        write_deltalake(where.text, table_of([theirs], INPUTS[key]), mode="append")
        commit(self, *rows, **how)

    monkeypatch.setattr(local_tables.LocalTable, "commit", commit_late)
    before = rows_at(where)
    with pytest.raises(StorageError, match=r"tables\.\w+ at .* has changed since") as late:
        import_views(no_spark(), config, exports(tmp_path / "newer", TUESDAY, **views))
    assert late.value.exit_code == 3
    after = rows_at(where)
    assert [row for row in after if row["name"] != "theirs"] == before
    assert len(after) == len(before) + 1


def test_a_commit_that_fails_for_another_reason(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from routing.delta import local_tables

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(local_tables.LocalTable, "commit", fail)
    with pytest.raises(StorageError, match=r"writing tables\.databases to .*: disk full") as caught:
        import_views(no_spark(), config, exports(tmp_path / "older", MONDAY, **VIEWS))
    assert caught.value.exit_code == 3
    # Again, it completes what is missing.
    monkeypatch.undo()
    import_views(no_spark(), config, [str(tmp_path / "older")])
    assert (newest(config)["routes"], len(rows_at(config.tables["databases"]))) == (1, 2)
