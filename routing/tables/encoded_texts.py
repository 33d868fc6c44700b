"""Read columns of texts as numbers, which compare faster. Most of ten million texts are the same few."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from routing.tables.table_columns import with_dictionaries

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

# The number of rows that are collected before they are reduced, unless the last reduction left more.
WAITING = 1_000_000


def encoded(rows: pyarrow.dataset.Dataset, names: Collection[str]) -> pyarrow.dataset.Dataset:
    """Read named columns in Parquet's dictionary encoding, which takes a sixth of the time.

    Files of other formats, and columns that are not in the files (partitions), are read as usual.
    """
    import pyarrow
    from pyarrow.dataset import FileSystemDataset, ParquetFileFormat

    if not isinstance(rows, FileSystemDataset) or not isinstance(rows.format, ParquetFileFormat) or not rows.files:
        return rows
    in_files = set(next(rows.get_fragments()).physical_schema.names) & set(names)
    texts = {name for name in in_files if rows.schema.field(name).type == pyarrow.string()}
    numbers = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    kinds = [one.with_type(numbers) if one.name in texts else one for one in rows.schema]
    files = []
    for one in rows.get_fragments():
        parquet = with_dictionaries(one.format.read_options, texts)
        files.append(parquet.make_fragment(one.path, rows.filesystem, one.partition_expression))
    parquet = with_dictionaries(rows.format.read_options, texts)
    return FileSystemDataset(files, pyarrow.schema(kinds), parquet, rows.filesystem)


@dataclass
class MappedTexts:
    """Applies a function to the distinct texts of a batch instead of each row.

    The function takes an array of distinct texts and returns an array of the same length.
    """

    function: Callable[[pyarrow.Array], pyarrow.Array]
    _last: tuple[Any, Any] | None = field(default=None, repr=False)

    def of(self, column: pyarrow.Array) -> pyarrow.Array:
        """Return the function's value for each row of a column. Null stays null."""
        words, places = split_words(column)
        last = self._last
        # All batches of a row group have the same texts. Another thread may replace `_last` at any time.
        if last is None or not words.equals(last[0]):
            last = self._last = words, self.function(words)
        return last[1].take(places)


# Filters on the values of a column.


def array_of(values: Any, kind: pyarrow.DataType) -> pyarrow.Array:
    """Return values without null, as an array to compare with a column of a type."""
    import pyarrow

    if isinstance(values, pyarrow.Array | pyarrow.ChunkedArray):
        return values.drop_null()
    return pyarrow.array([value for value in values if value is not None], kind)


def is_one_of(values: Collection[Any] | None) -> Callable[[pyarrow.Array], pyarrow.Array]:
    """Return a function that tests whether values of a batch are among ``values``, or null if these are None."""
    import pyarrow
    import pyarrow.compute as pc

    def is_one(column: pyarrow.Array) -> pyarrow.Array:
        return column.is_null() if values is None else pc.is_in(column, value_set=array_of(values, column.type))

    by_text = MappedTexts(is_one)

    def test(column: pyarrow.Array) -> pyarrow.Array:
        if values is None:
            # An entry of the dictionary may be null too.
            return is_one(decoded(column))
        return by_text.of(column) if pyarrow.types.is_dictionary(column.type) else is_one(column)

    return test


def decoded(column: Any) -> Any:
    """Decode a dictionary column. Return any other column unchanged."""
    import pyarrow

    return column.cast(column.type.value_type) if pyarrow.types.is_dictionary(column.type) else column


@dataclass
class TextNumbering:
    """Numbers the texts of a column that is read in batches. A text has the same number in every batch."""

    _texts: pyarrow.Array | None = None

    def __post_init__(self) -> None:
        self._mapped = MappedTexts(self._learn)

    @property
    def texts(self) -> pyarrow.Array:
        """The texts so far, in the order of their numbers."""
        import pyarrow

        return pyarrow.array([], pyarrow.string()) if self._texts is None else self._texts

    def number(self, column: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of a batch of the column. Null stays null."""
        return self._mapped.of(column)

    def _learn(self, words: pyarrow.Array) -> pyarrow.Array:
        import pyarrow
        import pyarrow.compute as pc

        places = pc.index_in(words, self.texts)
        new = words.take(pc.indices_nonzero(pc.and_(pc.is_null(places), pc.is_valid(words))))
        if len(new):
            self._texts = pyarrow.concat_arrays([self.texts, new])
            places = pc.index_in(words, self._texts)
        return places


@dataclass(frozen=True)
class TextPlaces:
    """Finds rows by combinations of texts, which all have the same length."""

    names: Sequence[tuple[str | None, ...]]

    def find(self, columns: Sequence[pyarrow.Array]) -> pyarrow.Array:
        """Return the place of each row's combination in ``names``, or null for a combination that is not in it."""
        import pyarrow
        import pyarrow.compute as pc

        if not self.names:
            return pyarrow.nulls(len(columns[0]), pyarrow.int32())
        combination: Any = 0
        for column, (known_texts, codes) in zip(columns, self._levels, strict=True):
            words, places = split_words(column)
            # Null counts as a text. An unknown text never matches.
            one = pc.if_else(pc.is_valid(words), pc.index_in(words, known_texts), len(known_texts)).take(places)
            one = pc.if_else(pc.is_valid(places), one, len(known_texts)).cast("int64")
            code = pc.add(pc.multiply(combination, len(known_texts) + 1), one)
            combination = pc.index_in(code, codes).cast("int64")
        return combination.cast("int32")

    @cached_property
    def _levels(self) -> list[tuple[pyarrow.Array, pyarrow.Array]]:
        """The texts of each column, and its combinations with the columns before it, as numbers.

        Combinations are numbered in the order of ``names``, so that those of the last column are places in it.
        """
        import pyarrow

        levels = []
        before: dict[tuple[str | None, ...], int] = {(): 0}
        for depth, texts in enumerate(zip(*self.names, strict=True)):
            known_texts = sorted({text for text in texts if text is not None})
            order: dict[str | None, int] = {text: place for place, text in enumerate(known_texts)}
            order[None] = len(known_texts)
            numbers: dict[tuple[str | None, ...], int] = {}
            codes = []
            for name in self.names:
                if name[: depth + 1] not in numbers:
                    numbers[name[: depth + 1]] = len(numbers)
                    codes.append(before[name[:depth]] * (len(known_texts) + 1) + order[name[depth]])
            levels.append((pyarrow.array(known_texts, pyarrow.string()), pyarrow.array(codes, pyarrow.int64())))
            before = numbers
        return levels


@dataclass
class PartReducer:
    """Reduces rows in parts, so that only the reduced rows and about as many others are in memory.

    ``reduce`` must give the same result for all rows as for an earlier result together with the remaining rows.
    At least ``least`` rows are collected before they are reduced.
    """

    reduce: Callable[[pyarrow.Table], pyarrow.Table]
    least: int = WAITING
    _parts: list[pyarrow.Table] = field(default_factory=list)
    _reduced_rows: int = 0
    _waiting: int = 0

    def add(self, rows: pyarrow.Table) -> None:
        """Add a part that is already reduced."""
        self._parts.append(rows)
        self._waiting += len(rows)
        if self._waiting > max(self.least, self._reduced_rows):
            self.all()

    def all(self) -> pyarrow.Table | None:
        """Reduce all parts to one table, or return None without parts."""
        import pyarrow

        if not self._parts:
            return None
        reduced = self.reduce(pyarrow.concat_tables(self._parts))
        self._parts, self._reduced_rows, self._waiting = [reduced], len(reduced), 0
        return reduced


@dataclass
class GroupSums:
    """Groups rows by some columns, part by part.

    ``how`` maps the other columns to their aggregate (sum, min, max). If it is empty, only the groups are
    returned. At least ``least`` rows are collected before they are grouped.
    """

    names: Sequence[str]
    how: Mapping[str, str]
    least: int = WAITING

    def __post_init__(self) -> None:
        self._reducer = PartReducer(self._group, self.least)

    def add(self, rows: pyarrow.Table) -> None:
        """Add a part."""
        self._reducer.add(self._group(rows))

    def all(self) -> pyarrow.Table:
        """Return the groups of all parts. Without any part, the columns have Arrow's null type."""
        import pyarrow

        groups = self._reducer.all()
        return (
            pyarrow.table({name: pyarrow.nulls(0) for name in (*self.names, *self.how)})
            if groups is None
            else groups
        )

    def _group(self, rows: pyarrow.Table) -> pyarrow.Table:
        # Arrow groups by a dictionary only if all parts have the same one.
        grouped = rows.unify_dictionaries().group_by(list(self.names)).aggregate(list(self.how.items()))
        return grouped.rename_columns([*self.names, *self.how])


def split_words(column: pyarrow.Array) -> tuple[pyarrow.Array, pyarrow.Array]:
    """Return the distinct texts of a column, and for each row the place of its text among them.

    A row may be null itself, or its text may be null. Arrow reads a column without values in the second form.
    """
    import pyarrow

    coded = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode()
    return coded.dictionary.cast(pyarrow.string()), coded.indices
