"""A small job over logs in memory: the result of each message, in one run and in consecutive runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from routing.config import in_reading_order
from routing.delta import protocol
from tests.log_in_memory import LogsInMemory

KEYS = ("pending_messages", "resolved_routes")
WINDOW = frozenset({1, 2})
"""The messages of a run over a window: one is delayed, and one came after the first run."""


def is_delayed(message: int) -> bool:
    """Every other message never finds its way."""
    return message % 2 == 1


@dataclass(frozen=True)
class Job:
    """One run of the job: its id, its mode, the commit order of its outputs, and its attempt.

    ``reads`` has the inputs, each of which it opens once. With ``erases`` it also deletes the decisions of
    deleted messages.
    """

    run_id: str
    mode: str = "incremental"
    order: tuple[str, ...] = KEYS
    attempt: str = "1"
    reads: tuple[str, ...] = ("messages",)
    erases: bool = False

    @property
    def writer(self) -> str:
        """Return the facts that distinguish its rows from those of another attempt with the same id."""
        return f"{self.run_id}, attempt {self.attempt}"

    def __call__(self, tables: Any) -> None:
        """Do the steps of `routing.runs.pipeline.run` in order."""
        is_full = self.mode == "full"
        start = protocol.begin(tables, self.run_id, is_full=is_full, attempt=self.attempt)
        if not is_full:
            start = protocol.take_back(tables, start)
        inputs = {key: tables.newest(key) for key in in_reading_order(self.reads)}
        version = inputs["messages"]
        if self.mode == "window":
            assert start.last is not None
            version = start.last.input_versions["messages"]
            self._finish(tables, start, version, self._replace(tables, start), inputs)
            return
        gone = self._gone(tables, start, version)
        erased = self._erase(tables, start, gone)
        outputs, adds = self._outputs(tables, start, version, gone)
        written = {**start.versions, **erased} if adds else {}
        for key in self.order:
            if key in outputs:
                rows, is_added = outputs[key]
                written[key] = protocol.commit(tables, start, key, rows, adds=is_added)
        self._finish(tables, start, version, written, inputs)

    def _finish(
        self, tables: Any, start: protocol.RunStart, version: int, written: dict[str, int], inputs: dict[str, int]
    ) -> None:
        row = {"run_id": self.run_id, "mode": self.mode, "messages": version, "output_versions": written}
        row |= {"writer": self.writer, "inputs": inputs, "erases": self.erases}
        protocol.finish(tables, start, written, {**row, "table_ids": {}, "commit_identities": {}})

    def _replace(self, tables: Any, start: protocol.RunStart) -> dict[str, int]:
        """Replace the rows of the window's messages in the outputs, as `routing.runs.incremental_runs` does."""
        last = start.last
        assert last is not None
        inside = tables.rows("messages", last.input_versions["messages"]) & WINDOW
        rows = resolved(inside, {}, self.writer)
        written = dict(start.versions)
        if "pending_messages" in last.output_versions:
            for key, own in (("resolved_routes", rows), ("pending_messages", pending(rows))):
                tables.replace(key, own, start.run, WINDOW)
                written[key] = protocol.own_version(tables, start, key)
            return written
        # No table has yet what the full run left delayed.
        left = pending(tables.rows("resolved_routes", last.output_versions["resolved_routes"]))
        outside = frozenset(row for row in left if row[0] not in WINDOW)
        tables.replace("resolved_routes", rows, start.run, WINDOW)
        written["resolved_routes"] = protocol.own_version(tables, start, "resolved_routes")
        whole = outside | pending(rows)
        written["pending_messages"] = protocol.commit(tables, start, "pending_messages", whole, adds=False)
        return written

    def _gone(self, tables: Any, start: protocol.RunStart, version: int) -> frozenset[int]:
        """Return the messages that were deleted since the last run; a full run does not ask."""
        if self.mode == "full" or start.last is None:
            return frozenset()
        gone: frozenset[int] = tables.rows("messages", start.last.input_versions["messages"])
        return gone.difference(tables.rows("messages", version))

    def _erase(self, tables: Any, start: protocol.RunStart, gone: frozenset[int]) -> dict[str, int]:
        """Take deleted messages out of the outputs, each by one commit; return the versions."""
        versions = {}
        if gone and start.last is not None:
            for key in sorted(start.last.output_versions):
                if self.erases or key == "pending_messages":
                    rows = {row for row in tables.rows(key, start.versions[key]) if row[0] in gone}
                    tables.erase(key, frozenset(rows), start.run)
                    versions[key] = protocol.own_version(tables, start, key)
        return versions

    def _outputs(
        self, tables: Any, start: protocol.RunStart, version: int, gone: frozenset[int]
    ) -> tuple[dict[str, Any], bool]:
        messages = tables.rows("messages", version)
        if self.mode == "full":
            return {"resolved_routes": (resolved(messages, {}, self.writer), False)}, False
        last = start.last
        if last is None:
            rows = resolved(messages, {}, self.writer)
            return {"resolved_routes": (rows, False), "pending_messages": (pending(rows), False)}, False
        new = messages - tables.rows("messages", last.input_versions["messages"])
        if "pending_messages" in last.output_versions:
            waiting = tables.rows("pending_messages", start.versions["pending_messages"])
        else:
            waiting = pending(tables.rows("resolved_routes", last.output_versions["resolved_routes"]))
        waiting_still = {message: attempt for message, attempt in waiting if message not in gone}
        rows = resolved(new, waiting_still, self.writer)
        return {"resolved_routes": (rows, True), "pending_messages": (pending(rows), False)}, True


def resolved(new: frozenset[int], waiting: Mapping[int, int], writer: str) -> frozenset[Any]:
    """A row (message, attempt, writer) for each message that is new or waits."""
    first = {(message, 1, writer) for message in new}
    return frozenset(first | {(message, attempt + 1, writer) for message, attempt in waiting.items()})


def pending(rows: frozenset[Any]) -> frozenset[Any]:
    """The messages that wait after a run, each with its attempt."""
    return frozenset((message, attempt) for message, attempt, _ in rows if is_delayed(message))


def counted_runs(tables: LogsInMemory) -> list[dict[str, Any]]:
    """The rows of runs that count, the first one first."""
    rows = tables.logs["runs"].rows() if "runs" in tables.logs else frozenset()
    return [dict(row) for _, row in sorted(rows)]


def one_after_the_other(counted: list[dict[str, Any]], messages: Any) -> dict[str, frozenset[Any]]:
    """Return the outputs after these runs in plain words: each message once a run, in the order of runs.

    ``messages`` gives the messages of a version. This function uses neither `protocol` nor a log.
    """
    rows: set[tuple[int, int, str]] = set()
    attempts: dict[int, int] = {}
    seen: frozenset[int] = frozenset()
    for row in counted:
        there = messages(row["messages"])
        if row["mode"] == "full":
            rows, attempts, seen = set(), {}, frozenset()
        if row["mode"] == "window":
            inside = seen & WINDOW
            rows = {decided for decided in rows if decided[0] not in WINDOW}
            rows |= {(message, 1, row["writer"]) for message in inside}
            attempts = {message: attempt for message, attempt in attempts.items() if message not in WINDOW}
            attempts |= {message: 1 for message in inside if is_delayed(message)}
            continue
        gone = seen - there
        attempts = {message: attempt for message, attempt in attempts.items() if message not in gone}
        if row["erases"]:
            rows = {decided for decided in rows if decided[0] not in gone}
        tried = {message: attempts[message] + 1 for message in attempts if is_delayed(message)}
        tried |= dict.fromkeys(there - seen, 1)
        rows |= {(message, attempt, row["writer"]) for message, attempt in tried.items()}
        attempts = {message: attempt for message, attempt in tried.items() if is_delayed(message)}
        seen = there
    return {"resolved_routes": frozenset(rows), "pending_messages": frozenset(attempts.items())}
