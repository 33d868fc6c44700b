"""An estate and rows of ``resolved_routes`` for the findings that need messages."""

from __future__ import annotations

from typing import Any, cast

from routing.demo.drafting import Draft
from tests.lint_drafts import NOW, Tables

_HUB = "messages/hub"


def messages_estate() -> Tables:
    """Six routes, one of them in two versions."""
    draft = Draft()
    draft.instance(_HUB, "tcp://messages-hub:4022")
    draft.database(_HUB, "Sales", "messages-sales", "messages:Sales")
    draft.database(_HUB, "msdb", "messages-msdb")
    draft.route(_HUB, "Sales", "First", "tcp://messages-1:4022", "messages:Far", valid_to=NOW)
    draft.route(_HUB, "Sales", "First", "tcp://messages-2:4022", "messages:Far", valid_from=NOW)
    draft.route(_HUB, "Sales", "Second", "tcp://messages-3:4022", "messages:Far")
    draft.route(_HUB, "Sales", "Myself", "tcp://messages-hub:4022", "messages:Sales")
    draft.route(_HUB, "Sales", "Idle", "tcp://messages-4:4022", "messages:Never")
    draft.route(_HUB, "msdb", "Myself", "LOCAL", "messages:Sales")
    draft.route(_HUB, "msdb", "Idle", "LOCAL", "messages:Never")
    return cast("Tables", {key: rows for key, rows in draft.tables.items() if key != "messages"})


def _resolved(number: int, service: str, dialog: int, **columns: Any) -> dict[str, Any]:
    fixed = {
        "message_id": f"m{number}",
        "conversation_id": f"0000000{dialog}-0000-4000-8000-000000000000",
        "is_initiator": True,
        "enqueue_time": "2026-01-05T10:00:00Z",
        "instance_name": _HUB,
        "database_name": "Sales",
        "to_service_name": service,
        "decided_at": "2026-01-05T10:00:00Z",
        "outcome": "SENT",
        "reason": "NETWORK_ADDRESS",
        "run_id": "r",
        "attempt": 1,
    }
    return {**fixed, **columns}


RESOLVED = [
    # Second is an alternative of First; the message to Sales came back to msdb.
    _resolved(
        1,
        "messages:Far",
        1,
        matching_step=2,
        route_name="First",
        alternative_routes=[{"route_name": "Second", "address": "tcp://messages-3:4022", "mirror_address": None}],
    ),
    _resolved(2, "messages:Sales", 2, matching_step=2, route_name="Myself", rerouted_from="Myself"),
    # Dialog 3 was balanced to two ids, dialog 4 to one, dialog 5 is bound from the second message on.
    _resolved(3, "messages:Spread", 3, matching_step=3, broker_instance="a"),
    _resolved(4, "messages:Spread", 3, matching_step=3, broker_instance="b"),
    _resolved(5, "messages:Spread", 4, matching_step=3, broker_instance="a"),
    _resolved(6, "messages:Spread", 4, matching_step=3, broker_instance="a"),
    _resolved(7, "messages:Spread", 5, matching_step=3, broker_instance="a"),
    _resolved(8, "messages:Spread", 5, matching_step=1, broker_instance="b"),
]
MESSAGES = [
    ("SBR028", _HUB, "Sales", "Idle", "no message used it"),
    ("SBR028", _HUB, "msdb", "Idle", "no message used it"),
    (
        "SBR039",
        _HUB,
        "Sales",
        "messages:Spread",
        (
            "the set of broker ids changed before the acknowledgement:"
            " dialogs 1, such as 00000003-0000-4000-8000-000000000000"
        ),
    ),
]
