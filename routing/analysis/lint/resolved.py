"""What resolved messages show of their routes and dialogs: groups of them, as few as the configuration's rows.

The rows of a DataFrame are grouped where they are, and only the groups are collected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.rules.following import OPEN_STEPS
from routing.storage.columns import Table, as_dataset, is_frame, select_arrow
from routing.storage.encoded import Numbering, Sums, encoded
from routing.terms import MSDB, MatchingStep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RouteName = tuple[Any, Any, Any]
"""Instance, database and name."""
_FROM = ("instance_name", "database_name", "rerouted_from")
_SENDER = ("instance_name", "database_name", "to_service_name")
_DIALOG = ("instance_name", "database_name", "to_service_name", "conversation_id", "is_initiator")


class Changed(NamedTuple):
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
    """The routes that messages used.

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


def _groups(resolved: Table) -> Iterable[tuple[Any, ...]]:
    """The distinct values of what tells the routes: `_FROM`, and a route's name."""
    if is_frame(resolved):
        from pyspark.sql import functions as F

        from routing.storage.frames import collect

        others = F.transform("alternative_routes", lambda route: route["route_name"])
        every = F.explode(F.concat(F.array("route_name"), F.coalesce(others, F.array()))).alias("name")
        return collect(resolved.select(*_FROM, every).distinct()).rows(*_FROM, "name")
    return _groups_in_arrow(resolved)


def _groups_in_arrow(resolved: Any) -> Iterable[tuple[Any, ...]]:
    import pyarrow
    import pyarrow.compute as pc

    names = (*_FROM, "route_name")
    numbers = {name: Numbering() for name in names}
    groups = Sums(names, {})
    groups.add(pyarrow.table([pyarrow.array([], pyarrow.int32())] * len(names), names=names))
    for part in encoded(as_dataset(resolved), names).to_batches(columns=[*names, "alternative_routes"]):
        rows = pyarrow.table({name: numbers[name].number(part[name]) for name in names})
        groups.add(rows)
        others = part["alternative_routes"]
        of_others = rows.take(pc.list_parent_indices(others))
        routes = numbers["route_name"].number(pc.struct_field(pc.list_flatten(others), "route_name"))
        groups.add(of_others.set_column(len(_FROM), "route_name", routes))
    found = groups.all()
    texts = (numbers[name].texts.take(found[name].combine_chunks()).to_pylist() for name in names)
    return zip(*texts, strict=True)


def changed_picks(resolved: Table) -> list[Changed]:
    """The scopes and services of which open dialogs were balanced to different broker ids."""
    dialogs = _changes_in_spark(resolved) if is_frame(resolved) else _changes_in_arrow(resolved)
    return [Changed(*group) for group in dialogs]


def _changes_in_spark(resolved: DataFrame) -> Iterable[tuple[Any, ...]]:
    from pyspark.sql import functions as F

    from routing.storage.frames import collect

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
    values = (column.to_pylist() for column in select_arrow(resolved, names).columns)
    for step, *dialog, broker in zip(*values, strict=True):
        if step == MatchingStep.BALANCED:
            picked.setdefault(tuple(dialog), set()).add(broker)
    groups: dict[tuple[Any, ...], list[str]] = {}
    for (instance, database, service, conversation, _), brokers in picked.items():
        if len(brokers - {None}) > 1:
            groups.setdefault((instance, MSDB if database is None else database, service), []).append(conversation)
    return [(*scope, len(conversations), min(conversations)) for scope, conversations in groups.items()]


def open_dialogs(resolved: Table, services: Collection[str]) -> list[OpenDialogs]:
    """The open dialogs to some services, by the databases that begin them.

    A dialog is open where a message of its initiator was sent by a route without broker id, and is bound to none:
    no target has acknowledged it.
    """
    found = _open_in_spark(resolved, services) if is_frame(resolved) else _open_in_arrow(resolved, services)
    return [OpenDialogs(*group) for group in found]


def _open_in_spark(resolved: DataFrame, services: Collection[str]) -> Iterable[tuple[Any, ...]]:
    from pyspark.sql import functions as F

    from routing.storage.frames import collect, where_in

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
    found = dialogs.group_by(list(_SENDER)).aggregate(counts)
    names = (*_SENDER, *("_".join(count) for count in counts))
    return zip(*(found[name].to_pylist() for name in names), strict=True)
