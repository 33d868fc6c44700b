"""Columns of texts as words, each once, and the places of rows among them: so they are read and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow


class TextColumn(NamedTuple):
    """A column of texts: ``words`` are distinct and not null, ``places`` those of the rows, null for no text."""

    words: pyarrow.Array
    places: pyarrow.Array

    def array(self) -> pyarrow.Array:
        """Return the column, as it is written."""
        import pyarrow

        return pyarrow.DictionaryArray.from_arrays(self.places.cast(pyarrow.int32()), self.words)


@dataclass
class WordReader:
    """Reads parts of a column, with a function of its words that is asked once for those of a part.

    The function takes an array of texts and gives one of as many texts or nulls.
    """

    function: Callable[[pyarrow.Array], pyarrow.Array]
    _last: tuple[Any, Any, Any] | None = field(default=None, repr=False)

    def read(self, column: pyarrow.Array) -> TextColumn:
        """Apply the function to a part of the column."""
        words, places = split_words(column)
        # All parts of a group of rows in a file have the same.
        if self._last is None or not words.equals(self._last[0]):
            coded = self.function(words).dictionary_encode()
            self._last = words, coded.dictionary, coded.indices
        _, mapped_words, places_of_words = self._last
        return TextColumn(mapped_words, places_of_words.take(places))


def split_words(column: pyarrow.Array) -> tuple[pyarrow.Array, pyarrow.Array]:
    """Return the texts of a column, each once, and for each row the place of its text among them."""
    import pyarrow

    coded = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode()
    return coded.dictionary.cast(pyarrow.string()), coded.indices


def first_of(columns: Sequence[TextColumn]) -> TextColumn:
    """Return of each row the text of the first column that has one."""
    import pyarrow
    import pyarrow.compute as pc

    shifted, before = [], 0
    for column in columns:
        shifted.append(pc.add(column.places.cast(pyarrow.int64()), before))
        before += len(column.words)
    places = reduce(pc.coalesce, shifted)
    used = places.dictionary_encode()
    words = pyarrow.concat_arrays([column.words for column in columns]).take(used.dictionary)
    coded = words.dictionary_encode()
    return TextColumn(coded.dictionary, coded.indices.take(used.indices))


def same_for_all(word: str, rows: int) -> TextColumn:
    """Return a column of one text."""
    import pyarrow

    return TextColumn(pyarrow.array([word]), pyarrow.repeat(pyarrow.scalar(0, pyarrow.int32()), rows))
