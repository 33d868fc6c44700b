"""Names that together have more bytes than a column of Arrow's texts holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import routing
from routing.config import TableLocation
from routing.delta.data_files import DataFiles
from routing.delta.local_tables import open_to_write
from routing.delta.opening import LocalOpener
from routing.engines.arrow.asking_messages import AskingRows, kinds_of_rows
from routing.engines.arrow.decisions import DecisionColumns
from routing.engines.arrow.message_keys import MessageRows
from routing.engines.arrow.open_requests import FoundRequests, first_of_each
from routing.engines.arrow.resolved_batches import KeyedBatch, MessageScan, RejectedRows
from routing.engines.arrow.text_numbers import same_for_all
from routing.plan.checked_inputs import check_inputs, survey_dialogs
from routing.schemas import MESSAGES
from routing.tables.read_rows import read_settings
from tests.estate_rows import message, small_estate
from tests.frames import arrow_of
from tests.stored import config_of, save_estate

LONG = "//" + "n" * 1_000_000
MANY = 2_200
SCOPES = [("hub", ""), ("hub", "Sales")]


def _asking() -> AskingRows:
    """Messages of Sales that all ask for a service with a long name, the last of them first."""
    columns: dict[str, Any] = {
        "to_service_name": pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * MANY, "int32"), [LONG]),
        "at": pyarrow.array(range(MANY, 0, -1), "int64"),
        "message_id": [f"m{number}" for number in range(MANY)],
        "conversation_id": ["c"] * MANY,
        "is_initiator": [True] * MANY,
    }
    zeros, none = pyarrow.array([0] * MANY, "int32"), pyarrow.nulls(1)
    keyed = KeyedBatch(
        pyarrow.RecordBatch.from_pydict(columns),
        pyarrow.array([1] * MANY),
        zeros,
        zeros,
        same_for_all("", MANY),
        None,
        None,
    )
    flags = {"asks": pyarrow.array([True]), "asks_msdb": pyarrow.array([False])}
    others = dict.fromkeys(("matching_step", "alternatives", "reads_address", "out_of_hops", "requested"), none)
    return AskingRows.of(keyed, DecisionColumns(texts={}, **others, **flags), SCOPES)


def _save_messages(folder: Path) -> None:
    """Store messages that all ask for the service with the long name: more bytes than a batch holds as texts."""
    rows = arrow_of([message(number, "") for number in range(MANY)], MESSAGES)
    place = rows.column_names.index("to_service_name")
    rows = rows.set_column(place, "to_service_name", pyarrow.DictionaryArray.from_arrays([0] * MANY, [LONG]))
    save_estate({"messages": []}, folder, files=1)
    with DataFiles(folder / "messages") as files:
        files.open().add(rows)
        table = open_to_write(TableLocation(str(folder / "messages")))
        files.close()
        table.commit_files(files, MESSAGES, adds=True, metadata="")


def test_a_run_accepts_long_names(tmp_path: Path) -> None:
    save_estate({key: rows for key, rows in small_estate().items() if key != "messages"}, tmp_path / "in", files=1)
    _save_messages(tmp_path / "in")
    done = routing.resolve_local(config_of(tmp_path / "in", tmp_path / "out"))
    assert (done.row["rows_read"], done.row["reason_counts"]["ROUTE_REQUESTED"]) == (MANY, 1)


def test_names_of_resolved_messages_are_not_decoded(tmp_path: Path) -> None:
    """Where another one is rejected."""
    save_estate({**small_estate(), "messages": [message(MANY, "//far", conversation_id="x")]}, tmp_path, files=1)
    _save_messages(tmp_path)
    opened = LocalOpener().open({key: TableLocation(str(tmp_path / key)) for key in small_estate()})
    messages = MessageRows.of(opened.pop("messages"), None)
    checked = check_inputs(read_settings(opened), opened["dialogs"], survey_dialogs(opened["dialogs"]))
    with _counted_memory() as memory:
        tables = RejectedRows(MessageScan.of(messages, None, checked), "run").tables()
        assert [rows["message_id"].to_pylist() for rows in tables] == [[f"m{MANY}"]]
    assert memory.max_memory() < MANY * len(LONG) / 10


@contextmanager
def _counted_memory() -> Iterator[pyarrow.MemoryPool]:
    """Within it Arrow's memory comes from a pool that counts it."""
    before = pyarrow.default_memory_pool()
    pool = pyarrow.proxy_memory_pool(before)
    pyarrow.set_memory_pool(pool)
    try:
        yield pool
    finally:
        pyarrow.set_memory_pool(before)


def test_a_long_name_is_in_memory_once() -> None:
    asking = _asking()
    assert [len(name) for name in asking.services.to_pylist()] == [len(LONG)]
    first = first_of_each(asking.rows, ("ask_scope", "word"))
    assert first["message_id"].to_pylist() == [f"m{MANY - 1}"]
    assert asking.rows.nbytes < len(LONG)


def test_objects_share_a_name() -> None:
    assert len({id(row.service) for row in _asking().objects(SCOPES)}) == 1


@pytest.mark.parametrize(
    ("lengths", "most", "parts"),
    [
        ([4, 4, 4, 4], 16, [4]),
        ([4, 4, 4, 4], 15, [2, 2]),
        ([9, 9, 9], 8, [1, 1, 1]),
        ([1, 1, 1, 50], 8, [2, 1, 1]),
        ([], 8, []),
    ],
    ids=["as many as may be", "one byte more", "each longer", "one longer", "none"],
)
def test_rows_of_requests_come_in_parts(lengths: list[int], most: int, parts: list[int]) -> None:
    kinds = kinds_of_rows()
    rows = [
        {"ask_scope": 1, "service": "s" * length, "at": 0, "message_id": "m", "conversation_id": "c"}
        for length in lengths
    ]
    kept = ("ask_scope", "service", "at", "message_id", "conversation_id", "is_initiator")
    first = pyarrow.Table.from_pylist(rows, pyarrow.schema([(name, kinds[name]) for name in kept]))
    none = pyarrow.array([], pyarrow.large_string())
    tables = [*FoundRequests(SCOPES, {0: first}, none, {}, none, none).tables("n", "run", most)]
    assert [len(table) for table in tables] == parts
    assert [len(name) for table in tables for name in table["service_name"].to_pylist()] == lengths
