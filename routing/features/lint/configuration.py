"""The argument of a custom rule: whole tables as plain rows, which stay as they are described here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, NamedTuple

from routing.plan.estate import routes_of
from routing.schemas import INPUTS, ColumnKind
from routing.tables.table_columns import TableColumns
from routing.tables.times import moment_of


class RoutesRow(NamedTuple):
    """A row of table ``routes``; times are aware, in UTC."""

    instance_name: str
    database_name: str
    name: str
    remote_service_name: str | None
    broker_instance: str | None
    lifetime: datetime | None
    address: str
    mirror_address: str | None
    valid_from: datetime | None
    valid_to: datetime | None

    @property
    def subject(self) -> Subject:
        """What a finding on it names."""
        return self.instance_name, self.database_name, self.name


class DatabasesRow(NamedTuple):
    """A row of table ``databases``."""

    instance_name: str
    name: str
    database_id: int | None
    service_broker_guid: str
    is_broker_enabled: bool | None

    @property
    def subject(self) -> Subject:
        """What a finding on it names."""
        return self.instance_name, self.name, self.name


class ServicesRow(NamedTuple):
    """A row of table ``services``."""

    instance_name: str
    database_name: str
    name: str

    @property
    def subject(self) -> Subject:
        """What a finding on it names."""
        return self.instance_name, self.database_name, self.name


class InstancesRow(NamedTuple):
    """A row of table ``instances``."""

    instance_name: str
    is_message_forwarding_enabled: bool | None
    addresses: tuple[str, ...] | None

    @property
    def subject(self) -> Subject:
        """What a finding on it names."""
        return self.instance_name, None, self.instance_name


_FIRST = datetime.min.replace(tzinfo=timezone.utc)
_LAST = datetime.max.replace(tzinfo=timezone.utc)
Subject = tuple["str | None", "str | None", "str | None"]
"""Instance, database and object of a finding."""
ROWS = (RoutesRow, DatabasesRow, ServicesRow, InstancesRow)


@dataclass(frozen=True)
class Configuration:
    """Hold the rows of a configuration for custom rules of lint; any value may be None, since rows may be faulty.

    Args:
        routes: rows of all versions of routes.
        routes_in_force: rows of the routes that are in force at ``now``.
        databases: rows of ``databases``.
        services: rows of ``services``.
        instances: rows of ``instances``.
        now: the time of judgement (UTC).

    Example:
        >>> from datetime import datetime, timezone
        >>> routing.Configuration([], [], [], [], [], datetime(2026, 1, 5, tzinfo=timezone.utc)).now.isoformat()
        '2026-01-05T00:00:00+00:00'
    """

    routes: Sequence[RoutesRow]
    routes_in_force: Sequence[RoutesRow]
    databases: Sequence[DatabasesRow]
    services: Sequence[ServicesRow]
    instances: Sequence[InstancesRow]
    now: datetime


def configuration_of(columns: Mapping[str, TableColumns], now: int) -> Configuration:
    """Return the rows of columns, at a moment (microseconds)."""
    routes = tuple(RoutesRow(**row) for row in _rows(columns["routes"], "routes"))
    live = [route.is_live(now) for _, _, route in routes_of(columns["routes"])]
    return Configuration(
        routes,
        tuple(row for row, is_live in zip(routes, live, strict=True) if is_live),
        tuple(DatabasesRow(**row) for row in _rows(columns["databases"], "databases")),
        tuple(ServicesRow(**row) for row in _rows(columns["services"], "services")),
        tuple(
            InstancesRow(**{**row, "addresses": None if row["addresses"] is None else tuple(row["addresses"])})
            for row in _rows(columns["instances"], "instances")
        ),
        moment_of(now),
    )


def _rows(columns: TableColumns, key: str) -> list[dict[str, Any]]:
    times = [field.name for field in INPUTS[key] if field.kind == ColumnKind.TIMESTAMP]
    rows = list(columns.dicts())
    for row in rows:
        row.update({name: _moment(row[name]) for name in times})
    return rows


def _moment(micros: int | None) -> datetime | None:
    """Return a time; one outside the years 1 to 9999 is the last, or first, of them."""
    if micros is None:
        return None
    try:
        return moment_of(micros)
    except OverflowError:
        return _LAST if micros > 0 else _FIRST
