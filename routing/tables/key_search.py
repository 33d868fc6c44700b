"""Keys, and which of them a table holds: rows are read once by Arrow, some at a time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from routing.tables.table_columns import as_dataset, spell

if TYPE_CHECKING:
    import pyarrow

# So many parts of a file, and files, are read ahead of the search: Arrow's own numbers are 16 and 4.
_PARTS, _FILES = 4, 2


def find_held(table: Any, keys: pyarrow.Table) -> pyarrow.Table:
    """Return the keys that a table of Arrow has.

    ``keys`` are distinct, in columns of texts by the table's names for them in lower case. Texts are compared
    exactly; null is equal to nothing.
    """
    import pyarrow
    import pyarrow.compute as pc
    from pyarrow import acero

    rows, spelled, names = as_dataset(table), spell(table), keys.column_names
    columns = {name: pc.field(spelled[name]) for name in names}
    ahead = {"batch_readahead": _PARTS, "fragment_readahead": _FILES}
    scan = acero.Declaration("scan", acero.ScanNodeOptions(rows, columns=columns, **ahead))
    # A scan of some columns still hands on all that a table has, and some that it has not.
    texts = [column.cast(pyarrow.string()) for column in columns.values()]
    stored = acero.Declaration("project", acero.ProjectNodeOptions(texts, names), [scan])
    wanted = acero.Declaration("table_source", acero.TableSourceNodeOptions(keys))
    join = acero.HashJoinNodeOptions("right semi", names, names)
    return acero.Declaration("hashjoin", join, [stored, wanted]).to_table(use_threads=True)


def read_keys(table: Any, names: Mapping[str, str], most: int) -> pyarrow.Table | None:
    """Read some columns of an Arrow table, without rows that lack one; None where these are over ``most`` bytes.

    ``names`` are the columns' in the table, by those in the result, where they are texts.
    """
    import pyarrow
    import pyarrow.compute as pc

    columns = {name: pc.field(there).cast(pyarrow.string()) for name, there in names.items()}
    present = reduce(and_, (pc.field(there).is_valid() for there in names.values()))
    scanner = as_dataset(table).scanner(
        columns=columns, filter=present, batch_readahead=_PARTS, fragment_readahead=_FILES
    )
    parts, size = [], 0
    for part in scanner.to_batches():
        parts.append(part)
        size += part.nbytes
        if size > most:
            return None
    return pyarrow.Table.from_batches(parts, scanner.projected_schema)
