"""An explanation as one JSON object for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routing.features.explain import path_sentences
from routing.render.json_text import write_json

Row = Mapping[str, Any]


def write_explanation(verdict: Row, steps: Sequence[Row]) -> str:
    """Return one line: verdict (the columns of resolved_routes), error_number, advice, transmission_status, steps.

    The status is its step, null where none is known. Steps have their sentences, and no values that are null.
    """
    scope = [step["database_name"] for step in steps if step["item"] == "SCOPE"]
    shown = [_step(step) for step in steps]
    return write_json(
        {
            "verdict": dict(verdict),
            "error_number": path_sentences.error_number(verdict["reason"], scope[-1] if scope else None),
            "advice": path_sentences.advice(verdict["reason"]),
            "transmission_status": next((step for step in shown if step["item"] == "STATUS"), None),
            "steps": shown,
        }
    )


def _step(step: Row) -> Row:
    values = {name: value for name, value in step.items() if value is not None}
    return {**values, "text": path_sentences.sentence(step)}
