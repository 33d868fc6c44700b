"""The two sides of a comparison: their settings as columns, each decided as of one time, T-SQL scripts applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.errors import InputError, RoutingError, first_sentence, quote
from routing.rules.timeline import moment_of
from routing.schemas import INPUTS, SETTINGS, ColumnKind
from routing.tables.arrow_rows import table_of, with_moments
from routing.tables.given_tables import take_tables
from routing.tables.read_rows import columns_of, read_each
from routing.tables.row_faults import refuse_faults
from routing.tables.table_columns import Table, TableColumns
from routing.terms import TableRow

if TYPE_CHECKING:
    import pyarrow

    from routing.importing.covered_rows import ImportResult
    from routing.importing.tsql.script_reader import ReadScript

Row = tuple[Any, ...]


@dataclass(frozen=True)
class GivenTables:
    """The tables of `SETTINGS` for one side, some maybe at a requested version.

    ``label`` describes it in a few words. ``at`` is the time of all its decisions, in microseconds.
    """

    label: str
    at: int
    tables: Mapping[str, Table]
    versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class OneSide:
    """A side with the columns of its tables. The two sides share equal tables as one object."""

    label: str
    at: int
    settings: Mapping[str, TableColumns]

    @property
    def moment(self) -> datetime:
        """The time of its decisions."""
        return moment_of(self.at)

    def to_arrow(self) -> dict[str, pyarrow.Table]:
        """Return its tables as Arrow tables."""
        return {key: table_of(columns.dicts(), INPUTS[key]) for key, columns in self.settings.items()}

    def differs_in(self, other: OneSide) -> dict[str, TableColumns]:
        """Return its tables that are not the very same as another side's."""
        return {key: columns for key, columns in self.settings.items() if columns is not other.settings.get(key)}


@dataclass(frozen=True)
class DiffSides:
    """Both sides beside each other."""

    before: OneSide
    after: OneSide

    @property
    def both(self) -> tuple[OneSide, OneSide]:
        """The side before, and the one after."""
        return self.before, self.after

    @property
    def is_one_time(self) -> bool:
        """Whether both are decided as of one time."""
        return self.before.at == self.after.at

    @cached_property
    def differing(self) -> Mapping[str, set[Row]]:
        """The rows by table that only one side has, without tables that are equal.

        A row has the columns of its table in order. The first column is the instance.
        """
        rows_by_table = {}
        for key in SETTINGS:
            old, new = self.before.settings.get(key), self.after.settings.get(key)
            rows = set() if old is new else _rows(old, key) ^ _rows(new, key)
            if rows:
                rows_by_table[key] = rows
        return rows_by_table


def _rows(columns: TableColumns | None, key: str) -> set[Row]:
    """Return whole rows of a table as values that can be compared."""
    if columns is None:
        return set()
    rows = columns.rows(*INPUTS[key].names)
    if key != "instances":
        return set(rows)
    return {tuple(tuple(value) if isinstance(value, list) else value for value in row) for row in rows}


def read(before: GivenTables, after: GivenTables) -> DiffSides:
    """Read both sides, each distinct table once.

    Raises InputError, which names the side, if a table or column is missing.
    """
    owners: dict[str, tuple[GivenTables, str]] = {}
    names: dict[int, str] = {}
    for before_or_after, given_tables in (("before", before), ("after", after)):
        with naming(given_tables.label):
            take_tables(given_tables.tables, SETTINGS)
        for key, table in given_tables.tables.items():
            owners.setdefault(names.setdefault(id(table), f"{key} {before_or_after}"), (given_tables, key))

    def read_one(name: str) -> TableColumns:
        given_tables, key = owners[name]
        with naming(given_tables.label):
            return read_given(given_tables, key)

    columns_by_name = read_each(
        {name: given_tables.tables[key] for name, (given_tables, key) in owners.items()}, read_one
    )
    first, second = (
        OneSide(
            given_tables.label,
            given_tables.at,
            {key: columns_by_name[names[id(table)]] for key, table in given_tables.tables.items()},
        )
        for given_tables in (before, after)
    )
    return DiffSides(first, second)


def read_given(given_tables: GivenTables, key: str) -> TableColumns:
    """Return the columns of a side's table.

    Raises InputError for a faulty table or a missing version.
    """
    try:
        return columns_of(given_tables.tables[key], key)
    except RoutingError:
        raise
    except Exception as error:
        # The files of a requested version may be gone, which is not a storage failure.
        if key not in given_tables.versions:
            raise
        raise InputError.unreadable_version(key, given_tables.versions[key], first_sentence(error)) from error


def refuse(one_side: OneSide, tables: Mapping[str, TableColumns]) -> None:
    """Refuse a side with a faulty row in some of its tables, as `resolve` does.

    Raises InputError, which names the side.
    """
    with naming(one_side.label):
        refuse_faults(tables)


@contextmanager
def naming(label: str) -> Iterator[None]:
    """Add a side's label to errors in its tables."""
    try:
        yield
    except InputError as fault:
        raise fault.of_side(label) from fault


_CHANGED = ("databases", "services", "instances", "routes")


class ReadScripts(NamedTuple):
    """Scripts that were read, each with the instance that it is for, and notes on how they were read."""

    scripts: Sequence[tuple[str, ReadScript]]
    notes: Sequence[str]


def apply_scripts(one_side: OneSide, read_scripts: ReadScripts, label: str) -> tuple[OneSide, ImportResult]:
    """Return the side after it ran scripts in order, and the result of an import of them.

    No table is written. The scripts run at the side's time. Statements that SQL Server would refuse change no row
    and are reported.
    """
    # They load the reader of T-SQL.
    from routing.importing.covered_rows import ImportResult
    from routing.importing.spelling import say_near_names

    done, settings = ImportResult(True, counted="statements"), one_side.settings
    known_rows = [*settings["instances"].dicts(), *settings["databases"].dicts()]
    names = list(dict.fromkeys(name for name, _ in read_scripts.scripts))
    done.notes += [*say_near_names(names, known_rows), *read_scripts.notes]
    known_instances = {row["instance_name"] for row in known_rows}
    done.notes += [
        f"the tables have no instance {quote(name)}: the scripts are tried on a new one"
        for name in names
        if name not in known_instances
    ]
    for name, group in groupby(read_scripts.scripts, key=lambda named_script: named_script[0]):
        settings = _apply_to_instance(settings, one_side.moment, name, [script for _, script in group], done)
    return replace(one_side, label=label, settings=settings), done


def _apply_to_instance(
    settings: Mapping[str, TableColumns],
    at: datetime,
    name: str,
    scripts: Sequence[ReadScript],
    done: ImportResult,
) -> dict[str, TableColumns]:
    from routing.importing.history import apply_changes
    from routing.importing.script_rows import apply_all, changes_of, state_of

    instance_rows = {key: _rows_of(settings[key], key, name) for key in _CHANGED}
    before = state_of(instance_rows, at)
    after, applied = apply_all(done, before, scripts), dict(settings)
    for key, changes in changes_of(instance_rows, before, after, name, {(name, None): at}, set()).items():
        done.count_written(key, changes.counts)
        if changes:
            applied[key] = _replace_rows(settings[key], key, name, apply_changes(key, instance_rows[key], changes))
    return applied


def _rows_of(columns: TableColumns, key: str, instance: str) -> list[TableRow]:
    """Return the rows of an instance, with aware times."""
    times = [field.name for field in INPUTS[key] if field.kind == ColumnKind.TIMESTAMP]
    return with_moments(columns.naming("instance_name", [instance]).dicts(), times)


def _replace_rows(columns: TableColumns, key: str, instance: str, rows: Sequence[TableRow]) -> TableColumns:
    kept_positions = [place for place, name in enumerate(columns.values["instance_name"]) if name != instance]
    kept_columns, new = columns.take(kept_positions), TableColumns.of_rows(rows, INPUTS[key])
    return TableColumns({name: [*kept_columns.values[name], *new.values[name]] for name in INPUTS[key].names})
