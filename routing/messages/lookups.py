"""The frames in which messages are looked up: small and broadcast, for they grow with the configuration alone.

Not so the dialogs and the requests on record, which grow with the traffic.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.messages.validate import may_change_decision
from routing.plan.checked_inputs import CheckedInputs
from routing.plan.key_rows import FROM_NETWORK
from routing.rules.requesting import ConversationEndpoint
from routing.schemas import ROUTE_REQUESTS, ArrayOf, ColumnKind, Field, Schema
from routing.tables import frames, spark_forms
from routing.tables.cached_frames import FrameCache
from routing.tables.spark_forms import read_brokers
from routing.tables.table_columns import TableColumns

_SCOPES = Schema(
    (
        Field("instance_name", ColumnKind.STRING),
        Field("database_name", ColumnKind.STRING),
        Field("own_addresses", ArrayOf(ColumnKind.STRING)),
    )
)


_Rows = tuple[Collection[tuple[Any, ...]], Schema]


@dataclass(frozen=True)
class RunLookups:
    """The tables around a run's messages; frames of the configuration are made when they are first asked for.

    checked: the configuration. named_services and named_brokers: the rows of `services` and `brokers`. requests:
    the columns of route_requests, None where none is on record; request_count: how many there are, None where that
    is not known. dialogs: those that can matter, or None.
    addresses: address, as compared: every one of every instance; None where no name is read for one.
    waiting_conversations: those whose requests are on record, of a whole estate. What ``frame_cache`` is given
    must stay until it has been read.
    """

    spark: SparkSession
    checked: CheckedInputs
    frame_cache: FrameCache
    named_services: _Rows
    named_brokers: _Rows
    requests: DataFrame | None
    request_count: int | None
    dialogs: DataFrame | None
    addresses: DataFrame | None = None
    waiting_conversations: Collection[str] = ()

    @cached_property
    def scopes(self) -> DataFrame:
        """instance_name, database_name (FROM_NETWORK for arrivals), own_addresses (array of comparable text)."""
        return _frame(self.spark, self.frame_cache, _scopes(self.checked), _SCOPES)

    @cached_property
    def services(self) -> DataFrame:
        """instance_name, service: every service that a route or a database of the instance names."""
        return _frame(self.spark, self.frame_cache, *self.named_services)

    @cached_property
    def brokers(self) -> DataFrame:
        """instance_name, broker: every broker instance that a route or a database of the instance names."""
        return _frame(self.spark, self.frame_cache, *self.named_brokers)

    @cached_property
    def conversations(self) -> DataFrame:
        """conversation_id: the rows of ``waiting_conversations``."""
        return _frame(self.spark, self.frame_cache, _singly(self.waiting_conversations), _one("conversation_id"))


def look_into(
    spark: SparkSession, checked: CheckedInputs, frame_cache: FrameCache, *, is_wide: bool = False
) -> RunLookups:
    """Build the lookups of a configuration; frames in ``frame_cache`` must stay until they have been read.

    ``is_wide``: what the whole estate names, so that ``services`` and ``brokers`` have no instance.
    """
    requests, dialogs, named = checked.settings.get("route_requests"), checked.dialogs, checked.named
    wanted = ROUTE_REQUESTS.optional()
    lookups = RunLookups(
        spark,
        checked,
        frame_cache,
        named_services=(named.services, _names("service")),
        named_brokers=(named.brokers, _names("broker")),
        requests=frames.frame_of_tuples(spark, requests.rows(*wanted.names), wanted) if requests else None,
        request_count=len(requests) if requests else 0,
        dialogs=None if dialogs is None else _select(dialogs),
    )
    if not is_wide:
        return lookups
    addresses = None
    if checked.has_transport:
        addresses = _frame(spark, frame_cache, _singly(named.addresses), _one("address"))
    return replace(
        lookups,
        named_services=(_singly(named.services_anywhere()), _one("service")),
        named_brokers=(_singly(named.brokers_anywhere()), _one("broker")),
        addresses=addresses,
        waiting_conversations=() if requests is None else _waiting(requests),
    )


def _waiting(requests: TableColumns) -> Collection[str]:
    """Return the conversations, as their ids are compared, that requests on record name."""
    endpoints = (ConversationEndpoint.of_row(*row) for row in requests.rows("conversation_id", "is_initiator"))
    return {one.conversation_id for one in endpoints if one is not None}


def _singly(values: Iterable[str]) -> list[tuple[str]]:
    return [(value,) for value in values]


def _frame(
    spark: SparkSession, frame_cache: FrameCache, rows: Iterable[tuple[Any, ...]], schema: Schema
) -> DataFrame:
    many = list(rows)
    frame = frames.frame_of_tuples(spark, many, schema)
    # Without Arrow rows are read by Python workers, in every job that uses them.
    return (
        frame_cache.store(frame) if len(many) > frame_cache.limits.held_rows or not frames.has_arrow() else frame
    )


def _one(column: str) -> Schema:
    return Schema((Field(column, ColumnKind.STRING),))


def _names(column: str) -> Schema:
    return Schema((Field("instance_name", ColumnKind.STRING), Field(column, ColumnKind.STRING)))


def _scopes(checked: CheckedInputs) -> Iterable[tuple[str, str, list[str]]]:
    """Yield every scope that a message can have, with the instance's own addresses."""
    for name, instance in checked.instances.items():
        for database in (*instance.databases, FROM_NETWORK):
            yield name, database, sorted(instance.own_addresses)


def _select(dialogs: DataFrame) -> DataFrame:
    """Return the dialogs that may change a decision, in the columns that a message is looked up by and finds."""
    read = read_brokers(
        dialogs.where(may_change_decision()),
        acknowledged_broker="acknowledged_broker_instance",
        far_broker="far_broker_instance",
    )
    return read.select(
        "instance_name",
        "database_name",
        spark_forms.conversation_id(F.col("conversation_id")).alias("conversation_id"),
        "is_initiator",
        F.col("lifetime").alias("dialog_lifetime"),
        "acknowledged_broker",
        "acknowledged_at",
        "far_broker",
    )
