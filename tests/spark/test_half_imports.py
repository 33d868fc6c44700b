"""Imports happen during runs, and imports by Spark end after any of their commits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.half_imports import FIRST, SCENARIOS, SECOND, ended_after, estate, route, tell_differences, traffic
from tests.hooks import Killed
from tests.imports import config_in, no_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.delta.opening import TableOpener

pytest.importorskip("deltalake")
pytestmark = pytest.mark.classic


@pytest.fixture(autouse=True)
def _no_session_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let deltalake create tables although this process has a session, which may name another disk."""
    monkeypatch.setattr("routing.sessions.session.is_given", lambda: False)


def outcomes(spark: SparkSession, folder: Path) -> dict[str, str | None]:
    """Return the address that each message was last sent to."""
    stored = spark.read.format("delta").load(str(folder / "out" / "resolved_routes"))
    rows = sorted(stored.collect(), key=lambda row: row["attempt"])
    return {row["message_id"].split(":")[0][-1]: row["address"] for row in rows}


@pytest.mark.parametrize("mode", [pytest.param("full", marks=pytest.mark.long), "incremental"])
def test_no_message_is_decided_by_routes_older_than_its_import(
    mode: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import happens between the moments at which a run chooses the versions of two inputs."""
    import routing
    from routing.delta import spark_tables

    config = config_in(tmp_path, f"resolve.mode={mode}")
    estate(FIRST, route("stock", "old"), **traffic(1))(no_spark(), tmp_path)
    find: Callable[..., Any] = spark_tables.find
    found: list[str] = []

    def find_then_import(*arguments: Any) -> Any:
        at = find(*arguments)
        found.append(Path(arguments[1].text).name)
        if len(found) == 1:
            estate(SECOND, route("stock", "new"), **traffic(1, 2))(no_spark(), tmp_path)
        return at

    with monkeypatch.context() as patch:
        patch.setattr(spark_tables, "find", find_then_import)
        routing.run(spark, config, run_id="first")
    assert len(found) > 1
    # The second message dates from Tuesday, when the route led to the new address.
    assert outcomes(spark, tmp_path).get("2") in (None, "TCP://new:4022")
    routing.run(spark, config, run_id="second")
    assert outcomes(spark, tmp_path)["2"] == "TCP://new:4022"


def test_a_run_says_that_an_import_is_not_finished(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import yaml

    from routing import cli
    from routing.commands import command_context

    monkeypatch.setattr(command_context, "session", lambda *_, **__: spark)

    estate(FIRST, route("stock", "old"), **traffic(1))(no_spark(), tmp_path)
    with ended_after(1), pytest.raises(Killed):
        estate(SECOND, route("stock", "new"), other_databases="", **traffic(1, 2))(no_spark(), tmp_path)
    config = config_in(tmp_path)
    content = {
        "tables": {key: where.text for key, where in {**config.tables, **config.import_tables}.items()},
        "output": {key: where.text for key, where in config.output.items()},
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    assert cli.main(["resolve", "--config", str(tmp_path / "job.yaml"), "--format", "json"]) == 0
    out, err = capsys.readouterr()
    note = "the import that began at 2026-01-06T12:00:00Z is not finished: "
    assert f"note: {note}" in err
    answer = json.loads(out)
    assert answer["rows_read"] == 1
    assert [text.startswith(note) for text in answer["notes"]] == [True]


@pytest.fixture
def by_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[[], TableOpener]:
    """Return an opener that uses only this session, as without deltalake."""
    from routing.delta import local_tables
    from routing.delta.opening import TableOpener

    class Chosen(TableOpener):
        def find(self, *arguments: Any) -> Any:
            with monkeypatch.context() as patch:
                patch.setattr(
                    local_tables, "look_at_path", lambda _: local_tables.UnreadableTable("it is to go by Spark")
                )
                return super().find(*arguments)

        def open_to_write(self, *_: Any) -> Any:
            return local_tables.UnreadableTable("it is to go by Spark")

    return lambda: Chosen(lambda: spark)


@pytest.mark.long
@pytest.mark.parametrize("name", ["names are exchanged", "a route if there is none"])
def test_imports_by_spark_are_completed(name: str, tmp_path: Path, by_spark: Callable[[], TableOpener]) -> None:
    assert tell_differences(SCENARIOS[name], tmp_path, by_spark, every=2) == []
