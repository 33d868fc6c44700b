"""Read columns of texts as numbers: most of ten million texts are the same few, and numbers compare faster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from routing.tables.table_columns import with_dictionaries

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

# So many rows wait, or as many as are kept, before they are reduced.
WAITING = 1_000_000


def encoded(rows: pyarrow.dataset.Dataset, names: Collection[str]) -> pyarrow.dataset.Dataset:
    """Read named columns in Parquet's own encoding: each text once, by number.

    That takes a sixth of the time. Other files, and columns that are not in it (partitions), are read as usual.
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
    """A function of texts, which is asked once for those of a part of a column and not for each row.

    It takes an array of distinct texts, and gives one of as many values.
    """

    function: Callable[[pyarrow.Array], pyarrow.Array]
    _last: tuple[Any, Any] | None = field(default=None, repr=False)

    def of(self, column: pyarrow.Array) -> pyarrow.Array:
        """Return the values of a column's rows; null stays null."""
        words, places = split_words(column)
        last = self._last
        # All parts of a group of rows in a file have the same. Another thread may ask meanwhile.
        if last is None or not words.equals(last[0]):
            last = self._last = words, self.function(words)
        return last[1].take(places)


# Which rows have one of some values.


def array_of(values: Any, kind: pyarrow.DataType) -> pyarrow.Array:
    """Return values to be compared with a column of a type, without null."""
    import pyarrow

    if isinstance(values, pyarrow.Array | pyarrow.ChunkedArray):
        return values.drop_null()
    return pyarrow.array([value for value in values if value is not None], kind)


def is_one_of(values: Collection[Any] | None) -> Callable[[pyarrow.Array], pyarrow.Array]:
    """Return a test of a column's parts: that a row has one of some values, or null where these are None."""
    import pyarrow
    import pyarrow.compute as pc

    def is_one(column: pyarrow.Array) -> pyarrow.Array:
        return column.is_null() if values is None else pc.is_in(column, value_set=array_of(values, column.type))

    by_text = MappedTexts(is_one)

    def test(column: pyarrow.Array) -> pyarrow.Array:
        if values is None:
            # A row may be null by its text, too.
            return is_one(decoded(column))
        return by_text.of(column) if pyarrow.types.is_dictionary(column.type) else is_one(column)

    return test


def decoded(column: Any) -> Any:
    """Return a column of texts as texts, where it is one of numbers of texts; any other as it is."""
    import pyarrow

    return column.cast(column.type.value_type) if pyarrow.types.is_dictionary(column.type) else column


@dataclass
class TextNumbering:
    """Numbers for the texts of a column that is read part by part: a text has the same one in every part."""

    _texts: pyarrow.Array | None = None

    def __post_init__(self) -> None:
        self._mapped = MappedTexts(self._learn)

    @property
    def texts(self) -> pyarrow.Array:
        """The texts so far, each in the place that is its number."""
        import pyarrow

        return pyarrow.array([], pyarrow.string()) if self._texts is None else self._texts

    def number(self, column: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of a part of the column; null stays null."""
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
    """Some combinations of texts, all of one length, and how the rows that have one of them are found."""

    names: Sequence[tuple[str | None, ...]]

    def find(self, columns: Sequence[pyarrow.Array]) -> pyarrow.Array:
        """Return for each row the place of its combination among ``names``; null where it is none of them."""
        import pyarrow
        import pyarrow.compute as pc

        if not self.names:
            return pyarrow.nulls(len(columns[0]), pyarrow.int32())
        found: Any = 0
        for column, (known_texts, codes) in zip(columns, self._levels, strict=True):
            words, places = split_words(column)
            # A null is a text of its own; a text that is not known is none.
            one = pc.if_else(pc.is_valid(words), pc.index_in(words, known_texts), len(known_texts)).take(places)
            one = pc.if_else(pc.is_valid(places), one, len(known_texts)).cast("int64")
            found = pc.index_in(pc.add(pc.multiply(found, len(known_texts) + 1), one), codes).cast("int64")
        return found.cast("int32")

    @cached_property
    def _levels(self) -> list[tuple[pyarrow.Array, pyarrow.Array]]:
        """The texts of each column, and its combinations with what stands before it, as numbers.

        A combination has the number of its first place, so that those of the last column are places of names.
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
    """Rows of which a function keeps few, part by part: in memory are these, and about as many that wait.

    What ``reduce`` makes of all rows, it makes of what it has made of some and of the others too. ``least`` rows
    wait before they are reduced.
    """

    reduce: Callable[[pyarrow.Table], pyarrow.Table]
    least: int = WAITING
    _parts: list[pyarrow.Table] = field(default_factory=list)
    _reduced_rows: int = 0
    _waiting: int = 0

    def add(self, rows: pyarrow.Table) -> None:
        """Add a part, which has been reduced."""
        self._parts.append(rows)
        self._waiting += len(rows)
        if self._waiting > max(self.least, self._reduced_rows):
            self.all()

    def all(self) -> pyarrow.Table | None:
        """Reduce all parts to one; None where there is no part."""
        import pyarrow

        if not self._parts:
            return None
        reduced = self.reduce(pyarrow.concat_tables(self._parts))
        self._parts, self._reduced_rows, self._waiting = [reduced], len(reduced), 0
        return reduced


@dataclass
class GroupSums:
    """Rows added up by some columns, part by part.

    ``how`` names the other columns, and what becomes of them (sum, min, max); without it groups are but found.
    ``least`` rows wait before they are added up.
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
        """Return the groups of all parts; of none columns without a type."""
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
    """Return the texts of a column, each once, and for each row the place of its text among them.

    A row may be null by itself, or by its text: a column that is null throughout is read so.
    """
    import pyarrow

    coded = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode()
    return coded.dictionary.cast(pyarrow.string()), coded.indices
