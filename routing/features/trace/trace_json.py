"""A traced message as one JSON object for programs."""

from __future__ import annotations

from routing.features.trace.tracing import TraceResult
from routing.render.json_text import write_json
from routing.tables.times import moment_of


def write_trace(done: TraceResult) -> str:
    """Return one line: the message, and of each path there and back what they end as, with all ways and hops."""
    message = done.message
    return write_json(
        {
            "message": {
                "message_id": message.message_id,
                "conversation_id": message.conversation_id,
                "is_initiator": message.is_initiator,
                "instance_name": message.instance,
                "database_name": message.database,
                "to_service_name": message.service,
                "from_service_name": done.from_service,
                "decided_at": moment_of(message.t),
            },
            "paths": [
                {
                    "outcome": str(path.there.ending),
                    "ways_agree": path.there.ways_agree,
                    "multiple_targets": path.there.has_multiple_targets,
                    "return_outcome": None if path.back_ending is None else str(path.back_ending),
                    "return_ways_agree": None if path.back is None else path.back.ways_agree,
                }
                for path in done.paths
            ],
            "ways": [dict(row) for row in done.ways],
            "hops": [dict(row) for row in done.hops],
        }
    )
