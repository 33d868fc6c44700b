"""``--date-format``: times in a culture's own form, as PowerShell and Excel write them.

The letters are those of .NET, as in ``dd.MM.yyyy HH:mm:ss``: T-SQL's FORMAT has them too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from routing.errors import InputError, quote

_TOKENS = re.compile(r"([A-Za-z])\1*|'[^']*'|.", re.DOTALL)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_READERS = {
    "yyyy": re.compile(r"\d{4}"),
    "MMM": re.compile(r"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec", re.IGNORECASE),
    **dict.fromkeys(("M", "MM", "d", "dd", "H", "HH", "h", "hh", "m", "mm", "s", "ss"), re.compile(r"\d{1,2}")),
    **dict.fromkeys(("f" * count for count in range(1, 8)), re.compile(r"\d{1,9}")),
    "tt": re.compile(r"am|pm|a\.m\.|p\.m\.", re.IGNORECASE),
}
"""What each letter reads; leading zeros may be there or not."""

_NEEDED = ("y", "M", "d")
_NOON = 12
# PowerShell 7.3 and later write these between a time and AM or PM.
_BLANKS = " \t\u00a0\u202f"


@dataclass(frozen=True)
class DateFormat:
    """A format in parts: letters that are read, and texts between them; a blank is any number of blanks."""

    text: str
    parts: tuple[str, ...]

    def read(self, text: str) -> datetime | None:
        """A time without zone; None where the text has another form.

        Raises ValueError where it has this form and is no time.
        """
        found: dict[str, str] = {}
        position = 0
        for part in self.parts:
            if part in _READERS:
                match = _READERS[part].match(text, position)
                if match is None:
                    return None
                found[part[0]] = match.group(0)
                position = match.end()
            elif part.strip(_BLANKS):
                literal = part.strip("'")
                if not text.startswith(literal, position):
                    return None
                position += len(literal)
            else:
                while position < len(text) and text[position] in _BLANKS:
                    position += 1
        return self._time(found, text) if position == len(text) else None

    def _time(self, found: dict[str, str], text: str) -> datetime:
        month = found["M"].lower()
        minute, second = int(found.get("m", "0")), int(found.get("s", "0"))
        # The tools write seven digits of a second, the tables hold six.
        micros = int(found.get("f", "0").ljust(6, "0")[:6])
        try:
            number = _MONTHS.index(month) + 1 if month in _MONTHS else int(month)
            return datetime(int(found["y"]), number, int(found["d"]), _hour(found), minute, second, micros)
        except ValueError:
            raise ValueError(f"{quote(text)} is not a time of the form {self.text}") from None


def _hour(found: dict[str, str]) -> int:
    if "t" not in found:
        return int(found.get("H", "0"))
    hour = int(found["h"])
    if not 1 <= hour <= _NOON:
        raise ValueError("no hour of twelve")
    return hour % _NOON + (_NOON if found["t"].lower().startswith("p") else 0)


def date_format(text: str) -> DateFormat:
    """The format of ``--date-format``. Raises InputError."""
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
    hint = "the letters are yyyy M MMM d H h m s f tt, as in dd.MM.yyyy HH:mm:ss and M/d/yyyy h:mm:ss tt"
    return InputError(f"--date-format {quote(text)} {why}", hint)
