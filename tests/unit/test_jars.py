"""What a session's jars are remembered as, and when they are looked for anew."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from routing.sessions import session

SETTINGS = {"spark.ui.enabled": "false"}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    variables = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "DATABRICKS_RUNTIME_VERSION", "PYSPARK_SUBMIT_ARGS")
    for name in (*variables, "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def fetched(tmp_path: Path) -> list[str]:
    """Two jars, as a session names them."""
    folder = tmp_path / "fetched"
    folder.mkdir()
    paths = [folder / "delta-spark.jar", folder / "delta storage.jar"]
    for path in paths:
        path.write_bytes(b"PK" + path.name.encode())
    return [f"file://{path}" for path in paths]


class _Builder:
    """A session builder that keeps what it is told, and whose session has the jars that it was told, or Ivy's."""

    def __init__(self, ivys: list[str]) -> None:
        self.ivys = ivys
        self.settings: dict[str, str] = {}

    def appName(self, _: str) -> _Builder:  # noqa: N802 - Spark's name.
        return self

    def config(self, key: str, value: str) -> _Builder:
        self.settings[key] = value
        return self

    def getOrCreate(self) -> Any:  # noqa: N802 - Spark's name.
        named = {"spark.jars": ",".join(self.ivys)} if "spark.jars.packages" in self.settings else {}
        told = {**self.settings, **named}

        class _Session:
            conf = told

        return _Session


@pytest.fixture
def started(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Starts a session as if none were there, and returns what it was told."""
    import delta

    def start(settings: dict[str, str]) -> dict[str, str]:
        builder = _Builder(fetched)

        class _Sessions:
            @staticmethod
            def getActiveSession() -> None:  # noqa: N802 - Spark's name.
                return None

        monkeypatch.setattr(_Sessions, "builder", builder, raising=False)
        monkeypatch.setattr("pyspark.sql.SparkSession", _Sessions)

        def by_ivy(asked: _Builder, others: list[str] | None = None) -> _Builder:
            return asked.config("spark.jars.packages", ",".join(["io.delta:it", *(others or [])]))

        monkeypatch.setattr(delta, "configure_spark_with_delta_pip", by_ivy)
        session.start(settings)
        return builder.settings

    return start


def test_the_second_session_takes_the_jars_of_the_first(started: Any, fetched: list[str], tmp_path: Path) -> None:
    paths = [jar.removeprefix("file://") for jar in fetched]
    assert started(SETTINGS)["spark.jars.packages"] == "io.delta:it"
    second = started(SETTINGS)
    assert "spark.jars.packages" not in second
    assert second["spark.jars"] == ",".join(paths)
    Path(paths[1]).unlink()
    assert started(SETTINGS)["spark.jars.packages"] == "io.delta:it"


def test_a_session_of_its_own_prints_no_plan_without_end(started: Any) -> None:
    key = "spark.sql.maxPlanStringLength"
    assert int(started(SETTINGS)[key]) <= 1_000_000
    # What a configuration sets counts.
    assert started({**SETTINGS, key: "5000000"})[key] == "5000000"


@pytest.mark.parametrize("key", ["spark.jars.ivy", "spark.jars.repositories", "spark.jars.ivySettings"])
def test_who_says_where_jars_are_is_given_those(started: Any, key: str) -> None:
    started(SETTINGS)
    told = started({key: "elsewhere"})
    assert told["spark.jars.packages"] == "io.delta:it"
    assert "spark.jars" not in told


def test_what_spark_is_told_otherwise_is_asked_of_ivy(started: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    started(SETTINGS)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars /own.jar pyspark-shell")
    told = started(SETTINGS)
    assert told["spark.jars.packages"] == "io.delta:it"
    assert "spark.jars" not in told


def _to_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file or folder belong to another user: by root's means, or else all files do."""
    if os.getuid() == 0:
        os.chown(path, 4711, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 4711)


def _to_another_group(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _to_the_group(path, "staff of many", monkeypatch)


def _to_the_group(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(path.stat().st_mode | stat.S_IWGRP)
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_name="anna"))
    monkeypatch.setattr("grp.getgrgid", lambda _: SimpleNamespace(gr_name=name))


def _to_all(path: Path, _: pytest.MonkeyPatch) -> None:
    path.chmod(path.stat().st_mode | stat.S_IWOTH)


@pytest.mark.parametrize("give", [_to_another, _to_another_group, _to_all])
@pytest.mark.parametrize(
    "what", ["fetched/delta-spark.jar", "fetched", "cache/sbroute/jars.json", "cache/sbroute"]
)
def test_what_others_can_change_is_not_used(
    fetched: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    give: Callable[[Path, pytest.MonkeyPatch], None],
    what: str,
) -> None:
    session.remember_jars(fetched)
    assert len(session.find_remembered_jars()) == 2
    give(tmp_path / what, monkeypatch)
    assert session.find_remembered_jars() == []


def test_the_group_of_one_s_own_is_no_other(
    fetched: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.remember_jars(fetched)
    for what in ("fetched/delta-spark.jar", "fetched", "cache/sbroute/jars.json", "cache/sbroute"):
        _to_the_group(tmp_path / what, "anna", monkeypatch)
    assert len(session.find_remembered_jars()) == 2


def test_a_folder_for_all_keeps_what_is_whose(fetched: list[str], tmp_path: Path) -> None:
    session.remember_jars(fetched)
    (tmp_path / "fetched").chmod(0o1777)
    assert len(session.find_remembered_jars()) == 2


def test_a_jar_that_has_changed_is_looked_for_anew(started: Any, fetched: list[str]) -> None:
    started(SETTINGS)
    with Path(fetched[1].removeprefix("file://")).open("ab") as jar:
        jar.write(b"!")
    told = started(SETTINGS)
    assert told["spark.jars.packages"] == "io.delta:it"
    assert "spark.jars" not in told
    # And its new hash was written down.
    assert len(session.find_remembered_jars()) == 2


def test_hashes_are_sha_256(fetched: list[str], tmp_path: Path) -> None:
    session.remember_jars(fetched)
    (kept,) = json.loads((tmp_path / "cache" / "sbroute" / "jars.json").read_text()).values()
    # As `printf 'PKdelta-spark.jar' | sha256sum` prints it.
    assert kept[f"{tmp_path}/fetched/delta-spark.jar"] == (
        "d2eb4ae1fa88d436fb9ed8c9c16545995f9599e067b5ae1a0ed59d4aebb8e123"
    )


def test_a_link_is_remembered_as_what_it_leads_to(fetched: list[str], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "fetched")
    session.remember_jars([jar.replace("/fetched/", "/link/") for jar in fetched])
    paths = [jar.removeprefix("file://") for jar in fetched]
    assert session.find_remembered_jars() == paths
    # One that has taken a jar's place since is not followed.
    Path(paths[0]).rename(tmp_path / "moved.jar")
    Path(paths[0]).symlink_to(tmp_path / "moved.jar")
    assert session.find_remembered_jars() == []


def test_a_list_of_the_first_release_is_looked_for_anew(fetched: list[str], tmp_path: Path) -> None:
    session.remember_jars(fetched)
    file = tmp_path / "cache" / "sbroute" / "jars.json"
    (pair,) = json.loads(file.read_text())
    file.write_text(json.dumps({pair: [jar.removeprefix("file://") for jar in fetched]}))
    assert session.find_remembered_jars() == []
    session.remember_jars(fetched)
    assert len(session.find_remembered_jars()) == 2


def _defaults(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "spark-defaults.conf").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("place", ["SPARK_CONF_DIR", "SPARK_HOME"])
@pytest.mark.parametrize(
    "line", ["spark.jars /own.jar", "spark.jars=/own.jar", "  spark.jars : /own.jar", "spark.jars.ivy\t/ivy"]
)
def test_jars_of_spark_s_defaults_are_not_replaced(
    started: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, line: str
) -> None:
    started(SETTINGS)
    assert len(session.find_remembered_jars()) == 2
    folder = tmp_path / "own"
    _defaults(folder / "conf" if place == "SPARK_HOME" else folder, f"# mine\nspark.ui.enabled true\n{line}\n")
    monkeypatch.setenv(place, str(folder))
    told = started(SETTINGS)
    assert "spark.jars" not in told
    assert told["spark.jars.packages"] == "io.delta:it"


def test_packages_of_spark_s_defaults_come_with_delta_s(
    started: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _defaults(tmp_path / "own", "spark.jars.packages org.a:b:1,\\\n   org.c:d:2\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "own"))
    assert started(SETTINGS)["spark.jars.packages"] == "io.delta:it,org.a:b:1,org.c:d:2"
    # What was fetched with others' is not kept for sessions without them.
    assert session.find_remembered_jars() == []


@pytest.mark.parametrize(
    "line", ["spark.jars /jars/delta-spark_2.13-4.0.0.jar", "spark.jars.packages io.delta:delta-spark_2.13:4.0.0"]
)
def test_delta_of_spark_s_defaults_is_left_to_them(
    started: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    _defaults(tmp_path / "own", line)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "own"))
    assert not [key for key in started(SETTINGS) if key.startswith("spark.jars")]


@pytest.mark.parametrize("text", ["", "#spark.jars /own.jar", "! spark.jars /own.jar", "spark.jarsmith\n spark"])
def test_defaults_that_name_no_jars_change_nothing(
    started: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    started(SETTINGS)
    _defaults(tmp_path / "own", text)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "own"))
    assert "spark.jars" in started(SETTINGS)


def test_jars_without_delta_are_not_remembered(fetched: list[str], tmp_path: Path) -> None:
    session.remember_jars(fetched[1:])
    assert not (tmp_path / "cache").exists()


def test_pyspark_that_is_no_package_is_no_fault(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(session, "version", version)
    session.remember_jars(fetched)
    assert session.find_remembered_jars() == []


def test_own_jars_are_neither_replaced_nor_remembered(started: Any) -> None:
    assert started({"spark.jars": "/own.jar"})["spark.jars"] == "/own.jar"
    assert session.find_remembered_jars() == []


def test_jars_are_those_of_the_installed_pair(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    session.remember_jars(fetched)
    monkeypatch.setattr(session, "version", lambda package: f"{package} of another day")
    assert session.find_remembered_jars() == []


def test_one_pair_does_not_drive_out_another(
    fetched: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    session.remember_jars(fetched)
    with monkeypatch.context() as other:
        other.setattr(session, "version", lambda package: "0")
        session.remember_jars(fetched[:1])
        assert len(session.find_remembered_jars()) == 1
    assert len(session.find_remembered_jars()) == 2
    assert len(json.loads((tmp_path / "cache" / "sbroute" / "jars.json").read_text())) == 2
    assert [file.name for file in (tmp_path / "cache" / "sbroute").iterdir()] == ["jars.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pyspark": 1}', "null"])
def test_a_file_of_something_else_is_written_anew(fetched: list[str], tmp_path: Path, text: str) -> None:
    file = tmp_path / "cache" / "sbroute" / "jars.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert session.find_remembered_jars() == []
    session.remember_jars(fetched)
    assert len(session.find_remembered_jars()) == 2


@pytest.mark.parametrize("named", [[""], ["/no/such.jar"], ["https://example.org/delta.jar"], []])
def test_only_jars_of_this_machine_are_remembered(named: list[str], tmp_path: Path) -> None:
    session.remember_jars(named)
    assert not (tmp_path / "cache").exists()


def test_a_home_that_cannot_be_written_to_is_no_fault(fetched: list[str], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, where the folder would be")
    session.remember_jars(fetched)
    assert session.find_remembered_jars() == []
