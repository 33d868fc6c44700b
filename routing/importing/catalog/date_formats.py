"""``--date-format``: times in a culture's own form, as PowerShell and Excel write them.

The letters are those of .NET, as in ``dd.MM.yyyy HH:mm:ss``: T-SQL's FORMAT has them too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from routing.errors import InputError, quote

_TOKENS = re.compile(r"([A-Za-z])\1*|'[^']*'|.", re.DOTALL)
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_SHORT_MONTHS = tuple(name[:3] for name in MONTHS)
# PowerShell 7.3 and later write the last one between a time and AM or PM.
BLANKS = " \t\u00a0\u202f"
HALF_OF_DAY = rf"[ap]\.?[{BLANKS}]?m\b\.?|上午|下午|午前|午後|오전|오후|πμ|μμ|π\.μ\.|μ\.μ\."
"""What cultures write beside an hour of twelve."""
AFTERNOON = ("p", "下午", "午後", "오후", "μ")
_READERS = {
    "yyyy": re.compile(r"\d{4}"),
    "yy": re.compile(r"\d{2}"),
    "MMM": re.compile("|".join(_SHORT_MONTHS), re.IGNORECASE),
    "MMMM": re.compile("|".join(MONTHS), re.IGNORECASE),
    **dict.fromkeys(("M", "MM", "d", "dd", "H", "HH", "h", "hh", "m", "mm", "s", "ss"), re.compile(r"\d{1,2}")),
    **dict.fromkeys(("f" * count for count in range(1, 8)), re.compile(r"\d{1,9}")),
    "tt": re.compile(HALF_OF_DAY, re.IGNORECASE),
    "zzz": re.compile(r"[+-]\d{1,2}:?\d{2}|[zZ]"),
}
"""What each letter reads; leading zeros may be there or not."""

_NEEDED = ("y", "M", "d")
_NOON = 12


@dataclass(frozen=True)
class DateFormat:
    """A format in parts: letters that are read, and texts between them; a blank is any number of blanks."""

    text: str
    parts: tuple[str, ...]

    def read(self, text: str) -> datetime | None:
        """Return a time, without zone where the form has none; None where the text has another form.

        Raises ValueError where it has this form and is no time.
        """
        part_texts: dict[str, str] = {}
        position = 0
        for part in self.parts:
            if part in _READERS:
                match = _READERS[part].match(text, position)
                if match is None:
                    return None
                part_texts[part[0]] = match.group(0)
                position = match.end()
            elif part.strip(BLANKS):
                literal = part.strip("'")
                if not text.startswith(literal, position):
                    return None
                position += len(literal)
            else:
                while position < len(text) and text[position] in BLANKS:
                    position += 1
        return self._time(part_texts, text) if position == len(text) else None

    def _time(self, part_texts: dict[str, str], text: str) -> datetime:
        month = part_texts["M"].lower()
        minute, second = int(part_texts.get("m", "0")), int(part_texts.get("s", "0"))
        try:
            number = int(month) if month.isdecimal() else _SHORT_MONTHS.index(month[:3]) + 1
            hour = hour_of(int(part_texts.get("H", part_texts.get("h", "0"))), part_texts.get("t"))
            parts = (read_year(part_texts["y"]), number, int(part_texts["d"]), hour, minute, second)
            local = datetime(*parts, read_micros(part_texts.get("f")))
            return local if "z" not in part_texts else read_as_utc(local, part_texts["z"])
        except (ValueError, OverflowError):
            raise ValueError(f"{quote(text)} is not a time of the form {self.text}") from None


def read_year(digits: str) -> int:
    """Return a year; two digits are of this century."""
    return int(digits) if len(digits) > 2 else 2000 + int(digits)


def read_micros(fraction: str | None) -> int:
    """Return the microseconds of a second's digits: the tools write seven of them, the tables hold six."""
    return int((fraction or "0").ljust(6, "0")[:6])


def hour_of(hour: int, half: str | None) -> int:
    """Return the hour of the day; ``half`` says which half of it is meant where there are twelve hours."""
    if half is None:
        return hour
    if not 1 <= hour <= _NOON:
        raise ValueError("no hour of twelve")
    return hour % _NOON + (_NOON if half.lower().startswith(AFTERNOON) else 0)


def read_as_utc(local: datetime, offset: str) -> datetime:
    """Return the UTC time of a clock with an offset, as ``+02:00``; letters stand for none."""
    if offset[0] not in "+-":
        return local.replace(tzinfo=timezone.utc)
    digits = offset[1:].replace(":", "")
    ahead = timedelta(hours=int(digits[:-2]), minutes=int(digits[-2:]))
    return (local + ahead if offset[0] == "-" else local - ahead).replace(tzinfo=timezone.utc)


def date_format(text: str) -> DateFormat:
    """Return the format of ``--date-format``. Raises InputError."""
    parts = tuple(match.group(0) for match in _TOKENS.finditer(text))
    letters = [part[0] for part in parts if part in _READERS]
    unknown = [part for part in parts if part[0].isalpha() and part not in _READERS and part != "T"]
    if unknown:
        raise _fault(text, f"has {quote(unknown[0])}, which stands for nothing")
    if any(letters.count(letter) > 1 for letter in letters):
        raise _fault(text, "says the same twice")
    if not all(letter in letters for letter in _NEEDED):
        raise _fault(text, "needs yyyy, M and d")
    if ("h" in letters) != ("t" in letters) or {"h", "H"} <= set(letters):
        raise _fault(text, "needs h with tt, or H alone")
    return DateFormat(text, parts)


def _fault(text: str, why: str) -> InputError:
    hint = "the letters are yyyy yy M MMM d H h m s f tt zzz, as in dd.MM.yyyy HH:mm:ss and M/d/yyyy h:mm:ss tt"
    return InputError(f"--date-format {quote(text)} {why}", hint)
