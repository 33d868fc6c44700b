"""Number values and rows as they come, each once: a value keeps its number while the table grows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from routing.terms import ReadRow

if TYPE_CHECKING:
    import pyarrow


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


# Numbers of pairs may go below zero, as those of services and broker instances do for what has none.
_BELOW = 2**24


@dataclass
class PairNumbering:
    """Numbers for pairs of whole numbers, from -2**24 to 2**30, that come part by part; several threads may ask.

    ``pairs`` are those so far, each in the place that is its number.
    """

    pairs: list[tuple[int, int]] = field(default_factory=list)
    _numbering: IntNumbering = field(default_factory=IntNumbering)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def number(self, left: pyarrow.Array, right: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of pairs, none of which has a null."""
        import pyarrow.compute as pc

        first, second = (pc.add(one.cast("int64"), _BELOW) for one in (left, right))
        coded = pc.add(pc.shift_left(first, 31), second).dictionary_encode()
        with self._lock:
            places, new = self._numbering.number(coded.dictionary)
            self.pairs.extend(((one >> 31) - _BELOW, (one & (2**31 - 1)) - _BELOW) for one in new.to_pylist())
        return places.take(coded.indices)


@dataclass
class GrowingColumn:
    """A column of a table that grows: values of Python that become an array when they are asked for."""

    kind: Any
    _new: list[Any] = field(default_factory=list)
    _array: Any = None

    def __len__(self) -> int:
        return len(self._new) + (0 if self._array is None else len(self._array))

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


class InternedRows:
    """Rows of a table that grows, each once: a row is known by its number. One thread may ask at a time."""

    def __init__(self, texts: Iterable[str], others: Mapping[str, pyarrow.DataType]) -> None:
        """Begin without rows; ``others`` are the columns that are no text, with their types."""
        self._texts = {name: WordColumn.empty() for name in texts}
        self._others = {name: GrowingColumn(kind) for name, kind in others.items()}
        self._numbers: dict[Hashable, int] = {}
        self._rows = 0

    def find(self, key: Hashable) -> int | None:
        """Return the number of the row of a key; None where there is none yet."""
        return self._numbers.get(key)

    def add(self, values: ReadRow, key: Hashable | None = None) -> int:
        """Append a row, and return its number, by which it is found under the key."""
        number, self._rows = self._rows, self._rows + 1
        for name, column in self._texts.items():
            column.add(values.get(name))
        for name, other in self._others.items():
            other.add(values.get(name))
        if key is not None:
            self._numbers[key] = number
        return number

    def number(self, key: Hashable, values: Callable[[], ReadRow]) -> int:
        """Return the number of the row of a key, which is made now if it is new."""
        number = self._numbers.get(key)
        return self.add(values(), key) if number is None else number

    def texts(self) -> dict[str, tuple[pyarrow.Array, pyarrow.Array]]:
        """Return the words of each column of texts, and the rows' numbers of words."""
        return {name: (one.words.array(), one.numbers.array()) for name, one in self._texts.items()}

    def others(self) -> dict[str, pyarrow.Array]:
        """Return the columns that are no text."""
        return {name: one.array() for name, one in self._others.items()}
