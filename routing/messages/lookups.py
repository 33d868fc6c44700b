"""What messages are looked up in: frames that are small and broadcast, for they grow with the configuration alone.

Not so the dialogs and the requests on record, which grow with the traffic.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.messages import ids
from routing.messages.brokers import read_brokers
from routing.messages.rejecting import FROM_NETWORK
from routing.messages.validate import Checked, matters
from routing.rules import text
from routing.rules.network import Network
from routing.schemas import ROUTE_REQUESTS, ArrayOf, Field, Kind, Schema
from routing.storage import frames
from routing.storage.columns import Columns
from routing.storage.keeping import HELD_ROWS, Keeper
from routing.storage.networks import network_of

_SCOPES = Schema(
    (
        Field("instance_name", Kind.STRING),
        Field("database_name", Kind.STRING),
        Field("own_addresses", ArrayOf(Kind.STRING)),
    )
)


_Rows = tuple[Collection[tuple[Any, ...]], Schema]


@dataclass(frozen=True)
class Lookups:
    """What a run knows besides its messages; frames of the configuration are made when they are first asked for.

    checked: the configuration. named_services and named_brokers: the rows of `services` and `brokers`. requests:
    the columns of route_requests, None where none is on record. dialogs: those that can matter, or None.
    addresses: address, as compared: every one of every instance; None where no name is read for one. What
    ``keeper`` is given must stay until it has been read.
    """

    spark: SparkSession
    checked: Checked
    keeper: Keeper
    named_services: _Rows
    named_brokers: _Rows
    requests: DataFrame | None
    dialogs: DataFrame | None
    addresses: DataFrame | None = None

    @cached_property
    def scopes(self) -> DataFrame:
        """instance_name, database_name (FROM_NETWORK for arrivals), own_addresses (array of comparable text)."""
        return _frame(self.spark, self.keeper, _scopes(self.checked), _SCOPES)

    @cached_property
    def services(self) -> DataFrame:
        """instance_name, service: every service that a route or a database of the instance names."""
        return _frame(self.spark, self.keeper, *self.named_services)

    @cached_property
    def brokers(self) -> DataFrame:
        """instance_name, broker: every broker id that a route or a database of the instance names."""
        return _frame(self.spark, self.keeper, *self.named_brokers)

    def network(self, services: Iterable[str]) -> Network:
        """What the rules need to know of the whole estate for messages to these services, and replies."""
        return network_of(self.checked.settings, set(services))


@dataclass(frozen=True)
class Named:
    """What a configuration names, each time with the instance: services, and broker ids as they are compared."""

    services: set[tuple[str, str]]
    brokers: set[tuple[str, str]]

    @classmethod
    def of(cls, settings: Mapping[str, Columns]) -> Named:
        """What routes and databases name."""
        routes, databases = settings["routes"], settings["databases"]
        services = {*_pairs(routes, "remote_service_name"), *_pairs(settings["services"], "name")}
        brokers = {*_pairs(routes, "broker_instance"), *_pairs(databases, "service_broker_guid")}
        compared = ((instance, text.broker_id(broker)) for instance, broker in brokers)
        return cls(services, {(instance, broker) for instance, broker in compared if broker is not None})


def look_into(spark: SparkSession, checked: Checked, keeper: Keeper) -> Lookups:
    """What a configuration knows; what ``keeper`` is given here must stay until it has been read."""
    named = Named.of(checked.settings)
    return _lookups(
        spark,
        checked,
        keeper,
        services=(named.services, _names("service")),
        brokers=(named.brokers, _names("broker")),
    )


def look_around(spark: SparkSession, checked: Checked, keeper: Keeper) -> Lookups:
    """The same with what the whole estate names: ``services`` and ``brokers`` have no instance.

    A service counts too that a request on record names, for messages meet it at any instance.
    """
    settings = checked.settings
    services = _values(settings, ("routes", "remote_service_name"), ("services", "name"))
    services |= _values(settings, ("route_requests", "service_name"))
    brokers = _values(settings, ("routes", "broker_instance"), ("databases", "service_broker_guid"))
    compared = {text.broker_id(broker) for broker in brokers} - {None}
    found = _lookups(
        spark,
        checked,
        keeper,
        services=([(service,) for service in services], _one("service")),
        brokers=([(broker,) for broker in compared], _one("broker")),
    )
    if not checked.has_transport:
        return found
    addresses = {address for instance in checked.instances.values() for address in instance.own_addresses}
    return replace(found, addresses=_frame(spark, keeper, ((one,) for one in addresses), _one("address")))


def _lookups(spark: SparkSession, checked: Checked, keeper: Keeper, *, services: _Rows, brokers: _Rows) -> Lookups:
    requests, dialogs = checked.settings.get("route_requests"), checked.dialogs
    wanted = ROUTE_REQUESTS.optional()
    return Lookups(
        spark,
        checked,
        keeper,
        named_services=services,
        named_brokers=brokers,
        requests=frames.frame_of_tuples(spark, requests.rows(*wanted.names), wanted) if requests else None,
        dialogs=None if dialogs is None else _select(dialogs),
    )


def _frame(spark: SparkSession, keeper: Keeper, rows: Iterable[tuple[Any, ...]], schema: Schema) -> DataFrame:
    many = list(rows)
    made = frames.frame_of_tuples(spark, many, schema)
    # Without Arrow rows are read by Python workers, in every job that uses them.
    return keeper.store(made) if len(many) > HELD_ROWS or not frames.has_arrow() else made


def _one(column: str) -> Schema:
    return Schema((Field(column, Kind.STRING),))


def _values(settings: Mapping[str, Columns], *columns: tuple[str, str]) -> set[str]:
    """What tables have in some columns; empty text is nothing, and so is a table that is not there."""
    there = (settings[table].values[column] for table, column in columns if table in settings)
    return {value for values in there for value in values if value}


def _names(column: str) -> Schema:
    return Schema((Field("instance_name", Kind.STRING), Field(column, Kind.STRING)))


def _pairs(rows: Columns, column: str) -> set[tuple[str, str]]:
    """The instances, and what their rows have in a column; empty text is nothing."""
    return {pair for pair in rows.rows("instance_name", column) if pair[1]}


def _scopes(checked: Checked) -> Iterable[tuple[str, str, list[str]]]:
    """Every scope that a message of a known instance and database can have, with the instance's own addresses."""
    for name, instance in checked.instances.items():
        for database in (*instance.databases, FROM_NETWORK):
            yield name, database, sorted(instance.own_addresses)


def _select(dialogs: DataFrame) -> DataFrame:
    """The dialogs that may change a decision, in the columns that a message is looked up by and finds."""
    read = read_brokers(
        dialogs.where(matters()),
        acknowledged_broker="acknowledged_broker_instance",
        far_broker="far_broker_instance",
    )
    return read.select(
        "instance_name",
        "database_name",
        ids.conversation_id(F.col("conversation_id")).alias("conversation_id"),
        "is_initiator",
        F.col("lifetime").alias("dialog_lifetime"),
        "acknowledged_broker",
        "acknowledged_at",
        "far_broker",
    )
