"""Split the seconds of a whole `resolve` into parts that add up to the whole."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.taken import Taken

BEFORE, BETWEEN, AFTER = "start", "between stages", "end"


def parts(measurement: Taken, run: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds by part, with ``taken.seconds`` as their sum. ``run`` is the row of `runs`.

    Other parts than the stages are the time before the run, time of the run outside of any stage, and time after
    its recorded end. The last includes the commit of `runs`.
    """
    stages: Mapping[str, float] = run["stage_seconds"]
    began, ended = (run[name].timestamp() - measurement.begun for name in ("started_at", "finished_at"))
    between = ended - began - sum(stages.values())
    return {BEFORE: began, **stages, BETWEEN: between, AFTER: measurement.seconds - ended}


def of_middle_round(measurements: Sequence[Taken], runs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the parts of the round with the median seconds, or of the faster middle one of an even number."""
    middle = statistics.median_low(measurement.seconds for measurement in measurements)
    return next(
        parts(measurement, run)
        for measurement, run in zip(measurements, runs, strict=True)
        if measurement.seconds == middle
    )
