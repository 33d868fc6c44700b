"""Exports as PowerShell, sqlcmd without a separator and Excel write them, and files that are none."""

from __future__ import annotations

import codecs
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from routing.errors import ContractError
from routing.importing.catalog import VIEWS, CatalogExport, StandIns, read_export

AT = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
HUB = StandIns("hub", "Shop", AT)
BROKER = "4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D88"
ROUTES = [
    ("AutoCreatedLocal", None, None, None, "LOCAL", None),
    (
        "To stock, fast",
        "//stock",
        BROKER,
        datetime(2030, 1, 1, 8, 30, 0, 123000, tzinfo=timezone.utc),
        "TCP://stock:4022",
        None,
    ),
]
NAMES = ("name", "remote_service_name", "broker_instance", "lifetime", "address", "mirror_address")


def read(tmp_path: Path, name: str, content: str | bytes, stand_ins: StandIns = HUB) -> CatalogExport:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_export([str(file)], stand_ins)


def refused(tmp_path: Path, name: str, content: str | bytes) -> str:
    with pytest.raises(ContractError) as caught:
        read(tmp_path, name, content)
    assert caught.value.exit_code == 2
    return str(caught.value)


def routes(export: CatalogExport) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in NAMES) for row in export.rows["routes"]]


# Invoke-Sqlcmd … | Export-Csv in Windows PowerShell 5.1: what is NULL is an empty text.
POWERSHELL = """#TYPE System.Data.DataRow
"name","route_id","remote_service_name","broker_instance","lifetime","address","mirror_address",\
"RowError","RowState","Table","ItemArray","HasErrors"
"AutoCreatedLocal","65536","","","","LOCAL","","","Unchanged","","System.Object[]","False"
"To stock, fast","65537","//stock","4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D88","2030-01-01 08:30:00.123",\
"TCP://stock:4022","","","Unchanged","","System.Object[]","False"
""".replace("\n", "\r\n")


@pytest.mark.parametrize(
    "data",
    [
        POWERSHELL.encode("ascii"),
        codecs.BOM_UTF8 + POWERSHELL.encode(),
        codecs.BOM_UTF16_LE + POWERSHELL.encode("utf-16-le"),
        POWERSHELL.replace("System.Data", "Selected.System.Data").encode(),
        # -NoTypeInformation, as PowerShell 7 does by itself.
        POWERSHELL.partition("\r\n")[2].encode(),
        # -UseCulture where numbers have a decimal comma.
        POWERSHELL.replace('","', '";"').encode(),
    ],
    ids=["ASCII", "UTF-8 BOM", "UTF-16", "Select-Object", "without #TYPE", "semicolons"],
)
def test_powershell(tmp_path: Path, data: bytes) -> None:
    export = read(tmp_path, "routes.csv", data)
    assert routes(export) == ROUTES
    assert (export.rejected, export.notes) == ([], [])


def test_powershell_7_exports_a_view_of_one_column(tmp_path: Path) -> None:
    text = '"name","RowError","RowState","Table","ItemArray","HasErrors"\n'
    export = read(tmp_path, "services.csv", text + '"//a","","Unchanged","","System.Object[]","False"\n')
    assert [row["name"] for row in export.rows["services"]] == ["//a"]


def test_powershell_writes_flags_as_true_and_false(tmp_path: Path) -> None:
    text = '#TYPE Selected.System.Data.DataRow\n"name","service_broker_guid","is_broker_enabled"\n'
    text += f'"a","{BROKER}","True"\n"b","{BROKER.lower()}","False"\n'
    export = read(tmp_path, "databases.csv", text)
    assert [(row["name"], row["is_broker_enabled"]) for row in export.rows["databases"]] == [
        ("a", True),
        ("b", False),
    ]


def test_powershell_counts_lines_as_an_editor_does(tmp_path: Path) -> None:
    text = '#TYPE System.Data.DataRow\n"name","address"\n"a","LOCAL"\n"","LOCAL"\n'
    export = read(tmp_path, "routes.csv", text)
    assert export.rejected == [f"{tmp_path}/routes.csv, row 4: name is missing"]


def test_a_view_with_all_its_columns_is_read(tmp_path: Path) -> None:
    more = ",".join(f"is_option_{number}_on" for number in range(60))
    text = f"name,database_id,create_date,service_broker_guid,is_broker_enabled,{more}\n"
    export = read(tmp_path, "databases.csv", text + f"Shop,5,2026-01-05,{BROKER},1{',0' * 60}\n")
    assert [(row["name"], row["database_id"]) for row in export.rows["databases"]] == [("Shop", 5)]


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;"])
def test_a_separator_line_of_excel_is_used(tmp_path: Path, first: str) -> None:
    text = f"{first}\r\nname;address;mirror_address\r\na,b,c,d;LOCAL;\r\n;LOCAL;\r\n"
    export = read(tmp_path, "routes.csv", text)
    assert [(row["name"], row["address"]) for row in export.rows["routes"]] == [("a,b,c,d", "LOCAL")]
    assert export.rejected == [f"{tmp_path}/routes.csv, row 4: name is missing"]


def test_an_unusable_separator_is_refused(tmp_path: Path) -> None:
    why = refused(tmp_path, "routes.csv", "sep=x\nname\n")
    assert "its separator 'x' is not one of , ; | and tab" in why


def table(*columns: tuple[str, int], rows: list[tuple[str, ...]]) -> str:
    """A result set of sqlcmd: one blank between columns, the last one filled up as well."""
    lines = [[name for name, _ in columns], ["-" * width for _, width in columns], *rows]
    widths = [width for _, width in columns]
    return "".join(
        " ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + "\n" for line in lines
    )


# sqlcmd -w 65535 without -s, as it is written for SELECT * FROM sys.routes; numbers stand to the right.
WIDE = (
    table(
        ("name", 128),
        ("route_id", 11),
        ("principal_id", 12),
        ("remote_service_name", 256),
        ("broker_instance", 128),
        ("lifetime", 23),
        ("address", 256),
        ("mirror_address", 256),
        rows=[
            (
                "AutoCreatedLocal",
                "      65536",
                "           1",
                "NULL",
                "NULL",
                "                   NULL",
                "LOCAL",
                "NULL",
            ),
            (
                "To stock, fast",
                "      65537",
                "        NULL",
                "//stock",
                BROKER,
                "2030-01-01 08:30:00.123",
                "TCP://stock:4022",
                "NULL",
            ),
        ],
    )
    + "\n(2 rows affected)\n"
)


@pytest.mark.parametrize(
    "text",
    [
        WIDE,
        WIDE.replace("\n", "\r\n"),
        "Changed database context to 'Shop'.\n" + WIDE,
        # An editor has taken the blanks at the ends of lines.
        "\n".join(line.rstrip() for line in WIDE.split("\n")),
    ],
    ids=["LF", "CRLF", "USE", "trimmed"],
)
def test_aligned_columns_without_a_separator_are_read(tmp_path: Path, text: str) -> None:
    export = read(tmp_path, "routes.txt", text)
    assert routes(export) == ROUTES
    assert (export.rejected, export.notes) == ([], [])


@pytest.mark.parametrize(
    ("name", "filled"),
    [
        ("schnell ä", "schnell ä" + 7 * " "),
        ("日本語", "日本語" + 13 * " "),
        # A release that counts columns of the screen, one that counts UTF-16 units, one that counts bytes.
        ("日本語", "日本語" + 10 * " "),
        ("a\U0001f600b", "a\U0001f600b" + 12 * " "),
        ("日本語", "日本語" + 7 * " "),
    ],
)
def test_wide_characters_in_aligned_columns(tmp_path: Path, name: str, filled: str) -> None:
    text = (
        "name             address          mirror_address  \n---------------- ---------------- ----------------\n"
    )
    export = read(tmp_path, "routes.txt", text + f"{filled} TCP://stock:402  NULL            \n")
    assert [(row["name"], row["address"], row["mirror_address"]) for row in export.rows["routes"]] == [
        (name, "TCP://stock:402", None)
    ]


def test_several_result_sets_without_a_separator(tmp_path: Path) -> None:
    head = (("view_name", 9), ("instance_name", 13), ("database_name", 128), ("exported_at", 19))
    text = table(*head, ("name", 128), rows=[("services", "HUB", "Shop", "2026-01-05 12:00:00", "//stock")])
    text += "\n(1 rows affected)\n\n"
    text += table(
        ("view_name", 9),
        ("instance_name", 13),
        ("exported_at", 19),
        ("name", 128),
        ("service_broker_guid", 36),
        ("is_broker_enabled", 17),
        rows=[("databases", "HUB", "2026-01-05 12:00:00", "Shop", BROKER, "                1")],
    )
    export = read(tmp_path, "all.txt", text, StandIns())
    assert [row["name"] for row in export.rows["services"]] == ["//stock"]
    assert [(row["name"], row["is_broker_enabled"]) for row in export.rows["databases"]] == [("Shop", True)]
    assert export.rejected == []


def test_the_queries_without_a_separator(tmp_path: Path) -> None:
    text = table(
        ("view_name", 9),
        ("instance_name", 4000),
        ("database_name", 4000),
        ("exported_at", 40),
        ("name", 4000),
        rows=[
            ("services", '"HUB"', '"Shop"', "2026-01-05T12:00:00.0000000Z", '"//a ""b""  "'),
            ("services", '"HUB"', '"Empty"', "2026-01-05T12:00:00.0000000Z", "NULL"),
            ("services", '"HUB"', '"Shop"', "2026-01-05T12:00:00.0000000Z", '"NULL"'),
        ],
    )
    export = read(tmp_path, "HUB.txt", text, StandIns())
    assert [(row["database_name"], row.get("name")) for row in export.rows["services"]] == [
        ("Shop", '//a "b"  '),
        ("Empty", None),
        ("Shop", "NULL"),
    ]


ERROR = """Msg 916, Level 14, State 1, Server HUB, Line 1
The server principal "reader" is not able to access the database "Secret" under the current security context.
"""


@pytest.mark.parametrize(
    "text",
    [
        table(("name", 128), ("service_id", 11), rows=[("//a", "      65536")]),
        "name,service_id\n----,----------\n//a,65536\n",
        "name\n----\n//a\n",
    ],
    ids=["fixed width", "separator", "one column"],
)
def test_an_error_text_of_the_server_is_not_a_row(tmp_path: Path, text: str) -> None:
    export = read(tmp_path, "services.txt", text + ERROR)
    assert [row["name"] for row in export.rows["services"]] == ["//a"]
    why = (
        "the server reports error 916, so the export is incomplete: Msg 916, Level 14, State 1, Server HUB, Line 1"
    )
    assert export.rejected == [f"{tmp_path}/services.txt, row 4: {why}"]


def test_a_line_outside_a_table_is_not_a_row(tmp_path: Path) -> None:
    grid, _, _ = WIDE.partition("\n\n")
    export = read(tmp_path, "routes.txt", f"{grid}\n{'x' * 300}\n")
    assert routes(export) == ROUTES
    assert export.rejected == [f"{tmp_path}/routes.txt, row 5: it is not aligned with the dashes of its header"]


def test_a_value_that_fills_a_narrow_column_may_be_cut_off(tmp_path: Path) -> None:
    # sqlcmd -Y 20
    text = table(
        ("name", 20),
        ("remote_service_name", 20),
        ("address", 20),
        rows=[("short", "//stock", "LOCAL"), ("long", "//example.com/warehouse/stock"[:20], "LOCAL")],
    )
    export = read(tmp_path, "routes.txt", text)
    assert [row["name"] for row in export.rows["routes"]] == ["short"]
    why = "remote_service_name fills its 20 characters: sqlcmd may have cut it off (-y, -Y)"
    assert export.rejected == [f"{tmp_path}/routes.txt, row 4: {why}"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            table(("name", 10), ("remote_ser", 10), ("address", 10), rows=[("a", "b", "LOCAL")]),
            "sqlcmd has cut off the name of its column remote_ser (export it again with -Y 0 and -y 0, or",
        ),
        (
            "name" + 76 * " " + "\n" + 48 * " " + " address\n" + 80 * "-" + "\n" + 48 * "-" + " -------\n",
            "sqlcmd has wrapped its lines (export it again with -w 65535, or",
        ),
        ("name" + 76 * " " + "\n" + 80 * "-" + "\n" + 48 * "-" + "\n//a\n", "sqlcmd has wrapped its lines"),
        (
            "name,address" + 68 * " " + "\n" + 80 * "-" + "\n" + 48 * "-" + ",-------\n",
            "sqlcmd has wrapped its lines",
        ),
    ],
    ids=["cut name", "wrapped", "one column, wrapped", "separator, wrapped"],
)
def test_cut_or_wrapped_sqlcmd_output_is_refused(tmp_path: Path, text: str, why: str) -> None:
    assert why in refused(tmp_path, "routes.txt", text)


def test_trimmed_columns_without_a_separator(tmp_path: Path) -> None:
    # sqlcmd -W: dashes are as long as names, and blanks separate words.
    text = "name address mirror_address\n---- ------- --------------\na LOCAL NULL\nTo stock LOCAL NULL\n"
    export = read(tmp_path, "routes.txt", text)
    assert [row["name"] for row in export.rows["routes"]] == ["a"]
    assert export.rejected == [
        f"{tmp_path}/routes.txt, row 4: it has 4 words, the header 3: -W needs a separator (-s)"
    ]


def test_a_name_of_dashes_is_a_name(tmp_path: Path) -> None:
    export = read(tmp_path, "services.txt", "name      \n----------\n---       \n//a       \n--        \n")
    assert [row["name"] for row in export.rows["services"]] == ["---", "//a", "--"]


PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
WORKBOOK = b"PK\x03\x04\x14\x00\x06\x00\x08\x00\x00\x00!\x00" + bytes((7 * n * n + n) % 256 for n in range(9_000))


@pytest.mark.parametrize("data", [PICTURE, WORKBOOK, bytes(5_000)], ids=["picture", "workbook", "zeros"])
def test_a_file_that_is_not_text_is_refused(tmp_path: Path, data: bytes) -> None:
    assert refused(tmp_path, "routes.csv", data).endswith(
        "routes.csv' cannot be read: it is not text (nothing was written)"
    )
    (tmp_path / "services.csv").write_text("name\n//a\n", encoding="utf-8")
    export = read_export([str(tmp_path)], HUB)
    assert export.rows_read == {"services": 1}
    assert export.notes == [f"{tmp_path}/routes.csv: not read, it is not text"]


def test_a_folder_without_any_export(tmp_path: Path) -> None:
    (tmp_path / "routes.xlsx").write_bytes(WORKBOOK)
    with pytest.raises(ContractError, match="it has no export of a view"):
        read_export([str(tmp_path)], HUB)


def test_many_files_that_are_not_exports_are_counted(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}.bin").write_text("", encoding="utf-8")
    (tmp_path / "services.csv").write_text("name\n//a\n", encoding="utf-8")
    notes = read_export([str(tmp_path)], HUB).notes
    assert len(notes) == 21
    assert notes[0].startswith(f"{tmp_path}/00.bin: not read, its name does not end in any of .csv, ")
    assert notes[20] == "10 more files were not read"


@pytest.mark.parametrize("piece", ["- ", "---- ----\n", "name name\n---- ----\n", "日 ", "-\n"])
def test_long_texts_end_in_time(tmp_path: Path, piece: str) -> None:
    begin = time.process_time()
    text = "name address\n---- -------\n" + piece * 100_000
    with suppress(ContractError):
        read(tmp_path, "routes.txt", text)
    assert time.process_time() - begin < 20


def test_evidence_views_of_the_queries_are_read(tmp_path: Path) -> None:
    """One file as sqlcmd -W -s "," writes it: a result set a view, and one that is empty."""
    sets = {
        "service_queues": ["dbo", "StockQueue", "NULL", "NULL", "0", "1", "1", "1", "0", "70", "NULL", "12"],
        "certificates": ["My, Cert", "CN=a", "NULL", "2026-01-01T00:00:00", "2027-01-01T00:00:00", "NULL", "NULL"],
        "export_errors": ["certificates", "Secret", "the login cannot open it", "916", "NULL"],
        "symmetric_keys": [],
    }
    lines: list[str] = []
    for view, cells in sets.items():
        columns = VIEWS[view].exported
        head = [view, '"HUB"', *(['"Stock"'] if VIEWS[view].per_database else []), "2026-01-05T12:00:00Z"]
        quoted = [f'"{cell}"' if cell[:1].isalpha() and cell != "NULL" else cell for cell in cells]
        row = [*head, *quoted, *["NULL"] * (len(columns) - len(head) - len(cells))]
        lines += [",".join(columns), ",".join("-" * len(name) for name in columns), ",".join(row), ""]
    (tmp_path / "HUB.csv").write_text("\n".join(lines), encoding="utf-8")
    export = read_export([str(tmp_path)], StandIns())
    assert export.rejected == []
    [queue], [certificate], [error] = (export.rows[view] for view in list(sets)[:3])
    assert (queue["name"], queue["messages"], queue["database_name"]) == ("StockQueue", 12, "Stock")
    assert (certificate["name"], certificate["expiry_date"]) == ("My, Cert", "2027-01-01T00:00:00")
    assert (error["part"], error["of_database"], error["error_number"]) == ("certificates", "Secret", 916)
    assert [row["is_empty"] for row in export.rows["symmetric_keys"]] == [True]
