"""Small frames as rows of the driver have the same rows, and large frames stay unchanged."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import routing
from routing.tables import cached_frames, frames
from routing.tables.cached_frames import FRAME_LIMITS, FrameCache, FrameLimits, released_on_failure
from tests import askers
from tests.estate_rows import instance, route
from tests.frames import frame_of
from tests.frames import frames as frames_of
from tests.plans import printed_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# This hour occurs twice in New York, the time zone of the tests' session.
TWICE = datetime(2026, 11, 1, 6, 30, 0, 123456, tzinfo=timezone.utc)
ROUTES = [route("R", None, "LOCAL", valid_from=TWICE), route("S", None, "LOCAL")]
INSTANCES = [
    instance("hub", "tcp://hub:4022", is_message_forwarding_enabled=True),
    instance("spoke"),
    instance("third", addresses=[]),
]

# With this limit, tables of three rows are too large to be held.
HELD_TWO = FrameLimits(held_rows=2)


def _whole(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    return [{name: row.get(name) for name in names} for row in rows]


def test_rows_held_by_the_client_equal_the_source(spark: SparkSession) -> None:
    from routing.schemas import INSTANCES as INSTANCES_SCHEMA
    from routing.schemas import ROUTES as ROUTES_SCHEMA

    stored_frames = {
        "routes": frame_of(spark, ROUTES, ROUTES_SCHEMA).coalesce(1),
        "instances": frame_of(spark, INSTANCES, INSTANCES_SCHEMA).coalesce(1),
    }
    held_frames = {key: FrameCache(HELD_TWO).hold(frame) for key, frame in stored_frames.items()}
    assert frames.rows_of(held_frames["routes"]) == _whole(ROUTES, ROUTES_SCHEMA.names)
    # At most two rows are held.
    assert held_frames["instances"] is stored_frames["instances"]
    assert (held_frames["routes"] is stored_frames["routes"]) is not frames.has_arrow()
    with FrameCache(HELD_TWO) as frame_cache:
        kept_frames = {key: frame_cache.keep(frame) for key, frame in stored_frames.items()}
        assert frames.rows_of(kept_frames["instances"]) == _whole(INSTANCES, INSTANCES_SCHEMA.names)
        assert frames.rows_of(kept_frames["routes"]) == _whole(ROUTES, ROUTES_SCHEMA.names)
        # Without Arrow, the frame of two rows is kept as well.
        assert [frame is kept_frames["instances"] for frame in frame_cache.frames] == [False] * (
            not frames.has_arrow()
        ) + [True]
        assert kept_frames["instances"].storageLevel.useMemory
        assert not stored_frames["routes"].storageLevel.useMemory
    assert not frame_cache.frames
    assert not stored_frames["instances"].storageLevel.useMemory


def test_long_rows_are_not_held_by_the_client(spark: SparkSession) -> None:
    """A few rows may have many bytes, for example in one long name."""
    from routing.schemas import INSTANCES as INSTANCES_SCHEMA

    names = INSTANCES_SCHEMA.names
    bytes_of_them: dict[str, dict[str, Any]] = {
        "a name": {"instance_name": "é" * 25, "addresses": None},
        "an element": {"instance_name": "n", "addresses": ["", "a" * 50]},
    }
    for what, columns in bytes_of_them.items():
        row = {**INSTANCES[1], **columns}
        short = {**row, "instance_name": row["instance_name"][:5], "addresses": None}
        long = {**row, "instance_name": row["instance_name"] + "x"}
        few, many = (frame_of(spark, [short, last], INSTANCES_SCHEMA).coalesce(1) for last in (short, long))
        with FrameCache(FrameLimits(held_bytes=50)) as frame_cache:
            assert (frame_cache.hold(few) is few) is not frames.has_arrow(), what
            assert frame_cache.hold(many) is many, what
            assert frames.rows_of(frame_cache.keep(many)) == _whole([short, long], names), what
            assert frame_cache.frames, what


def test_without_caching_the_client_holds_small_frames(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from routing.schemas import INSTANCES as INSTANCES_SCHEMA

    monkeypatch.setattr(cached_frames, "takes_persist", lambda spark: False)
    for has_arrow in {False, frames.has_arrow()}:
        monkeypatch.setattr(cached_frames, "has_arrow", lambda known=has_arrow: known)
        three = frame_of(spark, INSTANCES, INSTANCES_SCHEMA).coalesce(1)
        four = frame_of(spark, [*INSTANCES, INSTANCES[0]], INSTANCES_SCHEMA).coalesce(1)
        # 31 bytes of text, arrays as they are printed, and 8 for each of nine values.
        for most, size, fits in ((3, 103, True), (2, 103, False), (3, 102, False)):
            limits = FrameLimits(held_rows=2, client_rows=most, client_bytes=size)
            with FrameCache(limits) as frame_cache:
                cached = frame_cache.keep_sized(three)
                assert (cached.rows is not three) is fits, (most, size)
                assert (cached.size is not None) is fits
                assert frames.rows_of(cached.rows) == _whole(INSTANCES, INSTANCES_SCHEMA.names)
                assert frame_cache.keep(four) is four
                assert frame_cache.store(three) is three
                assert not frame_cache.frames


def test_a_client_carries_much_less_than_it_may_send() -> None:
    """Serverless compute accepts 128 MB of local data at a time."""
    assert FRAME_LIMITS.client_bytes * 3 < 128_000_000
    assert FRAME_LIMITS.held_rows * FRAME_LIMITS.held_bytes < 128_000_000


@pytest.mark.core
def test_kept_frames_are_computed_once(spark: SparkSession, tmp_path: Path) -> None:
    """The frame is kept in a classic session and on Spark Connect, because its rows outlive the table's files."""
    from routing.schemas import INSTANCES as INSTANCES_SCHEMA

    table = tmp_path / "instances"
    frame_of(spark, INSTANCES, INSTANCES_SCHEMA).coalesce(1).write.parquet(str(table))
    read = spark.read.parquet(str(table))
    with FrameCache(HELD_TWO) as frame_cache:
        cached = frame_cache.keep(read)
        is_kept = [cached.storageLevel.useMemory]
        for file in table.glob("part-*"):
            file.unlink()
        for _ in range(2):
            assert frames.rows_of(cached) == _whole(INSTANCES, INSTANCES_SCHEMA.names)
    is_kept.append(cached.storageLevel.useMemory)
    assert is_kept == [True, False]
    with pytest.raises(Exception, match=r"part-"):
        frames.rows_of(cached)


def _with_and_without_arrow() -> list[bool]:
    return sorted({False, frames.has_arrow()})


@pytest.mark.core
def test_few_rows_are_kept_exactly(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The values include bytes without a Python text, the first and last time, and a repeated hour."""
    micros = [-62135596800000000, 253402300799999999, 1793514600123456, None]
    flat = spark.range(4).selectExpr(
        "id",
        f"timestamp_micros(element_at(array({', '.join(map(str, micros[:3]))}, null), int(id + 1))) AS time",
        "CAST(unhex(element_at(array('C3A9', 'E9FF', '', null), int(id + 1))) AS STRING) AS text",
    )
    struct = "CASE WHEN id < 3 THEN struct(time, text, CAST(null AS TIMESTAMP) AS ended_at) END"
    nested = flat.selectExpr("*", f"{struct} AS one", f"array({struct}, null) AS many", "array(text) AS texts")
    form = [
        "id",
        "unix_micros(time) AS time",
        "hex(CAST(text AS BINARY)) AS text",
        "one IS NULL AS is_null",
        "unix_micros(one.time) AS own_time",
        "transform(many, one -> concat_ws(' ', unix_micros(one.time), hex(CAST(one.text AS BINARY)))) AS many",
        "hex(CAST(texts[0] AS BINARY)) AS first",
        "one.ended_at IS NULL AND many[1] IS NULL AS lack",
    ]
    hexed = ["C3A9", "E9FF", "", None]
    expected = [
        (place, time, text, place == 3, time, [f"{time} {text}" if place < 3 else "", ""], text, True)
        for place, (time, text) in enumerate(zip(micros, hexed, strict=True))
    ]
    for has_arrow in _with_and_without_arrow():
        monkeypatch.setattr(cached_frames, "has_arrow", lambda known=has_arrow: known)
        with FrameCache() as frame_cache:
            cached = frame_cache.keep(nested)
            assert cached.schema.simpleString() == nested.schema.simpleString()
            assert [tuple(row) for row in cached.selectExpr(*form).orderBy("id").collect()] == expected, has_arrow


@pytest.mark.core
def test_few_rows_are_kept_without_the_plan_that_made_them(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the plan of a kept frame would include those of all kept frames that it reads, repeatedly."""
    for has_arrow in _with_and_without_arrow():
        monkeypatch.setattr(cached_frames, "has_arrow", lambda known=has_arrow: known)
        lengths = []
        with FrameCache() as frame_cache:
            cached = frame_cache.keep(spark.range(3).groupBy("id").count())
            for _ in range(3):
                cached = frame_cache.keep(
                    cached.join(cached.groupBy("id").agg({"count": "max"}), "id").groupBy("id").count()
                )
                lengths.append(len(printed_plan(cached)))
        assert lengths[-1] < lengths[0] * 1.5, (has_arrow, lengths)
        assert lengths[-1] < 3000, (has_arrow, lengths)


# test_not_utf8 limits the printed plans of runs. The test above covers kept frames that read each other.
@pytest.mark.long
def test_many_requests_print_no_longer_plans_than_few(spark: SparkSession) -> None:
    """Requests are in databases and in msdb, on record and new. Each of these frames reads the earlier ones."""
    case = next(one for one in askers.CASES if one.record and any(m.database == "Parts" for m in one.messages))
    tables = frames_of(spark, askers.estate_of(case))
    lengths = []
    for count in (300, 30_000):
        own = {
            "message_id": F.concat(F.lit("many"), "id"),
            "to_service_name": F.concat(F.lit("//many/"), "id"),
            "database_name": F.when(F.col("id") % 2 == 0, "Sales").otherwise("Parts"),
        }
        many = tables["messages"].limit(1).crossJoin(spark.range(count)).withColumns(own).drop("id")
        done = routing.resolve(spark, {**tables, "messages": tables["messages"].unionByName(many)})
        try:
            lengths.append(len(printed_plan(done.resolved_routes)))
            asked = done.new_route_requests.where(F.col("service_name").startswith("//many/"))
            assert asked.count() == count
        finally:
            done.unpersist()
    assert lengths[1] < lengths[0] * 1.2, lengths


def test_small_frames_are_held_by_the_client_up_to_its_limits(spark: SparkSession) -> None:
    from routing.schemas import INSTANCES as INSTANCES_SCHEMA

    three = frame_of(spark, INSTANCES, INSTANCES_SCHEMA).coalesce(1)
    # 31 bytes of text, arrays as they are printed, and 8 for each of nine values.
    for most, size, fits in ((3, 103, True), (2, 103, False), (3, 102, False)):
        limits = FrameLimits(held_rows=2, client_rows=most, client_bytes=size)
        with FrameCache(limits) as frame_cache:
            cached = frame_cache.keep_sized(three)
            assert (cached.size is not None) is fits, (most, size)
            assert three.storageLevel.useMemory is not fits
            assert bool(frame_cache.frames) is not (fits and frames.has_arrow())
            assert frames.rows_of(cached.rows) == _whole(INSTANCES, INSTANCES_SCHEMA.names)
            assert frame_cache.keep(three).storageLevel.useMemory


class _Watched(FrameCache):
    """Records whether anything was stored, even for a short time."""

    has_stored = False

    def store(self, frame: DataFrame) -> DataFrame:
        self.has_stored = True
        return super().store(frame)


@pytest.mark.parametrize(
    ("most_rows", "held_bytes", "is_stored"),
    [
        pytest.param(3, 4_000, False, id="few"),
        pytest.param(4, 4_000, True, id="perhaps more than are held"),
        pytest.param(3, 18, True, id="one of them long"),
        pytest.param(None, 4_000, True, id="nobody knows how many"),
    ],
)
def test_few_rows_are_read_without_being_stored(
    spark: SparkSession, most_rows: int | None, held_bytes: int, is_stored: bool
) -> None:
    """Storing takes a task for each shuffle partition, and reading takes few."""
    from routing.schemas import INSTANCES as INSTANCES_SCHEMA

    three = frame_of(spark, INSTANCES, INSTANCES_SCHEMA).coalesce(1)
    frame_cache = _Watched(FrameLimits(held_rows=3, held_bytes=held_bytes))
    with frame_cache:
        cached = frame_cache.keep_sized(three, most_rows)
        # Without Arrow, rows from Python workers are stored.
        assert frame_cache.has_stored is (is_stored or not frames.has_arrow())
        assert cached.size is not None
        assert frames.rows_of(cached.rows) == _whole(INSTANCES, INSTANCES_SCHEMA.names)


def test_a_failure_releases_kept_frames(spark: SparkSession) -> None:
    from routing.schemas import INSTANCES as INSTANCES_SCHEMA

    frame = frame_of(spark, INSTANCES, INSTANCES_SCHEMA).coalesce(1)

    def work() -> None:
        with FrameCache(HELD_TWO) as frame_cache:
            assert frame_cache.keep(frame).storageLevel.useMemory
            raise LookupError

    with pytest.raises(LookupError):
        work()
    assert not frame.storageLevel.useMemory


def test_a_cache_that_outlives_its_block_is_released_on_failure(spark: SparkSession) -> None:
    from routing.schemas import INSTANCES as INSTANCES_SCHEMA

    frame = frame_of(spark, INSTANCES, INSTANCES_SCHEMA).coalesce(1)

    def work(error: type[Exception] | None) -> FrameCache:
        with released_on_failure(HELD_TWO) as frame_cache:
            assert frame_cache.keep(frame).storageLevel.useMemory
            if error is not None:
                raise error
            return frame_cache

    kept = work(None)
    seen = [frame.storageLevel.useMemory]
    kept.release()
    seen.append(frame.storageLevel.useMemory)
    with pytest.raises(LookupError):
        work(LookupError)
    seen.append(frame.storageLevel.useMemory)
    assert seen == [True, False, False]


def test_run_concurrently_keeps_the_order_and_raises_errors(spark: SparkSession) -> None:
    assert frames.run_concurrently(spark, lambda n: n * n, [3, 1, 2]) == [9, 1, 4]
    assert frames.run_concurrently(spark, str, []) == []
    with pytest.raises(ZeroDivisionError):
        frames.run_concurrently(spark, lambda n: 1 // n, [1, 0])


def test_a_cache_waits_for_started_work_before_it_releases_its_frames(spark: SparkSession) -> None:
    is_entered, may_end, stored = Event(), Event(), list[bool]()

    def work() -> int:
        rows = cache.store(spark.range(3))
        is_entered.set()
        assert may_end.wait(60)
        stored.append(rows in cache.frames)
        return rows.count()

    with FrameCache() as cache:
        wait_for_count = cache.start(spark, work)
        assert is_entered.wait(60)
        Timer(0.2, may_end.set).start()
    assert stored == [True]
    assert cache.frames == []
    assert wait_for_count() == 3


def test_started_work_raises_its_error_to_the_thread_that_waits(spark: SparkSession) -> None:
    with FrameCache() as cache:
        wait = cache.start(spark, lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            wait()
