"""lint on lasting faults of servers that exports beside the routing show."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from routing.cases.exported_files import FileOptions
from routing.lint.file_linting import lint_files
from routing.views.check.checking import check
from tests.exported import database
from tests.exported_causes import QUEUE, broker_endpoint, shop, target

NOW = datetime(2026, 1, 6, tzinfo=timezone.utc)
CERTIFICATE = {"name": "StockCert", "certificate_id": 261, "expiry_date": "2026-01-01T00:00:00"}
BINDING = {"name": "b", "remote_service_name": "//from", "user_name": "ShopUser"}
OF_USER = {"name": "ShopCert", "user_name": "ShopUser", "expiry_date": "2026-01-01T00:00:00"}
STOCK = database("Stock", "5c5c5c5c")


def stored(**columns: Any) -> dict[str, Any]:
    return {"databases": [database("msdb", "d5d5d5d5", 4), {**STOCK, **columns}]}


@pytest.mark.parametrize(
    ("views", "found"),
    [
        ({"certificates": {"master": [CERTIFICATE]}}, ("SBR049", "master", "StockCert")),
        (
            {"certificates": {"master": [{**CERTIFICATE, "expiry_date": "2026-01-10T00:00:00"}]}},
            ("SBR050", "master", "StockCert"),
        ),
        ({"certificates": {"master": [{**CERTIFICATE, "expiry_date": "2027-01-10T00:00:00"}]}}, None),
        # No endpoint uses it.
        ({"certificates": {"master": [{**CERTIFICATE, "certificate_id": 300}]}}, None),
        (
            {"certificates": {"Stock": [OF_USER]}, "remote_service_bindings": {"Stock": [BINDING]}},
            ("SBR049", "Stock", "ShopCert"),
        ),
        # The user owns one that is valid.
        (
            {
                "certificates": {
                    "Stock": [OF_USER, {**OF_USER, "name": "New", "expiry_date": "2030-01-01T00:00:00"}]
                },
                "remote_service_bindings": {"Stock": [BINDING]},
            },
            None,
        ),
        ({"service_queues": {"Stock": [{**QUEUE, "is_receive_enabled": 0}]}}, ("SBR051", "Stock", "StockQueue")),
        ({"service_queues": {"Stock": [QUEUE]}}, None),
        (
            {
                "service_queues": {"Stock": [{**QUEUE, "is_enqueue_enabled": 0}]},
                "services": {"Stock": [{"name": "//stock"}]},
            },
            ("SBR051", "Stock", "StockQueue"),
        ),
        # A queue without a service may be off.
        (
            {"service_queues": {"Stock": [{**QUEUE, "is_receive_enabled": 0}]}, "services": {"Stock": []}},
            None,
        ),
        ({"service_queues": {"Stock": [{**QUEUE, "object_id": 71, "is_receive_enabled": 0}]}}, None),
        (
            {"service_broker_endpoints": [broker_endpoint("STOCK", state_desc="STOPPED")]},
            ("SBR052", None, "STOCK Broker"),
        ),
        (stored(owner_sid="0x0105", owner_is_known=0), ("SBR053", None, "Stock")),
        (stored(owner_sid="0x01", owner_is_known=0), None),
        (stored(owner_sid="0x0105", owner_is_known=1), None),
        # Without the broker the owner does not matter.
        (stored(owner_sid="0x0105", owner_is_known=0, is_broker_enabled=0), None),
    ],
)
def test_findings_about_servers(
    views: dict[str, Any], found: tuple[str, str | None, str] | None, tmp_path: Path
) -> None:
    shop(tmp_path)
    target(tmp_path, **views)
    done = lint_files([str(tmp_path)], FileOptions(), now=NOW)
    rows = [row for row in done.findings if row["code"] >= "SBR049"]
    assert [(row["code"], row["database_name"], row["object"]) for row in rows] == (
        [] if found is None else [found]
    )
    # check lists the same at the time of the export.
    codes = {one.code for one in check([str(tmp_path)]).every_finding if one.code >= "SBR049"}
    assert codes == (set() if found is None else {found[0]})
