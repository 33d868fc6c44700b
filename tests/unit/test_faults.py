"""Faults of rows, found in plain columns."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

import pytest

from routing.errors import InputError
from routing.schemas import KEYS
from routing.tables.read_rows import columns_of
from routing.tables.row_faults import findings, phrase, refuse_faults, time_text
from routing.tables.table_columns import TableColumns
from tests.estate_rows import route, small_estate
from tests.faulty_rows import faulty_rows
from tests.frames import arrow, moment
from tests.golden_texts import assert_golden

_INT_MIN = -(2**31)


def _columns(tables: dict[str, list[dict[str, Any]]]) -> dict[str, TableColumns]:
    return {key: columns_of(table, key) for key, table in arrow(tables).items() if key in KEYS}


def test_all_faulty_rows_are_listed() -> None:
    tables = _columns(faulty_rows())
    names = tables["databases"].values["name"]
    too_large = [_INT_MIN - 1 if name == "zero guid" else -_INT_MIN - 1 for name in names]
    tables["databases"] = TableColumns({**tables["databases"].values, "database_id": too_large})
    lines = sorted(f"{fault.table_name} ({fault.row_key}): {fault.fault}" for fault in findings(tables))
    assert_golden("faulty_rows.txt", "\n".join(lines))


def test_a_valid_estate_has_no_faulty_row() -> None:
    assert list(findings(_columns(small_estate()))) == []


def test_the_first_faults_are_listed_and_the_rest_counted() -> None:
    bad = [route(f"r{n:02}", "//far", "no address") for n in reversed(range(30))]
    with pytest.raises(InputError) as caught:
        refuse_faults(_columns({**small_estate(), "routes": bad, "instances": [{"instance_name": ""}]}))
    text = str(caught.value)
    assert text.startswith("the input tables have 31 faulty rows: instances (): instance_name is missing; ")
    assert re.findall(r"routes \(hub, Sales, (r\d\d), NULL\): address 'no address'", text) == [
        f"r{n:02}" for n in range(19)
    ]
    refuse_faults(_columns(small_estate()))


def test_shown_values_are_cut() -> None:
    far = "http://" + "x" * 200
    bad = {**route("R" * 200, "a", far), "valid_from": "2026-01-05T10:30:00Z"}
    [fault] = findings(_columns({"routes": [bad]}))
    assert fault.row_key == f"hub, Sales, {'R' * 100}, 2026-01-05 10:30:00"
    assert fault.fault == f"address '{far[:100]}' is neither LOCAL, TRANSPORT nor tcp://HOST[:PORT]"


def test_phrases_show_null_and_percent_signs() -> None:
    assert phrase("%s and %s%%", None, "50") == "NULL and 50%"
    assert phrase("100 %") == "100 %"


@pytest.mark.parametrize(
    ("micros", "written"),
    [
        (0, "1970-01-01 00:00:00"),
        (-1, "1969-12-31 23:59:59.999999"),
        (1_500_000, "1970-01-01 00:00:01.5"),
        (-62_135_596_800_000_000, "0001-01-01 00:00:00"),
        (-62_135_596_800_000_001, "0000-12-31 23:59:59.999999"),
        (-62_167_219_200_000_001, "-0001-12-31 23:59:59.999999"),
        (253_402_300_799_999_999, "9999-12-31 23:59:59.999999"),
        (253_402_300_800_000_000, "+10000-01-01 00:00:00"),
        (2**63 - 1, "+294247-01-10 04:00:54.775807"),
        (-(2**63), "-290308-12-21 19:59:05.224192"),
    ],
)
def test_a_time_as_spark_writes_it(micros: int, written: str) -> None:
    assert time_text(micros) == written


def test_a_time_as_python_writes_it() -> None:
    time = moment("2024-02-29T23:59:59Z")
    assert time_text(int((time - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds()) * 1_000_000) == str(
        time.replace(tzinfo=None)
    )
