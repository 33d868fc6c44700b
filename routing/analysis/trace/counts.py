"""How many messages end how, once all were followed: for people, and as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from routing import show
from routing.runs.paths_written import Written

if TYPE_CHECKING:
    from rich.console import RenderableType


def as_text(done: Written) -> Iterator[RenderableType]:
    """The outcomes, most messages first, and how the counts add up."""
    counts = sorted(done.outcomes.items(), key=lambda item: (-item[1], item[0]))
    yield show.table("Where messages end", ("outcome", "messages"), counts, ("messages",))
    yield ""
    added = f"{done.traced:,} followed + {done.rejected:,} rejected"
    messages = "message" if done.read == 1 else "messages"
    yield f"{done.read:,} {messages} read = {added}; version {done.version} of output.message_paths"
    if done.rejected:
        yield "resolve lists the rejected ones, with what is wrong with each"


def as_json(done: Written) -> str:
    """One line: version, read, followed, rejected, outcomes."""
    told = {"version": done.version, "read": done.read, "followed": done.traced, "rejected": done.rejected}
    return json.dumps({**told, "outcomes": dict(done.outcomes)})
