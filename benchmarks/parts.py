"""Where the seconds of a whole `resolve` are, so that the parts add up to the whole."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.taken import Taken

BEFORE, BETWEEN, AFTER = "start", "between stages", "end"


def parts(taken: Taken, run: Mapping[str, Any]) -> dict[str, float]:
    """Seconds by part, which together are ``taken.seconds``; ``run`` is the row of `runs`.

    Beside the stages: what came before the run began, what it did outside of any stage, and what came after the
    time that it recorded as its end, such as the commit of `runs`.
    """
    stages: Mapping[str, float] = run["stage_seconds"]
    began, ended = (run[name].timestamp() - taken.begun for name in ("started_at", "finished_at"))
    between = ended - began - sum(stages.values())
    return {BEFORE: began, **stages, BETWEEN: between, AFTER: taken.seconds - ended}


def of_middle_round(taken: Sequence[Taken], runs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The parts of the round with the median seconds; of an even number of rounds the faster one of the middle."""
    middle = statistics.median_low(one.seconds for one in taken)
    return next(parts(one, run) for one, run in zip(taken, runs, strict=True) if one.seconds == middle)
