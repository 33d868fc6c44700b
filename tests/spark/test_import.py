"""Imports into Delta tables: one estate through several imports, each looked at when it is done.

What changes is decided by plain Python (tests/unit/importing); here it is written and read back.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.frames import frame_of, rows_of
from tests.stored import OUTPUTS, store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config
    from routing.config import Location
    from routing.importing.result import Imported

UTC = timezone.utc
NOW = datetime(2026, 2, 1, tzinfo=UTC)
MONDAY, TUESDAY, WEDNESDAY = (datetime(2026, 1, day, 12, tzinfo=UTC) for day in (5, 6, 7))
SHOP_ID = "4c8c5a5c-1d3e-4b7a-9d5e-2f0a6b1c7d88"
KEYS = ("routes", "databases", "services", "instances", "messages", "dialogs", "observed_routing", "imports")
HEAD = "instance_name,database_name,exported_at"
OUT_LINES = [f"  {key}: out/{key}" for key in OUTPUTS]


def dialog(number: int) -> str:
    return f"cccccccc-0000-0000-0000-00000000000{number}"


def exports(folder: Path, at: datetime, **views: str) -> list[str]:
    """A folder of exports; in each text the first line names the view's own columns."""
    folder.mkdir(parents=True)
    for view, text in views.items():
        of_instance = view in ("databases", "service_broker_endpoints")
        head, *lines = text.strip().split("\n")
        added = "instance_name,exported_at" if of_instance else HEAD
        values = f"HUB,{at.isoformat()}" if of_instance else f"HUB,shop,{at.isoformat()}"
        body = "".join(f"{line},{values}\n" for line in lines)
        (folder / f"{view}.csv").write_text(f"{head},{added}\n{body}", encoding="utf-8")
    return [str(folder)]


DATABASES = f"""name,database_id,service_broker_guid,is_broker_enabled
Shop,5,{SHOP_ID.upper()},1
Offline,6,00000000-0000-0000-0000-000000000000,0
"""
ROUTES = """name,remote_service_name,broker_instance,lifetime,address,mirror_address
AutoCreatedLocal,NULL,NULL,NULL,LOCAL,NULL
ToStock,//stock,NULL,2030-01-01 00:00:00.1234567,TCP://stock:4022,NULL
Doomed,//doomed,NULL,NULL,TCP://doomed:4022,NULL
"""
ENDPOINTS = "endpoint_id,is_message_forwarding_enabled,machine_name,port\n65536,1,HUBBOX,4022\n"
CONVERSATIONS = f"""conversation_handle,conversation_id,is_initiator,far_service,far_broker_instance
{dialog(1)},{dialog(1).upper()},1,//stock,NULL
{dialog(2)},{dialog(2).upper()},1,//stock,Id-2
{dialog(3)},{dialog(3).upper()},1,//stock,Id-3
"""
QUEUE = f"""conversation_handle,to_service_name,to_broker_instance,enqueue_time,message_sequence_number,\
transmission_status
{dialog(1)},//stock,NULL,2026-01-05 11:00:00.5,0,The target service name could not be found.
{dialog(1)},//stock,NULL,2026-01-05 11:00:01,1,
"""
SCRIPT = """USE shop
GO
ALTER ROUTE ToStock WITH ADDRESS = 'TCP://elsewhere:4022'
CREATE ROUTE Billing WITH SERVICE_NAME = '//billing', ADDRESS = 'TCP://billing:4022', LIFETIME = 3600
DROP ROUTE Nonsense
ALTER DATABASE Shop SET DISABLE_BROKER
"""


def newest(locations: Mapping[str, Location]) -> dict[str, int | None]:
    """The newest version of each table by its log, None where there is none; a query each would take minutes."""
    commits = {key: sorted(Path(where.text, "_delta_log").glob("*.json")) for key, where in locations.items()}
    return {key: int(files[-1].stem) if files else None for key, files in commits.items()}


class Step(NamedTuple):
    """What an import said, the tables' versions afterwards, and what they held where it was looked at."""

    done: Imported
    versions: dict[str, int | None]
    tables: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    import routing

    folder = tmp_path_factory.mktemp("imported")
    lines = ["tables:", *(f"  {key}: data/{key}" for key in KEYS), "output:"]
    lines += OUT_LINES
    return routing.load_config(str(folder / "config.yaml"), text="\n".join(lines))


@pytest.fixture(scope="module")
def steps(spark: SparkSession, config: Config, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Step]:
    """One import after another; each test looks at one of them."""
    from pyspark.sql.types import StringType, StructField, StructType

    from routing.importing.catalog import StandIns, read_export
    from routing.importing.from_catalog import import_export
    from routing.importing.from_tsql import import_scripts
    from routing.importing.scripts import read_scripts
    from routing.schemas import DIALOGS
    from routing.schemas import ROUTES as ROUTES_SCHEMA
    from routing.storage import tables
    from routing.storage.kinds import spark_schema

    folder = tmp_path_factory.mktemp("exports")
    locations = {**config.tables, **config.kept}
    steps: dict[str, Step] = {}
    # What another import knows: when two dialogs were acknowledged, and by whom one of them.
    acknowledged = {"instance_name": "HUB", "database_name": "Shop", "is_initiator": True}
    acknowledged["acknowledged_at"] = MONDAY
    known = [
        {**acknowledged, "conversation_id": dialog(2).upper(), "acknowledged_broker_instance": "id-2"},
        {**acknowledged, "conversation_id": dialog(3)},
        {**acknowledged, "conversation_id": dialog(4)},
        {**acknowledged, "conversation_id": dialog(4), "database_name": "Other"},
    ]
    store(frame_of(spark, known, DIALOGS), Path(str(locations["dialogs"])))
    # Somebody's table without history and with a column of their own, of an instance that is never imported.
    theirs = StructType([*spark_schema(ROUTES_SCHEMA).fields[:8], StructField("note", StringType())])
    other = {
        "instance_name": "OTHER",
        "database_name": "Shop",
        "name": "theirs",
        "address": "LOCAL",
        "note": "keep",
    }
    store(frame_of(spark, [other], theirs), Path(str(locations["routes"])))

    def look(name: str, done: Imported, *keys: str) -> None:
        found = newest(locations)
        snapshots = {key: tables.Snapshot(locations[key], found[key] or 0) for key in keys}
        steps[name] = Step(done, found, {key: rows_of(there.read(spark)) for key, there in snapshots.items()})

    def catalog(name: str, at: datetime, views: dict[str, str], *keys: str, dry_run: bool = False) -> None:
        read = read_export(exports(folder / name, at, **views), StandIns())
        look(name, import_export(spark, config, read, now=NOW, dry_run=dry_run), *keys)

    first = {
        "databases": DATABASES,
        "services": "name\n//shop\n",
        "routes": ROUTES,
        "service_broker_endpoints": ENDPOINTS,
        "conversation_endpoints": CONVERSATIONS,
        "transmission_queue": QUEUE,
    }
    catalog("dry run", MONDAY, first, dry_run=True)
    catalog("first", MONDAY, first, *KEYS)
    catalog("again", MONDAY, first)
    later = "".join(line for line in ROUTES.splitlines(keepends=True) if "Doomed" not in line)
    later = later.replace("TCP://stock", "TCP://new")
    talk = {"transmission_queue": QUEUE, "conversation_endpoints": CONVERSATIONS}
    catalog("later", TUESDAY, {"routes": later, **talk}, "routes", "messages", "observed_routing")
    file = folder / "change.sql"
    file.write_text(SCRIPT, encoding="utf-8")
    for name in ("script", "script again"):
        scripts = read_scripts([str(file)], instance="HUB", scripted_at=WEDNESDAY)
        seen = ("routes", "databases") if name == "script" else ()
        look(name, import_scripts(spark, config, scripts, instance="HUB", now=NOW), *seen)
    return steps


def versions(step: Step) -> set[tuple[Any, ...]]:
    columns = ("name", "address", "valid_from", "valid_to")
    return {tuple(row[name] for name in columns) for row in routes(step)}


def routes(step: Step) -> list[dict[str, Any]]:
    """Those of the imported instance."""
    return [row for row in step.tables["routes"] if row["instance_name"] == "HUB"]


STOCK_EXPIRES = datetime(2030, 1, 1, microsecond=123456, tzinfo=UTC)
FIRST = {
    ("AutoCreatedLocal", "LOCAL", None, None),
    ("ToStock", "TCP://stock:4022", None, None),
    ("Doomed", "TCP://doomed:4022", None, None),
}
LATER = {
    ("AutoCreatedLocal", "LOCAL", None, None),
    ("ToStock", "TCP://stock:4022", None, TUESDAY),
    ("ToStock", "TCP://new:4022", TUESDAY, None),
    ("Doomed", "TCP://doomed:4022", None, TUESDAY),
}


def test_a_dry_run_writes_nothing_and_says_the_same(steps: dict[str, Step]) -> None:
    tried, done = steps["dry run"], steps["first"]
    there = {key for key, version in tried.versions.items() if version is not None}
    assert (there, tried.versions["dialogs"], tried.versions["routes"]) == ({"dialogs", "routes"}, 0, 0)
    assert tried.done.written == done.done.written
    assert tried.done.rows_read == done.done.rows_read
    # The first names its file.
    assert tried.done.notes[1:] == done.done.notes[1:]


def test_the_first_import(steps: dict[str, Step]) -> None:
    tables = steps["first"].tables
    assert versions(steps["first"]) == FIRST
    assert {row["lifetime"] for row in routes(steps["first"])} == {None, STOCK_EXPIRES}
    assert {(row["instance_name"], row["database_name"]) for row in routes(steps["first"])} == {("HUB", "Shop")}
    assert [
        (row["name"], row["service_broker_guid"]) for row in tables["databases"] if row["is_broker_enabled"]
    ] == [("Shop", SHOP_ID)]
    assert tables["services"] == [{"instance_name": "HUB", "database_name": "Shop", "name": "//shop"}]
    assert tables["instances"] == [
        {"instance_name": "HUB", "is_message_forwarding_enabled": True, "addresses": ["tcp://HUBBOX:4022"]}
    ]
    assert sorted(row["message_id"] for row in tables["messages"]) == [f"{dialog(1)}:I:0", f"{dialog(1)}:I:1"]
    assert {row["enqueue_time"] for row in tables["messages"]} == {
        datetime(2026, 1, 5, 11, 0, 0, 500000, tzinfo=UTC),
        datetime(2026, 1, 5, 11, 0, 1, tzinfo=UTC),
    }
    assert {row["error_number"] for row in tables["observed_routing"]} == {9793, None}
    assert {(row["view_or_file"], row["database_name"], row["exported_at"]) for row in tables["imports"]} == {
        ("databases", None, MONDAY),
        ("service_broker_endpoints", None, MONDAY),
        *(
            (view, "Shop", MONDAY)
            for view in ("routes", "services", "conversation_endpoints", "transmission_queue")
        ),
    }
    assert {row["imported_at"] for row in tables["imports"]} == {NOW}


def test_the_same_import_twice_changes_nothing(steps: dict[str, Step]) -> None:
    assert steps["again"].versions == steps["first"].versions
    counts = steps["again"].done.written.values()
    assert {kind for kinds in counts for kind, count in kinds.items() if count} == {"unchanged"}


def test_a_snapshot_is_a_new_version(steps: dict[str, Step]) -> None:
    assert versions(steps["later"]) == LATER
    assert steps["later"].done.written["routes"] == {"unchanged": 1, "changed": 1, "closed": 1}
    # What this export does not cover stays.
    for key in ("databases", "services", "instances", "dialogs"):
        assert steps["later"].versions[key] == steps["first"].versions[key]


def test_messages_are_left_alone_and_observed_once_more(steps: dict[str, Step]) -> None:
    tables = steps["later"].tables
    assert {row["observed_at"] for row in tables["messages"]} == {MONDAY}
    assert [row["observed_at"] for row in tables["observed_routing"]].count(TUESDAY) == 2
    assert len(tables["observed_routing"]) == 4


def test_a_script_is_a_change(steps: dict[str, Step]) -> None:
    step = steps["script"]
    assert versions(step) == {
        *(LATER - {("ToStock", "TCP://new:4022", TUESDAY, None)}),
        ("ToStock", "TCP://new:4022", TUESDAY, WEDNESDAY),
        ("ToStock", "TCP://elsewhere:4022", WEDNESDAY, None),
        ("Billing", "TCP://billing:4022", WEDNESDAY, None),
    }
    (billing,) = (row for row in step.tables["routes"] if row["name"] == "Billing")
    assert billing["lifetime"] == datetime(2026, 1, 7, 13, tzinfo=UTC)
    assert {(row["name"], row["is_broker_enabled"]) for row in step.tables["databases"]} == {
        ("Shop", False),
        ("Offline", False),
    }
    assert step.done.rows_read == {"change.sql": (4, 1, 0)}
    assert [text.partition(", ")[2] for text in step.done.rejected] == [
        "line 5: DROP ROUTE 'Nonsense': the database 'Shop' has no such route (SQL Server's error 15151)"
    ]
    assert step.versions["services"] == steps["first"].versions["services"]


def test_the_same_script_twice_changes_nothing(steps: dict[str, Step]) -> None:
    assert steps["script again"].versions == steps["script"].versions
    assert [note.partition(": ")[2] for note in steps["script again"].done.notes] == [
        "it was imported before; nothing of it is done again"
    ]


def test_what_is_older_is_refused_and_nothing_is_written(
    spark: SparkSession, config: Config, steps: dict[str, Step], tmp_path: Path
) -> None:
    from routing.errors import InputError
    from routing.importing.catalog import StandIns, read_export
    from routing.importing.from_catalog import import_export

    before = newest(config.tables)
    # The script of Wednesday speaks of the same routes.
    read = read_export(exports(tmp_path / "old", TUESDAY, routes=ROUTES, services="name\n//new\n"), StandIns())
    with pytest.raises(InputError, match="older than what was imported before, 2 parts") as caught:
        import_export(spark, config, read, now=NOW)
    assert caught.value.exit_code == 2
    assert before == newest(config.tables)
    assert None not in before.values()


def test_an_acknowledgement_whose_time_is_known_stays(steps: dict[str, Step]) -> None:
    columns = ("database_name", "far_broker_instance", "acknowledged_at", "acknowledged_broker_instance")
    found = {
        (row["conversation_id"], row["database_name"]): tuple(row[name] for name in columns[1:])
        for row in steps["first"].tables["dialogs"]
        if row["acknowledged_at"] is not None
    }
    assert found == {
        (dialog(2), "Shop"): (None, MONDAY, "id-2"),
        (dialog(3), "Shop"): (None, MONDAY, "Id-3"),
        (dialog(4), "Other"): (None, MONDAY, None),
    }


def test_a_table_that_was_there_keeps_what_it_had(steps: dict[str, Step]) -> None:
    rows = [row for row in steps["script"].tables["routes"] if row["instance_name"] == "OTHER"]
    assert [(row["name"], row["note"], row["valid_from"], row["valid_to"]) for row in rows] == [
        ("theirs", "keep", None, None)
    ]


def test_two_imports_at_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them ends with exit code 3: at once beside a lock file, and without one when it is to write."""
    import routing
    from routing.errors import StorageError
    from routing.importing.catalog import StandIns, read_export
    from routing.importing.from_catalog import import_export
    from routing.storage import locking

    text = "\n".join(["tables:", *(f"  {key}: data/{key}" for key in KEYS), "output:", *OUT_LINES])
    config = routing.load_config(str(tmp_path / "config.yaml"), text=text)
    views = {"databases": DATABASES, "routes": ROUTES}
    older = read_export(exports(tmp_path / "older", MONDAY, **views), StandIns())
    newer = read_export(exports(tmp_path / "newer", TUESDAY, **views), StandIns())
    caught: list[StorageError] = []

    def bring_newer(progress: str) -> None:
        if progress == "writing the tables" and not caught:
            with pytest.raises(StorageError) as error:
                import_export(spark, config, newer, now=NOW)
            caught.append(error.value)

    import_export(spark, config, older, now=NOW, progress=bring_newer)
    assert caught[0].exit_code == 3
    assert "another run is at work on these tables: run 'import of 2026-02-01T00:00:00+00:00'" in str(caught[0])
    assert not list(tmp_path.rglob("*.lock"))

    monkeypatch.setattr(locking, "lock_file", lambda *_: None)
    moved = ROUTES.replace("TCP://stock:4022", "TCP://moved:4022")
    newest_one = read_export(exports(tmp_path / "newest", WEDNESDAY, routes=moved), StandIns())

    def bring_newest(progress: str) -> None:
        if progress == "writing the tables":
            import_export(spark, config, newest_one, now=NOW)

    with pytest.raises(StorageError, match=r"somebody else has written to tables\.\w+ .* \(import again") as late:
        import_export(spark, config, newer, now=NOW, progress=bring_newest)
    assert late.value.exit_code == 3
    rows = rows_of(spark.read.format("delta").load(str(config.tables["routes"])))
    assert {row["address"] for row in rows if row["valid_to"] is None and row["name"] == "ToStock"} == {
        "TCP://moved:4022"
    }
