"""How the local engine opens tables: those on this machine's disk by delta-rs, and no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from routing.config import Config, TableLocation
from routing.delta import local_disks
from routing.delta.commits import is_local
from routing.delta.local_tables import (
    LocalTable,
    UnreadableTable,
    find_log,
    look_at_path,
    look_at_writing,
    open_local,
)
from routing.delta.opening import TableOpener, say_nothing
from routing.errors import ConfigError, EnvironmentFault

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LocalOpener(TableOpener):
    """Opens tables without a session; what only Spark reads is refused."""

    def __init__(self, tell: Callable[[str], None] = say_nothing) -> None:
        super().__init__(_start_nothing, tell=tell)

    def placed(self, key: str, location: TableLocation) -> TableLocation:
        """Return a location, which is one of this machine's disk if it is a path."""
        return local_disks.place(location, None)

    def start_for(self, key: str, done: str, unfit: UnreadableTable) -> NoReturn:
        """Refuse tables that only Spark reads or writes. Raises ConfigError."""
        raise ConfigError.only_by_spark(key, done, unfit.why)

    def check(self, config: Config) -> None:
        """Refuse tables that only Spark reads or writes, before anything is written. Raises ContractError."""
        for name, locations in (("tables", config.tables), ("output", config.output)):
            for key, location in locations.items():
                placed = self.placed(f"{name}.{key}", location)
                unfit = _find_unfit(placed, writes=name == "output")
                if unfit is not None:
                    self.start_for(f"{name}.{key}", "written" if name == "output" else "read", unfit)


def _find_unfit(location: TableLocation, *, writes: bool) -> UnreadableTable | None:
    """Return why a table is not one of the local engine's; None where it is, or where none stands."""
    if not is_local(location):
        return UnreadableTable("it is no path of this machine's disk")
    why = look_at_path(location)
    if why is not None:
        return why
    if find_log(location) is None:
        return None
    table = open_local(location)
    if isinstance(table, UnreadableTable):
        return table
    fit = look_at_writing(location.text, table) if writes else None
    return None if fit is None or isinstance(fit, LocalTable) else fit


def check_packages() -> None:
    """Raise EnvironmentFault where a package that the local engine needs is missing."""
    from importlib.util import find_spec

    for package in ("deltalake", "pyarrow"):
        if find_spec(package) is None:
            raise EnvironmentFault.no_package(package, "light")


def _start_nothing() -> SparkSession:
    raise ConfigError.only_by_spark("a table", "read", "it is no path of this machine's disk")
