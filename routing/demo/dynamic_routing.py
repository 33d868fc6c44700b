"""The estate of the dynamic-routing document: routes that are asked for."""

from __future__ import annotations

from datetime import timedelta

from routing.demo.drafting import EstateDraft
from routing.demo.routing_examples import TEN_O_CLOCK, conversation_id
from routing.terms import BROKER_CONFIGURATION_SERVICE

_ELSEWHERE = "https://Adventure-Works.com/Elsewhere"


def dynamic_routing(estate: str) -> EstateDraft:
    """Return a request, the route that answers it, and the end of that route's lifetime.

    The first request stands on record with its end; resolving opens the same one again.
    """
    draft = EstateDraft()
    host, sales = f"{estate}/host1", "Sales"
    draft.instance(host, "tcp://host1:4022")
    draft.database(host, sales, "33333333-3333-4333-8333-333333333333")
    draft.database(host, "msdb", "44444444-4444-4444-8444-444444444444")
    draft.local(host, sales)
    draft.route(host, sales, "ConfigurationRoute", "tcp://config:4022", BROKER_CONFIGURATION_SERVICE)
    answered = TEN_O_CLOCK + timedelta(seconds=5)
    hour = TEN_O_CLOCK + timedelta(hours=1)
    draft.request(host, sales, _ELSEWHERE, TEN_O_CLOCK, "first-asks", answered)
    draft.route(
        host,
        sales,
        "Created",
        "tcp://elsewhere:4022",
        _ELSEWHERE,
        valid_from=answered,
        lifetime=hour,
    )
    for message_id, at, service in (
        ("first-asks", TEN_O_CLOCK, _ELSEWHERE),
        ("second-waits", TEN_O_CLOCK + timedelta(seconds=1), _ELSEWHERE),
        ("other-service-asks", TEN_O_CLOCK + timedelta(seconds=2), f"{_ELSEWHERE}?a=1&b=2"),
        ("route-created", TEN_O_CLOCK + timedelta(minutes=1), _ELSEWHERE),
        ("lifetime-over-asks", hour, _ELSEWHERE),
    ):
        draft.message(message_id, conversation_id(host, message_id), at, host, sales, service)
    return draft
