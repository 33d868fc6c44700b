"""Messages as Arrow reads them: what stands in a row alone, computed while the files are read."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from routing.tables.arrow_forms import fold_texts, is_guid, is_int
from routing.tables.arrow_rows import micros_in
from routing.tables.encoded_texts import encoded
from routing.tables.table_columns import Table, as_dataset, shape_of
from routing.tables.times import micros_of

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset


# Texts that most rows have in common with others; an id of its own in every row would only grow by a number.
NUMBERED = ("instance_name", "database_name", "to_service_name", "to_broker_instance", "from_service_name")


@dataclass(frozen=True)
class MessageRows:
    """Messages as they are given, with the names of their columns there.

    ``at``: the time as of which all are decided, in microseconds; None for their own.
    """

    rows: pyarrow.dataset.Dataset
    shape: Mapping[str, str]
    at: int | None

    @classmethod
    def of(cls, messages: Table, as_of: datetime | None) -> MessageRows:
        """Return the messages of a table of Arrow's. Raises InputError where its columns are not theirs."""
        at = None if as_of is None else micros_of(as_of)
        return cls(as_dataset(messages), shape_of(messages, "messages"), at)

    def scan(
        self, columns: Mapping[str, Any], numbered: Collection[str], size: int
    ) -> Iterator[pyarrow.RecordBatch]:
        """Read some expressions, batch by batch; the ``numbered`` columns as numbers of texts."""
        rows = encoded(self.rows, [self.shape[name] for name in numbered if name in self.shape])
        scanner = rows.scanner(dict(columns), batch_size=size, batch_readahead=4, fragment_readahead=2)
        return (batch for batch in scanner.to_batches() if len(batch))

    def column(self, name: str) -> Any:
        """Return a column as an expression."""
        import pyarrow.compute as pc

        return pc.field(self.shape[name])

    def is_sound(self) -> Any:
        """Return a mask of rows with all required columns but a service, whatever their instance and database."""
        import pyarrow.compute as pc

        needed = [self.column("message_id") != ""]
        needed += [self.column(name).is_valid() for name in ("is_initiator", "enqueue_time")]
        needed.append(is_guid(self.column("conversation_id")))
        if "hops_remaining" in self.shape:
            hops = self.column("hops_remaining").cast("int64")
            needed.append(hops.is_null() | is_int(hops))
        return pc.coalesce(reduce(operator.and_, needed), pc.scalar(False))

    def is_folded(self) -> Any:
        """Return a mask of conversation ids that are GUIDs in their compared form."""
        import pyarrow.compute as pc

        conversation_ids = self.column("conversation_id")
        return pc.coalesce(fold_texts(conversation_ids) == conversation_ids, pc.scalar(False))

    def time(self) -> Any:
        """Return the time of a row's decision, in microseconds."""
        import pyarrow.compute as pc

        if self.at is not None:
            return pc.scalar(self.at)
        return pc.coalesce(*(self.micros(name) for name in ("observed_at", "enqueue_time") if name in self.shape))

    def micros(self, name: str) -> Any:
        """Return a column of times in microseconds."""
        return micros_in(self.column(name), self.rows.schema.field(self.shape[name]).type)


def texts_of(rows: pyarrow.RecordBatch, name: str) -> pyarrow.Array:
    """Return a column of texts; one that messages lack is null."""
    import pyarrow

    return rows[name] if name in rows.schema.names else pyarrow.nulls(len(rows), pyarrow.string())
