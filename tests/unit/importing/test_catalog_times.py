"""Times as a culture writes them, and the zone of the clock that an export was made by."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from routing.errors import ContractError
from routing.importing.catalog import CatalogExport, StandIns, TimeFormats, read_export
from routing.importing.catalog.cell_values import moment_of, time_zone
from routing.importing.catalog.culture_times import date_format

BERLIN = ZoneInfo("Europe/Berlin")
HUB = StandIns("hub", "Shop")


def utc(*parts: int) -> datetime:
    year, month, day, *rest = parts
    return datetime(year, month, day, *rest, tzinfo=timezone.utc)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("form", "text", "time"),
    [
        ("M/d/yyyy h:mm:ss tt", "1/5/2026 12:00:00 PM", datetime(2026, 1, 5, 12)),
        ("M/d/yyyy h:mm:ss tt", "12/31/2026 12:30:09 AM", datetime(2026, 12, 31, 0, 30, 9)),
        # PowerShell 7.3 writes a narrow blank that does not break.
        ("M/d/yyyy h:mm:ss tt", "1/5/2026 1:00:00\u202fpm", datetime(2026, 1, 5, 13)),
        ("M/d/yyyy h:mm:ss tt", "1/5/2026 13:00:00 PM", ValueError),
        ("M/d/yyyy h:mm:ss tt", "13/5/2026 1:00:00 PM", ValueError),
        ("M/d/yyyy h:mm:ss tt", "5.1.2026 13:00:00", None),
        ("dd.MM.yyyy HH:mm:ss", "05.01.2026 12:34:56", datetime(2026, 1, 5, 12, 34, 56)),
        ("dd.MM.yyyy HH:mm:ss", "5.1.2026 2:34:56", datetime(2026, 1, 5, 2, 34, 56)),
        ("dd.MM.yyyy HH:mm:ss", "05.01.2026 12:34", None),
        ("dd.MM.yyyy HH:mm:ss", "05.01.2026 12:34:56 ?", None),
        ("dd.MM.yyyy HH:mm:ss", "30.02.2026 12:34:56", ValueError),
        ("dd/MM/yyyy", "05/01/2026", datetime(2026, 1, 5)),
        # Two readings, of which the form says the one: never the other.
        ("yyyy-dd-MM HH:mm", "2026-05-01 00:00", datetime(2026, 1, 5)),
        ("yyyy-dd-MM", "2026-01-13", ValueError),
        # CONVERT(varchar, …) without a style.
        ("MMM d yyyy h:mmtt", "Jan  5 2026 12:00PM", datetime(2026, 1, 5, 12)),
        ("yyyy-MM-ddTHH:mm:ss.fff", "2026-01-05T12:00:00.1234567", datetime(2026, 1, 5, 12, 0, 0, 123456)),
        ("d 'd' M yyyy", "5 d 1 2026", datetime(2026, 1, 5)),
    ],
)
def test_a_time_is_read_by_its_date_format(form: str, text: str, time: datetime | type | None) -> None:
    if time is ValueError:
        with pytest.raises(ValueError, match=f"is not a time of the form {form}"):
            date_format(form).read(text)
    else:
        assert date_format(form).read(text) == time


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ("%d.%m.%Y", "'%d.%m.%Y' has 'Y', which has no meaning (the letters are yyyy yy M MMM d H h m s f tt"),
        ("dd/MM/y", "has 'y', which has no meaning"),
        ("dd.MM.yyyy hh:mm", "needs h with tt, or only H"),
        ("dd.MM.yyyy HH:mm tt", "needs h with tt, or only H"),
        ("HH:mm", "needs yyyy, M and d"),
        ("", "needs yyyy, M and d"),
        ("d.M.yyyy d", "has the same part twice"),
    ],
)
def test_an_invalid_date_format_is_refused(form: str, why: str) -> None:
    with pytest.raises(ContractError) as caught:
        date_format(form)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("text", "offset"),
    [("UTC", 0), ("z", 0), ("+02:00", 120), ("-0530", -330), ("+14:00", 840)],
)
def test_an_offset_is_a_time_zone(text: str, offset: int) -> None:
    assert time_zone(text).utcoffset(None) == timedelta(minutes=offset)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "Europe/Berln",
            "'Europe/Berln' is not a time zone, did you mean Europe/Berlin? (name one as Europe/Berlin,",
        ),
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("+15:00", "is not an offset (from -14:00 to +14:00)"),
        ("+02:60", "is not an offset"),
        ("Europe", "is not a time zone"),
        ("../../etc/passwd", "is not a time zone"),
        ("x" * 100_000, "is not a time zone"),
    ],
)
def test_an_unknown_time_zone_is_refused(text: str, why: str) -> None:
    with pytest.raises(ContractError) as caught:
        time_zone(text)
    assert why in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_machine_without_zones_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoneinfo.available_timezones", set)
    with pytest.raises(
        ContractError, match="this machine has no time zones: pip install tzdata, or give an offset"
    ):
        time_zone("Europe/Berlin")
    assert time_zone("+01:00") == timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("local", "moment", "is_twofold"),
    [
        (datetime(2026, 1, 5, 12), utc(2026, 1, 5, 11), False),
        (datetime(2026, 7, 5, 12), utc(2026, 7, 5, 10), False),
        (datetime(2026, 3, 29, 1, 59, 59), utc(2026, 3, 29, 0, 59, 59), False),
        (datetime(2026, 3, 29, 3), utc(2026, 3, 29, 1), False),
        (datetime(2026, 10, 25, 1, 59), utc(2026, 10, 24, 23, 59), False),
        (datetime(2026, 10, 25, 2, 30), utc(2026, 10, 25, 0, 30), True),
        (datetime(2026, 10, 25, 3), utc(2026, 10, 25, 2), False),
    ],
)
def test_local_times_become_utc(local: datetime, moment: datetime, is_twofold: bool) -> None:
    assert moment_of(local, BERLIN) == (moment, is_twofold)


@pytest.mark.parametrize("local", [datetime(2026, 3, 29, 2), datetime(2026, 3, 29, 2, 59, 59)])
def test_a_skipped_local_time_is_refused(local: datetime) -> None:
    with pytest.raises(ValueError, match=f"{local} does not exist in Europe/Berlin: the clock was put forward"):
        moment_of(local, BERLIN)


def test_a_time_outside_the_years_1_to_9999_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a time between the years 1 and 9999"):
        moment_of(datetime(1, 1, 1), timezone(timedelta(hours=2)))


def read(
    tmp_path: Path, text: str, stand_ins: StandIns = HUB, name: str = "routes.csv", **times: Any
) -> CatalogExport:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_export([str(tmp_path / name)], stand_ins, times=TimeFormats(**times))


# Export-Csv of Windows PowerShell 5.1, by the culture en-US: GETDATE() and the view's own time, which is UTC.
LOCAL = """#TYPE System.Data.DataRow
"exported_at","name","lifetime","address"
"7/5/2026 2:00:00 PM","a","1/5/2030 12:00:00 PM","LOCAL"
"7/5/2026 2:00:00 PM","b","","LOCAL"
"""
FORM = date_format("M/d/yyyy h:mm:ss tt")


def test_only_the_export_time_uses_the_time_zone(tmp_path: Path) -> None:
    export = read(tmp_path, LOCAL, form=FORM, zone=BERLIN)
    assert [(row["exported_at"], row["lifetime"]) for row in export.rows["routes"]] == [
        (utc(2026, 7, 5, 12), utc(2030, 1, 5, 12)),
        (utc(2026, 7, 5, 12), None),
    ]
    assert [note for note in export.notes if "missing" not in note] == []


def test_a_time_read_as_utc_is_noted_once_for_each_view(tmp_path: Path) -> None:
    (tmp_path / "services.csv").write_text("name,exported_at\n//a,2026-01-05 12:00:00\n", encoding="utf-8")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "services.csv").write_text("name,exported_at\n//a,2026-01-04 12:00:00\n", encoding="utf-8")
    (tmp_path / "databases.csv").write_text(
        "name,service_broker_guid,exported_at\na,4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D88,2026-01-05T12:00Z\n",
        encoding="utf-8",
    )
    export = read_export([str(tmp_path)], HUB)
    assert [note for note in export.notes if "zone" in note] == [
        "sys.services: exported_at has no time zone, so UTC is used (--time-zone)"
    ]
    assert {row["exported_at"] for row in export.rows["services"]} == {utc(2026, 1, 5, 12), utc(2026, 1, 4, 12)}


def test_times_of_sql_server_get_no_note(tmp_path: Path) -> None:
    text = "name,lifetime,address,exported_at\na,2030-01-01 08:30:00.123,LOCAL,2026-01-05T12:00:00Z\n"
    export = read(tmp_path, text)
    assert [note for note in export.notes if "zone" in note] == []


def test_a_clock_that_was_set_back_is_noted(tmp_path: Path) -> None:
    export = read(
        tmp_path, "name,address,exported_at\na,LOCAL,2026-10-25 02:30\nb,LOCAL,2026-10-25 02:30\n", zone=BERLIN
    )
    assert {row["exported_at"] for row in export.rows["routes"]} == {utc(2026, 10, 25, 0, 30)}
    note = "2026-10-25 02:30:00 occurred twice, and the earlier time 2026-10-25T00:30:00Z is used"
    assert export.notes[1:] == [f"sys.routes: exported_at: {note}"]


def test_a_clock_that_was_put_forward_rejects_the_row(tmp_path: Path) -> None:
    export = read(tmp_path, "name,address,exported_at\na,LOCAL,2026-03-29 02:30\n", zone=BERLIN)
    why = "2026-03-29 02:30:00 does not exist in Europe/Berlin: the clock was put forward"
    assert export.rejected == [f"{tmp_path}/routes.csv, row 2: exported_at: {why} (a)"]


def test_a_time_in_another_form_names_the_option(tmp_path: Path) -> None:
    at = StandIns("hub", "Shop", utc(2026, 1, 5))
    text = "name,lifetime,address\na,noon,LOCAL\nb,2030-01-05,LOCAL\n"
    export = read(tmp_path, text, at)
    fault = f"{tmp_path}/routes.csv, row 2: lifetime: 'noon' is not a time of the form"
    assert export.rejected == [f"{fault} 2026-01-05 12:00:00 (--date-format names another) (a)"]
    text = text.replace("noon", "1/5/2030 12:00:00 PM")
    fault = fault.replace("noon", "1/5/2030 12:00:00 PM")
    export = read(tmp_path, text, at, form=date_format("dd.MM.yyyy"))
    assert export.rejected == [f"{fault} 2026-01-05 12:00:00 nor of dd.MM.yyyy (a)"]
    # What is written by ISO 8601 is read beside the form.
    assert [row["lifetime"] for row in read(tmp_path, text, at, form=FORM).rows["routes"]] == [
        utc(2030, 1, 5, 12),
        utc(2030, 1, 5),
    ]
