"""Single cells, and any text at all."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routing.errors import ContractError
from routing.importing.catalog import StandIns, cover, read_export
from routing.importing.catalog.cell_values import plain_guids, read_cell
from routing.importing.catalog.text_lines import separated
from routing.importing.catalog.views import VIEWS, CellKind
from routing.importing.spelling import NameSpelling
from tests.examples import count_examples

GUID = "4c8c5a5c-1d3e-4b7a-9d5e-2f0a6b1c7d88"


def utc(year: int, month: int, day: int, *parts: int) -> datetime:
    hour, minute, second, micros = (*parts, 0, 0, 0, 0)[:4]
    return datetime(year, month, day, hour, minute, second, micros, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("cell", "kind", "value"),
    [
        (None, CellKind.TEXT, None),
        (" a ", CellKind.TEXT, " a "),
        ("", CellKind.INTEGER, None),
        ("  ", CellKind.TIME, None),
        (GUID.upper(), CellKind.GUID, GUID),
        ("{" + GUID + "}", CellKind.GUID, GUID),
        # A uniqueidentifier as binary: its first three groups are backwards.
        ("0x5C5A8C4C3E1D7A4B9D5E2F0A6B1C7D88", CellKind.GUID, GUID),
        (" 12 ", CellKind.INTEGER, 12),
        ("-7", CellKind.INTEGER, -7),
        ("0x0000000F", CellKind.INTEGER, 15),
        (Decimal(4), CellKind.INTEGER, 4),
        ("1", CellKind.FLAG, True),
        ("False", CellKind.FLAG, False),
        (0, CellKind.FLAG, False),
        ("0x01", CellKind.FLAG, True),
        ("65536.0", CellKind.INTEGER, 65536),
        *((yes, CellKind.FLAG, True) for yes in ("1.0", 1.0, "Yes", "ON", "Ja", "S\u00ed", "Oui", "\u0414\u0430")),
        *((no, CellKind.FLAG, False) for no in ("0.0", 0.0, "No", "off", "Nein", "Non", "\u041d\u0435\u0442")),
        ("2026-01-05", CellKind.TIME, utc(2026, 1, 5)),
        ("2026-01-05 12:34:56.1234567", CellKind.TIME, utc(2026, 1, 5, 12, 34, 56, 123456)),
        ("2026-01-05 12:34:56.1234567 +02:00", CellKind.TIME, utc(2026, 1, 5, 10, 34, 56, 123456)),
        ("2026-01-05T12:34Z", CellKind.TIME, utc(2026, 1, 5, 12, 34)),
        ("2026-01-05 00:00:00 -0530", CellKind.TIME, utc(2026, 1, 5, 5, 30)),
        (datetime(2026, 1, 5, 12), CellKind.TIME, utc(2026, 1, 5, 12)),
    ],
)
def test_a_cell_has_the_value_of_its_column(cell: object, kind: CellKind, value: object) -> None:
    assert read_cell(cell, kind) == value


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ([GUID, None, GUID.upper()], [GUID, None, GUID]),
        ([None], [None]),
        ([GUID, "{" + GUID + "}"], None),
        ([GUID, ""], None),
        ([GUID, f"{GUID}\n"], None),
        ([GUID, b"0123456789abcdef"], None),
    ],
)
def test_only_plain_columns_of_guids_are_read_as_one(cells: list[object], values: object) -> None:
    assert plain_guids(cells) == values


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("4c8c5a5c", CellKind.GUID),
        ("0x5C5A", CellKind.GUID),
        ("1.5", CellKind.INTEGER),
        ("99999999999999999999", CellKind.INTEGER),
        ("1234567890123456.0", CellKind.INTEGER),
        (str(2**63), CellKind.INTEGER),
        ("0.5", CellKind.FLAG),
        ("2", CellKind.FLAG),
        ("enabled?", CellKind.FLAG),
        ("1/5/2026 12:00", CellKind.TIME),
        ("2026-13-01", CellKind.TIME),
        ("0001-01-01 00:00 +14:00", CellKind.TIME),
        (["a"], CellKind.TEXT),
    ],
)
def test_a_cell_of_another_type_is_refused(cell: object, kind: CellKind) -> None:
    with pytest.raises(ValueError, match=r" is (not|neither) | does not fit "):
        read_cell(cell, kind)


PIECES = st.sampled_from(
    [
        *(column for view in VIEWS.values() for column in view.exported),
        *(",", ",", ",", "\t", ";", "|", "\n", "\n", "\r\n", "\r", " ", "   ", "-", "---", '"', '""', "'"),
        *("NULL", "routes", "services", "LOCAL", "TCP://x:1", GUID, "0x01", "1", "0", "2026-01-05 12:00:00"),
        *("sep=;\n", "#TYPE System.Data.DataRow\n", "name address\n---- -------\n", "---- ---\n", "日", '[{"'),
        *("JSON_F52E2B61-18A1-11d1-B105-00805F49916B\n", "Msg 9, Level 1, State 1\n", "},{", '"name":"'),
        *("(1 rows affected)", "\x00", "\ufeff", "é", "\U0001f600", "{", "}", '{"name":"x"}', "[", "]"),
    ]
)
TEXTS = st.one_of(
    st.lists(PIECES, max_size=80).map("".join),
    st.lists(PIECES, max_size=80).map(",".join),
    st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=40).map("".join),
)
OPTIONS = settings(
    deadline=timedelta(seconds=2),
    max_examples=count_examples(300),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@OPTIONS
@given(text=TEXTS, view=st.sampled_from(sorted(VIEWS)), suffix=st.sampled_from(["csv", "json", "txt"]))
def test_any_text_ends_in_rows_or_a_reason(tmp_path: Path, text: str, view: str, suffix: str) -> None:
    file = tmp_path / f"{view}.{suffix}"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        export = read_export([str(file)], StandIns("hub", "db", utc(2026, 1, 5)))
    except ContractError:
        return
    read = sum(export.rows_read.values())
    row_count = sum("is_empty" not in row for rows in export.rows.values() for row in rows)
    assert row_count + len(export.rejected) == read
    cover(export, NameSpelling())


@OPTIONS
@given(st.text(alphabet='a",\n\r ;\x00', max_size=60))
def test_no_character_is_lost_or_read_twice(text: str) -> None:
    rows = list(separated(text, ","))
    assert "".join(c for _, cells in rows for cell in cells for c in cell if c == "a") == "a" * text.count("a")
    assert [number for number, _ in rows] == sorted({number for number, _ in rows})


@pytest.mark.parametrize("piece", ['"', '",', '"a""', ',"', '"\n', "a,", " ", ' "', '""', "-,", "\x00", "NULL,"])
def test_long_runs_end_in_time(piece: str) -> None:
    begin = time.process_time()
    list(separated(piece * 50_000, ","))
    assert time.process_time() - begin < 10
