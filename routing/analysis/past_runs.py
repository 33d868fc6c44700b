"""The runs so far, and one of them: frames of ``runs`` in, frames for people and programs out (tables.md)."""

from __future__ import annotations

import difflib

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.errors import RunError

NEAREST = 3
# As many of the newest runs are looked through for one that was meant.
_LOOKED_THROUGH = 1_000
_MICROSECONDS = 1e6


def list_runs(runs: DataFrame, limit: int | None = None) -> DataFrame:
    """The recorded runs, newest first, without settings, versions and stages.

    ``runs`` is the table of that name. Columns: run_id, mode, started_at, seconds (double), rows_read,
    rows_resolved, rows_rejected, outcome_counts, release.
    """
    counts = ("rows_read", "rows_resolved", "rows_rejected", "outcome_counts", "release")
    found = _newest_first(runs).select("run_id", "mode", "started_at", _seconds().alias("seconds"), *counts)
    return found if limit is None else found.limit(limit)


def find_run(runs: DataFrame, asked: str, location: str) -> DataFrame:
    """The one run that has this id, or else the only one whose id begins with it: one row.

    Columns as in ``runs``, and besides seconds (double) and slow_stages, an array of struct(stage, seconds,
    share of the run's seconds), slowest first. ``location`` is for the message. Raises RunError.
    """
    # An argument that is no text in the terminal's encoding has halves of surrogates, which Spark cannot take.
    asked = asked.encode("utf-8", "replace").decode("utf-8")
    fits = F.startswith(F.col("run_id"), F.lit(asked))
    ids = _newest_ids(runs.where(fits))
    if not ids or not asked:
        raise RunError.unknown(asked, location, _nearest(runs, asked))
    if len(ids) > 1 and asked not in ids:
        raise RunError.ambiguous(asked, ids[:NEAREST], len(ids))
    run_id = asked if asked in ids else ids[0]
    return (
        runs.where(F.col("run_id") == F.lit(run_id))
        .limit(1)
        .select("*", _seconds().alias("seconds"), _slow_stages().alias("slow_stages"))
    )


def _newest_first(runs: DataFrame) -> DataFrame:
    return runs.orderBy(F.desc("started_at"), F.desc("run_id"))


def _newest_ids(runs: DataFrame) -> list[str]:
    """The ids of the newest runs, as many as are looked through, newest first."""
    rows = _newest_first(runs).select("run_id").limit(_LOOKED_THROUGH).collect()
    return list(dict.fromkeys(str(row["run_id"]) for row in rows))


def _seconds() -> Column:
    return (F.unix_micros("finished_at") - F.unix_micros("started_at")) / F.lit(_MICROSECONDS)


def _slow_stages() -> Column:
    """Arrays are sorted by their first field, so seconds stand there until the end."""
    whole = F.when(_seconds() > 0, _seconds())
    bare = F.transform(
        F.map_entries("stage_seconds"),
        lambda stage: F.struct(stage["value"].alias("seconds"), stage["key"].alias("stage")),
    )
    return F.transform(
        F.reverse(F.array_sort(bare)),
        lambda stage: F.struct(
            stage["stage"].alias("stage"),
            stage["seconds"].alias("seconds"),
            (stage["seconds"] / whole).alias("share"),
        ),
    )


def _nearest(runs: DataFrame, asked: str) -> list[str]:
    """The ids that are spelled most alike, of the newest runs; the newest where none is alike."""
    ids = _newest_ids(runs)
    # What was typed may be the beginning of an id.
    beginnings: dict[str, str] = {}
    for run_id in ids:
        beginnings.setdefault(run_id[: len(asked)], run_id)
    alike = difflib.get_close_matches(asked[:100], list(beginnings), n=NEAREST)
    return [beginnings[beginning] for beginning in alike] or ids[:NEAREST]
