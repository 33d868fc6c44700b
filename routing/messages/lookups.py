"""What messages are looked up in: frames that are small and broadcast, for they grow with the configuration alone.

Not so the dialogs and the requests on record, which grow with the traffic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.messages import ids
from routing.messages.rejecting import FROM_NETWORK
from routing.messages.validate import Checked, matters
from routing.rules import text
from routing.rules.estate import Instance
from routing.schemas import ROUTE_REQUESTS, ArrayOf, Field, Kind, Schema
from routing.storage import frames
from routing.storage.columns import Columns
from routing.storage.keeping import HELD_ROWS, Keeper
from routing.storage.networks import furnish_for

_SCOPES = Schema(
    (
        Field("instance_name", Kind.STRING),
        Field("database_name", Kind.STRING),
        Field("own_addresses", ArrayOf(Kind.STRING)),
    )
)


@dataclass(frozen=True)
class Lookups:
    """What a run knows besides its messages.

    checked: the configuration. scopes: instance_name, database_name (FROM_NETWORK for arrivals), own_addresses
    (array of comparable text). services: instance_name, service: every service that a route or a database of the
    instance names. brokers: instance_name, broker: every broker id that a route or a database of the instance
    names. requests: the columns of route_requests, None where none is on record. dialogs: those that can matter,
    or None.
    """

    checked: Checked
    scopes: DataFrame
    services: DataFrame
    brokers: DataFrame
    requests: DataFrame | None
    dialogs: DataFrame | None

    @property
    def spark(self) -> SparkSession:
        """The session of the frames."""
        return self.scopes.sparkSession

    def instances(self, services: Iterable[str]) -> dict[str, Instance]:
        """What the rules need to know of every instance for messages to these services.

        Only rows that name one of them, any, or the service that is asked for routes become objects.
        """
        return furnish_for(self.checked.instances, self.checked.settings, set(services))


def look_into(spark: SparkSession, checked: Checked, keeper: Keeper) -> Lookups:
    """The frames of a configuration; what ``keeper`` is given here must stay until they have been read."""

    def frame(rows: Iterable[tuple[Any, ...]], schema: Schema) -> DataFrame:
        many = list(rows)
        made = frames.frame_of_tuples(spark, many, schema)
        # Without Arrow rows are read by Python workers, in every job that uses them.
        return keeper.store(made) if len(many) > HELD_ROWS or not frames.has_arrow() else made

    settings, dialogs = checked.settings, checked.dialogs
    routes, databases, requests = settings["routes"], settings["databases"], settings.get("route_requests")
    services = {*_pairs(routes, "remote_service_name"), *_pairs(settings["services"], "name")}
    brokers = {*_pairs(routes, "broker_instance"), *_pairs(databases, "service_broker_guid")}
    wanted = ROUTE_REQUESTS.optional()
    compared = {(instance, text.broker_id(broker)) for instance, broker in brokers}
    return Lookups(
        checked,
        scopes=frame(_scopes(checked), _SCOPES),
        services=frame(services, _names("service")),
        brokers=frame((pair for pair in compared if pair[1] is not None), _names("broker")),
        requests=frames.frame_of_tuples(spark, requests.rows(*wanted.names), wanted) if requests else None,
        dialogs=None if dialogs is None else _select(dialogs),
    )


def _names(column: str) -> Schema:
    return Schema((Field("instance_name", Kind.STRING), Field(column, Kind.STRING)))


def _pairs(rows: Columns, column: str) -> set[tuple[str, str]]:
    """The instances, and what their rows have in a column; empty text is nothing."""
    return {pair for pair in rows.rows("instance_name", column) if pair[1]}


def _scopes(checked: Checked) -> Iterable[tuple[Any, ...]]:
    """Every scope that a message of a known instance and database can have."""
    for name, instance in checked.instances.items():
        for database in (*instance.databases, FROM_NETWORK):
            yield name, database, sorted(instance.own_addresses)


def _select(dialogs: DataFrame) -> DataFrame:
    """The dialogs that can change a decision, in the columns that a message is looked up by and finds."""
    acknowledged = ids.broker_id(F.col("acknowledged_broker_instance"))
    return dialogs.where(matters()).select(
        "instance_name",
        "database_name",
        ids.conversation_id(F.col("conversation_id")).alias("conversation_id"),
        "is_initiator",
        F.col("lifetime").alias("dialog_lifetime"),
        F.when(F.col("acknowledged_at").isNotNull(), acknowledged).alias("acknowledged_broker"),
        "acknowledged_at",
        ids.broker_id(F.col("far_broker_instance")).alias("far_broker"),
    )
