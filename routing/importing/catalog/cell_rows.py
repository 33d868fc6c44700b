"""Keep the cells of many rows as columns, in which equal texts are stored once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat

from routing.importing.import_files import find_undecodable

_MOST_SHARED = 20_000
_PLAIN = frozenset((str, type(None)))


class SharedTexts:
    """Shares equal texts of cells in a column between rows, up to a limit. Names and times are often equal."""

    def __init__(self) -> None:
        self._by_column: dict[str, dict[object, object]] = {}

    def share(self, name: str, cells: Sequence[object]) -> Sequence[object]:
        """Return the cells of a column, with the texts that it had before. Only plain texts are shared."""
        # 1, 1.0 and True are equal, but not the same cell.
        if not _PLAIN.issuperset(map(type, cells)):
            return cells
        shared = self._by_column.setdefault(name, {})
        return list(map(shared.setdefault if len(shared) < _MOST_SHARED else shared.get, cells, cells))


class CellRows:
    """The rows of a result set: a number for each, and a list of cells for each column that is kept.

    A row without a cell has None. ``faults`` are sentences on rows with undecodable text, by the row's place. The
    columns that are not kept are searched for such text too.
    """

    def __init__(self, kept_columns: frozenset[str]) -> None:
        self._kept = kept_columns
        self._columns: dict[str, list[object]] = {}
        self.numbers: list[int] = []
        self.faults: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[tuple[int, dict[str, object]]]:
        return ((number, self.row(place)) for place, number in enumerate(self.numbers))

    def add(
        self,
        numbers: Sequence[int],
        columns: Mapping[str, Sequence[object]],
        texts: SharedTexts,
        *,
        is_plain: bool,
    ) -> None:
        """Add rows as columns. ``is_plain`` is true if all their texts are certainly decodable."""
        start = len(self.numbers)
        if not is_plain:
            self._find_faults(start, columns)
        self.numbers += numbers
        for name in self._kept.intersection(columns):
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = [None] * start
            column += texts.share(name, columns[name])
        for column in self._columns.values():
            column += repeat(None, len(self.numbers) - len(column))

    def complete(self, columns: Mapping[str, list[object]]) -> None:
        """Add columns that the rows lack, with a cell for each row."""
        self._columns.update(columns)

    def read_null_texts(self) -> None:
        """Read the text NULL as no value if every cell has one, so that the tool wrote NULL as this text."""
        if any(None in cells for cells in self._columns.values()):
            return
        for name, cells in self._columns.items():
            self._columns[name] = [None if cell == "NULL" else cell for cell in cells]

    def take_over(self, other: CellRows) -> None:
        """Add the rows of another result set."""
        start = len(self.numbers)
        self.faults |= {start + place: why for place, why in other.faults.items()}
        self.add(other.numbers, other._columns, SharedTexts(), is_plain=True)

    def column(self, name: str) -> Sequence[object]:
        """Return the cells of a column, None in each row if the rows lack it."""
        return self._columns.get(name) or [None] * len(self.numbers)

    def different(self, name: str) -> Iterable[object]:
        """Return the cells of a column, equal texts once, in the order in which they come first."""
        cells = self._columns.get(name, ())
        return dict.fromkeys(cells) if _PLAIN.issuperset(map(type, cells)) else cells

    def row(self, place: int) -> dict[str, object]:
        """Return the cells of one row by column."""
        return {name: cells[place] for name, cells in self._columns.items()}

    def clear(self) -> None:
        """Forget all rows."""
        self.numbers, self.faults, self._columns = [], {}, {}

    def _find_faults(self, start: int, columns: Mapping[str, Sequence[object]]) -> None:
        suspect = {
            place
            for cells in columns.values()
            for place, cell in enumerate(cells)
            # Most cells are plain ASCII, which is cheap to see.
            if isinstance(cell, str) and not (type(cell) is str and cell.isascii())
        }
        for place in sorted(suspect):
            why = find_undecodable(cells[place] for cells in columns.values())
            if why is not None:
                self.faults[start + place] = why
