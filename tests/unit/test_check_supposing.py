"""Messages without a verdict: remedies that help for any broker instance of their dialog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from routing.errors import ContractError
from routing.views.check.checking import check
from routing.views.check.grouping import MessageGroup
from tests.check_texts import print_check
from tests.exported import database, endpoint, export, route, waiting

BILLING = "//billing"
LOCAL = route("AutoCreatedLocal")
OLD, NEW = ("0000000a-0000-4000-8000-000000000000", "0000000b-0000-4000-8000-000000000000")
FAR = "TCP://far:4022"
PAST = "2026-01-01T00:00:00"


def only_group(tmp_path: Path, **views: Any) -> MessageGroup:
    """Return the one group of a check of SHOP. With `stock`, STOCK has the service with the id NEW."""
    if views.pop("stock", False):
        theirs = [database("Stock", NEW.partition("-")[0])]
        export(tmp_path, "STOCK", databases=theirs, services={"Stock": [{"name": BILLING}]})
    export(tmp_path, "SHOP", **views)
    [group] = check([str(tmp_path)]).groups
    return group


def queue(**columns: Any) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    return {"Orders": [waiting(1, BILLING, **columns)]}


@pytest.mark.parametrize(
    ("views", "near", "statement"),
    [
        pytest.param(
            {"transmission_queue": queue(), "routes": {"Orders": [LOCAL, route("To", "//Billing", FAR)]}},
            [("To", ("NAME_CASE",))],
            "USE [Orders];\nALTER ROUTE [To] WITH SERVICE_NAME = N'//billing';",
            id="a queue and routes: a route in another case",
        ),
        pytest.param(
            {
                "transmission_queue": queue(),
                "routes": {"Orders": [LOCAL, route("To", BILLING, FAR, lifetime=PAST)]},
            },
            [("To", ("EXPIRED",))],
            "USE [Orders];\nSET XACT_ABORT ON;\nBEGIN TRANSACTION;\nDROP ROUTE [To];\n"
            "CREATE ROUTE [To] WITH SERVICE_NAME = N'//billing', ADDRESS = N'TCP://far:4022';\n"
            "COMMIT TRANSACTION;",
            id="an expired route",
        ),
        pytest.param(
            {"transmission_queue": queue(), "routes": {"Orders": [LOCAL]}},
            [],
            "-- USE [Orders];\n"
            "-- CREATE ROUTE [Route to //billing] WITH SERVICE_NAME = N'//billing', ADDRESS = N'tcp://<host>:<port>';",
            id="no route for it at all",
        ),
        pytest.param({"transmission_queue": queue()}, [], None, id="without its routes nothing helps"),
        pytest.param(
            {"transmission_queue": queue(), "routes": {"Orders": [route("To", BILLING, FAR)]}},
            [],
            None,
            id="on its way, whatever it is bound to",
        ),
        pytest.param(
            {
                "transmission_queue": queue(),
                "routes": {"Orders": [LOCAL, route("To", BILLING, FAR, broker_instance=OLD)]},
                "stock": True,
            },
            [],
            None,
            id="open it is sent, bound it has no route: nothing in common",
        ),
        pytest.param(
            {
                "transmission_queue": queue(to_broker_instance=NEW),
                "routes": {"Orders": [LOCAL, route("To", BILLING, FAR, broker_instance=OLD)]},
                "stock": True,
            },
            [("To", ("OTHER_BROKER_INSTANCE",))],
            f"USE [Orders];\nALTER ROUTE [To] WITH BROKER_INSTANCE = N'{NEW}';",
            id="the queue says what it is bound to",
        ),
        pytest.param(
            {
                "transmission_queue": queue(),
                "routes": {"Orders": [LOCAL, route("To", "//Billing", FAR)]},
                "stock": True,
            },
            [("To", ("NAME_CASE",))],
            "USE [Orders];\nALTER ROUTE [To] WITH SERVICE_NAME = N'//billing';",
            id="open and bound alike",
        ),
        pytest.param(
            {
                "transmission_queue": queue(),
                "conversation_endpoints": {"Orders": [endpoint(1)]},
                "routes": {"Orders": [LOCAL, route("To", "//Billing", FAR)]},
            },
            [("To", ("NAME_CASE",))],
            "USE [Orders];\nALTER ROUTE [To] WITH SERVICE_NAME = N'//billing';",
            id="the dialog is known, the databases are not",
        ),
    ],
)
def test_remedies_for_every_case(
    tmp_path: Path, views: dict[str, Any], near: list[tuple[str, tuple[str, ...]]], statement: str | None
) -> None:
    group = only_group(tmp_path, **views)
    assert (group.first.case.outcome, group.verdict) == ("NOT_KNOWN", None)
    assert [(miss.name, miss.differences) for miss in group.near_misses] == near
    assert (group.remedy and group.remedy.statement) == statement


def test_contradicted_remedies_are_left_out(tmp_path: Path) -> None:
    refused = "Connection attempt failed with error: '10061(No connection could be made)'."
    routes = {"Orders": [LOCAL, route("To", "//Billing", FAR)]}
    group = only_group(tmp_path, transmission_queue=queue(transmission_status=refused), routes=routes)
    assert [miss.name for miss in group.near_misses] == ["To"]
    assert not any("ALTER ROUTE" in (advice.remedy.statement or "") for advice in group.advice)


def test_missing_knowledge_is_reported(tmp_path: Path) -> None:
    export(tmp_path, "SHOP", transmission_queue=queue(), routes={"Orders": [LOCAL, route("To", "//Billing", FAR)]})
    output = print_check(check([str(tmp_path)]))
    assert "1. NOT_KNOWN: 1 message from 'SHOP', database 'Orders' to service '//billing'" in output
    assert "near: route 'To' of 'SHOP', database 'Orders' names '//Billing': it differs in case" in output
    assert "missing: 'SHOP', database 'Orders': the dialogs of the messages in its queue" in output
    assert "what to do on 'SHOP', as far as is known:\n  - Route 'To' of 'Orders' names '//Billing'" in output


def test_a_database_without_a_name_is_not_used(tmp_path: Path) -> None:
    rows = {"": [waiting(1, BILLING)]}
    export(tmp_path, "SHOP", transmission_queue=rows, routes={"": [LOCAL, route("To", "//Billing", FAR)]})
    [group] = check([str(tmp_path)]).groups
    assert group.remedy is not None
    assert group.remedy.statement == "ALTER ROUTE [To] WITH SERVICE_NAME = N'//billing';"


def test_only_without_a_queue_there_is_no_answer(tmp_path: Path) -> None:
    export(tmp_path, "SHOP", routes={"Orders": [LOCAL]})
    with pytest.raises(ContractError) as caught:
        check([str(tmp_path)])
    assert caught.value.exit_code == 2
    assert "there is no transmission queue" in str(caught.value)
