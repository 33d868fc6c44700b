"""Decide keys and number the decisions, including the outcomes that a message's own facts can cause.

A key is decided at its first occurrence in a batch. After that, messages need only numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from routing.engines.arrow.interned_rows import GrowingColumn, InternedRows, PairNumbering
from routing.engines.arrow.text_numbers import TextNumbers
from routing.plan.checked_inputs import CheckedInputs, GrowingEstate
from routing.plan.key_rows import CHOICE, FROM_NETWORK, Choice, KeyDecider
from routing.process import no_search_for_cycles
from routing.rules.network import ServiceAddress
from routing.rules.resolving import VERDICT_COLUMNS
from routing.schemas import ALTERNATIVE_ROUTES
from routing.tables.arrow_forms import hash_dialog_ids
from routing.tables.arrow_rows import arrow_type
from routing.terms import MatchingStep, Outcome, Reason, TableRow

if TYPE_CHECKING:
    import pyarrow

_FLAGS = ("asks", "asks_msdb", "reads_address", "counts_hops")
_ALTERNATIVES = "alternative_routes"
_NUMBER = "matching_step"
_TEXTS = tuple(name for name in VERDICT_COLUMNS if name not in (_ALTERNATIVES, _NUMBER))
# The end time of an open interval.
_MOST = 2**63 - 1
# The numbers for a dialog that has ended, and for a message that waits for a route in its own scope.
EXPIRED, REQUESTED = 0, 1


class MessageKey(NamedTuple):
    """The facts that messages with one key have in common. ``database`` is None for an arrival."""

    instance: str
    database: str | None
    to: ServiceAddress
    broker: str | None
    is_initiator: bool


class DecisionColumns(NamedTuple):
    """The columns of decisions, in the order of their numbers.

    ``texts`` has each text column of `VERDICT_COLUMNS` as a dictionary array. ``out_of_hops`` is the number of the
    decision for a message without hops left, and ``requested`` for a message that waits in msdb for a route. Both
    are null if this cannot happen.
    """

    texts: Mapping[str, pyarrow.Array]
    matching_step: pyarrow.Array
    alternatives: pyarrow.Array
    asks: pyarrow.Array
    asks_msdb: pyarrow.Array
    reads_address: pyarrow.Array
    out_of_hops: pyarrow.Array
    requested: pyarrow.Array


class TimelineArrays(NamedTuple):
    """Timelines, their intervals and the choices of each interval, as arrays.

    ``first`` and ``counts`` give the intervals of a timeline. ``ends`` has the end of an interval in microseconds.
    ``first_choices`` and ``choice_counts`` give the choices of an interval. ``choices`` has the decision of a
    choice.
    """

    first: pyarrow.Array
    counts: pyarrow.Array
    ends: pyarrow.Array
    first_choices: pyarrow.Array
    choice_counts: pyarrow.Array
    choices: pyarrow.Array
    most: int
    most_choices: int

    def choose(self, timelines: pyarrow.Array, at: pyarrow.Array, conversations: pyarrow.Array) -> pyarrow.Array:
        """Return the choices for messages, by their time and their dialogs' hash."""
        import pyarrow.compute as pc

        intervals = self.first.take(timelines)
        if self.most > 1:
            intervals = _find_intervals(self, timelines, intervals, at)
        places = self.first_choices.take(intervals)
        if self.most_choices > 1:
            counts = self.choice_counts.take(intervals)
            mask = pc.greater(counts, 1)
            with_choices = pc.indices_nonzero(mask)
            if len(with_choices):
                picks = find_rests(conversations.take(with_choices), counts.take(with_choices))
                places = pc.replace_with_mask(places, mask, pc.add(places.take(with_choices), picks))
        return self.choices.take(places)


class TimelineTable:
    """A growing table of timelines, with choices as numbers. Not safe for several threads."""

    def __init__(self) -> None:
        import pyarrow

        names = ("first", "counts", "ends", "first_choices", "choice_counts", "choices")
        self._columns = {name: GrowingColumn(pyarrow.int64()) for name in names}
        self._most = self._most_choices = 0

    def __len__(self) -> int:
        return len(self._columns["first"])

    def add(self, intervals: Sequence[tuple[int | None, Sequence[int]]]) -> int:
        """Add a timeline, given the end and the choices of each interval in order, and return its number."""
        columns = self._columns
        columns["first"].add(len(columns["ends"]))
        columns["counts"].add(len(intervals))
        for end, choices in intervals:
            columns["ends"].add(_MOST if end is None else end)
            columns["first_choices"].add(len(columns["choices"]))
            columns["choice_counts"].add(len(choices))
            for choice in choices:
                columns["choices"].add(choice)
            self._most_choices = max(self._most_choices, len(choices))
        self._most = max(self._most, len(intervals))
        return len(self) - 1

    def arrays(self) -> TimelineArrays:
        """Return all timelines so far."""
        arrays = {name: column.array() for name, column in self._columns.items()}
        return TimelineArrays(**arrays, most=self._most, most_choices=self._most_choices)


class DecisionTable:
    """All decisions for the messages so far. Several threads may use it."""

    def __init__(self, checked: CheckedInputs, numbers: TextNumbers) -> None:
        """Start without decided keys. ``numbers`` has the numbers of the configuration's names."""
        import pyarrow

        self._checked, self._numbers = checked, numbers
        self._decider, self._estate = KeyDecider(), GrowingEstate(checked)
        self._lock = threading.Lock()
        # Pairs of service and broker instance, and pairs of these and a scope with the sender's role.
        self._pairs, self._keys = PairNumbering(), PairNumbering()
        self._timeline_of = GrowingColumn(pyarrow.int64())
        self.scopes = [
            (instance, database)
            for instance in numbers.instances
            for database in sorted({FROM_NETWORK, *checked.instances[instance].databases})
        ]
        kinds = {_NUMBER: pyarrow.int32(), _ALTERNATIVES: arrow_type(ALTERNATIVE_ROUTES)}
        kinds |= dict.fromkeys(("asks", "asks_msdb", "reads_address"), pyarrow.bool_())
        kinds |= dict.fromkeys(("out_of_hops", "requested"), pyarrow.int32())
        self._decisions = InternedRows(_TEXTS, kinds)
        self._timelines = TimelineTable()
        self._add_row(_decision_without_route(Outcome.DROPPED, Reason.DIALOG_EXPIRED, None))
        self._add_row(_decision_without_route(Outcome.DELAYED, Reason.ROUTE_REQUESTED, MatchingStep.ROUTE_REQUEST))

    def number(
        self, scopes: pyarrow.Array, services: pyarrow.Array, brokers: pyarrow.Array, is_initiator: pyarrow.Array
    ) -> pyarrow.Array:
        """Return the numbers of keys, from those of their scope, service and broker instance."""
        import pyarrow.compute as pc

        senders = pc.add(pc.multiply(scopes.cast("int64"), 2), is_initiator.cast("int64"))
        return self._keys.number(self._pairs.number(services, brokers), senders)

    def key(self, number: int) -> MessageKey:
        """Return the key with a number."""
        pair, sender = self._keys.pairs[number]
        service, broker = self._pairs.pairs[pair]
        instance, database = self.scopes[sender >> 1]
        to, broker_id = self._numbers.services.service(service), self._numbers.broker(broker)
        return MessageKey(instance, database or None, to, broker_id, bool(sender & 1))

    def decide(self, keys: pyarrow.Array, at: pyarrow.Array, conversations: pyarrow.Array) -> pyarrow.Array:
        """Return the decisions for messages, by their keys, times and dialogs' hash. New keys are decided now."""
        with self._lock:
            self._decide_new()
            timeline_of, table = self._timeline_of.array(), self._timelines.arrays()
        return table.choose(timeline_of.take(keys), at, conversations)

    def decided(self) -> DecisionColumns:
        """Return the columns of all decisions so far."""
        with self._lock:
            columns = self._decisions.columns()
        return DecisionColumns(
            {name: columns[name] for name in _TEXTS},
            columns[_NUMBER],
            columns[_ALTERNATIVES],
            *(columns[name] for name in ("asks", "asks_msdb", "reads_address", "out_of_hops", "requested")),
        )

    def _decide_new(self) -> None:
        """Decide new keys."""
        keys = list(map(self.key, range(len(self._timeline_of), len(self._keys.pairs))))
        named = self._checked.named.services
        services = (key.to.name for key in keys if key.to.name and (key.instance, key.to.name) in named)
        if self._estate.add(services):
            self._decider.forget_routes()
        with no_search_for_cycles():
            for key in keys:
                instance = self._estate.instances[key.instance]
                decided = key.to.key(instance, key.database, key.broker, is_initiator=key.is_initiator)
                self._timeline_of.add(self._decider.decide_one(decided, instance))
        for timeline in self._decider.timelines[len(self._timelines) :]:
            self._timelines.add([(end, list(map(self._number, choices))) for _, end, choices in timeline.rows])

    def _number(self, choice: Choice) -> int:
        """Return the number of a decision, and add its variants for used-up hops and requested routes."""
        number = self._decisions.find(choice)
        if number is None:
            values = dict(zip(CHOICE.names, choice, strict=True))
            out_of_hops = requested = None
            plain = {**values, **dict.fromkeys(_FLAGS, False)}
            if values["counts_hops"]:
                reads = {"reads_address": values["reads_address"]}
                dropped = {"outcome": str(Outcome.DROPPED), "reason": str(Reason.HOP_LIMIT)}
                out_of_hops = self._add_row({**plain, **reads, **dropped})
            if values["asks_msdb"]:
                of_choice = {name: values[name] for name in ("broker_instance", "rerouted_from")}
                undecided = _decision_without_route(
                    Outcome.DELAYED, Reason.ROUTE_REQUESTED, MatchingStep.ROUTE_REQUEST
                )
                requested = self._add_row({**undecided, **of_choice})
            number = self._add_row({**values, "out_of_hops": out_of_hops, "requested": requested}, choice)
        return number

    def _add_row(self, values: TableRow, choice: Choice | None = None) -> int:
        alternatives = values.get(_ALTERNATIVES)
        if alternatives is not None:
            names = ("route_name", "address", "mirror_address")
            alternatives = [dict(zip(names, alternative, strict=True)) for alternative in alternatives]
        return self._decisions.add({**values, _ALTERNATIVES: alternatives}, choice)


def _decision_without_route(outcome: Outcome, reason: Reason, step: MatchingStep | None) -> TableRow:
    """Return a decision that uses no route."""
    values = {"outcome": str(outcome), "reason": str(reason), "matching_step": None if step is None else int(step)}
    return {**values, **dict.fromkeys(_FLAGS, False)}


def _find_intervals(
    table: TimelineArrays, timelines: pyarrow.Array, first: pyarrow.Array, at: pyarrow.Array
) -> pyarrow.Array:
    """Find the first interval of each timeline that ends after a time, by binary search."""
    import pyarrow.compute as pc

    counts = table.counts.take(timelines)
    mask = pc.greater(counts, 1)
    with_intervals = pc.indices_nonzero(mask)
    if not len(with_intervals):
        return first
    low, times = first.take(with_intervals), at.take(with_intervals)
    high = pc.subtract(pc.add(low, counts.take(with_intervals)), 1)
    for _ in range(table.most.bit_length()):
        middle = pc.divide(pc.add(low, high), 2)
        ends_later = pc.greater(table.ends.take(middle), times)
        low, high = (
            pc.if_else(ends_later, low, pc.min_element_wise(pc.add(middle, 1), high)),
            pc.if_else(ends_later, middle, high),
        )
    return pc.replace_with_mask(first, mask, low)


def find_rests(conversations: pyarrow.Array, counts: pyarrow.Array) -> pyarrow.Array:
    """Return the dialog-ID hash of conversations modulo counts, never negative."""
    import pyarrow.compute as pc

    hashed = hash_dialog_ids(conversations)
    remainder = pc.subtract(hashed, pc.multiply(pc.divide(hashed, counts), counts))
    return pc.if_else(pc.less(remainder, 0), pc.add(remainder, counts), remainder)
