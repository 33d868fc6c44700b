"""The keys that the local engine finds in messages, to be compared with those of the rules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.engines.arrow.message_keys import MessageRows
from routing.engines.arrow.resolved_batches import BatchResolver, MessageScan
from routing.messages import validate
from routing.plan.checked_inputs import CheckedInputs
from routing.plan.key_rows import KEY, KeyRow
from routing.tables.table_columns import Table, TableColumns

if TYPE_CHECKING:
    import pyarrow


class CountedKeys(NamedTuple):
    """The distinct keys of messages, the number of messages, and the number of valid ones."""

    keys: TableColumns
    rows_read: int
    rows_valid: int

    @property
    def rows_rejected(self) -> int:
        """The number of messages that are not valid."""
        return self.rows_read - self.rows_valid


def check_tables(arrow_tables: Mapping[str, Any]) -> CheckedInputs:
    """Check tables of Arrow, whose configuration is then in this process."""
    checked = validate.check(validate.read(arrow_tables))
    assert isinstance(checked, CheckedInputs)
    return checked


def count_keys(
    messages: Table, dialogs: Table | None, checked: CheckedInputs, as_of: datetime | None
) -> CountedKeys:
    """The distinct keys of messages, how many are read, and how many can be resolved."""
    scan = MessageScan.of(MessageRows.of(messages, as_of), dialogs, checked)
    resolver, keys, read, valid = BatchResolver(scan), set[KeyRow](), 0, 0
    for batch in scan.batches():
        keyed = resolver.key(batch).keys
        read, valid = read + len(batch), valid + len(keyed.scopes)
        keys.update(_key(scan, *row) for row in zip(*map(_values, keyed), strict=True))
    columns = list(zip(*sorted(keys), strict=True)) or [()] * len(KEY)
    return CountedKeys(TableColumns(dict(zip(KEY, columns, strict=True))), read, valid)


def _values(column: pyarrow.Array) -> list[int]:
    values: list[int] = column.to_pylist()
    return values


def _key(scan: MessageScan, scope: int, service: int, broker: int, is_initiator: bool) -> KeyRow:
    instance, database = scan.decisions.scopes[scope]
    of_instance = scan.checked.instances[instance]
    return scan.numbers.key_of(of_instance, database, service, broker, is_initiator=is_initiator)
