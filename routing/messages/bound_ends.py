"""The broker ids that dialogs bind messages to, found by Arrow: what `keying.add_dialog` finds by a join."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from routing.messages.numbers import NONE, Numbers
from routing.schemas import KEYS
from routing.storage.arrow import micros_in
from routing.storage.arrow_forms import fold_texts
from routing.storage.columns import Table, as_dataset, shape_of
from routing.storage.encoded import Mapped

if TYPE_CHECKING:
    import pyarrow

_END = KEYS["dialogs"]
_FAR, _ACKNOWLEDGED, _SINCE = "far_broker_instance", "acknowledged_broker_instance", "acknowledged_at"


@dataclass(frozen=True)
class Ends:
    """The ends of dialogs that are bound to a broker, or are so from some time on.

    ``conversations`` are their folded ids, each once; ``codes`` are the ends, a number each (`_codes`). In the
    same order ``far`` and ``acknowledged`` are the numbers of broker ids, `NONE` for none, and ``since`` is from
    when on the second counts, in microseconds.
    """

    numbers: Numbers
    conversations: pyarrow.Array
    codes: pyarrow.Array
    far: pyarrow.Array
    acknowledged: pyarrow.Array
    since: pyarrow.Array

    @classmethod
    def of(cls, dialogs: Table | None, numbers: Numbers) -> Ends | None:
        """The ends in a table of dialogs of Arrow's that is without a fault; None where none is bound.

        Raises InputError where its columns are not those of its table.
        """
        import pyarrow
        import pyarrow.compute as pc

        shape = {} if dialogs is None else shape_of(dialogs, "dialogs")
        bound = [pc.field(shape[name]).is_valid() for name in (_FAR, _SINCE) if name in shape]
        if not bound:
            return None
        columns = {name: pc.field(shape[name]) for name in (*_END, _FAR, _ACKNOWLEDGED, _SINCE) if name in shape}
        rows = as_dataset(dialogs).to_table(columns=columns, filter=reduce(operator.or_, bound))
        if not len(rows):
            return None
        of_brokers = Mapped(numbers.number_brokers)
        nothing = pyarrow.nulls(len(rows), pyarrow.string())
        far, acknowledged = (
            pc.fill_null(of_brokers.of(rows[name].combine_chunks() if name in shape else nothing), NONE)
            for name in (_FAR, _ACKNOWLEDGED)
        )
        folded = fold_texts(rows["conversation_id"].combine_chunks())
        conversations = pc.unique(folded)
        instances = numbers.number_instances(rows["instance_name"].combine_chunks())
        databases = numbers.number_databases(rows["database_name"].combine_chunks())
        found = pc.index_in(folded, value_set=conversations)
        codes = _codes(numbers, instances, databases, rows["is_initiator"].combine_chunks(), found)
        since = (
            micros_in(rows[_SINCE]).combine_chunks()
            if _SINCE in shape
            else pyarrow.nulls(len(rows), pyarrow.int64())
        )
        return cls(numbers, conversations, codes, far, acknowledged, since)

    def find_conversation(self, conversation_id: Any) -> Any:
        """The place of a message's conversation among these, null for none; takes and gives an expression."""
        import pyarrow.compute as pc

        return pc.index_in(fold_texts(conversation_id), value_set=self.conversations)

    def find_brokers(
        self,
        instances: pyarrow.Array,
        databases: pyarrow.Array,
        is_initiator: pyarrow.Array,
        conversations: pyarrow.Array,
        at: pyarrow.Array,
    ) -> pyarrow.Array:
        """The numbers of the broker ids that messages are bound to by their dialogs, `NONE` for none.

        By the numbers of their instance and database, and by their time in microseconds.
        """
        import pyarrow
        import pyarrow.compute as pc

        codes = _codes(self.numbers, instances, databases, is_initiator, conversations)
        # An end of a database that is not known has no number, and nothing is equal to that.
        places = pc.index_in(codes, value_set=self.codes, skip_nulls=True)
        none = pyarrow.scalar(NONE, pyarrow.int32())
        is_acknowledged = pc.fill_null(pc.less_equal(self.since.take(places), at), fill_value=False)
        acknowledged = pc.if_else(is_acknowledged, self.acknowledged.take(places), none)
        chosen = pc.if_else(pc.equal(acknowledged, NONE), self.far.take(places), acknowledged)
        return pc.fill_null(chosen, NONE)


def _codes(
    numbers: Numbers,
    instances: pyarrow.Array,
    databases: pyarrow.Array,
    is_initiator: pyarrow.Array,
    conversations: pyarrow.Array,
) -> pyarrow.Array:
    """A number for each end of a conversation; null where it has none, or one that is not known."""
    import pyarrow.compute as pc

    known = pc.and_(pc.greater_equal(instances, 0), pc.greater_equal(databases, 0))
    scope = pc.add(pc.multiply(instances.cast("int64"), len(numbers.databases)), databases)
    end = pc.add(pc.multiply(scope, 2), is_initiator.cast("int64"))
    code = pc.add(
        pc.multiply(conversations.cast("int64"), 2 * len(numbers.instances) * len(numbers.databases)), end
    )
    return pc.if_else(known, code, None)
