"""The pairs of Spark and Delta: their locks, the README, and the UDF that depends on one of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from routing.config import ConfigError
from routing.errors import EnvironmentFault
from routing.messages.dialog_hash import check_packages
from routing.sessions import session
from routing.sessions.existing_session import check_udf

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
# The releases of pyspark from 3.5 on, and those of delta-spark with what their own metadata says of pyspark.
SPARK = [
    *(f"3.5.{patch}" for patch in range(10)),
    *(f"4.0.{patch}" for patch in range(6)),
    *(f"4.1.{patch}" for patch in range(5)),
    *("4.2.0", "4.2.1", "4.3.0"),
]
DELTA = {
    "3.2.1": ">=3.5.3,<3.6.0",
    "3.3.0": ">=3.5.3,<3.6.0",
    "3.3.1": ">=3.5.3,<3.6.0",
    "3.3.2": ">=3.5.3,<3.6.0",
    "3.3.3": ">=3.5.3,<3.6.0",
    "4.0.0": ">=4.0.0",
    "4.0.1": ">=4.0.0",
    "4.1.0": ">=4.0.1",
    "4.2.0": ">=4.0.1,<=4.1.1",
    "4.3.0": ">=4.0.1,<=4.1.1",
    "4.3.1": ">=4.0.1,<=4.1.1",
    "4.4.0": ">=4.0.1,<=4.2.0",
    "4.4.1": ">=4.0.1,<=4.2.0",
}
SETTING = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"


def _pinned(file: Path) -> tuple[str, str]:
    text = file.read_text(encoding="utf-8")
    spark, delta = (re.search(rf"^{name}==(\S+)", text, re.MULTILINE) for name in ("pyspark", "delta-spark"))
    assert spark is not None
    assert delta is not None
    return spark[1], delta[1]


def test_the_page_of_platforms_names_every_pair_that_is_tested() -> None:
    locks = sorted((ROOT / "tests" / "pairs").glob("*.lock"))
    assert [lock.stem for lock in locks] == ["spark-3.5.9", "spark-4.0.5", "spark-4.2.0"]
    page = (ROOT / "docs" / "reference" / "platforms.md").read_text(encoding="utf-8")
    for lock in locks:
        spark, delta = _pinned(lock)
        assert _pinned(lock.with_suffix(".in")) == (spark, delta)
        assert lock.stem == f"spark-{spark}"
        assert f"{spark} with {delta}" in page
    spark, delta = _pinned(ROOT / "requirements.lock")
    assert f"pyspark {spark} with delta-spark {delta}: the locked pair" in page


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def _range(extra: str, package: str) -> SpecifierSet:
    wanted = map(Requirement, _project()["optional-dependencies"][extra])
    return next(one.specifier for one in wanted if one.name == package)


def test_pip_finds_only_working_pairs() -> None:
    """Each pair that the extra ``local`` and delta-spark's own metadata let pip bring together."""
    spark, delta = _range("local", "pyspark"), _range("local", "delta-spark")
    pairs = [
        (one, other)
        for one in SPARK
        for other, needs in DELTA.items()
        if one in spark and other in delta and one in SpecifierSet(needs)
    ]
    assert pairs == [("3.5.9", "3.3.3"), *((f"4.1.{patch}", "4.4.0") for patch in range(5))]
    assert pairs[-1] == _pinned(ROOT / "requirements.lock")


def test_a_version_of_python_that_is_claimed_is_one_that_was_tested() -> None:
    claimed = [name.rpartition(" ")[2] for name in _project()["classifiers"] if "Python :: 3." in name]
    page = (ROOT / "docs" / "reference" / "platforms.md").read_text(encoding="utf-8")
    tested = re.search(r"^\| Python \| 3\.10 or later\. The tests have run on ([^(]+) ", page, re.MULTILINE)
    assert tested is not None
    assert re.findall(r"3\.\d+", tested[1]) == claimed


def test_no_page_installs_by_a_name_that_is_not_published() -> None:
    by_name = re.compile(r"(?<!un)install [^`\n]*(?<!/)service-broker-routing(?!(\[[a-z,]+\])? @ git\+)")
    assert by_name.search("pip install 'service-broker-routing[light]'") is not None
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "conf").rglob("*.md")]
    assert [page.name for page in pages if by_name.search(page.read_text(encoding="utf-8"))] == []


def test_pandas_comes_where_it_is_used_and_nowhere_else() -> None:
    extras = _project()["optional-dependencies"]
    with_pandas = {name for name, wanted in extras.items() if any(Requirement(w).name == "pandas" for w in wanted)}
    assert with_pandas == {"local", "udf"}


@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_a_udf_without_its_packages_names_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EnvironmentFault) as caught:
        check_packages()
    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        f"resolve.dialog_hash: udf needs the Python package {package}, which is missing"
        " (in a clone: pip install '.[udf]'; or use dialog_hash: builtin)"
    )


def test_the_readme_submits_with_the_package_that_the_cluster_test_takes() -> None:
    cluster = (ROOT / "tests" / "platforms" / "test_cluster.py").read_text(encoding="utf-8")
    package = re.search(r'^PACKAGE = "(.+)"$', cluster, re.MULTILINE)
    assert package is not None
    _, delta = _pinned(ROOT / "requirements.lock")
    assert package[1].endswith(f":{delta}")
    assert f"spark-submit --packages {package[1]} " in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_spark_submit_keeps_the_log_short() -> None:
    option = "--driver-java-options -Dlog4j2.configurationFile=conf/log4j2.properties"
    commands = [
        command
        for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
        for command in re.findall(r"^spark-submit (?:.*\\\n)*.*", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert commands
    assert [command for command in commands if option not in command] == []


def _fake_session(version: str, settings: dict[str, str]) -> SparkSession:
    fake: Any = SimpleNamespace(
        version=version, conf=SimpleNamespace(get=lambda key, default: settings.get(key, default))
    )
    return cast("SparkSession", fake)


@pytest.mark.parametrize("settings", [{}, {SETTING: "true"}])
def test_a_udf_that_would_hang_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        check_udf(_fake_session("4.2.0", settings))
    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        f"resolve.dialog_hash: udf would hang on Spark 4.2.0 (set {SETTING} to false for the session,"
        " or use dialog_hash: builtin)"
    )


@pytest.mark.parametrize(
    ("version", "settings"), [("4.2.0", {SETTING: "false"}), ("4.1.4", {}), ("4.2.1", {}), ("3.5.9", {})]
)
def test_a_working_udf_is_accepted(version: str, settings: dict[str, str]) -> None:
    check_udf(_fake_session(version, settings))


def test_a_session_of_our_own_can_run_udfs() -> None:
    assert session._small_local_run()[SETTING] == "false"
