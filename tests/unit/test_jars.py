"""Where a session's jars of Delta come from: Ivy, unless the settings or Spark's defaults bring them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from routing.sessions import session

SETTINGS = {"spark.ui.enabled": "false"}


@pytest.fixture(autouse=True)
def _no_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "PYSPARK_GATEWAY_PORT",
        "SPARK_REMOTE",
        "DATABRICKS_RUNTIME_VERSION",
        "SPARK_CONF_DIR",
        "SPARK_HOME",
    ):
        monkeypatch.delenv(name, raising=False)


class _Builder:
    """A session builder that keeps its settings, which are all that its session has."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}

    def appName(self, _: str) -> _Builder:  # noqa: N802 - Spark's name.
        return self

    def config(self, key: str, value: str) -> _Builder:
        self.settings[key] = value
        return self

    def getOrCreate(self) -> Any:  # noqa: N802 - Spark's name.
        return self


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Starts a session as if none were there, and returns its settings."""
    import delta

    def start(settings: dict[str, str]) -> dict[str, str]:
        builder = _Builder()

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


def test_long_plans_are_truncated(started: Any) -> None:
    key = "spark.sql.maxPlanStringLength"
    assert int(started(SETTINGS)[key]) <= 1_000_000
    # What a configuration sets counts.
    assert started({**SETTINGS, key: "5000000"})[key] == "5000000"


def _defaults(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "spark-defaults.conf").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("place", ["SPARK_CONF_DIR", "SPARK_HOME"])
@pytest.mark.parametrize(
    ("text", "packages"),
    [
        ("", "io.delta:it"),
        ("# mine\nspark.ui.enabled true\nspark.jars /own.jar\n", "io.delta:it"),
        ("spark.jars.ivy\t/ivy", "io.delta:it"),
        ("spark.jars.packages org.a:b:1,\\\n   org.c:d:2\n", "io.delta:it,org.a:b:1,org.c:d:2"),
        ("  spark.jars.packages : org.a:b:1", "io.delta:it,org.a:b:1"),
        ("#spark.jars.packages org.a:b:1\n! spark.jars /own.jar\nspark.jarsmith\n spark", "io.delta:it"),
        # Delta is left to them.
        ("spark.jars /jars/delta-spark_2.13-4.0.0.jar", None),
        ("spark.jars.packages=io.delta:delta-spark_2.13:4.0.0", None),
    ],
)
def test_jars_of_spark_s_defaults_come_with_delta_s(
    started: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, text: str, packages: str | None
) -> None:
    _defaults(tmp_path / "own" / ("conf" if place == "SPARK_HOME" else ""), text)
    monkeypatch.setenv(place, str(tmp_path / "own"))
    settings = {key: value for key, value in started(SETTINGS).items() if key.startswith("spark.jars")}
    assert settings == ({} if packages is None else {"spark.jars.packages": packages})


@pytest.mark.parametrize("key", ["spark.jars", "spark.jars.packages"])
def test_configured_jars_are_not_replaced(started: Any, key: str) -> None:
    settings = started({key: "/own.jar"})
    assert {name: value for name, value in settings.items() if name.startswith("spark.jars")} == {key: "/own.jar"}
