"""A run works in a session like serverless compute, which caches no frames and accepts hardly any setting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing import cli
from routing.config import load
from routing.sessions import existing_session
from tests.estate_rows import small_estate
from tests.frames import rows_of, with_moments
from tests.random_estates import assert_same
from tests.reference.resolver import resolve as reference
from tests.refusing import not_available, refused
from tests.stored import config_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.core, pytest.mark.matrix]
NO_PERSIST = refused("NOT_SUPPORTED_WITH_SERVERLESS", "PERSIST TABLE is not supported on serverless compute.")
# The settings that the client of Spark Connect reads itself.
OF_THE_CLIENT = ("spark.sql.connect.", "spark.sql.execution.pyspark.", "spark.sql.pyspark.", "spark.python.")
SETTINGS = "spark:\n  spark.sql.adaptive.enabled: false\n  spark.executor.memory: 4g\n"


@pytest.fixture
def refusing(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make the tests' session refuse to cache frames and to use settings. Return the attempts to cache."""
    tried: list[str] = []

    def persist(*_: Any) -> None:
        tried.append("persist")
        raise NO_PERSIST

    frame, conf = type(spark.range(1)), type(spark.conf)
    get = conf.get

    def refuse(_: object, key: str, *__: object) -> None:
        raise not_available(key)

    def get_own(self: Any, key: str, *default: Any) -> Any:
        return get(self, key, *default) if key.startswith(OF_THE_CLIENT) else refuse(self, key)

    monkeypatch.setattr(frame, "persist", persist)
    monkeypatch.setattr(conf, "set", refuse)
    monkeypatch.setattr(conf, "get", get_own)
    # For a classic session, caching is not tried first.
    monkeypatch.setattr(existing_session, "is_connect", lambda spark: True)
    monkeypatch.setattr(existing_session, "_tried", {})
    return tried


def test_a_run_continues_without_caching(
    refusing: list[str],
    spark: SparkSession,
    stored: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(config_text(stored, tmp_path / "out") + SETTINGS, encoding="utf-8")
    status = cli.main(["resolve", "--config", str(file), "--format", "json", "--quiet"])
    out, err = capsys.readouterr()
    assert status == 0, err
    (line,) = [line for line in err.splitlines() if "refused" in line]
    assert line == (
        "note: the Spark session has refused 2 settings: 'spark.sql.adaptive.enabled' ([CONFIG_NOT_AVAILABLE]"
        " Configuration spark.sql.adaptive.enabled is not available. SQLSTATE: 42K0I); 'spark.executor.memory'"
        " ([CONFIG_NOT_AVAILABLE] Configuration spark.executor.memory is not available. SQLSTATE: 42K0I); the"
        " command continues without"
    )
    assert refusing.count("persist") == 1
    run_id = json.loads(out)["run_id"]
    expected = reference(with_moments(small_estate()), as_of=None, run_id=run_id)
    found = routing.read_run(spark, load(str(file), []), run_id)
    assert_same(rows_of(found.resolved_routes), expected.resolved_routes, "resolved_routes")
    assert_same(rows_of(found.new_route_requests), expected.new_route_requests, "new_route_requests")
    assert_same(rows_of(found.rejected_messages), expected.rejected_messages, "rejected_messages")
