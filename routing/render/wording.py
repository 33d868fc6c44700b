"""Word numbers, times, durations and text from the data: no other module does."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

from routing.document import Cell, Tone, TonedText, Words
from routing.terms import NOT_KNOWN, REJECTED, Ending, Outcome, PathEnd

_TONES: dict[str, Tone] = {
    str(Outcome.DELIVERED): Tone.GOOD,
    str(Outcome.SENT): Tone.GOOD,
    str(Outcome.FORWARDED): Tone.GOOD,
    str(Outcome.DELAYED): Tone.WAITING,
    str(Outcome.DROPPED): Tone.BAD,
    REJECTED: Tone.BAD,
    NOT_KNOWN: Tone.WAITING,
    str(Ending.LOOP): Tone.BAD,
    str(Ending.LEFT_ESTATE): Tone.WAITING,
    str(Ending.TOO_MANY_WAYS): Tone.WAITING,
    str(PathEnd.NO_RETURN_PATH): Tone.WAITING,
}
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
# From an hour on durations are in whole minutes, from a day on in whole hours.
_ROUNDED = ((3_600, 60), (86_400, 3_600))


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: "1 message", "2,000 messages". Give ``plural`` for irregular nouns."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def count_files(read: int, skipped: int, refused: int, noun: str = "row") -> str:
    """Return the last line of a command: how many files it read and skipped, and what it refused in them."""
    return f"{count(read, 'file')} read, {skipped:,} skipped, {count(refused, noun)} refused"


def printable(text: str) -> str:
    """Return a text with everything replaced that could move a cursor, colour or hide on a terminal."""
    if text.isprintable():
        return text
    return text.translate({ord(c): "\ufffd" for c in set(text) if not c.isprintable()})


def printable_lines(text: str) -> str:
    """Return a text as `printable` does, with its line breaks."""
    return "\n".join(printable(line) for line in text.split("\n"))


def format_time(at: datetime) -> str:
    """Return a time in ISO 8601, UTC, as every command prints it: 2026-01-05T09:12:03Z.

    A fraction of a second is printed if there is one. ``at`` without a zone is UTC.
    """
    utc = at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at.astimezone(timezone.utc)
    return utc.isoformat().removesuffix("+00:00") + "Z"


def format_duration(length: timedelta) -> str:
    """Return a duration in at most two units: "8 h 48 min", "3 d", "0 s". Negative ones begin with "-"."""
    seconds = round(abs(length).total_seconds())
    sign = "-" if length < timedelta() and seconds else ""
    for least, unit_size in _ROUNDED:
        if seconds >= least:
            seconds = round(seconds / unit_size) * unit_size
    parts = []
    for unit, size in _UNITS:
        number, seconds = divmod(seconds, size)
        parts.append((number, unit))
    shown = [part for part in parts if part[0]] or parts[-1:]
    return sign + " ".join(f"{number:,} {unit}" for number, unit in shown)


def format_value(value: Cell) -> str:
    """Return a table's value as text: numbers with separators, times and durations as everywhere, None as "-"."""
    if value is None:
        return "-"
    if isinstance(value, TonedText):
        return printable(value.text)
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, bool):
        return str(value)
    return printable(f"{value:,}" if isinstance(value, (int, float)) else value)


def find_tone(value: Cell) -> Tone | None:
    """Return the tone of a value in a table: its own, or that of its outcome. Other values have None."""
    if isinstance(value, TonedText):
        return value.tone
    return _TONES.get(value) if isinstance(value, str) else None


def mark_outcome(word: str) -> TonedText | str:
    """Return an outcome or ending with its tone. Other words stay unchanged."""
    tone = find_tone(word)
    return word if tone is None else TonedText(word, tone)


def plain_words(words: Words) -> str:
    """Return the words of a sentence as one text without tones."""
    parts = [words] if isinstance(words, (str, TonedText)) else words
    return "".join(part.text if isinstance(part, TonedText) else part for part in parts)


# The values of a result as JSON: one form of a time in every command.


def write_json(value: object) -> str:
    """Return a value as JSON on one line, with times in the form of `format_time`. Raises TypeError."""
    return json.dumps(value, default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return format_time(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
