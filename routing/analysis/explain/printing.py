"""An explanation as text for people and as one JSON object for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from routing.analysis.explain import wording

# Items that stand at the margin, and those that stand below another; all others are between.
_MARGIN = ("MESSAGE", "SCOPE", "REQUEST_PATH", "STATUS")
_DEEP = ("ROUTE", "OTHER_ROUTES", "ID", "OTHER_IDS", "REQUEST", "DATABASE")
# Items that begin a paragraph.
_PARAGRAPHS = ("SCOPE", "REQUEST_PATH", "OUTCOME")

Row = Mapping[str, Any]


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
            indent = 0 if item in _MARGIN else 4 if item in _DEEP else 2
            lines.append(" " * indent + sentence)
    return "\n".join(lines)


def _outcome(sentence: str, step: Row, scope: str | None) -> list[str]:
    number, advice = wording.error_number(step["reason"], scope), wording.advice(step["reason"])
    numbered = sentence if number is None else f"{sentence} (SQL Server's number: {number})"
    return [numbered] if advice is None else [numbered, advice]


def as_json(verdict: Row, steps: Sequence[Row]) -> str:
    """One line: verdict (the columns of resolved_routes), error_number, advice, transmission_status, and steps.

    The status is its step, null where none is told. Steps have their sentences.

    Values of a step that are null are left out.
    """
    scope = [step["database_name"] for step in steps if step["item"] == "SCOPE"]
    told = [_step(step) for step in steps]
    document = {
        "verdict": dict(verdict),
        "error_number": wording.error_number(verdict["reason"], scope[-1] if scope else None),
        "advice": wording.advice(verdict["reason"]),
        "transmission_status": next((step for step in told if step["item"] == "STATUS"), None),
        "steps": told,
    }
    return json.dumps(document, default=_plain)


def _step(step: Mapping[str, Any]) -> Row:
    told = {name: value for name, value in step.items() if value is not None}
    return {**told, "text": wording.sentence(step)}


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return wording.moment(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
