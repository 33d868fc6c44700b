"""What `reconcile` found, counted for the page: its table as it was written last."""

from __future__ import annotations

from collections import Counter
from typing import Any

from routing.engines.traffic_tables import count_by
from routing.features.report.facts import ContradictedEpisodes, ObservedCause, ObservedCounts
from routing.rules.reconciling import PairClass
from routing.tables.table_columns import Table

_CAUSE = ("instance_name", "cause", "cause_text")
_CONTRADICTION = (
    *("instance_name", "database_name", "to_service_name", "observed_outcome", "observed_error_number"),
    *("predicted_outcome", "predicted_reason", "why"),
)


def count_observed(reconciliation: Table) -> ObservedCounts:
    """Count episodes by instance and class and by cause, and contradictions by their common facts."""
    classes = count_by(reconciliation, ("instance_name", "class"))
    causes = count_by(reconciliation, _CAUSE)
    off = count_by(reconciliation, _CONTRADICTION, {"class": [str(PairClass.CONTRADICTED)]})
    return ObservedCounts(
        {(instance, kind): number for (instance, kind), number in sorted(classes.items())},
        [ObservedCause(*row) for row in _most(causes) if row[1] is not None],
        [ContradictedEpisodes(*row) for row in _most(off)],
    )


def _most(counts: Counter[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return each key with its number, the most first, and of as many in the order of their texts."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], tuple(map(str, item[0]))))
    return [(*key, number) for key, number in ordered]
