"""A comparison as one JSON object for programs."""

from __future__ import annotations

from routing.features.diff.diffing import Diff
from routing.render.json_text import write_json


def write_diff(done: Diff) -> str:
    """Return one line of JSON; docs/reference/json.md documents its keys."""
    sides_by_name = {"before": done.before, "after": done.after}
    return write_json(
        {
            **{name: {"what": one_side.label, "at": one_side.moment} for name, one_side in sides_by_name.items()},
            "compared": done.compared,
            "changed": done.changed,
            "worse": done.worse,
            **{name: [dict(row) for row in vars(done)[name]] for name in ("counts", "keys", "routes", "findings")},
            "script": None if done.script is None else done.script.as_json(),
        }
    )
