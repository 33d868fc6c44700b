"""Exports and scripts of one estate, and how tests import them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tests.stored import OUTPUTS

if TYPE_CHECKING:
    from routing import Config
    from routing.config import TableLocation
    from routing.delta.opening import TableOpener
    from routing.importing.covered_rows import ImportResult
    from routing.importing.stored_tables import StoredTables
    from routing.schemas import Schema

UTC = timezone.utc
NOW = datetime(2026, 2, 1, tzinfo=UTC)
MONDAY, TUESDAY, WEDNESDAY = (datetime(2026, 1, day, 12, tzinfo=UTC) for day in (5, 6, 7))
SHOP_ID = "4c8c5a5c-1d3e-4b7a-9d5e-2f0a6b1c7d88"
KEYS = ("routes", "databases", "services", "instances", "messages", "dialogs", "observed_routing", "imports")
HEAD = "instance_name,database_name,exported_at"


def dialog(number: int) -> str:
    return f"cccccccc-0000-0000-0000-00000000000{number}"


def exports(folder: Path, at: datetime, **views: str) -> list[str]:
    """Write a folder of exports. The first line of each text names the view's own columns."""
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
QUEUE = f"""conversation_handle,to_service_name,to_broker_instance,from_service_name,enqueue_time,\
message_sequence_number,transmission_status
{dialog(1)},//stock,NULL,//shop,2026-01-05 11:00:00.5,0,The target service name could not be found.
{dialog(1)},//stock,NULL,//shop,2026-01-05 11:00:01,1,
"""
SCRIPT = """USE shop
GO
ALTER ROUTE ToStock WITH ADDRESS = 'TCP://elsewhere:4022'
CREATE ROUTE Billing WITH SERVICE_NAME = '//billing', ADDRESS = 'TCP://billing:4022', LIFETIME = 3600
DROP ROUTE Nonsense
ALTER DATABASE Shop SET DISABLE_BROKER
"""


FIRST_VIEWS = {
    "databases": DATABASES,
    "services": "name\n//shop\n",
    "routes": ROUTES,
    "service_broker_endpoints": ENDPOINTS,
    "conversation_endpoints": CONVERSATIONS,
    "transmission_queue": QUEUE,
}
_LATER = "".join(line for line in ROUTES.splitlines(keepends=True) if "Doomed" not in line)
LATER_VIEWS = {
    "routes": _LATER.replace("TCP://stock", "TCP://new"),
    "transmission_queue": QUEUE,
    "conversation_endpoints": CONVERSATIONS,
}
# What another import knows: when dialogs were acknowledged, and by whom one of them.
_ACKNOWLEDGED = {
    "instance_name": "HUB",
    "database_name": "Shop",
    "is_initiator": True,
    "acknowledged_at": MONDAY,
}
KNOWN_DIALOGS = [
    {**_ACKNOWLEDGED, "conversation_id": dialog(2).upper(), "acknowledged_broker_instance": "id-2"},
    {**_ACKNOWLEDGED, "conversation_id": dialog(3)},
    {**_ACKNOWLEDGED, "conversation_id": dialog(4)},
    {**_ACKNOWLEDGED, "conversation_id": dialog(4), "database_name": "Offline"},
]
# Of an instance that is never imported.
THEIR_ROUTE = {"instance_name": "OTHER", "database_name": "Shop", "name": "theirs", "address": "LOCAL"}

# Rows of it without the columns that a table need not have.
THEIR_MESSAGE = {
    "message_id": "theirs",
    "conversation_id": dialog(9),
    "is_initiator": True,
    "enqueue_time": MONDAY,
    "instance_name": "OTHER",
    "database_name": "Shop",
    "to_service_name": "//stock",
}
THEIR_OBSERVATION = {
    **{name: THEIR_MESSAGE[name] for name in ("instance_name", "database_name", "message_id", "conversation_id")},
    "observed_at": MONDAY,
    "source": "TRANSMISSION_QUEUE",
}


def config_in(folder: Path, *overrides: str) -> Config:
    """Return a configuration with its tables in a folder."""
    import routing

    lines = ["tables:", *(f"  {key}: data/{key}" for key in KEYS), "output:"]
    lines += [f"  {key}: out/{key}" for key in (*OUTPUTS, "pending_messages")]
    return routing.load_config(str(folder / "config.yaml"), overrides, text="\n".join(lines))


def locations_of(config: Config) -> dict[str, TableLocation]:
    """Every table that an import may write."""
    return {**config.tables, **config.import_tables}


def no_spark() -> TableOpener:
    """Return a table opener without Spark."""
    from routing.delta.opening import TableOpener

    def start() -> NoReturn:
        raise AssertionError("Spark was started")

    return TableOpener(start)


def import_views(
    opener: TableOpener, config: Config, sources: Sequence[str], now: datetime = NOW, **options: Any
) -> ImportResult:
    """Import the exports in these folders."""
    from routing.importing.catalog import StandIns, read_export
    from routing.importing.from_catalog import import_export

    return import_export(opener, config, read_export(sources, StandIns()), now=now, **options)


def import_script(
    opener: TableOpener, config: Config, file: Path, text: str, at: datetime = WEDNESDAY
) -> ImportResult:
    """Import a script of the instance HUB."""
    from routing.importing.from_tsql import import_scripts
    from routing.importing.script_rows import read_scripts

    file.write_text(text, encoding="utf-8")
    return import_scripts(
        opener, config, read_scripts([str(file)], instance="HUB", scripted_at=at), instance="HUB", now=NOW
    )


def newest(config: Config) -> dict[str, int | None]:
    """Return the newest version of each table from its log, or None without one."""
    logs = {
        key: Path(location.text, "_delta_log").glob("*.json") for key, location in locations_of(config).items()
    }
    return {key: max((int(file.stem) for file in files), default=None) for key, files in logs.items()}


def rows_at(location: TableLocation) -> list[dict[str, Any]]:
    """The rows of a table that deltalake reads rightly."""
    from deltalake import DeltaTable
    from pyarrow.dataset import ParquetReadOptions

    options = ParquetReadOptions(coerce_int96_timestamp_unit="us")
    rows = DeltaTable(location.text).to_pyarrow_dataset(parquet_read_options=options).to_table()
    read_rows: list[dict[str, Any]] = rows.to_pylist()
    return read_rows


def make_table(location: TableLocation, rows: list[dict[str, Any]], schema: Schema, **columns: str) -> None:
    """A table by deltalake with further columns, in which each row has the same text."""
    import pyarrow
    from deltalake import write_deltalake

    from routing.tables.arrow_rows import arrow_schema

    table = pyarrow.Table.from_pylist(rows, arrow_schema(schema.optional()))
    for name, text in columns.items():
        table = table.append_column(name, pyarrow.array([text] * len(rows)))
    write_deltalake(location.text, table)


def make_older_tables(config: Config) -> None:
    """The tables of messages and observations without the columns that they need not have, with a row each."""
    from routing.schemas import MESSAGES, OBSERVED_ROUTING, Schema

    for key, row, schema, new in (
        ("messages", THEIR_MESSAGE, MESSAGES, "from_service_name"),
        ("observed_routing", THEIR_OBSERVATION, OBSERVED_ROUTING, "conversation_handle"),
    ):
        older = Schema(tuple(field for field in schema if field.name != new))
        make_table(locations_of(config)[key], [row], older)


def open_tables(folder: Path, *keys: str) -> StoredTables:
    """The tables of these keys in a folder, for an import without Spark."""

    from routing.importing.stored_tables import open_stored

    return open_stored(no_spark(), config_in(folder), keys)


def place(folder: Path, key: str) -> TableLocation:
    """Where `config_in` has a table."""
    from routing.config import TableLocation

    return TableLocation(str(folder / "data" / key))
