"""Fixtures of the tests without Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from routing.sessions.session import find_active


@pytest.fixture
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrap texts at one width and without colours, wherever the tests run."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture(scope="module", autouse=True)
def without_a_session() -> Iterator[None]:
    """Hide the session that tests with Spark may have started in this process: commands would use it."""
    active = find_active()
    if active is None:
        yield
        return
    sessions = active._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    sessions.clearActiveSession()
    assert find_active() is None
    yield
    sessions.setActiveSession(active._jsparkSession)
