"""The keys that the local engine finds in messages, to be compared with those of the rules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.engines.arrow.message_keys import MessageRows
from routing.engines.arrow.resolved_batches import BatchResolver, MessageScan
from routing.messages import validate
from routing.plan.checked_inputs import CheckedInputs
from routing.plan.key_rows import ADDRESS_ELSEWHERE, KEY, NO_ADDRESS, OTHER_BROKER, OWN_ADDRESS, SERVICE_FACTOR
from routing.rules.estate import NameAddress
from routing.rules.matching import UNNAMED
from routing.tables.table_columns import Table, TableColumns

if TYPE_CHECKING:
    pass


CLASSES = {NameAddress.NONE: NO_ADDRESS, NameAddress.ELSEWHERE: ADDRESS_ELSEWHERE, NameAddress.OWN: OWN_ADDRESS}


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
    resolver, keys, read, valid = BatchResolver(scan), set[tuple[Any, ...]](), 0, 0
    for batch in scan.batches():
        keyed = resolver.key(batch).keys
        read, valid = read + len(batch), valid + len(keyed)
        keys.update(_key(scan, number) for number in keyed.to_pylist())
    columns = list(zip(*sorted(keys), strict=True)) or [()] * len(KEY)
    return CountedKeys(TableColumns(dict(zip(KEY, columns, strict=True))), read, valid)


def _key(scan: MessageScan, number: int) -> tuple[Any, ...]:
    """Return a key as a row of the columns `KEY`, in which names that nothing names are alike."""
    name, database, to, broker, is_initiator = scan.decisions.key(number)
    named = scan.checked.named
    key = to.key(scan.checked.instances[name], database, broker, is_initiator=is_initiator)
    kind = int(is_initiator)
    if (name, key.service) not in named.services:
        kind += SERVICE_FACTOR * (CLASSES[key.name_address] if scan.checked.has_transport else NO_ADDRESS)
    is_other = key.broker == UNNAMED or (key.broker is not None and (name, key.broker) not in named.brokers)
    return (
        name,
        database or "",
        key.service if (name, key.service) in named.services else "",
        "" if is_other else key.broker or "",
        kind + (OTHER_BROKER if is_other else 0),
    )
