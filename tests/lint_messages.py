"""An estate and rows of ``resolved_routes`` for the findings that need messages."""

from __future__ import annotations

from typing import Any, cast

from routing.demo.drafting import EstateDraft
from tests.lint_drafts import NOW, Tables

_HUB = "messages/hub"


def messages_estate() -> Tables:
    """Six routes, one of them in two versions."""
    draft = EstateDraft()
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


def risks_estate() -> Tables:
    """Stock is at `two` and at `three`: Sales has a route to each, App one to a gate that has them.

    Of the dialogs of Web those alone may end at both that the other gate balances to `three`.
    """
    draft = EstateDraft()
    for name in ("one", "two", "three", "gate", "other"):
        draft.instance(f"risks/{name}", f"tcp://risks-{name}:4022", forwarding=name in ("gate", "other"))
    for database in ("App", "Sales", "Web"):
        draft.database("risks/one", database, f"risks-{database}")
    for name in ("two", "three"):
        draft.database(f"risks/{name}", "Stock", f"risks-stock-{name}", "risks:Stock")
        draft.route(f"risks/{name}", "msdb", "Here", "LOCAL", "risks:Stock")
        draft.route("risks/one", "Sales", f"To-{name}", f"tcp://risks-{name}:4022", "risks:Stock")
        draft.route("risks/gate", "msdb", f"On-{name}", f"tcp://risks-{name}:4022", "risks:Stock")
        to = f"tcp://risks-{name}:4022"
        draft.route("risks/other", "msdb", f"Pick-{name}", to, "risks:Stock", f"risks-stock-{name}")
    draft.route("risks/one", "App", "By-gate", "tcp://risks-gate:4022", "risks:Stock")
    draft.route("risks/one", "Web", "By-other", "tcp://risks-other:4022", "risks:Stock")
    draft.route("risks/one", "Web", "To-two", "tcp://risks-two:4022", "risks:Stock")
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
            "the set of broker instances changed before the acknowledgement:"
            " dialogs 1, such as 00000003-0000-4000-8000-000000000000"
        ),
    ),
]


def _sent(number: int, database: str | None, dialog: int, **columns: Any) -> dict[str, Any]:
    fixed = {"instance_name": "risks/one", "database_name": database, "matching_step": 2, "route_name": "R"}
    return _resolved(number, "risks:Stock", dialog, **{**fixed, **columns})


RESOLVED += [
    # Two open dialogs of Sales, the second one with two messages.
    _sent(11, "Sales", 7),
    _sent(12, "Sales", 6),
    _sent(13, "Sales", 6, matching_step=5),
    # Acknowledged; of a target; asked for a route; for another service; not begun where they were seen.
    _sent(14, "Sales", 1, broker_instance="risks-stock-two"),
    _sent(15, "Sales", 2, is_initiator=False),
    _sent(16, "Sales", 3, matching_step=4),
    _sent(17, "Sales", 4, to_service_name="messages:Far"),
    _sent(18, None, 5, instance_name="risks/gate"),
    # What neither an instance nor a database of the tables has sent.
    _sent(19, "Sales", 5, instance_name="risks/gone"),
    _sent(20, "Gone", 5),
    _sent(21, "App", 8),
    _sent(22, "Web", 9),
]
_BOTH = (
    "open dialogs to 'risks:Stock' end at risks/three.Stock (risks-stock-three), risks/two.Stock (risks-stock-two)"
)
RISKS = [
    (
        "risks/gate",
        "msdb",
        "On-three",
        f"{_BOTH}, by On-three, On-two; dialogs at risk: 1, such as 00000008-0000-4000-8000-000000000000",
    ),
    (
        "risks/one",
        "Sales",
        "To-three",
        f"{_BOTH}, by To-three, To-two; dialogs at risk: 2, such as 00000006-0000-4000-8000-000000000000",
    ),
    (
        "risks/one",
        "Web",
        "By-other",
        f"{_BOTH}, by By-other, To-two; dialogs at risk: up to 1, depending on the picks of forwarders",
    ),
]
