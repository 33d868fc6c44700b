"""The report of an import: rejected rows in order, new names like known ones, and counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from routing.commands.import_ import describe_import
from routing.importing.covered_rows import ImportResult, line_order
from routing.importing.spelling import NameSpelling, say_near_names, say_servers
from routing.importing.tsql.servers import find_instance
from routing.render.text import write_text
from tests.imports import FIRST_VIEWS, MONDAY, TUESDAY, config_in, exports, import_script, import_views, no_spark


def test_rejected_rows_come_in_the_order_of_their_files_and_lines(tmp_path: Path) -> None:
    routes = """name,lifetime,address
a,NULL,nowhere
b,soon,LOCAL
c,NULL,LOCAL,x
d,NULL,nowhere
""" + "".join(f"e{number},NULL,LOCAL\n" for number in range(6, 11))
    views = {**FIRST_VIEWS, "routes": routes + "f,never,LOCAL\n", "services": "name\n//s\n//s\n"}
    folder = exports(tmp_path / "exports", MONDAY, **views)
    done = import_views(no_spark(), config_in(tmp_path), folder, dry_run=True)
    assert [tuple(text.removeprefix(f"{folder[0]}/").split(":")[0].split(", row ")) for text in done.rejected] == [
        ("routes.csv", "2"),
        ("routes.csv", "3"),
        ("routes.csv", "4"),
        ("routes.csv", "5"),
        ("routes.csv", "11"),
        ("services.csv", "3"),
    ]


@pytest.mark.parametrize(
    ("sentence", "place"),
    [
        ("a.csv, row 12: why", ("a.csv", 12)),
        ("a.csv, row 12: no, row 7: x", ("a.csv", 12)),
        ("a.csv: why", ("a.csv: why", 0)),
        ("a.csv, row ²: why", ("a.csv", 0)),
    ],
)
def test_sentences_are_ordered_by_file_and_line(sentence: str, place: tuple[str, int]) -> None:
    assert line_order(sentence) == place


def rows(*names: str) -> list[dict[str, str]]:
    return [{"instance_name": name} for name in names]


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("SQLPROD0l", ("SQLPROD01", "OTHER"), "SQLPROD01"),
        ("hub-eu.example", ("HUB_EU.example",), "HUB_EU.example"),
        ("sqlprod01", ("SQLPROD01",), None),
        ("Archive", ("SQLPROD01",), None),
        ("HUB", (), None),
        ("hub.corp.example", ("HUB", "OTHER"), "HUB"),
        ("HUB", ("hub.corp.example",), "hub.corp.example"),
        ("HUB", ("HUB\\DEV",), "HUB\\DEV"),
        ("HUB\\PROD", ("HUB\\DEV",), None),
        ("10.0.0.1", ("10.9.9.250",), None),
    ],
)
def test_a_new_name_similar_to_a_known_one_is_noted(name: str, known: tuple[str, ...], near: str | None) -> None:
    note = f"the instance '{name}' is new, and the tables already have '{near}': are they different?"
    assert say_near_names([name], rows(*known)) == ([] if near is None else [note])


def test_names_are_compared_in_bounds() -> None:
    many = [f"{number:06}" + "x" * 1_000_000 for number in range(50)]
    known_rows = rows(*(f"SQL{number:05}" for number in range(5_000)))
    assert len(say_near_names(many, rows("000001x"))) <= 20
    assert say_near_names(["SQL00001x"], known_rows) == [
        "the instance 'SQL00001x' is new, and the tables already have 'SQL00001': are they different?"
    ]


def test_an_import_notes_a_similar_name_once(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    first = import_views(no_spark(), config, exports(tmp_path / "first", MONDAY, **FIRST_VIEWS))
    assert [note for note in first.notes if "are they different" in note] == []
    (folder,) = exports(tmp_path / "second", MONDAY, services="name\n//a\n")
    file = Path(folder, "services.csv")
    file.write_text(file.read_text(encoding="utf-8").replace("HUB", "HUB1"), encoding="utf-8")
    second = import_views(no_spark(), config, [folder])
    note = "the instance 'HUB1' is new, and the tables already have 'HUB': are they different?"
    assert [note for note in second.notes if "are they different" in note] == [note]
    file.write_text(
        file.read_text(encoding="utf-8").replace(MONDAY.isoformat(), TUESDAY.isoformat()), encoding="utf-8"
    )
    assert [
        note for note in import_views(no_spark(), config, [folder]).notes if "are they different" in note
    ] == []


def test_a_script_for_an_instance_similar_to_a_known_one_is_noted(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    (folder,) = exports(tmp_path / "exports", MONDAY, services="name\n//a\n")
    file = Path(folder, "services.csv")
    file.write_text(file.read_text(encoding="utf-8").replace("HUB", "HUB2"), encoding="utf-8")
    import_views(no_spark(), config, [folder])
    done = import_script(
        no_spark(), config, tmp_path / "s.sql", "USE shop\nGO\nCREATE ROUTE r WITH ADDRESS = 'LOCAL'"
    )
    assert "the instance 'HUB' is new, and the tables already have 'HUB2': are they different?" in done.notes


def shown(done: ImportResult) -> list[str]:
    return [" ".join(line.split()) for line in write_text(describe_import(done), width=100).splitlines()]


def test_counts_name_their_unit() -> None:
    views = ImportResult(is_dry_run=False, rows_read={"routes": (5, 2, 1)})
    scripts = ImportResult(is_dry_run=True, counted="statements", rows_read={"a.sql": (4, 1, 0)})
    assert shown(views)[-3:] == ["Rows read", "view rows of them rejected of them left out", "routes 5 2 1"]
    assert shown(scripts)[-3:] == [
        "Statements read",
        "script statements of them rejected of them left out",
        "a.sql 4 1 0",
    ]
    assert "Rows written" in shown(views)
    assert "Rows to be written (this was a dry run)" in shown(scripts)
    assert views.as_json()["read"] == {"routes": {"rows": 5, "rejected": 2, "left_out": 1}}
    assert scripts.as_json()["read"] == {"a.sql": {"statements": 4, "rejected": 1, "left_out": 0}}


@pytest.mark.parametrize(
    ("is_dry_run", "written", "read", "answer"),
    [
        pytest.param(
            False,
            {"routes": {"added": 1_000, "closed": 2, "unchanged": 7}, "services": {"added": 1}},
            (1_012, 2, 0),
            ["Rows written: 1,001 added, 2 closed.", "1,012 rows read, 2 rejected."],
            id="rows of two tables",
        ),
        pytest.param(
            False,
            {"routes": {"unchanged": 7}},
            (7, 0, 1),
            ["Nothing was written: the tables already have all of it.", "7 rows read, 0 rejected, 1 left out."],
            id="nothing that is new",
        ),
        pytest.param(
            True,
            {"routes": {"changed": 1}},
            (1, 0, 0),
            ["This was a dry run. Rows that an import would write: 1 changed.", "1 row read, 0 rejected."],
            id="a dry run",
        ),
        pytest.param(
            True,
            {},
            (1, 1, 0),
            ["This was a dry run. Rows that an import would write: none.", "1 row read, 1 rejected."],
            id="a dry run of nothing",
        ),
    ],
)
def test_the_answer_has_written_and_rejected_rows(
    is_dry_run: bool, written: dict[str, dict[str, int]], read: tuple[int, int, int], answer: list[str]
) -> None:
    done = ImportResult(is_dry_run=is_dry_run, rows_read={"routes": read})
    for table, counts in written.items():
        done.count_written(table, counts)
    assert shown(done)[:2] == answer


IS_ITS_OWN = "is assumed to be a separate instance, since no export has its port"
ON_THE_MACHINE = "it is on the machine that runs the script"


@pytest.mark.parametrize(
    ("server", "own", "note"),
    [
        ("HUB", "HUB", None),
        ("hub", "HUB", None),
        ("spoke", "HUB", None),
        ("HUBB", "HUB", "the server 'HUBB' of :connect is unknown, did you mean 'HUB'?"),
        ("hub.corp.example", "HUB", "the server 'hub.corp.example' of :connect is unknown, did you mean 'HUB'?"),
        ("SPOKE\\DEV", "HUB", r"the server 'SPOKE\DEV' of :connect is unknown, did you mean 'SPOKE'?"),
        ("HUB", "HUB\\DEV", r"the server 'HUB' of :connect is unknown, did you mean 'HUB\DEV'?"),
        (
            "(local)",
            "HUB",
            "the server '(local)' of :connect is assumed to be 'HUB': it is on the machine that runs the script",
        ),
        (
            ".\\DEV",
            "HUB\\DEV",
            rf"the server '.\DEV' of :connect is assumed to be 'HUB\DEV': {ON_THE_MACHINE}",
        ),
        (
            "localhost\\DEV",
            "HUB",
            r"the server 'localhost\DEV' of :connect may be 'HUB': it is on the machine that runs the script",
        ),
        (
            "HUB,14331",
            "HUB",
            f"the server 'HUB,14331' of :connect {IS_ITS_OWN}; similar: 'HUB'",
        ),
        (
            "localhost,14331",
            "HUB,1500",
            f"the server 'localhost,14331' of :connect {IS_ITS_OWN}; similar: 'HUB,1500'",
        ),
        (
            "localhost,1500",
            "HUB,1500",
            f"the server 'localhost,1500' of :connect is assumed to be 'HUB,1500': {ON_THE_MACHINE}",
        ),
        ("SPOKE", "HUB,1500", None),
        ("elsewhere,14331", "HUB", None),
        ("elsewhere", "HUB", None),
        ("$(server)", "HUB", None),
    ],
)
def test_a_server_similar_to_a_known_one_is_noted(server: str, own: str, note: str | None) -> None:
    assert say_servers([server], own, rows("SPOKE", "ARCHIVE")) == ([] if note is None else [note])


def test_tables_keep_the_names_of_their_instances() -> None:
    spelling = NameSpelling(["HUB,1433", "Spoke", "Two", "two,1433", "the hub"])
    written = [
        "hub",
        "tcp:HUB,1433",
        "SPOKE,1433",
        "two",
        "TWO,1433",
        "The Hub",
        "tcp:New,1433",
        "new",
        "new,1500",
    ]
    expected = ["HUB,1433", "HUB,1433", "Spoke", "Two", "two,1433", "the hub", "New", "New", "new,1500"]
    assert [spelling.instance(name) for name in written] == expected


def test_a_server_is_found_by_an_address() -> None:
    names = ["C0FFEE", "C0FFEE\\A", "BOX"]
    addresses = {
        "C0FFEE": ["tcp://hub.example:4022", "tcp://[fe80::1]:4022"],
        "C0FFEE\\A": ["tcp://hub.example:14331"],
        "BOX": ["tcp://box:4022", "tcp://shared:4022"],
        "BOX2": ["tcp://shared:4022"],
    }
    places = {
        server: find_instance(server, names, addresses)
        for server in ("hub.example", "HUB.example,14331", "hub.example,9", "shared", "hub.example\\B", "fe80::1")
    }
    assert places == {
        "hub.example": "C0FFEE",
        "HUB.example,14331": "C0FFEE\\A",
        "hub.example,9": None,
        "shared": None,
        "hub.example\\B": None,
        "fe80::1": "C0FFEE",
    }


def test_an_import_notes_servers_and_shows_backslashes_once(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    import_views(no_spark(), config, exports(tmp_path / "exports", MONDAY, **FIRST_VIEWS))
    text = """:r parts\\routes.sql
:connect HUBB
USE Shop
DROP ROUTE a
GO
:connect localhost\\DEV
DROP ROUTE b
"""
    done = import_script(no_spark(), config, tmp_path / "s.sql", text, TUESDAY)
    assert [note for note in done.notes if ":connect" in note] == [
        "the server 'HUBB' of :connect is unknown, did you mean 'HUB'?",
        r"the server 'localhost\DEV' of :connect may be 'HUB': it is on the machine that runs the script",
    ]
    assert [sentence.partition(": ")[2] for sentence in done.rejected] == [
        r"the file 'parts\routes.sql' of :r is not read: No such file or directory",
        "DROP ROUTE 'a': it runs on the server 'HUBB' of :connect",
        r"DROP ROUTE 'b': it runs on the server 'localhost\DEV' of :connect",
    ]


def test_evidence_views_are_accepted_and_not_imported(tmp_path: Path) -> None:
    queues = "name,is_receive_enabled,is_enqueue_enabled,messages\nStockQueue,1,1,7\n"
    plain = import_views(no_spark(), config_in(tmp_path), exports(tmp_path / "plain", MONDAY, **FIRST_VIEWS))
    views = {**FIRST_VIEWS, "service_queues": queues, "certificates": "name,certificate_id\nMine,261\n"}
    imported = import_views(no_spark(), config_in(tmp_path), exports(tmp_path / "beside", TUESDAY, **views))
    assert imported.written.keys() == plain.written.keys()
    assert imported.rejected == []
    [note] = [note for note in imported.notes if "sys.service_queues" in note]
    assert "sys.certificates" in note
    assert "resolve does not need" in note
