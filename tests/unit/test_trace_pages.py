"""The paths that the pages show are those of the demo's own tables."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from routing.analysis.explain.asked import Stored
from routing.analysis.trace import printing
from routing.analysis.trace.tracing import trace
from routing.demo.build import input_rows
from tests.frames import arrow
from tests.unit.pages import excerpt

SHOWN = [
    ("trace", "d00263-i0", "depot-east", ["docs/tracing.md", "README.md"]),
    ("hazard", "sent", "two-open-routes/ServerA", ["docs/tracing.md"]),
]


@cache
def told(message_id: str, instance: str) -> str:
    """What the command prints."""
    return "\n".join([*printing.as_text(trace(arrow(input_rows()), Stored(message_id, instance))), ""])


@pytest.mark.parametrize(("name", "message_id", "instance", "pages"), SHOWN)
def test_a_page_shows_what_is_printed(name: str, message_id: str, instance: str, pages: list[str]) -> None:
    for page in pages:
        assert excerpt(page, name) == told(message_id, instance), Path(page)
