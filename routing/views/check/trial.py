"""Compare messages before and after tried scripts: the repairs, and the changes for the worse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import NamedTuple

from routing.cases.background import StatusText
from routing.cases.message_cases import MessageResult
from routing.render.phrases import cut, join_words
from routing.render.wording import count
from routing.rules.timeline import micros_of
from routing.terms import Outcome
from routing.views.check.grouping import STUCK_KINDS, MessageGroup

_ARRIVING = {Outcome.DELIVERED: "delivered", Outcome.SENT: "sent", Outcome.FORWARDED: "forwarded"}
MENDED, WORSE, OTHER = "mended", "worse", "changed"
_ORDER = (WORSE, MENDED, OTHER)


class ChangeableResult(NamedTuple):
    """The parts of a result that a script can change: outcome (or NOT_KNOWN), reason, route, target and end.

    ``end`` and ``end_instance`` are those of `MessageCase`.
    """

    outcome: str
    reason: str | None
    route_name: str | None
    destination: str | None
    end: str
    end_instance: str | None

    @classmethod
    def of(cls, result: MessageResult) -> ChangeableResult:
        """Return the part of a message's result that a script can change."""
        case, verdict = result.case, result.case.verdict
        if verdict is None:
            return cls(case.outcome, None, None, None, case.end, None)
        target = verdict.destination_database or verdict.address
        return cls(case.outcome, str(verdict.reason), verdict.route_name, target, case.end, case.end_instance)


@dataclass(frozen=True)
class Change:
    """Messages of one sender to one service that end differently after the scripts, oldest first.

    ``effect`` is MENDED (stuck only before), WORSE (stuck only after) or OTHER.
    """

    instance: str
    database: str
    service: str
    before: ChangeableResult
    after: ChangeableResult
    effect: str
    results: Sequence[MessageResult] = ()


@dataclass(frozen=True)
class Trial:
    """The messages of a check after scripts, and the changes. Numbers are places in the list of messages."""

    after: Sequence[MessageResult]
    changes: Sequence[Change]
    unchanged: int
    stuck_before: frozenset[int]
    stuck_after: frozenset[int]

    @classmethod
    def of(
        cls,
        before: Sequence[MessageResult],
        groups_before: Iterable[MessageGroup],
        after: Sequence[MessageResult],
        groups_after: Iterable[MessageGroup],
    ) -> Trial:
        """Compare the messages of two checks, which have one order, and their groups."""
        stuck_before, stuck_after = _find_stuck(before, groups_before), _find_stuck(after, groups_after)
        results_by_change: dict[Change, list[MessageResult]] = defaultdict(list)
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            was, now = ChangeableResult.of(old), ChangeableResult.of(new)
            effect = _effect(is_stuck=number in stuck_after, was_stuck=number in stuck_before)
            if was != now or effect is not OTHER:
                row = old.row
                flow = (row["instance_name"], row["database_name"], row["to_service_name"])
                results_by_change[Change(*flow, was, now, effect)].append(old)
        changes = [
            replace(change, results=sorted(results, key=lambda result: result.row["enqueue_time"]))
            for change, results in results_by_change.items()
        ]
        changes.sort(
            key=lambda change: (
                *(_ORDER.index(change.effect), -len(change.results)),
                *(change.instance, change.database or "", change.service, str(change.before)),
            )
        )
        unchanged = len(before) - sum(len(change.results) for change in changes)
        return cls(after, changes, unchanged, stuck_before, stuck_after)

    def state(self, script_files: Iterable[str]) -> str:
        """State the effect on stuck messages: "With a.sql: 4 of 4 stuck messages would be sent."."""
        names = dict.fromkeys(cut(PurePath(file).name) for file in script_files)
        worse = len(self.stuck_after - self.stuck_before)
        stuck = [self.after[number] for number in sorted(self.stuck_before)]
        freed = [self.after[number] for number in sorted(self.stuck_before - self.stuck_after)]
        unjudged = sum(result.case.verdict is None for result in freed)
        freed = [result for result in freed if result.case.verdict is not None]
        parts = []
        if stuck:
            nouns = "stuck message" if len(stuck) == 1 else "stuck messages"
            of = f"{len(freed):,} of {len(stuck):,} {nouns} would be {_state_arrival(freed)}"
            parts.append(of if freed or unjudged else f"{len(stuck):,} {nouns} would stay stuck")
        elif not worse:
            parts.append("still no stuck messages")
        if unjudged:
            parts.append(f"of {unjudged:,} it would not be known")
        if worse:
            parts.append(f"{count(worse, 'message')} more would get stuck")
        return f"With {join_words(names) or 'the scripts'}: {'; '.join(parts)}."


def _effect(*, is_stuck: bool, was_stuck: bool) -> str:
    if is_stuck == was_stuck:
        return OTHER
    return WORSE if is_stuck else MENDED


def _find_stuck(results: Sequence[MessageResult], groups: Iterable[MessageGroup]) -> frozenset[int]:
    stuck = {id(result) for group in groups if group.kind in STUCK_KINDS for result in group.results}
    return frozenset(number for number, result in enumerate(results) if id(result) in stuck)


def _state_arrival(freed: Sequence[MessageResult]) -> str:
    outcomes = {result.case.outcome for result in freed}
    words = [word for outcome, word in _ARRIVING.items() if str(outcome) in outcomes]
    return " or ".join(words) or "sent"


def forget_statuses(before: Sequence[MessageResult], after: Sequence[MessageResult]) -> list[MessageResult]:
    """Return the results after scripts. Changed results lose their status of SQL Server.

    The status describes the earlier routing only.
    """
    return [
        _without_status(new) if ChangeableResult.of(old) != ChangeableResult.of(new) else new
        for old, new in zip(before, after, strict=True)
    ]


def _without_status(result: MessageResult) -> MessageResult:
    blank = StatusText(micros_of(result.row["enqueue_time"]), None, None)
    return result._replace(case=replace(result.case, status_text=blank))
