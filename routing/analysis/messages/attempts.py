"""Which rows of ``resolved_routes`` stand, in Arrow: one that a later attempt has replaced does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from routing.storage.columns import rows_where

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

_KEY = ("instance_name", "message_id")


def find_replaced(rows: pyarrow.dataset.Dataset, names: Sequence[str]) -> pyarrow.Table:
    """The rows of messages that a later attempt has replaced, in some columns, of which attempt is one."""
    import pyarrow.compute as pc

    last = _last_attempts(rows)
    if not len(last):
        return rows.schema.empty_table().select(names)
    both = _tried(rows, last, names).join(last, list(_KEY), join_type="inner")
    return rows_where(both, pc.less(both["attempt"], both["attempt_max"])).select(names)


def split_tried(rows: pyarrow.dataset.Dataset, names: Sequence[str]) -> tuple[Any, pyarrow.Table]:
    """A condition, which holds for messages that were tried once; and the rows of the others that stand.

    These are in some columns. Where no message was tried again, there is no condition (None), and no such row.
    """
    import pyarrow.compute as pc

    last = _last_attempts(rows)
    if not len(last):
        return None, rows.schema.empty_table().select(names)
    both = _tried(rows, last, names).join(last, list(_KEY), join_type="left outer")
    # The id may also be that of another instance's message, which was tried once.
    stands = pc.equal(both["attempt"], pc.coalesce(both["attempt_max"], both["attempt"]))
    return ~_has_id_of(last), rows_where(both, stands).select(names)


def without(found: pyarrow.Table, replaced: pyarrow.Table) -> pyarrow.Table:
    """Rows of which none is a replaced one."""
    if not len(replaced):
        return found
    gone = replaced.select([*_KEY, "attempt"])
    return found.join(gone, [*_KEY, "attempt"], join_type="left anti")


def _last_attempts(rows: pyarrow.dataset.Dataset) -> pyarrow.Table:
    """The messages that were tried again, and their last attempt (attempt_max).

    The files' statistics mostly tell where there is no second attempt. Where there is, ids are compared once.
    """
    import pyarrow.compute as pc

    again = rows.to_table(columns=[*_KEY, "attempt"], filter=pc.field("attempt") > 1)
    return again.group_by(list(_KEY)).aggregate([("attempt", "max")])


def _has_id_of(last: pyarrow.Table) -> Any:
    """Whether a row has the id of a message that was tried again."""
    import pyarrow.compute as pc

    return pc.field("message_id").isin(last["message_id"].combine_chunks())


def _tried(rows: pyarrow.dataset.Dataset, last: pyarrow.Table, names: Sequence[str]) -> pyarrow.Table:
    """The rows that have such an id, in some columns and in those that tell attempts apart."""
    return rows.to_table(columns=list(dict.fromkeys((*names, *_KEY, "attempt"))), filter=_has_id_of(last))
