"""The places where import looks for arguments, and the size of downloads. tests/spark has Spark's part."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

import pytest

from routing.config import TableLocation
from routing.delta import file_systems
from routing.delta.file_systems import Folder, ListedFile
from routing.delta.opening import TableOpener
from routing.errors import EnvironmentFault, InputError
from routing.importing import fetching
from routing.importing.fetching import SessionPath, reach_by
from routing.importing.import_files import on_this_disk
from routing.importing.script_rows import read_scripts

AT = datetime(2026, 1, 5, 18, tzinfo=timezone.utc)
MADE = b"USE Sales;\nGO\nCREATE ROUTE R WITH ADDRESS = N'LOCAL';\n"


class Bucket:
    """The files of a session in s3://b, and the requests for them."""

    def __init__(self, **content: bytes) -> None:
        self.content = {name.replace("__", "/"): data for name, data in content.items()}
        self.looked: list[str] = []
        self.fetched: list[list[str]] = []

    def look(self, _: Any, path: str) -> Folder | ListedFile | None:
        """As `file_systems.look`."""
        self.looked.append(path)
        below = path.removeprefix("s3://b").strip("/")
        if below in self.content:
            return self._listed(below)
        listing: Folder = {}
        for name in self.content:
            if name.startswith(f"{below}/".lstrip("/")):
                listing[name.removeprefix(below).strip("/")] = self._listed(name)
        return listing or None

    def read(self, _: Any, wanted: list[ListedFile]) -> dict[str, bytes]:
        """As `file_systems.read`."""
        self.fetched.append([Path(file.path).name for file in wanted])
        return {file.path: self.content[file.path.removeprefix("s3://b/")] for file in wanted}

    def _listed(self, name: str) -> ListedFile:
        return ListedFile(f"s3://b/{name}", len(self.content[name]), AT)


def in_session(monkeypatch: pytest.MonkeyPatch, **content: bytes) -> Bucket:
    """Have every session find these files in s3://b."""
    bucket = Bucket(**content)
    monkeypatch.setattr(file_systems, "look", bucket.look)
    monkeypatch.setattr(file_systems, "read", bucket.read)
    return bucket


def opener() -> TableOpener:
    """Return an opener with a stand-in for its session."""
    return TableOpener(lambda: object())  # type: ignore[arg-type,return-value]


def never() -> NoReturn:
    """No session is started here."""
    raise AssertionError("Spark was started")


def test_local_files_need_no_session(tmp_path: Path) -> None:
    reach = reach_by(TableOpener(never))
    (tmp_path / "there").touch()
    for named in (
        str(tmp_path / "there"),
        str(tmp_path / "none"),
        "relative/none",
        "my:file.csv",
        "password=x.csv",
    ):
        assert reach(named) == Path(named)


def test_missing_local_paths_belong_to_a_session_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        TableOpener, "placed", lambda self, key, location: TableLocation(location.text, is_elsewhere=True)
    )
    reach = reach_by(opener())
    (tmp_path / "there").touch()
    assert isinstance(reach("/Volumes/main/shop/in"), SessionPath)
    assert reach(str(tmp_path / "there")) == tmp_path / "there"
    assert reach("relative/none") == Path("relative/none")


@pytest.mark.parametrize("named", ["s3a://key:word@b/x", "abfss://c@a.net/x?sig=abc"])
def test_an_address_with_a_secret_is_not_given_to_spark(named: str) -> None:
    with pytest.raises(InputError, match="seems to contain a secret") as caught:
        reach_by(TableOpener(never))(named)
    assert "b/x" not in str(caught.value)
    assert "abc" not in str(caught.value)


def test_the_error_says_why_a_session_is_needed() -> None:
    def start() -> NoReturn:
        raise EnvironmentFault.no_package("pyspark", "local")

    with pytest.raises(EnvironmentFault, match=r"'s3://b/x' is read by Spark \(it is a URI\)"):
        reach_by(TableOpener(start))("s3://b/x").exists()


@pytest.mark.parametrize("named", ["s3://b/x", "dbfs:/x", "file:/x"])
def test_local_readers_refuse_a_uri(named: str) -> None:
    with pytest.raises(InputError, match=f"'{named}' is a URI, but this command reads only files on this machine"):
        on_this_disk(named)


@pytest.mark.parametrize(
    ("start", "written", "expected"),
    [
        ("s3://b/x", "y.sql", "s3://b/x/y.sql"),
        ("s3://b/", "y.sql", "s3://b/y.sql"),
        ("s3://b", "y.sql", "s3://b/y.sql"),
        ("s3://b/x/", "../y.sql", "s3://b/x/../y.sql"),
        # From the root of the same bucket: no script leads out of it.
        ("s3://b/x", "/etc/passwd", "s3://b/etc/passwd"),
        ("dbfs:/x", "/y.sql", "dbfs:/y.sql"),
        ("dbfs:/", "y.sql", "dbfs:/y.sql"),
        ("/Volumes/m", "/y.sql", "/y.sql"),
        ("s3://b/x", "file:/etc/passwd", "s3://b/x/file:/etc/passwd"),
    ],
)
def test_paths_of_a_session_are_joined(start: str, written: str, expected: str) -> None:
    path = SessionPath(fetching._Fetcher(opener()), start) / written
    assert str(path) == expected


def test_parts_of_a_session_path() -> None:
    path = SessionPath(fetching._Fetcher(opener()), "s3://b/a b/routes.v2.CSV")
    assert (path.name, path.stem, path.suffix) == ("routes.v2.CSV", "routes.v2", ".CSV")
    assert str(path.parent) == "s3://b/a b"


def test_files_of_one_kind_are_fetched_together_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = in_session(monkeypatch, **{"d__1.csv": b"1", "d__2.txt": b"2", "d__3.csv": b"3333", "d__4.csv": b"4"})
    folder = reach_by(opener(), bytes_at_once=5)("s3://b/d")
    read = {file.name: file.read_bytes() for file in sorted(folder.iterdir(), key=str)}
    assert read == {"1.csv": b"1", "2.txt": b"2", "3.csv": b"3333", "4.csv": b"4"}
    assert bucket.fetched == [["1.csv", "3.csv"], ["2.txt"], ["4.csv"]]
    assert bucket.looked == ["s3://b/d"]


def test_a_file_over_the_bound_is_fetched_alone_and_twice_where_it_is_read_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bucket = in_session(monkeypatch, **{"1.csv": b"111", "2.csv": b"2"})
    first, second = sorted(reach_by(opener(), bytes_at_once=2)("s3://b").iterdir(), key=str)
    assert [first.read_bytes(), first.read_bytes(), second.read_bytes()] == [b"111", b"111", b"2"]
    assert bucket.fetched == [["1.csv"], ["1.csv"], ["2.csv"]]


def test_missing_files_and_files_used_as_folders_raise_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    in_session(monkeypatch, **{"d__1.csv": b"1"})
    reach = reach_by(opener())
    with pytest.raises(NotADirectoryError):
        list(reach("s3://b/d/1.csv").iterdir())
    with pytest.raises(IsADirectoryError):
        reach("s3://b/d").read_bytes()
    with pytest.raises(FileNotFoundError):
        reach("s3://b/none").read_bytes()
    with pytest.raises(FileNotFoundError):
        reach("s3://b/none").stat()


def test_a_script_with_the_files_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The script is UTF-16 with its own time. One of the files beside it is missing."""
    main = ":r sub\\made.sql\n:r none.sql\n".encode("utf-16")
    in_session(monkeypatch, **{"d__main.sql": main, "d__sub/made.sql": MADE})
    [script] = read_scripts(["s3://b/d/main.sql"], instance="HUB", reach=reach_by(opener()))
    assert (script.file, script.scripted_at) == ("s3://b/d/main.sql", AT)
    assert [(s.name, s.database) for s in script.statements] == [("R", "Sales")]
    assert [problem.why for problem in script.problems] == [
        "the file 'none.sql' of :r is not read: No such file or directory"
    ]


def test_a_missing_script_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    in_session(monkeypatch, **{"main.sql": MADE})
    with pytest.raises(InputError, match=r"'s3://b/none\.sql' cannot be read: No such file or directory"):
        read_scripts(["s3://b/none.sql"], instance="HUB", reach=reach_by(opener()))
    with pytest.raises(InputError, match=r"'s3://b/main\.sql' is a URI"):
        read_scripts(["s3://b/main.sql"], instance="HUB")
