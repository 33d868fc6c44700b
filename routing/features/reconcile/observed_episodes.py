"""What either way of reading finds: groups of episodes with their causes, and the rows of the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from routing.features.reconcile.groups import Balanced, EpisodeGroup, GroupAnswers, MismatchCause
from routing.tables.table_columns import Table

RENAMED = {
    "observed_outcome": "outcome",
    "observed_error_number": "error_number",
    "observed_status_text": "status_text",
    "observed_broker_instance": "to_broker_instance",
    "observed_next_hop": "next_hop",
    "first_observed_at": "first_at",
    "last_observed_at": "last_at",
}
"""Columns of episodes by their names in the output, where these differ."""


@dataclass(frozen=True)
class ObservedEpisodes:
    """All episodes of ``observations`` rows of ``observed_routing``, judged.

    ``groups`` hold every episode once; ``causes`` are those of some of them. ``unobserved``: sides of messages
    that nobody observed. ``rows``: the rows of ``reconciliation``.
    """

    observations: int
    groups: Sequence[EpisodeGroup]
    causes: Mapping[GroupAnswers, MismatchCause]
    balanced: Balanced
    unobserved: int
    rows: Table
