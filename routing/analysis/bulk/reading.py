"""Messages of Arrow's tables and files, some tens of thousands at a time."""

from __future__ import annotations

from collections.abc import Iterator

from routing.storage.columns import Columns, Only, Table, stream_arrow
from routing.storage.inputs import condition_of

MOST_MESSAGES = 1_000_000
"""Up to so many messages of local tables are judged without Spark."""


def read_batches(messages: Table, only: Only | None = None) -> Iterator[Columns]:
    """All messages of an Arrow table or dataset, in the declared columns; in batches of 65,536 rows at most.

    ``only`` are the values by column of which each row has one. Raises InputError where a column that is needed
    is missing, or of a type that is not accepted.
    """
    return stream_arrow(messages, "messages", condition_of(messages, only or {}))
