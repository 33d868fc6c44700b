"""Decide the names in messages in the workers that have the rows of their instance, as Arrow tables.

An instance's decisions depend on its own configuration only. A large instance may be split by service, because a
decision depends on the routes and holders of one service, and on rows that concern all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from routing.plan.checked_inputs import FOR_ALL, CheckedInputs, FaultSurvey
from routing.plan.key_rows import CHOICE, FROM_NETWORK, KeyDecider, PlanUses, TimelineRows
from routing.process import no_search_for_cycles
from routing.rules.deciding import RoutingKey, named_broker
from routing.rules.estate import SqlInstance
from routing.schemas import INPUTS, SETTINGS, ArrayOf, ColumnKind, Field, Schema, table_schema
from routing.tables.arrow_rows import arrow_schema, arrow_type, plain_values, values_of
from routing.tables.row_faults import SHOWN
from routing.tables.table_columns import TableColumns, columns_in, read_arrow, rows_where

if TYPE_CHECKING:
    import pyarrow

TABLE = "table_key"
"""The column of a row of the configuration with the key of its table."""
SERVICE_OF = {"routes": "remote_service_name", "services": "name"}
"""The column with the service that rows of a table concern. Rows of the other tables concern all services."""
DECIDING = tuple(key for key in SETTINGS if key != "route_requests")
"""The tables that decide names."""
UNREAD = "database_id"
"""The column of ``databases`` that no rule reads."""
NAMES = table_schema(
    ("instance_name", ColumnKind.STRING),
    ("key_database", ColumnKind.STRING),
    ("to_service_name", ColumnKind.STRING),
    ("broker_or_none", ColumnKind.STRING),
    ("is_initiator", ColumnKind.BOOLEAN),
)
"""The columns of a message that decide its routes, apart from its time and its dialog-ID hash.

A missing database or broker instance is empty text.
"""
COUNTS = table_schema(("rows", ColumnKind.BIGINT), ("valid", ColumnKind.BIGINT))
"""The number of messages with the same names, and of those that are valid if their database is known."""
_USES = table_schema(*((field.name, ColumnKind.BOOLEAN) for field in fields(PlanUses)))
USES = tuple(_USES.names)
"""The columns of a decision with the fields of `PlanUses`."""
_TIMED = Schema(
    (
        Field("plan_from", ColumnKind.TIMESTAMP),
        Field("valid_to", ColumnKind.TIMESTAMP),
        Field("choices", ArrayOf(CHOICE)),
    )
)
DECIDED_NAMES = Schema((*NAMES, Field("scope_is_known", ColumnKind.BOOLEAN), *_TIMED, *COUNTS, *_USES))
"""Names with the rows of their timeline. Names of an unknown instance or database have one row without choices.

Only the first row of names has their counts.
"""
FAULTS = Schema(
    (
        Field("count", ColumnKind.BIGINT),
        Field(
            "first",
            ArrayOf(
                table_schema(*((n, ColumnKind.STRING) for n in ("table_name", "row_key", "fault", "instance")))
            ),
        ),
        Field("instances", ArrayOf(ColumnKind.STRING)),
    )
)
"""The faults of a part of the configuration, as in `FaultSurvey`."""
# The number of names whose rows become one part of a result.
_NAMES_AT_ONCE = 50_000


def check_rows(key: str, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Yield one row of `FAULTS` for a part of table ``key`` that has all rows of each of its keys."""
    import pyarrow

    parts = list(batches)
    if not parts:
        return
    columns = read_arrow(pyarrow.Table.from_batches(parts), key)
    faults = FaultSurvey.of({key: columns})
    first = sorted(faults.first, key=lambda fault: fault[:3])[:SHOWN]
    row = [faults.count, [fault._asdict() for fault in first], list(faults.instances)]
    arrays = [pyarrow.array([value], kind.type) for value, kind in zip(row, arrow_schema(FAULTS), strict=True)]
    yield pyarrow.record_batch(arrays, names=FAULTS.names)


def decide_names(names: pyarrow.Table, rows: pyarrow.Table) -> pyarrow.Table:
    """Return `DECIDED_NAMES` for the distinct names of one instance, or of some of its services.

    ``names`` have the columns of `NAMES` and `COUNTS`, ``rows`` those of `in_one_table`: all rows of the instance
    that concern these services.
    """
    import pyarrow

    if not len(names):
        return arrow_schema(DECIDED_NAMES).empty_table()
    decider, services = KeyDecider(), names["to_service_name"].unique()
    tables = _columns_by_table(rows, services)
    instances = CheckedInputs(tables).instances_for(plain_values(services))
    numbers = _decide(names, instances, decider)
    starts = [0, *accumulate(len(timeline.rows) for timeline in decider.timelines)]
    timed = _timed_table(decider.timelines)
    # An Arrow array has at most 2 GiB of text.
    parts = [slice(first, first + _NAMES_AT_ONCE) for first in range(0, len(names), _NAMES_AT_ONCE)]
    return pyarrow.concat_tables(
        _expand(names.slice(part.start, _NAMES_AT_ONCE), numbers[part], starts, timed, decider) for part in parts
    )


def _columns_by_table(rows: pyarrow.Table, services: pyarrow.Array) -> dict[str, TableColumns]:
    """Split the rows of `in_one_table` that concern one of these services into tables."""
    import pyarrow
    import pyarrow.compute as pc

    for_all = pyarrow.array([name for name in FOR_ALL if name is not None], services.type)
    concerned, tables = pyarrow.concat_arrays([services, for_all]), {}
    for key in DECIDING:
        is_wanted = pc.equal(rows[TABLE], key)
        if key in SERVICE_OF:
            service = rows[SERVICE_OF[key]]
            is_wanted = pc.and_(is_wanted, pc.or_(pc.is_null(service), pc.is_in(service, concerned)))
        schema = INPUTS[key]
        present = {name: name for name in schema.names if name in rows.column_names}
        tables[key] = columns_in(rows_where(rows, is_wanted), schema, present)
    return tables


def _decide(names: pyarrow.Table, instances: Mapping[str, SqlInstance], decider: KeyDecider) -> list[int | None]:
    """Return the place of the timeline of each row of names, or None if their database is unknown."""
    numbers = list["int | None"]()
    columns = [values_of(names[field.name], field.kind) for field in (*NAMES, *COUNTS)]
    with no_search_for_cycles():
        for name, database, service, broker, is_initiator, _, valid in zip(*columns, strict=True):
            instance = instances.get(name)
            if not valid or instance is None or (database != FROM_NETWORK and database not in instance.databases):
                numbers.append(None)
                continue
            sender = database or None
            numbers.append(decider.decide_one(_key_of(instance, sender, service, broker, is_initiator), instance))
    return numbers


def _key_of(instance: SqlInstance, sender: str | None, service: str, broker: str, is_initiator: Any) -> RoutingKey:
    key = RoutingKey.of_names(instance, sender, service, broker or None, is_initiator=is_initiator)
    return key._replace(broker=named_broker(instance, key.scope, service, key.broker))


def _expand(
    names: pyarrow.Table,
    numbers: Sequence[int | None],
    starts: Sequence[int],
    timed: pyarrow.Table,
    decider: KeyDecider,
) -> pyarrow.Table:
    """Repeat each row of names for the rows of its timeline. ``starts`` has the first row of each timeline."""
    import pyarrow
    import pyarrow.compute as pc

    places, timed_places, are_first = list[int](), list["int | None"](), list[bool]()
    for place, number in enumerate(numbers):
        rows: Iterable[int | None] = [None] if number is None else range(starts[number], starts[number + 1])
        before = len(timed_places)
        timed_places += rows
        count = len(timed_places) - before
        places += [place] * count
        are_first += [True, *[False] * (count - 1)]
    columns = names.take(pyarrow.array(places, pyarrow.int64()))
    choices = timed.take(pyarrow.array(timed_places, pyarrow.int64()))
    is_first = pyarrow.array(are_first, pyarrow.bool_())
    arrays = [
        *(columns[field.name].cast(arrow_type(field.kind)) for field in NAMES),
        pc.is_valid(choices["choices"]),
        *(choices[name] for name in _TIMED.names),
        *(pc.if_else(is_first, columns[name], 0) for name in COUNTS.names),
        *(pyarrow.repeat(pyarrow.scalar(is_used), len(places)) for is_used in asdict(decider.uses).values()),
    ]
    return pyarrow.table(arrays, schema=arrow_schema(DECIDED_NAMES))


def _timed_table(timelines: Sequence[TimelineRows]) -> pyarrow.Table:
    """Return the rows of all timelines with the columns of `_TIMED`."""
    import pyarrow

    rows = [row for timeline in timelines for row in timeline.rows]
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [[]] * len(_TIMED)
    kinds = arrow_schema(_TIMED)
    arrays = [pyarrow.array(column, kind.type) for column, kind in zip(columns, kinds, strict=True)]
    return pyarrow.table(arrays, schema=kinds)
