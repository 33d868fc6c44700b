"""The address that a remedy gives to a route: never a short machine name where a better one is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from routing.cases.estate_addresses import EstateAddresses, TargetAddress
from routing.rules.estate import SqlInstance, own_addresses
from routing.views.check.checking import check
from tests.check_texts import print_check
from tests.exported import database, export, route, waiting, whole_shop

HUB = SqlInstance("HUB", own_addresses=own_addresses(["tcp://hub:4022"]))
SHORT, FULL, IP, PLAIN = "tcp://APP1:4022", "tcp://APP1.corp.local:4022", "tcp://10.0.0.7:4022", "tcp://APP1"
V6 = "tcp://[fe80::1]:4022"
Use = tuple[str, str]


@pytest.mark.parametrize(
    ("own", "in_routes", "written", "is_certain"),
    [
        ([SHORT, FULL], [], FULL, True),
        ([SHORT, IP, FULL], [], FULL, True),
        ([SHORT, IP], [], IP, True),
        ([SHORT, V6], [], V6, True),
        ([SHORT], [], SHORT, False),
        # As routes write it, even where they use the short name.
        ([SHORT, FULL], [("FAR", " TCP://app1:4022/ ")], "TCP://app1:4022", True),
        ([SHORT, FULL], [("FAR", "TCP://app1.CORP.local:4022")], "TCP://app1.CORP.local:4022", True),
        ([SHORT, FULL, IP], [("FAR", SHORT), ("FAR", IP), ("GATE", IP)], IP, True),
        # Those of the instance itself come before those of most.
        ([SHORT, FULL, IP], [("HUB", SHORT), ("FAR", IP), ("GATE", IP)], SHORT, True),
        ([SHORT], [("FAR", "TCP://app1:4022"), ("FAR", "TCP://app1:4022"), ("HUB", SHORT)], SHORT, True),
        # Another port or host is another address.
        ([SHORT, FULL], [("FAR", "tcp://app1:5022"), ("FAR", "tcp://app1.other:4022")], FULL, True),
        ([SHORT, FULL], [("FAR", "LOCAL"), ("FAR", None)], FULL, True),
    ],
)
def test_the_address_that_is_chosen(own: list[str], in_routes: list[Use], written: str, is_certain: bool) -> None:
    addresses = EstateAddresses({"APP1": own, "HUB": ["tcp://hub:4022"]}, iter(in_routes))
    assert addresses.choose("APP1", HUB) == TargetAddress(written, is_certain)
    assert addresses.choose("APP1", HUB) == TargetAddress(written, is_certain)


@pytest.mark.parametrize(
    "own", [[], [PLAIN], ["tcp://localhost:4022"], ["tcp://127.0.0.1:4022", "TCP://HUB:4022"]]
)
def test_no_usable_address_is_chosen(own: list[str]) -> None:
    assert EstateAddresses({"APP1": own}).choose("APP1", HUB) is None
    assert EstateAddresses({}).choose("APP1", HUB) is None


def exported(folder: Path, full_name: str | None, *routes: dict[str, object]) -> Path:
    """Return an estate in which SHOP sends to a service of APP1 without a route. A third one has ``routes``."""
    whole_shop(folder, [waiting(1, "//app")])
    head = {"endpoint_id": 1, "is_message_forwarding_enabled": 0, "port": 4022}
    for name, full, held, its_routes in (
        ("APP1", full_name, [{"name": "//app"}], []),
        ("THIRD", None, [], routes),
    ):
        export(
            folder,
            name,
            databases=[database("App", "0e0e0e0e")],
            service_broker_endpoints=[{**head, "machine_name": name, "full_name": full}],
            services={"App": held},
            routes={"App": [route("AutoCreatedLocal"), *its_routes], "msdb": [route("AutoCreatedLocal")]},
        )
    return folder


@pytest.mark.parametrize(
    ("full_name", "routes", "address"),
    [
        ("app1.corp.local", [], "tcp://app1.corp.local:4022"),
        ("app1.corp.local", [route("R", "//x", "TCP://APP1.corp.local:4022")], "TCP://APP1.corp.local:4022"),
        ("app1.corp.local", [route("R", "//x", "TCP://app1:4022")], "TCP://app1:4022"),
        (None, [route("R", "//x", "TCP://app1:4022")], "TCP://app1:4022"),
    ],
)
def test_a_certain_address_is_printed_ready_to_run(
    full_name: str | None, routes: list[dict[str, object]], address: str, tmp_path: Path
) -> None:
    [group] = check([str(exported(tmp_path, full_name, *routes))]).groups
    [advice] = group.advice
    assert advice.remedy.statement == (
        f"USE [Orders];\nCREATE ROUTE [Route to //app] WITH SERVICE_NAME = N'//app', ADDRESS = N'{address}';"
    )
    assert advice.remedy.is_complete


def test_a_short_name_is_a_comment_that_says_what_to_look_at(tmp_path: Path) -> None:
    done = check([str(exported(tmp_path, None))])
    [advice] = done.groups[0].advice
    assert not advice.remedy.is_complete
    text = print_check(done)
    assert "'app1' is a short machine name: check that 'SHOP' finds it, or write the full name.\n" in text
    created = "CREATE ROUTE [Route to //app] WITH SERVICE_NAME = N'//app', ADDRESS = N'tcp://APP1:4022';"
    assert f"    -- {created}\n" in text
