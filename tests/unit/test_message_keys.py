"""The routing keys that Arrow reads equal the keys of the rules for each message."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.dataset
import pytest
from pyarrow import parquet

from routing.engines.arrow.message_keys import NUMBERED, MessageRows, read_ahead
from routing.errors import InputError
from routing.plan.key_rows import KEY
from routing.rules import text
from routing.rules.rejecting import rejections
from routing.schemas import DIALOGS, MESSAGES
from tests.arrow_keys import CountedKeys, check_tables, count_keys
from tests.estate_rows import SALES, STOCK, conversation, endpoint, message, route, small_estate
from tests.frames import Tables, arrow, arrow_of
from tests.random_estates import AS_OF, SEED, draw_few
from tests.reference.estates import draw_estates
from tests.stored import store_local
from tests.unit.rules.by_rules import dialogs_of, instances_of, micros

FAR, LATER = "f0000000-0000-4000-8000-000000000001", "f0000000-0000-4000-8000-000000000002"
MESSAGES_EACH = 60
Key = tuple[Any, ...]


def count(tables: Tables, as_of: datetime | None = None, **replaced: Any) -> CountedKeys:
    """Count the keys of tables. ``replaced`` has Arrow tables to use instead."""
    tables_of_arrow = {**arrow(tables), **replaced}
    checked = check_tables(tables_of_arrow)
    return count_keys(tables_of_arrow["messages"], checked.dialogs, checked, as_of)


def keys_of(counts: CountedKeys) -> set[Key]:
    """Return the keys, which must be distinct."""
    rows = list(counts.keys.rows(*KEY))
    assert len(set(rows)) == len(rows)
    return set(rows)


def names_in(tables: Tables, table: str, column: str) -> set[tuple[str, Any]]:
    """Return the values of a column with their instances."""
    return {(row["instance_name"], row.get(column)) for row in tables.get(table, [])}


def expected_keys(tables: Tables, as_of: datetime | None) -> set[Key]:
    """The keys of all messages that are not rejected, each message by itself."""
    services = names_in(tables, "routes", "remote_service_name") | names_in(tables, "services", "name")
    brokers = {(name, text.broker_id(one)) for name, one in names_in(tables, "routes", "broker_instance")}
    brokers |= {(name, text.broker_id(one)) for name, one in names_in(tables, "databases", "service_broker_guid")}
    own_addresses = {name: instance.own_addresses for name, instance in instances_of(tables).items()}
    reads_names = any(text.is_transport(row["address"]) for row in tables["routes"])
    dialogs, instances = dialogs_of(tables), instances_of(tables)
    keys = set()
    for columns in tables["messages"]:
        row = {**dict.fromkeys(MESSAGES.names), **columns}
        name, database = row["instance_name"], row["database_name"] or None
        if rejections(row, instances.get(name)):
            continue
        service, conversation = row["to_service_name"], text.fold(row["conversation_id"])
        broker = text.broker_id(row.get("to_broker_instance"))
        dialog = dialogs.get((name, database, conversation, row["is_initiator"]))
        if broker is None and dialog is not None:
            at = as_of or row.get("observed_at") or row["enqueue_time"]
            broker = dialog.acknowledged(micros(at) or 0) or dialog.far_broker
        kind = int(row["is_initiator"])
        if (name, service) not in services:
            address = text.address_in_name(service) if reads_names else None
            is_own = address is not None and text.comparable_address(address) in own_addresses[name]
            kind += 2 * (1 if address is None else 3 if is_own else 2)
            service = ""
        if broker is not None and (name, broker) not in brokers:
            kind, broker = kind + 8, None
        keys.add((name, database or "", service, broker or "", kind))
    return keys


@pytest.mark.parametrize("as_of", [None, AS_OF], ids=["own time", "as_of"])
def test_keys_equal_those_of_the_rules(as_of: datetime | None) -> None:
    read = rejected = 0
    for tables, theirs in draw_few(as_of).each:
        counts = count(tables, as_of)
        assert counts.rows_read == len(tables["messages"])
        assert counts.rows_rejected == len(theirs.rejected_messages)
        assert keys_of(counts) == expected_keys(tables, as_of), tables["instances"]
        read, rejected = read + counts.rows_read, rejected + len(theirs.rejected_messages)
    assert read > rejected > 0


def only(*messages: dict[str, Any], dialogs: tuple[dict[str, Any], ...] = (), **columns: Any) -> Tables:
    """The small estate with these messages and dialogs, and its instance with further columns."""
    tables = small_estate()
    tables["instances"] = [{**tables["instances"][0], **columns}]
    return {**tables, "messages": list(messages), "dialogs": list(dialogs)}


@pytest.mark.parametrize(
    ("broker", "expected"),
    [
        (None, ("", 1)),
        ("", ("", 1)),
        (" \t", ("", 1)),
        ("00000000-0000-0000-0000-000000000000", ("", 1)),
        ("{00000000-0000-0000-0000-000000000000}", ("", 1)),
        (SALES, (SALES, 1)),
        (SALES.upper(), (SALES, 1)),
        (f" {{ {SALES.upper()} }}\n", (SALES, 1)),
        (FAR, ("", 9)),
        ("no id", ("", 9)),
        ("\u212a" * 36, ("", 9)),
    ],
)
def test_a_broker_id_counts_in_any_spelling(broker: str | None, expected: tuple[str, int]) -> None:
    keys = keys_of(count(only(message(1, "//stock", to_broker_instance=broker))))
    assert keys == {("hub", "Sales", "//stock", *expected)}


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ("//stock", ("//stock", 1)),
        ("//Stock", ("", 3)),
        ("tcp://hub.example:4022/x", ("", 7)),
        ("TCP://HUB.example:4022", ("", 7)),
        ("tcp://far.example:4022/x", ("", 5)),
        ("tcp://hub.example/x", ("", 3)),
        ("tcp:", ("", 3)),
    ],
)
def test_an_unknown_name_counts_by_its_address(service: str, expected: tuple[str, int]) -> None:
    tables = only(message(1, service), addresses=["tcp://hub.example:4022"])
    # Where no route reads an address from a name, none counts.
    (key,) = keys_of(count(tables))
    assert key[2:] == (expected[0], "", min(expected[1], 3))
    tables["routes"].append(route("By name", None, "transport"))
    (key,) = keys_of(count(tables))
    assert key[2:] == (expected[0], "", expected[1])


@pytest.mark.parametrize(
    ("dialog_columns", "broker"),
    [
        ({}, None),
        ({"far_broker_instance": STOCK}, STOCK),
        ({"acknowledged_broker_instance": STOCK}, None),
        ({"acknowledged_broker_instance": STOCK, "acknowledged_at": "2026-01-05T12:00:00Z"}, STOCK),
        ({"acknowledged_broker_instance": STOCK, "acknowledged_at": "2026-01-05T12:00:00.000001Z"}, None),
        ({"acknowledged_at": "2026-01-05T11:00:00Z", "far_broker_instance": STOCK}, STOCK),
        (
            {
                "acknowledged_broker_instance": SALES,
                "acknowledged_at": "2026-01-05T11:00:00Z",
                "far_broker_instance": STOCK,
            },
            SALES,
        ),
        ({"far_broker_instance": STOCK, "is_initiator": False}, None),
        ({"far_broker_instance": STOCK, "database_name": "Stock"}, None),
        ({"far_broker_instance": STOCK, "conversation_id": conversation(2)}, None),
        ({"far_broker_instance": STOCK, "conversation_id": conversation(1).upper()}, STOCK),
    ],
)
def test_an_open_message_is_bound_by_its_dialog(dialog_columns: dict[str, Any], broker: str | None) -> None:
    tables = only(
        message(1, "//stock", conversation_id=conversation(1).lower()), dialogs=(endpoint(1, **dialog_columns),)
    )
    assert keys_of(count(tables)) == {("hub", "Sales", "//stock", broker or "", 1)}
    named = only(message(1, "//stock", to_broker_instance=FAR), dialogs=(endpoint(1, **dialog_columns),))
    assert keys_of(count(named)) == {("hub", "Sales", "//stock", "", 9)}


def test_invalid_values_need_no_memory() -> None:
    many = [
        message(
            number,
            ("//stock", f"tcp://host{number}:1/x", f"//garbage/{number}")[number % 3],
            to_broker_instance=(None, f"id-{number}")[number % 2],
        )
        for number in range(600)
    ]
    tables = only(*many)
    tables["routes"].append(route("By name", None, "TRANSPORT"))
    assert {key[2:] for key in keys_of(count(tables))} == {
        (name, "", 1 + kind + other) for name, kind in (("//stock", 0), ("", 2), ("", 4)) for other in (0, 8)
    }


@pytest.mark.parametrize(
    "columns",
    [
        {"message_id": None},
        {"message_id": ""},
        {"conversation_id": None},
        {"conversation_id": conversation(1)[:-1]},
        {"conversation_id": conversation(1) + "\n"},
        {"conversation_id": f"{{{conversation(1)}}}"},
        {"is_initiator": None},
        {"enqueue_time": None},
        {"instance_name": None},
        {"instance_name": "spoke"},
        {"database_name": "sales"},
        {"to_service_name": None},
        {"to_service_name": ""},
    ],
)
def test_a_message_that_is_rejected_has_no_key(columns: dict[str, Any]) -> None:
    keys = count(only(message(1, "//far"), {**message(2, "//stock"), **columns}))
    assert (keys.rows_read, keys.rows_rejected) == (2, 1)
    assert keys_of(keys) == {("hub", "Sales", "//far", "", 1)}


def test_without_messages_there_are_no_keys() -> None:
    keys = count(only())
    assert (keys.rows_read, keys.rows_rejected, keys_of(keys)) == (0, 0, set())


def test_columns_of_other_types_and_names(tmp_path: Path) -> None:
    import pyarrow

    tables = only(
        message(1, "//stock", hops_remaining=2),
        message(2, "//far"),
        dialogs=(endpoint(1, far_broker_instance=STOCK),),
    )
    wanted = {("hub", "Sales", "//stock", STOCK, 1), ("hub", "Sales", "//far", "", 1)}
    messages = arrow_of(tables["messages"], MESSAGES)
    as_other = {
        "enqueue_time": messages["enqueue_time"].cast(pyarrow.timestamp("ms", "UTC")),
        "to_service_name": messages["to_service_name"].cast(pyarrow.large_string()),
        "instance_name": messages["instance_name"].cast(pyarrow.string_view()),
        "hops_remaining": messages["hops_remaining"].cast(pyarrow.int8()),
    }
    others = pyarrow.table({name: as_other.get(name, messages[name]) for name in messages.column_names})
    assert keys_of(count(tables, messages=others)) == wanted
    few = ("MESSAGE_ID", "Conversation_Id", "IS_INITIATOR", "enqueue_time", "Instance_Name", "to_service_name")
    named = pyarrow.table({name: messages[name.lower()] for name in (*few, "DATABASE_NAME")})
    assert keys_of(count(tables, messages=named)) == wanted
    arrived = {("hub", "", "//stock", "", 1), ("hub", "", "//far", "", 1)}
    assert keys_of(count(tables, messages=named.select(few))) == arrived
    dialogs = arrow_of(tables["dialogs"], DIALOGS)
    far = {name: dialogs[name] for name in dialogs.column_names if not name.startswith("acknowledged")}
    assert keys_of(count(tables, dialogs=pyarrow.table(far))) == wanted
    with pytest.raises(InputError, match="column to_service_name is missing"):
        count(tables, messages=messages.drop_columns(["to_service_name"]))
    pytest.importorskip("deltalake")
    from routing.config import TableLocation
    from routing.delta.local_tables import UnreadableTable, dataset_of, open_local

    stored = open_local(TableLocation(str(store_local(messages, tmp_path))))
    assert not isinstance(stored, UnreadableTable)
    assert keys_of(count(tables, messages=dataset_of(str(tmp_path), stored))) == wanted


def test_integers_outside_the_column_type_are_rejected() -> None:
    import pyarrow

    tables = only(message(1, "//stock"), message(2, "//far"))
    messages = arrow_of(tables["messages"], MESSAGES)
    hops = pyarrow.array([2**31 - 1, 2**31], pyarrow.int64())
    place = messages.column_names.index("hops_remaining")
    keys = count(tables, messages=messages.set_column(place, "hops_remaining", hops))
    assert (keys.rows_rejected, keys_of(keys)) == (1, {("hub", "Sales", "//stock", "", 1)})


def _as_sorted(batches: Iterator[pyarrow.RecordBatch]) -> list[dict[str, Any]]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    return sorted(rows, key=str)


@pytest.mark.parametrize("times", ["INT64", "INT96"])
def test_large_groups_of_rows_are_read_in_parts(tmp_path: Path, times: str) -> None:
    """Decoded as a whole, the groups of a table of 100 million messages are gigabytes."""
    rng = random.Random(SEED)
    tables = [arrow_of(estate["messages"], MESSAGES) for estate in draw_estates(rng, 3, MESSAGES_EACH)]
    # A text that is no UTF-8, which nothing on the way may look at as text.
    bad = pyarrow.array([b"\xff\xfe"] * len(tables[1]), pyarrow.binary()).view(pyarrow.string())
    place = tables[1].column_names.index("from_service_name")
    tables[1] = tables[1].set_column(place, "from_service_name", bad)
    for number, table in enumerate(tables):
        file = tmp_path / f"{number}.parquet"
        parquet.write_table(table, file, row_group_size=40, use_deprecated_int96_timestamps=times == "INT96")
    options = pyarrow.dataset.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    files = pyarrow.dataset.dataset(tmp_path, format=pyarrow.dataset.ParquetFileFormat(options))
    whole = MessageRows.of(files, None)
    columns = {
        "id": whole.column("message_id"),
        **{name: whole.column(name) for name in NUMBERED if name != "from_service_name"},
        "from": whole.column("from_service_name").cast("binary"),
        "hops": whole.column("hops_remaining").cast("int64"),
        "sound": whole.is_sound(),
        "at": whole.time(),
    }
    numbered = [name for name in NUMBERED if name != "from_service_name"]
    expected = list(whole.scan(columns, numbered, 1000))
    assert max(map(len, expected)) == 40
    parts = list(replace(whole, most_in_group=39).scan(columns, numbered, 16))
    assert max(map(len, parts)) == 16
    assert len({len(batch) for batch in parts}) > 1
    assert parts[0].schema == expected[0].schema
    assert _as_sorted(iter(parts)) == _as_sorted(iter(expected))
    assert sum(map(len, parts)) == 3 * MESSAGES_EACH
    # Whoever stops early lets go of the files.
    assert len(next(replace(whole, most_in_group=39).scan(columns, numbered, 16))) == 16


def test_a_set_of_values_is_prepared_once_for_a_file(tmp_path: Path) -> None:
    """Made ready for each batch, the dialogs of a table of 100 million messages took most of the first pass."""
    table = pyarrow.concat_tables([arrow_of([message(n, "//stock") for n in range(100)], MESSAGES)] * 8)
    parquet.write_table(table, tmp_path / "0.parquet")
    rows = replace(MessageRows.of(pyarrow.dataset.dataset(tmp_path), None), most_in_group=1)
    many = pyarrow.array(f"{n:08x}-0000-4000-8000-000000000000" for n in range(300_000))
    columns = {"place": pyarrow.compute.index_in(rows.column("conversation_id"), value_set=many)}

    def read(size: int) -> float:
        started = time.process_time()
        assert sum(map(len, rows.scan(columns, [], size))) == len(table)
        return time.process_time() - started

    read(1000)
    assert read(10) < 10 * read(1000)


def test_files_without_a_column_are_read(tmp_path: Path) -> None:
    table = arrow_of(small_estate()["messages"], MESSAGES)
    parquet.write_table(table, tmp_path / "0.parquet")
    parquet.write_table(table.drop_columns(["hops_remaining"]), tmp_path / "1.parquet")
    files = pyarrow.dataset.dataset(tmp_path, schema=table.schema)
    rows = replace(MessageRows.of(files, None), most_in_group=1)
    hops = [
        row["hops"]
        for batch in rows.scan({"hops": rows.column("hops_remaining")}, [], 2)
        for row in batch.to_pylist()
    ]
    assert hops == [*table["hops_remaining"].to_pylist(), *[None] * len(table)]


def test_errors_while_reading_ahead_are_raised() -> None:
    def fail() -> Iterator[int]:
        yield 1
        raise LookupError

    assert sorted(read_ahead([iter([1, 2]), iter([]), iter([3])], 2)) == [1, 2, 3]
    values = read_ahead([fail(), iter([2, 3, 4])], 2)
    assert next(values) == 1
    with pytest.raises(LookupError):
        list(values)
