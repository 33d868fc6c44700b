"""Rows that a DELETE of messages rewrites are not new, and the outputs lose the right rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

import routing
from routing.config import ConfigError, TableLocation
from routing.delta.appended_rows import read_appended
from routing.delta.spark_tables import TableSnapshot
from routing.errors import InputError, RunError
from routing.messages import deletes
from routing.schemas import MESSAGES
from routing.tables import sql_statements
from routing.tables.spark_forms import conform
from tests.estate_rows import conversation, message, small_estate
from tests.frames import frame_of
from tests.hooks import Killed, hooked, kill, once
from tests.imports import rows_at
from tests.stored import config_of, save_estate, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

pytestmark = [pytest.mark.core, pytest.mark.matrix]
FEED, VECTORS = "'delta.enableChangeDataFeed' = 'true'", "'delta.enableDeletionVectors' = 'true'"
# Delta up to 4.0 refuses to truncate a table.
EMPTY = "DELETE FROM {t}" if pyspark.__version__ < "4.1" else "TRUNCATE TABLE {t}"
Row = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def post(spark: SparkSession) -> Iterator[str]:
    """Create a schema of the catalog."""
    spark.sql("CREATE SCHEMA deleted")
    yield "deleted"
    spark.sql("DROP SCHEMA deleted CASCADE")


@dataclass(frozen=True)
class Kind:
    """A table ``messages``: by path or by name, with its properties."""

    name: str
    is_name: bool = False
    properties: str = "'x' = 'y'"
    partitioned_by: str = ""

    def make(self, spark: SparkSession, folder: Path) -> TableLocation:
        """Create the table without rows."""
        location = (
            TableLocation(f"deleted.{self.name}", is_name=True)
            if self.is_name
            else TableLocation(str(folder / "messages"))
        )
        columns = ", ".join(f"{field.name} {field.kind}" for field in MESSAGES)
        parts = f"PARTITIONED BY ({self.partitioned_by})" if self.partitioned_by else ""
        table = sql_statements.sql_name(location)
        # Two tests may use a table of this name.
        spark.sql(f"DROP TABLE IF EXISTS {table}")
        spark.sql(f"CREATE TABLE {table} ({columns}) USING delta {parts} TBLPROPERTIES ({self.properties})")
        return location


KINDS = [
    Kind("vectors", properties=VECTORS, partitioned_by="to_service_name, enqueue_time"),
    Kind("fed", is_name=True, properties=f"{FEED}, {VECTORS}"),
    *(
        pytest.param(kind, marks=pytest.mark.long)
        for kind in (
            Kind("by_path"),
            Kind("fed_path", properties=f"{FEED}, {VECTORS}"),
            Kind("named", is_name=True, partitioned_by="database_name"),
        )
    ),
]


@dataclass
class Messages:
    """A table ``messages`` that tests change."""

    spark: SparkSession
    location: TableLocation

    @property
    def table(self) -> str:
        """Its name in SQL."""
        return str(sql_statements.sql_name(self.location))

    @property
    def version(self) -> int:
        """The newest version."""
        return int(self.spark.sql(f"DESCRIBE HISTORY {self.table} LIMIT 1").collect()[0]["version"])

    def append(self, *rows: Row, files: int = 1) -> None:
        """Append rows in one commit."""
        frame = frame_of(self.spark, list(rows), MESSAGES).repartition(files)
        frame.write.format("delta").mode("append").saveAsTable(self.table) if self.location.is_name else (
            frame.write.format("delta").mode("append").save(self.location.text)
        )

    def do(self, statement: str) -> None:
        """Run a statement, in which ``{t}`` is the table."""
        self.spark.sql(statement.format(t=self.table)).collect()

    def delete(self, *numbers: int) -> None:
        """Delete messages by number."""
        ids = ", ".join(f"'m{number}'" for number in numbers)
        self.do(f"DELETE FROM {{t}} WHERE message_id IN ({ids})")


# The changes of each table. The first one makes version 1.
TWINS = (message(7, "//far"), message(7, "//far"))
STEPS: list[Callable[[Messages], None]] = [
    lambda t: t.append(*(message(n, "//far") for n in range(6)), *TWINS, files=3),
    lambda t: t.append(message(8, "//stock"), message(9, "//far", database_name=None), message(3, "//other")),
    lambda t: t.delete(3),
    lambda t: t.do("OPTIMIZE {t}"),
    lambda t: t.append(message(10, "//far"), message(11, "//stock"), message(12, "//far")),
    # This deletes a row of the last append, and one of an earlier append.
    lambda t: t.delete(1, 10),
    lambda t: t.append(message(1, "//far"), message(13, "//far"), files=2),
    lambda t: t.delete(7, 8),
    lambda t: t.do("REORG TABLE {t} APPLY (PURGE)"),
    lambda t: t.do(EMPTY),
    lambda t: t.append(message(14, "//far"), message(2, "//far")),
]
SPANS = [(2, 6), (4, 6), (5, 8), (1, 9), (0, 10), (1, 11)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_new_and_deleted_rows_between_any_two_versions_are_found(
    spark: SparkSession, tmp_path: Path, kind: Kind
) -> None:
    """The result has exactly the rows that only one of the versions has, whatever operations caused this."""
    messages = Messages(spark, kind.make(spark, tmp_path))
    versions = [messages.version]
    for step in STEPS:
        step(messages)
        # OPTIMIZE and REORG may have nothing to do, and then add no version.
        versions.append(messages.version)
    stored = {
        step: Counter(tuple(row) for row in TableSnapshot(messages.location, versions[step]).read(spark).collect())
        for step in {step for span in SPANS for step in span}
    }
    for before, after in SPANS:
        snapshot = TableSnapshot(messages.location, versions[after])
        found = read_appended(spark, snapshot, versions[before])
        new = conform(found.rows, "messages")
        gone: Counter[Any] = Counter()
        if found.removed is not None:
            net = deletes.net_changes(new, conform(found.removed, "messages"))
            new = deletes.new_messages(net)
            gone = Counter(tuple(row) for row in net.where("_net < 0").drop("_net").collect())
        expected = stored[after] - stored[before], stored[before] - stored[after]
        # Net changes list each row once.
        found_rows = Counter(tuple(row) for row in new.collect()), gone
        assert (found_rows[0], set(found_rows[1])) == (expected[0], set(expected[1])), (kind.name, before, after)


@pytest.mark.parametrize(
    ("statement", "operation"),
    [
        ("UPDATE {t} SET hops_remaining = 1 WHERE message_id = 'm1'", "UPDATE"),
        (
            "MERGE INTO {t} AS t USING (SELECT 'm1' AS id) AS s ON t.message_id = s.id WHEN MATCHED THEN DELETE",
            "MERGE",
        ),
        ("INSERT OVERWRITE {t} SELECT * FROM {t} WHERE message_id = 'm1'", "WRITE"),
        ("RESTORE TABLE {t} TO VERSION AS OF 1", "RESTORE"),
    ],
    ids=["update", "merge", "overwrite", "restore"],
)
def test_other_operations_still_need_a_full_run(
    spark: SparkSession, tmp_path: Path, statement: str, operation: str
) -> None:
    """This also applies between deletes, both by the log and by the feed."""
    for kind in (Kind(f"refused_{operation}", properties=VECTORS), Kind(f"refused_{operation}", True, FEED)):
        messages = Messages(spark, kind.make(spark, tmp_path))
        messages.append(message(1, "//far"), message(2, "//far"), message(3, "//far"))
        since = messages.version
        messages.delete(2)
        messages.do(statement)
        messages.delete(3)
        expected = (
            rf"is neither an append nor a delete \({operation}\): it may have changed decided messages.*mode=full"
        )
        with pytest.raises(InputError, match=expected):
            read_appended(spark, TableSnapshot(messages.location, messages.version), since)


def test_deletes_with_vacuumed_files_need_a_full_run(spark: SparkSession, tmp_path: Path) -> None:
    messages = Messages(spark, Kind("gone").make(spark, tmp_path))
    messages.append(message(1, "//far"), message(2, "//far"))
    before = list((tmp_path / "messages").glob("*.parquet"))
    messages.delete(2)
    for file in before:
        file.unlink()
    with pytest.raises(InputError, match=r"removed from it since the last run have been vacuumed .*mode=full"):
        read_appended(spark, TableSnapshot(messages.location, 2), 1)


# Whole runs.


@dataclass
class Job:
    """A job over such a table, with its outputs."""

    messages: Messages
    config: Config

    def run(self, run_id: str, hour: int, **options: Any) -> routing.Run:
        """Run once."""
        now = datetime(2026, 1, 5, hour, tzinfo=timezone.utc)
        return routing.run(self.messages.spark, self.config, run_id=run_id, now=now, **options)

    def rows(self, key: str) -> list[Row]:
        """Return the rows of an output."""
        return rows_at(self.config.output[key])

    def ids(self, key: str, *others: str) -> list[Any]:
        """Return the message ids in an output, with any other columns."""
        found = [tuple(row[name] for name in ("message_id", *others)) for row in self.rows(key)]
        return sorted(row if others else row[0] for row in found)


def _job(spark: SparkSession, folder: Path, kind: Kind, mode: str = "incremental") -> Job:
    estate = small_estate()
    del estate["messages"]
    save_estate(estate, folder / "in", files=1)
    location = kind.make(spark, folder / "in")
    messages = Messages(spark, location)
    messages.append(*FIRST, files=2)
    named = {"messages": Path(location.text)} if not location.is_name else {}
    overrides = [f"tables.messages=spark_catalog.{location.text}"] if location.is_name else []
    pending = f"output.pending_messages={folder / 'out' / 'pending_messages'}"
    changed = (f"resolve.mode={mode}", pending, *overrides)
    return Job(messages, config_of(folder / "in", folder / "out", *changed, **named))


FIRST = [
    message(1, "//stock"),
    message(2, "//far"),
    # Each asks for a route, and the conversation of m4 finds the request of m3 pending.
    message(3, "//nowhere"),
    message(4, "//nowhere", enqueue_time="2026-01-05T12:10:00Z"),
    message(5, "//never"),
    message(6, "//far", conversation_id="no guid"),
    # Two messages with one id, and one message that is stored twice.
    message(7, "//far"),
    message(7, "//far", conversation_id=conversation(70), enqueue_time="2026-01-05T12:30:00Z"),
    message(8, "//far"),
    message(8, "//far"),
    message(9, "//far", instance_name="spoke"),
]
JOBS = [
    Kind("job_vectors", properties=VECTORS),
    pytest.param(Kind("job_fed", True, f"{FEED}, {VECTORS}"), marks=pytest.mark.long),
]


@pytest.mark.parametrize("kind", JOBS, ids=lambda kind: kind.name)
def test_rows_of_deleted_messages_stay_without_erase(spark: SparkSession, tmp_path: Path, kind: Kind) -> None:
    job = _job(spark, tmp_path, kind)
    job.run("first", 13)
    assert job.ids("pending_messages") == ["m3", "m4", "m5"]
    decided = job.rows("resolved_routes")
    job.messages.append(message(10, "//far"), message(11, "//far"))
    # One delayed and one decided message, and one that no run has seen.
    job.messages.delete(1, 3, 10)
    job.messages.do("OPTIMIZE {t}")
    done = job.run("second", 14)
    counts = ("rows_read", "rows_resolved", "rows_unchanged", "rows_erased")
    assert [done.row[name] for name in counts] == [3, 1, 2, None]
    assert [note for note in done.notes if "2 messages were deleted from tables.messages" in note]
    assert job.ids("pending_messages") == ["m4", "m5"]
    later = [row for row in job.rows("resolved_routes") if row["run_id"] == "second"]
    assert [(row["message_id"], row["attempt"]) for row in later] == [("m11", 1)]
    assert [row for row in decided if row not in job.rows("resolved_routes")] == []
    assert "m3" in job.ids("new_route_requests")
    # No message is new or tried again, but the deleted delayed messages must go.
    job.messages.delete(4, 5)
    idle = job.run("idle", 15)
    assert (idle.row["rows_read"], job.rows("pending_messages")) == (0, [])
    job.messages.do(EMPTY)
    assert job.run("empty", 16).row["rows_read"] == 0
    # A message that is appended again is a duplicate, because its row stayed.
    job.messages.append(message(1, "//stock"))
    assert job.run("again", 17).row["rows_rejected"] == 1


@pytest.mark.parametrize("kind", JOBS, ids=lambda kind: kind.name)
def test_erase_deletes_the_rows_of_deleted_messages(spark: SparkSession, tmp_path: Path, kind: Kind) -> None:
    job = _job(spark, tmp_path, kind)
    job.run("first", 13)
    assert job.ids("new_route_requests") == ["m3", "m5"]
    assert job.ids("rejected_messages") == ["m6", "m7", "m8", "m9"]
    # Of two messages with one id, only the first is deleted, which was decided.
    job.messages.do(f"DELETE FROM {{t}} WHERE conversation_id = '{conversation(7)}'")
    job.messages.delete(2, 3, 6)
    done = job.run("erasing", 14, erase=True)
    # The resolved rows of m2, m3 and m7, the pending row of m3, its request, and the rejected row of m6.
    assert done.row["rows_erased"] == 6
    # The request of m3 is gone, so m4 asks.
    assert (done.row["rows_unchanged"], done.row["reason_counts"]) == (1, {"ROUTE_REQUESTED": 1})
    assert job.ids("resolved_routes", "attempt") == [("m1", 1), ("m4", 1), ("m4", 2), ("m5", 1), ("m8", 1)]
    assert job.ids("pending_messages") == ["m4", "m5"]
    assert job.ids("rejected_messages", "conversation_id") == [
        ("m7", conversation(70)),
        ("m8", conversation(8)),
        ("m9", conversation(9)),
    ]
    assert job.ids("new_route_requests") == ["m4", "m5"]
    # A retry does nothing. A run with other options is not a retry.
    files = written(tmp_path / "out")
    assert job.run("erasing", 14, erase=True).was_recorded
    assert written(tmp_path / "out") == files
    with pytest.raises(RunError, match="--erase was not given and is given"):
        job.run("first", 13, erase=True)
    # The deleted message has been appended again, so it still exists.
    job.messages.do("DELETE FROM {t} WHERE message_id = 'm8'")
    job.messages.append(message(8, "//far"))
    erasing = job.run("kept", 15, erase=True)
    assert (erasing.row["rows_erased"], "m8" in job.ids("resolved_routes")) == (0, True)
    # An erased message that is appended again is new.
    job.messages.append(message(2, "//far"))
    again = job.run("again", 16, erase=True)
    assert (again.row["rows_rejected"], ("m2", 1) in job.ids("resolved_routes", "attempt")) == (0, True)
    job.messages.do(EMPTY)
    emptied = job.run("emptied", 17, erase=True)
    assert emptied.row["rows_erased"] > 0
    assert {key: job.rows(key) for key in job.config.output if key != "runs"} == {
        key: [] for key in job.config.output if key != "runs"
    }
    # An older version still has the erased rows.
    recorded = done.row["output_versions"]["resolved_routes"]
    resolved = TableSnapshot(job.config.output["resolved_routes"], recorded).read(spark)
    assert resolved.where("message_id = 'm4'").count() == 2


@pytest.mark.long
def test_deletes_are_followed_after_a_full_run(spark: SparkSession, tmp_path: Path) -> None:
    """A full run keeps no pending_messages. Delayed messages are found in its rows, except deleted ones."""
    job = _job(spark, tmp_path, Kind("after_full", properties=VECTORS))
    job.run("first", 13)
    pending = f"output.pending_messages={tmp_path / 'out' / 'pending_messages'}"
    messages = tmp_path / "in" / "messages"
    full = config_of(tmp_path / "in", tmp_path / "out", "resolve.mode=full", pending, messages=messages)
    routing.run(spark, full, run_id="full")
    job.messages.delete(3, 4, 5)
    done = job.run("erasing", 14, erase=True)
    # Three resolved rows, the three pending rows that the first run left, and two requests.
    assert (done.row["rows_read"], done.row["rows_erased"]) == (0, 8)
    assert (job.rows("pending_messages"), job.rows("new_route_requests")) == ([], [])
    assert job.run("next", 15).row["rows_read"] == 0


@pytest.mark.long
@pytest.mark.parametrize("point", ["erased resolved_routes", "before runs"])
def test_killed_while_it_erases(spark: SparkSession, tmp_path: Path, point: str) -> None:
    """The next run restores the erased rows, and erases them again if it has this option."""
    job = _job(spark, tmp_path, Kind("killed"))
    job.run("first", 13)
    left = {key: job.rows(key) for key in job.config.output}
    job.messages.delete(2, 3)
    for _ in range(2):
        with hooked(once(point, kill)), pytest.raises(Killed):
            job.run("killed", 14, erase=True)
    assert "m2" not in job.ids("resolved_routes")
    if point == "before runs":
        done = job.run("plain", 14)
        assert [note for note in done.notes if "was brought back to version" in note]
        assert (job.ids("pending_messages"), done.row["rows_erased"]) == (["m4", "m5"], None)
        assert [row for row in left["resolved_routes"] if row not in job.rows("resolved_routes")] == []
        return
    done = job.run("killed", 14, erase=True)
    assert done.row["rows_erased"] == 4
    assert job.ids("resolved_routes", "attempt") == [
        *(("m1", 1), ("m4", 1), ("m4", 2), ("m5", 1), ("m7", 1), ("m8", 1)),
    ]


def test_only_an_incremental_run_erases(spark: SparkSession, tmp_path: Path) -> None:
    job = _job(spark, tmp_path, Kind("full_mode"), mode="full")
    with pytest.raises(ConfigError, match=r"--erase is for resolve\.mode: incremental"):
        routing.run(spark, job.config, erase=True)
    with suppress(FileNotFoundError):
        assert not list((tmp_path / "out").rglob("*.parquet"))
