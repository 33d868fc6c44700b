"""Every possible interleaving of two runs on a log in memory: each step, any death, and new messages.

A run is a plain function over `OutputTables`. For its next step it is called again with its earlier answers. The
next call is executed, and then the function is left. So a state is a log and the answers of two runs, and each
state is visited once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from routing.errors import RoutingError
from tests.log_in_memory import Log, LogsInMemory

Program = Callable[[Any], None]
Logs = tuple[tuple[str, Log], ...]
# By a run's place, its answers so far and the number of its logs: what it and they are after one step.
Steps = dict[tuple[int, int, int], tuple["Running", "NumberedLogs"]]


class _Left(BaseException):
    """Leaves the function after the next call. The function continues at the next step."""


# What these say of a version never changes, so that it does not matter when they are asked.
_TIMELESS = ("keys", "place", "rows")


class _Answers:
    """Replaces the tables: returns the old answers first, then makes one real call."""

    def __init__(self, tables: LogsInMemory, answers: tuple[Any, ...]) -> None:
        self._tables, self._answers, self._asked = tables, answers, 0
        self.new: Any = None

    def __getattr__(self, name: str) -> Any:
        if name in _TIMELESS:
            return getattr(self._tables, name)

        def call(*arguments: Any, **named: Any) -> Any:
            if self._asked < len(self._answers):
                self._asked += 1
                return self._answers[self._asked - 1]
            self.new = getattr(self._tables, name)(*arguments, **named)
            raise _Left

        return call

    def open_logs(self, keys: Iterable[str]) -> dict[str, Any]:
        """Open the logs one by one: in between the other run may commit."""
        return {key: log for key in list(keys) if (log := self.look_at(key)) is not None}


_WAYS: dict[tuple[int, str], int] = {}


class Running(NamedTuple):
    """An unfinished run: its answers so far, and its end (done, dead, or a sentence)."""

    answers: tuple[Any, ...] = ()
    end: str | None = None
    # What tells these answers from others.
    way: int = 0

    @property
    def key(self) -> int | str:
        """Return the facts that identify this run. The course of an ended run does not matter."""
        return self.end or self.way

    def and_then(self, answer: Any) -> Running:
        """The run with one answer more."""
        way = _WAYS.setdefault((self.way, repr(answer)), len(_WAYS) + 1)
        return Running((*self.answers, answer), way=way)


class NumberedLogs(NamedTuple):
    """All logs, and a number that equal ones share: logs are compared once, not in each of their states."""

    number: int
    logs: Logs


class State(NamedTuple):
    """The tables, the runs, and how many messages are still to come."""

    numbered: NumberedLogs
    runs: tuple[Running, ...]
    to_come: int

    @property
    def key(self) -> Any:
        """Return the facts that identify this state."""
        return self.numbered.number, self.to_come, *[run.key for run in self.runs]

    def tables(self, keys: tuple[str, ...]) -> LogsInMemory:
        """The tables of this state, to be looked at or written to."""
        return LogsInMemory(keys, dict(self.numbered.logs))


def one_step(program: Program, tables: LogsInMemory, run: Running) -> Running:
    """A run after its next call, which changes the tables."""
    asked = _Answers(tables, run.answers)
    try:
        program(asked)
    except _Left:
        return run.and_then(asked.new)
    except RoutingError as error:
        return run._replace(end=str(error))
    return run._replace(end="done")


def all_states(start: LogsInMemory, programs: tuple[Program, ...], to_come: int) -> Iterator[State]:
    """Every state that can be reached, each once."""
    numbers: dict[Logs, int] = {}
    first = State(_numbered(start, numbers), tuple(Running() for _ in programs), to_come)
    seen, waiting = {first.key}, [first]
    steps: Steps = {}
    while waiting:
        state = waiting.pop()
        yield state
        for next_state in _next(state, programs, start.keys, steps, numbers):
            key = next_state.key
            if key not in seen:
                seen.add(key)
                waiting.append(next_state)


def _next(
    state: State, programs: tuple[Program, ...], keys: tuple[str, ...], steps: Steps, numbers: dict[Logs, int]
) -> Iterator[State]:
    for place, (program, run) in enumerate(zip(programs, state.runs, strict=True)):
        if run.end is not None:
            continue
        at = (place, run.way, state.numbered.number)
        if at not in steps:
            tables = state.tables(keys)
            steps[at] = one_step(program, tables, run), _numbered(tables, numbers)
        after, numbered = steps[at]
        before, others = state.runs[:place], state.runs[place + 1 :]
        yield State(numbered, (*before, after, *others), state.to_come)
        yield State(state.numbered, (*before, run._replace(end="dead"), *others), state.to_come)
    if state.to_come:
        tables = state.tables(keys)
        tables.by_hand(
            "messages", "WRITE", tables.logs["messages"].rows() | {len(tables.logs["messages"].entries)}
        )
        yield State(_numbered(tables, numbers), state.runs, state.to_come - 1)


def _numbered(tables: LogsInMemory, numbers: dict[Logs, int]) -> NumberedLogs:
    """All logs, in a form that can be compared."""
    logs = tuple(sorted(tables.logs.items()))
    return NumberedLogs(numbers.setdefault(logs, len(numbers)), logs)
