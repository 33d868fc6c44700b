"""The counts of a run, of its rows as they are stored; they must add up before it is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from routing.delta.import_times import newest_after, taken_as_now
from routing.errors import InternalError
from routing.runs.run_work import RunWork
from routing.terms import Outcome, Reason, Word


@dataclass(frozen=True)
class RunCounts:
    """The versions that a run wrote, by key, and counts of its rows."""

    versions: Mapping[str, int]
    read: int = 0
    resolved: int = 0
    rejected: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)


Groups = Counter[tuple[Any, ...]]
"""How many resolved messages have an outcome, a reason and a database."""


def count_resolved(work: RunWork, versions: Mapping[str, int]) -> Groups:
    """Count the stored rows of a run's resolved messages.

    To read narrow columns takes a fraction of the time that counting the rows on their way takes.
    """
    return work.count_written("resolved_routes", versions["resolved_routes"], "outcome", "reason", "database_name")


def count_rows(
    work: RunWork, versions: Mapping[str, int], groups: Groups, written: Iterable[str], read: int
) -> RunCounts:
    """Return the counts of a run, which must agree. Raises StorageError, InternalError.

    ``groups`` as `count_resolved` has them; ``written`` are the outputs that the run wrote to. Where imports are
    on record, the run's notes get what `imported` says of decisions before them.
    """
    rejected: Counter[tuple[Any, ...]] = Counter()
    if "rejected_messages" in written:
        rejected = work.count_written("rejected_messages", versions["rejected_messages"], "run_id")
    done = RunCounts(
        versions,
        read,
        groups.total(),
        rejected.total(),
        _sums(groups, 0, Outcome),
        _sums(groups, 1, Reason),
    )
    decided = sum(done.outcomes.values()), sum(done.reasons.values())
    if done.resolved + done.rejected != read or decided != (done.resolved, done.resolved):
        raise InternalError.counts(read, min(decided), done.rejected)
    work.notes.extend(_taken_as_now(work, versions["resolved_routes"]))
    return done


def check_pending(work: RunWork, versions: Mapping[str, int], groups: Groups) -> None:
    """Check that ``pending_messages`` holds every message that this run left delayed. Raises InternalError.

    Both are counted as they are stored, ``groups`` by `count_resolved`: what is missing there is never tried
    again. Raises InternalError.
    """
    from routing.messages import pending

    delayed = sum(
        rows for (outcome, _, database), rows in groups.items() if pending.tries_again(outcome, database)
    )
    stored = work.count_written("pending_messages", versions["pending_messages"], "run_id").total()
    if stored != delayed:
        raise InternalError.pending(delayed, stored)


def _taken_as_now(work: RunWork, version: int) -> Iterator[str]:
    """Return the note on decisions before the newest import of what has no history; none where all is newer."""
    if work.newest:
        decided = work.earliest_decided(version, max(work.newest.values()))
        after = {name: newest_after(work.newest, name, t) for name, t in decided.items()}
        late = {name: at for name, at in after.items() if at is not None}
        if late:
            yield taken_as_now(late)


def _sums(groups: Counter[tuple[Any, ...]], place: int, words: Iterable[Word]) -> dict[str, int]:
    """Sum rows by the words in a place of their groups; other values count nowhere."""
    sums = {str(word): sum(rows for group, rows in groups.items() if group[place] == str(word)) for word in words}
    return {word: rows for word, rows in sums.items() if rows}


def note_unended_requests(work: RunWork, count: int) -> None:
    """Note how many requests on record have no ended_at, if any."""
    if count:
        have = "request on record has" if count == 1 else "requests on record have"
        waits = "until it is there, nothing asks again for the same service, and who asked for it waits"
        work.notes.append(f"{count:,} route {have} no ended_at: {waits}")
