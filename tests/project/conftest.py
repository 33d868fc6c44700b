"""Fixtures of notebooks and benchmarks that Spark's tests have too: the demo, and interpreted queries."""

from __future__ import annotations

import pytest

from tests.spark.conftest import demo, interpreted

__all__ = ["demo", "interpreted"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests with a session last: in a process that has one, nobody else is to run a command without."""
    items.sort(key=lambda item: "spark" in getattr(item, "fixturenames", ()))
