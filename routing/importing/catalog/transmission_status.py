"""sys.transmission_queue.transmission_status → SQL Server's error number, and whether routing delays it.

What the numbers are about is said in `routing.rules.observed`.
"""

from __future__ import annotations

import re

from routing.importing.catalog.status_texts import OTHER_TEXTS, TEXTS
from routing.rules.observed import REFUSALS, NumberTopic, topic_of
from routing.terms import Outcome

_PIECES = [
    (number, len(text), tuple(piece.strip() for piece in text.split("…")))
    for number, text in (*TEXTS.items(), *OTHER_TEXTS)
]
_STANDING_ALONE = re.compile(r"(?<![\w:.\-('\"])\d{4,5}(?![\w\-(]|\.\d)")
_AFTER_ERROR = re.compile(r"\b(?:error|msg)\b(?: number)?[: ]+(\d{3,5})\b(?!\()", re.IGNORECASE)


def error_number(status: str) -> int | None:
    """Return the number that the text names, else the one of the text itself; None where neither is known.

    A text may hold another one, as the cause that it tells: the one that begins first counts, of two that begin
    together the longer.
    """
    for match in _STANDING_ALONE.finditer(status):
        if topic_of(int(match.group(0))) is not None:
            return int(match.group(0))
    words = " ".join(status.lower().split())
    begins = [(_find(pieces, words), -longest, number) for number, longest, pieces in _PIECES]
    matches = [(start, length, number) for start, length, number in begins if start is not None]
    if matches:
        return min(matches)[-1]
    named = _AFTER_ERROR.search(status)
    return int(named.group(1)) if named else None


def _find(pieces: tuple[str, ...], words: str) -> int | None:
    """Return where the first of the pieces begins; None unless all follow, one after the other."""
    first = end = words.find(pieces[0])
    for piece in pieces:
        begin = words.find(piece, end)
        if begin < 0:
            return None
        end = begin + len(piece)
    return first


def outcome(number: int | None) -> str | None:
    """Return DELAYED where routing itself makes the message wait; None where its outcome cannot be known."""
    waits = topic_of(number) is NumberTopic.ROUTING and number not in REFUSALS
    return str(Outcome.DELAYED) if waits else None
