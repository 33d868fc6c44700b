"""The reactions of a run to its outputs: continue, restore, note or refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from routing.delta import protocol
from routing.delta.job_outputs import RESTORE, RUN, CommitMark
from routing.errors import HistoryGap, OutputError, RoutingError, StorageError
from tests.log_in_memory import Log, LogsInMemory, OpenedLog
from tests.unit.exactly_once.runs import KEYS, Job, counted_runs, one_after_the_other

OWN, OTHERS = CommitMark(RUN, "x", "out/runs"), CommitMark(RUN, "x", "elsewhere/runs")
Found = Callable[[LogsInMemory], None]


@pytest.fixture
def tables() -> LogsInMemory:
    """After one run."""
    logs = LogsInMemory(KEYS, {"messages": Log("id of messages").and_then("WRITE", frozenset({0, 1}))})
    Job("first")(logs)
    return logs


def _by(operation: str, metadata: str | None = None, key: str = "resolved_routes") -> Found:
    def happened(tables: LogsInMemory) -> None:
        tables.logs[key] = tables.logs[key].and_then(operation, frozenset({"x"}), metadata)

    return happened


def _one_after_the_other(*happened: Found) -> Found:
    def all_of_it(tables: LogsInMemory) -> None:
        for one in happened:
            one(tables)

    return all_of_it


def _restored(version: int, *before: Found, key: str = "resolved_routes") -> Found:
    """Return the log after an operator's RESTORE."""
    return _one_after_the_other(*before, lambda tables: tables.restore_by_hand(key, version))


def _three_runs(tables: LogsInMemory) -> None:
    """Versions 0, 1 and 2 of every table are those of runs."""
    for number, run_id in enumerate(("second", "third"), start=2):
        tables.by_hand("messages", "WRITE", frozenset(range(2 * number)))
        Job(run_id)(tables)


def _table_of_another_id(tables: LogsInMemory) -> None:
    tables.logs["resolved_routes"] = replace(tables.logs["resolved_routes"], id="another")


def _put_back(tables: LogsInMemory) -> None:
    log = tables.logs["resolved_routes"]
    tables.logs["resolved_routes"] = Log(log.id).and_then("WRITE", frozenset({"y"}))


def _gone(tables: LogsInMemory) -> None:
    del tables.logs["resolved_routes"]


GOES_ON, TAKES_BACK, REFUSED = "goes on", "takes back", "refused"
# What happened, what an incremental run does, and whether a full one notes it (None: it is refused as well).
TABLE: dict[str, tuple[Found, str, bool | None]] = {
    "nothing": (lambda _: None, GOES_ON, False),
    "OPTIMIZE": (_by("OPTIMIZE"), GOES_ON, False),
    "VACUUM": (_by("VACUUM END"), GOES_ON, False),
    "a property": (_by("SET TBLPROPERTIES"), GOES_ON, False),
    "a column": (_by("ADD COLUMNS"), GOES_ON, False),
    "old rows deleted": (_by("DELETE"), GOES_ON, False),
    "rows deleted where they must not be": (_by("DELETE", key="pending_messages"), REFUSED, True),
    "a run's rows": (_by("WRITE", OWN.as_text()), TAKES_BACK, False),
    "a run's RESTORE to a time": (
        _by("RESTORE", replace(OWN, kind=RESTORE, version=0).as_text()),
        TAKES_BACK,
        False,
    ),
    "rows that a run erased": (_by("MERGE", OWN.as_text()), TAKES_BACK, False),
    "rows that somebody merged": (_by("MERGE"), REFUSED, True),
    "another job's rows": (_by("WRITE", OTHERS.as_text()), REFUSED, True),
    "rows without a mark": (_by("WRITE"), REFUSED, True),
    "rows with a text of somebody else": (_by("WRITE", "4c1d"), REFUSED, True),
    "an operator's RESTORE to a time": (_by("RESTORE"), TAKES_BACK, False),
    "a RESTORE of what was recorded": (_restored(0, _by("WRITE", OWN.as_text())), GOES_ON, False),
    "a RESTORE of what was recorded, over somebody's rows": (_restored(0, _by("WRITE")), GOES_ON, False),
    "a RESTORE of a run's rows": (
        _restored(1, _by("WRITE", OWN.as_text()), _by("OPTIMIZE")),
        TAKES_BACK,
        False,
    ),
    "a RESTORE of somebody's rows": (_restored(1, _by("WRITE"), _restored(0)), REFUSED, True),
    "a RESTORE to a time at which somebody's rows may have stood": (
        _one_after_the_other(_by("WRITE"), _restored(0), _by("RESTORE")),
        REFUSED,
        True,
    ),
    "a run's rows after somebody's": (
        _one_after_the_other(_by("WRITE"), _by("WRITE", OWN.as_text())),
        REFUSED,
        True,
    ),
    "a RESTORE to an older version": (_restored(0, _three_runs), TAKES_BACK, False),
    "an operation that nobody knows": (_by("FROBNICATE"), REFUSED, True),
    "another table": (_table_of_another_id, REFUSED, None),
    "the table put back": (_put_back, REFUSED, True),
    "the table gone": (_gone, REFUSED, True),
    "runs restored to what it is": (_restored(0, key="runs"), GOES_ON, False),
    "runs restored over a row of somebody": (
        _restored(0, _by("WRITE", key="runs"), key="runs"),
        GOES_ON,
        False,
    ),
    "a row of runs changed": (lambda tables: tables.by_hand("runs", "UPDATE"), REFUSED, True),
    "a row of runs changed with a text of somebody": (
        lambda tables: tables.logs.update(
            runs=tables.logs["runs"].and_then("UPDATE", tables.logs["runs"].rows(), "4c1d")
        ),
        REFUSED,
        True,
    ),
    "runs restored to a row of somebody": (
        _restored(1, lambda tables: tables.by_hand("runs", "UPDATE"), _restored(0, key="runs"), key="runs"),
        REFUSED,
        True,
    ),
    "runs maintained": (lambda tables: tables.by_hand("runs", "OPTIMIZE"), GOES_ON, False),
}


@pytest.mark.parametrize("what", TABLE)
def test_each_change_is_refused_noted_or_ignored(tables: LogsInMemory, what: str) -> None:
    happened, expected, is_noted = TABLE[what]
    happened(tables)
    if expected == REFUSED:
        with pytest.raises(OutputError) as caught:
            protocol.begin(tables, "next", is_full=False)
        assert caught.value.exit_code == 2
    else:
        start = protocol.begin(tables, "next", is_full=False)
        assert set(start.left_over) == ({"resolved_routes"} if expected == TAKES_BACK else set())
        assert start.notes == ()
    if is_noted is None:
        with pytest.raises(OutputError):
            protocol.begin(tables, "next", is_full=True)
    else:
        full = protocol.begin(tables, "next", is_full=True)
        assert full.left_over == {}
        ends = ("this run replaces it", "from now on the row of this run counts")
        assert [note.endswith(ends) for note in full.notes] == [True] * is_noted


def _is_as_expected(tables: LogsInMemory) -> bool:
    counted = counted_runs(tables)
    expected = one_after_the_other(counted, lambda version: tables.logs["messages"].rows(version))
    return {key: tables.logs[key].rows() for key in KEYS} == expected


def _refusal(job: Job, tables: LogsInMemory) -> str | None:
    try:
        job(tables)
    except RoutingError as error:
        return str(error)
    return None


OF_RUNS: dict[str, Found] = {
    "restored to the first run": _restored(0, key="runs"),
    "restored to the first run, as are the outputs": _one_after_the_other(
        *(_restored(0, key=key) for key in ("runs", *KEYS))
    ),
    "emptied": lambda tables: tables.by_hand("runs", "DELETE", frozenset()),
    "restored once more": _restored(1, _restored(0, key="runs"), key="runs"),
}


@pytest.mark.parametrize("mode", ["full", "incremental"])
@pytest.mark.parametrize("what", OF_RUNS)
def test_runs_continue_from_a_restored_table_of_runs(tables: LogsInMemory, what: str, mode: str) -> None:
    """The runs without rows already had their turns. The next runs continue from the newest existing row."""
    _three_runs(tables)
    OF_RUNS[what](tables)
    run_ids = [row["run_id"] for row in counted_runs(tables)]
    jobs = (Job("next", mode), Job("later"), Job("last"))
    assert [_refusal(job, tables) for job in jobs] == [None, None, None]
    assert [row["run_id"] for row in counted_runs(tables)] == [*run_ids, "next", "later", "last"]
    assert _is_as_expected(tables)


@pytest.mark.parametrize("what", OF_RUNS)
def test_runs_continue_after_restored_tables_were_moved(
    tables: LogsInMemory, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The log of ``runs`` has its location at the time when the runs without rows marked their commits."""
    _three_runs(tables)
    monkeypatch.setattr(tables, "place", lambda key: f"moved/{key}")
    OF_RUNS[what](tables)
    assert [_refusal(job, tables) for job in (Job("next"), Job("last"))] == [None, None]
    assert _is_as_expected(tables)


@pytest.mark.parametrize("operation", ["UPDATE", "WRITE"])
def test_a_full_run_succeeds_after_runs_was_changed(tables: LogsInMemory, operation: str) -> None:
    """As where a backup's rows were written into the table."""
    backup = tables.logs["runs"].rows()
    _three_runs(tables)
    tables.by_hand("runs", operation, backup)
    with pytest.raises(OutputError, match=r"RESTORE it to version 2, or run once with --set resolve.mode=full"):
        Job("next")(tables)
    Job("full", "full")(tables)
    Job("next")(tables)
    assert [row["run_id"] for row in counted_runs(tables)] == ["first", "full", "next"]
    assert _is_as_expected(tables)


def test_a_cleaned_up_log_is_reported(tables: LogsInMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.by_hand("resolved_routes", "OPTIMIZE")

    def gone(log: OpenedLog, after: int) -> Any:
        raise HistoryGap.cleaned(log.key, after)

    monkeypatch.setattr(OpenedLog, "commits_after", gone)
    with pytest.raises(OutputError, match="the log of 'pending_messages' has been cleaned up"):
        protocol.begin(tables, "next", is_full=False)
    assert len(protocol.begin(tables, "next", is_full=True).notes) == len(KEYS)


MAINTENANCE = ("OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES")


def _maintained(tables: LogsInMemory, key: str, commits: int = 120) -> None:
    for number in range(commits):
        tables.by_hand(key, MAINTENANCE[number % len(MAINTENANCE)])


def test_rows_of_another_job_are_found_after_maintenance() -> None:
    log = Log("id").and_then("WRITE", frozenset({"x"}), OTHERS.as_text())
    tables = LogsInMemory(KEYS, {"resolved_routes": log})
    _maintained(tables, "resolved_routes")
    with pytest.raises(OutputError, match="has rows of runs that are recorded in 'elsewhere/runs'"):
        protocol.begin(tables, "first", is_full=True)
    # A change by hand does not make them nobody's.
    tables.by_hand("resolved_routes", "UPDATE", frozenset({"y"}))
    with pytest.raises(OutputError, match="has rows of runs that are recorded in 'elsewhere/runs'"):
        protocol.begin(tables, "first", is_full=True)


def test_a_foreign_row_in_runs_is_found_after_maintenance(tables: LogsInMemory) -> None:
    tables.by_hand("runs", "WRITE", tables.logs["runs"].rows())
    _maintained(tables, "runs")
    with pytest.raises(OutputError, match=r"version 1 .*.RESTORE it to version 0, or run once"):
        protocol.begin(tables, "next", is_full=False)
    assert len(protocol.begin(tables, "next", is_full=True).notes) == 1


@pytest.mark.parametrize("is_cleaned", [False, True])
@pytest.mark.parametrize("what", OF_RUNS)
def test_runs_continue_after_the_runs_table_is_restored_and_maintained(
    tables: LogsInMemory, what: str, is_cleaned: bool
) -> None:
    """The turns of runs are known by the RESTORE, and by the end of the log where that is gone."""
    _three_runs(tables)
    OF_RUNS[what](tables)
    run_ids = [row["run_id"] for row in counted_runs(tables)]
    _maintained(tables, "runs")
    if is_cleaned:
        tables.cleaned["runs"] = len(tables.logs["runs"].entries) - 20
    jobs = (Job("next"), Job("later"), Job("last"))
    assert [_refusal(job, tables) for job in jobs] == [None, None, None]
    assert [row["run_id"] for row in counted_runs(tables)] == [*run_ids, "next", "later", "last"]
    assert _is_as_expected(tables)


def test_an_unmatched_row_in_runs_is_refused_without_its_log(
    tables: LogsInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    _maintained(tables, "runs")
    tables.cleaned["runs"] = 100
    assert protocol.begin(tables, "next", is_full=False).notes == ()
    runs, last = tables.last_run()
    assert last is not None
    assert last.table_ids
    ids = {key: value for key, value in last.table_ids.items() if key != "resolved_routes"}
    monkeypatch.setattr(tables, "last_run", lambda _=None: (runs, replace(last, table_ids=ids)))
    with pytest.raises(
        OutputError, match=r"before version 100, .*run once with --set resolve.mode=full"
    ) as caught:
        protocol.begin(tables, "next", is_full=False)
    assert caught.value.exit_code == 2
    [note] = protocol.begin(tables, "next", is_full=True).notes
    assert "may be no run's" in note


@pytest.mark.parametrize("mode", ["full", "incremental"])
def test_foreign_rows_are_not_replaced_before_the_first_run(mode: str) -> None:
    log = Log("id").and_then("WRITE", frozenset({"x"}), OTHERS.as_text())
    tables = LogsInMemory(KEYS, {"resolved_routes": log})
    _maintained(tables, "resolved_routes")
    tables.cleaned["resolved_routes"] = 60
    with pytest.raises(OutputError, match=r"before version 60, .*--set output.resolved_routes=") as caught:
        protocol.begin(tables, "first", is_full=mode == "full")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(("commit_mark", "is_refused"), [(OWN, False), (OTHERS, True), (None, False)])
def test_a_first_run_over_existing_tables(commit_mark: CommitMark | None, is_refused: bool) -> None:
    """A killed first run is replaced, but tables of another job are not. Rows without a mark get a note."""
    log = Log("id").and_then("WRITE", frozenset({"x"}), None if commit_mark is None else commit_mark.as_text())
    tables = LogsInMemory(KEYS, {"resolved_routes": log})
    if is_refused:
        with pytest.raises(OutputError, match="has rows of runs that are recorded in 'elsewhere/runs'"):
            protocol.begin(tables, "first", is_full=False)
    else:
        start = protocol.begin(tables, "first", is_full=False)
        assert start.last is None
        assert len(start.notes) == (commit_mark is None)


class _Meddled:
    """The tables of a run into which another one comes, right before or after one of its calls."""

    def __init__(
        self, tables: LogsInMemory, meddle: Callable[[], None], before: str = "", after: str = ""
    ) -> None:
        self._tables, self._meddle, self._before, self._after = tables, meddle, before, after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tables, name)
        if name == self._before:
            self._meddle()
        if name != self._after:
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            answer = found(*arguments, **named)
            self._after = ""
            self._meddle()
            return answer

        return call


def _operations(tables: LogsInMemory) -> set[str]:
    return {entry.operation for key in KEYS for entry in tables.logs[key].entries}


def test_outputs_rolled_back_by_another_run_are_restored_at_the_end(tables: LogsInMemory) -> None:
    tables.by_hand("messages", "WRITE", frozenset({0, 1, 2, 3}))

    def take_back_and_die() -> None:
        start = protocol.begin(tables, "B", is_full=False)
        protocol.take_back(tables, start)

    Job("A")(_Meddled(tables, take_back_and_die, before="record"))
    assert _operations(tables) == {"WRITE", "RESTORE"}
    expected = one_after_the_other(counted_runs(tables), lambda version: tables.logs["messages"].rows(version))
    assert {key: tables.logs[key].rows() for key in KEYS} == expected


def test_a_run_recorded_in_between_is_not_rolled_back(tables: LogsInMemory) -> None:
    """It ends when the last run has been looked up: its commits are newer than the versions read before."""
    tables.by_hand("messages", "WRITE", frozenset({0, 1, 2, 3}))
    with pytest.raises(StorageError, match="another run wrote"):
        Job("A")(_Meddled(tables, lambda: Job("B")(tables), after="last_run"))
    assert _operations(tables) == {"WRITE"}


def test_an_attempt_counts_only_its_own_rows(tables: LogsInMemory) -> None:
    """Two attempts at one run share an id. The second one to commit gets a note and counts no rows."""
    first, second = (protocol.begin(tables, "A", is_full=False, attempt=attempt) for attempt in "12")
    assert protocol.commit(tables, first, KEYS[0], frozenset({"of the first"}), adds=True) == 1
    with pytest.raises(StorageError, match=r"another run wrote to output\.pending_messages"):
        protocol.commit(tables, second, KEYS[0], frozenset({"of the second"}), adds=True)
    # Each may write where the other has not.
    assert protocol.commit(tables, second, KEYS[1], frozenset({"of the second"}), adds=True) == 1


def test_a_full_run_accepts_a_removed_output(tables: LogsInMemory) -> None:
    fewer = LogsInMemory([key for key in KEYS if key != "pending_messages"], tables.logs)
    start = protocol.begin(fewer, "A", is_full=True)
    assert "pending_messages" not in start.versions
    assert start.notes == ()


def test_a_run_continues_from_a_run_recorded_before_its_lookup(tables: LogsInMemory) -> None:
    Job("A")(_Meddled(tables, lambda: Job("B")(tables), before="last_run"))
    assert [row["run_id"] for row in counted_runs(tables)] == ["first", "B", "A"]


def test_readers_use_the_version_after_maintenance(tables: LogsInMemory) -> None:
    key = "resolved_routes"
    recorded = len(tables.logs[key].entries) - 1

    def settled() -> int:
        return protocol.settled_version(tables.open_logs([key])[key], key, recorded)

    assert settled() == recorded
    tables.by_hand(key, "OPTIMIZE")
    tables.by_hand(key, "DELETE")
    assert settled() == recorded + 2
    _by("WRITE", OWN.as_text())(tables)
    tables.by_hand(key, "OPTIMIZE")
    assert settled() == recorded + 2
