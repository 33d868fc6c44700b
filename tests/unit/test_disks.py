"""The disk of a path, and the access to tables there, with stand-ins for sessions and the environment."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from routing.config import TableLocation
from routing.delta import file_systems
from routing.delta.commits import has_commits, is_local, newest_version
from routing.delta.local_tables import UnreadableTable
from routing.delta.opening import TableOpener
from routing.delta.run_lock import lock_file, only_run
from routing.delta.table_creation import check_vacant
from routing.delta.table_details import check_writable
from routing.errors import EnvironmentFault, OutputError
from routing.sessions import session

_OF_A_CLUSTER = (
    *("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS"),
    *("DATABRICKS_RUNTIME_VERSION", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"),
)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine where nothing speaks of a cluster, and no session of other tests is active."""
    for name in _OF_A_CLUSTER:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(session, "find_active", lambda: None)


class Session:
    """A session that sees files of this disk under some schemes, or under none. The empty scheme counts too."""

    def __init__(self, *seen: str) -> None:
        self.seen, self.asked = seen, list[str]()

    @property
    def read(self) -> Any:
        return self

    def format(self, name: str) -> Any:
        assert name == "binaryFile"
        return self

    def option(self, *_: str) -> Any:
        return self

    def load(self, paths: list[str]) -> Any:
        """By the scheme of a path, which is a file that is there."""
        (path,) = paths
        scheme = "file:" if path.startswith("file:") else ""
        assert Path(path.removeprefix("file:")).is_file()
        self.asked.append(scheme)
        if scheme not in self.seen:
            raise NotFound
        return SimpleNamespace(columns=["path"])


class NotFound(Exception):
    """Spark's error for a missing file."""

    def getCondition(self) -> str:  # noqa: N802 - Spark's name
        return "PATH_NOT_FOUND"


def session_of(*seen: str) -> Any:
    """A stand-in for a session."""
    return Session(*seen)


@pytest.mark.parametrize(
    ("text", "of_disk", "of_hdfs"),
    [
        ("/data/runs", False, True),
        ("/Volumes/main/shop/in/runs", False, True),
        # The driver's disk, whatever the default is.
        ("file:/data/runs", False, False),
        ("file:///data/runs", False, False),
        ("hdfs:/data/runs", False, False),
        ("dbfs:/data/runs", False, False),
        ("s3a://bucket/runs", False, False),
    ],
)
def test_the_session_decides_where_a_path_is(text: str, of_disk: bool, of_hdfs: bool) -> None:
    here, elsewhere = session_of(""), session_of()
    assert file_systems.place(TableLocation(text), here).is_elsewhere is of_disk
    assert file_systems.place(TableLocation(text), elsewhere).is_elsewhere is of_hdfs
    assert not file_systems.place(TableLocation(text), None).is_elsewhere


def test_a_catalog_name_has_no_disk() -> None:
    name = TableLocation("main.shop.runs", is_name=True)
    assert file_systems.place(name, session_of()) == name


def test_a_session_is_asked_once_for_its_default_file_system() -> None:
    spark = session_of()
    for path in ("/a", "/b", "/a"):
        assert file_systems.place(TableLocation(path), spark).is_elsewhere
    assert spark.asked == [""]


def test_a_remote_server_has_another_disk_for_any_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routing.delta.file_systems.is_connect", lambda spark: True)
    far, near = session_of(), session_of("", "file:")
    for text in ("/data/runs", "file:/data/runs"):
        assert file_systems.place(TableLocation(text), far).is_elsewhere
        assert not file_systems.place(TableLocation(text), near).is_elsewhere
    assert far.asked == near.asked == ["", "file:"]


def test_an_unreadable_path_is_not_on_this_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: str) -> None:
        raise PermissionError(13, "no rights")

    monkeypatch.setattr(file_systems, "is_there", refuse)
    assert file_systems.place(TableLocation("/data/runs"), session_of("")).is_elsewhere


def test_paths_on_databricks_are_not_local(monkeypatch: pytest.MonkeyPatch) -> None:
    """No session is started to find this out, and no other disk is checked."""
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    spark = session_of("")
    for path in ("/Volumes/main/shop/in/runs", "/tmp/runs"):
        assert file_systems.place(TableLocation(path), spark).is_elsewhere
        assert file_systems.place(TableLocation(path), None).is_elsewhere
        assert not file_systems.is_open(TableLocation(path), {})
    assert not file_systems.place(TableLocation("file:/tmp/runs"), spark).is_elsewhere
    assert spark.asked == []


HDFS = "<property><name>fs.defaultFS</name><value>hdfs://name:8020</value></property>"


@pytest.mark.parametrize(
    ("variable", "file", "text", "is_open"),
    [
        ("HADOOP_CONF_DIR", "core-site.xml", HDFS, True),
        ("HADOOP_CONF_DIR", "core-site.xml", "<name>fs.default.name</name>", True),
        ("YARN_CONF_DIR", "core-site.xml", HDFS, True),
        ("SPARK_CONF_DIR", "core-site.xml", HDFS, True),
        ("SPARK_CONF_DIR", "spark-defaults.conf", "spark.hadoop.fs.defaultFS hdfs://name:8020", True),
        ("SPARK_CONF_DIR", "spark-env.sh", "export HADOOP_CONF_DIR=/etc/hadoop/conf", True),
        ("SPARK_HOME", "conf/spark-defaults.conf", "spark.hadoop.fs.defaultFS=s3a://bucket", True),
        # What says nothing of paths is no reason to start Spark.
        ("HADOOP_CONF_DIR", "core-site.xml", "<name>io.file.buffer.size</name>", False),
        ("SPARK_HOME", "conf/spark-defaults.conf", "spark.sql.shuffle.partitions 8", False),
        ("SPARK_HOME", "nothing", "", False),
    ],
)
def test_files_of_a_cluster_may_name_another_disk(
    variable: str, file: str, text: str, is_open: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text, encoding="utf-8")
    monkeypatch.setenv(variable, str(tmp_path))
    assert file_systems.is_open(TableLocation("/data/runs"), {}) is is_open
    assert not file_systems.is_open(TableLocation("s3a://bucket/runs"), {})


def test_a_path_is_open_if_spark_may_use_another_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    path = TableLocation("/data/runs")
    assert not file_systems.is_open(path, {"spark.sql.shuffle.partitions": "8"})
    assert file_systems.is_open(path, {"spark.hadoop.fs.defaultFS": "hdfs://name:8020"})
    monkeypatch.setenv("SPARK_REMOTE", "sc://far")
    assert file_systems.is_open(path, {})


def table(folder: Path) -> TableLocation:
    """A table of this disk, as far as one looks without reading it."""
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "_delta_log" / f"{0:020d}.json").write_text("{}", encoding="utf-8")
    return TableLocation(str(folder))


def test_this_disk_is_not_checked_if_the_session_reads_another(tmp_path: Path) -> None:
    """This applies to logs, locks, permissions and other files in the table's folder."""
    here = table(tmp_path / "runs")
    there = file_systems.place(here, session_of())
    assert (is_local(here), newest_version(here), has_commits(here)) == (True, 0, True)
    assert (is_local(there), newest_version(there), has_commits(there)) == (False, None, False)
    with pytest.raises(OutputError):
        check_vacant("output.runs", here, "job")
    check_vacant("output.runs", there, "job")
    (tmp_path / "file").touch()
    below = TableLocation(str(tmp_path / "file" / "runs"))
    with pytest.raises(OutputError):
        check_writable("output.runs", below)
    check_writable("output.runs", file_systems.place(below, session_of()))
    assert lock_file(there) is None
    with only_run(there, "first"), only_run(there, "second"):
        assert not list(tmp_path.rglob("*.lock"))


def test_a_local_table_of_the_same_path_is_not_read(tmp_path: Path) -> None:
    """The session's table is read. A session is started if a setting names another file system."""
    asked = []

    def start() -> Any:
        asked.append("started")
        return session_of()

    notes: list[str] = []
    opener = TableOpener(start, {"spark.hadoop.fs.defaultFS": "hdfs://name:8020"}, notes.append)
    place = opener.placed("tables.routes", table(tmp_path / "routes"))
    assert place.is_elsewhere
    assert opener.open_to_write(place, 0) == UnreadableTable("it is not on this machine's disk")
    assert opener.open_to_write(place, None) == UnreadableTable(
        "it is not there, and not on this machine's disk alone"
    )
    assert asked == ["started"]
    assert notes == [
        "tables.routes: looked for by Spark (its path may be one of another file system than this machine's)"
    ]


def test_no_session_starts_for_local_paths(tmp_path: Path) -> None:
    opener = TableOpener(lambda: pytest.fail("Spark is started"))
    assert not opener.placed("tables.routes", table(tmp_path / "routes")).is_elsewhere
    assert opener.find("tables.routes", TableLocation(str(tmp_path / "none"))) is None


def test_the_error_says_why_spark_is_needed() -> None:
    def start() -> Any:
        raise EnvironmentFault.no_package("pyspark", "local")

    opener = TableOpener(start, {"spark.hadoop.fs.defaultFS": "hdfs://name:8020"})
    with pytest.raises(EnvironmentFault, match=r"tables\.routes is looked for by Spark \(its path may be one of"):
        opener.find("tables.routes", TableLocation("/data/routes"))


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("s3a://b/exports", "s3a://b/exports"),
        ("file:/a b/50%.csv", "file:/a b/50%.csv"),
        ("/a[1]/{x}/q?*", r"/a\[1\]/\{x\}/q\?\*"),
        ("/back\\slash", r"/back\\slash"),
    ],
)
def test_a_path_is_not_a_pattern(path: str, pattern: str) -> None:
    assert file_systems.as_pattern(path) == pattern
