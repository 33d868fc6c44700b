"""An explanation as text for people and as one JSON object for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from routing.analysis.explaining import wording

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_INDENTS = {"MESSAGE": 0, "SCOPE": 0, "OUTCOME": 0}
_DEEP = ("ROUTE", "OTHER_ROUTES", "ID", "OTHER_IDS", "REQUEST", "DATABASE")
# Items that begin a paragraph.
_PARAGRAPHS = ("SCOPE", "OUTCOME")

Row = dict[str, Any]


def rows(frame: DataFrame) -> list[Row]:
    """The rows of a small frame, times in UTC whatever the session's zone is; in the frame's order."""
    times = [field.name for field in frame.schema if isinstance(field.dataType, TimestampType)]
    micros = frame.withColumns({name: F.unix_micros(name) for name in times}) if times else frame
    found = [row.asDict(recursive=True) for row in micros.collect()]
    for row in found:
        for name in times:
            row[name] = None if row[name] is None else _EPOCH + timedelta(microseconds=row[name])
    return found


def as_text(steps: Iterable[Row]) -> str:
    """The path, a sentence a line, and what to do about the outcome."""
    lines: list[str] = []
    scope = None
    for step in steps:
        item = step["item"]
        if item in _PARAGRAPHS:
            lines.append("")
        scope = step["database_name"] if item == "SCOPE" else scope
        sentence = wording.sentence(step)
        if item == "OUTCOME":
            lines += _outcome(sentence, step, scope)
        else:
            lines.append(" " * _INDENTS.get(item, 4 if item in _DEEP else 2) + sentence)
    return "\n".join(lines)


def _outcome(sentence: str, step: Row, scope: str | None) -> list[str]:
    number, advice = wording.error_number(step["reason"], scope), wording.advice(step["reason"])
    numbered = sentence if number is None else f"{sentence} (SQL Server's number: {number})"
    return [numbered] if advice is None else [numbered, advice]


def as_json(verdict: Row, steps: list[Row]) -> str:
    """One line: verdict (the columns of resolved_routes), error_number, advice, and steps with their sentences.

    Values of a step that are null are left out.
    """
    scope = [step["database_name"] for step in steps if step["item"] == "SCOPE"]
    document = {
        "verdict": {name: value for name, value in verdict.items() if name != "question"},
        "error_number": wording.error_number(verdict["reason"], scope[-1] if scope else None),
        "advice": wording.advice(verdict["reason"]),
        "steps": [_step(step) for step in steps],
    }
    return json.dumps(document, default=_plain, ensure_ascii=False)


def _step(step: Mapping[str, Any]) -> Row:
    told = {name: value for name, value in step.items() if value is not None and name != "question"}
    return {**told, "text": wording.sentence(step)}


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return wording.moment(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
