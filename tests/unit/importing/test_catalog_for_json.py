"""FOR JSON from sqlcmd and SSMS: complete or in chunks of 2,033 characters, with or without a header."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

import pytest

from routing.errors import ContractError
from routing.importing.catalog import CatalogExport, StandIns, read_export

AT = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
HUB = StandIns("hub", "Shop", AT)
HEADER = "JSON_F52E2B61-18A1-11d1-B105-00805F49916B"
# Names so long that chunks end in the middle of them, with blanks where one of them ends.
NAMES = [f"//stock {number} " + "x   " * 24 + "end" for number in range(100)]
ROWS = [{"name": name, "service_id": 65536 + number} for number, name in enumerate(NAMES)]
WHOLE = json.dumps(ROWS, separators=(",", ":"))
CHUNKS = [WHOLE[start : start + 2033] for start in range(0, len(WHOLE), 2033)]
SQLCMD = "".join(chunk + "\n" for chunk in CHUNKS)


def read(tmp_path: Path, name: str, text: str, stand_ins: StandIns = HUB) -> CatalogExport:
    (tmp_path / name).write_bytes(text.encode())
    return read_export([str(tmp_path / name)], stand_ins)


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def test_the_test_chunks_end_at_difficult_places() -> None:
    ends = [(chunk[-4:], below[:3]) for chunk, below in pairwise(CHUNKS)]
    assert ends == [
        ("x   ", "x  "),
        ("ervi", "ce_"),
        ("   x", "   "),
        ("x   ", "x  "),
        ("2 x ", "  x"),
        ("   x", "   "),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("services.json", WHOLE),
        ("services.json", SQLCMD),
        ("services.json", SQLCMD.replace("\n", "\r\n")),
        ("services.txt", f"{HEADER}\n{'-' * 256}\n{SQLCMD}\n(7 rows affected)\n"),
        # -W takes the blanks off at the ends of lines.
        ("services.txt", f"{HEADER}\n{'-' * 41}\n" + "".join(f"{chunk.rstrip()}\n" for chunk in CHUNKS)),
        # SSMS, results to text or file: filled up to the width of its column.
        ("services.rpt", f"{HEADER:8192}\n{'-' * 8192}\n" + "".join(f"{chunk:8192}\n" for chunk in CHUNKS)),
        # SSMS, the grid saved: with quotation marks, with the header or without.
        ("services.csv", "".join(quoted(chunk) + "\r\n" for chunk in CHUNKS)),
        ("services.csv", f"{HEADER}\r\n" + "".join(quoted(chunk) + "\r\n" for chunk in CHUNKS)),
        ("services.csv", quoted(WHOLE) + "\r\n"),
        ("services.json", f'{{"services":{WHOLE}}}'),
        ("services.json", WHOLE[1:-1]),
        ("services.json", json.dumps(ROWS, indent=4)),
        ("services.json", json.dumps({"value": ROWS, "Count": len(ROWS)}, indent=4)),
        ("services.json", "".join(json.dumps(row) + "\n" for row in ROWS)),
    ],
    ids=[
        *("whole", "chunks", "CRLF", "header and dashes", "-W", "SSMS text", "SSMS grid", "SSMS grid with header"),
        *("SSMS one cell", "ROOT", "WITHOUT_ARRAY_WRAPPER", "pretty", "PowerShell", "lines"),
    ],
)
def test_each_form_gives_the_same_rows(tmp_path: Path, name: str, text: str) -> None:
    export = read(tmp_path, name, text)
    assert [row["name"] for row in export.rows["services"]] == NAMES
    assert (export.rejected, export.notes) == ([], [])


def test_a_null_column_is_left_out(tmp_path: Path) -> None:
    text = (
        '[{"name":"a","address":"LOCAL"},{"name":"b","remote_service_name":"//b","address":"TCP://b:1","lifetime":'
    )
    export = read(tmp_path, "routes.json", text + '"2030-01-01T08:30:00.123"}]')
    assert [(row["remote_service_name"], row["broker_instance"]) for row in export.rows["routes"]] == [
        (None, None),
        ("//b", None),
    ]
    assert export.rows["routes"][1]["lifetime"] == datetime(2030, 1, 1, 8, 30, 0, 123000, tzinfo=timezone.utc)
    what = "broker_instance, mirror_address in no row, read as NULL (FOR JSON omits NULL)"
    assert export.notes == [f"{tmp_path}/routes.json: {what}"]


def test_null_values_that_are_included(tmp_path: Path) -> None:
    text = '[{"name":"a","remote_service_name":null,"broker_instance":null,"lifetime":null,"address":"LOCAL",'
    export = read(tmp_path, "routes.json", text + '"mirror_address":null}]')
    assert [row["remote_service_name"] for row in export.rows["routes"]] == [None]
    assert export.notes == []
    # A tool that writes each value as a text has no other NULL.
    for written, expected in (('"NULL"', None), ('"//b"', "NULL")):
        rows = f'[{{"name":"a","remote_service_name":"NULL","broker_instance":{written},"address":"LOCAL"}}'
        rows += ',{"name":"b","remote_service_name":"//b","broker_instance":null,"address":"LOCAL"}]'
        text = rows if written != '"NULL"' else rows.replace("null", '"NULL"')
        export = read(tmp_path, "routes.json", text)
        assert [row["remote_service_name"] for row in export.rows["routes"]] == [expected, "//b"], written


@pytest.mark.parametrize("between", ["\n(1 rows affected)\n", f"\n{HEADER}\n{'-' * 256}\n", "\n"])
def test_several_queries_in_one_file(tmp_path: Path, between: str) -> None:
    added = '"instance_name":"HUB","exported_at":"2026-01-05T12:00:00Z"'
    first = f'[{{"view_name":"services",{added},"database_name":"Shop","name":"//a"}}]'
    second = f'[{{"view_name":"tcp_endpoints",{added},"endpoint_id":65536,"port":4022}}]'
    text = f"{HEADER}\n{'-' * 256}\n" if HEADER in between else ""
    export = read(tmp_path, "HUB.txt", text + first + between + second + "\n", StandIns())
    assert export.rows_read == {"services": 1, "tcp_endpoints": 1}
    assert [row["port"] for row in export.rows["tcp_endpoints"]] == [4022]


def test_a_view_that_is_empty(tmp_path: Path) -> None:
    export = read(tmp_path, "routes.txt", f"{HEADER}\n{'-' * 256}\n\n(0 rows affected)\n")
    assert [row["is_empty"] for row in export.rows["routes"]] == [True]


@pytest.mark.parametrize(
    "text",
    [
        # sqlcmd without -y 0 writes 256 characters of each chunk.
        f"{HEADER}\n{'-' * 256}\n" + "".join(f"{chunk[:256]}\n" for chunk in CHUNKS),
        f"{HEADER}\n{'-' * 256}\n{CHUNKS[0]}\n",
        f"{HEADER}\n{'-' * 80}\n" + "".join(WHOLE[at : at + 80] + "\n" for at in range(0, len(WHOLE), 80)),
        # Broken in the middle of a name, where blanks would do no harm to the JSON.
        f"{HEADER}\n{'-' * 80}\n" + '[{"name":"' + "x" * 70 + "\n" + "x" * 50 + '"}]\n',
    ],
    ids=["cut", "first chunk alone", "wrapped", "wrapped in a name"],
)
def test_cut_off_json_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ContractError) as caught:
        read(tmp_path, "services.txt", text)
    assert str(caught.value).endswith(
        "services.txt' cannot be read: the text below its header JSON_F52E2B61-… is not complete JSON"
        " (sqlcmd cuts it off without -y 0 -w 65535)"
    )


def test_cut_off_json_without_a_header_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="it has no line with a JSON object"):
        read(tmp_path, "services.json", "".join(f"{chunk[:256]}\n" for chunk in CHUNKS))


def test_rows_are_named_by_their_number(tmp_path: Path) -> None:
    export = read(tmp_path, "services.json", '[{"name":"//a","service_id":1},{"name":["//b"]},3,{"name":"//c"}]')
    assert [row["name"] for row in export.rows["services"]] == ["//a", "//c"]
    assert export.rejected == [
        f"{tmp_path}/services.json, row 3: it is not a JSON object",
        f"{tmp_path}/services.json, row 2: name: \"['//b']\" is not text",
    ]


@pytest.mark.parametrize(("cell", "is_read"), [("Shop", False), ("1", True), (None, True), (7, True)])
def test_a_column_without_a_name_holds_numbers_only(tmp_path: Path, cell: object, is_read: bool) -> None:
    """PowerShell calls DB_NAME() Column1: its rows are of an unknown database."""
    rows = [{"Column1": cell, "name": "//a", "service_id": 1}, {"name": "//b", "service_id": 2}]
    export = read(tmp_path, "services.json", json.dumps(rows))
    assert [row["name"] for row in export.rows["services"]] == (["//a", "//b"] if is_read else ["//b"])
    assert [why.rpartition(": ")[2] for why in export.rejected] == (
        [] if is_read else ["'Shop' is not the number of a row"]
    )


def test_unrelated_json_in_a_folder_is_skipped_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"theme":"dark"}', encoding="utf-8")
    (tmp_path / "services.json").write_text(WHOLE, encoding="utf-8")
    export = read_export([str(tmp_path)], HUB)
    assert export.rows_read == {"services": 100}
    assert export.notes == [
        f"{tmp_path}/settings.json: not read, neither its name nor its columns identify a view"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '[{"a":' * 50_000,
        "{}," * 200_000,
        "[]\n" * 200_000,
        f"{HEADER}\n" * 50_000,
        "[{" + '"' * 400_000,
    ],
    ids=["brackets", "nested", "objects", "arrays", "headers", "quotes"],
)
def test_hostile_texts_end_in_time(tmp_path: Path, text: str) -> None:
    begin = time.process_time()
    with suppress(ContractError):
        read(tmp_path, "services.json", text)
    assert time.process_time() - begin < 20


@pytest.mark.parametrize(
    ("lines", "read", "rejected"),
    [
        (['{"name": "a"}', '{"name": "b"}'], ["a", "b"], []),
        (['{"name": "a"}', '{"name": "b"},{"name": "c"}', '{"name": "d"}'], ["a", "d"], [2]),
        (['{"name": "a"}', '{"name": "b", "x": [{}', "{}]}", '{"name": "d"}'], ["a", "d"], [2, 3]),
        (['{"name": "a"}', '{"name": "b', 'c"}', '{"name": "d"}'], ["a", "d"], [2, 3]),
        (['{"name": "a"}', '{"name": "b", "x": [{}', '{}]},-Infinity,{"name": "c"}'], ["a"], [2, 3]),
        (
            ['{"name": "a", "service_id": -Infinity}', '{"name": "b"}', '{"name": "-Infinity"}'],
            ["a", "b", "-Infinity"],
            [],
        ),
    ],
)
def test_each_line_is_one_object(tmp_path: Path, lines: list[str], read: list[str], rejected: list[int]) -> None:
    """Lines are read together, so that two of them must not become one object or one of them two."""
    (tmp_path / "services.json").write_text(
        "\n".join(['{"name": "0", "service_id": 1}', *lines]), encoding="utf-8"
    )
    export = read_export([str(tmp_path)], StandIns("HUB", "Shop", datetime(2026, 1, 5, tzinfo=timezone.utc)))
    assert [row["name"] for row in export.rows["services"]] == ["0", *read]
    assert [int(why.partition(", row ")[2].partition(":")[0]) - 1 for why in export.rejected] == rejected


@pytest.mark.parametrize("form", ["[{}]", "{}\n", '{{"routes": [{}]}}'])
def test_an_object_with_several_values_of_a_key_is_refused(tmp_path: Path, form: str) -> None:
    clash = '{{"name": "{}", "address": "TCP://a:1", "{}": "TCP://b:1"}}'
    rows = [clash.format("A", "address"), clash.format("B", "Address"), '{"name": "C", "address": "LOCAL"}']
    text = form.format(("\n" if form == "{}\n" else ",").join(rows))
    export = read(tmp_path, "routes.json", text)
    assert [row["name"] for row in export.rows["routes"]] == ["C"]
    assert [why.partition(", row ")[2] for why in export.rejected] == [
        f"{number}: address is in it several times, and the values differ" for number in (1, 2)
    ]
    # Equal values are no doubt.
    export = read(tmp_path, "routes.json", rows[0].replace("b:1", "a:1"))
    assert [row["address"] for row in export.rows["routes"]] == ["TCP://a:1"]


def test_roots_of_several_databases_are_refused(tmp_path: Path) -> None:
    rows = '[{"name": "A", "remote_service_name": "//a", "address": "TCP://a:1"}]'
    export = read(tmp_path, "routes.json", f'{{"Shop": {rows}}}\n{{"Stock": {rows}}}')
    assert len(export.rejected) == 2
    assert "no member says of which database" in export.rejected[0]


AUTO = {
    "a joined table": [{"name": "//a", "service_id": 5, "q": [{"service_queue_id": 9}]}],
    "the outer table": [{"database": "Shop", "s": [{"name": "//a", "service_id": 5, "service_queue_id": 9}]}],
    "a collection with another number of objects": {"value": [{"name": "//a", "service_queue_id": 5}], "Count": 2},
    "an object": {"name": "//a", "s": {"service_id": 5, "service_queue_id": 9}},
}


@pytest.mark.parametrize("rows", AUTO.values(), ids=AUTO)
@pytest.mark.parametrize("name", ["services.json", "result.json"])
def test_columns_of_a_joined_table_are_refused(tmp_path: Path, rows: object, name: str) -> None:
    with pytest.raises(ContractError, match=r"objects below .* columns that its rows lack: .*service_queue_id"):
        read(tmp_path, name, json.dumps(rows))


def test_a_joined_table_without_columns_of_the_view_is_no_part_of_it(tmp_path: Path) -> None:
    rows = [{"name": "//a", "service_id": 5, "service_queue_id": 9, "q": [{"name": "Q", "object_id": 9}]}]
    assert read(tmp_path, "services.json", json.dumps(rows)).rows_read == {"services": 1}


def test_a_list_beside_an_invisible_character_is_refused(tmp_path: Path) -> None:
    rows = [{"name": "//a\u200b", "service_id": 5}, {"name": ["//b"], "service_id": 6}]
    export = read(tmp_path, "services.json", json.dumps(rows, ensure_ascii=False))
    assert [row["name"] for row in export.rows["services"]] == ["//a\u200b"]
    assert [note.partition("services.json, ")[2][:5] for note in export.notes if "invisible" in note] == ["row 1"]
