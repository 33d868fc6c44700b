"""The cells of a row → typed values, and where and when the row is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone, tzinfo

from routing.importing.catalog.cell_values import TimeForm, read_cell, time
from routing.importing.catalog.clock_zones import moment_of, twofold
from routing.importing.catalog.views import CatalogView, ViewColumn
from routing.importing.covered import Doubt
from routing.importing.tsql.refusal import length
from routing.importing.undecodable import is_writable
from routing.terms import TableRow

_EXPORTED_AT = "exported_at"
# The numbers that tables hold as an int; all others are bigint, or no column of a table.
_INTS, _INT = ("database_id", "error_number"), range(-(2**31), 2**31)


@dataclass(frozen=True)
class TimeFormats:
    """The formats of times beside ISO 8601, and the zone of the clock that ``exported_at`` was read from.

    The times of the views themselves are UTC in SQL Server, whatever the clock beside it says.
    """

    form: TimeForm | None = None
    zone: tzinfo | None = None


@dataclass
class RowReader:
    """Reads the rows of one view.

    ``stand_in_values`` stand in for added columns; ``notes_by_topic`` are sentences of which each is said once.
    """

    view: CatalogView
    stand_in_values: TableRow
    times: TimeFormats
    notes_by_topic: dict[str, str] = field(default_factory=dict)

    def read_added_columns(self, cells: Mapping[str, object]) -> TableRow:
        """Return where and when a row is from; a column wins over its option. Raises ValueError."""
        row: TableRow = {}
        for name in self.view.added_columns:
            value = self._value(cells, name)
            row[name] = self.stand_in_values[name] if value in (None, "") else value
            if row[name] is None:
                raise ValueError(f"{name} is missing{_whose(cells)}")
        return row

    def read_view_columns(self, cells: Mapping[str, object]) -> TableRow:
        """Return the columns of the view itself. Raises ValueError where a cell is not what its column holds."""
        row: TableRow = {}
        for column in self.view.columns:
            value = self._value(cells, column.name)
            row[column.name] = None if value == "" else value
            if column.required and row[column.name] is None:
                raise ValueError(f"{column.name} is missing{_whose(cells)}")
        return row

    def doubt(self, cells: Mapping[str, object]) -> Doubt:
        """Return the possible instance, database and name of a rejected row; None for unknown parts."""
        instance, database = (
            (cells.get(name) or self.stand_in_values.get(name)) if name in self.view.added_columns else None
            for name in ("instance_name", "database_name")
        )
        return _lower(instance), _lower(database), _lower(cells.get("name"))

    def _value(self, cells: Mapping[str, object], name: str) -> object:
        column = self.view.column(name)
        assert column is not None  # the caller names columns of the view
        try:
            if name == _EXPORTED_AT:
                return self._exported_at(cells.get(name))
            value = read_cell(cells.get(name), column.kind, self.times.form)
            _check_length(value, column)
            _check_range(value, column)
        # A time may lie before the first year, or after the last, once its zone counts.
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name}: {error}{_whose(cells)}") from None
        return value

    def _exported_at(self, cell: object) -> datetime | None:
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            return None
        stated_time = time(cell, self.times.form)
        if stated_time.tzinfo is not None:
            return stated_time
        if self.times.zone is None:
            self.notes_by_topic.setdefault(
                "zone", f"{_EXPORTED_AT} names no zone and is taken as UTC (--time-zone)"
            )
            return stated_time.replace(tzinfo=timezone.utc)
        moment, is_twofold = moment_of(stated_time, self.times.zone)
        if is_twofold:
            self.notes_by_topic.setdefault("clock", twofold(_EXPORTED_AT, stated_time, moment))
        return moment


def _check_length(value: object, column: ViewColumn) -> None:
    if not isinstance(value, str) or column.longest is None or 2 * len(value) <= column.longest:
        return
    if length(value) > column.longest:
        raise ValueError(f"it has {length(value):,} characters, and SQL Server's column holds {column.longest:,}")


def _check_range(value: object, column: ViewColumn) -> None:
    if isinstance(value, int) and column.name in _INTS and value not in _INT:
        raise ValueError(f"'{value}' does not fit an int")


def _lower(text: object) -> str | None:
    return text.casefold() if isinstance(text, str) and is_writable(text) else None


def _whose(cells: Mapping[str, object]) -> str:
    name = cells.get("name")
    return f" ({name[:100]})" if isinstance(name, str) and name else ""
