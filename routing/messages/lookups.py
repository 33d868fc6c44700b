"""The frames in which messages are looked up: names of the configuration, dialogs and requests on record.

Each is broadcast if its size allows it (``resolve.broadcast_limit``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.messages.dialog_hash import DialogHash, choose_implementation
from routing.messages.setting_frames import DistributedInputs, find_scopes
from routing.messages.validate import add_reasons, may_change_decision
from routing.plan.checked_inputs import CheckedInputs, CheckedTables
from routing.plan.key_rows import FROM_NETWORK
from routing.run_context import RunContext
from routing.schemas import ROUTE_REQUESTS, ArrayOf, ColumnKind, Field, Schema
from routing.tables import frames, spark_forms
from routing.tables.cached_frames import BroadcastBudget, FrameCache, JoinSide, bytes_of_columns
from routing.tables.spark_forms import read_brokers

# The approximate size of a dialog in memory.
_DIALOG = 350


@dataclass(frozen=True)
class RunLookups:
    """The tables that decide a run's messages. Frames of the configuration are created at their first use.

    ``checked`` are the checked tables. ``requests`` has the columns of route_requests, or is None without any.
    ``request_count`` is their number, or None if it is unknown. ``dialogs`` has the dialogs that may change a
    decision, or is None. ``broadcasts`` decides how each is joined. The frames in ``frame_cache`` must stay until
    they have been read.
    """

    spark: SparkSession
    checked: CheckedTables
    frame_cache: FrameCache
    broadcasts: BroadcastBudget
    requests: DataFrame | None
    request_count: int | None
    dialogs: JoinSide | None
    dialog_hash: DialogHash

    @property
    def in_driver(self) -> CheckedInputs:
        """The configuration in this process, which finds and decides keys. Workers have none."""
        if not isinstance(self.checked, CheckedInputs):
            raise TypeError("the configuration is not in the driver")
        return self.checked

    @cached_property
    def scopes(self) -> JoinSide:
        """The scopes of messages: instance_name, database_name (FROM_NETWORK for arrivals).

        If the driver has the configuration, also own_addresses (array of comparable text).
        """
        if isinstance(self.checked, DistributedInputs):
            scopes = find_scopes(self.checked.frames)
            return self.broadcasts.join_side("the databases of the configuration", scopes)
        addresses = Field("own_addresses", ArrayOf(ColumnKind.STRING))
        columns = Schema((*_texts("instance_name", "database_name"), addresses))
        return self._join_side("the databases of the configuration", _scopes(self.in_driver), columns)

    @cached_property
    def services(self) -> JoinSide:
        """instance_name, service: every service that a route or a database of the instance names."""
        named = self.in_driver.named.services
        return self._join_side("the services of the configuration", named, _texts("instance_name", "service"))

    @cached_property
    def brokers(self) -> JoinSide:
        """instance_name, broker: every broker instance that a route or a database of the instance names."""
        named = self.in_driver.named.brokers
        return self._join_side(
            "the broker instances of the configuration", named, _texts("instance_name", "broker")
        )

    def add_reasons(self, messages: DataFrame) -> DataFrame:
        """Add the reasons of rejection to conformed messages, as `validate.add_reasons` does."""
        return add_reasons(messages, self.scopes, self.checked.quarantine.instances, self.broadcasts)

    def _join_side(self, rows_name: str, rows: Iterable[tuple[Any, ...]], schema: Schema) -> JoinSide:
        many = list(rows)
        frame = self.frame_cache.frame_of(self.spark, many, schema)
        size = len(many) * bytes_of_columns(frame.schema) + _characters(many)
        return self.broadcasts.of_size(rows_name, frame, size)


def build_lookups(
    spark: SparkSession, checked: CheckedTables, frame_cache: FrameCache, context: RunContext
) -> RunLookups:
    """Build the lookups of a configuration, with its dialogs. Raises EnvironmentFault and ConfigError."""
    broadcasts = BroadcastBudget.of_run(context, frame_cache.limits)
    wanted, dialogs = ROUTE_REQUESTS.optional(), None
    if checked.dialogs is not None:
        rows_name, size = f"{checked.dialog_rows} dialogs", checked.dialog_rows * _DIALOG
        dialogs = broadcasts.of_size(rows_name, _select(checked.dialogs), size)
    dialog_hash = choose_implementation(spark, context.options.dialog_hash)
    lookups = RunLookups(spark, checked, frame_cache, broadcasts, None, 0, dialogs, dialog_hash)
    if isinstance(checked, DistributedInputs):
        listed = checked.frames.get("route_requests")
        return lookups if listed is None else replace(lookups, requests=listed, request_count=None)
    requests = lookups.in_driver.settings.get("route_requests")
    if not requests:
        return lookups
    rows = frames.frame_of_tuples(spark, requests.rows(*wanted.names), wanted)
    return replace(lookups, requests=rows, request_count=len(requests))


def _characters(value: Any) -> int:
    """Count the characters of all texts in rows."""
    if isinstance(value, str):
        return len(value)
    return sum(map(_characters, value)) if isinstance(value, list | tuple) else 0


def _texts(*names: str) -> Schema:
    return Schema(tuple(Field(name, ColumnKind.STRING) for name in names))


def _scopes(checked: CheckedInputs) -> Iterable[tuple[str, str, list[str]]]:
    """Yield every scope that a message can have, with the instance's own addresses."""
    for name, instance in checked.instances.items():
        for database in (*instance.databases, FROM_NETWORK):
            yield name, database, sorted(instance.own_addresses)


def _select(dialogs: DataFrame) -> DataFrame:
    """Return the dialogs that may change a decision, with the columns that the join with messages needs."""
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
