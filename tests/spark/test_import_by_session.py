"""The session reads exports, and its default file system may be another one than the disk."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing.config import TableLocation
from routing.delta import file_systems
from routing.delta.opening import TableOpener
from routing.errors import InputError
from routing.importing.catalog import CatalogExport, StandIns, read_export
from routing.importing.fetching import reach_by
from routing.importing.script_rows import read_scripts
from routing.schemas import ROUTES
from tests.estate_rows import route, small_estate
from tests.frames import arrow_of
from tests.imports import DATABASES, MONDAY
from tests.imports import ROUTES as EXPORTED_ROUTES
from tests.stored import config_of, save_estate, store_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("deltalake")
SERVICES = "instance_name,database_name,exported_at,name\n{},Shop,2026-01-05T18:00:00Z,//{}\n"
# Names of folders and files that a shell, a URI or Spark's patterns would misread.
HOSTILE = (
    *("a b", "50%20", "x[1]", "{y,z}", "st*r", "q?", "Grüße-貨", "back\\slash", "#1", "a+b", "k=v", "it's", 'q"'),
    *("com,ma", "$HOME"),
)


def write(file: Path, content: str | bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """Return exports of every form, in folders with hostile names, beside other and ignored files."""
    import pyarrow
    from pyarrow import parquet

    folder = tmp_path / "exports of [all] %41"
    for number, name in enumerate(HOSTILE):
        write(folder / name / f"services {name}.csv", SERVICES.format(f"I{number}", number))
        write(folder / name / "services.csv", SERVICES.format(f"J{number}", number))
    write(folder / "wide" / "databases.csv", DATABASES.encode("utf-16"))
    write(folder / "routes.txt", EXPORTED_ROUTES)
    write(folder / "picture.csv", bytes(range(256)) * 20)
    write(folder / "notes.docx", "nothing")
    write(folder / "other.csv", "a,b\n1,2\n")
    for hidden in ("_started.csv", ".hidden.csv", "_log/services.csv", "..x/services.csv"):
        write(folder / hidden, SERVICES.format("HIDDEN", "hidden"))
    rows = [{"instance_name": "P", "database_name": "Shop", "exported_at": MONDAY, "name": "//parquet"}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "services.parquet")
    parts = folder / "parts" / "services.parquet"
    for part in ("instance_name=Q", "instance_name=R"):
        (parts / part).mkdir(parents=True)
        columns = [{name: row[name] for name in row if name != "instance_name"} for row in rows]
        parquet.write_table(pyarrow.Table.from_pylist(columns), parts / part / "part-0.parquet")
    return folder


def read(sources: list[str], **options: Any) -> CatalogExport:
    return read_export(sources, StandIns("HUB", "Shop", MONDAY), **options)


def test_exports_are_read_alike_by_the_session(spark: SparkSession, exported: Path) -> None:
    uri = f"file:{exported}"
    here = read([str(exported)])
    there = read([uri], reach=reach_by(TableOpener.of_session(spark)))
    expected = {"P", "Q", "R", *(f"J{number}" for number in range(len(HOSTILE)))}
    assert {row["instance_name"] for row in here.rows["services"]} == expected
    assert {view: len(rows) for view, rows in here.rows.items()} == {"services": 18, "databases": 2, "routes": 3}
    # A file is skipped because of its name or its content.
    unread = Counter(note.rpartition(": not read, ")[2][:26] for note in here.notes)
    assert unread == {
        "neither its name nor its c": 16,
        "its name does not end in a": 1,
        "it is not text": 1,
    }
    # Each file is named with the path that the user gave.
    paths = str(there).replace(f"file:{exported}", str(exported))
    assert paths == str(here)
    assert str(there).count(uri) > len(HOSTILE)


def test_scripts_are_read_alike_by_the_session(spark: SparkSession, tmp_path: Path) -> None:
    main = tmp_path / "main [1].sql"
    write(main, ":r .\\more\\a b.sql\n:r gone.sql\nGO\nDROP ROUTE b\n".encode("utf-16"))
    write(tmp_path / "more" / "a b.sql", "USE Sales\nGO\nDROP ROUTE a\nGO\n")
    os.utime(main, (1_767_636_000.25, 1_767_636_000.25))
    reach = reach_by(TableOpener.of_session(spark))
    here, there = (read_scripts([named], instance="HUB", reach=reach) for named in (str(main), f"file:{main}"))
    assert str(here[0].scripted_at) == "2026-01-05 18:00:00.250000+00:00"
    assert len(here[0].statements) == 2
    assert [problem.why for problem in here[0].problems] == [
        "the file 'gone.sql' of :r is not read: No such file or directory"
    ]
    assert str(there).replace(f"file:{tmp_path}", str(tmp_path)) == str(here)


def test_unreadable_files_are_named(spark: SparkSession, tmp_path: Path) -> None:
    reach = reach_by(TableOpener.of_session(spark))
    (tmp_path / "nothing").mkdir()
    write(tmp_path / "one" / "routes.csv", EXPORTED_ROUTES)
    write(tmp_path / "one" / "_routes.csv", EXPORTED_ROUTES)
    # Spark returns no row for an empty file.
    write(tmp_path / "empty" / "routes.csv", "")
    for named, why in (
        (f"file:{tmp_path}/none", "there is no such file"),
        (f"file:{tmp_path}/no[ne", "there is no such file"),
        (f"file:{tmp_path}/nothing", "it has no export of a view"),
        (f"file:{tmp_path}/empty/routes.csv", "it is empty"),
        (f"file:{tmp_path}/one/_routes.csv", "the session cannot read files with names that begin with _ or ."),
        ("nosuch://bucket/exports", 'No FileSystem for scheme "nosuch"'),
    ):
        with pytest.raises(InputError) as caught:
            read([named], reach=reach)
        assert f"'{named}' cannot be read: " in str(caught.value)
        assert why in str(caught.value)

    # The file is deleted, or changes its size, after it was listed.
    for content in (None, "name\n"):
        write(tmp_path / "one" / "routes.csv", EXPORTED_ROUTES)
        [file] = reach(f"file:{tmp_path}/one").iterdir()
        write(tmp_path / "one" / "routes.csv", content) if content else (tmp_path / "one" / "routes.csv").unlink()
        with pytest.raises(OSError) as failed:  # noqa: PT011 - which of them is Spark's choice
            file.read_bytes()
        assert failed.value.strerror


@contextmanager
def another_disk(spark: SparkSession, path: Path, behind: Path) -> Iterator[SparkSession]:
    """Return a session with its own file system, which maps each path to another path of this disk."""
    session = spark.newSession()
    name = f"sbroute-{abs(hash(path))}"
    session.conf.set("fs.defaultFS", f"viewfs://{name}/")
    session.conf.set(f"fs.viewfs.mounttable.{name}.link.{path}", f"file://{behind}")
    # The command's session has this setting. The test only gets faster by it.
    session.conf.set("spark.sql.shuffle.partitions", "1")
    yield session


@pytest.mark.classic
@pytest.mark.long
def test_a_default_file_system_that_is_not_the_disk(spark: SparkSession, tmp_path: Path) -> None:
    """The session's tables and exports are used, and never those of this disk at the same path."""
    from routing.runs import pipeline

    path, behind = tmp_path / "estate", tmp_path / "behind"
    save_estate(small_estate(), behind, files=1)
    write(behind / "exports" / "services.csv", SERVICES.format("THERE", "there"))
    # This disk has another table at the same path, and a file at the path of the outputs' folder.
    store_local(arrow_of([route("Decoy", None, "LOCAL")], ROUTES), path / "routes")
    write(path / "out", "a file")
    with another_disk(spark, path, behind) as session:
        assert file_systems.place(TableLocation(str(path / "routes")), session).is_elsewhere
        assert not file_systems.place(TableLocation(f"file:{path}/routes"), session).is_elsewhere
        assert not file_systems.place(TableLocation(str(path / "routes")), spark).is_elsewhere
        opener = TableOpener.of_session(session)
        found = opener.open_at("tables.routes", TableLocation(str(path / "routes")))
        assert sorted(row["name"] for row in found.collect()) == ["Ask", "Far", "Stock", "Store"]
        assert opener.find("tables.services", TableLocation(str(path / "none"))) is None
        export = read([str(path / "exports")], reach=reach_by(opener))
        assert [row["instance_name"] for row in export.rows["services"]] == ["THERE"]
        paths = {key: path / key for key in small_estate()}
        done = pipeline.run(session, config_of(behind, path / "out", **paths))
    assert (done.row["rows_read"], done.row["rows_rejected"]) == (7, 2)
    assert (behind / "out" / "runs" / "_delta_log").is_dir()
    assert (path / "out").read_text() == "a file"
    assert not list(tmp_path.rglob("*.lock"))
