"""Imports beside runs, killed anywhere: no message is decided by older routes, and nothing stays half imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from routing.errors import RoutingError
from tests.log_in_memory import Log, LogsInMemory
from tests.unit.exactly_once.explorer import Program, State, all_states
from tests.unit.exactly_once.imports import JOURNAL, WRITTEN, Import
from tests.unit.exactly_once.runs import KEYS, Job, counted_runs

READ = ("routes", "messages")


def _begin(*numbers: int) -> LogsInMemory:
    """An import that was done."""
    logs = {key: Log(f"id of {key}").and_then("WRITE", frozenset({0})) for key in WRITTEN}
    return LogsInMemory(KEYS, {**logs, JOURNAL: Log("id of journal").and_then("WRITE", frozenset(numbers))})


def _killed() -> LogsInMemory:
    """An import of 7 was killed once its routes were written."""
    tables = _begin(7)
    tables.by_hand("routes", "WRITE", frozenset({0, 7}))
    return tables


def _rows(tables: LogsInMemory) -> dict[str, frozenset[int]]:
    return {key: tables.logs[key].rows() for key in (*WRITTEN, JOURNAL)}


def _older_routes(state: State) -> list[tuple[str, frozenset[int]]]:
    """Return the messages of recorded runs that did not read the messages' routes."""
    tables = state.tables(KEYS)
    read = [(row["run_id"], dict(row["inputs"])) for row in counted_runs(tables)]
    missing = [
        (run_id, tables.rows("messages", inputs["messages"]) - tables.rows("routes", inputs["routes"]))
        for run_id, inputs in read
    ]
    return [(run_id, messages) for run_id, messages in missing if messages]


_FULL, _INCREMENTAL = Job("A", "full", reads=READ), Job("A", reads=READ)


@pytest.mark.parametrize(
    ("beginning", "programs"),
    [
        pytest.param(_begin, (_FULL, Import(1)), id="a full run and an import"),
        pytest.param(_begin, (_INCREMENTAL, Import(1)), id="an incremental run and an import"),
        pytest.param(_killed, (_INCREMENTAL, Import(1)), id="an incremental run and an import after a killed one"),
        pytest.param(_begin, (_FULL, replace(_FULL, run_id="B"), Import(1)), id="two runs and an import"),
        # Without a lock, as on an object store.
        pytest.param(_begin, (Import(1), Import(2)), id="two imports"),
        pytest.param(_killed, (Import(1), Import(2)), id="two imports after a killed one"),
    ],
)
def test_imports_and_runs(beginning: Callable[[], LogsInMemory], programs: tuple[Program, ...]) -> None:
    ends = set()
    for state in all_states(beginning(), programs, 0):
        assert _older_routes(state) == [], state
        if not all(run.end for run in state.runs):
            continue
        ends.add(tuple(str(run.end).split(" at ")[0].split(" has ")[0] for run in state.runs))
        tables = state.tables(KEYS)
        begun = {program.number for program in programs if isinstance(program, Import)}
        done = {
            program.number
            for program, run in zip(programs, state.runs, strict=True)
            if isinstance(program, Import) and run.end == "done"
        }
        try:
            Import(9)(tables)
        except RoutingError as error:
            pytest.fail(f"{error}: {state}")
        rows = _rows(tables)
        # Whole or not at all; and what was done stays.
        assert rows[JOURNAL] == frozenset(), state
        assert len({rows[key] for key in WRITTEN}) == 1, state
        assert {0, 9, *done} <= rows["routes"] <= {0, 7, 9, *begun}, state
    assert {"done"} < {end for how in ends for end in how}
