"""What a run makes of what it finds at its outputs: goes on, takes back, says so, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from routing.errors import HistoryGap, OutputError, StorageError
from routing.storage import protocol
from routing.storage.protocol import RESTORE, RUN, Mark
from tests.log_in_memory import Log, LogsInMemory
from tests.unit.exactly_once.runs import KEYS, Job, one_after_the_other, told

OWN, OTHERS = Mark(RUN, "x", "out/runs"), Mark(RUN, "x", "elsewhere/runs")
Found = Callable[[LogsInMemory], None]


@pytest.fixture
def tables() -> LogsInMemory:
    """After one run."""
    made = LogsInMemory(KEYS, {"messages": Log("id of messages").and_then("WRITE", frozenset({0, 1}))})
    Job("first")(made)
    return made


def _by(operation: str, metadata: str | None = None, key: str = "resolved_routes") -> Found:
    def happened(tables: LogsInMemory) -> None:
        tables.logs[key] = tables.logs[key].and_then(operation, frozenset({"x"}), metadata)

    return happened


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
    "a run's RESTORE": (_by("RESTORE", replace(OWN, kind=RESTORE, version=0).as_text()), TAKES_BACK, False),
    "another job's rows": (_by("WRITE", OTHERS.as_text()), REFUSED, True),
    "rows without a mark": (_by("WRITE"), REFUSED, True),
    "rows with a text of somebody else": (_by("WRITE", "4c1d"), REFUSED, True),
    "a RESTORE without a mark": (_by("RESTORE"), REFUSED, True),
    "an operation that nobody knows": (_by("FROBNICATE"), REFUSED, True),
    "another table": (_table_of_another_id, REFUSED, None),
    "the table put back": (_put_back, REFUSED, True),
    "the table gone": (_gone, REFUSED, True),
    "runs restored": (lambda tables: tables.by_hand("runs", "RESTORE"), REFUSED, None),
    "runs maintained": (lambda tables: tables.by_hand("runs", "OPTIMIZE"), GOES_ON, False),
}


@pytest.mark.parametrize("what", TABLE)
def test_found(tables: LogsInMemory, what: str) -> None:
    happened, expected, is_noted = TABLE[what]
    happened(tables)
    if expected == REFUSED:
        with pytest.raises(OutputError) as caught:
            protocol.begin(tables, "next", is_full=False)
        assert caught.value.exit_code == 2
    else:
        start = protocol.begin(tables, "next", is_full=False)
        assert start.left_over == ({"resolved_routes"} if expected == TAKES_BACK else set())
        assert start.notes == ()
    if is_noted is None:
        with pytest.raises(OutputError):
            protocol.begin(tables, "next", is_full=True)
    else:
        full = protocol.begin(tables, "next", is_full=True)
        assert full.left_over == set()
        assert [note.endswith("this run replaces it") for note in full.notes] == [True] * is_noted


def test_a_log_that_was_cleaned_up(tables: LogsInMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.by_hand("resolved_routes", "OPTIMIZE")

    whole = tables.commits

    def commits(key: str, after: int) -> Any:
        if key == "runs":
            return whole(key, after)
        raise HistoryGap.cleaned(key, after)

    monkeypatch.setattr(tables, "commits", commits)
    with pytest.raises(OutputError, match="the log of 'pending_messages' has been cleaned up"):
        protocol.begin(tables, "next", is_full=False)
    assert len(protocol.begin(tables, "next", is_full=True).notes) == len(KEYS)


@pytest.mark.parametrize(("mark", "is_refused"), [(OWN, False), (OTHERS, True), (None, False)])
def test_a_first_run_where_something_stands(mark: Mark | None, is_refused: bool) -> None:
    """A killed first run is replaced, another job's tables are not; of rows without a mark there is a note."""
    log = Log("id").and_then("WRITE", frozenset({"x"}), None if mark is None else mark.as_text())
    tables = LogsInMemory(KEYS, {"resolved_routes": log})
    if is_refused:
        with pytest.raises(OutputError, match="holds what runs recorded in 'elsewhere/runs' wrote"):
            protocol.begin(tables, "first", is_full=False)
    else:
        start = protocol.begin(tables, "first", is_full=False)
        assert start.last is None
        assert len(start.notes) == (mark is None)


def test_a_row_of_release_0_1_0_is_trusted_once(tables: LogsInMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs marked their commits with a bare id, and a RESTORE not at all."""
    _by("WRITE", "4c1d")(tables)
    _by("RESTORE")(tables)
    last = tables.last_run()
    assert last is not None
    old = replace(last, table_ids=None, commit_identities=None)
    monkeypatch.setattr(tables, "last_run", lambda _: old)
    start = protocol.begin(tables, "next", is_full=False)
    assert start.left_over == {"resolved_routes"}
    assert [note for note in start.notes if "trusted this once" in note]
    _by("UPDATE", "4c1d")(tables)
    with pytest.raises(OutputError, match=r"version 3 \(UPDATE\)"):
        protocol.begin(tables, "next", is_full=False)


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


def test_what_was_taken_back_meanwhile_is_brought_back_once_the_run_counts(tables: LogsInMemory) -> None:
    tables.by_hand("messages", "WRITE", frozenset({0, 1, 2, 3}))

    def take_back_and_die() -> None:
        start = protocol.begin(tables, "B", is_full=False)
        protocol.take_back(tables, start)

    Job("A")(_Meddled(tables, take_back_and_die, before="record"))
    assert _operations(tables) == {"WRITE", "RESTORE"}
    expected = one_after_the_other(told(tables), lambda version: tables.logs["messages"].rows(version))
    assert {key: tables.logs[key].rows() for key in KEYS} == expected


def test_a_run_that_counts_meanwhile_is_not_taken_back(tables: LogsInMemory) -> None:
    """It ends when the last run has been looked up: its commits are newer than the versions read before."""
    tables.by_hand("messages", "WRITE", frozenset({0, 1, 2, 3}))
    with pytest.raises(StorageError, match="another run has written"):
        Job("A")(_Meddled(tables, lambda: Job("B")(tables), after="last_run"))
    assert _operations(tables) == {"WRITE"}


def test_what_an_attempt_counts_is_its_own(tables: LogsInMemory) -> None:
    """Rows of two attempts at one run bear one id: whoever commits after the other is told, and counts none."""
    first, second = (protocol.begin(tables, "A", is_full=False, attempt=attempt) for attempt in "12")
    assert protocol.commit(tables, first, KEYS[0], frozenset({"of the first"}), adds=True) == 1
    with pytest.raises(StorageError, match=r"another run has written to output\.pending_messages"):
        protocol.commit(tables, second, KEYS[0], frozenset({"of the second"}), adds=True)
    # Each may write where the other has not.
    assert protocol.commit(tables, second, KEYS[1], frozenset({"of the second"}), adds=True) == 1


def test_a_run_that_counts_before_the_last_one_is_looked_up_is_gone_on_from(tables: LogsInMemory) -> None:
    Job("A")(_Meddled(tables, lambda: Job("B")(tables), before="last_run"))
    assert [row["run_id"] for row in told(tables)] == ["first", "B", "A"]


def test_readers_go_as_far_as_maintenance_goes(tables: LogsInMemory) -> None:
    key = "resolved_routes"
    recorded = len(tables.logs[key].entries) - 1
    assert protocol.settle(tables, key, recorded) == recorded
    tables.by_hand(key, "OPTIMIZE")
    tables.by_hand(key, "DELETE")
    assert protocol.settle(tables, key, recorded) == recorded + 2
    _by("WRITE", OWN.as_text())(tables)
    tables.by_hand(key, "OPTIMIZE")
    assert protocol.settle(tables, key, recorded) == recorded + 2
