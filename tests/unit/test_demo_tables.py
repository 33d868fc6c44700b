"""The writer of the demo's input tables: delta-rs if possible, otherwise Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from routing.delta import local_tables
from routing.delta.opening import TableOpener
from routing.demo import build
from routing.sessions import session

OF_A_CLUSTER = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS")
HDFS = {"spark.hadoop.fs.defaultFS": "hdfs://elsewhere"}


def never() -> Any:
    raise AssertionError("no session is started to find out")


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the Spark sessions of other tests in this process."""
    monkeypatch.setattr(session, "is_given", lambda: False)
    for name in OF_A_CLUSTER:
        monkeypatch.delenv(name, raising=False)


def is_by_deltalake(folder: Path, settings: dict[str, str] | None = None) -> bool:
    return build.by_deltalake(TableOpener(never, settings or {}), build.settings(folder, ()))


def test_deltalake_writes_tables_on_this_disk(tmp_path: Path) -> None:
    assert is_by_deltalake(tmp_path / "demo")


@pytest.mark.parametrize("name", OF_A_CLUSTER)
def test_spark_writes_if_a_path_may_be_on_another_file_system(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's Spark may have configuration files with a file system of Hadoop."""
    files = tmp_path / "files"
    (files / "conf").mkdir(parents=True)
    monkeypatch.setenv(name, str(files))
    assert is_by_deltalake(tmp_path) is (name != "PYSPARK_SUBMIT_ARGS")
    for folder in (files, files / "conf"):
        (folder / "core-site.xml").write_text("<name>fs.defaultFS</name>", encoding="utf-8")
    assert not is_by_deltalake(tmp_path)


def test_spark_writes_if_settings_name_another_file_system(tmp_path: Path) -> None:
    assert not is_by_deltalake(tmp_path, HDFS)


def test_spark_writes_in_a_given_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "is_given", lambda: True)
    assert not is_by_deltalake(tmp_path)


def test_spark_writes_without_deltalake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_tables, "find_spec", lambda name: None)
    assert not is_by_deltalake(tmp_path)


def test_spark_writes_if_the_path_looks_like_a_url(tmp_path: Path) -> None:
    assert not is_by_deltalake(tmp_path / "100%25")
