"""Find the dialogs of messages with Arrow: the broker instances they are bound to, and their end times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.engines.arrow.text_numbers import NONE, TextNumbers
from routing.plan.checked_inputs import filter_for_decisions
from routing.schemas import KEYS
from routing.tables.arrow_forms import fold_texts, read_brokers
from routing.tables.arrow_rows import micros_in
from routing.tables.encoded_texts import split_words
from routing.tables.table_columns import Table, as_dataset, shape_of

if TYPE_CHECKING:
    import pyarrow

_END = KEYS["dialogs"]
_FAR, _ACKNOWLEDGED, _SINCE, _ENDS = (
    "far_broker_instance",
    "acknowledged_broker_instance",
    "acknowledged_at",
    "lifetime",
)
_PLACE = "conversation"
# Most conversations have one or two stored endpoints.
_FEW_ENDS = 4


class FoundDialogs(NamedTuple):
    """The facts of messages' dialogs at the time of the messages.

    ``brokers`` is a dictionary array of the broker instances that the dialogs name. ``numbers`` has their numbers,
    or `NONE` for none. ``is_expired`` is None if no dialog ends.
    """

    brokers: pyarrow.Array
    numbers: pyarrow.Array
    is_expired: pyarrow.Array | None


# The columns with the facts of a dialog if Spark has joined them (`keying.DIALOG`).
_JOINED = ("far_broker", "acknowledged_broker", "acknowledged_at", "dialog_lifetime")


@dataclass(frozen=True)
class JoinedDialogs:
    """The dialogs of messages that already have the facts of their dialogs as columns."""

    numbers: TextNumbers

    @staticmethod
    def columns(conversation_id: Any) -> dict[str, pyarrow.compute.Expression]:
        """Return the expressions that `find` needs in a batch."""
        import pyarrow.compute as pc

        return {name: pc.field(name) for name in _JOINED}

    def find(self, batch: pyarrow.RecordBatch, *scope: pyarrow.Array) -> FoundDialogs:
        """Find the dialogs of the messages of a batch."""
        import pyarrow
        import pyarrow.compute as pc

        far, acknowledged = (batch[name] for name in _JOINED[:2])
        since, lifetime = (micros_in(batch[name]) for name in _JOINED[2:])
        is_acknowledged = pc.fill_null(pc.less_equal(since, batch["at"]), fill_value=False)
        named = pc.coalesce(pc.if_else(is_acknowledged, acknowledged, None), far)
        words, places = split_words(named.cast(pyarrow.string()))
        numbers = pc.fill_null(self.numbers.number_brokers(words).take(places), NONE)
        is_expired = pc.fill_null(pc.less_equal(lifetime, batch["at"]), fill_value=False)
        return FoundDialogs(pyarrow.DictionaryArray.from_arrays(places, words), numbers, is_expired)


@dataclass(frozen=True)
class DialogEnds:
    """The endpoints of dialogs that may change a decision, in the order of their codes.

    ``conversations`` has their distinct folded ids. ``codes`` has a number for each endpoint (`_codes`). ``first``
    and ``counts`` give the endpoints of a conversation in this order. ``brokers`` has the distinct broker
    instances that dialogs name, and ``broker_numbers`` their numbers.

    For each endpoint, ``far`` and ``acknowledged`` are places in ``brokers``. ``acknowledged`` applies from
    ``since`` on. The dialog ends at ``lifetime``. Both times are in microseconds.
    """

    numbers: TextNumbers
    conversations: pyarrow.Array
    codes: pyarrow.Array
    first: pyarrow.Array
    counts: pyarrow.Array
    most: int
    brokers: pyarrow.Array
    broker_numbers: pyarrow.Array
    far: pyarrow.Array
    acknowledged: pyarrow.Array
    since: pyarrow.Array
    lifetime: pyarrow.Array

    @classmethod
    def of(cls, dialogs: Table | None, numbers: TextNumbers) -> DialogEnds | None:
        """Return the endpoints of an Arrow table without faults, or None if none may change a decision.

        Raises InputError if a column is missing or has a wrong type.
        """
        import pyarrow
        import pyarrow.compute as pc

        shape = {} if dialogs is None else shape_of(dialogs, "dialogs")
        may_change = filter_for_decisions(shape)
        if may_change is None:
            return None
        names = (*_END, _FAR, _ACKNOWLEDGED, _SINCE, _ENDS)
        columns = {name: pc.field(shape[name]) for name in names if name in shape}
        rows = as_dataset(dialogs).to_table(columns=columns, filter=may_change)
        if not len(rows):
            return None

        def texts(name: str) -> Any:
            if name not in shape:
                return pyarrow.nulls(len(rows), pyarrow.string())
            return rows[name].cast(pyarrow.string()).combine_chunks()

        def micros(name: str) -> Any:
            if name not in shape:
                return pyarrow.nulls(len(rows), pyarrow.int64())
            return micros_in(rows[name]).combine_chunks()

        folded = fold_texts(texts("conversation_id"))
        conversations = pc.unique(folded)
        instances = numbers.number_instances(texts("instance_name"))
        databases = numbers.number_databases(texts("database_name"))
        conversation_places = pc.index_in(folded, value_set=conversations)
        is_initiator = rows["is_initiator"].combine_chunks()
        codes = _codes(numbers, instances, databases, is_initiator, conversation_places)
        # Endpoints of unknown databases have no code and come last.
        order = pc.sort_indices(codes)[: len(codes) - codes.null_count]
        codes = codes.take(order)
        counted = pc.value_counts(pc.divide(codes, _ends_of_one(numbers)))
        places = pc.index_in(pyarrow.array(range(len(conversations)), pyarrow.int64()), counted.field("values"))
        counts = pc.fill_null(counted.field("counts").take(places), 0)
        first = pc.subtract(pc.cumulative_sum(counts), counts)
        far, acknowledged = (read_brokers(texts(name).take(order)) for name in (_FAR, _ACKNOWLEDGED))
        brokers = pc.unique(pyarrow.concat_arrays([far, acknowledged])).drop_null()
        return cls(
            numbers,
            conversations,
            codes,
            first,
            counts,
            pc.max(counts).as_py() or 0,
            brokers,
            numbers.number_brokers(brokers),
            pc.index_in(far, value_set=brokers, skip_nulls=True),
            pc.index_in(acknowledged, value_set=brokers, skip_nulls=True),
            micros(_SINCE).take(order),
            micros(_ENDS).take(order),
        )

    @property
    def may_end(self) -> bool:
        """Whether any dialog has a lifetime."""
        return bool(self.lifetime.null_count < len(self.lifetime))

    def columns(self, conversation_id: Any) -> dict[str, pyarrow.compute.Expression]:
        """Return the expression that `find` needs in a batch: the place of the conversation."""
        import pyarrow.compute as pc

        return {_PLACE: pc.index_in(fold_texts(conversation_id), value_set=self.conversations)}

    def find(self, batch: pyarrow.RecordBatch, instances: pyarrow.Array, databases: pyarrow.Array) -> FoundDialogs:
        """Find the dialogs of a batch of messages, given the numbers of their instances and databases."""
        import pyarrow
        import pyarrow.compute as pc

        conversations, at = batch[_PLACE], batch["at"]
        codes = _codes(self.numbers, instances, databases, batch["is_initiator"], conversations)
        places = self._places_of(codes, conversations)
        is_acknowledged = pc.fill_null(pc.less_equal(self.since.take(places), at), fill_value=False)
        acknowledged = pc.if_else(is_acknowledged, self.acknowledged.take(places), None)
        brokers = pc.coalesce(acknowledged, self.far.take(places))
        numbers, is_expired = pc.fill_null(self.broker_numbers.take(brokers), NONE), None
        if self.may_end:
            is_expired = pc.fill_null(pc.less_equal(self.lifetime.take(places), at), fill_value=False)
        named = pyarrow.DictionaryArray.from_arrays(brokers, self.brokers)
        return FoundDialogs(named, numbers, is_expired)

    def _places_of(self, codes: pyarrow.Array, conversations: pyarrow.Array) -> pyarrow.Array:
        """Return the places of the endpoints with some codes, or null."""
        import pyarrow
        import pyarrow.compute as pc

        if self.most > _FEW_ENDS:
            return pc.index_in(codes, value_set=self.codes, skip_nulls=True)
        first, counts = self.first.take(conversations), self.counts.take(conversations)
        places: Any = pyarrow.nulls(len(codes), pyarrow.int64())
        for step in range(self.most):
            place = pc.if_else(pc.less(step, counts), pc.add(first, step), None)
            is_it = pc.fill_null(pc.equal(self.codes.take(place), codes), fill_value=False)
            places = pc.if_else(is_it, place, places)
        return places


def _ends_of_one(numbers: TextNumbers) -> int:
    """Return the highest possible number of endpoints of one conversation."""
    return 2 * len(numbers.instances) * len(numbers.databases)


def _codes(
    numbers: TextNumbers,
    instances: pyarrow.Array,
    databases: pyarrow.Array,
    is_initiator: pyarrow.Array,
    conversations: pyarrow.Array,
) -> pyarrow.Array:
    """Return the code of each endpoint, or null if its instance, database or conversation is unknown."""
    import pyarrow.compute as pc

    is_known = pc.and_(pc.greater_equal(instances, 0), pc.greater_equal(databases, 0))
    scope = pc.add(pc.multiply(instances.cast("int64"), len(numbers.databases)), databases)
    end = pc.add(pc.multiply(scope, 2), is_initiator.cast("int64"))
    code = pc.add(pc.multiply(conversations.cast("int64"), _ends_of_one(numbers)), end)
    return pc.if_else(is_known, code, None)
