"""Databases with the broker instance of another one, because one is a copy. They are the first causes."""

from __future__ import annotations

from pathlib import Path

import pytest

from routing.advice.remedy import Confidence
from routing.views.check.check_report import list_statements
from routing.views.check.checking import check
from tests.check_texts import print_check
from tests.exported import database, endpoint, export, listening, route, waiting
from tests.exported_causes import AWAY, BOUND, GROUP, shop, target


def shop_with_copy(folder: Path, name: str = "Orders", back: str = "SHOP") -> Path:
    """Return an estate in which COPY sends and has a database with SHOP's broker instance.

    ``back`` is the address of HUB's route.
    """
    for instance, queue in (("SHOP", []), ("COPY", [waiting(1, "//stock", from_service_name="//orders")])):
        to_stock = route("ToStock", "//stock", "TCP://HUB:4022")
        export(
            folder,
            instance,
            databases=[database("msdb", "d4d4d4d4", 4), database(name, "0d0d0d0d")],
            service_broker_endpoints=[listening(instance)],
            routes={"msdb": [route("AutoCreatedLocal")], name: [route("AutoCreatedLocal"), to_stock]},
            services={"msdb": [], name: [{"name": "//orders"}]},
            conversation_endpoints={name: [endpoint(1)] if queue else []},
            transmission_queue={name: queue},
        )
    export(
        folder,
        "HUB",
        databases=[database("msdb", "d4d4d4d4", 4), database("Stock", "0e0e0e0e")],
        service_broker_endpoints=[listening("HUB")],
        routes={"msdb": [route("AutoCreatedLocal")], "Stock": [route("Back", "//orders", f"TCP://{back}:4022")]},
        services={"msdb": [], "Stock": [{"name": "//stock"}]},
        conversation_endpoints={"Stock": []},
    )
    return folder


@pytest.mark.parametrize(
    ("back", "end", "places"),
    [
        # The acknowledgement goes to SHOP, though COPY sent; or all is right, and nothing acknowledges.
        ("SHOP", "NO_RETURN_PATH", ["SHOP", "COPY"]),
        ("COPY", "DELIVERED", ["COPY", "SHOP"]),
    ],
)
def test_each_copy_can_get_another_broker_instance_or_none(
    back: str, end: str, places: list[str], tmp_path: Path
) -> None:
    done = check([str(shop_with_copy(tmp_path, back=back))])
    [group] = done.groups
    assert group.first.case.end == end
    assert [advice.remedy.place for advice in group.advice] == [(place, "master") for place in places]
    for advice in group.advice:
        remedy = advice.remedy
        lines = (remedy.statement or "").split("\n")
        assert "-- ALTER DATABASE [Orders] SET NEW_BROKER WITH ROLLBACK IMMEDIATE;" in lines
        assert "-- ALTER DATABASE [Orders] SET DISABLE_BROKER WITH ROLLBACK IMMEDIATE;" in lines
        assert all(line.startswith("-- ") for line in lines)
        assert "ends all conversations" in (remedy.risk or "")
        assert "stops its messages" in (remedy.risk or "")
        assert (remedy.is_complete, remedy.confidence) == (False, Confidence.TO_BE_CHECKED)
        assert remedy.cause.startswith("The acknowledgement ends at ")
        assert "same broker instance" in remedy.cause
    assert "every hop is right" not in print_check(done)
    assert [one.text.count("SET NEW_BROKER") for one in list_statements(done)] == [1, 1]


@pytest.mark.parametrize("name", ["a\u202eb", "a$(x)"])
def test_a_copy_whose_name_cannot_be_pasted_gets_words(name: str, tmp_path: Path) -> None:
    done = check([str(shop_with_copy(tmp_path, name))])
    assert [one.remedy.statement for one in done.groups[0].advice] == [None, None]
    assert all("There is no statement" in one.remedy.actions[-1] for one in done.groups[0].advice)


@pytest.mark.parametrize(
    ("roles", "listener", "statement"),
    [
        (("PRIMARY", "SECONDARY"), "group", None),
        (("SECONDARY", "PRIMARY"), "group", "ALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://group:4022';"),
        (("SECONDARY", "PRIMARY"), None, "-- ALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://<host>:4022';"),
        ((None, None), None, None),
    ],
)
def test_replicas_of_a_group_are_no_copies(
    roles: tuple[str | None, str | None], listener: str | None, statement: str | None, tmp_path: Path
) -> None:
    """NEW_BROKER would end the dialogs of the one database, and SQL Server refuses it in a group."""
    shop(tmp_path, routes=AWAY, bound=BOUND)
    for name, role in zip(("STOCK", "STOCK2"), roles, strict=True):
        stock = {**database("Stock", "5c5c5c5c"), "group_database_id": GROUP}
        databases = [database("msdb", f"d{ord(name[-1]):07x}", 4), stock]
        replicas = [{"replica_server_name": name, "role_desc": role, "is_local": 1}]
        listeners = [{"dns_name": listener}]
        target(
            tmp_path,
            name,
            databases=databases,
            availability_replicas=replicas,
            availability_group_listeners=listeners,
        )
    [group] = check([str(tmp_path)]).groups
    statements = [advice.remedy.statement or "" for advice in group.advice]
    assert not any("_BROKER" in shown for shown in statements)
    assert statement is None or statements[0].endswith(statement)
