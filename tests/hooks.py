"""Moments of a run at which a test kills it, starts another run or reads the outputs.

A run uses its outputs only through `routing.delta.ledger.JobTables`, of Spark or of the local engine. So the hooks
are in its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from routing.delta.ledger import JobTables

Hook = Callable[[str], None]


class Killed(BaseException):
    """Simulates a kill -9, which no error handler catches. tests/crash has the real one."""


@contextmanager
def hooked(hook: Hook) -> Iterator[None]:
    """Make runs call the hook before and after their steps.

    The moments are ``before KEY`` and ``after KEY`` for the commit of an output and of the row in ``runs``,
    ``before erasing KEY`` and ``erased KEY``, ``before restoring KEY`` and ``restored KEY``, ``before last_run``
    (after reading the versions of outputs), and ``after last_run``. A run that the hook starts is hooked too,
    unless `once` wraps the hook.
    """
    from routing.delta.ledger import DeltaTables, LocalOutputs

    with ExitStack() as hooks:
        for tables in (DeltaTables, LocalOutputs):
            hooks.enter_context(_hooked(tables, hook))
        hooks.enter_context(_hooked_statements(hook))
        yield


@contextmanager
def _hooked(tables: type[JobTables], hook: Hook) -> Iterator[None]:
    was_put, restored, recorded, last_run = tables.put, tables.restore, tables.record, tables.last_run

    def put(self: JobTables, key: str, *arguments: Any, **named: Any) -> None:
        hook(f"before {key}")
        was_put(self, key, *arguments, **named)
        hook(f"after {key}")

    def restore(self: JobTables, key: str, *arguments: Any) -> None:
        hook(f"before restoring {key}")
        restored(self, key, *arguments)
        hook(f"restored {key}")

    def record(self: JobTables, *arguments: Any) -> bool:
        hook("before runs")
        is_recorded = recorded(self, *arguments)
        hook("after runs")
        return is_recorded

    def read(self: JobTables, *arguments: Any) -> Any:
        hook("before last_run")
        found = last_run(self, *arguments)
        hook("after last_run")
        return found

    with pytest.MonkeyPatch.context() as patch:
        for name, method in (("put", put), ("restore", restore), ("record", record), ("last_run", read)):
            patch.setattr(tables, name, method)
        yield


@contextmanager
def _hooked_statements(hook: Hook) -> Iterator[None]:
    """Hook the commits that only Spark makes, by statements."""
    from routing.delta.ledger import DeltaTables

    merged, replaced, erased = DeltaTables.merge, DeltaTables.replace, DeltaTables.erase

    def merge(self: DeltaTables, key: str, *arguments: Any) -> None:
        hook(f"before {key}")
        merged(self, key, *arguments)
        hook(f"after {key}")

    def replace(self: DeltaTables, key: str, *arguments: Any) -> None:
        hook(f"before {key}")
        replaced(self, key, *arguments)
        hook(f"after {key}")

    def erase(self: DeltaTables, key: str, *arguments: Any) -> int:
        hook(f"before erasing {key}")
        count = erased(self, key, *arguments)
        hook(f"erased {key}")
        return count

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaTables, "merge", merge)
        patch.setattr(DeltaTables, "replace", replace)
        patch.setattr(DeltaTables, "erase", erase)
        yield


def once(point: str, work: Callable[[], None]) -> Hook:
    """A hook that does something the first time that a moment comes, and nothing more."""
    is_done = False

    def hook(reached: str) -> None:
        nonlocal is_done
        if reached == point and not is_done:
            is_done = True
            work()

    return hook


def kill() -> None:
    """End the run that this is called in."""
    raise Killed
