"""Number distinct values and rows in the order of arrival. A value keeps its number while the table grows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from routing.terms import ReadRow

if TYPE_CHECKING:
    import pyarrow


# Numbers in pairs may be negative, such as those for services and broker instances without a number.
_BELOW = 2**24


@dataclass
class PairNumbering:
    """Numbers pairs of integers from -2**24 to 2**30 in several batches, also from several threads.

    ``pairs`` has the pairs so far, in the order of their numbers.
    """

    pairs: list[tuple[int, int]] = field(default_factory=list)
    _codes: Any = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def number(self, left: pyarrow.Array, right: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of pairs without nulls."""
        import pyarrow
        import pyarrow.compute as pc

        first, second = (pc.add(numbers.cast("int64"), _BELOW) for numbers in (left, right))
        coded = pc.add(pc.shift_left(first, 31), second).dictionary_encode()
        with self._lock:
            known = pyarrow.array([], pyarrow.int64()) if self._codes is None else self._codes
            places = pc.index_in(coded.dictionary, value_set=known)
            new = coded.dictionary.filter(places.is_null())
            if len(new):
                self._codes = pyarrow.concat_arrays([known, new])
                places = pc.index_in(coded.dictionary, value_set=self._codes)
            self.pairs.extend(((code >> 31) - _BELOW, (code & (2**31 - 1)) - _BELOW) for code in new.to_pylist())
        return places.take(coded.indices)


@dataclass
class GrowingColumn:
    """A column of a growing table. `array` converts the new Python values."""

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
    """A text column of a growing table, stored as distinct words and the number of each row's word."""

    words: GrowingColumn
    numbers: GrowingColumn
    _numbers_by_word: dict[str, int] = field(default_factory=dict)

    @classmethod
    def empty(cls) -> WordColumn:
        """Return a column without values."""
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

    def array(self) -> pyarrow.Array:
        """Return all texts as a dictionary array."""
        import pyarrow

        return pyarrow.DictionaryArray.from_arrays(self.numbers.array(), self.words.array(), safe=False)


class InternedRows:
    """The distinct rows of a growing table, by their numbers. Not safe for several threads."""

    def __init__(self, texts: Iterable[str], other_types: Mapping[str, pyarrow.DataType]) -> None:
        """Start without rows. ``other_types`` has the types of the columns other than texts."""
        self._columns: dict[str, WordColumn | GrowingColumn] = {name: WordColumn.empty() for name in texts}
        self._columns |= {name: GrowingColumn(kind) for name, kind in other_types.items()}
        self._numbers: dict[Hashable, int] = {}
        self._rows = 0

    def find(self, key: Hashable) -> int | None:
        """Return the number of a key's row, or None without one."""
        return self._numbers.get(key)

    def add(self, values: ReadRow, key: Hashable | None = None) -> int:
        """Append a row, remember its key and return its number."""
        number, self._rows = self._rows, self._rows + 1
        for name, column in self._columns.items():
            column.add(values.get(name))
        if key is not None:
            self._numbers[key] = number
        return number

    def number(self, key: Hashable, values: Callable[[], ReadRow]) -> int:
        """Return the number of a key's row, and add the row if it is new."""
        number = self._numbers.get(key)
        return self.add(values(), key) if number is None else number

    def columns(self) -> dict[str, pyarrow.Array]:
        """Return the columns of all rows so far by name, texts as dictionary arrays."""
        return {name: column.array() for name, column in self._columns.items()}


def number_words(texts: pyarrow.Array, number: Callable[[str], int]) -> pyarrow.Array:
    """Return the number of each text. ``number`` is called once with each distinct text."""
    import pyarrow

    coded = texts.dictionary_encode()
    return pyarrow.array(map(number, coded.dictionary.to_pylist()), pyarrow.int64()).take(coded.indices)
