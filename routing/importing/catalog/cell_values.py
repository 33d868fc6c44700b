"""Read cells as SQL Server's tools write them. A ValueError describes an invalid cell."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from math import isfinite
from typing import cast

from routing.errors import InputError, name_nearest, quote
from routing.importing.catalog.culture_times import CultureForm, DateFormat, read_micros
from routing.importing.catalog.views import CellKind
from routing.render.wording import format_time
from routing.rules.text import GUID, printed_guid

_TIME = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[T ]+(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?"
    r" *(?:([zZ])|([+-])(\d{2}):?(\d{2}))?"
)
# Times as spreadsheets show and save them: minutes, a number of days, or nothing in a narrow column.
_SHOWN_TIME = re.compile(
    r"\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d{1,7})?(?:\s?[AaPp]\.?\s?[Mm]\.?)?|\d{5}(?:[.,]\d+)?|#+"
)
_DATE_SIGNS = re.compile(r"[\w., /-]{6,24}")
_DIGITS = re.compile(r"\d+")
_PLAIN_GUID = re.compile(GUID).fullmatch
_HEX = re.compile(r"0[xX](?:[0-9A-Fa-f]{2})+")
# pandas writes the numbers of a column without some as 5.0, of which it keeps 15 digits.
_INTEGER = re.compile(r"[+-]?(?:\d{1,19}|\d{1,15}\.0)")
# Tools and spreadsheets write a flag in the language of their user, and pandas as a number with a fraction.
_TRUE = (
    *("1", "1.0", "true", "wahr", "vrai", "verdadero", "verdadeiro", "vero", "waar", "sant", "sand", "prawda"),
    *("pravda", "igaz", "tosi", "sann", "истина", "doğru", "adevărat"),
    *("yes", "on", "ja", "oui", "sí", "sì", "si", "sim", "да", "tak", "ano", "evet", "はい", "是"),
)
_FALSE = (
    *("0", "0.0", "false", "falsch", "faux", "falso", "onwaar", "falskt", "falsk", "fałsz"),
    *("nepravda", "hamis", "epätosi", "usann", "ложь", "yanl\u0131ş", "yanliş", "fals"),
    *("no", "off", "nein", "nee", "nej", "nei", "non", "não", "нет", "nie", "ne", "hay\u0131r", "いいえ", "否"),
)
_FLAGS = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}
_GUID_BYTES = 16
_BIGINT = 2**63


TimeForm = CultureForm | DateFormat
"""Another form of times than ISO 8601."""


def read_cell(cell: object, kind: CellKind, form: TimeForm | None = None) -> object:
    """Return a cell's value. It is None for NULL, and for empty text unless the column has texts.

    Text stays unchanged, blanks included. Times become aware and UTC, also without an offset. ``form`` is another
    form that they may have. GUIDs are in lower case. Raises ValueError.
    """
    if cell is None:
        return None
    if kind is CellKind.TEXT:
        return _text(cell)
    if isinstance(cell, str) and not cell.strip():
        return None
    if kind is CellKind.TIME:
        moment = time(cell, form)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return _READERS[kind](cell)


def is_iso_time(text: str) -> bool:
    """Return whether a text has the form of ISO 8601, whether it is a time or not."""
    return _TIME.fullmatch(text.strip()) is not None


def is_shown_time(cell: object) -> bool:
    """Return whether a cell has only the part of a time that a spreadsheet shows."""
    return isinstance(cell, str) and _SHOWN_TIME.fullmatch(cell.strip()) is not None


def is_only_date(cell: object) -> bool:
    """Return whether a cell has a date without a time of day."""
    return isinstance(cell, str) and bool(_DATE_SIGNS.fullmatch(cell)) and len(_DIGITS.findall(cell)) in (2, 3)


class UnknownTime(datetime):
    """A time that a cell does not show. Its value is the time of the export."""


def time(cell: object, form: TimeForm | None = None) -> datetime:
    """Return a UTC time, or one without zone if the cell has none. Raises ValueError."""
    if isinstance(cell, datetime):
        return cell.astimezone(timezone.utc) if cell.tzinfo else cell
    if isinstance(cell, date):
        return datetime(cell.year, cell.month, cell.day)
    text = str(cell).strip()
    by_form = None if form is None else form.read(text)
    if by_form is None:
        return _iso_time(text, form)
    return by_form.astimezone(timezone.utc) if by_form.tzinfo else by_form


def shown_time(text: str) -> ValueError:
    """Return the error that a cell has only a part of a time."""
    remedy = "export the view again, as sbroute import queries does, and do not save it with a spreadsheet"
    return ValueError(f"{quote(text)} is only the part of a time that a spreadsheet shows: {remedy}")


def _iso_time(text: str, form: TimeForm | None) -> datetime:
    match = _TIME.fullmatch(text)
    if is_shown_time(text):
        raise shown_time(text)
    if match is None:
        format_hint = "(--date-format names another)" if form is None else f"nor of {form.text}"
        raise ValueError(f"{quote(text)} is not a time of the form 2026-01-05 12:00:00 {format_hint}")
    year, month, day, hour, minute, second, fraction, utc, sign, hours, minutes = match.groups()
    try:
        parts = (int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
        local = datetime(*parts, read_micros(fraction))
        if not utc and not sign:
            return local
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        zone = timezone(-offset if sign == "-" else offset)
        return local.replace(tzinfo=zone).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise ValueError(f"{quote(text)} is not a time between the years 1 and 9999") from None


def _text(cell: object) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool | int) or (isinstance(cell, float | Decimal) and isfinite(cell)):
        return str(cell)
    raise ValueError(f"{quote(cell)} is not text")


def _guid(cell: object) -> str:
    if isinstance(cell, bytes) and len(cell) == _GUID_BYTES:
        return str(uuid.UUID(bytes_le=cell))
    text = str(cell).strip()
    guid = printed_guid(text)
    if guid is not None:
        return guid
    if _HEX.fullmatch(text) and len(text) == 2 + 2 * _GUID_BYTES:
        # As binary(16), a uniqueidentifier has its first three groups backwards.
        return str(uuid.UUID(bytes_le=bytes.fromhex(text[2:])))
    raise ValueError(f"{quote(cell)} is not a GUID")


def plain_guids(cells: Sequence[object]) -> list[str | None] | None:
    """Return the values of a column of GUIDs without braces or blanks, as nearly all are; None for any other."""
    texts = [cell for cell in cells if type(cell) is str]
    if len(texts) + cells.count(None) < len(cells) or not all(map(_PLAIN_GUID, texts)):
        return None
    # Texts in lower case are already shared in memory.
    guids = cast("Sequence[str | None]", cells)
    return [guid if guid is None or (folded := guid.lower()) == guid else folded for guid in guids]


def _integer(cell: object) -> int:
    if isinstance(cell, int) and not isinstance(cell, bool):
        number = cell
    elif isinstance(cell, float | Decimal) and isfinite(cell) and cell == int(cell):
        number = int(cell)
    else:
        text = str(cell).strip()
        if _HEX.fullmatch(text):
            number = int.from_bytes(bytes.fromhex(text[2:]), "big", signed=True)
        elif _INTEGER.fullmatch(text):
            number = int(text.partition(".")[0])
        else:
            raise ValueError(f"{quote(cell)} is not an integer")
    if not -_BIGINT <= number < _BIGINT:
        raise ValueError(f"{quote(cell)} does not fit a bigint")
    return number


def is_flag(text: str) -> bool:
    """Return True if a text is 0 or 1, in a spreadsheet's words too."""
    return text.lower() in _FLAGS


def _flag(cell: object) -> bool:
    if isinstance(cell, bool):
        return cell
    text = str(cell).strip().lower()
    if _HEX.fullmatch(text):
        text = str(int(text, 16))
    if text not in _FLAGS:
        raise ValueError(f"{quote(cell)} is neither 1 nor 0")
    return _FLAGS[text]


_READERS: dict[CellKind, Callable[[object], object]] = {
    CellKind.GUID: _guid,
    CellKind.INTEGER: _integer,
    CellKind.FLAG: _flag,
}


# ``--time-zone``: the zone of a clock, and the moment that a time on it was.


_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")
_UTC_NAMES = ("utc", "z")
_MINUTES = 60
_LONGEST_OFFSET = 14 * _MINUTES


def time_zone(text: str) -> tzinfo:
    """Return the zone that ``--time-zone`` names: an offset, or a name of the IANA database. Raises InputError."""
    if text.lower() in _UTC_NAMES:
        return timezone.utc
    match = _OFFSET.fullmatch(text)
    if match is not None:
        sign, hours, minutes = match.groups()
        offset = int(hours) * _MINUTES + int(minutes)
        if int(minutes) >= _MINUTES or offset > _LONGEST_OFFSET:
            raise InputError(f"--time-zone {quote(text)} is not an offset", "from -14:00 to +14:00")
        return timezone(timedelta(minutes=-offset if sign == "-" else offset))
    return _named_zone(text)


def _named_zone(text: str) -> tzinfo:
    import zoneinfo

    zone_names = zoneinfo.available_timezones()
    if text in zone_names:
        return zoneinfo.ZoneInfo(text)
    if not zone_names:
        hint = "this machine has no time zones: pip install tzdata, or give an offset such as +02:00"
        raise InputError(f"--time-zone {quote(text)} cannot be found", hint)
    folded = {name.lower(): name for name in zone_names}
    near = name_nearest(text.lower(), folded)
    suggestion = "" if near is None else f", did you mean {near}?"
    hint = "name one as Europe/Berlin, or give an offset such as +02:00"
    raise InputError(f"--time-zone {quote(text)} is not a time zone{suggestion}", hint)


def moment_of(local: datetime, zone: tzinfo) -> tuple[datetime, bool]:
    """Convert a local time to UTC, and return whether it occurred twice. The earlier one is then used.

    Raises ValueError if the local time never occurred, or is outside the years 1 to 9999.
    """
    earlier, later = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    try:
        moments = [time.astimezone(timezone.utc) for time in (earlier, later)]
    except (ValueError, OverflowError):
        raise ValueError(f"{local} is not a time between the years 1 and 9999") from None
    if moments[0] == moments[1]:
        return moments[0], False
    if moments[0].astimezone(zone).replace(tzinfo=None) != local:
        raise ValueError(f"{local} does not exist in {zone}: the clock was put forward")
    return moments[0], True


def twofold(subject: str, local: datetime, moment: datetime) -> str:
    """Return the sentence on a time that a clock showed twice."""
    earlier = format_time(moment.replace(microsecond=0))
    return f"{subject}: {local} occurred twice, and the earlier time {earlier} is used"
