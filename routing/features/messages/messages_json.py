"""Listed messages as one JSON object for programs."""

from __future__ import annotations

from datetime import datetime

from routing.features.messages.message_list import MessageList
from routing.render.json_text import write_json


def write_messages(done: MessageList, now: datetime) -> str:
    """Return one line: now, total, more, counts, groups, held and messages (docs/reference/json.md)."""
    return write_json(
        {
            "now": now,
            "total": done.total,
            "more": done.total - len(done.messages),
            "held": done.held,
            "counts": [dict(row) for row in done.counts],
            "groups": [dict(row) for row in done.groups],
            "messages": [dict(row) for row in done.messages],
        }
    )
