"""What a script that is tried changes: messages decided twice, by what they were and what they become."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from routing.features.check.message_results import MessageResult


class ChangeableResult(NamedTuple):
    """The parts of a result that a script can change: outcome (or NOT_KNOWN), reason, route, target, end.

    ``end`` is that of `MessageResult.end`; ``end_instance`` where it fails after it has left its own instance.
    """

    outcome: str
    reason: str | None
    route_name: str | None
    destination: str | None
    end: str
    end_instance: str | None


@dataclass(frozen=True)
class Change:
    """Messages of one sender to one service that have one end instead of another, oldest first."""

    instance: str
    database: str
    service: str
    before: ChangeableResult
    after: ChangeableResult
    results: Sequence[MessageResult]


def end_of(result: MessageResult) -> ChangeableResult:
    """Return the part of a message's result that a script can change."""
    verdict, path = result.verdict, result.path
    if verdict is None:
        return ChangeableResult(result.outcome, None, None, None, result.end, None)
    failure = None if path is None else path.first_failure
    instance = None if failure is None else failure.hop_path.instance
    target = verdict.destination_database or verdict.address
    return ChangeableResult(result.outcome, str(verdict.reason), verdict.route_name, target, result.end, instance)


def find_changes(before: Sequence[MessageResult], after: Sequence[MessageResult]) -> tuple[list[Change], int]:
    """Return the changes, those of most messages first, and how many messages do not change.

    Both are the same messages in the same order.
    """
    results_by_change: dict[tuple[str, str, str, ChangeableResult, ChangeableResult], list[MessageResult]] = (
        defaultdict(list)
    )
    for old, new in zip(before, after, strict=True):
        if end_of(old) != end_of(new):
            row = old.row
            who = (row["instance_name"], row["database_name"], row["to_service_name"])
            results_by_change[(*who, end_of(old), end_of(new))].append(old)
    changes = [
        Change(*key, sorted(results, key=lambda result: result.row["enqueue_time"]))
        for key, results in results_by_change.items()
    ]
    changes.sort(key=lambda one: (-len(one.results), one.instance, one.database, one.service, str(one.before)))
    return changes, len(before) - sum(len(one.results) for one in changes)
