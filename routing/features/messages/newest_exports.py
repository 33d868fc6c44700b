"""What the newest exports of transmission queues hold: which messages wait, as far as imports know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from routing.engines.traffic_tables import TrafficTable
from routing.features.messages.message_filter import HELD
from routing.tables.table_columns import TableColumns
from routing.terms import TRANSMISSION_QUEUE, ImportKind

Queue = tuple[str, str]
"""An instance and one of its databases."""
_VIEW = "transmission_queue"
_QUEUE = ("instance_name", "database_name")
_EXPORT = (*_QUEUE, "observed_at")


class HeldMessages(NamedTuple):
    """The messages that queues hold, in the columns `message_filter.HELD`, and how many these are."""

    keys: TrafficTable | TableColumns
    messages: int


def newest_exports(imports: TrafficTable | None) -> dict[Queue, int]:
    """Return the time of the newest export of each database's queue; a database without one is left out.

    Times are microseconds.
    """
    newest: dict[Queue, int] = {}
    if imports is not None:
        exports = imports.rows((*_QUEUE, "exported_at", "kind"), only={"view_or_file": [_VIEW]})
        for *queue, at, kind in exports.rows(*_QUEUE, "exported_at", "kind"):
            # A script may be called like the view.
            if kind != ImportKind.SCRIPT:
                newest[queue[0], queue[1]] = max(at, newest.get((queue[0], queue[1]), at))
    return newest


def find_held(observed: TrafficTable | None, exports: Mapping[Queue, int]) -> HeldMessages:
    """Return the messages that the newest export of each queue holds."""
    if observed is None or not exports:
        return HeldMessages(TableColumns({name: [] for name in HELD}), 0)
    instances, databases = zip(*exports, strict=True)
    newest = TableColumns(dict(zip(_EXPORT, (instances, databases, list(exports.values())), strict=True)))
    held_rows = observed.matching(newest, _EXPORT, names=HELD, only={"source": [TRANSMISSION_QUEUE]})
    return HeldMessages(held_rows, held_rows.count(HELD))
