"""The tables of both sides, each opened once, at one version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from routing.config import Config, TableLocation
from routing.delta.commits import newest_version
from routing.delta.opening import OpenedTable, TableOpener
from routing.errors import ContractError, InputError, RoutingError, first_sentence
from routing.features.diff.comparison import Against, Scripts, TableVersions, labels_of
from routing.features.diff.sides import GivenTables, naming
from routing.schemas import SETTINGS, TRAFFIC
from routing.tables.input_columns import MOST_MESSAGES
from routing.tables.table_columns import Table, is_frame
from routing.tables.times import micros_of


@dataclass
class TableCache:
    """The tables of configurations, those of one place and version the same object."""

    opener: TableOpener
    _opened: dict[tuple[str, int | None], OpenedTable] = field(default_factory=dict)

    def open(self, key: str, location: TableLocation, version: int | None = None) -> Table:
        """Return a table at a version or its newest. Raises InputError where it is not there."""
        return self._open(key, location, version).rows

    def _open(self, key: str, location: TableLocation, version: int | None = None) -> OpenedTable:
        location = self.opener.placed(f"tables.{key}", location)
        place = (location.text, version)
        if place not in self._opened:
            self._opened[place] = (
                self._open_newest(key, location)
                if version is None
                else OpenedTable(self._open_version(key, location, version), version)
            )
        return self._opened[place]

    def _open_newest(self, key: str, location: TableLocation) -> OpenedTable:
        opened = self.opener.find(f"tables.{key}", location)
        if opened is None:
            raise InputError.missing_table(key, str(location))
        return opened

    def _open_version(self, key: str, location: TableLocation, version: int) -> Table:
        newest = newest_version(location)
        if newest is not None and version > newest:
            raise InputError.missing_version(key, str(location), version, newest)
        # Spark 3.5 reads a view as it is, whatever version is asked for.
        current = self.opener.find(f"tables.{key}", location) if location.is_name else None
        if current is not None and current.version is None:
            raise InputError.unreadable_version(key, version, f"{location} is a view, or has no versions")
        try:
            return self.opener.open_at(f"tables.{key}", location, version)
        except RoutingError:
            raise
        # What Spark says of a version that its log has not, or has no more.
        except Exception as error:
            raise InputError.unreadable_version(key, version, first_sentence(error)) from error

    def settings(self, config: Config, versions: Mapping[str, int]) -> dict[str, Table]:
        """Return the tables of a configuration that sides may differ in. Raises InputError."""
        missing = [key for key in versions if key not in config.tables]
        if missing:
            raise ContractError(
                f"tables.{missing[0]} is not in the configuration", "name a version of another table"
            )
        return {
            key: self.open(key, config.tables[key], versions.get(key)) for key in SETTINGS if key in config.tables
        }

    def traffic(self, config: Config) -> dict[str, Table]:
        """Open messages and dialogs: local tables as files, large or other ones by Spark.

        Both are read in the same way.
        """
        tables = {
            key: self.opener.placed(f"tables.{key}", config.tables[key]) for key in TRAFFIC if key in config.tables
        }
        opened = {key: self._open(key, location) for key, location in tables.items()}
        rows_by_key = {key: one.rows for key, one in opened.items()}
        if all(map(is_frame, rows_by_key.values())):
            return rows_by_key
        if any(map(is_frame, rows_by_key.values())):
            self.opener.tell("messages are compared by Spark (one of their tables is)")
        else:
            messages: int = rows_by_key["messages"].count_rows()  # type: ignore[operator]
            if messages <= MOST_MESSAGES:
                self.opener.tell(f"messages are compared without Spark ({messages:,} of them)")
                return rows_by_key
            self.opener.tell(f"messages are compared by Spark ({messages:,} of them, more than {MOST_MESSAGES:,})")
        return {key: self._as_frame(opened[key], location) for key, location in tables.items()}

    def _as_frame(self, opened: OpenedTable, location: TableLocation) -> Table:
        from routing.delta.spark_tables import TableSnapshot

        if is_frame(opened.rows) or opened.version is None:
            return opened.rows
        return TableSnapshot(location, opened.version).read(self.opener.spark)


def give_sides(
    tables: Config | Mapping[str, Table], against: Against, at: datetime, table_cache: TableCache
) -> tuple[GivenTables, GivenTables]:
    """Collect the tables of the side before and the side after; with scripts, still to be applied, both are equal.

    Raises ContractError where a table is not there.
    """
    named = tables.file if isinstance(tables, Config) else "the given tables"
    labels, now = labels_of(against, named), micros_of(at)
    own_settings = _settings(tables, table_cache)
    if isinstance(against, TableVersions):
        if not isinstance(tables, Config):
            raise ContractError("versions can be compared of configured tables alone", "give a configuration")
        older = table_cache.settings(tables, against.by_key)
        return GivenTables(labels[0], now, older, against.by_key), GivenTables(labels[1], now, own_settings)
    before = GivenTables(labels[0], now, own_settings)
    if isinstance(against, datetime):
        return before, GivenTables(labels[1], micros_of(against), own_settings)
    if isinstance(against, Scripts):
        return before, GivenTables(labels[1], now, own_settings)
    if isinstance(against, Config):
        with naming(labels[1]):
            return before, GivenTables(labels[1], now, table_cache.settings(against, {}))
    return before, GivenTables(labels[1], now, {**own_settings, **_settings(against, table_cache)})


def _settings(tables: Config | Mapping[str, Table], table_cache: TableCache) -> dict[str, Table]:
    if isinstance(tables, Config):
        return table_cache.settings(tables, {})
    return {key: tables[key] for key in SETTINGS if key in tables}
