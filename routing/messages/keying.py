"""The routing key of a message: everything that decides its way but the dialog hash, the time and the hops.

Messages with equal keys share a row of the routing plan. Names and broker instances that nothing in the instance
names fall into one class each, so that garbage in the data does not make the plan larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages.lookups import RunLookups
from routing.plan.key_rows import (
    ADDRESS_ELSEWHERE,
    FROM_FACTOR,
    FROM_NETWORK,
    HOPS_LEFT,
    KEY,
    KNOWN,
    NO_ADDRESS,
    OTHER_BROKER,
    OWN_ADDRESS,
    PATH_KEY,
    READ,
    SERVICE_FACTOR,
    most_hops,
)
from routing.schemas import KEYS
from routing.tables import spark_forms
from routing.tables.cached_frames import JoinSide, small_side
from routing.tables.spark_forms import read_brokers

# What a message finds of its dialog, whatever the time; as `lookups.RunLookups` has it.
DIALOG = {
    "dialog_lifetime": "timestamp",
    "acknowledged_broker": "string",
    "acknowledged_at": "timestamp",
    "far_broker": "string",
}


@dataclass(frozen=True)
class MessageKeying:
    """A way to key messages.

    ``columns`` are the key's. ``read`` are the message's columns that it is made of, without its dialog's. ``add``
    gives messages of `bind` these columns. ``reads_scope``: it needs the columns of `add_scope` where a route may
    read its address from a service name. ``is_wide``: what decides in the whole estate. ``is_exact``: what to
    reject is counted as well.
    """

    columns: tuple[str, ...]
    read: tuple[str, ...]
    add: Callable[[DataFrame, RunLookups], DataFrame]
    reads_scope: bool
    is_wide: bool = False
    is_exact: bool = False


def clean(messages: DataFrame, as_of: datetime | None) -> DataFrame:
    """Add decided_at (`t` of the rule book) to conformed messages; clean database_name and conversation_id.

    Narrow; every row is kept. A conversation id that is no GUID, which is rejected, is not as others are compared.
    """
    return messages.withColumns(
        {
            "database_name": spark_forms.empty_as_null(F.col("database_name")),
            "decided_at": time_of(as_of),
            "conversation_id": F.lower("conversation_id"),
        }
    )


def time_of(as_of: datetime | None) -> Column:
    """Return the time as of which a message is decided."""
    return F.coalesce("observed_at", "enqueue_time") if as_of is None else F.lit(as_of)


def prepare(messages: DataFrame, as_of: datetime | None) -> DataFrame:
    """Select the columns of conformed messages that the rules read.

    Those of `clean`, with key_database and named_broker. Every row is kept.
    """
    return _read_names(clean(messages, as_of))


def _read_names(messages: DataFrame) -> DataFrame:
    scoped = messages.withColumn("key_database", F.coalesce("database_name", F.lit(FROM_NETWORK)))
    return read_brokers(scoped, named_broker="to_broker_instance")


def look_up(
    messages: DataFrame,
    lookup: DataFrame,
    on: Sequence[str],
    when: Column | None = None,
    *,
    optional: Sequence[str] = (),
    shuffled: bool = False,
) -> DataFrame:
    """Join messages with the row of ``lookup`` that has the same values ``on``; a left join.

    ``lookup`` holds each value once and brings its hint (broadcast, shuffle_hash), so that the join keeps the
    number of messages; a null finds nothing. ``when`` is a further condition. The join's key is one 64-bit hash
    of the columns, and their equality its condition: Spark looks up a bigint in a fraction of the time that it
    needs for several texts. The condition tells two values of one hash apart. ``optional`` are the columns
    that many messages lack: with one of these null nothing is looked up. ``shuffled``: the side is not broadcast;
    then messages with a null have a hash of their other values, for one task would get all nulls.
    """
    renamed = lookup.select(
        F.xxhash64(*on).alias("_side_hash"),
        *(F.col(name).alias(f"_side_{name}" if name in on else name) for name in lookup.columns),
    )
    of_message = F.xxhash64(*on)
    if optional and not shuffled:
        of_message = F.when(_all(F.col(name).isNotNull() for name in optional), of_message)
    # Equalities that stood here as such would become keys of the join.
    same = F.coalesce(_all(F.col(name) == F.col(f"_side_{name}") for name in on), F.lit(False))
    further = [] if when is None else [when]
    joined = messages.join(renamed, _all([of_message == F.col("_side_hash"), same, *further]), how="left")
    return joined.drop("_side_hash", *(f"_side_{name}" for name in on))


def _all(conditions: Iterable[Column]) -> Column:
    return reduce(Column.__and__, conditions)


def add_scope(messages: DataFrame, lookups: RunLookups) -> DataFrame:
    """Add own_addresses of the scope to prepared messages, null where instance or database is unknown."""
    scopes = lookups.scopes.withColumnRenamed("database_name", "key_database")
    # A scope is an instance and a database of it, or the network: each stands there once.
    return look_up(messages, small_side(scopes), ["instance_name", "key_database"])


def add_dialog(messages: DataFrame, dialogs: JoinSide | None) -> DataFrame:
    """Add the binding of the dialog at their time to cleaned messages (see `read_dialog`)."""
    return read_dialog(find_dialog(messages, dialogs))


def find_dialog(messages: DataFrame, dialogs: JoinSide | None) -> DataFrame:
    """Add the columns `DIALOG` of the dialog to cleaned messages, null where none is found.

    A dialog has one row of an end in a database, checked by validation, so the join keeps the number of messages.
    """
    if dialogs is None:
        return messages.withColumns({name: F.lit(None).cast(kind) for name, kind in DIALOG.items()})
    return look_up(
        messages, dialogs.with_hint(), KEYS["dialogs"], optional=["database_name"], shuffled=not dialogs.fits
    )


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


def add_conversation(messages: DataFrame, conversations: JoinSide | None) -> DataFrame:
    """Add key_conversation to cleaned messages: empty unless requests on record are of it.

    ``conversations`` has distinct ids, as they are compared, so the join keeps the number of messages.
    """
    if conversations is None:
        return messages.withColumn("key_conversation", F.lit(""))
    waiting = conversations.with_hint().withColumn("is_waiting", F.lit(True))
    joined = look_up(messages, waiting, ["conversation_id"], shuffled=not conversations.fits)
    key = F.when(F.col("is_waiting"), F.col("conversation_id")).otherwise("")
    return joined.withColumn("key_conversation", key).drop("is_waiting")


def bind(messages: DataFrame) -> DataFrame:
    """Add bound_broker, the broker instance that prepared messages of `add_dialog` are bound to (section 0).

    Null while open.
    """
    return messages.withColumn("bound_broker", F.coalesce("named_broker", "dialog_broker")).drop("dialog_broker")


def count_keys(messages: DataFrame, lookups: RunLookups, keying: MessageKeying) -> DataFrame:
    """Count messages of `add_dialog` by key: rows (how many have it) and valid (may be resolved).

    Unless the keying is exact no more is read of the messages than what their key is made of. Messages that cannot
    be resolved count under a key of nulls. They are grouped first by what their key is made of, as read, so that
    each lookup is made once for a group; the groups are as many as the configuration's keys, and the names and ids
    that nothing names. Keys of a whole estate have the hops that their messages have left beside them, a list.
    """
    sound = F.when(spark_forms.is_well_formed(), 1) if keying.is_exact else F.lit(1)
    hops = []
    if keying.is_wide:
        left, hops = F.col("hops_remaining"), [HOPS_LEFT]
        is_limit = left < most_hops(len(lookups.checked.instances))
        messages = messages.withColumn(HOPS_LEFT, F.when(is_limit, F.greatest(left, F.lit(0))))
    groups = messages.groupBy(*keying.read, "dialog_broker", *hops).agg(
        F.count(F.lit(1)).alias("rows"), F.count(sound).alias("valid")
    )
    known_groups = add_scope(_read_names(groups), lookups)
    has_key = F.col("own_addresses").isNotNull() & (F.col("to_service_name") != "")
    valid = F.when(has_key & F.col("is_initiator").isNotNull(), F.col("valid")).otherwise(0)
    marked = keying.add(bind(known_groups.withColumn("valid", valid)), lookups)
    key = [F.when(F.col("valid") > 0, F.col(name)).alias(name) for name in keying.columns]
    sums = [F.sum(name).alias(name) for name in ("rows", "valid")]
    lists = [F.collect_set(name).alias(name) for name in hops]
    return marked.select(*key, "rows", "valid", *hops).groupBy(*keying.columns).agg(*sums, *lists)


def add_keys(messages: DataFrame, lookups: RunLookups) -> DataFrame:
    """Add the columns of `KEY` to messages of `bind`.

    Where a route may read its address from a service name, the names are looked into; own_addresses (`add_scope`)
    are needed then.
    key_service and key_broker are empty text for what is unknown or absent; key_kind tells these apart.
    """
    services = lookups.services.withColumnRenamed("service", "to_service_name").withColumn("known", F.lit(True))
    # The names of an instance are distinct, so the join keeps the number of messages.
    joined = look_up(messages, small_side(services), ["instance_name", "to_service_name"])
    is_known, unknown = F.col("known").isNotNull(), F.lit(NO_ADDRESS)
    if lookups.checked.has_transport:
        joined, unknown = _read_address(joined), _unknown_service()
    kind = F.when(is_known, 0).otherwise(unknown * SERVICE_FACTOR)
    return (
        add_broker(joined, lookups, ["instance_name", "bound_broker"])
        .withColumns(
            {
                "key_service": F.coalesce(F.when(is_known, F.col("to_service_name")), F.lit("")),
                "key_kind": F.col("key_role") + kind,
            }
        )
        .drop("known", "in_name", "key_role")
    )


def add_broker(messages: DataFrame, lookups: RunLookups, on: Sequence[str]) -> DataFrame:
    """Add key_broker, empty where nothing names the id, and key_role to messages of `bind`.

    ``on``: the columns by which an id is known, those of ``lookups.brokers`` with the id as bound_broker.
    """
    brokers = lookups.brokers.withColumnRenamed("broker", "bound_broker").withColumn("reached", F.lit(True))
    # The ids of an instance, or of an estate, are distinct, so the join keeps the number of messages.
    joined = look_up(messages, small_side(brokers), on, optional=["bound_broker"])
    is_reached = F.col("reached").isNotNull()
    other = F.when(F.col("bound_broker").isNotNull() & ~is_reached, OTHER_BROKER).otherwise(0)
    return joined.withColumns(
        {
            "key_broker": F.coalesce(F.when(is_reached, F.col("bound_broker")), F.lit("")),
            "key_role": F.when(F.col("is_initiator"), 1).otherwise(0) + other,
        }
    ).drop("reached")


OF_INSTANCE = MessageKeying(KEY, READ, add_keys, reads_scope=True)
"""What decides within one instance."""
OF_INSTANCE_EXACTLY = replace(OF_INSTANCE, is_exact=True)
"""The same, with the messages to reject counted by the pass for the keys."""


def _read_address(messages: DataFrame) -> DataFrame:
    """Add ``in_name``, the address in a service name that nothing in the instance names; else empty."""
    name = F.col("to_service_name")
    may_hold_one = F.col("known").isNull() & (F.lower(name.substr(1, 6)) == "tcp://")
    return messages.withColumn("in_name", F.when(may_hold_one, spark_forms.leading_address(name)).otherwise(""))


def _unknown_service() -> Column:
    """Return the class of a service name that nothing in the instance names, of messages of `_read_address`."""
    address = F.col("in_name")
    # Nothing stands around an address that was found in a name: folded it is as two are compared.
    is_own = F.array_contains("own_addresses", spark_forms.fold_any(address))
    return F.when(address == "", NO_ADDRESS).when(is_own, OWN_ADDRESS).otherwise(ADDRESS_ELSEWHERE)


# What of a message decides where it ends, hop by hop, and whether an answer comes back: its key in an estate.
#
# Names and broker instances that nothing in the estate names fall into one class each, so that garbage in the data
# does not make the plan larger. A name that begins with an address of a known instance counts by this address,
# since a TRANSPORT route leads there.


def add_path_keys(messages: DataFrame, lookups: RunLookups) -> DataFrame:
    """Add the columns of `PATH_KEY` to messages of `keying.bind` and `keying.add_conversation`.

    ``lookups`` are those of a whole estate.
    key_service, key_broker and key_from are empty text for what is unknown or absent; key_kind tells these
    apart. A name of class OWN_ADDRESS is its leading address, as written.
    """
    addresses = lookups.addresses if lookups.checked.has_transport else None
    named = _add_name(messages, lookups, "to_service_name", "key_service", addresses)
    # Of an arrival the way back is not known, whoever sent it.
    is_sent_here = (F.col("key_database") != FROM_NETWORK) & (F.col("from_service_name") != "")
    sent = named.withColumn("back_to", F.when(is_sent_here, F.col("from_service_name")))
    answered = _add_name(sent, lookups, "back_to", "key_from", addresses).drop("back_to")
    classes = F.col("key_service_class") * SERVICE_FACTOR + F.col("key_from_class") * FROM_FACTOR
    with_broker = add_broker(answered, lookups, ["bound_broker"])
    return with_broker.withColumn("key_kind", F.col("key_role") + classes).drop(
        "key_role", "key_service_class", "key_from_class"
    )


OF_ESTATE = MessageKeying(
    PATH_KEY,
    (*READ, "from_service_name", "key_conversation"),
    add_path_keys,
    reads_scope=False,
    is_wide=True,
    is_exact=True,
)
"""What decides in the whole estate, there and back."""


def _add_name(
    messages: DataFrame, lookups: RunLookups, name: str, key: str, addresses: DataFrame | None
) -> DataFrame:
    """Add the deciding parts of a name, in columns ``key`` and ``key``_class; no name is a known one."""
    names = lookups.services.withColumnRenamed("service", name).withColumn("known", F.lit(True))
    # The names of the estate are distinct, and so are its addresses: the joins keep the number of messages.
    joined = look_up(messages, small_side(names), [name], optional=[name])
    is_known = F.col("known") | F.col(name).isNull()
    if addresses is None:
        kind = F.when(is_known, KNOWN).otherwise(NO_ADDRESS)
        text = F.when(F.col("known"), F.col(name)).otherwise("")
        return joined.withColumns({key: text, f"{key}_class": kind}).drop("known")
    may_hold_one = F.col("known").isNull() & (F.lower(F.col(name).substr(1, 6)) == "tcp://")
    in_name, leading = F.col("in_name"), spark_forms.leading_address(F.col(name))
    owned = addresses.withColumnRenamed("address", "compared").withColumn("owned", F.lit(True))
    read = joined.withColumn("in_name", F.coalesce(F.when(may_hold_one, leading), F.lit("")))
    # Nothing stands around an address that was found in a name: folded it is as two are compared.
    read = read.withColumn("compared", F.when(in_name != "", spark_forms.fold_any(in_name)))
    with_owned = look_up(read, small_side(owned), ["compared"], optional=["compared"])
    elsewhere = F.when(in_name == "", NO_ADDRESS).otherwise(ADDRESS_ELSEWHERE)
    kind = F.when(is_known, KNOWN).when(F.col("owned"), OWN_ADDRESS).otherwise(elsewhere)
    text = F.coalesce(F.when(F.col("known"), F.col(name)).when(F.col("owned"), in_name), F.lit(""))
    return with_owned.withColumns({key: text, f"{key}_class": kind}).drop("known", "in_name", "compared", "owned")
