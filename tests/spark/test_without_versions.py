"""Inputs that cannot be read at a version, such as views, and tables that change during a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing.cli import main
from routing.errors import InputError, OutputError, RoutingError, StorageError
from routing.messages.results import UNSEEN
from routing.runs.spark_outputs import write_paths
from tests.estate_rows import conversation, message, small_estate
from tests.frames import frame_of, rows_of
from tests.hooks import Hook, hooked
from tests.stored import save_estate, store_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

pytestmark = [pytest.mark.core, pytest.mark.matrix]
INPUTS = tuple(small_estate())
OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "pending_messages", "runs")
PARQUET, GLOBAL = "services", "databases"


@dataclass
class Views:
    """An estate as Delta tables with views of them in a schema, a Parquet table, and a global temporary view."""

    spark: SparkSession
    folder: Path
    schema: str
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        save_estate(small_estate(), self.folder / "in", files=1)
        for key in INPUTS:
            self.names[key] = self._name(key)

    def _name(self, key: str) -> str:
        rows = f"SELECT * FROM delta.`{self.folder}/in/{key}`"
        if key == PARQUET:
            self.spark.sql(f"CREATE TABLE {self.schema}.{key} USING parquet AS {rows}")
        elif key == GLOBAL:
            self.spark.sql(f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW sbroute_{key} AS {rows}")
            return f"global_temp.sbroute_{key}"
        else:
            self.spark.sql(f"CREATE VIEW {self.schema}.{key} AS {rows}")
        return f"{self.schema}.{key}"

    def file(self, *by_path: str, out: str = "out") -> Path:
        """Write a configuration over the views, except for tables that are named by path."""
        tables = {key: self.names[key] for key in INPUTS} | {key: f"{self.folder}/in/{key}" for key in by_path}
        outputs = {key: f"{self.folder}/{out}/{key}" for key in OUTPUTS}
        file = self.folder / f"{out}.yaml"
        file.write_text(json.dumps({"tables": tables, "output": outputs}))
        return file

    def config(self, *overrides: str, by_path: tuple[str, ...] = (), out: str = "out") -> Config:
        """Load the configuration that `file` writes."""
        return routing.load_config(str(self.file(*by_path, out=out)), overrides)

    def add(self, key: str, row: dict[str, Any]) -> None:
        """Append a row to the table behind a view."""
        from routing.schemas import TABLES

        frame = frame_of(self.spark, [row], TABLES[key])
        frame.write.format("delta").mode("append").save(str(self.folder / "in" / key))

    def change(self, key: str, statement: str) -> None:
        """Change the table behind a view by DELETE or UPDATE."""
        self.spark.sql(statement.format(f"delta.`{self.folder}/in/{key}`"))


@pytest.fixture
def views(spark: SparkSession, tmp_path: Path) -> Iterator[Views]:
    """Create an estate behind views, and remove everything afterwards."""
    spark.sql("CREATE SCHEMA behind")
    yield Views(spark, tmp_path, "behind")
    spark.catalog.dropGlobalTempView(f"sbroute_{GLOBAL}")
    spark.sql("DROP SCHEMA behind CASCADE")


def _resolved(spark: SparkSession, config: Config) -> dict[str, tuple[str, str]]:
    rows = rows_of(routing.current_routes(spark, config))
    return {row["message_id"]: (row["outcome"], row["reason"]) for row in rows}


# By the rule book, m4 asks for a route. m5 came over the network, and msdb has no routes.
EXPECTED = {
    "m1": ("DELIVERED", "LOCAL_SERVICE"),
    "m2": ("DELIVERED", "LOCAL_SERVICE"),
    "m3": ("SENT", "MIRROR_ADDRESS"),
    "m4": ("DELAYED", "ROUTE_REQUESTED"),
    "m5": ("DELAYED", "NO_ROUTE"),
}


def test_a_full_run_reads_the_current_state_of_views(spark: SparkSession, views: Views) -> None:
    config, notes = views.config(), list[str]()
    row = routing.run(spark, config, run_id="one", on_note=notes.append).row
    assert row["input_versions"] == dict.fromkeys(INPUTS)
    assert (row["rows_read"], row["rows_resolved"], row["rows_rejected"]) == (7, 5, 2)
    assert _resolved(spark, config) == EXPECTED
    assert {f"tables.{key}: as it is, at no version" for key in INPUTS} <= set(notes)
    assert "messages" not in row["table_ids"]
    # The stored row is the same, and another full run can follow one without versions.
    [stored] = rows_of(spark.read.format("delta").load(str(config.output["runs"])))
    assert stored["input_versions"] == dict.fromkeys(INPUTS)
    views.add("messages", message(8, "//far"))
    again = routing.run(spark, config, run_id="two").row
    assert (again["rows_read"], again["input_versions"]["messages"]) == (8, None)
    assert {r["message_id"] for r in rows_of(routing.read_run(spark, config, "one").resolved_routes)} == set(
        EXPECTED
    )


@pytest.mark.long
def test_incremental_runs_need_versions_only_of_messages(spark: SparkSession, views: Views) -> None:
    by_path = views.config("resolve.mode=incremental", by_path=("messages",))
    # One input is a table with a version. The others are views, with null.
    first = routing.run(spark, by_path).row
    assert first["input_versions"] == {**dict.fromkeys(INPUTS), "messages": 0}
    views.add("messages", message(8, "//far"))
    second = routing.run(spark, by_path).row
    assert (second["rows_resolved"], second["input_versions"]["messages"]) == (1, 1)
    refused = r"tables\.messages: 'behind\.messages' cannot be read at a version"
    with pytest.raises(InputError, match=refused) as caught:
        routing.run(spark, views.config("resolve.mode=incremental", out="other"))
    assert caught.value.exit_code == 2
    assert not (views.folder / "other" / "resolved_routes").exists()
    # A table has replaced the view that a full run read.
    full = views.config(out="full")
    routing.run(spark, full)
    spark.sql("DROP VIEW behind.messages")
    spark.sql(f"CREATE TABLE behind.messages USING delta LOCATION '{views.folder}/in/messages'")
    with pytest.raises(InputError, match=r"'behind\.messages' at no version .*resolve\.mode=full"):
        routing.run(spark, views.config("resolve.mode=incremental", out="full"))


def _before_writing(work: Callable[[], object]) -> Hook:
    """Return a hook that does ``work`` once after the keys are counted. All outputs, written in parallel, wait."""
    lock, left = Lock(), [work]

    def hook(moment: str) -> None:
        if moment in {f"before {key}" for key in OUTPUTS if key != "runs"}:
            with lock:
                if left:
                    left.pop()()

    return hook


# The changes behind the view of messages after the keys are counted, and the error of the run.
CHANGES: dict[str, tuple[Callable[[Views], None], str]] = {
    "a message with a key of its own": (
        lambda v: v.add("messages", message(8, "//far", database_name=None)),
        UNSEEN,
    ),
    "a message with a known key": (
        lambda v: v.add("messages", message(8, "//far")),
        "7 messages were read, but 6 resolved, 0 unchanged and 2 rejected",
    ),
    "a faulty message with a known key": (
        lambda v: v.add("messages", message(8, "//far", conversation_id="none")),
        "7 messages were read, but 5 resolved, 0 unchanged and 3 rejected",
    ),
    "a message fewer": (
        lambda v: v.change("messages", "DELETE FROM {} WHERE message_id = 'm1'"),
        "7 messages were read, but 4 resolved, 0 unchanged and 2 rejected",
    ),
}


@pytest.mark.long
def test_a_run_ends_where_messages_change_between_its_passes(spark: SparkSession, views: Views) -> None:
    config = views.config()
    routing.run(spark, config, run_id="sound")
    for number, (what, (change, expected)) in enumerate(CHANGES.items()):
        with pytest.raises(RoutingError) as caught, hooked(_before_writing(partial(change, views))):
            routing.run(spark, views.config(out=f"out{number}"), run_id=what)
        assert expected in str(caught.value), what
        assert "read at no version, and perhaps changed" in str(caught.value), what
        assert "tables.messages at 'behind.messages'" in str(caught.value), what
        assert caught.value.exit_code == 3, what
        assert not (views.folder / f"out{number}" / "runs").exists(), what
        views.change("messages", "DELETE FROM {}")
        store_estate(spark, {"messages": small_estate()["messages"]}, views.folder / "in")
    assert routing.run(spark, config, run_id="sound again").row["rows_read"] == 7


@pytest.mark.long
def test_dialogs_that_change_are_read_once(spark: SparkSession, views: Views) -> None:
    """Reading dialogs twice would duplicate a message if its dialog was added in between."""
    twice = {**small_estate()["dialogs"][0], "far_broker_instance": None, "lifetime": "2027-01-01T00:00:00Z"}
    changes: dict[str, Callable[[], object]] = {
        "another process": partial(save_estate, {"dialogs": [twice]}, views.folder / "in", files=1),
        "the same session": partial(views.add, "dialogs", twice),
    }
    for writer, change in changes.items():
        config = views.config(by_path=("messages",), out=writer.replace(" ", "_"))
        with hooked(_before_writing(change)):
            row = routing.run(spark, config).row
        assert (row["rows_resolved"], row["rows_rejected"]) == (5, 2), writer
        assert _resolved(spark, config) == EXPECTED, writer
        views.change("dialogs", "DELETE FROM {}")
        store_estate(spark, {"dialogs": small_estate()["dialogs"]}, views.folder / "in")


@pytest.mark.long
def test_paths_of_all_messages(spark: SparkSession, views: Views) -> None:
    config = views.config(f"output.message_paths={views.folder}/out/paths")
    done = write_paths(spark, config)
    assert (done.read, done.rejected) == (7, 2)
    [commit] = spark.sql(f"DESCRIBE HISTORY delta.`{views.folder}/out/paths` LIMIT 1").collect()
    assert json.loads(commit["userMetadata"])["input_versions"] == dict.fromkeys(INPUTS)


@pytest.mark.long
def test_commands_read_views_without_versions(views: Views, capsys: pytest.CaptureFixture[str]) -> None:
    file, other = str(views.file()), str(views.file(*INPUTS, out="other"))

    def ask(*arguments: str) -> tuple[int, str, str]:
        status = main([*arguments, "--config", file, "--quiet"])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    assert ask("resolve")[0] == 0
    [run] = json.loads(ask("runs", "--format", "json")[1])["runs"]
    one = json.loads(ask("runs", run["run_id"], "--format", "json")[1])
    assert one["input_versions"] == dict.fromkeys(INPUTS)
    status, shown, _ = ask("runs", run["run_id"])
    assert (status, shown.count("unversioned")) == (0, len(INPUTS))
    explained = ask("explain", "--message-id", "m3", "--format", "json")
    assert (explained[0], "MIRROR_ADDRESS" in explained[1]) == (0, True)
    assert ask("lint")[0] == 0
    assert ask("messages")[0] == 0
    traced = ask("trace", "--message-id", "m3")
    assert (traced[0], "far.example" in traced[1]) == (0, True)
    assert ask("diff", "--against", other)[0] == 0
    status, _, err = ask("diff", "--against-version", "routes=0")
    assert (status, "tables.routes: version 0 cannot be read" in err) == (2, True)


def test_invalid_locations_are_named(spark: SparkSession, views: Views) -> None:
    config = views.config("tables.routes=behind.nowhere")
    with pytest.raises(InputError, match=r"tables\.routes: there is no Delta table at 'behind\.nowhere'"):
        routing.run(spark, config)
    spark.sql("CREATE TABLE behind.gone USING parquet AS SELECT 1 AS one")
    spark.sql("CREATE VIEW behind.broken AS SELECT * FROM behind.gone")
    spark.sql("DROP TABLE behind.gone")
    with pytest.raises(StorageError, match=r"reading behind\.broken: \[TABLE_OR_VIEW_NOT_FOUND\].*gone"):
        routing.run(spark, views.config("tables.routes=behind.broken"))
    for name in ("behind.routes", f"behind.{PARQUET}"):
        with pytest.raises(OutputError, match=rf"'{name}' is a view or not a Delta table") as caught:
            routing.run(spark, views.config(f"output.resolved_routes={name}", by_path=INPUTS))
        assert caught.value.exit_code == 2


@pytest.mark.long
def test_a_view_on_yesterdays_version(spark: SparkSession, views: Views) -> None:
    """This is the recovery of docs/how-to/recover.md."""
    views.change("routes", "UPDATE {} SET address = 'faulty'")
    config = views.config(by_path=INPUTS)
    with pytest.raises(InputError, match=r"4 faulty rows: routes"):
        routing.run(spark, config)
    spark.sql(f"CREATE VIEW behind.yesterday AS SELECT * FROM delta.`{views.folder}/in/routes` VERSION AS OF 0")
    mended = views.config("tables.routes=behind.yesterday", by_path=INPUTS)
    assert routing.run(spark, mended).row["input_versions"] == {**dict.fromkeys(INPUTS, 0), "routes": None}
    assert _resolved(spark, mended) == EXPECTED


def test_the_example_has_dialogs_of_two_conversations(views: Views) -> None:
    """The tests above need two dialogs, only one of which belongs to a message."""
    assert [row["conversation_id"] for row in small_estate()["dialogs"]] == [conversation(2), conversation(9)]
    assert views.names["dialogs"] == "behind.dialogs"
