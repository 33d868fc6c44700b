"""The configuration as the job sees it: what the rules are asked about, and what messages are looked up in.

Frames of this room are small (they grow with the configuration, never with the messages) and are broadcast;
but not the dialogs and the requests on record, which grow with the traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.messages import ids
from routing.rules.estate import Instance
from routing.schemas import ArrayOf, Field, Kind, Schema
from routing.storage import frames, keeping
from routing.storage.columns import Columns, instances_of
from routing.storage.frames import collect
from routing.storage.joining import small_side
from routing.terms import BROKER_CONFIGURATION_SERVICE

# The database_name of the scope for what arrives over the network; no database has an empty name.
FROM_NETWORK = ""
_TEXT = Kind.STRING
_SCOPES = Schema(
    (Field("instance_name", _TEXT), Field("database_name", _TEXT), Field("own_addresses", ArrayOf(_TEXT)))
)
_NAMES = Schema((Field("wanted", _TEXT),))


@dataclass(frozen=True)
class Configuration:
    """What a run knows besides its messages.

    instances: of each instance what its own rows say: databases, addresses, forwarding; no services, no routes.
    facts: what the tables make use of.
    scopes: instance_name, database_name (FROM_NETWORK for arrivals), own_addresses (array of comparable text).
    services: instance_name, service: every service that a route or a database of the instance names.
    brokers: instance_name, broker: every broker id that a route or a database of the instance names.
    requests: instance_name, database_name, service, requests (array of struct requested_at, message_id,
        ended_at); None where no request is on record.
    dialogs: the dialogs that can matter, None where there are none.
    """

    tables: Mapping[str, DataFrame]
    facts: Facts
    scopes: DataFrame
    services: DataFrame
    brokers: DataFrame
    requests: DataFrame | None
    dialogs: DataFrame | None

    def instances(self, services: Iterable[str]) -> dict[str, Instance]:
        """What the rules need to know of every instance for messages to these services.

        Of a large table only the rows that name one of them, any, or the service that is asked for routes.
        """
        names = {*services, "", BROKER_CONFIGURATION_SERVICE}
        named = {"services": "name", "routes": "remote_service_name"}
        rows = [self._naming(self.tables[key], column, names) for key, column in named.items()]
        found = frames.at_once(rows[0].sparkSession, collect, rows)
        return instances_of({**self.facts.small, **dict(zip(named, found, strict=True))})

    def _naming(self, rows: DataFrame, column: str, names: set[str]) -> DataFrame:
        if not self.facts.is_large:
            return rows
        wanted = frames.frame_of_tuples(rows.sparkSession, ((name,) for name in names), _NAMES)
        condition = F.coalesce(F.col(column), F.lit("")) == F.col("wanted")
        return rows.join(small_side(wanted), condition, how="left_semi")


@dataclass(frozen=True)
class Facts:
    """What is found out of the tables while they are checked.

    small: instances and databases as columns. routes: how many there are. has_transport: whether one reads its
    address from the service name.
    """

    small: Mapping[str, Columns]
    routes: int
    has_transport: bool

    @property
    def is_large(self) -> bool:
        """Whether the routes are too many to be rows of the driver as a whole."""
        return self.routes > keeping.HELD_ROWS


def facts(tables: Mapping[str, DataFrame]) -> Facts:
    """Look through conformed tables."""
    routes = tables["routes"]
    is_transport = F.bool_or(ids.is_transport(F.col("address")))
    found = routes.agg(F.count(F.lit(1)).alias("routes"), is_transport.alias("has_transport"))
    keys = ("instances", "databases")
    *small, row = frames.at_once(routes.sparkSession, collect, [*(tables[key] for key in keys), found])
    ((count, has_transport),) = row.rows("routes", "has_transport")
    return Facts(dict(zip(keys, small, strict=True)), int(count), bool(has_transport))


def _as_it_is(frame: DataFrame) -> DataFrame:
    return frame


def configuration(
    tables: Mapping[str, DataFrame], known: Facts, kept: Callable[[DataFrame], DataFrame] = _as_it_is
) -> Configuration:
    """The job's view of conformed and validated input tables.

    ``kept`` is applied to the frames that grow with the routes and are read by several passes.
    """
    routes = kept(tables["routes"])
    tables = {**tables, "routes": routes}
    services, databases = tables["services"], tables["databases"]
    by_service = ids.empty_as_null(F.col("remote_service_name"))
    by_broker = ids.broker_id(F.col("broker_instance"))
    held = services.select("instance_name", F.col("name").alias("service"))
    own = databases.select("instance_name", ids.broker_id(F.col("service_broker_guid")).alias("broker"))
    return Configuration(
        tables=tables,
        facts=known,
        scopes=_scopes(routes.sparkSession, known),
        services=kept(_distinct(routes.select("instance_name", by_service.alias("service")).unionByName(held))),
        brokers=kept(_distinct(routes.select("instance_name", by_broker.alias("broker")).unionByName(own))),
        requests=_requests(tables["route_requests"]) if "route_requests" in tables else None,
        dialogs=_dialogs(tables["dialogs"]) if "dialogs" in tables else None,
    )


def _scopes(spark: SparkSession, known: Facts) -> DataFrame:
    """Every scope that a message of a known instance and database can have."""
    rows = [
        (name, database, sorted(instance.own_addresses))
        for name, instance in instances_of(known.small).items()
        for database in (*instance.databases, FROM_NETWORK)
    ]
    return frames.frame_of_tuples(spark, rows, _SCOPES)


def _distinct(named: DataFrame) -> DataFrame:
    return named.where(F.col(named.columns[1]).isNotNull()).distinct()


def _requests(requests: DataFrame) -> DataFrame:
    request = F.struct("requested_at", "message_id", "ended_at")
    return requests.groupBy("instance_name", "database_name", F.col("service_name").alias("service")).agg(
        F.collect_list(request).alias("requests")
    )


def _dialogs(dialogs: DataFrame) -> DataFrame:
    """Only dialogs that can change a decision: bound, acknowledged, or with an end."""
    acknowledged = ids.broker_id(F.col("acknowledged_broker_instance"))
    rows = dialogs.select(
        "instance_name",
        "database_name",
        ids.conversation_id(F.col("conversation_id")).alias("conversation_id"),
        "is_initiator",
        F.col("lifetime").alias("dialog_lifetime"),
        F.when(F.col("acknowledged_at").isNotNull(), acknowledged).alias("acknowledged_broker"),
        "acknowledged_at",
        ids.broker_id(F.col("far_broker_instance")).alias("far_broker"),
    )
    return rows.where("dialog_lifetime IS NOT NULL OR acknowledged_broker IS NOT NULL OR far_broker IS NOT NULL")
