"""Imports by Spark, and by Spark and deltalake in turn: the tables are the same as without Spark.

What an import changes is decided by plain Python; tests/unit/importing has it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.imports import (
    FIRST_VIEWS,
    KNOWN_DIALOGS,
    LATER_VIEWS,
    MONDAY,
    SCRIPT,
    THEIR_ROUTE,
    TUESDAY,
    config_in,
    exports,
    import_script,
    import_views,
    locations_of,
    make_table,
    newest,
    no_spark,
    rows_at,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config
    from routing.storage.opening import Opener

pytest.importorskip("deltalake")
pytestmark = pytest.mark.classic
Tables = dict[str, list[str]]
FIRST_TIME = datetime(1, 1, 1, tzinfo=timezone.utc)
LAST_TIME = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders of exports, Monday's and Tuesday's."""
    folder = tmp_path_factory.mktemp("exports")
    exports(folder / "first", MONDAY, **FIRST_VIEWS)
    exports(folder / "later", TUESDAY, **LATER_VIEWS)
    return folder


@pytest.fixture(autouse=True)
def _no_session_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have deltalake make tables although this process has a session, which may name another disk."""
    monkeypatch.setattr("routing.sessions.session.is_given", lambda: False)


@pytest.fixture
def spark_alone(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Opener]:
    """What opens tables by this session alone, as where deltalake is not installed."""
    from routing.storage import local
    from routing.storage.opening import Opener

    class Alone(Opener):
        def find(self, *given: Any) -> Any:
            with monkeypatch.context() as patch:
                patch.setattr(local, "find_spec", lambda name: None)
                return super().find(*given)

        def open_to_write(self, *given: Any) -> Any:
            with monkeypatch.context() as patch:
                patch.setattr(local, "find_spec", lambda name: None)
                return super().open_to_write(*given)

    return lambda: Alone.of_session(spark)


def held(config: Config) -> Tables:
    """Every row of every table, each as text, in order."""
    tables = {key: rows_at(where) for key, where in locations_of(config).items()}
    return {key: sorted(repr(sorted(row.items())) for row in rows) for key, rows in tables.items()}


def schemas(config: Config) -> dict[str, str]:
    from deltalake import DeltaTable

    return {key: DeltaTable(where.text).schema().to_json() for key, where in locations_of(config).items()}


def in_turn(config: Config, exported: Path, *openers: Opener) -> list[tuple[Tables, object]]:
    """Two exports and a script, each by its opener; what the tables hold and what the import said each time."""
    from routing.schemas import DIALOGS, Schema
    from routing.schemas import ROUTES as ROUTES_SCHEMA

    locations = locations_of(config)
    make_table(locations["dialogs"], KNOWN_DIALOGS, DIALOGS)
    make_table(locations["routes"], [THEIR_ROUTE], Schema(ROUTES_SCHEMA.fields[:8]), note="keep")
    first, later, last = openers
    seen: list[tuple[Tables, object]] = []
    done = import_views(first, config, [str(exported / "first")])
    seen.append((held(config), done.as_json()))
    done = import_views(later, config, [str(exported / "later")])
    seen.append((held(config), done.as_json()))
    done = import_script(last, config, exported / "change.sql", SCRIPT)
    seen.append((held(config), done.as_json()))
    # Nothing is left to be done, whoever looks.
    before = newest(config)
    import_script(first, config, exported / "change.sql", SCRIPT)
    assert newest(config) == before
    return seen


def test_both_ways_in_turn(exported: Path, tmp_path: Path, spark_alone: Callable[[], Opener]) -> None:
    """What Spark begins deltalake goes on with, and the reverse: rows, counts and schemas are the same."""
    wanted = in_turn(config_in(tmp_path / "deltalake"), exported, no_spark(), no_spark(), no_spark())
    assert [len(tables["routes"]) for tables, _ in wanted] == [4, 5, 7]
    assert in_turn(config_in(tmp_path / "sds"), exported, spark_alone(), no_spark(), spark_alone()) == wanted
    assert in_turn(config_in(tmp_path / "dsd"), exported, no_spark(), spark_alone(), no_spark()) == wanted
    made = [schemas(config_in(tmp_path / name)) for name in ("deltalake", "sds", "dsd")]
    assert made[0] == made[1] == made[2]
