"""Rows of dialogs and route requests that a finding can be about, found by Arrow in few passes over few columns.

What rows have in common is counted first; then those that matter are read, which are mostly none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routing.tables.arrow_forms import fold_texts
from routing.tables.arrow_rows import micros_in, with_readable_texts
from routing.tables.rows_to_check import read_where, repeated_values, suspicion
from routing.tables.table_columns import TableColumns, as_dataset, rows_where, shape_of
from routing.terms import BLANKS, ZERO_GUID

_END, _FAR, _ACKNOWLEDGED = "is_initiator", "far_broker_instance", "acknowledged_at"
_GROUP = ("instance_name", "database_name", "far_service", "conversation_group_id")
_BOUND = (_FAR, "acknowledged_broker_instance", _ACKNOWLEDGED)


def read(table: Any, key: str, now: int) -> TableColumns:
    """Read rows that lack a value, may share their key or are no UTF-8; of dialogs those of torn groups too.

    Raises InputError.

    ``now`` is in microseconds. More rows than these may be left: `faults` and `traffic` decide.
    """
    import pyarrow.compute as pc

    shape, rows = shape_of(table, key), as_dataset(table)
    condition = suspicion(rows, key, shape)
    if key == "dialogs" and set(_GROUP) <= set(shape):
        condition |= pc.field(shape[_GROUP[-1]]).isin(_torn_groups(rows, shape, now))
    return read_where(rows, key, condition)


def _torn_groups(rows: Any, shape: Mapping[str, str], now: int) -> Any:
    """Return the ids of conversation groups whose dialogs to one service are bound to different broker ids."""
    import pyarrow.compute as pc

    names = {name: pc.field(shape[name]) for name in (*_GROUP, _END, *_BOUND) if name in shape}
    told = [names[name] != "" for name in ("far_service", "conversation_group_id")]
    found = rows.to_table(columns=names, filter=told[0] & told[1])
    found = with_readable_texts(rows_where(found, found[_END]))
    bound = _bound(found, now)
    bound = rows_where(found.select(_GROUP).append_column("bound", bound), pc.is_valid(bound))
    distinct = bound.group_by(bound.column_names).aggregate([])
    return repeated_values(distinct, _GROUP)[_GROUP[-1]].unique()


def _bound(dialogs: Any, now: int) -> Any:
    """Return the broker id that each dialog is bound to, as `traffic_findings.torn_groups` has it."""
    import pyarrow
    import pyarrow.compute as pc

    far, broker, at = (
        dialogs[name] if name in dialogs.column_names else pyarrow.nulls(len(dialogs), pyarrow.string())
        for name in _BOUND
    )
    micros = micros_in(at) if pyarrow.types.is_timestamp(at.type) else at.cast(pyarrow.int64())
    was = pc.less_equal(micros, now)
    return pc.coalesce(pc.if_else(was, broker_ids(broker), None), broker_ids(far))


def broker_ids(texts: Any) -> Any:
    """Convert texts as `rules.text.broker_id` does."""
    import pyarrow.compute as pc

    bare = pc.utf8_trim(texts, characters=BLANKS)
    in_braces = pc.and_(pc.starts_with(bare, "{"), pc.ends_with(bare, "}"))
    inner = pc.utf8_trim(pc.utf8_slice_codeunits(bare, 1, -1), characters=BLANKS)
    found = fold_texts(pc.if_else(in_braces, inner, bare))
    is_none = pc.or_(pc.equal(found, ""), pc.equal(found, ZERO_GUID))
    return pc.if_else(is_none, None, found)
