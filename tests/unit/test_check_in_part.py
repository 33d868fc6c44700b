"""More exports never change a verdict of check. If they could, there is no verdict and the gap is named."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.exported import database, endpoint, route, waiting, whole_shop
from tests.exported_estates import ADDRESSES, FULL, SCRIPT, Exported, Place, write_estates

if TYPE_CHECKING:
    from routing.cases.message_cases import MessageResult
    from routing.views.check.checking import Check

ESTATES = int(os.environ.get("SBROUTE_RANDOM_EXPORTS", "25"))
SEED = int(os.environ.get("SBROUTE_RANDOM_SEED", "20260301"))
END = (
    *("outcome", "reason", "matching_step", "route_name", "address", "mirror_address"),
    *("destination_database", "broker_instance", "rerouted_from"),
)
# What is no fault of the exports: the endpoint is gone, or sys.databases does not list the sender.
OF_THE_ESTATE = {"ENDPOINT_OF_DIALOG", "NOT_LISTED"}
Told = tuple[int, str, int]


def end_of(result: MessageResult) -> tuple[object, ...] | None:
    return None if result.case.verdict is None else tuple(getattr(result.case.verdict, name) for name in END)


@pytest.fixture(scope="module")
def instances() -> dict[str, Exported]:
    return {}


@pytest.fixture(scope="module")
def done(instances: dict[str, Exported], tmp_path_factory: pytest.TempPathFactory) -> Check:
    from routing.views.check.checking import check

    folder = tmp_path_factory.mktemp("exports")
    written = write_estates(random.Random(SEED), folder, range(ESTATES), less=4, scripted=ESTATES)
    instances.update({each.name: each for each in written})
    return check([str(folder)])


def key_of(result: MessageResult, instance: Exported) -> Told:
    return instance.estate, result.handle, result.row["message_sequence_number"]


def by_variant(
    done: Check, instances: dict[str, Exported]
) -> tuple[dict[Told, MessageResult], list[tuple[Exported, MessageResult]]]:
    """The results of the whole estates, and those of estates in part."""
    whole, in_part = {}, []
    for result in done.results:
        instance = instances[result.row["instance_name"]]
        if instance.variant == FULL:
            whole[key_of(result, instance)] = result
        else:
            in_part.append((instance, result))
    return whole, in_part


def test_a_verdict_stays_the_same_with_more_exports(done: Check, instances: dict[str, Exported]) -> None:
    whole, in_part = by_variant(done, instances)
    told = [(instance, result) for instance, result in in_part if result.case.verdict is not None]
    differing = [
        (instance.name, sorted(map(str, instance.left_out)), result.row["message_id"], end_of(result))
        for instance, result in told
        if end_of(result) != end_of(whole[key_of(result, instance)])
    ]
    assert differing == []
    # It is no test where nothing is decided.
    for is_script in (True, False):
        of_kind = [
            result.case.verdict for instance, result in in_part if (instance.variant == SCRIPT) is is_script
        ]
        assert sum(verdict is not None for verdict in of_kind) > len(of_kind) / 4


def test_complete_exports_leave_no_relevant_gap(done: Check, instances: dict[str, Exported]) -> None:
    whole, _ = by_variant(done, instances)
    assert {gap.missing.name for result in whole.values() for gap in result.case.gaps} == OF_THE_ESTATE
    assert sum(result.case.verdict is not None for result in whole.values()) > 0.8 * len(whole)


def was_left_out(instance: Exported, view: str, database: str | None) -> bool:
    places: set[Place] = {(view, database)}
    if view == "service_broker_endpoints":
        places.add(ADDRESSES)
    return bool(places & instance.left_out)


def test_needed_exports_are_the_omitted_ones(done: Check, instances: dict[str, Exported]) -> None:
    _, in_part = by_variant(done, instances)
    seen: Counter[str] = Counter()
    for instance, result in in_part:
        assert (result.case.verdict is None) == bool(result.case.gaps)
        for gap in result.case.gaps:
            seen[gap.missing.name] += 1
            view = gap.missing.view.removeprefix("sys.")
            is_of_estate = gap.missing.name in OF_THE_ESTATE
            assert gap.instance == instance.name
            assert is_of_estate or was_left_out(instance, view, gap.database), (instance, gap)
    expected = {
        "ROUTES",
        "ALL_ROUTES",
        "SERVICES",
        "ENDPOINTS_OF_DIALOGS",
        "DATABASES",
        "ADDRESSES",
        *OF_THE_ESTATE,
    }
    assert set(seen) >= expected


def test_every_missing_export_is_listed_once(done: Check, instances: dict[str, Exported]) -> None:
    """The list of gaps names every missing export behind an undecided message once."""
    listed = done.gaps
    assert len(set(listed)) == len(listed)
    needed = {gap for result in done.results for gap in result.case.gaps if gap.missing.name not in OF_THE_ESTATE}
    # An endpoint of which nothing is known is one line of the list, not two.
    whole = {(gap.instance, gap.database, gap.missing.view) for gap in listed}
    assert {(gap.instance, gap.database, gap.missing.view) for gap in needed} <= whole


def test_every_row_of_the_queues_has_a_result(done: Check) -> None:
    read, rejected = done.evidence.log.rows_read, done.evidence.log.rows_rejected
    assert len(done.results) == read["transmission_queue"] - rejected["transmission_queue"]
    assert rejected["transmission_queue"] > 0


def decided(folder: Path, **views: Any) -> tuple[str, str | None, str | None] | list[tuple[str | None, str]]:
    """Return outcome, reason and destination of the one message of Orders, or its missing exports."""
    from routing.views.check.checking import check

    done = check([str(whole_shop(folder, [waiting(1, "//s")], **views))])
    [result] = [each for each in done.results if each.row["database_name"] == "Orders"]
    if result.case.verdict is None:
        return [(gap.database, gap.missing.name) for gap in result.case.gaps]
    return (
        str(result.case.verdict.outcome),
        str(result.case.verdict.reason),
        result.case.verdict.destination_database,
    )


HELD = [{"name": "//s"}]
BOUND = [endpoint(1, far_broker_instance="0e0e0e0e-0000-4000-8000-000000000000")]
# The services of three databases of which Beta or nobody is known to hold the service (None: not exported), the
# dialogs, the routes of Orders, and what becomes of the message.
UNREAD: list[tuple[dict[str, Any], Any, Any, Any]] = [
    ({"Beta": HELD, "Alpha": [], "Orders": []}, None, [route("R")], ("DELIVERED", "LOCAL_SERVICE", "Beta")),
    ({"Beta": HELD, "Alpha": HELD, "Orders": []}, None, [route("R")], ("DELIVERED", "LOCAL_SERVICE", "Alpha")),
    # The first by name is taken, and the sender before all others.
    ({"Beta": HELD, "Orders": []}, None, [route("R")], [("Alpha", "SERVICES")]),
    ({"Beta": HELD, "Alpha": []}, None, [route("R")], [("Orders", "SERVICES")]),
    # One that comes later changes nothing, nor does one of another id.
    ({"Alpha": HELD, "Orders": []}, None, [route("R")], ("DELIVERED", "LOCAL_SERVICE", "Alpha")),
    ({"Alpha": HELD, "Beta": []}, BOUND, [route("R")], ("DELAYED", "BROKER_INSTANCE_NOT_FOUND", None)),
    # Without a route, any holder implies one for a message that is bound (step 6), whatever its id.
    ({"Alpha": [], "Beta": [], "Orders": []}, BOUND, [], ("DELAYED", "NO_ROUTE", None)),
    ({"Alpha": HELD, "Beta": [], "Orders": []}, BOUND, [], ("DELAYED", "BROKER_INSTANCE_NOT_FOUND", None)),
    ({"Beta": [], "Orders": []}, BOUND, [], [("Alpha", "SERVICES")]),
    ({"Beta": [], "Orders": []}, None, [], ("DELAYED", "NO_ROUTE", None)),
    # A mirror comes before all that is local.
    (
        {"Orders": []},
        None,
        [route("R"), route("M", "//s", "TCP://a:1", mirror_address="TCP://b:1", broker_instance="x")],
        ("SENT", "MIRROR_ADDRESS", None),
    ),
]


@pytest.mark.parametrize(("services", "dialogs", "routes", "expected"), UNREAD)
def test_unread_databases_may_hold_the_service(
    tmp_path: Path, services: Any, dialogs: Any, routes: Any, expected: Any
) -> None:
    ids = {"Alpha": "0a0a0a0a", "Beta": "0b0b0b0b", "Orders": "0d0d0d0d", "msdb": "d4d4d4d4"}
    outcome = decided(
        tmp_path,
        databases=[database(name, broker) for name, broker in ids.items()],
        services=services,
        routes={"Orders": routes, "msdb": []},
        **({} if dialogs is None else {"dialogs": dialogs}),
    )
    assert outcome == expected


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"machine_name": "SHOP", "port": 4022}, ("DELAYED", "NO_ROUTE", None)),
        # As the view itself has it: without a name and a port.
        ({}, [(None, "NAMES")]),
        # The queries export the names of an instance without an endpoint, which has no address.
        (
            {"endpoint_id": None, "is_message_forwarding_enabled": None, "machine_name": "SHOP"},
            ("SENT", "NETWORK_ADDRESS", None),
        ),
    ],
)
def test_an_endpoint_without_a_name_has_an_address(tmp_path: Path, columns: Any, expected: Any) -> None:
    empty = {"machine_name": None, "full_name": None, "listener_names": None, "port": None}
    endpoint_row = {"endpoint_id": 1, "is_message_forwarding_enabled": 0, **empty, **columns}
    routes = {"Orders": [route("R", "//s", "TCP://SHOP:4022")], "msdb": []}
    assert decided(tmp_path, service_broker_endpoints=[endpoint_row], routes=routes) == expected


ASK = route("Ask", "SQL/ServiceBroker/BrokerConfiguration")
HOME = [route("Home", "//s", "TCP://SHOP:4022")]


@pytest.mark.parametrize(
    ("left_out", "service", "expected"),
    [
        (set(), "//s", ("DELAYED", "NO_ROUTE", None)),
        (set(), "//t", ("DELAYED", "ROUTE_REQUESTED", None)),
        # Beta's message may have asked msdb for the route first.
        ({"routes"}, "//s", [("Beta", "ROUTES")]),
        ({"conversation_endpoints"}, "//s", [("Beta", "ENDPOINTS_OF_DIALOGS")]),
        # It has not where it is for another service.
        ({"routes", "conversation_endpoints"}, "//t", ("DELAYED", "ROUTE_REQUESTED", None)),
    ],
)
def test_earlier_messages_may_have_requested_the_route(
    tmp_path: Path, left_out: set[str], service: str, expected: Any
) -> None:
    """Messages of Beta and Orders come back to msdb, where the first one by id asks for a route."""
    first = {**waiting(0, service), "enqueue_time": "2026-01-05T12:30:00"}
    views: dict[str, dict[str, Any]] = {
        "routes": {"Orders": HOME, "Beta": HOME, "msdb": [ASK]},
        "services": {"Orders": [], "Beta": []},
        "conversation_endpoints": {"Orders": [endpoint(1)], "Beta": [endpoint(0)]},
        "transmission_queue": {"Orders": [waiting(1, "//s")], "Beta": [first]},
    }
    for view in left_out:
        del views[view]["Beta"]
    databases = [database("msdb", "d4d4d4d4", 4), database("Orders", "0d0d0d0d"), database("Beta", "0b0b0b0b")]
    assert decided(tmp_path, databases=databases, **views) == expected
