"""Sides compared by Spark and without it: the same rows of everything that is told, and of the table."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing.analysis.diff import opening
from routing.analysis.diff.asked import Against, Scripts, Versions
from routing.analysis.diff.diffing import Diff, diff
from routing.config import Location
from routing.schemas import MESSAGE_CHANGES
from routing.storage.columns import is_frame
from tests.frames import arrow, frames, rows_of
from tests.reference.altered import altered
from tests.reference.estate_words import MOMENTS
from tests.reference.estates import joined, random_estate
from tests.stored import config_of, save_estate, small_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = ("routes", "databases", "services", "instances", "route_requests")
AT = datetime.fromisoformat("2026-01-05T13:00:00+00:00")
SCRIPT = "USE Sales;\nDROP ROUTE Far;\nALTER DATABASE Store SET DISABLE_BROKER;\n"


def told(done: Diff) -> dict[str, Any]:
    """All that is told, whichever way it was compared."""
    rows = {name: list(getattr(done, name)) for name in ("counts", "keys", "routes", "findings")}
    return {**rows, "compared": done.compared, "messages": counted(done.messages)}


def counted(messages: Any) -> Counter[tuple[Any, ...]]:
    """The rows of a table with how often each stands there."""
    rows = rows_of(messages) if is_frame(messages) else messages.to_pylist()
    names = sorted(MESSAGE_CHANGES.names)
    return Counter(tuple(row[name] for name in names) for row in rows)


@pytest.fixture(scope="module")
def estates() -> tuple[dict[str, Any], dict[str, Any]]:
    """Two random configurations for the same messages."""
    rng = random.Random(5)
    before = [random_estate(rng, 40, f"e{number}/") for number in range(30)]
    return joined(before), joined([altered(rng, estate) for estate in before])


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(None, id="two configurations"),
        pytest.param(MOMENTS[5], id="two times", marks=pytest.mark.long),
    ],
)
def test_both_ways_tell_the_same(
    spark: SparkSession, estates: tuple[dict[str, Any], dict[str, Any]], later: datetime | None
) -> None:
    before, after = estates
    other: Mapping[str, Any] = {key: rows for key, rows in arrow(after).items() if key in SETTINGS}
    against: Against = other if later is None else later
    local = told(diff(arrow(before), against, at=MOMENTS[2], with_messages=True))
    given = {**arrow(before), **{key: frames(spark, before)[key] for key in ("messages", "dialogs")}}
    done = diff(given, against, at=MOMENTS[2], with_messages=True)
    assert is_frame(done.messages)
    assert told(done) == local
    assert sum(local["messages"].values()) > 100
    done.unpersist()


@pytest.mark.long
def test_many_messages_of_files_go_by_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_estate(small_estate(), tmp_path / "in")
    (tmp_path / "change.sql").write_text(SCRIPT, encoding="utf-8")
    config = config_of(tmp_path / "in", tmp_path / "out")
    for against in (Scripts([str(tmp_path / "change.sql")], "hub"), Versions({"routes": 0})):
        local = told(diff(config, against, at=AT, with_messages=True))
        with monkeypatch.context() as patched:
            patched.setattr(opening, "MOST_MESSAGES", 6)
            place = Location(str(tmp_path / "changes"))
            done = diff(config, against, at=AT, with_messages=True, out=place, spark=spark)
            assert is_frame(done.messages)
            assert told(done) == local
        stored = spark.read.format("delta").load(str(place))
        assert counted(stored) == local["messages"]
        assert sum(local["messages"].values()) == 3
