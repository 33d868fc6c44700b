"""Workers decide many names or a large configuration by instance, with the same rows and errors as the driver."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from routing.errors import EnvironmentFault
from routing.messages import setting_frames
from routing.messages.compiling import open_source
from routing.messages.distributed_plan import decide_by_instance
from routing.messages.setting_frames import DistributedInputs, open_settings
from routing.messages.validate import check, read
from routing.plan.instance_plans import NAMES
from routing.run_context import ResolveOptions, RunContext
from routing.runs.pipeline import resolve_with
from routing.schemas import INPUTS, SETTINGS
from routing.tables.cached_frames import FrameCache, FrameLimits
from routing.tables.frames import has_arrow
from routing.tables.spark_forms import conform
from tests.estate_rows import SALES, message, small_estate
from tests.frames import Tables, arrow_of, frames, rows_of, with_moments
from tests.random_estates import RUN_ID, SEED, assert_same
from tests.reference.estates import draw_estates, joined
from tests.reference.resolver import resolve as reference
from tests.spark.conftest import changed_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.tables.table_columns import Table

WORKERS_DECIDE = "before pyspark 4.0 the driver decides"
# With these limits, every instance is too large for one task.
SPLIT = FrameLimits(driver_rows=0, part_rows=3)
MANY_NAMES = FrameLimits(driver_rows=0, held_rows=-1, client_rows=-1)


def _estates(count: int = 3, messages: int = 40) -> Tables:
    """Return random estates, and a message without an instance."""
    tables = joined(draw_estates(random.Random(SEED), count, messages))
    lost = {**message(999_999, SALES), "instance_name": None}
    return with_moments({**tables, "messages": [*tables["messages"], lost]})


def _resolve(
    spark: SparkSession, tables: Tables, limits: FrameLimits, **options: str
) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    context = RunContext(ResolveOptions(RUN_ID, **options))  # type: ignore[arg-type]
    done = resolve_with(dict(frames(spark, tables)), context, limits)
    try:
        keys = ("resolved_routes", "new_route_requests", "rejected_messages")
        return {key: rows_of(getattr(done, key)) for key in keys}, context.notes
    finally:
        done.unpersist()


def _assert_as_reference(rows: dict[str, list[dict[str, Any]]], tables: Tables) -> None:
    expected = reference(tables, run_id=RUN_ID)
    for key, got in rows.items():
        assert_same(got, getattr(expected, key), key)


@pytest.mark.parametrize(
    ("limits", "broadcast_limit"),
    [
        pytest.param(SPLIT, "512MB", id="split by service", marks=pytest.mark.core),
        pytest.param(SPLIT, "1B", id="nothing fits", marks=pytest.mark.long),
        pytest.param(MANY_NAMES, "512MB", id="many names", marks=pytest.mark.long),
    ],
)
def test_rows_are_those_of_the_reference(spark: SparkSession, limits: FrameLimits, broadcast_limit: str) -> None:
    tables = _estates()
    rows, _ = _resolve(spark, tables, limits, broadcast_limit=broadcast_limit)
    _assert_as_reference(rows, tables)


def test_a_message_without_an_instance_is_rejected_over_the_limit(spark: SparkSession) -> None:
    lost = {**message(2, SALES), "instance_name": None}
    tables = with_moments({**small_estate(), "messages": [message(1, SALES), lost]})
    rows, _ = _resolve(spark, tables, FrameLimits(), broadcast_limit="1B")
    _assert_as_reference(rows, tables)


def test_many_keys_of_a_small_configuration(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_arrow():
        pytest.skip(WORKERS_DECIDE)
    tables = _estates(2, 200)
    rows = sum(len(tables[key]) for key in tables if key not in ("messages", "dialogs"))
    asked = []
    prepare = setting_frames.prepare_frames

    def watched(*arguments: Any) -> Any:
        asked.append(arguments)
        return prepare(*arguments)

    monkeypatch.setattr("routing.messages.compiling.prepare_frames", watched)
    # The configuration just fits the driver, and each added message has another key.
    names = [{**tables["messages"][0], "message_id": str(n), "to_service_name": str(n)} for n in range(3)]
    for limits, expected in ((FrameLimits(driver_rows=rows), 1), (FrameLimits(), 0)):
        asked.clear()
        many = {**tables, "messages": [*tables["messages"], *names]}
        _assert_as_reference(_resolve(spark, many, limits)[0], many)
        assert len(asked) == expected


def _decided(spark: SparkSession, tables: Tables, limits: FrameLimits) -> list[dict[str, Any]]:
    input_tables: dict[str, Table] = {**frames(spark, tables)}
    with FrameCache(limits) as cache:
        inputs = read(input_tables, limits, partial(open_settings, input_tables, spark))
        checked = check(inputs)
        messages = conform(frames(spark, tables)["messages"], "messages")
        source = open_source(messages, checked, RunContext(ResolveOptions(RUN_ID)), cache)
        assert isinstance(checked, DistributedInputs)
        return rows_of(decide_by_instance(source, inputs.frames).names.rows)


def test_a_split_instance_has_the_same_plan(spark: SparkSession) -> None:
    if not has_arrow():
        pytest.skip(WORKERS_DECIDE)
    tables = _estates(4, 60)
    whole, split = (_decided(spark, tables, FrameLimits(driver_rows=0, part_rows=n)) for n in (10**9, 2))
    assert len(whole) > 100
    assert any(row["plan_from"] is not None for row in whole)
    assert_same(split, whole, "decided names")
    names = {tuple(row[name] for name in NAMES.names) for row in whole}
    bounds = {(*(row[name] for name in NAMES.names), row["plan_from"]) for row in whole}
    assert len(bounds) == len(whole) > len(names)


def test_times_without_a_zone_are_in_utc(spark: SparkSession) -> None:
    """This also applies to Arrow tables with a column of a type that Spark lacks."""
    import pyarrow

    tables = with_moments(joined(draw_estates(random.Random(SEED), 2, 40)))
    input_tables: dict[str, Table] = {**frames(spark, tables)}
    for key in SETTINGS:
        rows = arrow_of(tables[key], INPUTS[key])
        for place, field in enumerate(rows.schema):
            if pyarrow.types.is_timestamp(field.type):
                naive = rows[field.name].cast(pyarrow.timestamp("us"))
                rows = rows.set_column(place, field.with_type(naive.type), naive)
        more = pyarrow.array([1] * len(rows), pyarrow.uint8())
        input_tables[key] = rows.append_column("more", more)
    assert any(row.get("valid_from") for row in tables["routes"])
    context = RunContext(ResolveOptions(RUN_ID))
    with changed_settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        done = resolve_with(input_tables, context, SPLIT)
        try:
            _assert_as_reference({"resolved_routes": rows_of(done.resolved_routes)}, tables)
        finally:
            done.unpersist()


def test_without_python_workers_the_driver_decides(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_arrow():
        pytest.skip(WORKERS_DECIDE)

    def refuse(_: SparkSession) -> None:
        raise EnvironmentFault.no_workers("no Python here")

    monkeypatch.setattr(setting_frames, "prepare_workers", refuse)
    tables = _estates(2, 20)
    rows, notes = _resolve(spark, tables, FrameLimits(driver_rows=0))
    _assert_as_reference(rows, tables)
    assert len({note for note in notes if "no Python here" in note}) == 1
    assert notes[0].startswith("the driver decides all routing keys: ")
