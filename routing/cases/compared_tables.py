"""Check the other side of a comparison before a table is opened: configuration, versions, time or scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

from routing.arguments import checked
from routing.cases.estate_sides import GivenTables, ReadScripts, naming
from routing.config import Config, TableLocation
from routing.delta.commits import newest_version
from routing.delta.local_tables import LocalTable, UnreadableTable
from routing.delta.opening import OpenedTable, TableOpener
from routing.errors import (
    ContractError,
    EnvironmentFault,
    InputError,
    RoutingError,
    first_sentence,
    name_nearest,
    quote,
)
from routing.rules.timeline import micros_of
from routing.schemas import SETTINGS, TRAFFIC
from routing.tables.given_tables import take_tables
from routing.tables.table_columns import Table

# The label of a script without a file.
_WITHOUT_FILE = "the script"


@checked
@dataclass(frozen=True)
class TableVersions:
    """Compare with older versions of tables, which are then the side before.

    Args:
        by_key: Delta versions by configuration key.

    Example:
        >>> config = routing.load_config("job.yaml")
        >>> routing.diff(config, routing.TableVersions({"routes": 0})).changed
        0
    """

    by_key: Mapping[str, int]


@checked
@dataclass(frozen=True)
class Scripts:
    """Compare with T-SQL scripts in force from the time of the decision.

    Args:
        files: paths of scripts, which are read in this order.
        instance: the instance of batches that no ``:CONNECT`` gives to another; by default the instance that a
            folder of the file is named after.
        database: the database in use until a script says USE.
        variables: values of sqlcmd's variables by name.
        text: one script that lies in no file, read after the files.

    Example:
        >>> scripts = routing.Scripts.of_text("DROP ROUTE Far", "hub", "Sales")
        >>> scripts.instance, scripts.database, scripts.text
        ('hub', 'Sales', 'DROP ROUTE Far')
    """

    files: Sequence[str]
    instance: str | None = None
    database: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None

    @classmethod
    def of_text(cls, text: str, instance: str | None = None, database: str | None = None) -> Scripts:
        """Return a script given as text."""
        return cls((), instance, database, text=text)

    def read(self, at: datetime, known_instances: Sequence[str]) -> ReadScripts:
        """Read the scripts as of an aware time, each batch for its instance.

        Raises InputError if a file cannot be read, is not a script, or names no instance.
        """
        if find_spec("sqlglot") is None:
            raise EnvironmentFault.no_package("sqlglot", "check")
        from routing.cases.exported_files import FileOptions
        from routing.cases.script_files import ScriptFiles, note_commented, read_scripts, read_text_by_instance
        from routing.importing.catalog import StandIns
        from routing.importing.import_files import on_this_disk

        files = ScriptFiles(named=[on_this_disk(file) for file in self.files])
        options = FileOptions(StandIns(database_name=self.database), variables=self.variables)
        notes: list[str] = []
        instances: dict[str, tuple[str, ...]] = dict.fromkeys(known_instances, ())
        scripts = list(read_scripts(files, instances, options, notes, at, self.instance))
        notes += note_commented(files)
        if self.text is not None:
            arguments = (self.text, _WITHOUT_FILE, instances, options, notes, at, self.instance)
            scripts += read_text_by_instance(*arguments)
        return ReadScripts(scripts, notes)


Against = Config | Mapping[str, Table] | TableVersions | datetime | Scripts
"""Another configuration or its tables, older versions, another time of the same tables, or scripts."""


def versions_of(texts: Sequence[str]) -> TableVersions:
    """Parse ``--against-version``: N of the table routes, or KEY=N. Raises ContractError."""
    versions: dict[str, int] = {}
    for text in texts:
        key, equals, number = text.rpartition("=")
        key = key if equals else "routes"
        if key not in SETTINGS:
            near = name_nearest(key, {name: name for name in SETTINGS})
            raise ContractError(
                f"--against-version: {quote(key)} is not a table with versions to compare",
                f"did you mean {near}?" if near else f"known are {', '.join(SETTINGS)}",
            )
        if not (number.isascii() and number.isdecimal()) or len(number) > 18:
            raise ContractError(f"--against-version takes N or KEY=N with a version's number, not {quote(text)}")
        if key in versions:
            raise ContractError(
                f"--against-version gives a version of {key} twice", "give one version for each table"
            )
        versions[key] = int(number)
    return TableVersions(versions)


def labels_of(against: Against, named: str) -> tuple[str, str]:
    """Return labels for the side before and the side after. ``named`` is the label of the current tables."""
    if isinstance(against, TableVersions):
        versions = ", ".join(f"{key} at version {version}" for key, version in against.by_key.items())
        return f"{named} with {versions}", f"{named} as it is"
    if isinstance(against, Scripts):
        on = "" if against.instance is None else f" on {against.instance}"
        return named, f"{named} with {_names(against)}{on}"
    if isinstance(against, datetime):
        return named, named
    return named, against.file if isinstance(against, Config) else "the tables given to compare with"


def _names(scripts: Scripts) -> str:
    names = [Path(file).name for file in scripts.files]
    names += [] if scripts.text is None else [_WITHOUT_FILE]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


@dataclass
class TableCache:
    """The tables of configurations, those of one place and version the same object."""

    opener: TableOpener
    _opened: dict[tuple[str, int | None], OpenedTable] = field(default_factory=dict)

    def open(self, key: str, location: TableLocation, version: int | None = None) -> Table:
        """Return a table at a version or its newest. Raises InputError if it is missing."""
        return self._open(key, location, version).rows

    def _open(self, key: str, location: TableLocation, version: int | None = None) -> OpenedTable:
        location = self.opener.placed(f"tables.{key}", location)
        place = (location.text, version)
        if place in self._opened:
            return self._opened[place]
        if version is None:
            opened = self.opener.require(f"tables.{key}", location)
        else:
            opened = OpenedTable(self._open_version(key, location, version), version)
        return self._opened.setdefault(place, opened)

    def _open_version(self, key: str, location: TableLocation, version: int) -> Table:
        newest = newest_version(location)
        if newest is not None and version > newest:
            raise InputError.missing_version(key, str(location), version, newest)
        # Spark 3.5 ignores a requested version of a view.
        current = self.opener.find(f"tables.{key}", location) if location.is_name else None
        if current is not None and current.version is None:
            raise InputError.unreadable_version(key, version, f"{location} is a view, or has no versions")
        try:
            return self.opener.open_at(f"tables.{key}", location, version)
        except RoutingError:
            raise
        # Spark's errors for a version that the log does not have, or no longer has.
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

    def traffic(self, config: Config, writer: LocalTable | UnreadableTable | None) -> dict[str, Table]:
        """Return messages and any dialogs, both read by the same engine. ``writer`` writes the output."""
        tables = {key: config.tables[key] for key in TRAFFIC if key in config.tables}
        opened = {key: self._open(key, location) for key, location in tables.items()}
        return {
            key: traffic_rows.rows
            for key, traffic_rows in self.opener.read_alike(opened, tables, "compared", writer).items()
        }


def give_sides(
    tables: Config | Mapping[str, Table], against: Against, at: datetime, table_cache: TableCache
) -> tuple[GivenTables, GivenTables]:
    """Collect the tables of the side before and the side after.

    Scripts are applied later, so with scripts both sides are equal here. Raises ContractError if a table is
    missing.
    """
    named = tables.file if isinstance(tables, Config) else "the given tables"
    labels, now = labels_of(against, named), micros_of(at)
    own_settings = _settings(tables, table_cache)
    if isinstance(against, TableVersions):
        if not isinstance(tables, Config):
            raise ContractError("only configured tables have versions to compare", "give a configuration")
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
    arrow_tables = take_tables(tables, ())
    return {key: arrow_tables[key] for key in SETTINGS if key in arrow_tables}
