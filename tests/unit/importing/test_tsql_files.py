"""Scripts as files: encodings, times, and files that others include."""

from __future__ import annotations

import codecs
import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from routing.importing.tsql.script_reader import read_file
from routing.importing.tsql.script_statements import CreateRoute

SCRIPT = "CREATE ROUTE [Größe] WITH ADDRESS = 'LOCAL', LIFETIME = 60\r\n"


@pytest.mark.parametrize(
    ("data", "is_guessed"),
    [
        (codecs.BOM_UTF8 + SCRIPT.encode(), False),
        (codecs.BOM_UTF16_LE + SCRIPT.encode("utf-16-le"), False),
        (SCRIPT.encode("utf-16-be"), False),
        (SCRIPT.encode("cp1252"), True),
    ],
)
def test_a_file_is_read_in_its_encoding_and_as_of_its_time(tmp_path: Path, data: bytes, is_guessed: bool) -> None:
    path = tmp_path / "routes.sql"
    path.write_bytes(data)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    script = read_file(path, database="shop")
    assert bool(script.guesses) == is_guessed
    assert script.scripted_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=timezone.utc)
    (statement,) = script.statements
    assert isinstance(statement, CreateRoute)
    assert (statement.file, statement.name, statement.database) == (str(path), "Größe", "shop")
    assert statement.options.lifetime == datetime(2023, 11, 14, 22, 14, 20, tzinfo=timezone.utc)


def test_names_with_unreadable_characters_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "routes.sql"
    path.write_bytes(b"-- \xe9\nDROP ROUTE [a\x81]\nDROP ROUTE [b]")
    script = read_file(path, scripted_at=datetime(2024, 1, 1, tzinfo=timezone.utc))
    assert [statement.name for statement in script.statements] == ["b"]
    assert [(problem.line, problem.counted) for problem in script.problems] == [
        (1, True),
        (2, False),
    ]


def test_included_files_are_read_in_place(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    main = tmp_path / "main.sql"
    main.write_text(
        ":setvar host h\nUSE shop\nDROP ROUTE a\n:r parts\\one.sql\nDROP ROUTE d\n"
        ':r "missing.sql"\nDROP ROUTE e\n:r main.sql\n:r $(nowhere)\n'
    )
    one = tmp_path / "parts" / "one.sql"
    one.write_bytes(
        codecs.BOM_UTF8 + b"\nDROP ROUTE b\nGO\n:r two.sql\nCREATE ROUTE c WITH ADDRESS = 'tcp://$(host)'"
    )
    (tmp_path / "parts" / "two.sql").write_text(":setvar host h2")
    script = read_file(main)
    first = [(statement.name, statement.file, statement.line) for statement in script.statements[:5]]
    assert first == [
        ("a", str(main), 3),
        ("b", str(one), 2),
        ("c", str(one), 5),
        ("d", str(main), 5),
        ("e", str(main), 7),
    ]
    route = script.statements[2]
    assert isinstance(route, CreateRoute)
    assert route.options.address == "tcp://h2"
    reasons = [problem.why for problem in script.problems if problem.line in (6, 9)]
    assert "No such file" in reasons[0]
    assert any("more than 16 files deep" in problem.why for problem in script.problems)


def test_files_that_include_themselves_come_to_an_end(tmp_path: Path) -> None:
    path = tmp_path / "again.sql"
    path.write_text(":r again.sql\n:r ../again.sql\n:r again.sql\nDROP ROUTE a\nGO\n")
    script = read_file(path)
    assert len(script.statements) <= 1001
    assert any("1000 in all" in problem.why for problem in script.problems)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none.sql")


def test_problems_come_by_line_the_scripts_own_first(tmp_path: Path) -> None:
    main = tmp_path / "main.sql"
    main.write_text("BEGIN TRAN DROP ROUTE a\nEXEC(@x)\n:r part.sql\nROLLBACK\nEXEC(@y)\n")
    (tmp_path / "part.sql").write_text("\nEXEC(@z)\nDROP ROUTE b")
    problems = read_file(main).problems
    assert [(Path(problem.file).name, problem.line) for problem in problems] == [
        *(("main.sql", line) for line in (1, 2, 5)),
        *(("part.sql", line) for line in (2, 3)),
    ]


def test_an_included_file_that_is_not_text_is_reported(tmp_path: Path) -> None:
    main = tmp_path / "main.sql"
    main.write_text(":r picture.png\nDROP ROUTE a")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    script = read_file(main)
    assert [problem.why for problem in script.problems] == [
        "the file 'picture.png' of :r is not read: it is not text"
    ]
    assert [statement.name for statement in script.statements] == ["a"]
