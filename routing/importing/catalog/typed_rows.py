"""Convert exports to typed rows by view, and note rejected rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone, tzinfo
from functools import cached_property
from itertools import groupby

from routing.errors import quote
from routing.importing.catalog import cell_values
from routing.importing.catalog.cell_rows import CellRows
from routing.importing.catalog.cell_values import TimeForm, UnknownTime, read_cell
from routing.importing.catalog.culture_times import find_culture_form
from routing.importing.catalog.named_servers import KnownNames, refuse_several
from routing.importing.catalog.printed_lines import ELLIPSES
from routing.importing.catalog.result_files import FoundResultSet, read_sources
from routing.importing.catalog.views import CatalogView, CellKind, ViewColumn, query_of
from routing.importing.compact_rows import row_maker
from routing.importing.covered_rows import Doubt
from routing.importing.import_faults import stand_in_missing, unreadable_file
from routing.importing.import_files import Reach, is_writable, on_this_disk
from routing.importing.tsql.script_statements import length
from routing.rules.text import host
from routing.terms import TableRow

# The cells of a row → typed values, and where and when the row is from.


_EXPORTED_AT, _ENQUEUED_AT = "exported_at", "enqueue_time"
# A route with a lifetime is another matter: whether it counts depends on that.
_LENIENT = {"transmission_queue": ("enqueue_time",), "conversation_endpoints": ("lifetime",)}
_FAULT = object()
"""Stands for the value of a cell that cannot be read."""
# The numbers that tables hold as an int; all others are bigint, or no column of a table.
_INTS, _INT = ("database_id", "error_number"), range(-(2**31), 2**31)


@dataclass(frozen=True)
class TimeFormats:
    """The formats of times other than ISO 8601, and the time zone of ``exported_at``.

    SQL Server's views have times in UTC, independent of this zone. With ``is_lenient``, a message gets the time of
    its export if a spreadsheet cut its own time.
    """

    form: TimeForm | None = None
    zone: tzinfo | None = None
    is_lenient: bool = False


@dataclass
class RowReader:
    """Reads the rows of one view.

    ``stand_in_values`` are values for missing added columns. ``notes_by_topic`` has one note for each topic.
    """

    view: CatalogView
    stand_in_values: TableRow
    times: TimeFormats
    notes_by_topic: dict[str, str] = field(default_factory=dict)

    @cached_property
    def _columns(self) -> dict[str, ViewColumn]:
        names = (*self.view.added_columns, *(column.name for column in self.view.columns))
        return {name: column for name in names if (column := self.view.column(name)) is not None}

    def read_columns(self, cells: CellRows) -> tuple[list[Sequence[object]], set[int]]:
        """Return the values of all rows by column, and the places of rows to read separately.

        These are rejected rows, and rows that may have no value in any column of the view.
        """
        columns, odd_places = list[Sequence[object]](), set(cells.faults)
        needed = {*self.view.added_columns, *(column.name for column in self.view.columns if column.required)}
        if needed.issubset(self.view.added_columns):
            odd_places.update(range(len(cells)))
        for name in self._columns:
            values = self._column(name, cells.column(name), cells.faults)
            if name in self.view.added_columns and self.stand_in_values[name] is not None:
                values = [self.stand_in_values[name] if value is None else value for value in values]
            if _FAULT in values or (name in needed and None in values):
                missing = (_FAULT, None) if name in needed else (_FAULT,)
                odd_places.update(place for place, value in enumerate(values) if value in missing)
            columns.append(values)
        return columns, odd_places

    def _column(self, name: str, cells: Sequence[object], skipped: Collection[int]) -> Sequence[object]:
        """Return the values of a column, _FAULT for each that cannot be read; equal texts are read once."""
        if skipped:
            cells = [None if place in skipped else cell for place, cell in enumerate(cells)]
        if self._columns[name].kind is CellKind.GUID:
            # Ids differ in most rows.
            plain = cell_values.plain_guids(cells)
            return [self._read_or_fault(name, cell) for cell in cells] if plain is None else plain
        # 1, 1.0 and True are equal, but not the same cell.
        kinds = set(map(type, cells)) - {type(None)}
        if len(kinds) > 1 or not kinds <= {str, int, bool}:
            return [self._read_or_fault(name, cell) for cell in cells]
        known_values = {cell: self._read_or_fault(name, cell) for cell in dict.fromkeys(cells)}
        return list(map(known_values.__getitem__, cells))

    def _read_or_fault(self, name: str, cell: object) -> object:
        if isinstance(cell, UnknownTime):
            return _FAULT
        try:
            value = self._value({name: cell}, name)
        except ValueError:
            return _FAULT
        return None if value == "" else value

    def read_added_columns(self, cells: Mapping[str, object]) -> TableRow:
        """Return where and when a row is from; a column wins over its option. Raises ValueError."""
        row: TableRow = {}
        for name in self.view.added_columns:
            value = self._value(cells, name)
            row[name] = self.stand_in_values[name] if value in (None, "") else value
            if row[name] is None:
                raise ValueError(f"{name} is missing{_whose(cells)}")
        return row

    def read_view_columns(self, cells: Mapping[str, object], exported_at: datetime) -> TableRow:
        """Return the columns of the view itself. Raises ValueError for an invalid cell."""
        row: TableRow = {}
        for column in self.view.columns:
            name, cell = column.name, cells.get(column.name)
            is_untold = isinstance(cell, UnknownTime)
            is_of_lenient = self.times.is_lenient and name in _LENIENT.get(self.view.name, ())
            if is_of_lenient and (is_untold or _is_shown(name, cell)):
                row[name] = UnknownTime.combine(exported_at, exported_at.timetz()) if column.required else None
                if not is_untold:
                    why = "is only the part of a time that a spreadsheet shows, so the time is unknown"
                    self.notes_by_topic.setdefault(name, f"{name} {quote(cell)} {why}")
                continue
            value = self._value(cells, name)
            row[name] = value = None if value == "" else value
            if value is None and column.required:
                raise ValueError(f"{name} is missing{_whose(cells)}")
        return row

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in the order of `read_columns`."""
        return tuple(self._columns)

    def doubt(self, cells: Mapping[str, object]) -> Doubt:
        """Return the possible instance, database and name of a rejected row; None for unknown parts."""
        instance, database = (
            (cells.get(name) or self.stand_in_values.get(name)) if name in self.view.added_columns else None
            for name in ("instance_name", "database_name")
        )
        return _lower(instance), _lower(database), _lower(cells.get("name"))

    def _value(self, cells: Mapping[str, object], name: str) -> object:
        cell = cells.get(name)
        if cell is None:
            return None
        column = self._columns[name]
        try:
            if name == _EXPORTED_AT:
                return self._exported_at(cell)
            if name == _ENQUEUED_AT and isinstance(cell, str) and _is_shown(name, cell):
                raise cell_values.shown_time(cell)
            value = read_cell(cell, column.kind, self.times.form)
            _check_text(value, column)
            _check_length(value, column)
            if isinstance(value, int) and name in _INTS and value not in _INT:
                raise ValueError(f"'{value}' does not fit an int")
        # A time may lie before the first year, or after the last, once its zone counts.
        except (ValueError, OverflowError) as error:
            if column.is_evidence:
                return None
            raise ValueError(f"{name}: {error}{_whose(cells)}") from None
        return value

    def _exported_at(self, cell: object) -> datetime | None:
        if isinstance(cell, str) and not cell.strip():
            return None
        stated_time = cell_values.time(cell, self.times.form)
        if stated_time.tzinfo is not None:
            return stated_time
        if self.times.zone is None:
            note = f"{_EXPORTED_AT} has no time zone, so UTC is used (--time-zone)"
            self.notes_by_topic.setdefault("zone", note)
            return stated_time.replace(tzinfo=timezone.utc)
        moment, is_twofold = cell_values.moment_of(stated_time, self.times.zone)
        if is_twofold:
            self.notes_by_topic.setdefault("clock", cell_values.twofold(_EXPORTED_AT, stated_time, moment))
        return moment


# A text or a name as T-SQL writes it, also with the parenthesis of a row of VALUES.
_TYPOGRAPHIC = ('"', "\u201c", "\u201d", "\u201e", "\u2018", "\u2019", "\u00ab", "\u00bb")
_LITERAL = re.compile(r"\s*\(?\s*[Nn]?'.*'\s*\)?\s*;?\s*|\s*\[[^\[\]]*\]\s*", re.DOTALL).fullmatch


# A formula that a spreadsheet could not calculate, in any language.
_FORMULA_ERROR = re.compile(r"#[^\W_]+(?:[/ ]\w+)?[!?]|#N/[AV]|#NV").fullmatch
# How spreadsheets mark a text, so that it is not read as a number.
_TEXT_MARK = re.compile('="[^"]*"|\'[^\']*').fullmatch


_LONGEST_WORD = 20
# The words of programs and people for a missing value.
_NO_VALUE = re.compile(
    r"\\n|(?!(?-i:NULL\Z))null|none|nil|n/a|nan|undefined|(?:system\.)?dbnull|-{1,3}|[\u2013\u2014\u2400]|&lt;null&gt;"
    r"|[(<{\[](?:null|none|nil|unset|not set|empty|blank|leer|vide|vac[ií]o)[)>}\]]",
    re.IGNORECASE,
).fullmatch


def _check_text(value: object, column: ViewColumn) -> None:
    """Raise ValueError for a text that a tool wrote in place of a name."""
    if not isinstance(value, str) or column.longest is None:
        return
    if not column.required and len(value) < _LONGEST_WORD and _NO_VALUE(value.strip()):
        raise ValueError(f"{quote(value)} may mean that there is no value: export it as NULL or nothing")
    if column.name == "transmission_status":
        return
    if value.rstrip(" )]>").endswith(ELLIPSES):
        raise ValueError(f"{quote(value)} ends in an ellipsis: the tool may have cut it off")
    if not column.required and value and not value.strip("?"):
        raise ValueError(f"{quote(value)} has lost its letters: export it as UTF-8")
    if ("'" in value or "[" in value) and _LITERAL(value):
        raise ValueError(f"{quote(value)} is written as in T-SQL, so it is not the name itself")
    if value.startswith(_TYPOGRAPHIC) and value.endswith(_TYPOGRAPHIC):
        raise ValueError(f"{quote(value)} still has quotation marks around it")
    if value.startswith(("=", "'")) and _TEXT_MARK(value):
        raise ValueError(f"{quote(value)} has the marks of a text in a spreadsheet, so it is not the name itself")
    if value.startswith("#") and _FORMULA_ERROR(value):
        raise ValueError(f"{quote(value)} is an error of a spreadsheet, so it is not the name itself")


def _is_shown(name: str, cell: object) -> bool:
    return cell_values.is_shown_time(cell) or (name == _ENQUEUED_AT and cell_values.is_only_date(cell))


def _check_length(value: object, column: ViewColumn) -> None:
    if not isinstance(value, str) or column.longest is None or 2 * len(value) <= column.longest:
        return
    if length(value) > column.longest:
        raise ValueError(f"it has {length(value):,} characters, and SQL Server's column holds {column.longest:,}")


def _lower(text: object) -> str | None:
    return text.casefold() if isinstance(text, str) and is_writable(text) else None


def _whose(cells: Mapping[str, object]) -> str:
    name = cells.get("name")
    return f" ({name[:100]})" if isinstance(name, str) and name else ""


MARKER = "is_empty"
"""The key of a row that says no more than that a view was exported and is empty."""
# Only the queries of this project add these.
_EXTRAS = ("machine_name", "full_name", "listener_names", "port")
PLAIN_TIMES = TimeFormats()
"""ISO 8601, and UTC where no zone is named."""
_OPTIONS = {"instance_name": "--instance", "database_name": "--database", "exported_at": "--exported-at"}


@dataclass(frozen=True)
class StandIns:
    """The options' values for columns that are missing."""

    instance_name: str | None = None
    database_name: str | None = None
    exported_at: datetime | None = None

    def as_row(self) -> TableRow:
        """Return the values by column name."""
        return dict(vars(self))


@dataclass
class CatalogExport:
    """The rows of the files by view, with rejected ones and notes.

    ``rows`` are the typed rows of each exported view, with ``instance_name``, ``exported_at`` and ``place``. Views
    of databases also have ``database_name``. ``rejected`` names each invalid row, and ``left_out`` counts by view
    the rows of an earlier export. ``rows_read`` counts all of these, except for rows that mark an empty view.
    ``doubts`` has the possible contents of rejected rows. ``unread_queues`` names the files of transmission queues
    that cannot be read, and ``unread`` has sentences on the unreadable files of other views.
    """

    rows: dict[str, list[TableRow]] = field(default_factory=dict)
    rows_read: Counter[str] = field(default_factory=Counter)
    rejected: list[str] = field(default_factory=list)
    rejected_of: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    doubts: dict[str, set[Doubt]] = field(default_factory=dict)
    unread_queues: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    files_read: int = 0
    files_skipped: int = 0

    def reject(self, view: str, place: str, why: str, doubt: Doubt = (None, None, None)) -> None:
        """Note a row that cannot be used; ``doubt`` it is, as far as that can be read."""
        self.rejected.append(f"{place}: {why}")
        self.rejected_of[view] += 1
        self.doubts.setdefault(view, set()).add(doubt)


def read_export(
    sources: Sequence[str],
    stand_ins: StandIns,
    view: str | None = None,
    times: TimeFormats = PLAIN_TIMES,
    reach: Reach = on_this_disk,
) -> CatalogExport:
    """Read exports (docs/reference/exports.md) from this machine, or from where ``reach`` finds them.

    Raises InputError and EnvironmentFault.
    """
    done = read_sources(sources, view, reach)
    export = export_of(done.sets, done.notes, lambda part: stand_ins, times)
    export.files_skipped = len(done.skipped)
    return export


def export_of(
    sets: Sequence[FoundResultSet],
    notes: list[str],
    stand_ins_of: Callable[[FoundResultSet], StandIns],
    times: TimeFormats = PLAIN_TIMES,
) -> CatalogExport:
    """Convert result sets to an export. ``stand_ins_of`` returns the values for missing columns of each.

    The rows are removed from the result sets. Raises InputError.
    """
    export = CatalogExport(
        notes=[*notes, *_say_servers(sets, stand_ins_of)], files_read=len({part.file for part in sets})
    )
    is_titled = any(part.rows.titles or part.rows.servers for part in sets)
    known_names = _known_names(sets, stand_ins_of) if is_titled else KnownNames.of((), ())
    for file, parts in groupby(sets, key=lambda part: part.file):
        of_file = list(parts)
        stand_ins = stand_ins_of(of_file[0])
        own_names = KnownNames.of([stand_ins.instance_name], [stand_ins.database_name])
        refuse_several([(part.view, part.rows) for part in of_file], own_names, known_names)
        file_times = times if times.form is not None else _find_times(of_file, file, times, export.notes)
        for part in of_file:
            _read_part(export, part, stand_ins_of(part), file_times)
    return export


def _known_names(sets: Sequence[FoundResultSet], stand_ins_of: Callable[[FoundResultSet], StandIns]) -> KnownNames:
    """Return the servers and databases that exports, their addresses and options name."""
    servers, databases, hosts = set[object](), set[object](), set[str]()
    for part in sets:
        rows, stand_ins = part.rows.rows, stand_ins_of(part)
        servers.update((part.rows.server, stand_ins.instance_name, *rows.different("instance_name")))
        hosts.update(filter(None, (host(str(address)) for address in rows.different("address"))))
        databases.update((part.rows.database, stand_ins.database_name, *rows.different("database_name")))
        databases.update(rows.different("name") if part.view.name == "databases" else ())
    machines = {name.partition(".")[0] for name in hosts}
    return KnownNames.of(servers, databases)._replace(hosts=frozenset(hosts | machines))


def _say_servers(
    sets: Sequence[FoundResultSet], stand_ins_of: Callable[[FoundResultSet], StandIns]
) -> Iterator[str]:
    """Yield a note on each file that counts as of another server than a line in it names, if lines differ."""
    named = {part.file: (part.rows.server, stand_ins_of(part).instance_name) for part in sets if part.rows.server}
    are_several = len({str(server).casefold() for server, _ in named.values()}) > 1
    for file, (server, instance) in named.items() if are_several else ():
        if instance is not None and instance.casefold() != str(server).casefold():
            yield f"{file}: a line names the server {quote(server)}, but its rows count as of {quote(instance)}"


def _find_times(parts: Sequence[FoundResultSet], file: str, times: TimeFormats, notes: list[str]) -> TimeFormats:
    """Find the format of a file's times. Raises InputError if several formats fit."""
    texts = {cell for part in parts for cell in _time_cells(part)}
    cells = {cell for cell in texts if not (cell_values.is_iso_time(cell) or cell_values.is_shown_time(cell))}
    form = find_culture_form(cells, file) if cells else None
    if form is None:
        return times
    notes.append(f"{file}: times such as {quote(min(cells))} are read as {form.text} (--date-format)")
    return replace(times, form=form)


def _time_cells(part: FoundResultSet) -> Iterator[str]:
    names = [
        name for name in part.rows.columns if (column := part.view.column(name)) and column.kind is CellKind.TIME
    ]
    cells = (cell for name in names for cell in part.rows.rows.different(name))
    return (cell for cell in cells if isinstance(cell, str) and cell.strip())


def _read_part(export: CatalogExport, part: FoundResultSet, stand_ins: StandIns, times: TimeFormats) -> None:
    view, columns = part.view, set(part.rows.columns)
    # A file with only rejected lines has no columns to inspect.
    if columns:
        _check_columns(export, part, columns, stand_ins)
    rows = export.rows.setdefault(view.name, [])
    export.rows_read[view.name] += len(part.rows.rejected)
    for number, why in part.rows.rejected:
        export.reject(view.name, f"{part.file}, row {number}", why)
    stand_in_values = _stand_in_values(part, stand_ins)
    if not len(part.rows.rows) and all(stand_in_values[name] is not None for name in view.added_columns):
        rows.append(_marker({name: stand_in_values[name] for name in view.added_columns}, part.file))
    reader = RowReader(view, stand_in_values, times)
    cells = part.rows.rows
    values_by_column, odd_places = reader.read_columns(cells)
    odd_rows = {place: (cells.row(place), cells.faults.get(place)) for place in odd_places}
    numbers = cells.numbers
    # Each row is in memory once: its cells go before it is made.
    cells.clear()
    make_row = row_maker((*reader.names, "place"))
    locations = (f"{part.file}, row {number}" for number in numbers)
    rows_or_none: list[TableRow | None] = list(map(make_row, zip(*values_by_column, locations, strict=True)))
    for place, (odd_cells, fault) in sorted(odd_rows.items()):
        location = f"{part.file}, row {numbers[place]}"
        rows_or_none[place] = _read_odd_row(export, reader, odd_cells, fault, location)
    valid_rows = [row for row in rows_or_none if row is not None]
    rows += valid_rows
    export.rows_read[view.name] += sum(MARKER not in row for row in valid_rows)
    reader_notes = [f"sys.{view.name}: {sentence}" for sentence in reader.notes_by_topic.values()]
    export.notes += [sentence for sentence in reader_notes if sentence not in export.notes]


def _stand_in_values(part: FoundResultSet, stand_ins: StandIns) -> TableRow:
    """Return the values of missing columns: the database that the text around the rows names comes first."""
    values = stand_ins.as_row()
    return values if part.rows.database is None else {**values, "database_name": part.rows.database}


def _read_odd_row(
    export: CatalogExport, reader: RowReader, cells: Mapping[str, object], fault: str | None, place: str
) -> TableRow | None:
    """Read a row without any known value, or reject it and return None."""
    view = reader.view
    try:
        if fault is not None:
            raise ValueError(fault)
        row = reader.read_added_columns(cells)
        if all(cells.get(column.name) in (None, "") for column in view.columns):
            return _marker(row, place)
        return {**row, **reader.read_view_columns(cells, row["exported_at"]), "place": place}
    except ValueError as error:
        export.reject(view.name, place, str(error), reader.doubt(cells))
        export.rows_read[view.name] += 1
        return None


def _check_columns(export: CatalogExport, part: FoundResultSet, columns: set[str], stand_ins: StandIns) -> None:
    view, stand_in_values = part.view, _stand_in_values(part, stand_ins)
    for name in view.added_columns:
        if name not in columns and stand_in_values[name] is None:
            raise stand_in_missing(part.file, name, _OPTIONS[name])
    if why := find_lack(part):
        raise unreadable_file(part.file, why, f"export it with {query_of(part.view)}")
    expected = view.layout or [column.name for column in view.columns if column.name not in _EXTRAS]
    missing = [c.name for c in view.columns if c.name in expected and c.name not in columns and not c.is_evidence]
    if missing and part.rows.omits_null:
        export.notes.append(f"{part.file}: {', '.join(missing)} in no row, read as NULL (FOR JSON omits NULL)")
    elif missing:
        export.notes.append(f"{part.file}: {', '.join(missing)} missing, read as NULL")


def find_lack(part: FoundResultSet) -> str | None:
    """Name the required columns of its view that a result set lacks, or return None.

    A set without columns lacks none.
    """
    columns = part.rows.columns
    needed = [column.name for column in part.view.columns if column.required and column.name not in columns]
    return f"as sys.{part.view.name} it lacks {', '.join(needed)}" if columns and needed else None


def _marker(row: TableRow, place: str) -> TableRow:
    """Return a row without anything of the view itself: it says that the view was asked there and is empty."""
    return {**row, "place": place, MARKER: True}


def keep_latest(export: CatalogExport) -> None:
    """Keep the newest export of each view, instance and database. Earlier ones are only counted."""
    for view, rows in export.rows.items():
        places = find_places(rows)
        if len({at for _, _, at in places}) <= 1:
            continue
        newest = _newest(places)
        earlier = [row for row in rows if row["exported_at"] != newest[unit_of(row)] and MARKER not in row]
        if earlier:
            export.left_out[view] += len(earlier)
        export.rows[view] = [row for row in rows if row["exported_at"] == newest[unit_of(row)]]
        if view == "service_broker_endpoints":
            _keep_names(export.rows[view], earlier)


def _keep_names(rows: Iterable[TableRow], earlier: Iterable[TableRow]) -> None:
    """Fill in network names that only an earlier export of an endpoint has: the view itself has none."""
    row_by_key = {(unit_of(row), row["endpoint_id"]): row for row in earlier}
    for row in rows:
        before = None if MARKER in row else row_by_key.get((unit_of(row), row["endpoint_id"]))
        if before is not None and all(row[name] is None for name in _EXTRAS):
            row.update({name: before[name] for name in _EXTRAS})


def unit_of(row: TableRow) -> tuple[str, str | None]:
    """Return the folded instance and database of a row. An object of the instance itself has no database."""
    database = row.get("database_name")
    return row["instance_name"].casefold(), None if database is None else database.casefold()


def find_places(rows: Iterable[TableRow]) -> Collection[tuple[str, str | None, datetime]]:
    """Return the different instances, databases and export times of rows, in the order of the rows."""
    return dict.fromkeys((row["instance_name"], row.get("database_name"), row["exported_at"]) for row in rows)


def _newest(places: Iterable[tuple[str, str | None, datetime]]) -> dict[tuple[str, str | None], datetime]:
    newest: dict[tuple[str, str | None], datetime] = {}
    for instance, database, exported_at in places:
        unit = unit_of({"instance_name": instance, "database_name": database})
        newest[unit] = max(newest.get(unit, exported_at), exported_at)
    return newest
