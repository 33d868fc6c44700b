"""Tables in text of any form and language: every row of the result is in the file, and no other line is a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone
from html import escape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from routing.errors import ContractError, InputError
from routing.importing.catalog import CatalogExport, StandIns, read_export
from routing.importing.encodings import reading_as
from tests.examples import count_examples

AT = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
HUB = StandIns("HUB", "Shop", AT)
HEADER = ("name", "service_id", "principal_id", "service_queue_id")
ROWS = [("//orders", "65536", "1", "1009"), ("//a b", "65537", "NULL", "1010")]


def read(folder: Path, name: str, content: str | bytes) -> CatalogExport:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_export([str(file)], HUB)


def names(export: CatalogExport, view: str = "services") -> list[Any]:
    return [row["name"] for row in export.rows[view] if "is_empty" not in row]


def rejections_of(export: CatalogExport) -> list[str]:
    return [sentence.partition(", row ")[2] for sentence in export.rejected]


def fixed(header: tuple[str, ...], rows: Sequence[tuple[str, ...]], widths: tuple[int, ...]) -> str:
    lines = [header, tuple("-" * width for width in widths), *rows]
    return "".join(
        " ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + "\n" for line in lines
    )


def services(*rows: tuple[str, ...]) -> str:
    return fixed(HEADER, list(rows or ROWS), (128, 11, 12, 16))


CLOSING = [
    *("HUB\\SQL1,1433(CORP\\dba): (2 rows affected)", "HUB(sa): (2 Zeilen betroffen)"),
    *("(2 rows affected)", "(2 row(s) affected)", "(2 Zeile(n) betroffen)", "(2 lignes affect\u00e9es)"),
    *(
        "(2 filas afectadas)",
        "(\u0437\u0430\u0442\u0440\u043e\u043d\u0443\u0442\u043e \u0441\u0442\u0440\u043e\u043a: 2)",
    ),
    *("(2 \u884c\u51e6\u7406\u3055\u308c\u307e\u3057\u305f)", "(liczba wierszy, kt\u00f3rych dotyczy: 2)"),
    "Completion time: 2026-01-05T19:00:00.1234567+01:00",
    "Hor\u00e1rio de conclus\u00e3o: 2026-01-05T19:00:00.1234567-03:00",
    "\u5b8c\u4e86\u6642\u523b: 2026-01-05T19:00:00.1234567+09:00",
    *("-- sys.routes --", "End of Database: Shop", "Datenbank: Shop"),
]
PRINTED = [
    "Table 'x'. Scan count 1, logical reads 4, physical reads 0.",
    "END Time : Jan  5 2026  7:00PM",
    "Data Collection Duration in milliseconds",
    "nada m\u00e1s",
]
ERRORS = [
    "HUB(CORP\\dba): Msg 916, Level 14, State 1, Line 1",
    "Msg 916, Level 14, State 1, Server HUB, Line 1",
    "Meldung 916, Ebene 14, Status 1, Server HUB, Zeile 1",
    "Msg 916, Niveau 14, \u00c9tat 1, Serveur HUB, Ligne 1",
    "Mens. 916, Nivel 14, Estado 1, Servidor HUB, L\u00ednea 1",
    "Mensagem 916, N\u00edvel 14, Estado 1, Servidor HUB, Linha 1",
    "Messaggio 916, livello 14, stato 1, riga 1",
    "\u0421\u043e\u043e\u0431\u0449\u0435\u043d\u0438\u0435 916, \u0443\u0440. 14, \u0441\u043e\u0441\u0442. 1",
    "Komunikat 916, poziom 14, stan 1, wiersz 1",
    "\u0130leti 916, D\u00fczey 14, Durum 1, Sat\u0131r 1",
    "\u30e1\u30c3\u30bb\u30fc\u30b8 916\u3001\u30ec\u30d9\u30eb 14\u3001\u72b6\u614b 1\u3001\u884c 1",
    "\u6d88\u606f 916\uff0c\u7ea7\u522b 14\uff0c\u72b6\u6001 1\uff0c\u7b2c 1 \u884c",
]


@pytest.mark.parametrize("form", ["fixed", "commas", "tabs"])
def test_printed_lines_in_any_language_are_not_rows(tmp_path: Path, form: str) -> None:
    separator = {"commas": ",", "tabs": "\t"}.get(form)
    lines = [HEADER, *ROWS] if form == "tabs" else [HEADER, ("-",) * 4, *ROWS]
    grid = services() if separator is None else "".join(separator.join(line) + "\n" for line in lines)
    # A grid that SSMS saved has no blank line that ends it.
    for line in CLOSING if form == "tabs" else [*CLOSING, *PRINTED]:
        export = read(tmp_path, "services.txt", f"{grid}\n{line}\n")
        assert (names(export), rejections_of(export)) == (["//orders", "//a b"], []), line
    for line in (*ERRORS, ERRORS[3].replace(" ", "\u00a0")):
        export = read(tmp_path, "services.txt", f"{grid}\n{line}\nTexto del error.\n")
        assert names(export) == ["//orders", "//a b"], line
        [why] = rejections_of(export)
        assert "the server reports error 916, so the export is incomplete" in why, line


CONTEXT_OF_RUSSIA = (
    "\u041a\u043e\u043d\u0442\u0435\u043a\u0441\u0442 \u0431\u0430\u0437\u044b"
    " \u0438\u0437\u043c\u0435\u043d\u0435\u043d \u043d\u0430 '{}'."
)


@pytest.mark.parametrize(
    ("error", "context", "encoding"),
    [
        (
            ERRORS[7],
            CONTEXT_OF_RUSSIA,
            "cp866",
        ),
        (
            ERRORS[7],
            CONTEXT_OF_RUSSIA,
            "cp1251",
        ),
        (ERRORS[9], "Veritaban\u0131 ba\u011flam\u0131 '{}' olarak de\u011fi\u015ftirildi.", "cp857"),
        (
            ERRORS[10],
            "\u30c7\u30fc\u30bf\u30d9\u30fc\u30b9\u306e\u72b6\u614b\u304c '{}' \u306b\u5909\u66f4",
            "cp932",
        ),
        (ERRORS[11], "\u5df2\u5c06\u6570\u636e\u5e93\u4e0a\u4e0b\u6587\u66f4\u6539\u4e3a '{}'\u3002", "gbk"),
    ],
)
def test_printed_lines_in_another_encoding_than_the_guess(
    tmp_path: Path, error: str, context: str, encoding: str
) -> None:
    text = f"{services()}\n{error}\n{context}\n"
    export = read(tmp_path, "services.txt", text.encode(encoding))
    assert names(export) == ["//orders", "//a b"]
    assert ["error 916" in why for why in rejections_of(export)] == [True]
    routes = fixed(("name", "address", "remote_service_name"), [("R", "LOCAL", "//a")], (128, 256, 256))
    text = f"{context.format('Stock')}\n{routes}\n{context.format('Shop')}\n{services()}"
    rejected = read(tmp_path, "x.txt", text.encode(encoding)).rejected
    assert ["not certain which database the line" in why for why in rejected] == [True] * 3


@pytest.mark.parametrize("line", ["Routes of HUB, Shop, checked", "Warning: a, b, c", "CPU time = 0 ms, 1 ms, x."])
def test_a_printed_line_with_as_many_commas_as_columns_is_not_a_route(tmp_path: Path, line: str) -> None:
    text = f"name,remote_service_name,address\nR,//a,TCP://h:1\nL,,Local\nT,,TRANSPORT\n{line}\n"
    export = read(tmp_path, "routes.csv", text)
    assert names(export, "routes") == ["R", "L", "T"]
    assert [why.endswith("is not an address") for why in rejections_of(export)] == [True]


@pytest.mark.parametrize("line", CLOSING[:10])
def test_a_count_of_more_rows_than_the_table_has_is_refused(tmp_path: Path, line: str) -> None:
    for table in (services(ROWS[0]), f"name,service_id\n----,----\n{','.join(ROWS[0][:2])}\n"):
        # Only the first count below a table is of it.
        export = read(tmp_path, "services.txt", f"{table}\n{line.replace('2', '1')}\n{line}\n")
        assert (names(export), export.rejected) == (["//orders"], [])
        [why] = rejections_of(read(tmp_path, "services.txt", f"{table}\n{line}\n"))
        assert why.endswith("it counts 2 rows, and the table above it has 1: export it again")


@pytest.mark.parametrize("count", ["1,002", "1.002", "1 002", "1\u202f002", "1'002"])
def test_the_count_of_a_table_may_have_separators(tmp_path: Path, count: str) -> None:
    [why] = rejections_of(read(tmp_path, "services.txt", f"{services(ROWS[0])}\n({count} rows affected)\n"))
    assert why.endswith("it counts 1002 rows, and the table above it has 1: export it again")


CONTEXT, ROUTES = "Changed database context to '{}'.\n", "name,remote_service_name,address\nR,//a,LOCAL\n\n"
CONNECTIONS = [
    *(
        "Connecting to {}...",
        "Verbindung mit {} wird hergestellt...",
        "Connexion \u00e0 {}...",
        "Conectando a {}...",
    ),
    *(
        "{} \u306b\u63a5\u7d9a\u3057\u3066\u3044\u307e\u3059...",
        "\u6b63\u5728\u8fde\u63a5\u5230 {}...",
        "Server: {}",
    ),
    "Sqlcmd: Successfully connected to server '{}'.",
]


@pytest.mark.parametrize("line", CONNECTIONS)
@pytest.mark.parametrize("host", ["EDGE", "tcp:EDGE,1433", "HUB"])
def test_results_of_several_servers_in_one_file_are_refused(tmp_path: Path, line: str, host: str) -> None:
    databases = "Shop", "Shop" if host == "HUB" else "Stock"
    parts = [
        f"{line.format(server)}\n{CONTEXT.format(name)}{ROUTES}"
        for server, name in zip(("HUB", host), databases, strict=True)
    ]
    assert read(tmp_path, "routes.csv", parts[0]).rejected == []
    # The first result set may be of the server before.
    for text in ("".join(parts), f"{CONTEXT.format('A')}{ROUTES}{parts[1]}"):
        several = ["several servers" in why for why in read(tmp_path, "routes.csv", text).rejected]
        assert several == ([True, True] if host != "HUB" or text.startswith("Changed") else []), text


SERVERS_APART = {
    "headings": ("=== HUB ===", "=== EDGE ===", True),
    "headings of dashes": ("----- HUB -----", "----- EDGE -----", True),
    "Markdown": ("## HUB", "## EDGE", True),
    "Jira": ("h3. Routes of HUB", "h3. Routes of EDGE", True),
    "one instance name": ("Server: HUB\nInstance: MSSQLSERVER", "Server: EDGE\nInstance: MSSQLSERVER", True),
    "host and instance": ("Host: HUB\nInstance: SQL1", "Host: EDGE\nInstance: SQL1", True),
    "announced and named": ("Connecting to HUB...", "Server: HUB", False),
    "heading and name": ("=== HUB ===\nServer: HUB", "Server: HUB", False),
    "with a port": ("Connecting to HUB,1433...", "Server: tcp:HUB", False),
    "other languages": ("=== Itin\u00e9raires ===", "=== \u0421\u043b\u0443\u0436\u0431\u044b ===", False),
    "servers with words": ("=== BROKERHUB ===", "=== FILESERVER ===", True),
    "views": ("-- sys.dm_broker_queue_monitors --", "=== remote_service_bindings ===", False),
    "subjects of Brazil": ("=== Rotas ===", "=== Servi\u00e7os ===", False),
    "subjects": ("=== Routes ===", "## 2. Services", False),
    "databases": ("=== Shop ===", "=== Stock ===", False),
    "servers and databases": ("=== HUB / Shop ===", "=== EDGE / Stock ===", True),
    "one line": ("Server: HUB  Database: Shop", "Server: EDGE  Database: Stock", True),
    "connection strings": ("Data Source=HUB;Initial Catalog=Shop", "Data Source=EDGE;User ID=x", True),
    "bold": ("*HUB*", "*EDGE*", True),
    "commands": (
        "C:\\>sqlcmd -S HUB -d Shop -Q x",
        "PS C:\\> Invoke-Sqlcmd -ServerInstance 'EDGE' -Query x",
        True,
    ),
    "commands with one server": ("$ sqlcmd -S HUB -s ; -Q x", "$ sqlcmd -S tcp:hub,1433 -Q y", False),
    "fields": (":Server: HUB", "**Server:** EDGE", True),
    "variables": ("@@SERVERNAME: HUB", "@@SERVERNAME: EDGE", True),
    "other words": ("=== Route list ===", "## What is in the file?", False),
    "one heading": ("=== HUB ===", "-- sys.routes --", False),
    "numbers": ("=== Result1 ===", "=== Query2 ===", False),
    "numbers of servers": ("=== SQL1 ===", "=== SQL2 ===", True),
}


@pytest.mark.parametrize(("first", "second", "is_refused"), SERVERS_APART.values(), ids=SERVERS_APART)
def test_lines_around_results_tell_servers_apart(
    tmp_path: Path, first: str, second: str, is_refused: bool
) -> None:
    framed = "| name | remote_service_name | address |\n|---|---|---|\n| R | //a | LOCAL |\n\n"
    for form in (ROUTES, fixed(("name", "address"), [("R", "LOCAL")], (128, 256)) + "\n", framed):
        text = f"{first}\n{CONTEXT.format('Shop')}{form}{second}\n{CONTEXT.format('Stock')}{form}"
        export = read(tmp_path, "routes.txt", text)
        assert ["several servers" in why for why in export.rejected] == [True, True] * is_refused, form


CAPTIONS = {
    "plain": ("{}\n\n", True),
    "with a colon": ("{}:\n", True),
    "of a subject": ("These routes are from {}.\nRoutes from {}:\n", True),
    "underlined": ("{}\n===\n\n", True),
    "a tag": ("<details><summary>{}</summary>\n\n", True),
    "a grid of @@SERVERNAME": ("\n\n----------\n{}\n\n", True),
    "a grid with a header": ("ServerName\n----------\n{}\n\n", True),
    "other captions between": ("{}\n\nhere are the grids.\n\nRoutes\n\n", True),
    "a greeting": ("Anna\n\nhere are the grids.\n\nRoutes\n\n", False),
    "a subject below": ("{}\n\nsys.routes\n\n", True),
    "other words": ("{} of Tuesday\n", True),
    "a sentence": ("I looked at {} today and saw this\n\n", True),
    "a sentence in chat": ("[10:31] Anna: on {} I get:\n", True),
    "no server": ("I looked at it today and saw this\n\n", False),
    "the server that messages go to": ("HUB sends to {}, and these are its grids:\n", False),
}


@pytest.mark.parametrize(("caption", "is_refused"), CAPTIONS.values(), ids=CAPTIONS)
def test_captions_tell_servers_apart(tmp_path: Path, caption: str, is_refused: bool) -> None:
    routes = fixed(("name", "address", "remote_service_name"), [("R", "LOCAL", "//a")], (128, 256, 256))
    framed = "| name | {} | {} |\n|---|---|---|\n| a | {} | 1 |\n"
    of_routes = framed.format("address", "remote_service_name", "LOCAL")
    of_services = framed.format("service_id", "service_queue_id", 7)
    hub, edge = (caption.replace("{}", server) for server in ("HUB", "EDGE"))
    for first, second in ((routes, services()), (of_routes, of_services)):
        export = read(tmp_path, "x.md", f"{hub}{first}\n{edge}{second}\n")
        assert bool(names(export, "routes") or names(export)) is not is_refused
        # A word above only one of the tables may be anything.
        export = read(tmp_path, "x.md", f"{first}\n{edge}{second}\n")
        assert (names(export, "routes") != [], names(export) != []) == (True, True)


ORDINARY_TITLES = {
    "headings": ("# Addresses", "# Names", 2),
    "a heading below a server": ("## HUB", "## Notes", 2),
    "paragraphs": ("HUB", "Details", 2),
    "an unknown word in capitals": ("# NOTES", "# TODO", 2),
    "a machine by its form": ("# SQLPROD01", "# SQLPROD02", 0),
    "named instances": ("### web\\sql1", "### web\\sql2", 0),
    "a label elsewhere": ("Server: edge\n\n# edge", "# hub", 0),
    "sentences": ("on CORE I get:", "and here is EDGE:", 0),
    "introductions without capitals": ("on core i get:", "here is edge:", 0),
    "parts in a dialog": ("on the initiator:", "on the target i see:", 0),
    "headings of parts in a dialog": ("## Initiator", "## Target", 0),
    "a part in a sentence": ("I sent to the target.", "No target is found.", 2),
    "counted servers": ("Server A:", "Server B:", 0),
    "counted servers in sentences": ("on box 1 i get:", "on box 2 i get:", 0),
    "counted things": ("Query 1:", "Query 2:", 2),
    "machines in small letters": ("node1", "node2", 0),
    "environments": ("dev:", "prod:", 0),
    "a place in German": ("auf core:", "und von edge kommt:", 0),
    "introductions of phrases": ("here is what i get:", "and this is the second one:", 2),
    "introductions of one server": ("on core i get:", "these are on core:", 2),
    "a place and a subject": ("on core i get:", "and here are the services:", 2),
    "the host of an address": ("## Notes", "far shows this:", 0),
    "the host of an address in a sentence": ("The route to far is fine.", "The service behind far is not.", 2),
    "states": ("This is wrong:", "The service is missing:", 2),
    "phrases": ("In detail:", "As of today:", 2),
    "scripts": ("From routes.sql:", "From services.sql:", 2),
    "clauses": ("On the server I see:", "On the instance I see:", 2),
    "counted results": ("results1", "results2", 2),
    "counted sheets": ("sheet1", "sheet2", 2),
    "steps": ("STEP1", "STEP2", 2),
    "steps with a colon": ("PART1:", "PART2:", 2),
    "an abbreviation": ("here is the DMV:", "and from SSMS:", 2),
    "the first without": ("", "## HUB", 2),
    "the second of another": ("", "## HUB2", 0),
    "words in capitals with a colon": ("PROD:", "TEST:", 0),
    "a database behind the server": ("-- HUB.Shop --", "-- EDGE.Stock --", 0),
    "unknown databases": ("## Database Parts", "Database Goods", 0),
    "a subject with a database": ("## Database Shop", "## Services", 2),
    "subjects of a database": ("## Database Routes", "Database Services", 2),
    "known databases": ("## Shop", "and now Stock:", 0),
    "words that are databases too": ("The shop is closed.", "Our stock is low.", 2),
    "instances by their number": ("for the first instance", "for the second instance", 0),
    "headings of instances by their number": ("## First instance", "## Second instance", 0),
    "databases by their part": ("in the sending database:", "in the receiving database:", 0),
    "databases by their number in German": ("Erste Datenbank:", "Zweite Datenbank:", 0),
    "a number and a name": ("for the first instance", "for the first instance", 2),
    "machines counted by letters": ("vm-sql-a", "vm-sql-b", 0),
    "things counted by letters": ("plan-a", "plan-b", 2),
    "the first of other things": ("The first grid:", "The second grid:", 2),
    "a server in a sentence": ("The first server is fine.", "The other server is not.", 2),
    "databases by their part in German": ("### Initiator-Datenbank", "### Ziel-Datenbank", 0),
    "databases in turn": ("Processing database Parts ...", "Processing database Goods ...", 0),
    "replicas": ("Routes on the primary replica", "Services on the secondary replica", 0),
    "one database": ("routes of Shop:", "and its services:", 2),
}


@pytest.mark.parametrize(("first", "second", "count"), ORDINARY_TITLES.values(), ids=ORDINARY_TITLES)
def test_a_title_counts_only_if_it_plainly_names_a_server_or_database(
    tmp_path: Path, first: str, second: str, count: int
) -> None:
    header = "| name | {} | {} |\n|---|---|---|\n| a | {} | 1 |\n".format
    of_routes = header("address", "remote_service_name", "tcp://far.example:4022")
    of_services = header("service_id", "service_queue_id", 7)
    text = f"{first}\n\n{of_routes}\n{second}\n\n{of_services}"
    (tmp_path / "databases.csv").write_text(
        "name,database_id,service_broker_guid,is_broker_enabled\nShop,5,,1\nStock,6,,1\n"
    )
    (tmp_path / "x.md").write_text(text, encoding="utf-8")
    export = read_export([str(tmp_path)], HUB)
    assert len(names(export, "routes")) + len(names(export)) == count, export.rejected


def test_a_sentence_between_grids_of_tabs_counts(tmp_path: Path) -> None:
    grids = (("address\tremote_service_name", "LOCAL\t//a"), ("service_id\tservice_queue_id", "7\t1"))
    for servers, count in ((("CORE", "EDGE"), 0), (("HUB", "HUB"), 2)):
        parts = [
            f"[10:3{place}] Anna: on {server} I get:\n\nname\t{header}\na\t{row}\n\n"
            for place, (server, (header, row)) in enumerate(zip(servers, grids, strict=True))
        ]
        export = read(tmp_path, "chat.txt", "".join(parts))
        assert len(names(export, "routes")) + len(names(export)) == count, export.rejected


def test_a_heading_above_the_same_views_in_turn_is_a_server(tmp_path: Path) -> None:
    parts = [f"## {name}\n\n{CONTEXT.format(name[0])}{ROUTES}" for name in ("core", "edge")]
    export = read(tmp_path, "routes.csv", "".join(parts))
    assert ["several servers" in why for why in export.rejected] == [True, True]


def test_paragraphs_of_html_tell_servers_apart(tmp_path: Path) -> None:
    table = "<h2>{}</h2><table><tr><td>name</td><td>{}</td></tr><tr><td>a</td><td>{}</td></tr></table>"
    tables = "address</td><td>remote_service_name", "LOCAL</td><td>//a"
    for other, count in (("EDGE", 0), ("HUB", 1), ("Services", 1)):
        text = table.format("HUB", *tables) + table.format(other, "service_queue_id", 7)
        export = read(tmp_path, "mail.html", text)
        assert [len(names(export, view)) for view in ("routes", "services")] == [count, count], other


@pytest.mark.parametrize(("other", "expected"), [("EDGE", ["EDGE"]), ("hub", [])])
def test_files_of_another_server_than_the_given_one_are_noted(
    tmp_path: Path, other: str, expected: list[str]
) -> None:
    for server in ("HUB", other):
        (tmp_path / f"{server}.txt").write_text(f"Server: {server}\n{services()}", encoding="utf-8")
    notes = [note for note in read_export([str(tmp_path)], HUB).notes if "names the server" in note]
    assert [note.partition("names the server ")[2].partition(",")[0].strip("'") for note in notes] == expected


def test_a_count_ends_a_table(tmp_path: Path) -> None:
    text = f"1> 2> {services(ROWS[0])}(1 row affected)\n1> 2> {services(ROWS[1])}(1 row affected)\n"
    export = read(tmp_path, "services.txt", text)
    assert ["2 result sets of sys.services" in why for why in export.rejected] == [True, True]


@pytest.mark.parametrize("name", ["x.csv", "x.json"])
@pytest.mark.parametrize("ending", ["...", "\u2026", "[...]"])
def test_a_name_that_a_tool_cut_off_is_refused(tmp_path: Path, name: str, ending: str) -> None:
    cells = {"name": "R", "remote_service_name": "//a", "address": f"TCP://stock.contoso{ending}"}
    text = json.dumps([cells]) if name == "x.json" else f"{','.join(cells)}\n{','.join(cells.values())}\n"
    [why] = read(tmp_path, name, text).rejected
    assert "address: 'TCP://stock.contoso" in why
    assert "ends in an ellipsis" in why


def test_a_status_that_was_cut_off_is_not_the_name_of_a_connection(tmp_path: Path) -> None:
    text = "name service_id\n---- ----------\n//a 1\n//b Connection attempt failed...\n//c 3\n"
    export = read(tmp_path, "services.txt", text)
    assert (names(export), len(rejections_of(export))) == (["//a", "//c"], 1)


TOOL_ERRORS = [
    *("Timeout expired", "[S0001][916] Line 1: No access", "SQL Error [916] [S0001]: No access", "Error 916: No"),
    *("SQL-Fehler [916] [S0001]: Kein Zugriff", "Invoke-Sqlcmd : No access", "x.y.SQLServerException: No"),
    *(
        "mssql: login error",
        "Msg 916 (severity 14, state 1) from HUB Line 1:",
        "SQLState = 08S01, NativeError = 1",
    ),
    *("Se produjo un error grave en el comando actual.", "Schwerwiegender Fehler beim aktuellen Befehl."),
    *("TCP Provider: The connection was closed.", "TCP-Anbieter: Die Verbindung wurde geschlossen."),
    *(
        "Proveedor de TCP: x",
        "Communication link failure",
        "Query was canceled by user.",
        "Die Abfrage wurde vom Benutzer abgebrochen.",
        "Query execution failed",
    ),
]


@pytest.mark.parametrize("line", TOOL_ERRORS)
def test_an_error_of_a_tool_makes_an_export_incomplete(tmp_path: Path, line: str) -> None:
    for table in (services(), MARKDOWN.format(*(" | ".join(row) for row in (HEADER, *ROWS)))):
        export = read(tmp_path, "services.txt", f"{table}\n{line}\n")
        assert names(export) == ["//orders", "//a b"]
        assert [why.partition(": ")[2][:23] for why in rejections_of(export)] == ["a tool reports an error"]
    for printed in ("Query completed with no errors", "Error log entries", "Failed logins", "Timeout settings: 5"):
        assert rejections_of(read(tmp_path, "services.txt", f"{services()}\n{printed}\n")) == []


SIMPLE = """
Services of HUB

=========  ==========  ================
name       service_id  service_queue_id
=========  ==========  ================
//orders        65536  1009
``//a|b``       65537  1010

//\u6771\u4eac     65538       1011
//long name of a service 65539  1012
//q             65540
=========  ==========  ================

Text below.
"""


@pytest.mark.parametrize("name", ["services.rst", "services.txt"])
@pytest.mark.parametrize("margin", ["", "   "])
def test_simple_tables_of_restructuredtext(tmp_path: Path, name: str, margin: str) -> None:
    export = read(tmp_path, name, SIMPLE.replace("\n", f"\n{margin}"))
    assert names(export) == ["//orders", "//a|b", "//\u6771\u4eac", "//q"]
    assert rejections_of(export) == ["11: it has 4 cells, the header 3"]


def test_names_with_invisible_characters_are_noted(tmp_path: Path) -> None:
    export = read(tmp_path, "services.csv", "name,service_id\n//ab,1\n//a\u200bb,2\n//\u00e4,3\n//ab\u00a0,4\n")
    assert names(export) == ["//ab", "//a\u200bb", "//\u00e4", "//ab\u00a0"]
    assert [note.partition("services.csv, ")[2] for note in export.notes if "invisible" in note] == [
        r"row 3: name '//a\u200bb' contains the invisible character U+200B (zero width space)",
        r"row 5: name '//ab\xa0' contains the invisible character U+00A0 (no-break space)",
    ]


def test_an_invisible_character_is_noted_once_for_a_name(tmp_path: Path) -> None:
    rows = "".join(f"r{number},{number},//a\u00a0b,,,LOCAL,\n" for number in range(3))
    header = "name,route_id,remote_service_name,broker_instance,lifetime,address,mirror_address"
    export = read(tmp_path, "routes.csv", f"{header}\n{rows}")
    assert [note.partition("routes.csv, ")[2][:5] for note in export.notes if "invisible" in note] == ["row 2"]


BOXES = {
    "heavy header": (
        "\u250f\u2501\u2533\u2501\u2513\n\u2503 name \u2503 service_id \u2503\n\u2521\u2501\u2547\u2501\u2529\n"
        "\u2502 //a \u2502 65536 \u2502\n\u2514\u2500\u2534\u2500\u2518\n"
    ),
    "double frame": (
        "\u2554\u2550\u2564\u2550\u2557\n\u2551 name \u2502 service_id \u2551\n\u255f\u2500\u253c\u2500\u2562\n"
        "\u2551 //a \u2502 65536 \u2551\n\u255a\u2550\u2567\u2550\u255d\n"
    ),
    "dashed columns": (
        "\u250c\u2500\u252c\u2500\u2510\n\u2502 name \u2506 service_id \u2502\n\u255e\u2550\u256a\u2550\u2561\n"
        "\u2502 //a \u2506 65536 \u2502\n\u2514\u2500\u2534\u2500\u2518\n"
    ),
    "types": (
        "\u250c\u2500\u252c\u2500\u2510\n\u2502 name \u2502 service_id \u2502\n\u2502 text \u2502 int \u2502\n"
        "\u251c\u2500\u253c\u2500\u2524\n\u2502 //a \u2502 65536 \u2502\n\u2514\u2500\u2534\u2500\u2518\n"
    ),
    "types below dashes": (
        "\u250c\u2500\u2510\r\n\u2502 name \u2502 service_id \u2502\r\n\u2502 - \u2502 --- \u2502\r\n"
        "\u2502 str \u2502 i64 \u2502\r\n\u255e\u2550\u2561\r\n"
        "\u2502 //a \u2502 65536 \u2502\r\n\u2514\u2500\u2518\r\n"
    ),
}


@pytest.mark.parametrize("text", BOXES.values(), ids=BOXES)
def test_lines_of_a_box_may_differ(tmp_path: Path, text: str) -> None:
    export = read(tmp_path, "services.txt", text)
    assert (names(export), export.rejected) == (["//a"], [])


def test_a_mail_in_quoted_printable_is_refused(tmp_path: Path) -> None:
    table = '<table border=3D"1"><tr><th>name</th></tr><tr><td>//a=3Db</td></tr></table>'
    with pytest.raises(InputError, match="quoted-printable"):
        read(tmp_path, "services.html", table)


def test_a_link_with_the_sign_of_quoted_printable_is_read(tmp_path: Path) -> None:
    link = '<a href="http://stock/?id=3D2F">//a</a>'
    table = f"<table><tr><th>name</th><th>service_id</th></tr><tr><td>{link}</td><td>9</td></tr></table>"
    assert names(read(tmp_path, "services.html", table)) == ["//a"]


def test_rich_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rich text: save"):
        read(tmp_path, "services.txt", "{\\rtf1\\ansi name,service_id\\par //a,1\\par }")


def test_a_line_in_the_table_that_does_not_fit_is_refused_with_its_place(tmp_path: Path) -> None:
    rows = services(ROWS[0], ("no number", "x", "1", "2"), ("//collapsed 1 2 3", "", "", ""))
    export = read(tmp_path, "services.txt", rows + "Done with it\n")
    assert names(export) == ["//orders"]
    assert rejections_of(export) == [
        "4: service_id: 'x' is not a number",
        "5: service_id is missing",
        "6: service_id is missing",
    ]
    # What stands below the end of a table and looks like a row may be one.
    export = read(
        tmp_path, "services.txt", f"{services()}\n{services(('//late', '1', '1', '1')).splitlines()[2]}\n"
    )
    assert rejections_of(export) == ["6: it looks like a row, but is below the end of its table"]


DRAWN = "\u250c\u2500\u252c\u2510\n\u2502 {} \u2502\n\u255e\u2550\u2561\n\u2502 {} \u2502\n\u2502 {} \u2502\n"
BOX = "+----+\n| {} |\n+====+\n| {} |\n| {} |\n+----+\n"
MARKDOWN = "| {} |\n|:---|---:|---|---|\n| {} |\n| {} |\n"


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("services.txt", BOX),
        ("services.md", MARKDOWN),
        ("services.txt", DRAWN),
        ("x.md", "Some text\n\n" + MARKDOWN + "\nmore text\n"),
        (
            "x.md",
            "|**name**|service\\_id|`principal_id`|service\\_queue\\_id|\n|---|---|---|---|\n|{1}|\n|{2}|\n",
        ),
    ],
)
def test_framed_tables_are_read(tmp_path: Path, name: str, form: str) -> None:
    bar = "\u2502" if "\u2502" in form else "|"
    rows = [("//a&amp;b", *ROWS[0][1:]), ROWS[1]]
    text = form.format(*(f" {bar} ".join(row) for row in (HEADER, *rows)))
    export = read(tmp_path, name, text)
    first = "//a&b" if form is MARKDOWN or name == "x.md" else "//a&amp;b"
    assert (names(export), rejections_of(export)) == ([first, "//a b"], [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("||name||service_id||\n|//a|1|\n|//b|2|\n", ["//a", "//b"]),
        ("name    |service_id|\n--------+----------+\n//a     |         1|\n[NULL]  |         2|\n", ["//a"]),
        ("|**name**|`service_id`|\n|---|---|\n|`//a`|1|\n|[//b](x)|2|\n|//c&nbsp;|3|\n", ["//a", "//b", "//c"]),
        ("|name|service\\_id|\n|---|---|\n|//a\\_b|1|\n|*//c\\~d*|2|\n", ["//a_b", "//c~d"]),
        ("name | service_id\n:---|---:\n//a | 1\n", ["//a"]),
        ("> | name | service_id |\n> |---|---|\n> | //a | 1 |\n>\n", ["//a"]),
        ("Output:\n\n" + "".join(f"    {line}\n" for line in services().splitlines()), ["//orders", "//a b"]),
        ("```sql\n" + services() + "```\n", ["//orders", "//a b"]),
        ("<table border=0>\n <col width=64>\n <tr><td>name</td></tr><tr><td>//a</td></tr></table>", ["//a"]),
        ("+-----+----------+\n|name |service_id|\n+-----+----------+\n|//a..|1|\n|//b...|2|\n", ["//a.."]),
        ("name service_id\n---- ----------\n//a.. 1\n//b... 2\n", ["//a.."]),
        ("\ufeffname,service_id\n//a,1\n\ufeff//b,2\n", ["//a", "//b"]),
        ("name,service_id\n//a,1\n\x1a", ["//a"]),
        ("name,service_id\n//a,1\n\x1aname,service_id\n//b,1\n\x1a", []),
        ("name, service_id, service_queue_id\n//a, 1, 7\n", ["//a"]),
        ("service_id, name\n1, //a\n", ["//a"]),
        ("1> 2> " + services() + "\n(2 rows affected)\n1> ", ["//orders", "//a b"]),
        ("+-----+----------+\n|name |service_id|\n+-----+----------+\n|//a |1         |\n|/b  |          |\n", []),
    ],
    ids=[
        *("Jira", "DBeaver", "decorated Markdown", "escaped Markdown", "Markdown without a frame", "quoted mail"),
        "indented in a post",
        *(
            "fence",
            "Excel's HTML",
            "Spark cut a name off",
            "PowerShell cut a name off",
            "two files in one",
            "end of a file of DOS",
            "two files of DOS in one",
            "blanks",
            "blanks first",
            "prompts of osql",
            "wrapped rows",
        ),
    ],
)
def test_tables_of_other_tools(tmp_path: Path, text: str, expected: list[str]) -> None:
    export = read(tmp_path, "services.txt", text)
    assert names(export) == expected


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        *(
            ("~~//a~~", "//a"),
            ("**`//a`**", "//a"),
            ("**[//a](x)**", "//a"),
            ("//a<br>", "//a"),
            ("`//a\\_b`", "//a\\_b"),
        ),
        ("{{//a}}", "//a"),
        *(("<b>//a</b>", "//a"), ("<code>//a</code>", "//a"), ("<br/>**//a**<br />", "//a"), ("``//a``", "//a")),
        # Underscores may be part of a name, and others are not marks in Markdown.
        *(("_//a_", "_//a_"), ("__x__", "__x__"), ("~//a~", "~//a~"), ("//a~~b", "//a~~b"), ("a*b", "a*b")),
        *(("//a<br>//b", None), ("`//a`<br>`//b`", None)),
    ],
)
def test_marks_of_markdown_around_a_name(tmp_path: Path, cell: str, expected: str | None) -> None:
    export = read(tmp_path, "services.md", f"| name | service_id |\n|---|---|\n| {cell} | 1 |\n| //z | 2 |\n")
    assert names(export) == ([] if expected is None else [expected]) + ["//z"]
    assert [why[:24] for why in rejections_of(export)] == ["3: name has several line"] * (expected is None)


def test_code_in_a_table_of_jira(tmp_path: Path) -> None:
    text = "h3. Services\n||name||service_id||\n|{{//a}}|1|\n|*//z*|2|\n"
    assert names(read(tmp_path, "services.txt", text)) == ["//a", "//z"]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        *(("<p class=x>//a<o:p></o:p></p>", "//a"), ("//a<br>", "//a"), ("//a\n b", "//a b")),
        *(("//a<br>//b", None), ("<p>//a</p><p>//b</p>", None), ("<ul><li>//a<li>//b</ul>", None)),
    ],
)
def test_lines_in_a_cell_of_html(tmp_path: Path, cell: str, expected: str | None) -> None:
    rows = "".join(f"<tr><td>{name}</td><td>1</td></tr>" for name in ("name", cell))
    text = f"<table>{rows}</table>".replace("<td>1", "<td>service_id", 1)
    export = read(tmp_path, "services.html", text)
    assert names(export) == ([] if expected is None else [expected])
    assert len(rejections_of(export)) == (expected is None)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("<table><tr><td>TCP://a:1</td></tr></table>", ["TCP://a:1", "TCP://b:1"]),
        ("<table><tr><td>TCP://a:1<tr><td>TCP://c:1</table>", ["TCP://b:1"]),
        ("TCP://a:1 <table><tr><td>x</td></tr></table>", ["TCP://b:1"]),
        ("<table><tr><td><table><tr><td>TCP://a:1</table></table>", ["TCP://a:1", "TCP://b:1"]),
    ],
)
def test_a_table_in_a_cell_is_part_of_its_row(tmp_path: Path, cell: str, expected: list[str]) -> None:
    header = "<tr><th>name<th>remote_service_name<th>address</tr>"
    rows = f"<tr><td>R<td>//a<td>{cell}</td></tr><tr><td>S<td>//b<td>TCP://b:1</td></tr>"
    export = read(tmp_path, "routes.html", f"<table>{header}{rows}</table>")
    assert [row["address"] for row in export.rows["routes"]] == expected
    assert len(export.rejected) == 2 - len(expected)


def test_columns_identify_a_view_in_html(tmp_path: Path) -> None:
    header = "".join(f"<td><p><b>{name}<o:p></o:p></b></p></td>" for name in HEADER)
    row = "".join(f"<td>{cell}</td>" for cell in ROWS[0])
    export = read(tmp_path, "mail.htm", f"<table><thead><tr>{header}</tr></thead><tr>{row}</tr></table>")
    assert names(export) == ["//orders"]


def test_tables_in_a_layout_of_a_mail(tmp_path: Path) -> None:
    header = "".join(f"<th>{name}" for name in HEADER)
    cells = (f"<table><tr>{header}</tr><tr><td>{'<td>'.join(row)}</tr></table>" for row in ROWS)
    first, second = cells
    text = f"<table><tr><td>Database: A {first}</td></tr><tr><td><p>Database: B</p>{second}</td></tr></table>"
    export = read(tmp_path, "services.html", text)
    assert [(row["database_name"], row["name"]) for row in export.rows["services"]] == [
        ("A", "//orders"),
        ("B", "//a b"),
    ]


def test_a_table_in_an_html_mail_is_read(tmp_path: Path) -> None:
    def row(cells: tuple[str, ...], tag: str = "td") -> str:
        return "<TR>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</TR>\n"

    head = row(HEADER, "th")
    text = f"Hello,\n<table border=1>{head}{row(('//a&amp;b', '1', '2', '3'))}{row(('//c', '1', '2'))}</table>bye"
    export = read(tmp_path, "services.html", text)
    assert (names(export), rejections_of(export)) == (["//a&b"], ["4: it has 3 cells, the header 4"])


def test_result_sets_of_several_databases(tmp_path: Path) -> None:
    first, second = services(ROWS[0]), services(ROWS[1])
    export = read(tmp_path, "services.txt", f"{first}\n{second}")
    assert names(export) == []
    assert [why.partition(": ")[0] for why in rejections_of(export)] == ["3", "7"]
    assert "no column or line says of which database" in export.rejected[0]
    forms = [
        ("Begin Database: A", "Begin Database: B"),
        ("Changed database context to 'A'.", "Changed database context to 'B'."),
        ("Der Datenbankkontext wurde in 'A' ge\u00e4ndert.", "Der Datenbankkontext wurde in 'B' ge\u00e4ndert."),
        ("-- Base de datos: A --", "-- Base de datos: B --"),
        (
            "Contexte de base de donn\u00e9es chang\u00e9 en \u00ab\u00a0A\u00a0\u00bb.",
            "... kontekst \u201eB\u201d.",
        ),
        ("\u5df2\u5c07\u8cc7\u6599\u5eab\u5167\u5bb9\u8b8a\u66f4\u70ba 'A'\u3002", "Database: B"),
        *(("USE A", "use [B];"), ("DB: A", "Current db: B")),
        ("db_name\n-------\nA\n\n(1 rows affected)\n", "database\n--------\nB\n(1 row affected)"),
    ]
    for before, between in forms:
        export = read(tmp_path, "services.out", f"{before}\n\n{first}\n\n{between}\n{second}")
        rows = [(row["database_name"], row["name"]) for row in export.rows["services"]]
        assert rows == [("A", "//orders"), ("B", "//a b")], before
        assert export.rejected == []
    # One without a name may also be a server or anything else, so two that differ are refused.
    routes = fixed(("name", "address", "remote_service_name"), [("R", "LOCAL", "//a")], (128, 256, 256))
    for second_name, count in (("B", 0), ("A", 1)):
        text = "\n-----\nA\n\n(1 rows affected)\n{}\n\n-----\n{}\n\n(1 rows affected)\n{}"
        export = read(tmp_path, "x.out", text.format(routes, second_name, first))
        assert [len(names(export, view)) for view in ("routes", "services")] == [count, count]
    several = f"db_name\n-------\nA\nB\n\n{first}\n\ndb_name\n-------\nA\nB\n\n{second}"
    assert names(read(tmp_path, "services.out", several)) == []
    table = "name,service_id\n{},1\n"
    two = f"Database: A\n{table.format('//a')}\nDatabase: B\n{table.format('//b')}"
    export = read(tmp_path, "services.csv", two)
    assert [row["database_name"] for row in export.rows["services"]] == ["A", "B"]
    assert names(read(tmp_path, "services.csv", table.format("//a") + table.format("//b"))) == []
    array = '[{{"name": "{}", "service_id": 1}}]\n'
    assert names(read(tmp_path, "services.json", array.format("//a") + "[]" + array.format("//b"))) == []
    named = '[{{"name": "{0}", "database_name": "{0}"}}]\n'
    assert names(read(tmp_path, "services.json", named.format("A") + named.format("B"))) == ["A", "B"]
    # After the end of a database nothing tells whose the next result set is.
    export = read(tmp_path, "services.log", f"Begin Database: A\n{first}\nEnd of Database: A\n{second}")
    assert (names(export), len(export.rejected)) == (["//orders"], 1)


QUEUE = (
    "conversation_handle,to_service_name,to_broker_instance,from_service_name,service_contract_name,enqueue_time,"
    "message_sequence_number,message_type_name,is_conversation_error,is_end_of_dialog,message_body,"
    "transmission_status,priority\n"
)
HANDLE = "932AB1C3-B6A1-AF71-0C2A-BDD44551D9CD"
CELLS = [
    HANDLE,
    "//to",
    "NULL",
    "//from",
    "//c",
    "2026-01-05 11:00:00.000",
    "7",
    "//m",
    "0",
    "0",
    "0x00",
    "why",
    "5",
]


def test_unquoted_separators_are_joined_where_only_one_column_can_have_held_them(tmp_path: Path) -> None:
    def message(**cells: str) -> str:
        places = {name: place for place, name in enumerate(QUEUE.strip().split(","))}
        row = list(CELLS)
        for name, cell in cells.items():
            row[places[name]] = cell
        return QUEUE + ",".join(row) + "\n"

    for name, text in (
        ("transmission_status", "Error: 33009, State: 2, so, it is."),
        ("to_service_name", "//a,b"),
        ("message_type_name", "//m,n"),
    ):
        export = read(tmp_path, "transmission_queue.csv", message(**{name: text}))
        [row] = export.rows["transmission_queue"]
        assert row.get(name, text) == text
        assert (row["enqueue_time"].hour, row["message_sequence_number"]) == (11, 7)
    for cells in ({"from_service_name": "//f,g"}, {"to_service_name": "//a,b", "transmission_status": "x, y"}):
        export = read(tmp_path, "transmission_queue.csv", message(**cells))
        assert export.rejected
        assert not any("to_service_name" in row for row in export.rows["transmission_queue"])


def test_columns_of_one_name_have_equal_values(tmp_path: Path) -> None:
    text = "name,service_id,service_queue_id,name\n//a,1,7,//a\n//b,2,8,queue of b\n"
    export = read(tmp_path, "services.csv", text)
    assert (names(export), rejections_of(export)) == (
        ["//a"],
        ["3: name is in several columns, and their values differ"],
    )


def test_cells_damaged_by_a_spreadsheet(tmp_path: Path) -> None:
    for column, cell, why in (
        (
            5,
            "40:15.9",
            "enqueue_time: '40:15.9' is only the part of a time that a spreadsheet shows: export the view",
        ),
        (5, "########", "is only the part of a time that a spreadsheet shows"),
        (5, "46027.4583", "is only the part of a time that a spreadsheet shows"),
        (5, "11:00:15 AM", "is only the part of a time that a spreadsheet shows"),
        (5, "2026-01-05", "is only the part of a time that a spreadsheet shows"),
        (5, "5. Jan 2026", "is only the part of a time that a spreadsheet shows"),
        (1, "#NAME?", "to_service_name: '#NAME?' is an error of a spreadsheet"),
        (1, "#N/A", "is an error of a spreadsheet"),
        (1, "\u201c//a\u201d", "still has quotation marks around it"),
        (1, '"//a\\\\"b"', "still has quotation marks around it"),
        (3, "//\x00a\x00", "as text in another encoding has"),
        (6, "1.23E+18", "message_sequence_number: '1.23E+18' is not an integer"),
        (8, "perhaps", "is_conversation_error: 'perhaps' is not 0 or 1"),
        (0, HANDLE[1:], "is not a GUID"),
    ):
        row = [*CELLS[:column], cell, *CELLS[column + 1 :]]
        export = read(tmp_path, "transmission_queue.csv", QUEUE + ",".join(row) + "\n")
        assert why in export.rejected[0], cell
    row = [*CELLS[:8], "FALSCH", "WAHR", *CELLS[10:]]
    assert read(tmp_path, "transmission_queue.csv", QUEUE + ",".join(row) + "\n").rejected == []


ROUTE = "name\taddress\nTo{}\tTCP://h:1\nplain\tLOCAL\n"


@pytest.mark.parametrize(
    ("word", "encoding", "is_plausible"),
    [
        ("Gr\u00f6\u00dfe", "cp1252", True),
        ("\u0444\u0438\u043b\u0438\u0430\u043b", "cp1251", False),
        ("\u03ac\u03bb\u03bb\u03b1", "cp1253", False),
        ("\u00c5\u00c4\u00d6", "cp1252", True),
        ("St\u00f6ck", "cp850", False),
        ("Za\u017c\u00f3\u0142\u0107", "cp1250", False),
        ("\u6ce8\u6587", "shift_jis", False),
        ("Sipari\u015f", "cp1254", False),
        ("Sipari\u015fEkle", "cp1254", False),
        ("M\u00fc\u015fteri", "cp1254", False),
        ("\u00c7\u0131k\u0131\u015f", "cp1254", False),
        ("//\u0130ade", "cp1254", False),
        ("S\u0130PAR\u0130\u015e", "cp1254", False),
        ("Uppl\u00fdsinga\u00fej\u00f3nusta", "cp1252", True),
        ("//S\u00de/Vi\u00f0skipti_\u00der\u00f3un_Al\u00feingi_\u00ddsa_N\u00fdi", "cp1252", True),
        ("N\u00e5_\u00fcber_gar\u00e7on", "cp1252", True),
        # Polish, Czech, Hungarian and Romanian without a byte that Windows-1252 has no letter for.
        ("Cz\u0119\u015b\u0107", "cp1250", False),
        ("\u00da\u010dt\u00e1rna", "cp1250", False),
        ("Zm\u011bna", "cp1250", False),
        ("Gy\u0171jt\u0151", "cp1250", False),
        ("\u00cencas\u0103ri", "cp1250", False),
        ("\u0434\u043e\u043c", "cp1251", False),
        ("U\u017esakymas", "cp1257", False),
        ("C\u0153ur_Op\u00e7\u00f5es_Luned\u00ec_Irm\u00e3_Facturaci\u00f3n_P\u00e0gina", "cp1252", True),
        ("M\u00f5\u00f5tmine_Luned\u00ecMattina_Pi\u00f9Vendite_Amanh\u00e3Pedido", "cp1252", True),
        ("\u0122imeneDati", "cp1257", False),
        # Letters that French, Spanish, Portuguese, Icelandic and Greek have in other places.
        ("Dzie\u0144", "cp1250", False),
        # Turkish and Albanian have this letter where Windows-1252 has it.
        ("Ge\u00e7ici_\u00c7ek", "cp1252", True),
        ("Pas\u016bt\u012bjums", "cp1257", False),
        ("Datub\u0101ze", "cp1257", False),
        ("V\u0113sture", "cp1257", False),
        ("\u0160\u0137irne", "cp1257", False),
        ("B\u016bsena", "cp1257", False),
        ("\u039d\u03ad\u03b1", "cp1253", False),
        # Romanian, Croatian, Hungarian and Lithuanian with one letter that Windows-1252 has too.
        *((word, "cp1250", False) for word in ("Comand\u0103", "List\u0103", "Factur\u0103", "R\u0103spuns")),
        *((word, "cp1250", False) for word in ("Ra\u010dun", "F\u0151k\u00f6nyv")),
        *((word, "cp1257", False) for word in ("S\u0105skaita", "Eil\u0117")),
        (
            "Crist\u00e3_Manh\u00e3s_\u00d3rf\u00e3_Cidad\u00e3_OP\u00c7\u00d5ES_Caff\u00e8Uno_No\u00ebl",
            "cp1252",
            True,
        ),
        (
            "Pr\u00e0ctica_Voil\u00e0_Belgi\u00eb_R\u00f5ivad_Conex\u00f5es_Cr\u00e8me_Kr\u00f5bikas",
            "cp1252",
            True,
        ),
        (
            "A\u00f1oNuevo_Ma\u00eetre_Ch\u00e2teau_Fran\u00e7ois_Ao\u00fbt_D\u00fb_Inst\u00e2ncia_Co\u00e7\u00e3o",
            "cp1252",
            True,
        ),
        (
            "Fra\u00eeche_C\u00e2ble_P\u00e2ques_Jo\u00e3o_Fe\u00e7a_Feli\u00e7_MA\u00d1ANA_HACE\u00d1A_Vi\u00f0skipti",
            "cp1252",
            True,
        ),
    ],
)
def test_an_encoding_that_is_guessed_or_named(
    tmp_path: Path, word: str, encoding: str, is_plausible: bool
) -> None:
    data, guess = ROUTE.format(word).encode(encoding), word.encode(encoding).decode("cp1252", "ignore")
    export = read(tmp_path, "routes.txt", data)
    [note] = [note for note in export.notes if "Windows-1252" in note]
    assert note.startswith(
        f"{tmp_path}/routes.txt, line 2: read as Windows-1252, since it is not UTF-8 (--encoding"
    )
    assert "--encoding cp1254" in note or encoding != "cp1254"
    assert names(export, "routes") == ([f"To{guess}"] if is_plausible else []) + ["plain"]
    assert len(export.rejected) == (not is_plausible)
    with reading_as(encoding):
        export = read(tmp_path, "routes.txt", data)
    assert (names(export, "routes"), export.rejected) == ([f"To{word}", "plain"], [])
    assert not [note for note in export.notes if "Windows-1252" in note]


def test_an_unknown_encoding_is_refused() -> None:
    for name in ("cp125l", "rot13", "base64", "x\0", ""):
        with pytest.raises(InputError, match="is not an encoding"), reading_as(name):
            pass


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        (
            "queue.csv",
            "to_service_name,transmission_status\n//a,x\n",
            "as sys.transmission_queue it lacks conversation_",
        ),
        (
            "queue.csv",
            "to_service_name,transmission_status\n//a,x\n",
            "export it with SELECT * FROM sys.transmission",
        ),
        ("services.csv", "name~service_id~service_queue_id\n//a~1~2\n", "its separator '~' is not one of"),
        ("services.csv", "name service_id service_queue_id\n//a 1 2\n", "columns are separated only by blanks"),
        ("services.txt", "name\nservice_id\nservice_queue_id\n//a\n1\n2\n", "on a line of its own"),
        (
            "x.txt",
            "name service_id principal_id service_queue_id\n" + services().partition("\n")[2],
            "its blanks have collapsed",
        ),
    ],
)
def test_missing_columns_and_collapsed_grids_are_named(tmp_path: Path, name: str, text: str, why: str) -> None:
    with pytest.raises(ContractError, match="cannot be read") as caught:
        read(tmp_path, name, text)
    assert why in str(caught.value)


WORDS = st.text(alphabet="ab/,;|&<\"' \u00e91", min_size=1, max_size=6).map(lambda text: f"//{text.strip()}")
PIECES = st.one_of(
    st.sampled_from([*CLOSING, *PRINTED, *ERRORS, "", " ", "----", "| |", "+--+", "<table><tr>", '"', "name"]),
    WORDS,
)


@settings(
    deadline=None,
    max_examples=count_examples(150),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@example(rows=[], noise=[(0, "//|1|")], form="|", cut=0)
@example(rows=[("//;1", 1), *[("//1", 1)] * 3], noise=[], form=";", cut=25)
@given(
    rows=st.lists(st.tuples(WORDS, st.integers(1, 99)), max_size=4),
    noise=st.lists(st.tuples(st.integers(0, 12), PIECES), max_size=4),
    form=st.sampled_from(["fixed", ",", ";", "\t", "|", "frame", "html"]),
    cut=st.integers(0, 30),
)
def test_no_row_comes_out_that_was_not_in_the_file(
    tmp_path: Path, rows: list[tuple[str, int]], noise: list[tuple[int, str]], form: str, cut: int
) -> None:
    """Each name is the first cell of a written line, with any text between the rows."""
    header = ("name", "service_id", "service_queue_id")
    lines = [(name, str(number), "7") for name, number in rows]
    if form == "fixed":
        text = fixed(header, lines, (128, 11, 16))
    elif form == "html":
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in line) for line in (header, *lines))
        text = "<table>\n" + "".join(f"<tr>{line}</tr>\n" for line in cells) + "</table>\n"
    elif form == "frame":
        text = "".join(f"| {' | '.join(line)} |\n" for line in (header, ("---",) * 3, *lines))
    else:
        text = "".join(form.join(line) + "\n" for line in (header, ("-",) * 3, *lines))
    written = text.splitlines()
    for place, piece in noise:
        written.insert(2 + place, piece)
    text = "\n".join(written)
    text = text[: len(text) - cut] if cut > 20 else text
    try:
        export = read(tmp_path, "services.txt", text)
    except ContractError:
        return
    # A line between the rows may be a complete row too, and so may the one that was cut off.
    last_line = [text.rpartition("\n")[2].rstrip(form)] if cut > 20 else []
    pieces = [*last_line, *(piece for _, piece in noise)]
    between = [piece.split(form)[0] for piece in pieces if len(piece.split(form)) == 3]
    first_cells = [*between, *(name for name, _ in rows)]
    texts = {one for name in first_cells for one in (name, " ".join(name.split()), name.replace('""', '"'))}
    # Quotation marks that stand alone in two lines are around a cell with a line end.
    assert all(name in texts or f'"{name}"' in text for name in names(export))


@pytest.mark.parametrize(
    "rows",
    [
        *("('A',65536,'//a','TCP://a:4022'),", "N'A',65536,//a,TCP://a:4022"),
        *("A,65536,//a,'TCP://a:4022'", "[A],65536,//a,TCP://a:4022"),
    ],
)
def test_a_name_written_as_in_tsql_is_refused(tmp_path: Path, rows: str) -> None:
    header = "name,route_id,remote_service_name,address"
    export = read(tmp_path, "routes.csv", f"{header}\n{rows}\nO'Hara's,65537,//b,TCP://b:4022\n")
    assert names(export, "routes") == ["O'Hara's"]
    assert [why.partition(": ")[0] for why in rejections_of(export)] == ["2"]
    assert "is written as in T-SQL" in rejections_of(export)[0]


@pytest.mark.parametrize("cell", ['"=""//a"""', "'//a"])
def test_a_name_with_a_mark_of_a_spreadsheet_is_refused(tmp_path: Path, cell: str) -> None:
    export = read(tmp_path, "services.csv", f"name,service_id\n{cell},65536\n//b'c,65537\n'//d',65538\n")
    assert names(export) == ["//b'c"]
    assert "marks of a text in a spreadsheet" in rejections_of(export)[0]


@pytest.mark.parametrize("column", ["broker_instance", "mirror_address", "remote_service_name"])
@pytest.mark.parametrize(
    "word", ["null", "None", "nil", "N/A", "NaN", "-", "\u2014", "\u2400", "(leer)", "<unset>"]
)
def test_a_word_for_no_value_is_never_a_name(tmp_path: Path, word: str, column: str) -> None:
    header = "name,remote_service_name,broker_instance,address,mirror_address"
    cells = {"name": "A", "remote_service_name": "//a", "address": "TCP://h:1", column: word}
    row = ",".join(cells.get(name, "NULL") for name in header.split(","))
    export = read(tmp_path, "routes.csv", f"{header}\n{row}\nB,//b,NULL,TCP://h:2,NULL\n")
    assert names(export, "routes") == ["B"]
    assert "may mean that there is no value" in rejections_of(export)[0]


def test_only_a_status_may_have_lost_its_letters(tmp_path: Path) -> None:
    """A message matters even if the words of its status do not say anything."""
    export = read(tmp_path, "routes.csv", "name,remote_service_name,address\nA,???,LOCAL\nB,//b,LOCAL\n")
    assert names(export, "routes") == ["B"]
    assert "has lost its letters" in rejections_of(export)[0]
    queue = "conversation_handle,to_service_name,enqueue_time,message_sequence_number,transmission_status\n"
    row = "d0000000-0000-4000-8000-00000000000b,//b,2026-01-05 12:00:00,0,???\n"
    export = read(tmp_path, "transmission_queue.csv", queue + row)
    assert [row["transmission_status"] for row in export.rows["transmission_queue"]] == ["???"]


def test_a_backslash_and_n_is_null(tmp_path: Path) -> None:
    text = "name\tremote_service_name\taddress\nA\t//a\tLOCAL\nB\t\\N\tLOCAL\n"
    export = read(tmp_path, "routes.tsv", text)
    assert [row["remote_service_name"] for row in export.rows["routes"]] == ["//a", None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name,service_id\n//a,1\n//b,2\n//a,3\n", None),
        ("name,service_id\n//a,1\n//b,2\n//a,1\n", None),
        ("instance_name,name,service_id\nA,//a,1\nA,//a,2\nB,//b,1\n", None),
        ("PSComputerName,name,service_id,service_queue_id\nA,//a,1,7\nB,//a,1,7\n", ["//a", "//a"]),
        # A grid that was copied twice.
        ("name,service_id\n//a,1\n//b,2\n//a,1\n//b,2\n", ["//a", "//b", "//a", "//b"]),
        ("database_name,name,service_id\nX,//a,1\nY,//a,1\n", ["//a", "//a"]),
    ],
)
def test_a_name_that_occurs_twice_is_of_several_databases(
    tmp_path: Path, text: str, expected: list[str] | None
) -> None:
    export = read(tmp_path, "services.csv", text)
    assert names(export) == (expected or [])
    assert len(rejections_of(export)) == (0 if expected else text.count("\n") - 1)


@pytest.mark.parametrize(
    ("rows", "is_refused"),
    [
        ("R,//a,TCP://DBA:4022,DBA\nS,//b,TCP://DBB:4022,dbb:4022\nL,,LOCAL,\n", True),
        ("R,//a,TCP://DBA.corp:4022,dba.corp\nT,,TRANSPORT,ORT\n", True),
        ("R,//a,TCP://DBA:4022,DBA\nL,,LOCAL,DBA\n", False),
        ("R,//a,TCP://DBA:4022,DBB\nS,//b,TCP://DBB:4022,DBB\n", False),
    ],
)
def test_the_host_of_an_address_is_not_the_instance_of_a_route(
    tmp_path: Path, rows: str, is_refused: bool
) -> None:
    export = read(tmp_path, "routes.csv", "name,remote_service_name,address,host\n" + rows)
    assert all("only the host of its address" in why for why in export.rejected)
    assert len(export.rejected) == (rows.count("\n") if is_refused else 0)


@pytest.mark.parametrize(
    ("above", "row"),
    [
        (
            "| name | remote_service_name | address |\n|---|---|---|\n| A | //a | LOCAL |\n\n",
            "| B | //b | LOCAL |",
        ),
        ("name,remote_service_name,address\n----,----,----\nA,//a,LOCAL\n\n", "B,//b,LOCAL"),
        ("name  address\n----- -------\n\n", "B     LOCAL"),
    ],
)
def test_a_row_of_texts_below_its_table_is_not_lost(tmp_path: Path, above: str, row: str) -> None:
    export = read(tmp_path, "routes.txt", above + row + "\n")
    assert "looks like a row, but is below the end" in export.rejected[-1]


def test_asciidoc_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a table of AsciiDoc"):
        read(tmp_path, "routes.txt", "|===\n|name |remote_service_name |address\n\n|A\n|//a\n|LOCAL\n|===\n")


@pytest.mark.parametrize("line", ["only showing top 20 rows", "(1 of 20 rows)", "First 1,000 of 5,000 rows"])
def test_a_table_of_the_first_rows_is_incomplete(tmp_path: Path, line: str) -> None:
    table = MARKDOWN.format(*(" | ".join(row) for row in (HEADER, *ROWS)))
    assert (
        "a limit, so the export is incomplete"
        in rejections_of(read(tmp_path, "services.md", f"{table}\n{line}\n"))[0]
    )
    assert rejections_of(read(tmp_path, "services.md", f"{table}\n(2 of 2 rows)\n")) == []


@pytest.mark.parametrize("tail", ["", "\t5"])
def test_a_status_with_a_line_end_is_refused_as_a_whole(tmp_path: Path, tail: str) -> None:
    header = "conversation_handle\tto_service_name\tenqueue_time\tmessage_sequence_number\ttransmission_status"
    rows = [
        f"11111111-1111-1111-1111-11111111111{number}\t//a\t2026-01-05 10:00:00\t{number}" for number in range(3)
    ]
    lines = [f"{header}\tpriority" if tail else header, f"{rows[0]}\tAn error"]
    lines += [f"{rows[1]}\tAn error", f"while receiving{tail}", f"{rows[2]}\tAn error{tail}"]
    export = read(tmp_path, "transmission_queue.txt", "\r\n".join(lines) + "\r\n")
    assert [row["message_sequence_number"] for row in export.rows["transmission_queue"]] == [0, 2]
    assert [why.partition(": ")[0] for why in sorted(rejections_of(export))] == ["3", "4"]


@pytest.mark.parametrize(
    ("mark", "database"),
    [
        ("Orders (id 7)", "Orders"),
        ("[Orders]", "Orders"),
        ("[Orders (7)] - dbid: 7", "Orders (7)"),
        ("Orders Old-2", "Orders Old-2"),
        ("Orders (7)", None),
        ("Orders - 7", None),
        ("Orders on HUB", None),
        ("Orders (READ_WRITE)", None),
    ],
)
def test_a_mark_names_a_database_without_its_id(tmp_path: Path, mark: str, database: str | None) -> None:
    text = "".join(f"Current database: {each}\n{services()}\n" for each in (mark, "Shop"))
    export = read(tmp_path, "services.txt", text)
    databases = dict.fromkeys(row["database_name"] for row in export.rows["services"] if "is_empty" not in row)
    assert list(databases) == ([] if database is None else [database]) + ["Shop"]
    assert bool(rejections_of(export)) == (database is None)


def test_a_second_result_set_below_one_mark_is_refused(tmp_path: Path) -> None:
    first, second = services(ROWS[0]), services(ROWS[1])
    text = f"Database: A\n{first}\nProcessing B now\n{second}\nDatabase: C\n{second}"
    export = read(tmp_path, "services.txt", text)
    rows = [(row["database_name"], row["name"]) for row in export.rows["services"] if "is_empty" not in row]
    assert rows == [("A", "//orders"), ("C", "//a b")]
    assert rejections_of(export) == ["9: it is the second result set below a line with the database 'A'"]


@pytest.mark.parametrize("written", ["database", "DB_Name", "Database Name"])
@pytest.mark.parametrize("form", ["csv", "fixed", "json"])
def test_other_names_of_the_database_column_are_known(tmp_path: Path, written: str, form: str) -> None:
    header, rows = (written, *HEADER), [("Shop", *ROWS[0]), ("Stock", *ROWS[1])]
    if form == "json":
        text = "".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows)
    elif form == "csv":
        text = "".join(",".join(line) + "\n" for line in (header, *rows))
    else:
        text = fixed(header, rows, (128, 128, 11, 12, 16))
    export = read(tmp_path, "services.json" if form == "json" else "services.txt", text)
    assert [(row["database_name"], row["name"]) for row in export.rows["services"]] == [
        ("Shop", "//orders"),
        ("Stock", "//a b"),
    ]


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        *(({name: "A"}, "A") for name in ("Computer", "PSComputerName", "SqlInstance", "InstanceName", "Host")),
        *(({name: "A"}, "A") for name in ("SQL Server", "Servidor", "machine_name", "@@SERVERNAME", "Rechner")),
        ({"ComputerName": "A", "InstanceName": "S", "SqlInstance": "A\\S"}, "A\\S"),
        ({"ComputerName": "A", "instance_name": "B"}, "B"),
        # Nobody knows which of two names counts, or what these mean.
        *(({"ComputerName": "A", "InstanceName": "S"}, None), ({"Source Server": "A"}, None)),
        *(({"hosts": "A"}, None), ({"dbid": "5"}, None), ({"which_db": "Shop"}, None)),
        # DB_NAME() without a name, and numbers of rows.
        *(({"(No column name)": "Shop"}, None), ({"": "Shop"}, None), ({"": "1"}, "HUB")),
    ],
)
def test_a_column_of_servers_names_the_instance(
    tmp_path: Path, owners: dict[str, str], expected: str | None
) -> None:
    lines = (",".join((*owners, *HEADER)), ",".join((*owners.values(), *ROWS[0])))
    export = read(tmp_path, "services.csv", "\n".join(lines))
    found = [row["instance_name"] for row in export.rows["services"] if "is_empty" not in row]
    assert (found, len(export.rejected)) == (([expected], 0) if expected else ([], 1))


@pytest.mark.parametrize("header", [",".join(HEADER) + "\n", ""])
def test_lines_divide_a_table_of_several_databases(tmp_path: Path, header: str) -> None:
    first, second = (",".join(row) for row in ROWS)
    text = f"Database: Shop\n{header}{first}\n\nDatabase: Stock\n{second}\nEnd of Database: Stock\n"
    export = read(tmp_path, "services.txt", text)
    assert [(row["database_name"], row["name"]) for row in export.rows["services"]] == [
        ("Shop", "//orders"),
        ("Stock", "//a b"),
    ]
