"""What of a message decides where it ends, hop by hop, and whether an answer comes back: its key in an estate.

Names and broker ids that nothing in the estate names fall into one class each, so that garbage in the data does
not make the plan larger. A name that begins with an address of a known instance counts by this address, since a
TRANSPORT route leads there.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing.messages.keying import MessageKeying, add_broker, look_up
from routing.messages.lookups import RunLookups
from routing.plan.keys import (
    ADDRESS_ELSEWHERE,
    FROM_FACTOR,
    FROM_NETWORK,
    KNOWN,
    NO_ADDRESS,
    OWN_ADDRESS,
    PATH_KEY,
    READ,
    SERVICE_FACTOR,
)
from routing.tables import spark_forms
from routing.tables.broadcast_joins import small_side


def add_path_keys(messages: DataFrame, lookups: RunLookups, transport: bool) -> DataFrame:
    """Add the columns of `PATH_KEY` to messages of `keying.bind` and `keying.add_conversation`.

    ``lookups`` are those of a whole estate; ``transport``: a route may read its address from a service name.
    key_service, key_broker and key_from are empty text for what is unknown or absent; key_kind tells these
    apart. A name of class OWN_ADDRESS is its leading address, as written.
    """
    addresses = lookups.addresses if transport else None
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
