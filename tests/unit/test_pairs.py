"""The pairs of Spark and Delta: what is locked, what the README says, and the UDF that hangs on one of them."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from routing.errors import ConfigError
from routing.sessions import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
SETTING = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"


def _pinned(file: Path) -> tuple[str, str]:
    text = file.read_text(encoding="utf-8")
    spark, delta = (re.search(rf"^{name}==(\S+)", text, re.MULTILINE) for name in ("pyspark", "delta-spark"))
    assert spark is not None
    assert delta is not None
    return spark[1], delta[1]


def test_the_readme_names_every_pair_that_is_tested() -> None:
    locks = sorted((ROOT / "tests" / "pairs").glob("*.lock"))
    assert [lock.stem for lock in locks] == ["spark-3.5.9", "spark-4.0.5", "spark-4.2.0"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for lock in locks:
        spark, delta = _pinned(lock)
        assert _pinned(lock.with_suffix(".in")) == (spark, delta)
        assert lock.stem == f"spark-{spark}"
        assert f"{spark} with {delta}" in readme
    spark, delta = _pinned(ROOT / "requirements.lock")
    assert f"pyspark {spark} with delta-spark {delta}: the locked pair" in readme


def test_the_readme_submits_with_the_package_that_the_cluster_test_takes() -> None:
    cluster = (ROOT / "tests" / "platforms" / "test_cluster.py").read_text(encoding="utf-8")
    package = re.search(r'^PACKAGE = "(.+)"$', cluster, re.MULTILINE)
    assert package is not None
    _, delta = _pinned(ROOT / "requirements.lock")
    assert package[1].endswith(f":{delta}")
    assert f"spark-submit --packages {package[1]} " in (ROOT / "README.md").read_text(encoding="utf-8")


def _given(version: str, settings: dict[str, str]) -> SparkSession:
    fake: Any = SimpleNamespace(
        version=version, conf=SimpleNamespace(get=lambda key, default: settings.get(key, default))
    )
    return cast("SparkSession", fake)


@pytest.mark.parametrize("settings", [{}, {SETTING: "true"}])
def test_a_udf_that_would_hang_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        session.check_udf(_given("4.2.0", settings))
    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        f"resolve.dialog_hash: udf would hang on Spark 4.2.0 (set {SETTING} to false for the session,"
        " or use dialog_hash: builtin)"
    )


@pytest.mark.parametrize(
    ("version", "settings"), [("4.2.0", {SETTING: "false"}), ("4.1.4", {}), ("4.2.1", {}), ("3.5.9", {})]
)
def test_a_udf_that_works_is_not(version: str, settings: dict[str, str]) -> None:
    session.check_udf(_given(version, settings))


def test_a_session_of_our_own_can_run_udfs() -> None:
    assert session._small_local_run()[SETTING] == "false"
