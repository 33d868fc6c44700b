"""Hostile names in output or other languages never escape from their place."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing import cli, errors
from routing.commands.command_context import Console
from routing.document import DataTable, make_columns
from routing.importing.spelling import NameSpelling
from routing.importing.tsql.script_reader import read_script
from routing.importing.tsql.script_statements import CreateRoute, CreateService
from routing.importing.tsql.servers import instance_name
from routing.importing.tsql.vocabulary import find_unfilled
from routing.render.phrases import quote_name
from routing.render.text import write_text
from routing.render.wording import printable, write_json
from tests.hostile import NAMES, TEXTS

NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
# Any character that moves the cursor, begins an escape sequence or turns the direction of the text.
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def printed(name: str) -> list[str]:
    # Wide enough for every name twice; a terminal's colours and links are off, as in a pipe.
    table = DataTable(make_columns(("a", "b"), ("b",)), [(name, 1)], "T")
    return write_text([table], width=4_000).split("\n")


@given(TEXTS)
def test_a_table_shows_a_name_as_it_is_on_one_line(name: str) -> None:
    title, head, row = printed(name)
    assert (title, head.split()) == ("T", ["a", "b"])
    assert UNPRINTABLE.search(row) is None
    if name.isprintable() and name.isascii():
        # No markup, no emoji code, no wrapping took anything away.
        assert row.startswith(name)
        assert row[len(name) :].split() == ["1"]


@pytest.mark.parametrize("name", [name for name in NAMES if name.isprintable()])
def test_printable_characters_are_shown(name: str) -> None:
    assert name in printed(name)[2]


@given(TEXTS)
def test_names_in_sentences_are_one_line(name: str) -> None:
    for text in (quote_name(name), errors.quote(name), printable(name)):
        assert UNPRINTABLE.search(text) is None
    assert quote_name(name).startswith("'")
    assert errors.quote(name)[0] == errors.quote(name)[-1]
    assert len(errors.quote(name)) <= 2 + 10 * 201


@given(TEXTS)
def test_notes_are_one_line(name: str) -> None:
    error = errors.StorageError.failed(f"writing output.runs to {name}", errors.first_sentence(ValueError(name)))
    for form in ("text", "json"):
        err = io.StringIO()
        console = Console(cli._parser().parse_args(["demo", "--log-format", form]))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stderr", err)
            console.note(f"sbroute: {error}", "error")
        [line, end] = err.getvalue().split("\n")
        assert end == ""
        assert UNPRINTABLE.search(line) is None
        message = json.loads(line)["message"] if form == "json" else line
        assert message.startswith("sbroute: the run failed while writing output.runs to ")


@given(st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_a_row_as_json_is_one_line_that_reads_back(names: dict[str, str]) -> None:
    line = write_json({"names": names})
    assert "\n" not in line
    assert UNPRINTABLE.search(line.replace("\x7f", "")) is None
    assert json.loads(line) == {"names": names}


_PRINTS = """
import sys
from routing import cli
from routing.document import DataTable, make_columns
from tests.hostile import NAMES

def command(options, console):
    console.document([DataTable(make_columns(("a",)), [(name,) for name in NAMES], "T")])
    console.result(NAMES[4])
    console.note(NAMES[4])
    return 0

cli._COMMANDS["demo"] = command
sys.exit(cli.main(["demo"]))
"""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_any_terminal_encoding_works(encoding: str) -> None:
    """A character that it lacks is printed as its escape."""
    done = subprocess.run(
        [sys.executable, "-c", _PRINTS],
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(Path(cli.__file__).parents[1])},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for text in (done.stdout.decode(encoding), done.stderr.decode(encoding)):
        assert ("\U0001f600" if encoding == "utf-8" else "\\U0001f600") in text
        assert UNPRINTABLE.search(text.replace("\n", "").replace("\r", "")) is None


@given(st.lists(TEXTS, min_size=1, max_size=6, unique=True))
def test_spelling_keeps_exact_names(names: list[str]) -> None:
    spelling = NameSpelling(databases=[("srv", name) for name in names])
    for name in names:
        # Databases that stand side by side keep their names, whatever folding makes of them.
        assert spelling.database("SRV", name) == name
    for name in names:
        # A protocol, brackets of IPv6, and the ways to write a port are no part of a name.
        assert spelling.instance(name).casefold() == instance_name(name).casefold()
        assert instance_name(name) == name or re.search(r"[:,\\]", name)


def bracketed(name: str) -> str:
    return "[" + name.replace("]", "]]") + "]"


def texted(name: str) -> str:
    return "N'" + name.replace("'", "''") + "'"


# Variables of sqlcmd, placeholders of migration tools and templates of SSMS are taken out of a script before T-SQL
# sees it, and a carriage return is read as the end of a line; a name has 128 characters at most, none unreadable.
_TAKEN_OUT = re.compile(r"\$\(|[$#{]\{|\$\w[^$]*\$|<[^>]*,|[\r\ufffd]")
_IN_A_SCRIPT = TEXTS.filter(
    lambda name: 0 < len(name) <= 128 and not _TAKEN_OUT.search(name) and not find_unfilled(name)
)


@given(_IN_A_SCRIPT, _IN_A_SCRIPT)
def test_a_script_gives_a_name_as_it_quotes_it(route: str, service: str) -> None:
    text = (
        f"USE [d];\nCREATE ROUTE {bracketed(route)} WITH SERVICE_NAME = {texted(service)}, ADDRESS = 'LOCAL';\n"
        f"CREATE SERVICE {bracketed(service)} ON QUEUE q;"
    )
    script = read_script(text, file="x.sql", scripted_at=NOON)
    created = [s for s in script.statements if isinstance(s, CreateRoute | CreateService)]
    assert [problem.why for problem in script.problems if not problem.counted] == []
    assert [statement.name for statement in created] == [route, service]
