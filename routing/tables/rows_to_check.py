"""Rows of tables that grow with the traffic, found by Arrow, among which are all that `faults` would refuse.

What rows have in common is counted first; then those that matter are read, which are mostly none.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from routing.schemas import INPUTS, ColumnKind
from routing.tables.arrow_forms import fold_texts
from routing.tables.arrow_rows import find_undecodable
from routing.tables.encoded_texts import encoded
from routing.tables.table_columns import (
    TableColumns,
    as_dataset,
    joined,
    read_arrow,
    rows_where,
    shape_of,
    with_few,
)

_ID, _END = "conversation_id", "is_initiator"
# Texts that most rows have for themselves: to number them takes longer than to read them.
_DISTINCT = (_ID, "conversation_group_id", "message_id")


def read_suspects(table: Any, key: str) -> TableColumns:
    """Read the rows of dialogs or route_requests that lack a value, may share their key, or are no UTF-8.

    Raises InputError.
    """
    rows = as_dataset(table)
    return read_where(rows, key, suspicion(rows, key, shape_of(table, key)))


def read_where(rows: Any, key: str, condition: Any) -> TableColumns:
    """Read the rows of a dataset for which a condition holds, and those with a text that is no UTF-8.

    Raises InputError.
    """
    matching_rows = read_arrow(with_few(rows, condition), key, condition)
    shape = shape_of(rows, key)
    texts = [shape[field.name] for field in INPUTS[key] if field.kind == ColumnKind.STRING and field.name in shape]
    if not _any_undecodable(encoded(rows, set(texts) - {shape.get(name) for name in _DISTINCT}), texts):
        return matching_rows
    return joined(matching_rows, *_read_undecodable(rows, key, texts, condition))


def _any_undecodable(rows: Any, texts: Sequence[str]) -> bool:
    """Return whether any text of some columns is no UTF-8."""
    batches = rows.scanner(texts).to_batches()
    return any(find_undecodable(batch[name]) is not None for batch in batches for name in texts)


def _read_undecodable(rows: Any, key: str, texts: Sequence[str], condition: Any) -> Iterator[TableColumns]:
    """Read the rows with a text that is no UTF-8, of those for which a condition does not hold."""
    import pyarrow
    import pyarrow.compute as pc

    others = ~pc.coalesce(condition, pc.scalar(False))
    for batch in rows.scanner(filter=others).to_batches():
        bad = [mask for name in texts if (mask := find_undecodable(batch[name])) is not None]
        if bad:
            places = pc.indices_nonzero(reduce(pc.or_, bad))
            yield read_arrow(pyarrow.table(batch).take(places), key)


def suspicion(rows: Any, key: str, shape: Mapping[str, str]) -> Any:
    """Return Arrow's condition that a row lacks a value or may share its key; ``shape`` as of `shape_of`."""
    import pyarrow.compute as pc

    condition = _lacks(key, shape)
    if key == "dialogs":
        condition |= fold_texts(pc.field(shape[_ID])).isin(_doubled_ids(rows, shape))
    return condition


def _lacks(key: str, shape: Mapping[str, str]) -> Any:
    """Return whether a row lacks a required value."""
    import pyarrow.compute as pc

    required = [field for field in INPUTS[key] if not field.nullable]
    missing = [pc.field(shape[field.name]).is_null() for field in required]
    empty = [pc.field(shape[field.name]) == "" for field in required if field.kind == ColumnKind.STRING]
    return reduce(operator.or_, [*missing, *empty])


def _doubled_ids(rows: Any, shape: Mapping[str, str]) -> Any:
    """Return the folded ids of conversations one end of which stands in several rows."""
    import pyarrow.compute as pc

    ends = {_ID: fold_texts(pc.field(shape[_ID])), _END: pc.field(shape[_END])}
    return repeated_values(rows.to_table(columns=ends), ends)[_ID].drop_null().unique()


def repeated_values(rows: Any, names: Any) -> Any:
    """Return the values in columns that several rows have."""
    import pyarrow.compute as pc

    counted = rows.group_by(list(names)).aggregate([([], "count_all")])
    return rows_where(counted, pc.greater(counted["count_all"], 1))
