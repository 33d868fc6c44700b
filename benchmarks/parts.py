"""Split the seconds of a whole `resolve` into parts that add up to the whole."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.taken import Taken

BEFORE, BETWEEN, AFTER = "start", "between stages", "end"


def parts(taken: Taken, run: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds by part, with ``taken.seconds`` as their sum. ``run`` is the row of `runs`.

    Other parts than the stages are the time before the run, time of the run outside of any stage, and time after
    its recorded end. The last includes the commit of `runs`.
    """
    stages: Mapping[str, float] = run["stage_seconds"]
    began, ended = (run[name].timestamp() - taken.begun for name in ("started_at", "finished_at"))
    between = ended - began - sum(stages.values())
    return {BEFORE: began, **stages, BETWEEN: between, AFTER: taken.seconds - ended}


def of_middle_round(taken: Sequence[Taken], runs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the parts of the round with the median seconds, or of the faster middle one of an even number."""
    middle = statistics.median_low(one.seconds for one in taken)
    return next(parts(one, run) for one, run in zip(taken, runs, strict=True) if one.seconds == middle)
