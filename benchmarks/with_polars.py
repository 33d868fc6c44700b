"""Resolve the comparators' subset of the rules with Polars and deltalake, streaming.

docs/explanation/performance.md describes the subset. The code is as users would write it. The small tables are
computed first, so that messages need only a few hash joins. The hash is computed only for messages that need it.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import xxhash

from benchmarks.delta_options import CONFIGURATION, properties

_SCOPE = ["instance_name", "scope"]
_SERVICE = [*_SCOPE, "to_service_name"]
_ROUTE = ("route_name", "address", "mirror_address")
_SEED = 42
# No broker instance is empty text.
_OPEN = ""
_ALTERNATIVES = pl.List(pl.Struct(dict.fromkeys(_ROUTE, pl.String)))


def resolve(tables: Mapping[str, str], out: str) -> None:
    """Read Delta tables, write ``resolved_routes``."""
    result = _decided(_located(_matched(_bind(tables), tables), tables))
    result.sink_delta(
        out,
        mode="overwrite",
        delta_write_options={"writer_properties": properties(), "configuration": CONFIGURATION},
        engine="streaming",
    )


def _hashes(ids: pl.Series) -> pl.Series:
    """The dialog-ID hash of each id that is there."""
    has_id = ids.is_not_null()
    signed = [_signed(xxhash.xxh64_intdigest(text.encode(), _SEED)) for text in ids.filter(has_id)]
    places = has_id.arg_true()
    return pl.Series(ids.name, [None], dtype=pl.Int64).new_from_index(0, len(ids)).scatter(places, signed)


def _signed(hashed: int) -> int:
    return hashed - (1 << 64) if hashed >> 63 else hashed


def _bind(tables: Mapping[str, str]) -> pl.LazyFrame:
    messages = pl.scan_delta(tables["messages"]).with_columns(
        scope=pl.coalesce("database_name", pl.lit("msdb")), enqueue_time=_micros("enqueue_time")
    )
    if "dialogs" not in tables:
        return messages.with_columns(bound=pl.col("to_broker_instance"))
    ends = ["instance_name", "database_name", "conversation_id", "is_initiator"]
    dialogs = pl.scan_delta(tables["dialogs"]).select(
        *ends, "far_broker_instance", "acknowledged_broker_instance", _micros("acknowledged_at")
    )
    acknowledged = pl.when(pl.col("acknowledged_at") <= pl.col("enqueue_time")).then(
        pl.col("acknowledged_broker_instance")
    )
    return messages.join(dialogs, on=ends, how="left").with_columns(
        bound=pl.coalesce("to_broker_instance", acknowledged, "far_broker_instance")
    )


def _micros(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Datetime("us", "UTC"))


def _routes(tables: Mapping[str, str]) -> pl.LazyFrame:
    """All routes, the one to be chosen first."""
    tier = (
        pl.when(pl.col("mirror_address").is_not_null()).then(1).when(pl.col("address") == "LOCAL").then(2)
    ).otherwise(3)
    return (
        pl.scan_delta(tables["routes"])
        .rename({"database_name": "scope", "remote_service_name": "to_service_name", "name": "route_name"})
        .with_columns(tier=tier)
        .sort("tier", "route_name")
        .collect()
        .lazy()
    )


def _first(routes: pl.LazyFrame, by: list[str], prefix: str) -> pl.LazyFrame:
    firsts = [pl.col(name).first().alias(f"{prefix}_{name}") for name in _ROUTE]
    return routes.group_by(by, maintain_order=True).agg(*firsts)


def _scopes(by_any: pl.LazyFrame, tables: Mapping[str, str]) -> pl.LazyFrame:
    """Every scope, with its route for any service and whether its instance forwards."""
    forwards = pl.scan_delta(tables["instances"]).select("instance_name", "is_message_forwarding_enabled")
    databases = pl.scan_delta(tables["databases"]).select("instance_name", pl.col("name").alias("scope"))
    listed = databases.join(forwards, on="instance_name")
    return listed.join(by_any, on=_SCOPE, how="left")


def _matched(messages: pl.LazyFrame, tables: Mapping[str, str]) -> pl.LazyFrame:
    """Return the route of the first matching step (section 2), from the chosen routes of steps 1 or 3, 2 and 5."""
    routes = _routes(tables)
    names, has_id = pl.col("to_service_name").is_not_null(), pl.col("broker_instance").is_not_null()
    by_service = _first(routes.filter(names & ~has_id), _SERVICE, "named")
    ids = routes.filter(names & has_id).group_by(_SERVICE).agg(pl.col("broker_instance").unique().sort())
    named = by_service.join(ids.rename({"broker_instance": "ids"}), on=_SERVICE, how="full", coalesce=True)
    named = named.collect().lazy()
    by_id = _first(routes.filter(names & has_id), [*_SERVICE, "broker_instance"], "balanced").collect().lazy()
    by_any = _scopes(_first(routes.filter(~names & ~has_id), _SCOPE, "any"), tables).collect().lazy()
    is_open, is_named = pl.col("bound").is_null(), pl.col("named_route_name").is_not_null()
    picks = is_open & ~is_named & pl.col("ids").is_not_null()
    count = pl.col("ids").list.len().cast(pl.Int64)
    hashed = pl.when(picks).then(pl.col("conversation_id"))
    hashed = hashed.map_batches(_hashes, return_dtype=pl.Int64, is_elementwise=True)
    index = ((hashed % count) + count) % count
    with_id = messages.join(named, on=_SERVICE, how="left").with_columns(
        broker_instance=pl.coalesce("bound", pl.when(picks).then(pl.col("ids").list.get(index)))
    )
    joined = (
        with_id.drop("ids")
        .join(by_id, on=[*_SERVICE, "broker_instance"], how="left")
        .join(by_any, on=_SCOPE, how="left")
    )
    step = pl.when(pl.col("balanced_route_name").is_not_null() & ~is_open).then(1).when(is_named).then(2)
    step = step.when(pl.col("balanced_route_name").is_not_null()).then(3)
    step = step.when(pl.col("any_route_name").is_not_null()).then(5).otherwise(7).cast(pl.Int32)
    found = joined.with_columns(matching_step=step)
    kinds = {1: "balanced", 2: "named", 3: "balanced", 5: "any"}
    return found.with_columns(
        pl.coalesce(
            *(pl.when(pl.col("matching_step") == n).then(pl.col(f"{k}_{name}")) for n, k in kinds.items())
        ).alias(name)
        for name in _ROUTE
    )


def _located(messages: pl.LazyFrame, tables: Mapping[str, str]) -> pl.LazyFrame:
    """Section 4: the database of the instance that the message is for (column ``holder``), if any.

    The holder is worked out for each scope and service, open and for each id, so that one join finds it.
    """
    databases = pl.scan_delta(tables["databases"]).select(
        "instance_name", pl.col("name").alias("database"), pl.col("service_broker_guid").alias("broker_instance")
    )
    services = pl.scan_delta(tables["services"]).rename({"name": "to_service_name", "database_name": "database"})
    held = services.join(databases, on=["instance_name", "database"])
    scopes = databases.select("instance_name", pl.col("database").alias("scope"))
    is_sender = (pl.col("database") == pl.col("scope")) & (pl.col("scope") != "msdb")
    open_ones = (
        held.join(scopes, on="instance_name")
        .group_by(_SERVICE)
        .agg(pl.coalesce(pl.col("database").filter(is_sender).first(), pl.col("database").min()).alias("holder"))
        .with_columns(broker_instance=pl.lit(_OPEN))
    )
    bound_ones = (
        held.group_by("instance_name", "to_service_name", "broker_instance")
        .agg(pl.col("database").min().alias("holder"))
        .join(scopes, on="instance_name")
    )
    columns = [*_SERVICE, "holder", pl.col("broker_instance").alias("sought")]
    holders = pl.concat([open_ones.select(columns), bound_ones.select(columns)]).collect().lazy()
    here = databases.select("instance_name", "broker_instance", is_here=pl.lit(True)).unique().collect().lazy()
    return (
        messages.with_columns(sought=pl.col("broker_instance").fill_null(_OPEN))
        .join(holders, on=[*_SERVICE, "sought"], how="left")
        .join(here, on=["instance_name", "broker_instance"], how="left")
    )


def _decided(messages: pl.LazyFrame) -> pl.LazyFrame:
    from_network, is_local = pl.col("database_name").is_null(), pl.col("address") == "LOCAL"
    has_route, is_located = pl.col("route_name").is_not_null(), pl.col("holder").is_not_null()
    forwards = pl.col("is_message_forwarding_enabled")
    no_hops = (pl.col("hops_remaining") <= 0).fill_null(False)
    elsewhere = pl.col("broker_instance").is_not_null() & pl.col("is_here").is_null()
    outcome = (
        pl.when(~has_route)
        .then(pl.lit("DELAYED"))
        .when(is_local & is_located)
        .then(pl.lit("DELIVERED"))
        .when(is_local & from_network)
        .then(pl.lit("DROPPED"))
        .when(is_local)
        .then(pl.lit("DELAYED"))
        .when(~from_network)
        .then(pl.lit("SENT"))
        .when(~forwards | no_hops)
        .then(pl.lit("DROPPED"))
        .otherwise(pl.lit("FORWARDED"))
    )
    reason = (
        pl.when(~has_route)
        .then(pl.lit("NO_ROUTE"))
        .when(is_local & is_located)
        .then(pl.lit("LOCAL_SERVICE"))
        .when(is_local & elsewhere)
        .then(pl.lit("BROKER_INSTANCE_NOT_FOUND"))
        .when(is_local)
        .then(pl.lit("SERVICE_NOT_FOUND"))
        .when(from_network & ~forwards)
        .then(pl.lit("FORWARDING_DISABLED"))
        .when(from_network & no_hops)
        .then(pl.lit("HOP_LIMIT"))
        .when(pl.col("mirror_address").is_not_null())
        .then(pl.lit("MIRROR_ADDRESS"))
        .otherwise(pl.lit("NETWORK_ADDRESS"))
    )
    return messages.select(
        "message_id",
        "conversation_id",
        "is_initiator",
        "message_sequence_number",
        "enqueue_time",
        "instance_name",
        "database_name",
        "to_service_name",
        "to_broker_instance",
        pl.col("enqueue_time").alias("decided_at"),
        "broker_instance",
        outcome.alias("outcome"),
        reason.alias("reason"),
        "matching_step",
        "route_name",
        pl.when(~is_local | is_located).then(pl.col("address")).alias("address"),
        "mirror_address",
        pl.when(is_local).then(pl.col("holder")).alias("destination_database"),
        pl.lit(None, dtype=_ALTERNATIVES).alias("alternative_routes"),
        pl.lit(None, dtype=pl.String).alias("rerouted_from"),
        pl.lit("polars").alias("run_id"),
        pl.lit(1, dtype=pl.Int32).alias("attempt"),
    )
