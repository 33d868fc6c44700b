"""Names of an instance are decided alike in one task and in parts, apart from their order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from routing.plan.checked_inputs import FOR_ALL
from routing.plan.instance_plans import (
    COUNTS,
    DECIDED_NAMES,
    DECIDING,
    NAMES,
    SERVICE_OF,
    TABLE,
    check_rows,
    decide_names,
)
from routing.schemas import INPUTS, Schema
from routing.tables.arrow_rows import arrow_schema
from tests.frames import arrow_of
from tests.reference.estates import draw_estates

if TYPE_CHECKING:
    import pyarrow

    from tests.frames import Tables

pyarrow = pytest.importorskip("pyarrow")
SEED = 20261129


def _rows(tables: Tables, instance: str) -> pyarrow.Table:
    """The rows of an instance with the columns of all tables."""
    parts = []
    for key in DECIDING:
        rows = arrow_of([row for row in tables[key] if row["instance_name"] == instance], INPUTS[key])
        parts.append(rows.append_column(TABLE, pyarrow.array([key] * len(rows), pyarrow.string())))
    return pyarrow.concat_tables(parts, promote_options="default")


def _names(tables: Tables, instance: str) -> pyarrow.Table:
    found = {
        (
            instance,
            row.get("database_name") or "",
            row.get("to_service_name"),
            (row.get("to_broker_instance") or "").strip("{} ").lower(),
            row.get("is_initiator"),
        )
        for row in tables["messages"]
        if row["instance_name"] == instance
    }
    schema = Schema((*NAMES, *COUNTS))
    rows = [(*names, 2, 2 if names[2] and names[-1] is not None else 0) for names in sorted(found, key=str)]
    columns = zip(*rows, strict=True)
    kinds = arrow_schema(schema.optional())
    return pyarrow.table([pyarrow.array(c, k.type) for c, k in zip(columns, kinds, strict=True)], schema=kinds)


def _part_of(rows: pyarrow.Table, names: pyarrow.Table, wanted: set[Any]) -> pyarrow.Table:
    """Decide the names to some services by the rows that concern these."""

    def concerns(row: dict[str, Any]) -> bool:
        column = SERVICE_OF.get(row[TABLE])
        return column is None or row[column] in FOR_ALL or row[column] in wanted

    own_rows = rows.take(
        pyarrow.array([n for n, row in enumerate(rows.to_pylist()) if concerns(row)], pyarrow.int64())
    )
    services = names["to_service_name"].to_pylist()
    places = [n for n, service in enumerate(services) if service in wanted]
    return decide_names(names.take(pyarrow.array(places, pyarrow.int64())), own_rows)


def test_parts_by_service_are_equal_to_the_whole() -> None:
    rng = random.Random(SEED)
    compared = choices = 0
    for tables in draw_estates(rng, 8, 60):
        for instance in sorted({row["instance_name"] for row in tables["instances"]}):
            rows = _rows(tables, instance)
            if not any(row["instance_name"] == instance for row in tables["messages"]):
                continue
            names = _names(tables, instance)
            whole = decide_names(names, rows)
            assert whole.schema.names == DECIDED_NAMES.names
            assert sum(whole["rows"].to_pylist()) == 2 * len(names)
            services = sorted(set(names["to_service_name"].to_pylist()), key=str)
            parts = [_part_of(rows, names, {service}) for service in services]
            read = [*NAMES.names, "scope_is_known", "plan_from", "valid_to", "choices", *COUNTS.names]
            joined = pyarrow.concat_tables(parts).select(read).to_pylist()
            assert sorted(map(str, joined)) == sorted(map(str, whole.select(read).to_pylist()))
            compared += len(joined)
            choices += sum(len(row["choices"] or ()) > 1 for row in joined)
    assert compared > 200
    assert choices > 5


def test_names_of_an_unknown_instance_have_no_choices() -> None:
    [tables] = draw_estates(random.Random(SEED), 1, 30)
    instance = tables["messages"][0]["instance_name"]
    names = _names(tables, instance)
    decided = decide_names(names, _rows(tables, "nobody"))
    assert decided.num_rows == len(names)
    assert set(decided["scope_is_known"].to_pylist()) == {False}
    assert decided["choices"].null_count == len(names)
    nothing = decide_names(names.slice(0, 0), _rows(tables, instance))
    assert nothing.num_rows == 0


def test_names_of_any_bytes_are_decided_like_unknown_ones() -> None:
    """Their messages are rejected later. No text of the others is lost."""
    [tables] = draw_estates(random.Random(SEED), 1, 30)
    instance = tables["messages"][0]["instance_name"]
    names = _names(tables, instance)
    place = names.schema.names.index("to_service_name")
    services = [value.encode() for value in names["to_service_name"].to_pylist()]
    bad = pyarrow.array([b"\xff\xfe", *services[1:]], pyarrow.binary()).cast(pyarrow.string(), safe=False)
    spoilt = names.set_column(
        place, names.schema.field(place), pyarrow.Array.from_buffers(pyarrow.string(), len(bad), bad.buffers())
    )
    decided, whole = decide_names(spoilt, _rows(tables, instance)), decide_names(names, _rows(tables, instance))
    known_names = services[1:]
    after, before = (
        [
            (row, choices)
            for row, choices in zip(
                table["to_service_name"].cast(pyarrow.binary()).to_pylist(),
                table["choices"].to_pylist(),
                strict=True,
            )
            if row in known_names and row != services[0]
        ]
        for table in (decided, whole)
    )
    assert after == before
    assert b"\xff\xfe" in decided["to_service_name"].cast(pyarrow.binary()).to_pylist()


def test_a_part_without_rows_has_no_faults() -> None:
    assert list(check_rows("routes", [])) == []
