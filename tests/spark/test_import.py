"""Imports with Spark, and with Spark and deltalake alternating, give the same tables as without Spark.

Plain Python decides the changes of an import, as tests/unit/importing checks.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing.engines.traffic_tables import open_traffic
from tests.frames import arrow_of, frame_of, rows_of
from tests.hostile import NAMES
from tests.imports import (
    DATABASES,
    FIRST_VIEWS,
    KNOWN_DIALOGS,
    LATER_VIEWS,
    MONDAY,
    NOW,
    QUEUE,
    SCRIPT,
    THEIR_ROUTE,
    TUESDAY,
    WEDNESDAY,
    config_in,
    dialog,
    exports,
    import_script,
    import_views,
    locations_of,
    make_older_tables,
    make_table,
    newest,
    no_spark,
    rows_at,
)
from tests.stored import store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config
    from routing.config import TableLocation
    from routing.delta.opening import TableOpener
    from routing.schemas import Schema

pytest.importorskip("deltalake")
pytestmark = pytest.mark.classic
Tables = dict[str, list[str]]
FIRST_TIME = datetime(1, 1, 1, tzinfo=timezone.utc)
AS_NOW = (
    "the decisions are older than the newest import of databases, services or instances of HUB ({}): their"
    " current state is used, because only routes have a history"
)
LAST_TIME = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two folders of exports, from Monday and Tuesday."""
    folder = tmp_path_factory.mktemp("exports")
    exports(folder / "first", MONDAY, **FIRST_VIEWS)
    exports(folder / "later", TUESDAY, **LATER_VIEWS)
    return folder


@pytest.fixture(autouse=True)
def _no_session_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let deltalake create tables although this process has a session, which may name another disk."""
    monkeypatch.setattr("routing.sessions.session.is_given", lambda: False)


@pytest.fixture
def by_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TableOpener]:
    """Return an opener that uses only this session for some or all tables, as without deltalake."""
    from routing.delta import local_tables
    from routing.delta.opening import TableOpener

    look = local_tables.look_at_path

    def opener(*keys: str) -> TableOpener:
        def look_by_key(location: TableLocation) -> local_tables.UnreadableTable | None:
            is_one = not keys or Path(location.text).name in keys
            return local_tables.UnreadableTable("it is to go by Spark") if is_one else look(location)

        class Chosen(TableOpener):
            def find(self, *arguments: Any) -> Any:
                with monkeypatch.context() as patch:
                    patch.setattr(local_tables, "look_at_path", look_by_key)
                    return super().find(*arguments)

            def open_to_write(self, *arguments: Any) -> Any:
                with monkeypatch.context() as patch:
                    patch.setattr(local_tables, "look_at_path", look_by_key)
                    return super().open_to_write(*arguments)

        return Chosen.of_session(spark)

    return opener


def read_all(config: Config) -> Tables:
    """Return every row of every table as text, in order."""
    tables = {key: rows_at(where) for key, where in locations_of(config).items()}
    return {key: sorted(repr(sorted(row.items())) for row in rows) for key, rows in tables.items()}


def schemas(config: Config) -> dict[str, str]:
    from deltalake import DeltaTable

    return {key: DeltaTable(where.text).schema().to_json() for key, where in locations_of(config).items()}


def in_turn(config: Config, exported: Path, *openers: TableOpener) -> list[tuple[Tables, object]]:
    """Import two exports and a script with alternating openers, and return the tables and outputs after each."""
    from routing.schemas import DIALOGS, Schema
    from routing.schemas import ROUTES as ROUTES_SCHEMA

    locations = locations_of(config)
    make_table(locations["dialogs"], KNOWN_DIALOGS, DIALOGS)
    make_table(locations["routes"], [THEIR_ROUTE], Schema(ROUTES_SCHEMA.fields[:8]), note="keep")
    make_older_tables(config)
    first, later, last = openers
    seen: list[tuple[Tables, object]] = []
    done = import_views(first, config, [str(exported / "first")])
    seen.append((read_all(config), done.as_json()))
    done = import_views(later, config, [str(exported / "later")])
    seen.append((read_all(config), done.as_json()))
    done = import_script(last, config, exported / "change.sql", SCRIPT)
    seen.append((read_all(config), done.as_json()))
    # Importing again with the other writer changes nothing.
    before = newest(config)
    import_script(first, config, exported / "change.sql", SCRIPT)
    assert newest(config) == before
    return seen


@pytest.mark.long
def test_imports_by_spark_and_deltalake_in_turn_give_equal_tables(
    exported: Path, tmp_path: Path, by_spark: Callable[..., TableOpener]
) -> None:
    """deltalake continues after Spark and the reverse, with the same rows, counts and schemas."""
    wanted = in_turn(config_in(tmp_path / "deltalake"), exported, no_spark(), no_spark(), no_spark())
    assert [len(tables["routes"]) for tables, _ in wanted] == [4, 5, 7]
    assert in_turn(config_in(tmp_path / "first"), exported, by_spark(), no_spark(), no_spark()) == wanted
    assert in_turn(config_in(tmp_path / "second"), exported, no_spark(), by_spark(), no_spark()) == wanted
    for name in ("deltalake", "first", "second"):
        where = locations_of(config_in(tmp_path / name))
        senders = {row["message_id"]: row["from_service_name"] for row in rows_at(where["messages"])}
        assert senders == {"theirs": None, f"{dialog(1)}:I:0:Shop": "//shop", f"{dialog(1)}:I:1:Shop": "//shop"}
    table_schemas = [schemas(config_in(tmp_path / name)) for name in ("deltalake", "first", "second")]
    assert table_schemas[0] == table_schemas[1] == table_schemas[2]


def table_with(
    spark: SparkSession, where: TableLocation, rows: list[dict[str, Any]], schema: Schema, *properties: str
) -> None:
    """Create a table with these properties by Spark."""
    from routing.tables import sql_statements

    sql_statements.create_table(spark, where, schema)
    if properties:
        sql_statements.set_properties(spark, where, dict(text.split("=") for text in properties))
    store(frame_of(spark, rows, schema), Path(where.text), mode="append")


@pytest.mark.long
def test_imports_keep_features_of_tables_made_by_spark(
    spark: SparkSession, exported: Path, tmp_path: Path
) -> None:
    """Spark handles deletion vectors and column mapping. Both keep times of Spark's files and any names."""
    from routing.delta.opening import TableOpener
    from routing.schemas import DIALOGS, MESSAGES, ROUTES, SERVICES, ColumnKind, Field, Schema

    def whole(row: dict[str, Any], schema: Any) -> dict[str, Any]:
        return {**dict.fromkeys(schema.names), **row}

    config = config_in(tmp_path)
    where = locations_of(config)
    times = {"valid_from": FIRST_TIME, "valid_to": LAST_TIME, "lifetime": FIRST_TIME}
    named = [{"name": name, "remote_service_name": name} for name in NAMES]
    theirs = [whole({**THEIR_ROUTE, **times, **names}, ROUTES) for names in named]
    deleted = {"instance_name": "HUB", "database_name": "Shop", "name": "ToStock", "address": "TCP://deleted"}
    table_with(spark, where["routes"], [*theirs, deleted], ROUTES, "delta.enableDeletionVectors=true")
    spark.sql(f"DELETE FROM delta.`{where['routes'].text}` WHERE name = 'ToStock'")
    services = [{"instance_name": "OTHER", "database_name": "Shop", "NAME": name} for name in NAMES]
    # This column name has another spelling.
    spelled = Schema((*SERVICES.fields[:2], Field("NAME", ColumnKind.STRING)))
    table_with(spark, where["services"], services, spelled, "delta.columnMapping.mode=name")
    own = {**KNOWN_DIALOGS[3], "instance_name": "OTHER", "lifetime": LAST_TIME, "acknowledged_at": FIRST_TIME}
    ends = [whole({**own, "database_name": name}, DIALOGS) for name in NAMES]
    mine = whole({**KNOWN_DIALOGS[0], "acknowledged_at": LAST_TIME}, DIALOGS)
    table_with(spark, where["dialogs"], [*ends, mine], DIALOGS)
    message = {
        # Older releases used this form of id.
        "message_id": f"{dialog(1)}:I:0",
        "conversation_id": dialog(1),
        "is_initiator": True,
        "message_sequence_number": 0,
        "enqueue_time": FIRST_TIME,
        "observed_at": LAST_TIME,
        "instance_name": "HUB",
        "database_name": "Shop",
        "to_service_name": "as it was",
    }
    table_with(spark, where["messages"], [message], MESSAGES)
    notes: list[str] = []
    done = import_views(TableOpener(lambda: spark, on_note=notes.append), config, [str(exported / "first")])
    writers = {line.partition(": ")[0]: line for line in notes if "written by" in line}
    spark_wrote = {key.partition(".")[2] for key, line in writers.items() if "written by Spark" in line}
    # An existing session creates the missing tables.
    kept_tables = {"observed_routing", "imports", "unfinished_imports"}
    assert spark_wrote == {"routes", "services", "databases", "instances", *kept_tables}
    assert "written by deltalake" in writers["tables.dialogs"]
    assert "written by deltalake" in writers["tables.messages"]
    assert done.written["routes"] == {"added": 3}
    assert done.written["dialogs"] == {"added": 2, "changed": 1}
    assert done.written["messages"] == {"added": 1, "unchanged": 1}

    def rows(key: str, others: str) -> list[str]:
        found = rows_of(spark.read.format("delta").load(where[key].text).where(others))
        return sorted(repr(sorted(row.items())) for row in found)

    def texts(rows: list[dict[str, Any]]) -> list[str]:
        return sorted(repr(sorted(row.items())) for row in rows)

    assert rows("routes", "instance_name = 'OTHER'") == texts(theirs)
    assert rows("services", "instance_name = 'OTHER'") == texts(services)
    assert rows("dialogs", "database_name <> 'Shop'") == texts(ends)
    assert rows("messages", "to_service_name = 'as it was'") == texts([whole(message, MESSAGES)])
    new = {"instance_name": "HUB", "database_name": "Shop", "NAME": "//shop"}
    assert rows("services", "instance_name = 'HUB'") == texts([new])
    kept = spark.read.format("delta").load(where["dialogs"].text).where("database_name = 'Shop'")
    acknowledged = {row["conversation_id"]: row["acknowledged_at"] for row in rows_of(kept)}
    assert acknowledged == {dialog(1): None, dialog(2): LAST_TIME, dialog(3): None}
    found = spark.read.format("delta").load(where["routes"].text).where("name = 'ToStock'")
    assert [row["address"] for row in rows_of(found)] == ["TCP://stock:4022"]


@pytest.mark.long
def test_runs_between_imports(spark: SparkSession, tmp_path: Path, by_spark: Callable[..., TableOpener]) -> None:
    """Messages that deltalake appends are new to an incremental run, and so are those of a MERGE after them."""
    from deltalake import DeltaTable

    import routing

    config = config_in(tmp_path, "resolve.mode=incremental")

    def bring(opener: TableOpener, name: str, at: datetime, messages: int) -> int:
        lines = [f"{dialog(1)},//stock,NULL,NULL,2026-01-05 11:00:0{n},{n}," for n in range(messages)]
        queue = "\n".join([QUEUE.splitlines()[0], *lines])
        views = {key: text for key, text in FIRST_VIEWS.items() if key != "services"}
        views["transmission_queue"] = queue
        return import_views(opener, config, exports(tmp_path / name, at, **views)).written["messages"]["added"]

    def resolve(run: str) -> tuple[Any, ...]:
        done = routing.run(spark, config, run_id=run, now=NOW)
        return *(done.row[name] for name in ("rows_read", "rows_resolved", "rows_rejected")), done.notes

    at = [MONDAY + timedelta(hours=number) for number in range(3)]
    assert bring(no_spark(), "export 1", at[0], 2) == 2
    assert resolve("run 1") == (2, 2, 0, ())
    assert bring(no_spark(), "export 2", at[1], 5) == 3
    assert bring(by_spark("messages"), "export 3", at[2], 6) == 1
    # Three of these messages were already waiting before the third export.
    assert resolve("run 2") == (4, 4, 0, (AS_NOW.format("2026-01-05T14:00:00Z"),))
    history = DeltaTable(config.tables["messages"].text).history()
    assert [commit["operation"] for commit in history] == ["MERGE", "WRITE", "WRITE", "CREATE TABLE"]
    found = rows_of(spark.read.format("delta").load(str(config.output["resolved_routes"])))
    assert sorted((row["message_id"], row["outcome"], row["run_id"]) for row in found) == [
        (f"{dialog(1)}:I:{number}:Shop", "SENT", "run 1" if number < 2 else "run 2") for number in range(6)
    ]
    # Without new messages, nothing is decided.
    assert resolve("run 3") == (0, 0, 0, ())
    rows = spark.read.format("delta").load(str(config.output["resolved_routes"]))
    stored = DeltaTable(str(config.output["resolved_routes"])).to_pyarrow_dataset()
    first, second = (int(moment.timestamp()) * 1_000_000 for moment in at[:2])
    for table in map(open_traffic, (rows, stored)):
        for run_id, earliest in (("run 1", first), ("run 2", second)):
            groups = table.groups(["instance_name"], least=["decided_at"], only={"run_id": [run_id]}).rows()
            assert list(groups.rows("instance_name", "min_decided_at")) == [("HUB", earliest)]


# test_imported checks the exact time of the note.
@pytest.mark.parametrize("hours", [-1, pytest.param(0, marks=pytest.mark.long)])
def test_a_time_before_the_newest_import(spark: SparkSession, tmp_path: Path, hours: int) -> None:
    """Only routes have a history, so a run as of a time before the other tables' import adds a note."""
    import routing

    as_of = MONDAY + timedelta(hours=hours)
    config = config_in(tmp_path, f"resolve.as_of={as_of.isoformat()}")
    import_views(no_spark(), config, exports(tmp_path / "export", MONDAY, **FIRST_VIEWS))
    later = {"routes": FIRST_VIEWS["routes"]}
    import_views(no_spark(), config, exports(tmp_path / "later", TUESDAY, **later))
    notes = routing.run(spark, config).notes
    assert notes == ((AS_NOW.format("2026-01-05T12:00:00Z"),) if hours else ())


def test_two_imports_at_once_by_spark(
    exported: Path, tmp_path: Path, by_spark: Callable[..., TableOpener], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a lock file, an import by Spark notices that one by deltalake has written since it read."""
    from routing.delta import run_lock
    from routing.errors import StorageError

    monkeypatch.setattr(run_lock, "lock_file", lambda *_: None)
    config = config_in(tmp_path)
    older = exports(tmp_path / "older", MONDAY, databases=DATABASES)
    newer = exports(tmp_path / "newer", TUESDAY, databases=DATABASES.replace(",5,", ",7,"))
    import_views(no_spark(), config, older)

    def bring_newer(moment: str) -> None:
        if moment == "writing the tables":
            import_views(no_spark(), config, newer)

    latest = exports(tmp_path / "latest", WEDNESDAY, databases=DATABASES.replace(",5,", ",8,"))
    with pytest.raises(StorageError, match=r"tables\.unfinished_imports at .* has changed since") as late:
        import_views(by_spark(), config, latest, progress=bring_newer)
    assert late.value.exit_code == 3
    assert {row["database_id"] for row in rows_at(config.tables["databases"])} == {6, 7}


def test_spark_and_arrow_find_the_same_messages(spark: SparkSession) -> None:
    """The key is instance, database, conversation in any case, role and number. The first id counts."""
    from routing.importing.stored_rows import find_message_ids
    from routing.schemas import MESSAGES

    def message(message_id: str | None = None, **columns: Any) -> dict[str, Any]:
        known_by = {"instance_name": "HUB", "database_name": "Shop", "conversation_id": dialog(1)}
        rest = {"is_initiator": True, "message_sequence_number": 0, "enqueue_time": MONDAY, "to_service_name": "s"}
        return {**known_by, **rest, "message_id": message_id, **columns}

    stored = [
        message("b", conversation_id=dialog(1).upper()),
        message("a"),
        message("two", message_sequence_number=2),
        message("arrived", database_name=None, message_sequence_number=3),
        message("without a number", message_sequence_number=None, database_name="Other"),
    ]
    asked = {
        "the first of two": (message(), "a"),
        "again": (message(), "a"),
        "the conversation in upper case": (message(conversation_id=dialog(1).upper()), "a"),
        "another number": (message(message_sequence_number=2), "two"),
        "an unknown number": (message(message_sequence_number=4), None),
        "another role": (message(is_initiator=False), None),
        "another instance": (message(instance_name="hub"), None),
        "another database": (message(database_name="shop"), None),
        "another conversation": (message(conversation_id=dialog(2)), None),
        "from the network": (message(database_name=None, message_sequence_number=3), "arrived"),
        "from the network, as empty text": (message(database_name="", message_sequence_number=3), "arrived"),
        "without a number": (message(message_sequence_number=None, database_name="Other"), None),
        "without a role": (message(is_initiator=None), None),
    }
    rows, expected = zip(*asked.values(), strict=True)
    for table in (frame_of(spark, stored, MESSAGES), arrow_of(stored, MESSAGES)):
        assert dict(zip(asked, find_message_ids(table, rows), strict=True)) == dict(
            zip(asked, expected, strict=True)
        )
