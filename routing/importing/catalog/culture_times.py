"""Read times in a culture's own form: that of ``--date-format``, else the only form that fits a whole file.

``03/04/2026`` does not say whether the day or the month comes first; all times of a file together often do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from routing.errors import InputError, quote

# ``--date-format``: times in a culture's own form, as PowerShell and Excel write them.
# The letters are .NET's, as in ``dd.MM.yyyy HH:mm:ss``. T-SQL's FORMAT uses them too.


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


def hour_of(hour: int, am_or_pm: str | None) -> int:
    """Return the hour of the day. ``am_or_pm`` is AM or PM for a clock of twelve hours."""
    if am_or_pm is None:
        return hour
    if not 1 <= hour <= _NOON:
        raise ValueError("no hour of twelve")
    return hour % _NOON + (_NOON if am_or_pm.lower().startswith(AFTERNOON) else 0)


def read_as_utc(local: datetime, offset: str) -> datetime:
    """Convert a local time with an offset such as ``+02:00`` to UTC. Letters mean no offset."""
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
        raise _fault(text, f"has {quote(unknown[0])}, which has no meaning")
    if any(letters.count(letter) > 1 for letter in letters):
        raise _fault(text, "has the same part twice")
    if not all(letter in letters for letter in _NEEDED):
        raise _fault(text, "needs yyyy, M and d")
    if ("h" in letters) != ("t" in letters) or {"h", "H"} <= set(letters):
        raise _fault(text, "needs h with tt, or only H")
    return DateFormat(text, parts)


def _fault(text: str, why: str) -> InputError:
    hint = "the letters are yyyy yy M MMM d H h m s f tt zzz, as in dd.MM.yyyy HH:mm:ss and M/d/yyyy h:mm:ss tt"
    return InputError(f"--date-format {quote(text)} {why}", hint)


_B = f"[{BLANKS}]"
_MONTH = "[A-Za-z]{3,9}"
_OFFSET = r"[zZ]|UTC|GMT|[+-]\d{1,2}:?\d{2}"
# Bulgarian writes its own letter after the year.
_NUMBERS = rf"(?P<a>\d{{1,4}})(?P<by>[./-]){_B}?(?P<b>\d{{1,2}})(?P=by){_B}?(?P<c>\d{{1,4}})\.?(?:{_B}?\u0433\.)?"
_DAY_FIRST = rf"(?P<d1>\d{{1,2}})(?P<by1>[./-]|{_B}+|\.{_B}+)(?P<m1>{_MONTH})\.?(?P=by1)(?P<y1>\d{{4}}|\d\d)"
_MONTH_FIRST = rf"(?P<m2>{_MONTH})\.?{_B}+(?P<d2>\d{{1,2}})(?P<comma>,?){_B}+(?P<y2>\d{{4}})"
_CLOCK = (
    rf"(?:(?P<before>{HALF_OF_DAY}){_B}*)?(?P<hour>\d{{1,2}})(?P<colon>[:.])(?P<minute>\d{{2}})"
    rf"(?:(?P=colon)(?P<second>\d{{2}})(?:[.,:](?P<fraction>\d{{1,9}}))?)?"
    rf"(?:{_B}*(?P<after>{HALF_OF_DAY}))?(?:{_B}*(?:Uhr|h)\b)?"
)
_TIME = re.compile(
    rf"(?:[^\W\d]+\.?,?{_B}+)?(?:{_NUMBERS}|{_DAY_FIRST}|{_MONTH_FIRST})"
    rf"(?:(?P<gap>T|,?{_B}+){_CLOCK})?(?:{_B}*(?P<offset>{_OFFSET}))?",
    re.IGNORECASE,
)
_LONG_YEAR = 4
_ORDERS = ("dMy", "Mdy", "yMd")


@dataclass(frozen=True)
class CultureForm:
    """The order of day, month and year in the times of a file; ``text`` is the form for ``--date-format``."""

    order: str
    text: str

    def read(self, text: str) -> datetime | None:
        """Return a time, without zone where it says none; None where the text has another form.

        Raises ValueError where it has this form and is no time.
        """
        match = _TIME.fullmatch(text)
        if match is None or self.order not in _orders_of(match):
            return None
        try:
            return _read(match, self.order)
        except (ValueError, OverflowError):
            raise ValueError(f"{quote(text)} is not a time of the form {self.text}") from None


def find_culture_form(cells: Collection[str], file: str) -> CultureForm | None:
    """Find the only form that fits all times of a file; None where no form does.

    Raises InputError where several forms fit and read different times.
    """
    texts = sorted({cell.strip() for cell in cells})
    matches = [match for match in map(_TIME.fullmatch, texts) if match is not None]
    if not matches or len(matches) < len(texts):
        return None
    orders = [order for order in _ORDERS if all(order in _orders_of(match) for match in matches)]
    fitting: dict[tuple[datetime, ...], CultureForm] = {}
    for order in orders:
        form = CultureForm(order, _describe(matches, order))
        times = _read_all(form, texts)
        if times is not None:
            fitting.setdefault(times, form)
    if len(fitting) > 1:
        shown = " or ".join(f"--date-format {quote(form.text)}" for form in fitting.values())
        problem = f"which part of the time {quote(texts[0])} is the day cannot be told from its file"
        raise InputError(f"{quote(file)}: {problem}", f"give {shown}")
    return next(iter(fitting.values()), None)


def _read_all(form: CultureForm, texts: Iterable[str]) -> tuple[datetime, ...] | None:
    try:
        times = [form.read(text) for text in texts]
    except ValueError:
        return None
    return tuple(time for time in times if time is not None)


def _orders_of(match: re.Match[str]) -> tuple[str, ...]:
    """Return the orders that a date may have by its form: in a date with points no month comes first."""
    if match["a"] is None:
        return ("dMy",) if match["d1"] else ("Mdy",)
    first, last = len(match["a"]), len(match["c"])
    if first == _LONG_YEAR:
        return ("yMd",) if last <= 2 else ()
    if first > 2 or last not in (2, _LONG_YEAR):
        return ()
    orders = ("dMy",) if match["by"] == "." else ("dMy", "Mdy")
    return orders if last == _LONG_YEAR else (*orders, "yMd")


def _read(match: re.Match[str], order: str) -> datetime:
    if match["a"] is not None:
        parts = dict(zip(order, (match["a"], match["b"], match["c"]), strict=True))
        day, month, year = int(parts["d"]), int(parts["M"]), parts["y"]
    else:
        name = match["m1"] or match["m2"]
        month = next((number for number, whole in enumerate(MONTHS, start=1) if whole.startswith(name.lower())), 0)
        day, year = int(match["d1"] or match["d2"]), match["y1"] or match["y2"]
    hour = hour_of(int(match["hour"] or 0), match["before"] or match["after"])
    clock = (hour, int(match["minute"] or 0), int(match["second"] or 0), read_micros(match["fraction"]))
    local = datetime(read_year(year), month, day, *clock)
    return local if match["offset"] is None else read_as_utc(local, match["offset"])


def _describe(matches: Sequence[re.Match[str]], order: str) -> str:
    """Return the form as ``--date-format`` takes it: that of the text with the most parts."""
    longest = max(matches, key=lambda match: sum(part is not None for part in match.groups()))
    clock = ""
    if longest["hour"] is not None:
        am_or_pm = longest["before"] or longest["after"]
        hour = _letters("H" if am_or_pm is None else "h", [match["hour"] for match in matches])
        clock = f"{longest['gap'].strip(BLANKS) or ' '}{hour}{longest['colon']}mm"
        clock += "" if longest["second"] is None else f"{longest['colon']}ss"
        clock += "" if longest["fraction"] is None else f".{'f' * min(len(longest['fraction']), 7)}"
        clock += "" if longest["after"] is None else " tt"
        if longest["before"] is not None:
            clock = f" tt{clock}"
    zone = "" if longest["offset"] is None else " zzz"
    return f"{_describe_date(matches, longest, order)}{clock}{zone}"


def _describe_date(matches: Sequence[re.Match[str]], longest: re.Match[str], order: str) -> str:
    if longest["a"] is not None:
        texts = {letter: [match[group] for match in matches] for letter, group in zip(order, "abc", strict=True)}
        return longest["by"].join(_letters(letter, texts[letter]) for letter in order)
    day = _letters("d", [match["d1"] or match["d2"] for match in matches])
    year = _letters("y", [match["y1"] or match["y2"] for match in matches])
    month = "MMM" if len(longest["m1"] or longest["m2"]) == len("Jan") else "MMMM"
    if longest["d1"] is None:
        return f"{month} {day}{longest['comma']} {year}"
    return longest["by1"].join((day, month, year))


def _letters(letter: str, texts: Sequence[str | None]) -> str:
    """Return a letter as often as the shortest number has digits."""
    return letter * min(len(text) for text in texts if text)
