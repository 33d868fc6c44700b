"""What resolved messages show of their routes and dialogs: groups of them, as few as the configuration's rows.

The rows of a DataFrame are grouped where they are, and only the groups are collected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.rules.following import OPEN_STEPS
from routing.tables.arrow_rows import plain_values
from routing.tables.encoded_texts import TextNumbering, encoded
from routing.tables.table_columns import Table, as_dataset, is_frame, select_arrow
from routing.terms import MSDB, MatchingStep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RouteName = tuple[Any, Any, Any]
"""Instance, database and name."""
_WHERE = ("instance_name", "database_name", "rerouted_from")
_SENDER = ("instance_name", "database_name", "to_service_name")
_DIALOG = ("instance_name", "database_name", "to_service_name", "conversation_id", "is_initiator")


class RebalancedDialogs(NamedTuple):
    """Open dialogs of a scope to a service that were balanced to several ids: how many, and the first by id."""

    instance: str
    database: str
    service: str
    dialogs: int
    first: str


class OpenDialogs(NamedTuple):
    """Dialogs of a database to a service whose messages take routes while they are bound to no broker id.

    How many there are, and the first by id.
    """

    instance: str
    database: str
    service: str
    dialogs: int
    first: str


def used_routes(resolved: Table) -> set[RouteName]:
    """Return the routes that messages used.

    ``resolved`` has the columns of ``resolved_routes``. A route is used where a message reports it, where it
    led the message back to its own instance (rerouted_from), and where it is one of alternative_routes: the
    transport may take any of these.
    """
    used: set[RouteName] = set()
    for instance, database, rerouted_from, name in _groups(resolved):
        here = MSDB if database is None else database
        there = here if rerouted_from is None else MSDB
        used |= {(instance, here, rerouted_from), (instance, there, name)}
    return {route for route in used if route[2] is not None}


def _groups(resolved: Any) -> Iterable[tuple[Any, ...]]:
    """Return the distinct values of what tells the routes: instance, database, rerouted_from, and a name.

    That is the one a message reports, or one of alternative_routes.
    """
    if not is_frame(resolved):
        return _groups_in_arrow(resolved)
    from pyspark.sql import functions as F

    from routing.tables.frames import collect

    others = F.coalesce(F.transform("alternative_routes", lambda route: route["route_name"]), F.array())
    names = F.explode(F.concat(F.array("route_name"), others)).alias("route_name")
    return collect(resolved.select(*_WHERE, names).distinct()).rows(*_WHERE, "route_name")


def _groups_in_arrow(resolved: Any) -> Iterable[tuple[Any, ...]]:
    """Yield groups part by part, by numbers of texts: of many rows few are different."""
    import pyarrow.compute as pc

    rows = encoded(as_dataset(resolved), (*_WHERE, "route_name"))
    where, names = [TextNumbering() for _ in _WHERE], TextNumbering()
    groups: set[tuple[Any, ...]] = set()
    for part in rows.to_batches(columns=[*_WHERE, "route_name", "alternative_routes"]):
        places = [numbering.number(part[name]) for numbering, name in zip(where, _WHERE, strict=True)]
        groups |= _distinct([*places, names.number(part["route_name"])])
        others = part["alternative_routes"]
        if others.null_count < len(others):
            of_row = pc.list_parent_indices(others)
            named = pc.struct_field(pc.list_flatten(others), "route_name")
            groups |= _distinct([*(place.take(of_row) for place in places), names.number(named)])
    texts = [plain_values(numbering.texts) for numbering in (*where, names)]
    return (tuple(None if n is None else text[n] for n, text in zip(row, texts, strict=True)) for row in groups)


def _distinct(columns: list[Any]) -> set[tuple[Any, ...]]:
    import pyarrow

    keys = [str(place) for place in range(len(columns))]
    rows = pyarrow.table(dict(zip(keys, columns, strict=True))).group_by(keys).aggregate([])
    return set(zip(*(rows[key].to_pylist() for key in keys), strict=True))


def changed_picks(resolved: Table) -> list[RebalancedDialogs]:
    """Return the scopes and services of which open dialogs were balanced to different broker ids."""
    dialogs = _changes_in_spark(resolved) if is_frame(resolved) else _changes_in_arrow(resolved)
    return [RebalancedDialogs(*group) for group in dialogs]


def _changes_in_spark(resolved: DataFrame) -> Iterable[tuple[Any, ...]]:
    from pyspark.sql import functions as F

    from routing.tables.frames import collect

    changed = (
        resolved.where(F.col("matching_step") == int(MatchingStep.BALANCED))
        .groupBy(*_DIALOG)
        .agg(F.min("broker_instance").alias("least"), F.max("broker_instance").alias("most"))
        .where(F.col("least") != F.col("most"))
    )
    scope = ("instance_name", F.coalesce("database_name", F.lit(MSDB)).alias("database_name"), "to_service_name")
    counted = changed.groupBy(*scope).agg(
        F.count(F.lit(1)).alias("dialogs"), F.min("conversation_id").alias("first")
    )
    columns = collect(counted)
    return columns.rows(*columns.values)


def _changes_in_arrow(resolved: Any) -> Iterable[tuple[Any, ...]]:
    names = ("matching_step", *_DIALOG, "broker_instance")
    picked: dict[tuple[Any, ...], set[str | None]] = {}
    values = (plain_values(column) for column in select_arrow(resolved, names).columns)
    for step, *dialog, broker in zip(*values, strict=True):
        if step == MatchingStep.BALANCED:
            picked.setdefault(tuple(dialog), set()).add(broker)
    groups: dict[tuple[Any, ...], list[str]] = {}
    for (instance, database, service, conversation, _), brokers in picked.items():
        if len(brokers - {None}) > 1:
            groups.setdefault((instance, MSDB if database is None else database, service), []).append(conversation)
    return [(*scope, len(conversations), min(conversations)) for scope, conversations in groups.items()]


def open_dialogs(resolved: Table, services: Collection[str]) -> list[OpenDialogs]:
    """Return the open dialogs to some services, by the databases that begin them.

    A dialog is open where a message of its initiator was sent by a route without broker id, and is bound to none:
    no target has acknowledged it.
    """
    groups = _open_in_spark(resolved, services) if is_frame(resolved) else _open_in_arrow(resolved, services)
    return [OpenDialogs(*group) for group in groups]


def _open_in_spark(resolved: DataFrame, services: Collection[str]) -> Iterable[tuple[Any, ...]]:
    from pyspark.sql import functions as F

    from routing.tables.frames import collect, where_in

    wanted: dict[str, list[Any]] = {
        "matching_step": [int(step) for step in OPEN_STEPS],
        "to_service_name": sorted(services),
    }
    is_sent = F.col("is_initiator") & F.col("broker_instance").isNull() & F.col("database_name").isNotNull()
    dialogs = where_in(resolved, wanted).where(is_sent).select(*_SENDER, "conversation_id").distinct()
    counted = dialogs.groupBy(*_SENDER).agg(
        F.count(F.lit(1)).alias("dialogs"), F.min("conversation_id").alias("first")
    )
    columns = collect(counted)
    return columns.rows(*columns.values)


def _open_in_arrow(resolved: Any, services: Collection[str]) -> Iterable[tuple[Any, ...]]:
    import pyarrow.compute as pc

    is_open = pc.field("matching_step").isin([int(step) for step in OPEN_STEPS]) & pc.field("is_initiator")
    is_sent = pc.field("broker_instance").is_null() & pc.field("database_name").is_valid()
    is_wanted = pc.field("to_service_name").isin(sorted(services))
    rows = select_arrow(resolved, (*_SENDER, "conversation_id"), is_open & is_sent & is_wanted)
    dialogs = rows.group_by(rows.column_names).aggregate([])
    counts = [("conversation_id", "count"), ("conversation_id", "min")]
    counted_dialogs = dialogs.group_by(list(_SENDER)).aggregate(counts)
    names = (*_SENDER, *("_".join(count) for count in counts))
    return zip(*(plain_values(counted_dialogs[name]) for name in names), strict=True)
