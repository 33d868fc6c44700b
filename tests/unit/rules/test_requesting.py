"""The messages that open a request for a route, and the text of the request: rule book, section 5."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from routing.rules.requesting import (
    ConversationEndpoint,
    InstanceRequests,
    RequestAction,
    RequestScope,
    RouteRequest,
    escaped_attribute,
    missing_route,
)
from routing.terms import MISSING_ROUTE_NAMESPACE

parametrize = pytest.mark.parametrize


# Pending: (requested_at, message_id) before the message's, and ended_at null or t < ended_at.
@parametrize(
    ("request_", "t", "message_id", "is_pending", "is_own"),
    [
        (RouteRequest(5, "m", None), 4, "z", False, False),
        (RouteRequest(5, "m", None), 5, "a", False, False),
        (RouteRequest(5, "m", None), 5, "m", False, True),
        (RouteRequest(5, "m", None), 5, "n", True, False),
        (RouteRequest(5, "m", None), 6, "a", True, False),
        (RouteRequest(5, "m", None), 6, "m", True, False),
        # D8: without an end, however long ago.
        (RouteRequest(5, "m", None), 10**18, "a", True, False),
        (RouteRequest(5, "m", 9), 8, "a", True, False),
        (RouteRequest(5, "m", 9), 9, "a", False, False),
        (RouteRequest(5, "m", 9), 10, "z", False, False),
        (RouteRequest(5, "m", 9), 5, "m", False, True),
        (RouteRequest(5, "m", 5), 5, "n", False, False),
        # By code point.
        (RouteRequest(5, "Z", None), 5, "a", True, False),
        (RouteRequest(5, "\uffff", None), 5, "\U00010000", True, False),
    ],
)
def test_a_request_on_record(
    request_: RouteRequest, t: int, message_id: str, is_pending: bool, is_own: bool
) -> None:
    assert request_.is_pending(t, message_id) is is_pending
    assert request_.is_of(t, message_id) is is_own


# Requests on record; messages in their order, each with whether it opens a request.
@parametrize(
    ("on_record", "messages"),
    [
        ([], []),
        ([], [(5, "a", True), (5, "b", False), (9, "a", False)]),
        # Rows equal in (t, message_id) are decided alike.
        ([], [(5, "a", True), (5, "a", True), (6, "a", False)]),
        ([RouteRequest(4, "x")], [(3, "a", True), (3, "b", False), (4, "w", False), (5, "a", False)]),
        ([RouteRequest(4, "x", 7)], [(5, "a", False), (7, "b", True), (8, "c", False)]),
        # One's own request on record is opened again, and does not count as new.
        ([RouteRequest(5, "a")], [(5, "a", True), (5, "a", True), (6, "b", False)]),
        ([RouteRequest(5, "a", 7)], [(5, "a", True), (6, "b", False), (7, "c", True), (8, "d", False)]),
        # Not where another's is pending: the other one's on record, or one that was just opened.
        ([RouteRequest(4, "x"), RouteRequest(5, "a")], [(5, "a", False)]),
        ([RouteRequest(5, "b", 6)], [(4, "a", True), (5, "b", False)]),
        ([RouteRequest(4, "x", 6), RouteRequest(6, "b", 8)], [(5, "a", False), (6, "b", True), (7, "c", False)]),
    ],
)
def test_messages_that_open_a_request(
    on_record: list[RouteRequest], messages: list[tuple[int, str, bool]]
) -> None:
    scope = RequestScope(tuple(on_record))
    assert [(t, name, _opens(scope, t, name)) for t, name, _ in messages] == messages

    # Once all have come, in any order.
    assert [(t, name, _opens(scope, t, name)) for t, name, _ in reversed(messages)] == messages[::-1]


def _opens(scope: RequestScope, t: int, name: str) -> bool:
    """Whether a message of any dialog opens a request."""
    action = scope.ask(t, name, None)
    assert action.stops is (action is RequestAction.OPENS)
    return action.stops


_A = ConversationEndpoint("aaaaaaaa-0000-4000-8000-aaaaaaaaaaaa", True)


@parametrize(
    ("conversation_id", "is_initiator", "endpoint"),
    [
        (None, None, None),
        (None, True, None),
        (_A.conversation_id, None, None),
        ("", True, None),
        (" ", True, None),
        ("a conversation", True, None),
        (f"{{{_A.conversation_id}}}", True, None),
        (f"{_A.conversation_id} ", True, None),
        (_A.conversation_id, True, _A),
        (_A.conversation_id.upper(), True, _A),
        (_A.conversation_id, False, _A._replace(is_initiator=False)),
    ],
)
def test_owner_of_a_request(
    conversation_id: str | None, is_initiator: bool | None, endpoint: ConversationEndpoint | None
) -> None:
    assert ConversationEndpoint.of_row(conversation_id, is_initiator) == endpoint


# Ends: at once, before it was made, soon, late, never.
_TIMES = st.integers(0, 6)
_ENDPOINTS = st.sampled_from([_A, _A._replace(is_initiator=False)])
_REQUESTS = st.builds(
    RouteRequest, _TIMES, st.sampled_from("abc"), st.none() | st.integers(0, 9), st.none() | _ENDPOINTS
)


@hypothesis.given(st.lists(_REQUESTS, max_size=8), _TIMES, st.sampled_from("abc"), _ENDPOINTS)
def test_a_message_waits_where_any_pending_request_is_its_own(
    record: list[RouteRequest], t: int, name: str, endpoint: ConversationEndpoint
) -> None:
    pending = [request for request in record if request.is_pending(t, name)]
    is_own = any(request.endpoint == endpoint for request in pending)
    expected = RequestAction.WAITS if is_own else RequestAction.GOES_ON if pending else RequestAction.OPENS
    assert RequestScope(tuple(record)).ask(t, name, endpoint) is expected


@hypothesis.given(st.lists(_REQUESTS, max_size=8), _TIMES, st.sampled_from("abc"))
def test_looking_up_requests_equals_checking_each_of_them(record: list[RouteRequest], t: int, name: str) -> None:
    scope = RequestScope(tuple(record))
    assert scope.is_pending_on_record(t, name) == any(request.is_pending(t, name) for request in record)
    assert scope.is_on_record(t, name) == any(request.is_of(t, name) for request in record)


def test_requests_are_separate_by_scope_and_service() -> None:
    requests = InstanceRequests.on_record(
        [("Orders", "S", RouteRequest(5, "a")), ("Orders", "S", RouteRequest(2, "b", 3))]
    )
    assert requests.of("Orders", "S").on_record == (RouteRequest(5, "a"), RouteRequest(2, "b", 3))
    opens = [
        (database, service, _opens(requests.of(database, service), 6, "m"))
        for database, service in (("Orders", "S"), ("Orders", "s"), ("msdb", "S"), ("Orders", "T"))
    ]
    assert opens == [("Orders", "S", False), ("Orders", "s", True), ("msdb", "S", True), ("Orders", "T", True)]
    # It stays known.
    assert not _opens(requests.of("msdb", "S"), 6, "n")
    assert InstanceRequests.on_record([]) == InstanceRequests()


@parametrize(
    ("service", "name"),
    [
        ("", ""),
        ("//east/Billing", "//east/Billing"),
        ("a&b <c> \"d'", "a&amp;b &lt;c&gt; \"d'"),
        ("&amp;", "&amp;amp;"),
        ("\t\n\r ", "\t\n\r "),
        ("\x00\x08\x0b\x0c\x1f", "\ufffd" * 5),
        ("\ufffe\uffff", "\ufffd\ufffd"),
        ("\x7f\ud7ff\ue000\ufffd\U00010000\U0010ffff", "\x7f\ud7ff\ue000\ufffd\U00010000\U0010ffff"),
    ],
)
def test_the_body_of_a_request(service: str, name: str) -> None:
    body = f'<MissingRoute xmlns="urn:x"><SERVICE_NAME>{name}</SERVICE_NAME></MissingRoute>'
    assert missing_route(service, "urn:x") == body


def test_the_namespace_of_a_request() -> None:
    """D7 uses the document's namespace, and a setting changes it."""
    namespace = "https://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/MissingRoute"
    assert namespace == MISSING_ROUTE_NAMESPACE
    assert missing_route("S", 'a&<">') == (
        '<MissingRoute xmlns="a&amp;&lt;&quot;>"><SERVICE_NAME>S</SERVICE_NAME></MissingRoute>'
    )
    assert escaped_attribute("") == ""
