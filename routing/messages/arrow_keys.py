"""The keys of messages that Arrow reads, without Java: the very same as those that `keying.count_keys` finds.

What stands in a row alone is computed as the files are read. Of everything else a row has small numbers: that of a
text which the configuration names, or one for all others, so that garbage in the data takes no room.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from routing.messages.bound_ends import Ends
from routing.messages.keying import CHECKED, READ, KeyCounts
from routing.messages.numbers import NONE, OTHER, Numbers
from routing.messages.rejecting import INT_RANGE
from routing.messages.validate import Checked
from routing.process.garbage import no_search_for_cycles
from routing.storage.arrow import find_undecodable, micros_in
from routing.storage.arrow_forms import fold_texts, is_guid
from routing.storage.columns import Table, as_dataset, shape_of
from routing.storage.encoded import Mapped, Sums, encoded
from routing.storage.times import micros_of

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

# How many messages are of a key, how many of them have all that they need, and how many a conversation id that is
# written as it is compared.
_SUMS = {"rows": "sum", "sound": "sum", "folded": "sum"}
_ROWS_AT_ONCE = 262_144


def count_keys(messages: Table, dialogs: Table | None, checked: Checked, as_of: datetime | None) -> KeyCounts:
    """One pass over messages of Arrow's: their keys (`keys.KEY`), and how many are read and to be rejected.

    ``dialogs`` are Arrow's too, without a fault; ``checked`` is the configuration. Raises InputError where the
    columns of messages are not those of their table.
    """
    numbers = Numbers.of(checked)
    given = _Given(
        as_dataset(messages), shape_of(messages, "messages"), None if as_of is None else micros_of(as_of)
    )
    ends = Ends.of(dialogs, numbers)
    mapped = _mapped(numbers)
    sums = Sums(READ, _SUMS)
    for batch in given.read(ends):
        sums.add(_number(batch, mapped, ends))
    groups = sums.all().to_pydict()
    with no_search_for_cycles():
        counts = numbers.keys_of(zip(*(groups[name] for name in (*READ, "rows", "sound")), strict=True))
    return replace(counts, is_folded=groups["folded"] == groups["rows"])


@dataclass(frozen=True)
class _Given:
    """Messages as they are given, with the names of their columns there.

    ``at``: the time as of which all are decided, in microseconds; None for their own.
    """

    rows: pyarrow.dataset.Dataset
    shape: dict[str, str]
    at: int | None

    def read(self, ends: Ends | None) -> Iterator[pyarrow.RecordBatch]:
        """Read `keying.READ` and `keying.CHECKED` where they are, sound, and what finds the ends of dialogs."""
        there = {name: self._of(name) for name in (*READ, *CHECKED) if name in self.shape}
        columns = {**there, "sound": self._is_sound(), "folded": self._is_folded()}
        if ends is not None:
            columns |= {"conversation": ends.find_conversation(self._of("conversation_id")), "at": self._time()}
        # An id of its own in every row would only grow by a number.
        rows = encoded(self.rows, [self.shape[name] for name in there if name != "message_id"])
        scanner = rows.scanner(columns, batch_size=_ROWS_AT_ONCE, batch_readahead=4, fragment_readahead=2)
        return (batch for batch in scanner.to_batches() if len(batch))

    def _of(self, name: str) -> Any:
        import pyarrow.compute as pc

        return pc.field(self.shape[name])

    def _is_sound(self) -> Any:
        """Whether a row has all that it needs, whatever its instance and database (`keying.is_well_formed`)."""
        import pyarrow.compute as pc

        needed = [self._of(name) != "" for name in ("message_id", "to_service_name")]
        needed += [self._of(name).is_valid() for name in ("is_initiator", "enqueue_time")]
        needed.append(is_guid(self._of("conversation_id")))
        if "hops_remaining" in self.shape:
            least, most = INT_RANGE
            hops = self._of("hops_remaining").cast("int64")
            needed.append(hops.is_null() | ((hops >= least) & (hops <= most)))
        return pc.coalesce(reduce(operator.and_, needed), pc.scalar(False))

    def _is_folded(self) -> Any:
        """Whether a conversation id, which is a GUID, is written as it is compared."""
        import pyarrow.compute as pc

        given = self._of("conversation_id")
        return pc.coalesce(fold_texts(given) == given, pc.scalar(False))

    def _time(self) -> Any:
        """The time of a row in microseconds."""
        import pyarrow.compute as pc

        if self.at is not None:
            return pc.scalar(self.at)
        return pc.coalesce(*(self._micros(name) for name in ("observed_at", "enqueue_time") if name in self.shape))

    def _micros(self, name: str) -> Any:
        return micros_in(self._of(name), self.rows.schema.field(self.shape[name]).type)


def _mapped(numbers: Numbers) -> dict[str, tuple[Mapped, int]]:
    """How the texts of a row become numbers, and the number of a text that is not there."""
    return {
        "instance_name": (Mapped(numbers.number_instances), OTHER),
        "database_name": (Mapped(numbers.number_databases), 0),
        "to_service_name": (Mapped(numbers.number_services), OTHER),
        "to_broker_instance": (Mapped(numbers.number_brokers), NONE),
    }


def _number(batch: pyarrow.RecordBatch, mapped: dict[str, tuple[Mapped, int]], ends: Ends | None) -> pyarrow.Table:
    """The rows of a batch as numbers, in the columns of `READ` and `_SUMS`; what a dialog says is told in them."""
    import pyarrow
    import pyarrow.compute as pc

    columns: dict[str, Any] = {"is_initiator": batch["is_initiator"]}
    for name, (numbers, absent) in mapped.items():
        is_there = name in batch.schema.names
        texts = batch[name] if is_there else pyarrow.nulls(len(batch), pyarrow.string())
        columns[name] = pc.fill_null(numbers.of(texts), absent)
    if ends is not None:
        scopes = columns["instance_name"], columns["database_name"]
        of_dialog = ends.find_brokers(*scopes, batch["is_initiator"], batch["conversation"], batch["at"])
        named = columns["to_broker_instance"]
        columns["to_broker_instance"] = pc.if_else(pc.equal(named, NONE), of_dialog, named)
    columns["rows"] = pyarrow.repeat(1, len(batch))
    columns["sound"] = _sound_and_decodable(batch).cast("int64")
    columns["folded"] = batch["folded"].cast("int64")
    return pyarrow.table(columns)


def _sound_and_decodable(batch: pyarrow.RecordBatch) -> pyarrow.Array:
    """Tell of each row whether it is sound, the texts of `keying.CHECKED` in UTF-8 included."""
    import pyarrow.compute as pc

    sound = batch["sound"]
    for name in CHECKED:
        undecodable = find_undecodable(batch[name]) if name in batch.schema.names else None
        if undecodable is not None:
            sound = pc.and_not(sound, undecodable)
    return sound
