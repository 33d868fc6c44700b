"""The keys of messages that Arrow reads, without Java: the very same as those that `keying.count_keys` finds.

What stands in a row alone is computed as the files are read. Of everything else a row has small numbers: that of a
text which the configuration names, or one for all others, so that garbage in the data takes no room.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from routing.engines.arrow.dialog_ends import DialogEnds
from routing.engines.arrow.message_rows import MessageRows
from routing.engines.arrow.text_columns import split_words
from routing.engines.arrow.text_numbers import NONE, OTHER, TextNumbers
from routing.plan.checked import CheckedInputs
from routing.plan.keys import READ, KeyCounts
from routing.process.garbage import no_search_for_cycles
from routing.rules.rejecting import DECODED
from routing.tables.arrow_rows import find_undecodable
from routing.tables.encoded_texts import GroupSums, MappedTexts
from routing.tables.table_columns import Table

if TYPE_CHECKING:
    import pyarrow

# How many messages are of a key, how many of them have all that they need, and how many a conversation id that is
# written as it is compared.
_SUMS = {"rows": "sum", "sound": "sum", "folded": "sum"}
_ROWS_AT_ONCE = 262_144


def count_keys(
    messages: Table, dialogs: Table | None, checked: CheckedInputs, as_of: datetime | None
) -> KeyCounts:
    """Return one pass over messages of Arrow's: their keys (`keys.KEY`), and how many are read and to be rejected.

    ``dialogs`` are Arrow's too, without a fault; ``checked`` is the configuration. Raises InputError where the
    columns of messages are not those of their table.
    """
    numbers = TextNumbers.of(checked)
    message_rows = MessageRows.of(messages, as_of)
    ends = DialogEnds.of(dialogs, numbers)
    mapped = _mapped(numbers)
    sums = GroupSums(READ, _SUMS)
    for batch in _read(message_rows, ends):
        sums.add(_number(batch, mapped, ends))
    groups = sums.all().to_pydict()
    with no_search_for_cycles():
        counts = numbers.keys_of(zip(*(groups[name] for name in (*READ, "rows", "sound")), strict=True))
    return replace(counts, is_folded=groups["folded"] == groups["rows"])


def _read(messages: MessageRows, ends: DialogEnds | None) -> Iterator[pyarrow.RecordBatch]:
    """Read `keys.READ` and `rejecting.DECODED`, whether a row is sound and folded, and what finds its dialog."""
    there = {name: messages.column(name) for name in (*READ, *DECODED) if name in messages.shape}
    columns = {**there, "sound": messages.is_sound(), "folded": messages.is_folded()}
    if ends is not None:
        conversation = ends.find_conversation(messages.column("conversation_id"))
        columns |= {"conversation": conversation, "at": messages.time()}
    # An id of its own in every row would only grow by a number.
    return messages.scan(columns, [name for name in there if name != "message_id"], _ROWS_AT_ONCE)


def _mapped(numbers: TextNumbers) -> dict[str, tuple[MappedTexts, int]]:
    """Return the numbering of each text column, and the number of an absent text."""
    return {
        "instance_name": (MappedTexts(numbers.number_instances), OTHER),
        "database_name": (MappedTexts(numbers.number_databases), 0),
        "to_service_name": (MappedTexts(numbers.number_services), OTHER),
        "to_broker_instance": (MappedTexts(numbers.number_brokers), NONE),
    }


def _number(
    batch: pyarrow.RecordBatch, mapped: dict[str, tuple[MappedTexts, int]], ends: DialogEnds | None
) -> pyarrow.Table:
    """Number the texts of a batch, in the columns of `READ` and `_SUMS`, with what dialogs add."""
    import pyarrow
    import pyarrow.compute as pc

    columns: dict[str, Any] = {"is_initiator": batch["is_initiator"]}
    for name, (numbers, absent) in mapped.items():
        is_there = name in batch.schema.names
        texts = batch[name] if is_there else pyarrow.nulls(len(batch), pyarrow.string())
        columns[name] = pc.fill_null(numbers.of(texts), absent)
    if ends is not None:
        scopes = columns["instance_name"], columns["database_name"]
        of_dialog = ends.find(*scopes, batch["is_initiator"], batch["conversation"], batch["at"]).brokers
        named = columns["to_broker_instance"]
        is_open = pc.equal(named, NONE)
        columns["to_broker_instance"] = pc.if_else(is_open, ends.number_brokers(of_dialog), named)
    columns["rows"] = pyarrow.repeat(1, len(batch))
    columns["sound"] = find_sound(batch).cast("int64")
    columns["folded"] = batch["folded"].cast("int64")
    return pyarrow.table(columns)


def find_sound(batch: pyarrow.RecordBatch) -> pyarrow.Array:
    """Return a mask of sound rows: those with a service and UTF-8 in the texts of `rejecting.DECODED`."""
    import pyarrow.compute as pc

    # By the distinct names: those of all rows, if they are long, are more than a column holds.
    services, places = split_words(batch["to_service_name"])
    has_service = pc.fill_null(pc.not_equal(services, "").take(places), fill_value=False)
    sound = pc.and_(batch["sound"], has_service)
    for name in DECODED:
        undecodable = find_undecodable(batch[name]) if name in batch.schema.names else None
        if undecodable is not None:
            sound = pc.and_not(sound, undecodable)
    return sound
