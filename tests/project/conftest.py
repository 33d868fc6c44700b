"""What tests of notebooks and benchmarks share with those of Spark: its demo, and queries that are interpreted."""

from __future__ import annotations

from tests.spark.conftest import demo, interpreted

__all__ = ["demo", "interpreted"]
