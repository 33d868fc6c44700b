"""The counts of a run, of its rows as they are stored; they must add up before it is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from routing.errors import InternalError
from routing.storage.frames import all_of
from routing.terms import Outcome, Reason, Word


@dataclass(frozen=True)
class Written:
    """What a run wrote: versions by key, and counts of its rows."""

    versions: Mapping[str, int]
    read: int = 0
    resolved: int = 0
    rejected: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)


def count_rows(versions: Mapping[str, int], resolved: DataFrame, rejected: DataFrame | None, read: int) -> Written:
    """The counts of a run, which must agree. Raises StorageError, InternalError.

    ``resolved`` and ``rejected`` are the run's rows as they are stored, None where none were written: to read two
    narrow columns takes a fraction of the time that counting the rows on their way takes.
    """
    grouped = resolved.groupBy("outcome", "reason").agg(F.count(F.lit(1)).alias("rows"))
    groups, set_aside = all_of(
        resolved.sparkSession, grouped.collect, lambda: 0 if rejected is None else rejected.count()
    )
    done = Written(
        versions,
        read,
        sum(group["rows"] for group in groups),
        set_aside,
        _sums(groups, "outcome", Outcome),
        _sums(groups, "reason", Reason),
    )
    decided = sum(done.outcomes.values()), sum(done.reasons.values())
    if done.resolved + set_aside != read or decided != (done.resolved, done.resolved):
        raise InternalError.counts(read, min(decided), set_aside)
    return done


def _sums(groups: list[Row], column: str, words: Iterable[Word]) -> dict[str, int]:
    """Rows by the words of a column; a value that is none of them counts nowhere."""
    sums = {str(word): sum(group["rows"] for group in groups if group[column] == str(word)) for word in words}
    return {word: rows for word, rows in sums.items() if rows}
