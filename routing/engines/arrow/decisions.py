"""What is decided for keys, as numbers: each decision is one, and so is each of what a message's own makes of it.

A key is decided when a batch first shows it. Of a message then nothing is looked up but numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.engines.arrow.text_numbers import TextNumbers
from routing.plan.checked_inputs import CheckedInputs
from routing.plan.key_rows import CHOICE, FROM_NETWORK, Choice, KeyDecider, KeyRow, TimelineRows
from routing.rules.resolving import VERDICT_COLUMNS
from routing.schemas import ALTERNATIVE_ROUTES
from routing.tables.arrow_forms import hash_dialog_ids
from routing.tables.column_kinds import arrow_type
from routing.terms import MatchingStep, Outcome, Reason

if TYPE_CHECKING:
    import pyarrow

_FLAGS = ("asks", "asks_msdb", "reads_address", "counts_hops")
_ALTERNATIVES = "alternative_routes"
_NUMBER = "matching_step"
_TEXTS = tuple(name for name in VERDICT_COLUMNS if name not in (_ALTERNATIVES, _NUMBER))
_LEAST, _MOST = -(2**63), 2**63 - 1
# The first two numbers: a dialog that has ended, and a message that waits for a route in its own scope.
EXPIRED, REQUESTED = 0, 1


class KeyNumbers(NamedTuple):
    """The keys of messages: numbers of scopes, services and broker ids, and the sender's role."""

    scopes: pyarrow.Array
    services: pyarrow.Array
    brokers: pyarrow.Array
    is_initiator: pyarrow.Array


@dataclass
class IntNumbering:
    """Numbers for whole numbers that come part by part: the places where they first stood."""

    seen_values: Any = None

    def number(self, values: pyarrow.Array) -> tuple[pyarrow.Array, pyarrow.Array]:
        """Return the numbers of distinct values, and the values that are new."""
        import pyarrow
        import pyarrow.compute as pc

        if self.seen_values is None:
            self.seen_values = pyarrow.array([], pyarrow.int64())
        places = pc.index_in(values, value_set=self.seen_values)
        new = values.filter(places.is_null())
        if len(new):
            self.seen_values = pyarrow.concat_arrays([self.seen_values, new])
            places = pc.index_in(values, value_set=self.seen_values)
        return places, new


@dataclass
class GrowingColumn:
    """A column of a table that grows: values of Python that become an array when they are asked for."""

    kind: Any
    _new: list[Any] = field(default_factory=list)
    _array: Any = None

    def add(self, value: Any) -> None:
        """Append a value."""
        self._new.append(value)

    def array(self) -> pyarrow.Array:
        """Return all values."""
        import pyarrow

        if self._new or self._array is None:
            new = pyarrow.array(self._new, self.kind)
            self._array = new if self._array is None else pyarrow.concat_arrays([self._array, new])
            self._new.clear()
        return self._array


@dataclass
class WordColumn:
    """A column of texts of a table that grows, as the numbers of its words; null is no number."""

    words: GrowingColumn
    numbers: GrowingColumn
    _numbers_by_word: dict[str, int] = field(default_factory=dict)

    @classmethod
    def empty(cls) -> WordColumn:
        """Return one without values."""
        import pyarrow

        return cls(GrowingColumn(pyarrow.string()), GrowingColumn(pyarrow.int32()))

    def add(self, word: str | None) -> None:
        """Add a text."""
        if word is None:
            self.numbers.add(None)
            return
        number = self._numbers_by_word.get(word)
        if number is None:
            number = self._numbers_by_word[word] = len(self._numbers_by_word)
            self.words.add(word)
        self.numbers.add(number)


class DecisionColumns(NamedTuple):
    """Columns of decisions, by their number.

    ``words`` and ``numbers`` are those of each column of text of `VERDICT_COLUMNS`. ``out_of_hops`` is the number
    of what becomes of a message that must not be forwarded any more, and ``requested`` that of one which waits
    in msdb for a route; null where that cannot be.
    """

    words: dict[str, pyarrow.Array]
    numbers: dict[str, pyarrow.Array]
    matching_step: pyarrow.Array
    alternatives: pyarrow.Array
    asks: pyarrow.Array
    asks_msdb: pyarrow.Array
    reads_address: pyarrow.Array
    out_of_hops: pyarrow.Array
    requested: pyarrow.Array


class TimelineArrays(NamedTuple):
    """Arrays of timelines, of their intervals, and of the decisions of intervals.

    By timeline where its intervals begin and how many there are; by interval its end in microseconds, where its
    choices begin and how many there are; by choice the number of its decision.
    """

    first: pyarrow.Array
    counts: pyarrow.Array
    ends: pyarrow.Array
    first_choices: pyarrow.Array
    choice_counts: pyarrow.Array
    choices: pyarrow.Array
    most: int
    most_choices: int


class DecisionTable:
    """All decisions that messages have asked for so far; several threads may ask."""

    def __init__(self, checked: CheckedInputs, numbers: TextNumbers) -> None:
        """Start with no key decided; ``numbers`` number the names of the configuration."""
        import pyarrow

        self._checked, self._numbers = checked, numbers
        self._decider = KeyDecider()
        self._lock = threading.Lock()
        self._pairs, self._keys = IntNumbering(), IntNumbering()
        self._timeline_of = GrowingColumn(pyarrow.int32())
        self.scopes = [
            (instance, database)
            for instance in numbers.instances
            for database in numbers.databases
            if database in (FROM_NETWORK, *checked.instances[instance].databases)
        ]
        self._decisions: dict[Hashable, int] = {}
        self._texts = {name: WordColumn.empty() for name in _TEXTS}
        kinds = {_NUMBER: pyarrow.int32(), _ALTERNATIVES: arrow_type(ALTERNATIVE_ROUTES)}
        kinds |= dict.fromkeys(("asks", "asks_msdb", "reads_address"), pyarrow.bool_())
        kinds |= dict.fromkeys(("out_of_hops", "requested"), pyarrow.int32())
        self._others = {name: GrowingColumn(kind) for name, kind in kinds.items()}
        names = ("first", "counts", "ends", "first_choices", "choice_counts", "choices")
        self._timed = {name: GrowingColumn(pyarrow.int64()) for name in names}
        self._intervals = self._choices = self._most = self._most_choices = 0
        self._known_timelines = self._rows = 0
        self._add_row(_decision_without_route(Outcome.DROPPED, Reason.DIALOG_EXPIRED, None))
        self._add_row(_decision_without_route(Outcome.DELAYED, Reason.ROUTE_REQUESTED, MatchingStep.ROUTE_REQUEST))

    def find(self, keys: KeyNumbers) -> pyarrow.Array:
        """Return the numbers of the timelines of keys, those that are new decided now."""
        import pyarrow.compute as pc

        named = _pair(keys.services, keys.brokers).dictionary_encode()
        with self._lock:
            pairs, _ = self._pairs.number(named.dictionary)
        senders = pc.add(pc.multiply(keys.scopes.cast("int64"), 2), keys.is_initiator.cast("int64"))
        # Both are less than 2**31, however much a configuration names.
        pairs = pc.shift_left(pairs.cast("int64").take(named.indices), 31)
        coded = pc.add(pairs, senders).dictionary_encode()
        with self._lock:
            places, new = self._keys.number(coded.dictionary)
            if len(new):
                self._decide(new)
            timelines = self._timeline_of.array()
        return timelines.take(places).take(coded.indices)

    def choose(self, timelines: pyarrow.Array, at: pyarrow.Array, conversations: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of decisions: by the time of messages, and by their dialogs' hash."""
        import pyarrow.compute as pc

        table = self._timelines()
        intervals = table.first.take(timelines)
        if table.most > 1:
            intervals = _find_intervals(table, timelines, intervals, at)
        places = table.first_choices.take(intervals)
        if table.most_choices > 1:
            counts = table.choice_counts.take(intervals)
            with_choices = pc.indices_nonzero(pc.greater(counts, 1))
            if len(with_choices):
                picks = _modulo(hash_dialog_ids(conversations.take(with_choices)), counts.take(with_choices))
                mask = pc.greater(counts, 1)
                places = pc.replace_with_mask(places, mask, pc.add(places.take(with_choices), picks))
        return table.choices.take(places)

    def decided(self) -> DecisionColumns:
        """Return the columns of all decisions so far."""
        with self._lock:
            texts = {name: (one.words.array(), one.numbers.array()) for name, one in self._texts.items()}
            others = {name: one.array() for name, one in self._others.items()}
        return DecisionColumns(
            {name: words for name, (words, _) in texts.items()},
            {name: numbers for name, (_, numbers) in texts.items()},
            others[_NUMBER],
            others[_ALTERNATIVES],
            *(others[name] for name in ("asks", "asks_msdb", "reads_address", "out_of_hops", "requested")),
        )

    def _timelines(self) -> TimelineArrays:
        with self._lock:
            arrays = {name: one.array() for name, one in self._timed.items()}
            return TimelineArrays(**arrays, most=self._most, most_choices=self._most_choices)

    def _decide(self, new: pyarrow.Array) -> None:
        """Decide for keys that are new."""
        rows = list(self._rows_of(new.to_pylist()))
        services = {service for _, _, service, _, _ in rows}
        for number in self._decider.decide(rows, self._checked.instances_for(services)):
            self._timeline_of.add(number)
        for timeline in self._decider.timelines[self._known_timelines :]:
            self._add_timeline(timeline)
        self._known_timelines = len(self._decider.timelines)

    def _rows_of(self, keys: Sequence[int]) -> Iterable[KeyRow]:
        """Yield the key rows that numbers stand for."""
        pairs = self._pairs.seen_values.to_pylist() if len(keys) > 1 else self._pairs.seen_values
        for key in keys:
            pair, sender = key >> 31, key & (2**31 - 1)
            instance, database = self.scopes[sender >> 1]
            named = pairs[pair] if isinstance(pairs, list) else pairs[pair].as_py()
            service, broker = _unpair(named)
            yield self._numbers.key_of(
                self._checked.instances[instance], database, service, broker, is_initiator=bool(sender & 1)
            )

    def _add_timeline(self, timeline: TimelineRows) -> None:
        timed = self._timed
        timed["first"].add(self._intervals)
        timed["counts"].add(len(timeline.rows))
        for _, end, choices in timeline.rows:
            timed["ends"].add(_MOST if end is None else end)
            timed["first_choices"].add(self._choices)
            timed["choice_counts"].add(len(choices))
            for choice in choices:
                timed["choices"].add(self._number(choice))
            self._choices += len(choices)
            self._most_choices = max(self._most_choices, len(choices))
        self._intervals += len(timeline.rows)
        self._most = max(self._most, len(timeline.rows))

    def _number(self, choice: Choice) -> int:
        """Return the number of a decision, with those of what hops and requests make of it."""
        number = self._decisions.get(choice)
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
                asked = _decision_without_route(
                    Outcome.DELAYED, Reason.ROUTE_REQUESTED, MatchingStep.ROUTE_REQUEST
                )
                requested = self._add_row({**asked, **of_choice})
            number = self._decisions[choice] = self._add_row(
                {**values, "out_of_hops": out_of_hops, "requested": requested}
            )
        return number

    def _add_row(self, values: dict[str, Any]) -> int:
        number, self._rows = self._rows, self._rows + 1
        for name, column in self._texts.items():
            column.add(values.get(name))
        for name, other in self._others.items():
            value = values.get(name)
            if name == _ALTERNATIVES and value is not None:
                value = [dict(zip(("route_name", "address", "mirror_address"), one, strict=True)) for one in value]
            other.add(value)
        return number


def _decision_without_route(outcome: Outcome, reason: Reason, step: MatchingStep | None) -> dict[str, Any]:
    """Return a decision of no route, which is not the plan's."""
    values = {"outcome": str(outcome), "reason": str(reason), "matching_step": None if step is None else int(step)}
    return {**values, **dict.fromkeys(_FLAGS, False)}


# Numbers of services and of broker ids go below zero for what has none.
_BELOW = 2**24


def _pair(services: pyarrow.Array, brokers: pyarrow.Array) -> pyarrow.Array:
    import pyarrow.compute as pc

    above = pc.add(services.cast("int64"), _BELOW)
    return pc.add(pc.shift_left(above, 31), pc.add(brokers.cast("int64"), _BELOW))


def _unpair(pair: int) -> tuple[int, int]:
    return (pair >> 31) - _BELOW, (pair & (2**31 - 1)) - _BELOW


def _find_intervals(
    table: TimelineArrays, timelines: pyarrow.Array, first: pyarrow.Array, at: pyarrow.Array
) -> pyarrow.Array:
    """Return the intervals of times: of each timeline the first one that ends later."""
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


def _modulo(hashed: pyarrow.Array, counts: pyarrow.Array) -> pyarrow.Array:
    """Return the remainders of hashes, none below zero."""
    import pyarrow.compute as pc

    rest = pc.subtract(hashed, pc.multiply(pc.divide(hashed, counts), counts))
    return pc.if_else(pc.less(rest, 0), pc.add(rest, counts), rest)
