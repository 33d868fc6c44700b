"""Exports as people bring them: with own names, copied from a grid, quoted, or with local times."""

from __future__ import annotations

import codecs
import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from routing.errors import ContractError
from routing.importing.catalog import CatalogExport, StandIns, read_export
from routing.importing.catalog.culture_times import date_format, find_culture_form

UTC = timezone.utc
HUB = StandIns("hub", "Shop", datetime(2026, 1, 5, 18, tzinfo=UTC))
HANDLE = "a1b2c3d4-0001-4000-8000-00000000000f"
QUEUE_COLUMNS = [
    "conversation_handle",
    "to_service_name",
    "to_broker_instance",
    "from_service_name",
    "service_contract_name",
    "enqueue_time",
    "message_sequence_number",
    "message_type_name",
    "is_conversation_error",
    "is_end_of_dialog",
    "message_body",
    "transmission_status",
    "priority",
]
QUEUED = [
    HANDLE.upper(),
    "//billing",
    "NULL",
    "//orders",
    "//contract",
    "2026-01-05 14:03:22.123",
    "7",
    "//type",
    "0",
    "0",
    "0x3C006F00720064006500720020002F003E00",
    "",
    "5",
]
ROUTE_COLUMNS = [
    "name",
    "route_id",
    "principal_id",
    "remote_service_name",
    "broker_instance",
    "lifetime",
    "address",
    "mirror_address",
]
ROUTE = ["ToBilling", "65537", "1", "//billing", "NULL", "NULL", "TCP://far:4022", "NULL"]


def grid(columns: list[str], *rows: list[str], separator: str = "\t", end: str = "\r\n", quote: str = "") -> str:
    """A grid as text: its header and rows, each cell in quotes where one is given."""
    lines = [separator.join(f"{quote}{cell}{quote}" for cell in line) for line in (columns, *rows)]
    return "".join(f"{line}{end}" for line in lines)


def read(tmp_path: Path, name: str, content: str | bytes, stand_ins: StandIns = HUB) -> CatalogExport:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_export([str(tmp_path)], stand_ins)


def only_row(export: CatalogExport, view: str) -> dict[str, Any]:
    [row] = export.rows[view]
    return row


GRID = grid(QUEUE_COLUMNS, QUEUED)
SQLCMD_W = grid(QUEUE_COLUMNS, ["-" * len(name) for name in QUEUE_COLUMNS], QUEUED, separator="|")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("Results.txt", GRID.encode()),
        ("transmission queue.tsv", GRID.encode()),
        ("sys_transmission_queue.csv", GRID.encode()),
        ("routes.csv", GRID.encode()),
        ("Ergebnisse.rpt", codecs.BOM_UTF16_LE + GRID.encode("utf-16-le")),
        ("queue.csv", grid(QUEUE_COLUMNS, QUEUED, separator=";").encode()),
        ("queue.csv", grid(QUEUE_COLUMNS, QUEUED, separator=",", end="\n").encode()),
        ("queue.txt", (GRID + "\r\n\r\n(1 row affected)\r\n\r\n").encode()),
        ("queue.txt", (GRID + "\r\n(1 Zeile betroffen)\r\n").encode()),
        ("out.txt", (SQLCMD_W + "\r\n(1 rows affected)\r\n").encode()),
        ("queue.csv", grid([*QUEUE_COLUMNS, "age_minutes"], [*QUEUED, "17"]).encode()),
        ("queue.csv", grid([*QUEUE_COLUMNS, ""], [*QUEUED, "", ""], separator=";").encode()),
    ],
    ids=[
        "a name that says nothing",
        "words with a blank",
        "sys_",
        "a name that is wrong",
        "UTF-16 of SSMS",
        "semicolons",
        "commas",
        "blank lines and a count",
        "a count in German",
        "sqlcmd -W -s|",
        "a column of its own",
        "empty cells of a spreadsheet",
    ],
)
def test_a_queue_exported_by_select_star(tmp_path: Path, name: str, content: bytes) -> None:
    row = only_row(read(tmp_path, name, content), "transmission_queue")
    assert row == {
        "instance_name": "hub",
        "database_name": "Shop",
        "exported_at": HUB.exported_at,
        "conversation_handle": HANDLE,
        "to_service_name": "//billing",
        "to_broker_instance": None,
        "from_service_name": "//orders",
        "enqueue_time": datetime(2026, 1, 5, 14, 3, 22, 123000, tzinfo=UTC),
        "message_sequence_number": 7,
        "transmission_status": None,
        "error_number": None,
        "place": row["place"],
    }


@pytest.mark.parametrize(
    ("columns", "row", "view"),
    [
        (ROUTE_COLUMNS, ROUTE, "routes"),
        (
            ["name", "database_id", "collation_name", "service_broker_guid", "is_broker_enabled"],
            ["Shop", "5", "Latin1_General_CI_AS", HANDLE, "1"],
            "databases",
        ),
        (["name", "service_id", "principal_id", "service_queue_id"], ["//a", "65536", "1", "99"], "services"),
        (
            ["name", "endpoint_id", "state_desc", "is_message_forwarding_enabled", "certificate_id"],
            ["Broker", "65536", "STARTED", "0", "1"],
            "service_broker_endpoints",
        ),
        (
            ["name", "endpoint_id", "port", "is_dynamic_port", "ip_address"],
            ["Broker", "65536", "4022", "0", "NULL"],
            "tcp_endpoints",
        ),
        (
            ["conversation_handle", "conversation_id", "is_initiator", "far_service", "state"],
            [HANDLE, HANDLE, "1", "//a", "CO"],
            "conversation_endpoints",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_columns_identify_each_view(tmp_path: Path, columns: list[str], row: list[str], view: str) -> None:
    export = read(tmp_path, "Results.csv", grid(columns, row, separator=","))
    assert (list(export.rows), len(export.rows[view]), export.rejected) == ([view], 1, [])
    assert f"{tmp_path}/Results.csv: recognised by its columns as sys.{view}" in export.notes
    (tmp_path / "named").mkdir()
    named = read(tmp_path / "named", f"sys.{view} of Shop.csv", grid(columns, row, separator=","))
    assert len(named.rows[view]) == 1
    assert not [note for note in named.notes if "recognised" in note]


def test_json_without_the_name_of_its_view(tmp_path: Path) -> None:
    row = dict(zip(ROUTE_COLUMNS, [None if cell == "NULL" else cell for cell in ROUTE], strict=True))
    assert only_row(read(tmp_path, "result.json", json.dumps([row])), "routes")["name"] == "ToBilling"


def test_two_grids_in_one_file_are_two_result_sets(tmp_path: Path) -> None:
    text = f"these do not move:\r\n\r\n{GRID}\r\n{grid(ROUTE_COLUMNS, ROUTE)}"
    export = read(tmp_path, "case.txt", text)
    assert only_row(export, "transmission_queue")["to_service_name"] == "//billing"
    assert only_row(export, "routes")["address"] == "TCP://far:4022"
    assert export.rejected == [f"{tmp_path}/case.txt, row 1: it is above the first header"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("readme.txt", "the columns are name, address and lifetime\n"),
        ("queues.csv", "name,object_id,is_receive_enabled\n//q,1,1\n"),
        ("package.json", '{"name": "x", "address": "LOCAL"}'),
    ],
)
def test_unknown_result_sets_are_skipped(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / "routes.csv").write_text(grid(ROUTE_COLUMNS, ROUTE), encoding="utf-8")
    export = read(tmp_path, name, content)
    assert list(export.rows) == ["routes"]
    assert f"{tmp_path}/{name}: not read, neither its name nor its columns identify a view" in export.notes


QUOTED = [*ROUTE[:4], "", "NULL", *ROUTE[6:]]


@pytest.mark.parametrize(
    ("content", "mirror"),
    [
        (grid(ROUTE_COLUMNS, QUOTED, quote='"', separator=","), None),
        (grid(ROUTE_COLUMNS, QUOTED, quote='"', separator=";"), None),
        ("#TYPE System.Data.DataRow\r\n" + grid(ROUTE_COLUMNS, QUOTED, quote='"', separator=","), None),
        (grid(ROUTE_COLUMNS, QUOTED, quote='"', separator=",").replace('""', ""), None),
        # Where only some cells are quoted, quotes say that it is text.
        (grid(ROUTE_COLUMNS, [*ROUTE[:7], '"NULL"'], separator=","), "NULL"),
    ],
    ids=["commas", "semicolons", "PowerShell 5.1", "nothing at all for null", "some are quoted"],
)
def test_quoted_null_is_null(tmp_path: Path, content: str, mirror: str | None) -> None:
    row = only_row(read(tmp_path, "routes.csv", content), "routes")
    assert [row[name] for name in ("remote_service_name", "broker_instance", "lifetime", "mirror_address")] == [
        "//billing",
        None,
        None,
        mirror,
    ]


# Times of a file, and what each is: None where no reading fits all, a list of forms where several do.
_AT = datetime(2026, 1, 5, 14, 3, 22)
CULTURES = [
    pytest.param(["05.01.2026 14:03:22"], [_AT], id="German: with points the day is first"),
    pytest.param(["5.1.2026 14.03.22"], [_AT], id="Finnish"),
    pytest.param(["05/01/2026 14:03:22", "13/01/2026 00:00:00"], [_AT, datetime(2026, 1, 13)], id="a 13th, day"),
    pytest.param(["1/5/2026 2:03:22 PM", "1/13/2026"], [_AT, datetime(2026, 1, 13)], id="a 13th, month first"),
    pytest.param(
        ["1/5/2026 2:03:22\u202fPM", "1/31/2026 12:00 AM"], [_AT, datetime(2026, 1, 31)], id="narrow blank"
    ),
    pytest.param(["25/01/2026 2:03:22 p. m."], [datetime(2026, 1, 25, 14, 3, 22)], id="Spanish"),
    pytest.param(["05/05/2026"], [datetime(2026, 5, 5)], id="both readings are one"),
    pytest.param(["2026/1/5 14:03:22"], [_AT], id="Japanese"),
    pytest.param(["2026/1/5 下午 2:03:22"], [_AT], id="Chinese"),
    pytest.param(["2026. 01. 05. 14:03:22"], [_AT], id="Hungarian"),
    pytest.param(["5.1.2026 \u0433. 14:03:22"], [_AT], id="Bulgarian"),
    pytest.param(["Jan  5 2026  2:03PM"], [datetime(2026, 1, 5, 14, 3)], id="CONVERT"),
    pytest.param(["05-Jan-2026 14:03:22"], [_AT], id="a month by name"),
    pytest.param(["Monday, January 5, 2026 2:03:22 PM"], [_AT], id="long"),
    pytest.param(["15.01.2026 14:03:22,5"], [datetime(2026, 1, 15, 14, 3, 22, 500000)], id="a decimal comma"),
    pytest.param(["13.01.2026 14:03:22 +02:00"], [datetime(2026, 1, 13, 12, 3, 22, tzinfo=UTC)], id="an offset"),
    pytest.param(["1/15/26 14:03"], [datetime(2026, 1, 15, 14, 3)], id="Excel: two digits of a year"),
    pytest.param(["1/5/2026 2:03:22 PM"], ["d/M/yyyy h:mm:ss tt", "M/d/yyyy h:mm:ss tt"], id="either"),
    pytest.param(["05-01-2026", "06-02-2026"], ["dd-MM-yyyy", "MM-dd-yyyy"], id="either, by all of them"),
    pytest.param(["05.01.26"], ["dd.MM.yy", "yy.MM.dd"], id="either end may be the year"),
    pytest.param(["13/01/2026", "01/13/2026"], None, id="neither"),
    pytest.param(["05.13.2026"], None, id="no such month"),
    pytest.param(["05.01.2026", "tomorrow"], None, id="one is none"),
    pytest.param(["1/15/2026 13:00 PM"], None, id="no hour of twelve"),
]


@pytest.mark.parametrize(("texts", "expected"), CULTURES)
def test_culture_formats_are_found_from_all_times(texts: list[str], expected: list[Any] | None) -> None:
    if expected is None:
        assert find_culture_form(texts, "f.csv") is None
    elif isinstance(expected[0], str):
        with pytest.raises(ContractError) as caught:
            find_culture_form(texts, "f.csv")
        assert caught.value.exit_code == 2
        assert all(f"--date-format '{form}'" in str(caught.value) for form in expected)
        assert all(date_format(form).read(texts[0]) is not None for form in expected)
    else:
        form = find_culture_form(texts, "f.csv")
        assert form is not None
        assert [form.read(text) for text in texts] == expected


def test_times_of_a_culture_are_read_with_a_note(tmp_path: Path) -> None:
    rows = [[*QUEUED[:5], time, *QUEUED[6:]] for time in ("05.01.2026 14:03:22", "06.01.2026 09:00:00")]
    export = read(tmp_path, "transmission_queue.csv", grid(QUEUE_COLUMNS, *rows, separator=";", quote='"'))
    assert [row["enqueue_time"] for row in export.rows["transmission_queue"]] == [
        datetime(2026, 1, 5, 14, 3, 22, tzinfo=UTC),
        datetime(2026, 1, 6, 9, tzinfo=UTC),
    ]
    expected = "times such as '05.01.2026 14:03:22' are read as dd.MM.yyyy HH:mm:ss (--date-format)"
    assert export.notes == [f"{tmp_path}/transmission_queue.csv: {expected}"]


def test_ambiguous_times_need_a_format(tmp_path: Path) -> None:
    row = [*QUEUED[:5], "05/01/2026 14:03:22", *QUEUED[6:]]
    with pytest.raises(ContractError) as caught:
        read(tmp_path, "transmission_queue.csv", grid(QUEUE_COLUMNS, row, separator=","))
    assert "--date-format 'dd/MM/yyyy HH:mm:ss' or --date-format 'MM/dd/yyyy HH:mm:ss'" in str(caught.value)


@pytest.mark.parametrize("written", ["1", "True", "true", "0x01", "WAHR", "VRAI"])
@pytest.mark.parametrize(
    "guid",
    [HANDLE, HANDLE.upper(), f"{{{HANDLE}}}", "0xD4C3B2A101000040800000000000000F"],
    ids=["lower", "upper", "braces", "binary"],
)
def test_flags_and_guids_are_read_in_every_form(tmp_path: Path, written: str, guid: str) -> None:
    columns = ["conversation_handle", "conversation_id", "is_initiator", "far_service", "far_broker_instance"]
    export = read(tmp_path, "grid.txt", grid(columns, [guid, HANDLE, written, "//a", "NULL"]))
    row = only_row(export, "conversation_endpoints")
    assert (row["conversation_handle"], row["is_initiator"]) == (HANDLE, True)


def test_trailing_empty_cells_may_be_missing(tmp_path: Path) -> None:
    """The status is the last column of the older view. A line of one word is not a row."""
    columns = QUEUE_COLUMNS[:-1]
    row = "\t".join(QUEUED[:-1]).rstrip()
    export = read(tmp_path, "queue.txt", grid(columns) + f"{row}\n{row}\nstray\n")
    assert [row["transmission_status"] for row in export.rows["transmission_queue"]] == [None, None]
    assert export.rejected == [f"{tmp_path}/queue.txt, row 4: it has 1 cells, the header {len(columns)}"]


def test_empty_objects_in_json_are_null(tmp_path: Path) -> None:
    row = {name: {} if cell == "NULL" else cell for name, cell in zip(ROUTE_COLUMNS, ROUTE, strict=True)}
    found = only_row(read(tmp_path, "routes.json", json.dumps([row])), "routes")
    assert (found["broker_instance"], found["lifetime"]) == (None, None)
