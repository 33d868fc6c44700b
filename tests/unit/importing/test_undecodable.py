"""Bytes that cannot be decoded, half characters and numbers without end: their row, option or file is rejected."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from routing.importing.catalog import StandIns
from routing.importing.catalog.typed_rows import CatalogExport, read_export
from routing.importing.events.event_files import RawEvent, read_events
from routing.importing.import_files import KEEP, as_shown, is_writable, on_this_disk
from routing.rules.text import decode_utf8

AT = datetime(2026, 1, 5, tzinfo=timezone.utc)
GIVEN = StandIns("hub", "Sales", AT)
HEAD = b"name,remote_service_name,address\r\n"


def exported(tmp_path: Path, name: str, data: bytes) -> CatalogExport:
    (tmp_path / name).write_bytes(data)
    return read_export([str(tmp_path / name)], GIVEN)


def names(export: CatalogExport, view: str = "routes") -> list[Any]:
    return [row["name"] for row in export.rows[view]]


def rejections_of(export: CatalogExport) -> list[str]:
    return [sentence.partition(", row ")[2] for sentence in export.rejected]


HOLDS = "it contains bytes that cannot be decoded, or half a character: "


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\x81", r"\x81"),
        ("\u00e9".encode("cp1252") + b"\x8d", "\u00e9\\x8d"),
        (b"\x90" * 3, r"\x90\x90\x90"),
    ],
)
def test_a_row_with_a_byte_outside_the_code_page_is_rejected(data: bytes, shown: str, tmp_path: Path) -> None:
    rows = b"caf\xe9,//a,LOCAL\r\n" + data + b",//b,LOCAL\r\n"
    export = exported(tmp_path, "routes.csv", HEAD + rows)
    # The other name may be of that code page as well, so its row is refused too.
    guess = "name: 'caf\u00e9' is not a likely name in Windows-1252: give --encoding"
    assert (names(export), sorted(rejections_of(export))) == ([], [f"2: {guess}", f"3: {HOLDS}'{shown}'"])


def test_two_services_do_not_become_one(tmp_path: Path) -> None:
    export = exported(tmp_path, "services.csv", b"name\r\n//a\x81\r\n//a\x8f\r\n//b\r\n")
    assert (names(export, "services"), len(rejections_of(export))) == (["//b"], 2)
    # Each may be any service of the database, so that none is removed.
    assert export.doubts == {"services": {("hub", "sales", None)}}


@pytest.mark.parametrize(
    ("head", "encoding", "bad"),
    [
        pytest.param(b"\xef\xbb\xbf", "utf-8", b"\xe9", id="a byte after the mark of UTF-8"),
        pytest.param(b"\xff\xfe", "utf-16-le", b"\x00\xd8", id="half a character of UTF-16"),
        pytest.param(b"\xfe\xff", "utf-16-be", b"\xdc\x00", id="the other half"),
        pytest.param(b"\xff\xfe\x00\x00", "utf-32-le", b"\x00\xd8\x00\x00", id="half a character in UTF-32"),
    ],
)
def test_a_row_with_bytes_outside_the_encoding_is_rejected(
    head: bytes, encoding: str, bad: bytes, tmp_path: Path
) -> None:
    lines = [line.encode(encoding) for line in ("name,address\r\nA,LOCAL\r\nB", ",LOCAL\r\nC\ufffd,LOCAL\r\n")]
    export = exported(tmp_path, "routes.csv", head + bad.join(lines))
    assert names(export) == ["A", "C\ufffd"]
    [sentence] = rejections_of(export)
    assert sentence.startswith(f"3: {HOLDS}'B\\x")


def test_a_file_that_ends_within_a_character(tmp_path: Path) -> None:
    text = "name,address\r\nA,LOCAL\r\nB,LOCAL".encode("utf-16")
    export = exported(tmp_path, "routes.csv", text + b"\x41")
    assert (names(export), len(rejections_of(export))) == (["A"], 1)


def test_undecodable_unknown_column_names_are_ignored(tmp_path: Path) -> None:
    """An unknown column does not belong to the view, with any name."""
    export = exported(tmp_path, "routes.csv", b"name,route_id,address,caf\x81\r\nA,1,LOCAL,x\r\n")
    assert names(export) == ["A"]


@pytest.mark.parametrize("name", ["routes.json", "routes.jsonl"])
@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        (b'"\x81"', HOLDS + r"'\x81'"),
        (rb'"\ud800"', HOLDS + r"'\ud800'"),
        (rb'"\udfff b"', HOLDS + r"'\udfff b'"),
        (b"Infinity", "name: 'inf' is not text"),
        (b"-Infinity", "name: '-inf' is not text"),
        (b"1e999", "name: 'inf' is not text"),
        (b"NaN", "name: 'nan' is not text"),
    ],
)
def test_undecodable_cells_of_json_are_rejected(name: str, cell: bytes, sentence: str, tmp_path: Path) -> None:
    good = b'{"name": "Infinity", "address": "LOCAL"}'
    rows = [good, b'{"name": ' + cell + b', "address": "LOCAL"}', rb'{"name": "\ud83d\ude00", "address": "LOCAL"}']
    data = b"[" + b", ".join(rows) + b"]" if name.endswith("json") else b"\n".join(rows)
    export = exported(tmp_path, name, data)
    assert names(export) == ["Infinity", "\U0001f600"]
    assert rejections_of(export) == [f"2: {sentence}"]


@pytest.mark.parametrize("cell", ["Infinity", "1e999", "-Infinity", "NaN"])
def test_infinite_numbers_in_json_are_rejected(cell: str, tmp_path: Path) -> None:
    head = '"service_broker_guid": "00000001-aaaa-bbbb-cccc-000000000000"'
    data = f'{{"name": "A", {head}, "database_id": {cell}}}\n{{"name": "B", {head}, "database_id": 5}}'
    export = exported(tmp_path, "databases.json", data.encode())
    assert names(export, "databases") == ["B"]
    assert [sentence.startswith("1: database_id: ") for sentence in rejections_of(export)] == [True]


def test_a_number_that_its_table_does_not_hold(tmp_path: Path) -> None:
    guid = "00000001-aaaa-bbbb-cccc-000000000000"
    head = b"name,service_broker_guid,database_id\n"
    rows = f"A,{guid},2147483648\nB,{guid},2147483647\nC,{guid},-2147483649\n".encode()
    export = exported(tmp_path, "databases.csv", head + rows)
    assert names(export, "databases") == ["B"]
    assert rejections_of(export) == [
        "2: database_id: '2147483648' does not fit an int (A)",
        "4: database_id: '-2147483649' does not fit an int (C)",
    ]


def test_undecodable_cells_of_parquet_are_rejected(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    texts = pyarrow.array([b"A", b"B\x81", b"Infinity"], pyarrow.binary()).view(pyarrow.string())
    numbers = [5.0, 6.0, float("inf")]
    columns = {"name": texts, "service_broker_guid": ["00000001-aaaa-bbbb-cccc-000000000000"] * 3}
    pyarrow.parquet.write_table(pyarrow.table({**columns, "database_id": numbers}), tmp_path / "databases.parquet")
    export = read_export([str(tmp_path / "databases.parquet")], GIVEN)
    assert names(export, "databases") == ["A"]
    assert rejections_of(export) == [rf"2: {HOLDS}'B\x81'", "3: database_id: 'inf' is not an integer (Infinity)"]


EVENT = '<event name="x" timestamp="2026-01-05T00:00:00Z"><data name="a"><value>{}</value></data></event>'


def as_csv(cell: bytes) -> tuple[str, bytes]:
    stream = io.StringIO()
    csv.writer(stream).writerows([["event_data"], [EVENT.format("GOOD")], [EVENT.format("BAD")]])
    return "e.csv", stream.getvalue().encode().replace(b"BAD", cell)


def as_lines(cell: bytes) -> tuple[str, bytes]:
    rows = [json.dumps({"event_data": EVENT.format(word)}).encode() for word in ("GOOD", "BAD")]
    return "e.jsonl", b"\n".join(rows).replace(b"BAD", cell)


def as_array(cell: bytes) -> tuple[str, bytes]:
    rows = [{"event_data": EVENT.format(word)} for word in ("GOOD", "BAD")]
    return "e.json", json.dumps(rows, indent=1).encode().replace(b"BAD", cell)


def as_xml(cell: bytes) -> tuple[str, bytes]:
    return "e.xml", f"<Events>{EVENT.format('GOOD')}\n{EVENT.format('BAD')}</Events>".encode().replace(
        b"BAD", cell
    )


def as_parquet(cell: bytes) -> tuple[str, bytes]:
    import pyarrow
    import pyarrow.parquet

    rows = [EVENT.format("GOOD").encode(), EVENT.format("BAD").encode().replace(b"BAD", cell)]
    texts = pyarrow.array(rows, pyarrow.binary()).view(pyarrow.string())
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"event_data": texts}), stream)
    return "e.parquet", stream.getvalue()


def raws(tmp_path: Path, name: str, data: bytes) -> list[RawEvent]:
    (tmp_path / name).write_bytes(data)
    return list(read_events([str(tmp_path / name)], on_this_disk, []))


@pytest.mark.parametrize("form", [as_csv, as_lines, as_array, as_xml, as_parquet], ids=lambda form: form.__name__)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["bare", "mark"])
def test_events_with_undecodable_bytes(
    form: Callable[[bytes], tuple[str, bytes]], mark: bytes, tmp_path: Path
) -> None:
    name, data = form(b"caf\xe9")
    good, bad = raws(tmp_path, name, data if name.endswith("parquet") else mark + data)
    assert (good.data, bad.data) == (EVENT.format("GOOD"), None)
    assert (bad.why or "").startswith(HOLDS)
    assert r"caf\xe9" in (bad.why or "")


def test_half_a_character_in_the_json_of_an_event(tmp_path: Path) -> None:
    rows = [
        json.dumps({"event_data": EVENT.format("x"), "instance_name": "\ud800"}),
        json.dumps({"event_data": EVENT.format("\udc00")}),
        json.dumps({"event_data": EVENT.format("\U0001f600"), "instance_name": "Infinity"}),
    ]
    raw_events = raws(tmp_path, "e.jsonl", "\n".join(rows).encode())
    assert [raw.instance for raw in raw_events if raw.why is None] == ["Infinity"]


def test_half_a_character_of_utf_16(tmp_path: Path) -> None:
    text = f"<Events>{EVENT.format('GOOD')}{EVENT.format('BAD')}</Events>".encode("utf-16-le")
    good, bad = raws(tmp_path, "e.xml", b"\xff\xfe" + text.replace("BAD".encode("utf-16-le"), b"\x00\xd8"))
    assert (good.data, bad.data) == (EVENT.format("GOOD"), None)


OPTIONS = [
    ["import", "tsql", "--config", "c", "--instance", b"h\x81", "s.sql"],
    ["import", "tsql", "--config", "c", "--instance", "hub", "--database", b"h\x81", "s.sql"],
    ["import", "tsql", "--config", "c", "--instance", "hub", "-v", b"A=h\x81", "s.sql"],
    ["import", "tsql", "--config", "c", "--instance", "hub", b"h\x81.sql"],
    ["import", "catalog", "--config", "c", "--address", b"hub=tcp://h\x81:1", "d"],
    ["import", "events", "--config", "c", "--instance", b"h\x81", "d"],
    ["check", b"h\x81"],
]


@pytest.mark.parametrize("line", OPTIONS, ids=lambda line: " ".join(map(str, line)))
def test_undecodable_arguments_are_refused(line: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    words = [os.fsdecode(word) if isinstance(word, bytes) else word for word in line]
    number = 1 + next(place for place, word in enumerate(line) if isinstance(word, bytes))
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(f"sbroute: argument {number} holds bytes that are no UTF-8: '")
    assert r"h\x81" in err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a", None),
        ("\u00e9\U0001f600\ufffd", None),
        (b"\xff".decode("utf-8", KEEP), r"\xff"),
        (b"a\x00\xd8"[1:].decode("utf-16-le", KEEP), r"\x00\xd8"),
        ("\ud83d", r"\ud83d"),
        (decode_utf8(b"\x81"), r"\x81"),
    ],
)
def test_a_table_can_store_only_unicode_text(text: str, shown: str | None) -> None:
    assert is_writable(text) is (shown is None)
    assert as_shown(text) == (text if shown is None else shown)
