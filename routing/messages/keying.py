"""Build the routing key of a message: the facts that determine its route, except dialog hash, time and hops.

Messages with equal keys share a row of the routing plan. Service names and broker instances that nothing in the
instance names fall into a few classes, so that garbage in the data does not make the plan larger.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages.lookups import RunLookups
from routing.plan.instance_plans import COUNTS, NAMES
from routing.plan.key_rows import (
    ADDRESS_ELSEWHERE,
    FROM_NETWORK,
    KEY,
    NO_ADDRESS,
    OTHER_BROKER,
    OWN_ADDRESS,
    READ,
    SERVICE_FACTOR,
)
from routing.schemas import KEYS
from routing.tables import spark_forms
from routing.tables.cached_frames import JoinSide, look_up
from routing.tables.spark_forms import read_brokers

# The columns that a message gets from its dialog in `lookups.RunLookups`, at any time.
DIALOG = {
    "dialog_lifetime": "timestamp",
    "acknowledged_broker": "string",
    "acknowledged_at": "timestamp",
    "far_broker": "string",
}


def clean(messages: DataFrame, as_of: datetime | None) -> DataFrame:
    """Add decided_at (`t` of the rule book) to conformed messages, and clean database_name and conversation_id.

    This is a narrow step that keeps every row. A conversation id that is not a GUID is not folded, because its
    message is rejected.
    """
    return messages.withColumns(
        {
            "database_name": spark_forms.empty_as_null(F.col("database_name")),
            "decided_at": time_of(as_of),
            "conversation_id": F.lower("conversation_id"),
        }
    )


def time_of(as_of: datetime | None) -> Column:
    """Return the time at which a message is decided."""
    return F.coalesce("observed_at", "enqueue_time") if as_of is None else F.lit(as_of)


def prepare(messages: DataFrame, as_of: datetime | None) -> DataFrame:
    """Add key_database and named_broker to conformed messages, after the changes of `clean`. Every row is kept."""
    return _read_names(clean(messages, as_of))


def _read_names(messages: DataFrame) -> DataFrame:
    scoped = messages.withColumn("key_database", F.coalesce("database_name", F.lit(FROM_NETWORK)))
    return read_brokers(scoped, named_broker="to_broker_instance")


def add_scope(messages: DataFrame, lookups: RunLookups) -> DataFrame:
    """Add own_addresses of the scope to prepared messages, null if the instance or database is unknown."""
    scopes = lookups.scopes.with_rows(lookups.scopes.rows.withColumnRenamed("database_name", "key_database"))
    # A scope is an instance with a database, or with the network. Each has one row.
    return look_up(messages, scopes, ["instance_name", "key_database"])


def add_dialog(messages: DataFrame, dialogs: JoinSide | None) -> DataFrame:
    """Add the columns of `find_dialog` and `read_dialog` to cleaned messages."""
    return read_dialog(find_dialog(messages, dialogs))


def find_dialog(messages: DataFrame, dialogs: JoinSide | None) -> DataFrame:
    """Add the columns `DIALOG` to cleaned messages, null without a known dialog.

    Validation ensures one row for each endpoint in a database, so the join keeps the number of messages.
    """
    if dialogs is None:
        return messages.withColumns({name: F.lit(None).cast(kind) for name, kind in DIALOG.items()})
    return look_up(messages, dialogs, KEYS["dialogs"], optional=["database_name"], by="conversation_id")


def read_dialog(messages: DataFrame) -> DataFrame:
    """Add dialog_broker, the broker instance that the dialog binds messages to, and is_expired."""
    t = F.col("decided_at")
    acknowledged = F.when(F.col("acknowledged_at") <= t, F.col("acknowledged_broker"))
    return messages.withColumns(
        {
            "dialog_broker": F.coalesce(acknowledged, F.col("far_broker")),
            "is_expired": F.coalesce(F.col("dialog_lifetime") <= t, F.lit(False)),
        }
    )


_WAITING = [
    *("instance_name", "key_database", "to_service_name", "named_or_none"),
    *("conversation_id", "is_initiator", "decided_at", "message_id"),
]
"""The columns that identify messages that wait for a route. Messages with equal values wait for the same one."""
_REQUESTED = ("requested", "requested_in_msdb")


def select_waiting(waiting: DataFrame) -> DataFrame:
    """Return the distinct messages that wait for a route, with the columns of `results.add_requests`."""
    return waiting.withColumn("named_or_none", _or_none("named_broker")).select(*_WAITING, *_REQUESTED).distinct()


def add_waiting(messages: DataFrame, waiting: JoinSide) -> DataFrame:
    """Add the columns of `results.add_requests` to prepared messages, from those that wait for a route."""
    named = messages.withColumn("named_or_none", _or_none("named_broker"))
    joined = look_up(named, waiting, _WAITING, by="conversation_id").drop("named_or_none")
    return joined.withColumns({name: F.coalesce(name, F.lit(False)) for name in _REQUESTED})


def _or_none(broker: str) -> Column:
    """Return a broker instance, or empty text for null, because null would match nothing."""
    return F.coalesce(broker, F.lit(""))


def add_names(messages: DataFrame) -> DataFrame:
    """Add broker_or_none to messages of `bind`: their bound_broker, or empty text."""
    return messages.withColumn("broker_or_none", _or_none("bound_broker"))


def bind(messages: DataFrame) -> DataFrame:
    """Add bound_broker, the broker instance that prepared messages of `add_dialog` are bound to (section 0).

    It is null for an open message.
    """
    return messages.withColumn("bound_broker", F.coalesce("named_broker", "dialog_broker")).drop("dialog_broker")


def count_keys(messages: DataFrame, lookups: RunLookups, *, is_exact: bool) -> DataFrame:
    """Count messages of `add_dialog` by key: ``rows`` counts all, and ``valid`` only possibly valid ones.

    Messages that cannot be resolved count under a key of nulls. With ``is_exact``, rows are checked completely.
    Otherwise only the columns of their key are read. Messages are first grouped by the original columns of their
    key, so that each lookup is made once for a group. There are as many groups as keys of the configuration, plus
    the unknown names and ids.
    """
    sound = F.when(spark_forms.is_well_formed(), 1) if is_exact else F.lit(1)
    groups = messages.groupBy(*READ, "dialog_broker").agg(
        F.count(F.lit(1)).alias("rows"), F.count(sound).alias("valid")
    )
    known_groups = add_scope(_read_names(groups), lookups)
    has_key = F.col("own_addresses").isNotNull() & (F.col("to_service_name") != "")
    valid = F.when(has_key & F.col("is_initiator").isNotNull(), F.col("valid")).otherwise(0)
    marked = add_keys(bind(known_groups.withColumn("valid", valid)), lookups)
    key = [F.when(F.col("valid") > 0, F.col(name)).alias(name) for name in KEY]
    sums = [F.sum(name).alias(name) for name in ("rows", "valid")]
    return marked.select(*key, "rows", "valid").groupBy(*KEY).agg(*sums)


def count_names(messages: DataFrame) -> DataFrame:
    """Group messages of `add_dialog` by `NAMES`, and count them in the columns of `COUNTS`.

    Messages without a service or role count as not valid. The configuration is not needed.
    """
    groups = messages.groupBy(*READ, "dialog_broker").agg(F.count(F.lit(1)).alias("rows"))
    has_names = (F.col("to_service_name") != "") & F.col("is_initiator").isNotNull()
    marked = groups.withColumn("valid", F.when(has_names, F.col("rows")).otherwise(0))
    sums = [F.sum(name).alias(name) for name in COUNTS.names]
    return add_names(bind(_read_names(marked))).groupBy(*NAMES.names).agg(*sums)


def add_keys(messages: DataFrame, lookups: RunLookups) -> DataFrame:
    """Add the columns of `KEY` to messages of `bind`.

    If a route may read its address from a service name, own_addresses (`add_scope`) are needed. Unknown or missing
    services and brokers have empty text in key_service and key_broker, and key_kind separates these cases.
    """
    services = lookups.services.rows.withColumnRenamed("service", "to_service_name")
    known_services = lookups.services.with_rows(services.withColumn("known", F.lit(True)))
    # The names of an instance are distinct, so the join keeps the number of messages.
    joined = look_up(messages, known_services, ["instance_name", "to_service_name"])
    is_known, unknown = F.col("known").isNotNull(), F.lit(NO_ADDRESS)
    if lookups.checked.has_transport:
        joined, unknown = _read_address(joined), _unknown_service()
    kind = F.when(is_known, 0).otherwise(unknown * SERVICE_FACTOR)
    return (
        add_broker(joined, lookups)
        .withColumns(
            {
                "key_service": F.coalesce(F.when(is_known, F.col("to_service_name")), F.lit("")),
                "key_kind": F.col("key_role") + kind,
            }
        )
        .drop("known", "in_name", "key_role")
    )


def add_broker(messages: DataFrame, lookups: RunLookups) -> DataFrame:
    """Add key_role and key_broker to messages of `bind`. An id that nothing names has an empty key_broker."""
    brokers = lookups.brokers.rows.withColumnRenamed("broker", "bound_broker")
    reached = lookups.brokers.with_rows(brokers.withColumn("reached", F.lit(True)))
    # The ids of an instance are distinct, so the join keeps the number of messages.
    joined = look_up(messages, reached, ["instance_name", "bound_broker"], optional=["bound_broker"])
    is_reached = F.col("reached").isNotNull()
    other = F.when(F.col("bound_broker").isNotNull() & ~is_reached, OTHER_BROKER).otherwise(0)
    return joined.withColumns(
        {
            "key_broker": F.coalesce(F.when(is_reached, F.col("bound_broker")), F.lit("")),
            "key_role": F.when(F.col("is_initiator"), 1).otherwise(0) + other,
        }
    ).drop("reached")


def _read_address(messages: DataFrame) -> DataFrame:
    """Add ``in_name``, the address in a service name that is unknown in the instance, or empty text."""
    name = F.col("to_service_name")
    may_hold_one = F.col("known").isNull() & (F.lower(name.substr(1, 6)) == "tcp://")
    return messages.withColumn("in_name", F.when(may_hold_one, spark_forms.leading_address(name)).otherwise(""))


def _unknown_service() -> Column:
    """Return the class of a service that nothing in the instance names. Messages are those of `_read_address`."""
    address = F.col("in_name")
    # An address found in a name has no text around it. Folded, it has the form for comparison.
    is_own = F.array_contains("own_addresses", spark_forms.fold_any(address))
    return F.when(address == "", NO_ADDRESS).when(is_own, OWN_ADDRESS).otherwise(ADDRESS_ELSEWHERE)
