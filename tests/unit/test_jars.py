"""What a session's jars are remembered as, and when they are looked for anew."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from routing import jars, session

SETTINGS = {"spark.ui.enabled": "false"}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "DATABRICKS_RUNTIME_VERSION", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def fetched(tmp_path: Path) -> list[str]:
    """Two jars, as a session names them."""
    paths = [tmp_path / "delta-spark.jar", tmp_path / "delta storage.jar"]
    for path in paths:
        path.write_bytes(b"PK")
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
        by_ivy = "spark.jars.packages", "io.delta:it"
        monkeypatch.setattr(delta, "configure_spark_with_delta_pip", lambda b: b.config(*by_ivy))
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


def test_jars_without_delta_are_not_remembered(fetched: list[str], tmp_path: Path) -> None:
    jars.remember(fetched[1:])
    assert not (tmp_path / "cache").exists()


def test_pyspark_that_is_no_package_is_no_fault(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(jars, "version", version)
    jars.remember(fetched)
    assert jars.remembered() == []


def test_own_jars_are_neither_replaced_nor_remembered(started: Any) -> None:
    assert started({"spark.jars": "/own.jar"})["spark.jars"] == "/own.jar"
    assert jars.remembered() == []


def test_jars_are_those_of_the_installed_pair(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    jars.remember(fetched)
    monkeypatch.setattr(jars, "version", lambda package: f"{package} of another day")
    assert jars.remembered() == []


def test_one_pair_does_not_drive_out_another(
    fetched: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jars.remember(fetched)
    with monkeypatch.context() as other:
        other.setattr(jars, "version", lambda package: "0")
        jars.remember(fetched[:1])
        assert len(jars.remembered()) == 1
    assert len(jars.remembered()) == 2
    assert len(json.loads((tmp_path / "cache" / "sbroute" / "jars.json").read_text())) == 2
    assert [file.name for file in (tmp_path / "cache" / "sbroute").iterdir()] == ["jars.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pyspark": 1}', "null"])
def test_a_file_of_something_else_is_written_anew(fetched: list[str], tmp_path: Path, text: str) -> None:
    file = tmp_path / "cache" / "sbroute" / "jars.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert jars.remembered() == []
    jars.remember(fetched)
    assert len(jars.remembered()) == 2


@pytest.mark.parametrize("named", [[""], ["/no/such.jar"], ["https://example.org/delta.jar"], []])
def test_only_jars_of_this_machine_are_remembered(named: list[str], tmp_path: Path) -> None:
    jars.remember(named)
    assert not (tmp_path / "cache").exists()


def test_a_home_that_cannot_be_written_to_is_no_fault(fetched: list[str], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, where the folder would be")
    jars.remember(fetched)
    assert jars.remembered() == []
