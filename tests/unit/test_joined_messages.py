"""Passes of workers, without Spark: batches of any size, and keys that are followed once for all tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest

from routing.engines.arrow.joined_messages import WorkerPlan, WorkerSide, run_plan
from routing.rules.network import EstateNetwork
from routing.schemas import MESSAGES
from routing.tables.arrow_rows import arrow_schema
from routing.tables.read_rows import read_settings
from tests.frames import arrow
from tests.random_estates import assert_same
from tests.reference.paths import path_rows
from tests.unit.test_trace_growth import chain, circle_with_mirrors, tables_of


def _batches(messages: pyarrow.Table, size: int) -> Iterator[pyarrow.RecordBatch]:
    """The messages in all columns of their table, as Spark hands them over."""
    shape = arrow_schema(MESSAGES.optional())
    columns: list[Any] = [
        messages[field.name].cast(field.type)
        if field.name in messages.schema.names
        else pyarrow.nulls(len(messages), field.type)
        for field in shape
    ]
    yield from pyarrow.table(columns, schema=shape).to_batches(size)


def test_batches_of_any_size_are_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    owners = EstateNetwork.owners

    def count(*args: Any) -> Any:
        nonlocal steps
        steps += 1
        return owners(*args)

    monkeypatch.setattr(EstateNetwork, "owners", count)
    for shape in (chain, circle_with_mirrors):
        tables = tables_of(shape(8))
        given, expected = arrow(tables), path_rows(tables)
        plan = WorkerPlan([WorkerSide("before", read_settings(given), None, False)], has_dialogs=False)
        first_steps = 0
        for size in (3, 1, 1000):
            # A task that reads nothing gives nothing.
            assert list(run_plan(plan.pack(), ())) == []
            steps = 0
            rows = [
                row
                for batch in run_plan(plan.pack(), _batches(given["messages"], size))
                for row in batch.to_pylist()
            ]
            assert_same(rows, expected, "message_paths")
            # Every later task of a worker finds all keys followed.
            first_steps = first_steps or steps
            assert steps == (first_steps if size == 3 else 0)
        assert first_steps > 0
