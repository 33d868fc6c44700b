"""Rows of tables that grow with the traffic, found by Arrow, among which are all that `faults` would refuse.

What rows have in common is counted first; then those that matter are read, which are mostly none.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import reduce
from typing import Any

from routing.schemas import INPUTS, Kind
from routing.storage.arrow_forms import fold_texts
from routing.storage.columns import Columns, as_dataset, read_arrow, rows_where, shape_of, with_few

_ID, _END = "conversation_id", "is_initiator"


def read_suspects(table: Any, key: str) -> Columns:
    """The rows of dialogs or route_requests that lack a value or may share their key. Raises InputError."""
    rows = as_dataset(table)
    condition = suspicion(rows, key, shape_of(table, key))
    return read_arrow(with_few(rows, condition), key, condition)


def suspicion(rows: Any, key: str, shape: Mapping[str, str]) -> Any:
    """The condition for Arrow that a row lacks a value or may share its key; ``shape`` as `shape_of` gives it."""
    import pyarrow.compute as pc

    condition = _lacks(key, shape)
    if key == "dialogs":
        condition |= fold_texts(pc.field(shape[_ID])).isin(_doubled_ids(rows, shape))
    return condition


def _lacks(key: str, shape: Mapping[str, str]) -> Any:
    """Whether a row lacks a required value."""
    import pyarrow.compute as pc

    required = [field for field in INPUTS[key] if not field.nullable]
    missing = [pc.field(shape[field.name]).is_null() for field in required]
    empty = [pc.field(shape[field.name]) == "" for field in required if field.kind == Kind.STRING]
    return reduce(operator.or_, [*missing, *empty])


def _doubled_ids(rows: Any, shape: Mapping[str, str]) -> Any:
    """The folded ids of conversations one end of which stands in several rows."""
    import pyarrow.compute as pc

    ends = {_ID: fold_texts(pc.field(shape[_ID])), _END: pc.field(shape[_END])}
    return several(rows.to_table(columns=ends), ends)[_ID].drop_null().unique()


def several(rows: Any, names: Any) -> Any:
    """What several rows have in columns."""
    import pyarrow.compute as pc

    counted = rows.group_by(list(names)).aggregate([([], "count_all")])
    return rows_where(counted, pc.greater(counted["count_all"], 1))
