"""Open tables: local ones without a JVM if delta-rs reads them correctly, all others with a Spark session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn

from routing.config import ConfigError, TableLocation, in_reading_order
from routing.delta import file_systems
from routing.delta.commits import has_commits, is_local
from routing.delta.local_tables import (
    LocalTable,
    UnreadableTable,
    dataset_of,
    look_at_path,
    look_at_writing,
    open_local,
)
from routing.delta.table_creation import check_vacant
from routing.errors import EnvironmentFault, InputError, OutputError
from routing.sessions import session
from routing.sessions.existing_session import is_connect
from routing.tables.read_rows import TableShape, check_shape
from routing.tables.table_columns import Table, is_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.delta.table_log import TableLog
    from routing.schemas import Schema

ANOTHER_DISK = UnreadableTable("its path may be one of another file system than this machine's")


@dataclass(frozen=True)
class OpenedTable:
    """A table at one version as an Arrow dataset or a DataFrame. The version is None if it has none (a view)."""

    rows: Table
    version: int | None

    @property
    def is_read_by_spark(self) -> bool:
        """Whether Spark reads it instead of Arrow."""
        return is_frame(self.rows)


def say_nothing(_: str) -> None:
    """Ignore a note."""


@dataclass
class TableOpener:
    """Opens tables for one command or run.

    ``start`` returns the Spark session when the first table needs one. ``settings`` are the session settings of
    the configuration. ``on_note`` is called with a note on how each table is read. ``on_missing`` is called with a
    note on each missing optional table, by default ``on_note``. ``waiting`` is the block in which the session
    starts, which a run makes one of its stages. ``unfit`` is the reason why Spark reads and writes every table. If
    it is None, Spark only handles tables that delta-rs cannot. ``on_start`` is called with a note on the table
    that needs the session.
    """

    start: Callable[[], SparkSession]
    settings: Mapping[str, str] = field(default_factory=dict)
    on_note: Callable[[str], None] = say_nothing
    on_missing: Callable[[str], None] | None = None
    waiting: Callable[[], AbstractContextManager[object]] = nullcontext
    unfit: UnreadableTable | None = None
    on_start: Callable[[str], None] = say_nothing
    _spark: SparkSession | None = None
    _said_missing: set[str] = field(default_factory=set)

    @classmethod
    def of_session(cls, spark: SparkSession, on_note: Callable[[str], None] = say_nothing) -> TableOpener:
        """Return an opener for an existing session."""
        return cls(lambda: spark, on_note=on_note, _spark=spark)

    @classmethod
    def of_settings(cls, settings: Mapping[str, str], spark: SparkSession | None) -> TableOpener:
        """Return an opener for an existing session, or for one that a configuration's settings will start."""
        return cls.of_session(spark) if spark else cls(lambda: session.start(settings), settings)

    @property
    def spark(self) -> SparkSession:
        """The session, started now if necessary."""
        if self._spark is None:
            with self.waiting():
                self._spark = self.start()
        return self._spark

    def session_so_far(self) -> SparkSession | None:
        """Return the session, or None if it has not started."""
        return self._spark

    def placed(self, key: str, location: TableLocation) -> TableLocation:
        """Return a location with the disk that it is on, and start the session if only it can decide.

        ``key`` is for `on_note`. Raises EnvironmentFault.
        """
        session_at_hand = self._spark or session.find_active()
        if session_at_hand is None and file_systems.is_open(location, self.settings):
            session_at_hand = self.start_for(key, "looked for", ANOTHER_DISK)
        return file_systems.place(location, session_at_hand)

    def find(
        self, key: str, location: TableLocation, version: int | None = None, log: TableLog | None = None
    ) -> OpenedTable | None:
        """Return a table at a version or the newest one, or None without a table. ``key`` is for `on_note`.

        ``log`` is its log if the table was looked up before.
        """
        location = self.placed(key, location)
        if is_local(location) and not has_commits(location):
            return None
        why = self._open_by_arrow(location, version if log is None else log.version)
        if not isinstance(why, UnreadableTable):
            self.on_note(f"{key}: read by deltalake")
            return why
        spark = self.start_for(key, "read", why)
        from routing.delta import spark_tables

        newest: spark_tables.Input | None
        if version is not None:
            newest = spark_tables.TableSnapshot(location, version)
        elif log is not None:
            newest = spark_tables.find_in(self, location, log)
        else:
            newest = spark_tables.find(self, location)
        if isinstance(newest, spark_tables.UnversionedTable):
            self.on_note(f"{key}: as it is, at no version")
        return None if newest is None else OpenedTable(newest.read(spark), newest.version)

    def exists(self, key: str, location: TableLocation) -> bool:
        """Return whether anything exists at the location of an input, a table or not."""
        location = self.placed(f"tables.{key}", location)
        if is_local(location):
            return os.path.lexists(location.text)
        if self.find(f"tables.{key}", location) is not None:
            return True
        from routing.delta import spark_tables

        return not location.is_name and spark_tables.holds_files(self.spark, location)

    def say_missing(self, note: str) -> None:
        """Report an optional table that does not exist, once."""
        if note not in self._said_missing:
            self._said_missing.add(note)
            (self.on_missing or self.on_note)(note)

    def open_at(self, key: str, location: TableLocation, version: int | None = None) -> Table:
        """Return a table by its configuration key, at a version or the newest one.

        Raises InputError if it is missing.
        """
        return self.require(key, location, version).rows

    def require(self, key: str, location: TableLocation, version: int | None = None) -> OpenedTable:
        """Return a table as `find` does. Raises InputError if it is missing."""
        opened = self.find(key, location, version)
        if opened is None:
            raise InputError.missing_table(key.removeprefix("tables."), str(location))
        return opened

    def require_all(self, tables: Mapping[str, TableLocation]) -> dict[str, OpenedTable]:
        """Return the newest version of every table. Tables that an import commits last are opened first.

        Raises InputError if one is missing.
        """
        return {key: self.require(f"tables.{key}", tables[key]) for key in in_reading_order(tables)}

    def open(self, tables: Mapping[str, TableLocation]) -> dict[str, Table]:
        """Return the rows of every table as `require_all` opens it."""
        opened = self.require_all(tables)
        return {key: opened[key].rows for key in tables}

    def find_all(self, tables: Mapping[str, TableLocation]) -> dict[str, Table]:
        """Return the rows of the tables that exist. Tables that an import commits last are opened first."""
        opened_tables = {key: self.find(f"tables.{key}", tables[key]) for key in in_reading_order(tables)}
        return {key: opened.rows for key, opened in opened_tables.items() if opened is not None}

    def read_alike(
        self,
        opened: Mapping[str, OpenedTable],
        locations: Mapping[str, TableLocation],
        done: str,
        writer: LocalTable | UnreadableTable | None = None,
    ) -> dict[str, OpenedTable]:
        """Return tables read by one engine: by Arrow, or by Spark if it must read one of them or write the output.

        ``locations`` are their locations, ``done`` describes the use of their rows, and ``writer`` writes the
        output. Raises EnvironmentFault.
        """
        why = find_reason_for_spark(opened, writer)
        if why is None:
            self.on_note(f"{', '.join(opened)}: {done} without Spark")
            return dict(opened)
        spark = self.start_for(", ".join(opened), done, why)
        from routing.delta.spark_tables import TableSnapshot

        return {
            key: one
            if one.is_read_by_spark or one.version is None
            else replace(one, rows=TableSnapshot(self.placed(key, locations[key]), one.version).read(spark))
            for key, one in opened.items()
        }

    def open_to_write(self, location: TableLocation, version: int | None) -> LocalTable | UnreadableTable | None:
        """Open a `placed` table for delta-rs to write, or return why Spark must.

        None means that delta-rs creates it.
        """
        if version is None:
            has_session = self._spark is not None or session.is_given()
            if not is_local(location) or has_session or file_systems.is_open(location, self.settings):
                return UnreadableTable("it is not there, and not on this machine's disk alone")
            return self.unfit or look_at_path(location)
        table = self._look_at_place(location) or open_local(location, version)
        return table if isinstance(table, UnreadableTable) else look_at_writing(location.text, table)

    def start_for(self, key: str, done: str, unfit: UnreadableTable) -> SparkSession:
        """Return the session for an action on a table (read, written). Raises EnvironmentFault."""
        self.on_note(f"{key}: {done} by Spark ({unfit.why})")
        if self._spark is None:
            self.on_start(f"Spark: {key} cannot be {done} by the local engine, {unfit.why}")
        try:
            return self.spark
        except EnvironmentFault as fault:
            raise fault.because(key, unfit.why, done) from fault

    def _open_by_arrow(self, location: TableLocation, version: int | None) -> OpenedTable | UnreadableTable:
        """Return the table as delta-rs reads it, or why it does not."""
        table = self._look_at_place(location) or open_local(location, version)
        return (
            table
            if isinstance(table, UnreadableTable)
            else OpenedTable(dataset_of(location.text, table), table.version())
        )

    def _look_at_place(self, location: TableLocation) -> UnreadableTable | None:
        """Return the reason why a table's place or the session requires Spark, or None."""
        if self.unfit is not None:
            return self.unfit
        if not has_commits(location):
            return UnreadableTable("it is not on this machine's disk")
        if self._spark is not None and is_connect(self._spark):
            return UnreadableTable("the session is one of Spark Connect")
        return None


def find_reason_for_spark(
    opened: Mapping[str, OpenedTable | UnreadableTable], writer: LocalTable | UnreadableTable | None = None
) -> UnreadableTable | None:
    """Return why Spark reads some tables together, or None if Arrow reads them and delta-rs writes the output.

    Commands that read several tables with one engine choose it here.
    """
    for key, one in opened.items():
        if isinstance(one, UnreadableTable) or one.is_read_by_spark:
            return UnreadableTable(f"tables.{key} is read by Spark")
    return writer if isinstance(writer, UnreadableTable) else None


def find_shape(
    opened: OpenedTable | None, setting: str, location: TableLocation, schema: Schema, job: str
) -> TableShape | None:
    """Refuse a location with anything but a table of this schema, before anything is written to it.

    Returns the column differences of the ``opened`` table, or None without one. ``setting`` and ``job`` are those
    of `check_vacant`. Raises OutputError.
    """
    if opened is None:
        check_vacant(setting, location, job)
        return None
    if opened.version is None:
        raise OutputError.without_versions(str(location))
    return check_shape(opened.rows, setting, str(location), schema)


# The local engine opens tables on this machine's disk with delta-rs, and no others.


class LocalOpener(TableOpener):
    """Opens tables without a session, and refuses tables that only Spark reads."""

    def __init__(
        self, on_note: Callable[[str], None] = say_nothing, on_missing: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(_start_nothing, on_note=on_note, on_missing=on_missing)

    def placed(self, key: str, location: TableLocation) -> TableLocation:
        """Return a location. A path is on this machine's disk."""
        return file_systems.place(location, None)

    def start_for(self, key: str, done: str, unfit: UnreadableTable) -> NoReturn:
        """Refuse tables that only Spark reads or writes. Raises ConfigError."""
        raise ConfigError.only_by_spark(key, done, unfit.why)

    def find_unfit(
        self, reads: Mapping[str, TableLocation], writes: Mapping[str, TableLocation]
    ) -> Iterator[tuple[str, str, UnreadableTable]]:
        """Yield each table that only Spark reads or writes: its key, ``read`` or ``written``, and the reason."""
        for locations, done in ((reads, "read"), (writes, "written")):
            for key, location in locations.items():
                unfit = _find_unfit(self.placed(key, location), writes=locations is writes)
                if unfit is not None:
                    yield key, done, unfit


def _find_unfit(location: TableLocation, *, writes: bool) -> UnreadableTable | None:
    """Return why the local engine cannot use a table, or None if it can or if there is no table."""
    if not is_local(location):
        return UnreadableTable("it is no path of this machine's disk")
    why = look_at_path(location)
    if why is not None:
        return why
    if not has_commits(location):
        return None
    table = open_local(location)
    if isinstance(table, UnreadableTable):
        return table
    fit = look_at_writing(location.text, table) if writes else None
    return None if fit is None or isinstance(fit, LocalTable) else fit


def _start_nothing() -> SparkSession:
    raise ConfigError.only_by_spark("a table", "read", "it is no path of this machine's disk")
