"""Two runs at the same time, killed anywhere, never lose recorded results, and a clean run repairs the rest."""

from __future__ import annotations

import pytest

from routing.errors import RoutingError
from tests.log_in_memory import Log, LogsInMemory
from tests.unit.exactly_once.explorer import State, all_states
from tests.unit.exactly_once.runs import KEYS, Job, counted_runs, one_after_the_other

REVERSED = tuple(reversed(KEYS))
LOST = "another run wrote to output."
RECORDED = "run 'A' is already recorded"


def _no_run() -> LogsInMemory:
    messages = Log("id of messages").and_then("WRITE", frozenset({0, 1}))
    return LogsInMemory(KEYS, {"messages": messages})


def _one_run(mode: str = "incremental") -> LogsInMemory:
    tables = _no_run()
    Job("first", mode)(tables)
    tables.by_hand("messages", "WRITE", frozenset({0, 1, 2, 3}))
    return tables


def _a_killed_run() -> LogsInMemory:
    """It has replaced one output, and somebody has looked after that since."""
    from routing.delta import protocol

    tables = _one_run()
    start = protocol.begin(tables, "killed", is_full=False)
    protocol.commit(tables, start, "pending_messages", frozenset({(3, 1)}), adds=False)
    tables.by_hand("pending_messages", "OPTIMIZE")
    return tables


def _two_runs() -> LogsInMemory:
    tables = _one_run()
    Job("second")(tables)
    return tables


def _runs_restored() -> LogsInMemory:
    """An operator restored ``runs`` and one output to the first run after the second one had its turn."""
    tables = _two_runs()
    tables.restore_by_hand("runs", 0)
    tables.restore_by_hand("resolved_routes", 0)
    return tables


def _runs_emptied() -> LogsInMemory:
    tables = _two_runs()
    tables.by_hand("runs", "DELETE", frozenset())
    return tables


def _messages_deleted(mode: str = "incremental") -> LogsInMemory:
    """One delayed and one decided message are gone."""
    tables = _one_run(mode)
    tables.by_hand("messages", "DELETE", frozenset({2, 3}))
    return tables


def _a_killed_erasure() -> LogsInMemory:
    """It has deleted a decision, and nothing more."""
    from routing.delta import protocol

    tables = _messages_deleted()
    start = protocol.begin(tables, "killed", is_full=False)
    tables.erase("resolved_routes", frozenset({(0, 1, "first, attempt 1")}), start.run)
    return tables


BEGINNINGS = {
    "no run": _no_run,
    "one run": _one_run,
    "a full run": lambda: _one_run("full"),
    "killed": _a_killed_run,
    "runs restored": _runs_restored,
    "runs emptied": _runs_emptied,
    "messages deleted": _messages_deleted,
    "messages deleted after a full run": lambda: _messages_deleted("full"),
    "killed while it erased": _a_killed_erasure,
}
PAIRS = {
    "two incremental runs": (Job("A"), Job("B", order=REVERSED)),
    "an incremental and a full one": (Job("A", order=REVERSED), Job("B", "full")),
    "two full runs": (Job("A", "full"), Job("B", "full")),
    # A scheduler that tries again before the first attempt has ended.
    "one run twice": (Job("A"), Job("A", order=REVERSED, attempt="2")),
    "one full run twice": (Job("A", "full"), Job("A", "full", attempt="2")),
}
# These need a run before them.
WINDOWS = {
    "a window and an incremental run": (Job("A", "window"), Job("B", order=REVERSED)),
    "a window and a full run": (Job("A", "window"), Job("B", "full")),
    "two windows": (Job("A", "window"), Job("B", "window")),
    "one window twice": (Job("A", "window"), Job("A", "window", attempt="2")),
}
# These are told apart from the others where messages were deleted.
ERASING = {
    "two runs that erase": (Job("A", erases=True), Job("B", erases=True, order=REVERSED)),
    "one that erases and one that does not": (Job("A", erases=True), Job("B", order=REVERSED)),
    "one run that erases twice": (Job("A", erases=True), Job("A", erases=True, attempt="2")),
}
WITH_DELETES = ("messages deleted", "messages deleted after a full run", "killed while it erased")


def _messages(tables: LogsInMemory, version: int) -> frozenset[int]:
    return tables.logs["messages"].rows(version)


def _faults(state: State) -> list[str]:
    """Return the faults of a state, in which the last recorded run is not completely readable."""
    tables = state.tables(KEYS)
    counted = counted_runs(tables)
    if not counted:
        return []
    expected = one_after_the_other(counted, lambda version: _messages(tables, version))
    return [
        f"{key} at {version}"
        for key, version in counted[-1]["output_versions"]
        if tables.logs[key].rows(version) != expected[key]
    ]


def _faults_at_the_end(state: State, mode: str) -> list[str]:
    """Return the faults after both runs have ended and a clean run has followed."""
    tables = state.tables(KEYS)
    try:
        Job("clean", mode)(tables)
    except RoutingError as error:
        return [str(error)]
    counted = counted_runs(tables)
    expected = one_after_the_other(counted, lambda version: _messages(tables, version))
    keys = KEYS if mode == "incremental" else ("resolved_routes",)
    return [key for key in keys if tables.logs[key].rows() != expected[key]]


# New messages make three times as many states: those of one pair, and the others' where there is time.
_WITH_NEW = [
    pytest.param("one run", pair, 1, marks=[] if pair == "two incremental runs" else [pytest.mark.long])
    for pair in PAIRS
]


@pytest.mark.parametrize(
    ("beginning", "pair", "to_come"),
    [
        *_WITH_NEW,
        *((start, pair, 0) for start in BEGINNINGS if start not in WITH_DELETES for pair in PAIRS),
        *((start, pair, 0) for start in WITH_DELETES[:1] for pair in ERASING),
        *((start, pair, 0) for start in ("one run", "a full run", "killed", "runs restored") for pair in WINDOWS),
        *(pytest.param(start, pair, 0, marks=pytest.mark.long) for start in WITH_DELETES for pair in PAIRS),
        *(pytest.param(start, pair, 0, marks=pytest.mark.long) for start in WITH_DELETES[1:] for pair in ERASING),
    ],
)
def test_no_counted_run_is_lost_in_any_state(beginning: str, pair: str, to_come: int) -> None:
    ends: dict[tuple[str, ...], int] = {}
    # Many states have the same logs.
    ids_by_logs: dict[int, set[str]] = {}
    ended: set[int] = set()
    jobs = {**PAIRS, **ERASING, **WINDOWS}[pair]
    for state in all_states(BEGINNINGS[beginning](), jobs, to_come):
        number = state.numbered.number
        if number not in ids_by_logs:
            assert not _faults(state), state
            ids = [row["run_id"] for row in counted_runs(state.tables(KEYS))]
            ids_by_logs[number] = set(ids)
            assert len(ids) == len(ids_by_logs[number]), state
        for job, run in zip(jobs, state.runs, strict=True):
            if run.end is None or run.end == "dead" or run.end.startswith(LOST):
                continue
            # Whoever is done counts, and nobody is refused for what another run did.
            assert run.end == "done" or run.end.startswith(RECORDED), state
            assert job.run_id in ids_by_logs[number], state
        if all(run.end for run in state.runs):
            how = tuple(str(run.end).split(" at ")[0] for run in state.runs)
            ends[how] = ends.get(how, 0) + 1
            if number not in ended:
                ended.add(number)
                assert not _faults_at_the_end(state, "incremental"), state
                assert not _faults_at_the_end(state, "full"), state
    # Both may count, one after the other; and each may win. Of one id only one does, and the other finds it.
    both = {("done", "done")}
    if "twice" in pair:
        assert not both & set(ends)
        both = {("done", RECORDED), (RECORDED, "done")}
    found = {tuple(RECORDED if end.startswith(RECORDED) else end for end in how) for how in ends}
    assert both | {("done", "dead"), ("dead", "done"), ("dead", "dead")} <= found
