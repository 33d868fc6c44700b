"""Exports of many rows: the cost of reading each row, and rows that are the same however many are read at once."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routing.cases.evidence import gather
from routing.cases.exported_files import FileOptions
from routing.importing.catalog.result_files import read_sources
from routing.importing.catalog.typed_rows import CatalogExport, StandIns, read_export
from tests.large_estates import many_messages
from tests.unit.test_growth import count_calls

FEW, MANY = 1_000, 2_000
MOST_KEPT, MOST_AT_PEAK, MOST_CALLS = 700, 2_400, 60
"""Bytes and calls of functions that one more message, with its conversation endpoint, may cost."""


def grown(folder: Path, measure: Callable[[str], int]) -> float:
    """Return the growth for each further message. The first reading includes imports and does not count.

    Of two measurements the smaller one counts: a table of the whole process may grow in one of them.
    """
    few, many = (str(many_messages(folder / str(count), count, 50)) for count in (FEW, MANY))
    measure(few)
    least_of_many, least_of_few = (min(measure(path), measure(path)) for path in (many, few))
    return (least_of_many - least_of_few) / (MANY - FEW)


def test_a_row_costs_little_memory_and_few_calls(tmp_path: Path) -> None:
    def kept_and_peak(work: Callable[[], Any]) -> tuple[int, int]:
        tracemalloc.start()
        try:
            result = work()
            kept, peak = tracemalloc.get_traced_memory()
            del result
        finally:
            tracemalloc.stop()
        return kept, peak

    kept = grown(tmp_path, lambda path: kept_and_peak(lambda: read_sources([path], None))[0])
    peak = grown(tmp_path, lambda path: kept_and_peak(lambda: gather([path], FileOptions()))[1])
    calls = grown(tmp_path, lambda path: count_calls(lambda: read_export([path], StandIns())))
    assert (kept < MOST_KEPT, peak < MOST_AT_PEAK, calls < MOST_CALLS) == (True, True, True), (kept, peak, calls)


H = "{:08}-0000-4000-8000-00000000000a"
AT = "2026-01-05T18:00:00Z"


def _row(number: int, **cells: Any) -> dict[str, Any]:
    row = {
        "instance_name": "SHOP",
        "database_name": "Orders",
        "exported_at": AT,
        "conversation_handle": H.format(number),
        "to_service_name": "//a",
        "enqueue_time": AT,
        "message_sequence_number": number,
    }
    return {**row, **cells}


ROWS: list[Any] = [
    "first",
    _row(1),
    _row(2, transmission_status={}, TO_BROKER_INSTANCE="b"),
    {name.upper(): cell for name, cell in _row(3).items()},
    {**_row(4), "To_Service_Name": "//last"},
    7,
    _row(5, conversation_handle="no"),
    {**dict.fromkeys(_row(6)), "instance_name": "SHOP", "database_name": "Orders", "exported_at": AT},
    _row(7, message_body="\ud800"),
    _row(8, message_sequence_number=True),
    _row(9, message_sequence_number=1.0, conversation_handle=f"{{{H.format(9).upper()}}}", message_body="x" * 99),
    _row(0, to_service_name=None),
    _row(0, to_service_name=["//a"]),
]
READ = [
    (1, "//a", None, 1),
    (2, "//a", "b", 2),
    (3, "//a", None, 3),
    (9, "//a", None, 1),
]
REJECTED = [
    (1, "it is not a JSON object"),
    (5, "to_service_name is in it several times, and the values differ"),
    (6, "it is not a JSON object"),
    (7, "conversation_handle: 'no' is not a GUID"),
    (9, "it contains bytes that cannot be decoded, or half a character: '\\ud800'"),
    (10, "message_sequence_number: 'True' is not an integer"),
    (12, "to_service_name is missing"),
    (13, "to_service_name: \"['//a']\" is not text"),
]


def _read(file: Path, text: str) -> CatalogExport:
    file.write_text(text, encoding="utf-8")
    return read_export([str(file)], StandIns())


@pytest.mark.parametrize("others", [0, 994, 999])
def test_rows_are_independent_of_the_batch_boundary(others: int, tmp_path: Path) -> None:
    """Rows become columns a thousand at a time. Other rows precede the compared ones."""
    before = [_row(1, message_sequence_number=number) for number in range(others)]
    lines = [json.dumps(row) for row in (ROWS[0], *before, *ROWS[1:])]
    rejected = [f"row {number + (number > 1) * others}: {why}" for number, why in REJECTED]
    for text in ("\n".join(lines), f"[{', '.join(lines)}]", f"[{lines[0]}]\n[{','.join(lines[1:])}]"):
        export = _read(tmp_path / "transmission_queue.json", text)
        rows = export.rows["transmission_queue"]
        names = ("to_service_name", "to_broker_instance", "message_sequence_number")
        whole = [row for row in rows if "is_empty" not in row]
        assert [
            (int(row["conversation_handle"][7]), *(row[name] for name in names)) for row in whole[others:]
        ] == READ
        assert [sentence.partition(", ")[2] for sentence in export.rejected] == rejected
        assert (len(rows), export.rows_read["transmission_queue"]) == (5 + others, 12 + others)
        assert "message_body" not in whole[0]


def test_mixed_views_get_their_own_rows(tmp_path: Path) -> None:
    head = {"instance_name": "SHOP", "database_name": "Orders", "exported_at": AT}
    rows: list[Any] = []
    for number in range(600):
        rows.append({"view_name": "Services", **head, "name": f"//s{number}"})
        rows.append({**_row(number), "VIEW_NAME": "transmission_queue"})
    rows.insert(3, None)
    export = _read(tmp_path / "all.jsonl", "\n".join(json.dumps(row) for row in rows))
    assert [row["name"] for row in export.rows["services"]] == [f"//s{number}" for number in range(600)]
    assert [row["message_sequence_number"] for row in export.rows["transmission_queue"]] == list(range(600))
    assert [sentence.partition(", ")[2] for sentence in export.rejected] == ["row 4: it is not a JSON object"]
    assert export.rejected_of == {"services": 1}
