"""check on the causes of connections, dialogs and queues that views beside the routing show."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from routing.advice.remedy import Confidence, Remedy, TroubleKind
from routing.errors import InputError
from routing.views.check.check_report import list_statements
from routing.views.check.checking import check
from tests.check_texts import print_check
from tests.exported import GUID, database, endpoint, export, route, waiting, whole_shop
from tests.exported_causes import (
    AWAY,
    BOUND,
    GROUP,
    QUEUE,
    REFUSED,
    TIMED_OUT,
    ZERO,
    broker_endpoint,
    only_remedy,
    shop,
    target,
    to_stock,
)

CLOSED = "An error occurred while receiving data: '10054(An existing connection was forcibly closed …)'."
NO_CONNECT = (
    "Connection handshake failed. The login 'CORP\\stocksvc' does not have CONNECT permission on the endpoint."
    " State 84."
)


KEY = {"name": "##MS_DatabaseMasterKey##", "symmetric_key_id": 101}


HOSTS = ("stock", "gone", "old")
ELSEWHERE = GUID.format("77777777")


def log(*lines: str) -> dict[str, Any]:
    """The error log of an instance, the newest line first."""
    return {"error_log": [{"log_date": "2026-01-05T12:10:00", "text": line} for line in lines]}


def refused(inner: str) -> str:
    """A line of the error log on a login that the endpoint refuses."""
    return f"Service Broker login attempt failed with error: '{inner}'.  [CLIENT: 10.0.0.1]"


def grant(login: str, endpoint: str, state: str = "GRANT") -> dict[str, Any]:
    """A row of sys.server_permissions."""
    return {"permission_name": "CONNECT", "state_desc": state, "endpoint_name": endpoint, "grantee_name": login}


NO_PRINCIPAL = 'Cannot execute as the database principal because the principal "{}" does not exist.'


def certificate(name: str, until: str = "2030-01-01T00:00:00", **columns: Any) -> dict[str, Any]:
    """A certificate of an endpoint."""
    row = {"name": name, "certificate_id": 261, "subject": name, "start_date": "2025-01-01T00:00:00"}
    return {**row, "expiry_date": until, **columns}


def connecting(
    folder: Path, status: str, number: int, sender: dict[str, Any] | None = None, **views: Any
) -> Remedy:
    """The remedy for a message whose connection to STOCK fails; ``views`` are those of STOCK."""
    shop(folder, status, number, routes=AWAY, **(sender or {}))
    target(folder, **views)
    return only_remedy(folder)


# CONNECT on the endpoint.


def test_connect_for_public_opens_the_endpoint_to_every_login(tmp_path: Path) -> None:
    status = "Connection handshake failed. The login 'public' does not have CONNECT permission on the endpoint."
    assert "Every login" in (connecting(tmp_path, status, 28034).risk or "")


def test_a_login_without_connect_is_granted_connect(tmp_path: Path) -> None:
    remedy = connecting(tmp_path / "unknown", NO_CONNECT, 28034)
    assert remedy.place == ("SHOP", "master")
    assert remedy.statement == "USE [master];\nGRANT CONNECT ON ENDPOINT::[SHOP Broker] TO [CORP\\stocksvc];"
    assert remedy.confidence is Confidence.LIKELY

    others = {"server_permissions": [grant("CORP\\other", "SHOP Broker"), grant("CORP\\stocksvc", "Mirroring")]}
    remedy = connecting(tmp_path / "others", NO_CONNECT, 28034, others)
    assert remedy.confidence is Confidence.CERTAIN
    assert "'CORP\\other' has it" in remedy.cause
    assert remedy.statement is not None


def test_the_account_of_the_own_machine_is_refused_by_the_other_side(tmp_path: Path) -> None:
    remedy = connecting(tmp_path, NO_CONNECT.replace("stocksvc", "SHOP$"), 28034)
    assert remedy.place == ("STOCK", "master")
    assert "ENDPOINT::[STOCK Broker] TO [CORP\\SHOP$];" in (remedy.statement or "")


@pytest.mark.parametrize(
    ("here", "there", "at"),
    [(None, "x", "STOCK"), ("CORP\\stocksvc", "x", "STOCK"), ("x", "x", "SHOP"), ("x", None, "SHOP")],
)
def test_the_side_whose_grants_lack_the_login_refuses_it(
    here: str | None, there: str | None, at: str, tmp_path: Path
) -> None:
    permissions = {} if here is None else {"server_permissions": [grant(here, "SHOP Broker")]}
    other = {} if there is None else {"server_permissions": [grant(there, "STOCK Broker")]}
    remedy = connecting(tmp_path, NO_CONNECT, 28034, permissions, **other)
    assert remedy.place == (at, "master")
    assert f"ENDPOINT::[{at} Broker] TO [CORP\\stocksvc];" in (remedy.statement or "")


@pytest.mark.parametrize("login", ["CORP\\stocksvc", "public"])
def test_a_login_that_has_connect_is_not_granted_it_again(login: str, tmp_path: Path) -> None:
    granted: dict[str, Any] = {"server_permissions": [grant(login, "SHOP Broker")]}
    remedy = connecting(tmp_path, NO_CONNECT, 28034, granted)
    assert remedy.statement is None
    assert "has CONNECT" in remedy.cause


@pytest.mark.parametrize("status", [True, False], ids=["status", "log"])
def test_an_anonymous_logon_is_granted_nothing(status: bool, tmp_path: Path) -> None:
    text = NO_CONNECT.replace("CORP\\stocksvc", "NT AUTHORITY\\ANONYMOUS LOGON")
    if status:
        remedy = connecting(tmp_path, text, 28034)
    else:
        shop(tmp_path, routes=AWAY, **log(refused(text)))
        [remedy] = [one.remedy for one in check([str(tmp_path)]).troubles]
    assert "Do not grant CONNECT to ANONYMOUS LOGON" in remedy.text
    assert "TO [<login>];" in (remedy.statement or "")
    assert not remedy.is_complete


def test_a_denied_permission_is_revoked(tmp_path: Path) -> None:
    denied = {"server_permissions": [grant("CORP\\stocksvc", "SHOP Broker", "DENY")]}
    statement = connecting(tmp_path, NO_CONNECT, 28034, denied).statement or ""
    assert "REVOKE CONNECT ON ENDPOINT::[SHOP Broker] FROM [CORP\\stocksvc];" in statement


def test_no_login_may_connect_to_the_other_side(tmp_path: Path) -> None:
    remedy = connecting(tmp_path / "nobody", CLOSED, 9757, server_permissions=[grant("x", "Mirroring")])
    assert remedy.place == ("STOCK", "master")
    assert "GRANT CONNECT ON ENDPOINT::[STOCK Broker] TO [<login>];" in (remedy.statement or "")
    remedy = connecting(tmp_path / "somebody", CLOSED, 9757, server_permissions=[grant("x", "STOCK Broker")])
    assert any("is granted to 'x'" in action for action in remedy.actions)


def test_an_invalid_address_gets_the_port_of_the_endpoint(tmp_path: Path) -> None:
    shop(tmp_path, "The address is not valid.", 9785, routes=to_stock("tcp://stock"))
    target(tmp_path)
    assert "ALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://stock:4022';" in (only_remedy(tmp_path).statement or "")


@pytest.mark.parametrize(
    ("written", "corrected"),
    [
        ("TCP://fe80::1:4022", "TCP://[fe80::1]:4022"),
        ("stock:4022", "tcp://STOCK:4022"),
        ("TCP://2001:db8::1", "tcp://STOCK:4022"),
        ("TCP://fe80::1:99999", "tcp://STOCK:4022"),
    ],
)
def test_a_route_whose_address_is_refused_is_named(written: str, corrected: str, tmp_path: Path) -> None:
    shop(tmp_path, f"Invalid address specified: '{written}'.", 9785, routes=to_stock(written))
    target(tmp_path)
    remedy = check([str(tmp_path)]).groups[0].advice[0].remedy
    assert f"Route 'ToStock' of 'Orders' has the invalid address '{written}'" in remedy.cause
    assert f"ALTER ROUTE [ToStock] WITH ADDRESS = N'{corrected}';" in (remedy.statement or "")


def test_an_invalid_route_to_another_broker_instance_is_not_corrected(tmp_path: Path) -> None:
    routes = to_stock("stock:4022", broker_instance=GUID.format("0a0a0a0a"))
    shop(tmp_path, routes=routes, bound=GUID.format("5c5c5c5c"))
    target(tmp_path)
    assert "has the invalid address" not in only_remedy(tmp_path).cause


def test_a_faulty_mirror_address_is_no_invalid_address(tmp_path: Path) -> None:
    shop(tmp_path, routes=to_stock("TCP://stock:4022", mirror_address="stock2"))
    target(tmp_path)
    assert "has the invalid address 'TCP://stock:4022'" not in only_remedy(tmp_path).cause


def test_permissions_without_names_are_ignored(tmp_path: Path) -> None:
    """SELECT * FROM sys.server_permissions has the ids of principals alone."""
    bare = {"class_desc": "ENDPOINT", "permission_name": "CONNECT", "state_desc": "GRANT"}
    remedy = connecting(tmp_path, CLOSED, 9757, server_permissions=[bare])
    assert "No login has CONNECT" not in remedy.text


# What the other side logs of a connection that it closes.


def test_the_error_log_of_the_other_side_names_the_login(tmp_path: Path) -> None:
    line = refused(
        "Connection handshake failed. The login 'CORP\\shopsvc' does not have CONNECT permission on the endpoint."
    )
    mirroring = line.replace("Service Broker", "Database Mirroring").replace("shopsvc", "mirror")
    remedy = connecting(tmp_path, CLOSED, 9757, **log(mirroring, line))
    assert remedy.place == ("STOCK", "master")
    assert remedy.statement == "USE [master];\nGRANT CONNECT ON ENDPOINT::[STOCK Broker] TO [CORP\\shopsvc];"
    assert any("The error log of 'STOCK' says" in action for action in remedy.actions)


def test_the_error_log_of_the_other_side_lacks_the_certificate(tmp_path: Path) -> None:
    line = refused(
        "Connection handshake failed. The certificate used by the peer is invalid due to the following reason:"
        " Certificate not found. State 89."
    )
    views = {"certificates": {"master": [certificate("ShopCert")]}}
    remedy = connecting(tmp_path, CLOSED, 9757, views, **log(line))
    assert remedy.place == ("STOCK", "master")
    assert "CREATE CERTIFICATE [ShopCert] AUTHORIZATION [<user>] FROM FILE" in (remedy.statement or "")


@pytest.mark.parametrize(
    ("number", "code"),
    [(28031, "80090304"), (28031, "c000006d"), (28031, "80090350"), (9649, "1825")],
)
def test_a_windows_account_that_the_domain_refuses(number: int, code: str, tmp_path: Path) -> None:
    status = f"Connection handshake failed. An OS call failed: ({code}) 0x{code}(The Local Security Authority …)."
    windows = {"service_broker_endpoints": [broker_endpoint("SHOP", connection_auth_desc="NEGOTIATE")]}
    both = {"service_broker_endpoints": [broker_endpoint("STOCK", connection_auth_desc="NEGOTIATE")]}
    remedy = connecting(tmp_path, status, number, windows, **both)
    assert "Windows refuses" in remedy.cause
    assert "CREATE LOGIN [<login>] FROM WINDOWS;" in (remedy.statement or "")


@pytest.mark.parametrize(
    ("code", "words"), [("80090331", "no algorithm that both servers allow"), ("80090346", "the channel bindings")]
)
def test_a_policy_of_windows_that_forbids_the_connection(code: str, words: str, tmp_path: Path) -> None:
    status = f"Connection handshake failed. An OS call failed: ({code}) 0x{code}(…). State 67."
    for way, is_by_windows in (("CERTIFICATE", False), ("KERBEROS", True)):
        endpoints = {"service_broker_endpoints": [broker_endpoint("SHOP", connection_auth_desc=way)]}
        there = [broker_endpoint("STOCK", connection_auth_desc=way)]
        remedy = connecting(tmp_path / way, status, 28047, endpoints, service_broker_endpoints=there)
        assert words in remedy.cause
        assert remedy.statement is None
        assert ("Or let both endpoints use certificates" in remedy.text) is is_by_windows


# Certificates of the endpoints.


def test_the_certificate_of_one_endpoint_has_expired(tmp_path: Path) -> None:
    old = {"certificates": {"master": [certificate("ShopCert", "2026-01-01T00:00:00")]}}
    remedy = connecting(tmp_path, CLOSED, 9757, old)
    assert remedy.place == ("SHOP", "master")
    assert "'ShopCert', valid until 2026-01-01" in remedy.cause
    assert "ALTER ENDPOINT [SHOP Broker]" in (remedy.statement or "")


def test_the_clock_is_behind_the_certificate(tmp_path: Path) -> None:
    early = {"certificates": {"master": [certificate("ShopCert", start_date="2026-02-01T00:00:00")]}}
    remedy = connecting(tmp_path, CLOSED, 9757, early)
    assert "valid from 2026-02-01" in remedy.cause
    assert any("clock" in action for action in remedy.actions)


def test_the_other_side_lacks_the_certificate(tmp_path: Path) -> None:
    views = {"certificates": {"master": [certificate("ShopCert")]}}
    remedy = connecting(
        tmp_path / "lacks", CLOSED, 9757, views, certificates={"master": [certificate("StockCert")]}
    )
    assert remedy.place == ("STOCK", "master")
    assert "does not know" in remedy.cause
    both = [certificate("StockCert"), certificate("Copy", subject="ShopCert", certificate_id=262)]
    views = {"certificates": {"master": [certificate("ShopCert"), {**both[0], "certificate_id": 262}]}}
    remedy = connecting(tmp_path / "has", CLOSED, 9757, views, certificates={"master": both})
    assert "does not know" not in remedy.cause


@pytest.mark.parametrize(
    ("number", "text", "expected"),
    [
        (
            28036,
            "The certificate used by this endpoint was not found: Certificate not found.",
            "ALTER ENDPOINT [SHOP",
        ),
        (28037, "Error 15151 occurred while initializing the private key.", "ALTER MASTER KEY ADD ENCRYPTION"),
    ],
)
def test_a_certificate_of_the_own_endpoint(number: int, text: str, expected: str, tmp_path: Path) -> None:
    remedy = connecting(tmp_path, f"Connection handshake failed. {text} State 88.", number)
    assert remedy.place == ("SHOP", "master")
    assert expected in (remedy.statement or "")
    assert "both sides" not in remedy.text


@pytest.mark.parametrize(
    ("status", "expected"),
    [("expired", "has expired"), ("not yet valid", "is not valid yet"), ("not found", "does not know")],
)
def test_a_status_shows_why_a_certificate_is_refused(status: str, expected: str, tmp_path: Path) -> None:
    text = "The certificate used by the peer is invalid due to the following reason: Certificate"
    remedy = connecting(tmp_path, f"Connection handshake failed. {text} {status}. State 89.", 28035)
    assert expected in remedy.cause
    assert ("clock" in remedy.text) is (status == "not yet valid")


def test_the_other_sides_own_certificate_has_expired_by_its_log(tmp_path: Path) -> None:
    own = "The certificate used by this endpoint was not found: Certificate expired. State 85."
    remedy = connecting(tmp_path, CLOSED, 9757, **log(refused(f"Connection handshake failed. {own}")))
    assert remedy.place == ("STOCK", "master")
    assert "ALTER ENDPOINT [STOCK Broker]" in (remedy.statement or "")


def test_a_certificate_without_its_private_key(tmp_path: Path) -> None:
    bare = certificate("ShopCert", pvt_key_encryption_type_desc="NO_PRIVATE_KEY")
    text = "The certificate used by this endpoint was not found: Private key not found. State 87."
    remedy = connecting(
        tmp_path, f"Connection handshake failed. {text}", 28036, {"certificates": {"master": [bare]}}
    )
    assert "has no private key" in remedy.cause
    assert "ALTER CERTIFICATE [ShopCert] WITH PRIVATE KEY" in (remedy.statement or "")
    assert "not valid" not in remedy.text


@pytest.mark.parametrize(
    ("number", "kind", "expected"),
    [
        (9762, None, "ALTER ENDPOINT [SHOP Broker]"),
        (28055, "ENCRYPTED_BY_PASSWORD", "ALTER CERTIFICATE [ShopCert] WITH PRIVATE KEY (DECRYPTION BY PASSWORD"),
    ],
)
def test_the_own_certificate_cannot_be_used(number: int, kind: str | None, expected: str, tmp_path: Path) -> None:
    own = [] if kind is None else [certificate("ShopCert", pvt_key_encryption_type_desc=kind)]
    remedy = connecting(tmp_path, "A certificate is not valid.", number, {"certificates": {"master": own}})
    assert remedy.place == ("SHOP", "master")
    assert expected in (remedy.statement or "")
    assert "both sides" not in remedy.text


def test_a_login_attempt_names_the_error_within(tmp_path: Path) -> None:
    inner = (
        "Connection handshake failed. The certificate used by the peer is invalid due to the following reason:"
        " Certificate not found."
    )
    remedy = connecting(tmp_path / "certificate", refused(inner), 28047)
    assert remedy.place == ("SHOP", "master")
    assert "FROM FILE" in (remedy.statement or "")
    remedy = connecting(tmp_path / "login", refused(NO_CONNECT), 28047)
    assert "GRANT CONNECT ON ENDPOINT::[SHOP Broker] TO [CORP\\stocksvc];" in (remedy.statement or "")


# Certificates of dialogs.

NO_CERTIFICATE = (
    "Dialog security is unavailable for this conversation because there is no security certificate bound to the"
    " database principal (Id: 5)."
)
EXPIRED = "The security certificate bound to database principal (Id: 5) has expired."


def test_the_certificate_of_a_dialog_belongs_to_dbo(tmp_path: Path) -> None:
    copy: dict[str, Any] = {
        "pvt_key_encryption_type_desc": "NO_PRIVATE_KEY",
        "user_name": "dbo",
        "principal_id": 1,
    }
    binding = {"name": "b", "remote_service_name": "//stock", "user_name": "StockUser"}
    shop(
        tmp_path,
        NO_CERTIFICATE,
        9731,
        routes=AWAY,
        certificates={"Orders": [certificate("StockCert", **copy)]},
        remote_service_bindings={"Orders": [binding]},
    )
    statement = only_remedy(tmp_path).statement or ""
    assert "ALTER AUTHORIZATION ON CERTIFICATE::[StockCert] TO [StockUser];" in statement


@pytest.mark.parametrize("principal", [5, 6])
@pytest.mark.parametrize(
    ("number", "words", "option"),
    [
        (
            9733,
            "no private key for the security certificate bound to",
            "PRIVATE KEY (FILE = N'<file>', DECRYPTION",
        ),
        (9737, "password protected", "PRIVATE KEY (DECRYPTION BY PASSWORD"),
        (9767, "has been disabled for use with BEGIN DIALOG", "ACTIVE FOR BEGIN_DIALOG = ON;"),
    ],
)
def test_the_certificate_of_a_dialog_is_altered(
    number: int, words: str, option: str, principal: int, tmp_path: Path
) -> None:
    owned = certificate("Shop]Cert", principal_id=principal, user_name="ShopUser")
    shop(tmp_path, f"{words} … (Id: 5)", number, routes=AWAY, certificates={"Orders": [owned]})
    name = "[Shop]]Cert]" if principal == 5 else "[<certificate>]"
    line = f"ALTER CERTIFICATE {name} WITH {option}"
    assert line in (only_remedy(tmp_path).statement or "")


def test_the_certificate_of_a_dialog_has_expired(tmp_path: Path) -> None:
    old = certificate("ShopCert", "2026-01-01T00:00:00", principal_id=5, user_name="ShopUser")
    other = certificate("Other", "2025-06-01T00:00:00", principal_id=6)
    shop(tmp_path, EXPIRED, 28025, routes=AWAY, certificates={"Orders": [old, other]})
    remedy = only_remedy(tmp_path)
    assert "'ShopCert' (from 2025-01-01T00:00:00 to 2026-01-01T00:00:00)" in remedy.cause
    assert "'Other'" not in remedy.cause
    assert "AUTHORIZATION [ShopUser]" in (remedy.statement or "")


# Addresses.


def test_an_endpoint_that_listens_on_one_address(tmp_path: Path) -> None:
    tcp = [{"endpoint_id": 65540, "port": 4022, "ip_address": "10.0.0.7"}]
    remedy = connecting(tmp_path, REFUSED, 9754, tcp_endpoints=tcp)
    assert "10.0.0.7 only" in remedy.cause
    assert remedy.statement == (
        "USE [master];\nALTER ENDPOINT [STOCK Broker] AS TCP (LISTENER_PORT = 4022, LISTENER_IP = ALL);"
    )


@pytest.mark.parametrize("status", [TIMED_OUT, REFUSED])
@pytest.mark.parametrize(("route_host", "is_led_away"), [("10.0.0.8", True), ("10.0.0.7", False)])
def test_an_ip_address_that_does_not_answer(
    tmp_path: Path, route_host: str, is_led_away: bool, status: str
) -> None:
    shop(tmp_path, status, 9754, routes=to_stock(f"TCP://{route_host}:4022"))
    target(tmp_path, tcp_endpoints=[{"endpoint_id": 65540, "port": 4022, "ip_address": "10.0.0.7"}])
    statement = "-- USE [Orders];\n-- ALTER ROUTE [ToStock] WITH ADDRESS = N'tcp://10.0.0.7:4022';"
    assert (only_remedy(tmp_path).statement == statement) is is_led_away


CONTAINER = "3f2a9c1b7d4e"


@pytest.mark.parametrize(
    ("status", "address", "altered"),
    [
        (REFUSED, "TCP://docker01:4022", "-- ALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://docker01:<port>';"),
        (TIMED_OUT, f"TCP://{CONTAINER}:4022", "-- ALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://<host>:<port>';"),
        (None, "LOCAL", "-- ALTER ROUTE [ToStock] WITH ADDRESS = N'tcp://<host>:<port>';"),
    ],
)
def test_a_container_is_reached_by_a_published_port(
    status: str | None, address: str, altered: str, tmp_path: Path
) -> None:
    shop(tmp_path, status or "", None if status is None else 9755, routes=to_stock(address))
    target(tmp_path, CONTAINER)
    remedy = only_remedy(tmp_path)
    assert altered in (remedy.statement or "")
    assert (f"docker port {CONTAINER} 4022" in remedy.text) is (status is not None)


@pytest.mark.parametrize(
    ("endpoints", "line"),
    [([], "CREATE ENDPOINT"), ([broker_endpoint("x", state_desc="STOPPED")], "STATE = STARTED;")],
)
def test_the_endpoint_of_a_container_comes_before_its_port(
    endpoints: list[Any], line: str, tmp_path: Path
) -> None:
    none = dict.fromkeys(("endpoint_id", "is_message_forwarding_enabled", "machine_name", "port"))
    shop(tmp_path, REFUSED, 9755, routes=to_stock("TCP://docker01:4022"))
    target(tmp_path, CONTAINER, service_broker_endpoints=endpoints or [none])
    remedy = only_remedy(tmp_path)
    assert remedy.place == (CONTAINER, "master")
    assert line in (remedy.statement or "")


def test_a_port_that_another_process_uses(tmp_path: Path) -> None:
    line = "The Service Broker endpoint cannot listen on port 4022 because it is in use by another process."
    remedy = connecting(tmp_path, REFUSED, 9754, **log(line))
    assert "9692" in remedy.cause
    assert any(line in action for action in remedy.actions)


def test_a_port_that_is_not_the_endpoints(tmp_path: Path) -> None:
    """SELECT * FROM sys.service_broker_endpoints names no machine: the folder's name does."""
    bare = broker_endpoint("STOCK", machine_name=None)
    shop(tmp_path, CLOSED, 9755, routes=to_stock("TCP://stock.corp.example:5022"))
    target(tmp_path, service_broker_endpoints=[bare])
    assert only_remedy(tmp_path).statement == (
        "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://stock.corp.example:4022';"
    )


def test_a_port_in_use_without_a_message(tmp_path: Path) -> None:
    line = "The Service Broker endpoint cannot listen on port 4022 because it is in use by another process."
    whole_shop(tmp_path, [])
    target(tmp_path, **log(line))
    [trouble] = check([str(tmp_path)]).troubles
    assert (trouble.kind, trouble.remedy.place) == (TroubleKind.PORT_SHARED, ("STOCK", "master"))


def test_a_host_without_a_name_while_another_instance_holds_the_service(tmp_path: Path) -> None:
    status = "Connection attempt failed with error: '11001(No such host is known.)'."
    shop(tmp_path, status, 9754, routes=to_stock("TCP://stok:4022"))
    target(tmp_path)
    assert only_remedy(tmp_path).statement == (
        "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'tcp://STOCK:4022';"
    )


@pytest.mark.parametrize("edition", ["Express Edition (64-bit)", "Web Edition (64-bit)"])
def test_two_instances_of_editions_that_only_send_to_others(edition: str, tmp_path: Path) -> None:
    express = {"server_properties": [{"engine_edition": 4, "edition": "Express Edition (64-bit)"}]}
    there = {"server_properties": [{"engine_edition": 2, "edition": edition}]}
    assert "both of edition Express or Web" in connecting(tmp_path, CLOSED, 9757, express, **there).cause


# The target's database.


def stored(**columns: Any) -> dict[str, Any]:
    """The databases of STOCK; ``columns`` are those of Stock."""
    return {"databases": [database("msdb", "d5d5d5d5", 4), {**database("Stock", "5c5c5c5c"), **columns}]}


@pytest.mark.parametrize(
    ("columns", "words", "statement"),
    [
        (
            {"owner_sid": "0x0105", "owner_is_known": 0},
            "owner",
            "ALTER AUTHORIZATION ON DATABASE::[Stock] TO [sa];",
        ),
        ({"is_read_only": 1}, "read-only", "ALTER DATABASE [Stock] SET READ_WRITE WITH NO_WAIT;"),
        ({"user_access_desc": "SINGLE_USER"}, "SINGLE_USER", "SET MULTI_USER WITH ROLLBACK IMMEDIATE;"),
        ({"state_desc": "OFFLINE"}, "OFFLINE", "-- ALTER DATABASE [Stock] SET ONLINE;"),
        ({"state_desc": "RECOVERY_PENDING"}, "RECOVERY_PENDING", "-- ALTER DATABASE [Stock] SET ONLINE;"),
        ({"state_desc": "RESTORING"}, "RESTORING", "-- RESTORE DATABASE [Stock] WITH RECOVERY;"),
        ({"is_read_only": 1, "is_in_standby": 1}, "standby", "-- RESTORE DATABASE [Stock] WITH RECOVERY;"),
        ({"state_desc": "SUSPECT"}, "SUSPECT", ""),
        ({"state_desc": "RECOVERING"}, "RECOVERING", ""),
    ],
)
def test_a_database_that_takes_no_messages(
    columns: dict[str, Any], words: str, statement: str, tmp_path: Path
) -> None:
    for number, status in enumerate(["", "The target service broker is unreachable."]):
        folder = tmp_path / str(number)
        shop(folder, status, 9753 if status else None, routes=AWAY)
        target(folder, **stored(**columns))
        remedy = only_remedy(folder)
        assert remedy.place == ("STOCK", "master")
        assert words in remedy.cause
        assert statement in (remedy.statement or "")
        assert (remedy.statement is None) is (statement == "")


def test_a_mirror_leads_to_its_principal(tmp_path: Path) -> None:
    mirror = [{"database_id": 5, "mirroring_role_desc": "MIRROR", "mirroring_partner_instance": "PRIME"}]
    shop(
        tmp_path,
        "The message could not be delivered because the database is a replica of a mirrored …",
        28018,
        routes=AWAY,
    )
    target(tmp_path, database_mirroring=mirror)
    assert "'PRIME'" in only_remedy(tmp_path).text


def test_a_route_to_the_mirror_gets_both_partners(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY, bound=GUID.format("5c5c5c5c"))
    roles = [{"database_id": 5, "name": "Stock", "mirroring_role_desc": "MIRROR"}]
    closed = stored(state_desc="RESTORING", service_broker_guid=ZERO)
    views: dict[str, Any] = {"routes": {"msdb": [route("AutoCreatedLocal")]}, "services": {"msdb": []}}
    target(tmp_path, **closed, **views, database_mirroring=roles)
    target(tmp_path, "PRIME", database_mirroring=[{**roles[0], "mirroring_role_desc": "PRINCIPAL"}])
    statement = only_remedy(tmp_path).statement or ""
    assert "ADDRESS = N'TCP://stock:4022', MIRROR_ADDRESS = N'tcp://PRIME:4022';" in statement


@pytest.mark.parametrize(("role", "is_led"), [("SECONDARY", True), (None, False)])
def test_a_replica_of_unknown_role_is_not_called_a_secondary(
    role: str | None, is_led: bool, tmp_path: Path
) -> None:
    shop(tmp_path, routes=AWAY)
    replica = [{"replica_server_name": "STOCK", "role_desc": role, "is_local": 1}]
    listener = [{"dns_name": "group", "port": 1433}]
    in_group = stored(group_database_id=GUID.format("99999999"))
    target(tmp_path, **in_group, availability_group_listeners=listener, availability_replicas=replica)
    target(tmp_path, "SPARE", **in_group, services=None, availability_group_listeners=listener)
    assert ("a secondary replica" in only_remedy(tmp_path).cause) is is_led


LOST_OWNER = "An exception occurred while enqueueing a message in the target queue. Error: 15517, State: 1."


@pytest.mark.parametrize(
    ("status", "number"),
    [
        *(("", None), (LOST_OWNER, 28005), (CLOSED, 9755)),
        *((LOST_OWNER.replace("15517", inner), 28005) for inner in ("911", "3609")),
    ],
)
def test_a_route_to_a_secondary_with_troubles_of_its_own_is_led_away(
    status: str, number: int | None, tmp_path: Path
) -> None:
    shop(tmp_path, status, number, routes=AWAY)
    replica = [{"replica_server_name": "STOCK", "role_desc": "SECONDARY", "is_local": 1}]
    in_group = stored(group_database_id=GUID.format("99999999"), is_broker_enabled=0)
    target(tmp_path, **in_group, availability_replicas=replica)
    remedy = only_remedy(tmp_path)
    assert "a secondary replica" in remedy.cause
    assert "ALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://<host>:4022';" in (remedy.statement or "")


@pytest.mark.parametrize(
    ("columns", "why"),
    [({"is_read_only": 1}, "is read-only"), ({"group_database_id": GUID.format("99999999")}, "at the primary")],
)
def test_a_statement_for_a_database_that_takes_no_changes_is_a_comment(
    columns: dict[str, Any], why: str, tmp_path: Path
) -> None:
    text = LOST_OWNER.replace("15517", "916")
    replica = [{"replica_server_name": "SHOP", "role_desc": "SECONDARY", "is_local": 1}]
    databases = [database("msdb", "d4d4d4d4", 4), database("Orders", "0d0d0d0d"), database("Stock", "5c5c5c5c", 6)]
    services = {"msdb": [], "Orders": [{"name": "//from"}], "Stock": [{"name": "//stock"}]}
    databases[1] |= columns
    routes = {"msdb": [route("AutoCreatedLocal")], "Orders": [route("AutoCreatedLocal")]}
    of_shop = {"databases": databases, "routes": routes, "services": services}
    shop(tmp_path, text, 28005, **of_shop, availability_replicas=replica)
    remedy = only_remedy(tmp_path)
    assert "-- ALTER DATABASE [Orders] SET TRUSTWORTHY ON;" in (remedy.statement or "")
    assert why in remedy.actions[-1]


OTHER_ID = 'Cannot enable the Service Broker in database "Stock" because its Service Broker GUID does not match.'


@pytest.mark.parametrize(("is_enabled", "option"), [(0, "ENABLE_BROKER WITH NO_WAIT"), (1, "NEW_BROKER")])
def test_another_id_beside_a_broker_that_is_off(is_enabled: int, option: str, tmp_path: Path) -> None:
    shop(tmp_path, OTHER_ID, 9776, routes=AWAY)
    target(tmp_path, **stored(is_broker_enabled=is_enabled))
    remedy = only_remedy(tmp_path)
    assert remedy.place == ("STOCK", "master")
    assert f"ALTER DATABASE [Stock] SET {option}" in (remedy.statement or "")


def test_dialogs_with_a_service_that_no_instance_holds_may_be_ended(tmp_path: Path) -> None:
    shop(tmp_path, routes={"msdb": [], "Orders": [route("AutoCreatedLocal")]})
    assert "If the service is gone, END CONVERSATION … WITH CLEANUP" in only_remedy(tmp_path).text


# A default route that leads away, and routes to an address that no known instance has.

UNNAMED = "Connection attempt failed with error: '11001(No such host is known.)'."
RESTORED = "ALTER ROUTE [AutoCreatedLocal] WITH ADDRESS = N'LOCAL';"


@pytest.mark.parametrize("status", [UNNAMED, TIMED_OUT, ""])
@pytest.mark.parametrize(
    ("services", "address"), [(["//stock"], None), ([], "tcp://<host>:<port>"), (None, "tcp://STOCK:4022")]
)
def test_an_altered_default_route_is_restored(
    services: list[str] | None, address: str | None, status: str, tmp_path: Path
) -> None:
    routes = {"msdb": [route("AutoCreatedLocal")], "Orders": [route("AutoCreatedLocal", None, "TCP://gone:4022")]}
    held = [{"name": name} for name in ["//from", *(services or [])]]
    number = 9754 if status else None
    shop(tmp_path, status, number, routes=routes, services={"msdb": [], "Orders": held})
    if services is None:
        target(tmp_path)
    remedy = only_remedy(tmp_path)
    statement = remedy.statement or ""
    assert remedy.place == ("SHOP", "Orders")
    assert RESTORED in statement
    assert remedy.is_complete is (address is None)
    assert ("CREATE ROUTE" in statement) is (address is not None)
    assert address is None or f"SERVICE_NAME = N'//stock', ADDRESS = N'{address}'" in statement


def test_an_altered_default_route_that_works_is_left_alone(tmp_path: Path) -> None:
    shop(
        tmp_path,
        REFUSED,
        9754,
        routes={"msdb": [], "Orders": [route("AutoCreatedLocal", None, "TCP://stock:4022")]},
    )
    target(tmp_path, service_broker_endpoints=[broker_endpoint("STOCK", state_desc="STOPPED")])
    assert "STATE = STARTED" in (only_remedy(tmp_path).statement or "")


def test_an_altered_default_route_of_msdb_is_restored(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY)
    routes = {"msdb": [route("AutoCreatedLocal", None, "TCP://gone:4022")], "Stock": [route("AutoCreatedLocal")]}
    target(tmp_path, routes=routes)
    remedy = only_remedy(tmp_path)
    assert (remedy.place, remedy.statement) == (("STOCK", "msdb"), f"USE [msdb];\n{RESTORED}")


def answering(folder: Path, status: str, *routes: dict[str, Any], **views: Any) -> Remedy:
    """The remedy for a reply of STOCK to //from, by a route to a host that is gone."""
    reply = {**waiting(1, "//from", transmission_status=status, error_number=9754 if status else None)}
    dialog = endpoint(1, is_initiator=0, far_service="//from", far_broker_instance=GUID.format("0d0d0d0d"))
    all_routes = {"Stock": [route("Back", "//from", "TCP://gone:4022")], "Other": list(routes)}
    target(
        folder,
        routes={"msdb": [route("AutoCreatedLocal")], **all_routes},
        transmission_queue={"Stock": [reply]},
        conversation_endpoints={"Stock": [dialog]},
        **views,
    )
    [group] = [one for one in check([str(folder)]).groups if one.first.row["instance_name"] == "STOCK"]
    return group.advice[0].remedy


@pytest.mark.parametrize("status", [UNNAMED, TIMED_OUT])
def test_a_reply_is_led_to_the_only_other_address_of_its_service(status: str, tmp_path: Path) -> None:
    remedy = answering(tmp_path, status, route("Back", "//from", "TCP://shop.example:4022"))
    assert "ALTER ROUTE [Back] WITH ADDRESS = N'TCP://shop.example:4022';" in (remedy.statement or "")
    assert remedy.is_complete is (status == UNNAMED)


@pytest.mark.parametrize("status", [UNNAMED, TIMED_OUT])
def test_the_query_for_an_unknown_address_is_named(status: str, tmp_path: Path) -> None:
    remedy = answering(tmp_path, status)
    assert "Run this on the server that holds '//from'" in remedy.actions[-1]
    assert "FROM sys.tcp_endpoints" in remedy.actions[-1]
    assert "0d0d0d0d" in remedy.actions[-1]


@pytest.mark.parametrize(
    ("views", "address"), [({}, "tcp://SHOP:4022"), ({"service_broker_endpoints": None}, "tcp://<host>:<port>")]
)
def test_acknowledgements_to_an_unknown_host(views: dict[str, Any], address: str, tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY, **views)
    dialog = endpoint(1, is_initiator=0, far_service="//from")
    routes = {"msdb": [route("AutoCreatedLocal")], "Stock": [route("Back", "//from", "TCP://gone:4022")]}
    target(tmp_path, routes=routes, conversation_endpoints={"Stock": [dialog]})
    remedy = only_remedy(tmp_path)
    assert remedy.place == ("STOCK", "Stock")
    assert f"ALTER ROUTE [Back] WITH ADDRESS = N'{address}';" in (remedy.statement or "")
    assert ("Run this on 'SHOP'" in remedy.text) is bool(views)


@pytest.mark.parametrize("role", ["MIRROR", None])
def test_a_route_without_an_id_gets_both_partners_if_the_mirror_is_exported(
    role: str | None, tmp_path: Path
) -> None:
    shop(tmp_path, TIMED_OUT, 9754, routes=AWAY)
    closed = stored(state_desc="RESTORING", service_broker_guid=ZERO)
    views: dict[str, Any] = {"routes": {"msdb": [route("AutoCreatedLocal")]}, "services": {"msdb": []}}
    mirror = [{"database_id": 5, "name": "Stock", "mirroring_role_desc": role}]
    target(tmp_path, **closed, **views, database_mirroring=mirror)
    target(tmp_path, "PRIME")
    statement = only_remedy(tmp_path).statement or ""
    assert ("MIRROR_ADDRESS = N'tcp://PRIME:4022'" in statement) is (role is not None)


def test_the_sender_is_in_single_user_mode(tmp_path: Path) -> None:
    orders = {**database("Orders", "0d0d0d0d"), "user_access_desc": "SINGLE_USER"}
    status = "The broker in the sender's database is in single user mode."
    shop(tmp_path, status, 28075, routes=AWAY, databases=[database("msdb", "d4d4d4d4", 4), orders])
    assert "ALTER DATABASE [Orders] SET MULTI_USER" in (only_remedy(tmp_path).statement or "")


@pytest.mark.parametrize(("is_anonymous", "user"), [(0, None), (1, "[public]")])
def test_an_anonymous_binding_sends_as_public(is_anonymous: int, user: str | None, tmp_path: Path) -> None:
    binding = {"remote_service_name": "//stock", "user_name": "StockUser", "is_anonymous_on": is_anonymous}
    shop(tmp_path, routes=AWAY, remote_service_bindings={"Orders": [binding]})
    grant_to_user = {"permission_name": "SEND", "object_name": "//stock", "grantee_name": "ShopUser"}
    target(tmp_path, database_permissions={"Stock": [grant_to_user]})
    statement = only_remedy(tmp_path).statement or ""
    assert (f"GRANT SEND ON SERVICE::[//stock] TO {user};" in statement) is (user is not None)


def test_a_bound_sender_without_a_grant(tmp_path: Path) -> None:
    binding = {"name": "b", "remote_service_name": "//stock", "user_name": "StockUser"}
    shop(tmp_path, routes=AWAY, remote_service_bindings={"Orders": [binding]})
    target(tmp_path, database_permissions={"Stock": []})
    assert "GRANT SEND ON SERVICE::[//stock] TO [<user>];" in (only_remedy(tmp_path).statement or "")


BINDING = {"name": "b", "remote_service_name": "//stock", "user_name": "StockUser"}
SENDERS = {"permission_name": "SEND", "object_name": "//stock", "grantee_name": "Wrong"}
NO_SEND = "The user does not have permission to access the service '//stock'."


def members(**roles: str) -> dict[str, Any]:
    """The members of roles, as rows of Stock's view."""
    rows = [{"role_name": role, "member_name": member} for role, member in roles.items()]
    return {"database_role_members": {"Stock": rows}}


@pytest.mark.parametrize("status", ["", NO_SEND])
@pytest.mark.parametrize("shown_by", ["certificate", "binding"])
def test_send_is_granted_to_the_wrong_user(status: str, shown_by: str, tmp_path: Path) -> None:
    own = certificate("ShopCert", pvt_key_encryption_type_desc="ENCRYPTED_BY_MASTER_KEY")
    copy = certificate(
        "Copy", subject="ShopCert", pvt_key_encryption_type_desc="NO_PRIVATE_KEY", user_name="ShopUser"
    )
    back = {"name": "back", "remote_service_name": "//from", "user_name": "ShopUser"}
    by_certificate = shown_by == "certificate"
    sent: dict[str, Any] = {"remote_service_bindings": {"Orders": [BINDING]}}
    there: dict[str, Any] = {"database_permissions": {"Stock": [SENDERS]}}
    if by_certificate:
        sent["certificates"], there["certificates"] = {"Orders": [own]}, {"Stock": [copy]}
    else:
        there["remote_service_bindings"] = {"Stock": [back]}
    shop(tmp_path, status, 8494 if status else None, routes=AWAY, **sent)
    target(tmp_path, **there, **(members(Readers="ShopUser") if not status else {}))
    remedy = only_remedy(tmp_path)
    assert remedy.statement == "USE [Stock];\nGRANT SEND ON SERVICE::[//stock] TO [ShopUser];"
    assert "only 'Wrong' has SEND" in remedy.cause
    assert "'ShopUser' of 'Stock'" in remedy.cause


CONTROL = {"permission_name": "CONTROL", "class_desc": "DATABASE"}


@pytest.mark.parametrize(
    ("permission", "roles", "words"),
    [
        (SENDERS, members(Wrong="ShopUser"), None),
        (SENDERS, members(Wrong="Partners", Partners="ShopUser"), None),
        (SENDERS, members(db_owner="ShopUser"), None),
        (SENDERS, members(Other="ShopUser"), "the target throws the messages away"),
        (SENDERS, {}, "if 'ShopUser' is no member of it"),
        ({**SENDERS, "permission_name": "CONTROL", "grantee_name": "ShopUser"}, members(), None),
        ({**CONTROL, "grantee_name": "ShopUser"}, members(), None),
        ({**SENDERS, "state_desc": "DENY"}, members(Wrong="ShopUser"), "is denied to 'Wrong'"),
    ],
)
def test_a_role_or_a_wider_permission_gives_send(
    permission: dict[str, Any], roles: dict[str, Any], words: str | None, tmp_path: Path
) -> None:
    shop(tmp_path, routes=AWAY, remote_service_bindings={"Orders": [BINDING]})
    back = {"name": "back", "remote_service_name": "//from", "user_name": "ShopUser"}
    target(
        tmp_path, database_permissions={"Stock": [permission]}, remote_service_bindings={"Stock": [back]}, **roles
    )
    remedy = only_remedy(tmp_path)
    assert ("SEND" in (remedy.statement or "")) is (words is not None)
    assert (words or "") in remedy.cause
    assert remedy.is_complete is (words is not None and bool(roles))


def test_nobody_knows_the_user_of_a_dialog_without_the_bindings(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY)
    target(tmp_path, database_permissions={"Stock": [SENDERS]})
    assert "GRANT SEND" not in (only_remedy(tmp_path).statement or "")


@pytest.mark.parametrize(
    ("error", "port", "statement"), [(8474, 1433, "stock:4022"), (10054, 4022, "GRANT CONNECT")]
)
def test_a_broken_connection_is_read_as_one(error: int, port: int, statement: str, tmp_path: Path) -> None:
    status = (
        f"An error occurred in a Service Broker/Database Mirroring transport connection endpoint, Error: {error},"
    )
    shop(tmp_path, f"{status} State: 11. (Near endpoint role: Initiator)", routes=to_stock(f"TCP://stock:{port}"))
    target(tmp_path)
    assert statement in (only_remedy(tmp_path).statement or "")


def test_a_user_without_access_to_the_target_is_granted_connect(tmp_path: Path) -> None:
    dropped = (
        "This message has been dropped because the user does not have permission to access the target database."
    )
    shop(tmp_path, dropped, 11211, routes=AWAY)
    target(
        tmp_path, remote_service_bindings={"Stock": [{"remote_service_name": "//from", "user_name": "ShopUser"}]}
    )
    assert only_remedy(tmp_path).statement == "USE [Stock];\nGRANT CONNECT TO [ShopUser];"


def test_a_denial_of_send_beats_the_grants(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY, remote_service_bindings={"Orders": [BINDING]})
    denial = {**SENDERS, "state_desc": "DENY", "grantee_name": "public"}
    target(tmp_path, database_permissions={"Stock": [denial, SENDERS]})
    assert only_remedy(tmp_path).statement == "USE [Stock];\nREVOKE SEND ON SERVICE::[//stock] FROM [public];"


@pytest.mark.parametrize(("user", "statement"), [(0, "GRANT SEND ON SERVICE::[//stock] TO [public];"), (7, None)])
def test_a_dialog_without_a_user_sends_as_public(user: int, statement: str | None, tmp_path: Path) -> None:
    status = f"The user with ID {user} in database ID 6 does not have permission to send. Service name: '//stock'."
    shop(tmp_path, status, 11215, routes=AWAY)
    target(tmp_path)
    remedy = only_remedy(tmp_path)
    assert remedy.is_complete is (statement is not None)
    assert (statement or "TO [<user>];") in (remedy.statement or "")


def test_the_holders_of_send_are_named(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY, remote_service_bindings={"Orders": [BINDING]})
    target(tmp_path, database_permissions={"Stock": [SENDERS]}, conversation_endpoints={"Stock": []})
    assert "SEND on '//stock' is granted to 'Wrong'" in only_remedy(tmp_path).text


def test_messages_that_arrive_need_no_grant(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY, remote_service_bindings={"Orders": []})
    arrived = [endpoint(1, is_initiator=0, far_service="//from")]
    target(tmp_path, database_permissions={"Stock": [SENDERS]}, conversation_endpoints={"Stock": arrived})
    assert "GRANT SEND" not in (only_remedy(tmp_path).statement or "")


def test_a_route_back_to_another_port_is_no_missing_export(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY)
    back = [route("Back", "//from", "TCP://shop:4023"), route("AutoCreatedLocal")]
    target(tmp_path, routes={"msdb": [route("AutoCreatedLocal")], "Stock": back})
    printed = print_check(check([str(tmp_path)]))
    assert "the instance at 'TCP://shop:4023' was not exported" not in printed
    assert "'SHOP' listens on port 4022" in printed


TRANSPORT = (
    "An error occurred in a Service Broker/Database Mirroring transport connection endpoint, Error: 8474,"
    " State: 11. (Near endpoint role: Target, far endpoint address: '{}')"
)


@pytest.mark.parametrize(
    ("lines", "summaries", "words"),
    [
        ([TRANSPORT.format("")] * 2, ["error 9642 with 8474 in the error log"], "exclude the port"),
        ([TRANSPORT.format("10.0.0.9:4022")], ["error 9642 with 8474 in the error log"], "'10.0.0.9:4022' break"),
        (["Error: 9697, Severity: 16, State: 1."], ["error 9697 in the error log"], "another error beside"),
        (["Error: 9691, Severity: 10, State: 1."], [], ""),
        (
            [refused("Connection handshake failed. An OS call failed: (8009030c) 0x8009030c(…). State 67.")],
            ["'STOCK' refuses logins"],
            "do not agree",
        ),
        (
            [refused("Connection handshake failed. There is no compatible encryption algorithm. State 22.")],
            ["'STOCK' refuses logins"],
            "use AES",
        ),
    ],
)
def test_errors_of_the_transport_where_nothing_waits(
    lines: list[str], summaries: list[str], words: str, tmp_path: Path
) -> None:
    whole_shop(tmp_path, [])
    target(tmp_path, **log(*lines))
    troubles = check([str(tmp_path)]).troubles
    assert [trouble.summary for trouble in troubles] == summaries
    assert all(trouble.kind is TroubleKind.TRANSPORT_FAILS for trouble in troubles)
    assert all(trouble.count == len(lines) and words in trouble.remedy.text for trouble in troubles)


def test_the_error_log_names_refused_messages(tmp_path: Path) -> None:
    whole_shop(tmp_path, [])
    target(
        tmp_path, **log("The service contract '//orders' is not found.", "Error: 8425, Severity: 16, State: 1.")
    )
    [trouble] = check([str(tmp_path)]).troubles
    assert (trouble.kind, trouble.count) == (TroubleKind.DIALOGS_IN_ERROR, 1)
    assert "says: The service contract '//orders' is not found." in trouble.remedy.text
    assert "ADD CONTRACT" in trouble.remedy.text


OWNED = {**database("Stock", "5c5c5c5c"), "owner_name": "CORP\\jane", "owner_is_known": 1, "owner_sid": "0x0105"}
OF_SA = {**database("Bills", "b1b1b1b1", 6), "owner_name": "root", "owner_sid": "0x01"}


@pytest.mark.parametrize(
    ("text", "words", "statement"),
    [
        (
            "{} Error: 33009, State: 2. The database owner SID … in database 'Stock'.",
            "The owner of the database",
            "USE [master];\nALTER AUTHORIZATION ON DATABASE::[Stock] TO [root];",
        ),
        (
            "{} Error: 15404, State: 19. … Windows NT group/user 'CORP\\jane', error code 0x5.",
            "The owner of the database",
            "USE [master];\nALTER AUTHORIZATION ON DATABASE::[Stock] TO [root];",
        ),
        (
            "{} Error: 15404, State: 19. … group/user 'CORP\\joe', error code 0x5.",
            "Give the database another",
            None,
        ),
        (
            "{} Error: 15517, State: 1. Cannot execute as the database principal …",
            "The owner of the database",
            "USE [master];\nALTER AUTHORIZATION ON DATABASE::[Lost] TO [root];",
        ),
        (
            "{} Error: 33019, State: 1. Cannot create implicit user for the special login 'root'.",
            "The owner of the database",
            "USE [master];\nALTER AUTHORIZATION ON DATABASE::[Lost] TO [root];",
        ),
        ("{} Error: 1105, State: 2. Could not allocate space …", "has no space left", None),
    ],
)
def test_the_error_log_names_what_keeps_messages_from_the_queue(
    text: str, words: str, statement: str | None, tmp_path: Path
) -> None:
    line = text.format("An exception occurred while enqueueing a message in the target queue.")
    whole_shop(tmp_path, [])
    lost = {**database("Lost", "10571057", 7), "owner_is_known": 0, "owner_sid": "0x0106"}
    databases = [{**OF_SA, **database("msdb", "d5d5d5d5", 4)}, OWNED, OF_SA, lost]
    target(tmp_path, databases=databases, **log("Error: 28005, Severity: 16, State: 2.", line))
    [trouble] = check([str(tmp_path)]).troubles
    assert (trouble.kind, trouble.count) == (TroubleKind.TRANSPORT_FAILS, 1)
    assert words in trouble.remedy.text
    assert trouble.remedy.statement == statement


def test_a_refusal_that_advice_quotes_is_no_further_trouble(tmp_path: Path) -> None:
    line = refused("Connection handshake failed. An OS call failed: (80090325) 0x80090325(…). State 89.")
    remedy = connecting(tmp_path, CLOSED, 9755, **log(line))
    assert "says why" in remedy.cause
    assert "same kind of authentication" in remedy.text
    assert check([str(tmp_path)]).troubles == []


# Statements that another place needs.


@pytest.mark.parametrize(
    ("address", "endpoints", "altered"),
    [
        ("TCP://STOCK\\TWO:1433", [broker_endpoint("STOCK", 4023)], "tcp://STOCK:4023"),
        ("TCP://other\\TWO:4025", [], "TCP://other:4025"),
        ("TCP://other\\TWO", [], "TCP://other:<port>"),
    ],
)
def test_an_address_that_names_an_instance(
    address: str, endpoints: list[Any], altered: str, tmp_path: Path
) -> None:
    shop(tmp_path, "The address is invalid.", 9785, routes=to_stock(address))
    target(tmp_path, "STOCK\\TWO", service_broker_endpoints=endpoints)
    assert f"ALTER ROUTE [ToStock] WITH ADDRESS = N'{altered}';" in (only_remedy(tmp_path).statement or "")


def test_a_secondary_without_a_known_listener_is_not_made_writable(tmp_path: Path) -> None:
    status = "An exception occurred while enqueueing a message in the target queue. Error: 976, State: 1."
    remedy = connecting(tmp_path, status, 28005)
    assert (remedy.place, "writable" in remedy.text) == (("SHOP", "Orders"), False)
    assert "ALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://<host>:4022';" in (remedy.statement or "")


@pytest.mark.parametrize(("number", "inner"), [(28014, 0), (28021, 0), (28005, 9001), (28005, 926)])
def test_an_open_database_is_not_opened(number: int, inner: int, tmp_path: Path) -> None:
    stock = {**database("Stock", "5c5c5c5c"), "state_desc": "ONLINE", "is_read_only": 0}
    remedy = connecting(
        tmp_path,
        f"It is closed. Error: {inner}, State: 1.",
        number,
        databases=[database("msdb", "d5d5d5d5", 4), stock],
    )
    assert remedy.place == ("STOCK", "Stock")
    assert "writable" not in remedy.text
    assert "is_enqueue_enabled" in (remedy.statement or "")


def test_a_stopped_endpoint_is_not_called_missing(tmp_path: Path) -> None:
    stopped = {"service_broker_endpoints": [broker_endpoint("SHOP", state_desc="STOPPED")]}
    remedy = connecting(tmp_path, "The endpoint is in disabled or stopped state.", 9666, stopped)
    assert "has no Service Broker endpoint" not in remedy.cause
    assert remedy.statement == "USE [master];\nALTER ENDPOINT [SHOP Broker] STATE = STARTED;"


@pytest.mark.parametrize("queued", [True, False])
def test_azure_without_service_broker_gets_no_statement(queued: bool, tmp_path: Path) -> None:
    orders = [database("Orders", "0d0d0d0d", 5, 0)]
    message = waiting(1, "//stock", transmission_status="The broker is disabled.", error_number=9791)
    whole_shop(tmp_path, [message] if queued else [], databases=orders, server_properties=[{"engine_edition": 5}])
    done = check([str(tmp_path)])
    remedies = [one.remedy for one in done.troubles] + [
        advice.remedy for group in done.groups for advice in group.advice
    ]
    assert {remedy.statement for remedy in remedies} == {None}
    assert all("no Service Broker" in remedy.cause for remedy in remedies)


def test_the_log_says_why_a_queue_is_off(tmp_path: Path) -> None:
    whole_shop(tmp_path, [])
    line = (
        "The activated proc '[dbo].[read]' running on queue 'Stock.dbo.StockQueue' output: 'Invalid object name'"
    )
    target(tmp_path, service_queues={"Stock": [{**QUEUE, "is_receive_enabled": 0}]}, **log(line))
    [trouble] = check([str(tmp_path)]).troubles
    assert line in trouble.remedy.text


# Queues whose activation does not receive.


def queued(folder: Path, monitor: dict[str, Any] | None = None, *lines: str, **columns: Any) -> Remedy:
    """The remedy for 40 messages in a queue of STOCK, while nothing waits; ``columns`` are those of the queue."""
    whole_shop(folder, [])
    monitors = [] if monitor is None else [{"database_id": 5, "queue_id": 70, "tasks_waiting": 0, **monitor}]
    queue = {**QUEUE, "messages": 40, **columns}
    target(folder, service_queues={"Stock": [queue]}, dm_broker_queue_monitors=monitors, **log(*lines))
    [trouble] = check([str(folder)]).troubles
    assert (trouble.kind, trouble.count) == (TroubleKind.QUEUE_NOT_READ, 40)
    return trouble.remedy


def test_an_activation_without_readers(tmp_path: Path) -> None:
    remedy = queued(tmp_path, max_readers=0)
    assert (
        remedy.statement == "USE [Stock];\nALTER QUEUE [dbo].[StockQueue] WITH ACTIVATION (MAX_QUEUE_READERS = 1);"
    )


def test_an_activated_procedure_that_fails(tmp_path: Path) -> None:
    line = (
        "The activated proc '[dbo].[read]' running on queue 'Stock.dbo.StockQueue' output the following:  'The"
        " EXECUTE permission was denied on the object 'take', database 'Stock', schema 'dbo'.'"
    )
    other = line.replace("StockQueue", "OtherQueue").replace("EXECUTE", "SELECT")
    remedy = queued(tmp_path, {"state": "NOTIFIED"}, other, line, execute_as_name="reader")
    assert "GRANT EXECUTE ON [dbo].[take] TO [reader];" in (remedy.statement or "")
    assert any(line in action for action in remedy.actions)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Could not find stored procedure 'dbo.read'.", "PROCEDURE_NAME = <procedure>"),
        ("Cannot execute as the user 'reader', because it does not exist.", "ACTIVATION (EXECUTE AS OWNER)"),
        (NO_PRINCIPAL.format("WebUser"), "ACTIVATION (EXECUTE AS OWNER)"),
        ("Please create a master key in the database or open the master key in the session …", "OPEN MASTER KEY"),
        ("Divide by zero error encountered.", "dm_broker_activated_tasks"),
    ],
)
def test_an_activated_procedure_that_no_grant_mends(text: str, expected: str, tmp_path: Path) -> None:
    line = (
        f"The activated proc '[dbo].[read]' running on queue 'Stock.dbo.StockQueue' output the following: '{text}'"
    )
    statement = queued(tmp_path, {"state": "NOTIFIED"}, line).statement or ""
    assert expected in statement
    assert "GRANT" not in statement


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Could not obtain information about Windows NT group/user 'CORP\\leaver'.", "ALTER AUTHORIZATION ON"),
        (NO_PRINCIPAL.format("dbo"), "ALTER AUTHORIZATION ON"),
        ("… because the current security context is not trusted.", "SET TRUSTWORTHY ON"),
        ("The module being executed is not trusted. Either the owner of …", "SET TRUSTWORTHY ON"),
        ("… or the assembly may not be trusted with PERMISSION_SET = UNSAFE.", "SET TRUSTWORTHY ON"),
        ("The database owner SID recorded in the master database differs …", "ALTER AUTHORIZATION ON"),
        ('The server principal "sa" is not able to access the database "Log".', "SET TRUSTWORTHY ON"),
    ],
)
def test_an_activated_procedure_without_a_valid_context(text: str, expected: str, tmp_path: Path) -> None:
    """sys.service_queues does not count the messages of a queue."""
    line = (
        f"The activated proc '[dbo].[read]' running on queue 'Stock.dbo.StockQueue' output the following: '{text}'"
    )
    whole_shop(tmp_path, [])
    target(tmp_path, service_queues={"Stock": [{**QUEUE, "messages": None}]}, **log(line))
    [trouble] = check([str(tmp_path)]).troubles
    assert trouble.kind is TroubleKind.QUEUE_NOT_READ
    assert trouble.remedy.place == ("STOCK", "master")
    assert expected in (trouble.remedy.statement or "")


def test_an_activated_procedure_that_receives_nothing(tmp_path: Path) -> None:
    assert "receives nothing" in queued(tmp_path / "started", {"state": "NOTIFIED"}).cause
    # A queue with an activation that works is no trouble.
    whole_shop(tmp_path / "well", [])
    target(tmp_path / "well", service_queues={"Stock": [{**QUEUE, "messages": 40}]})
    assert check([str(tmp_path / "well")]).troubles == []


def test_messages_that_waiting_readers_do_not_take(tmp_path: Path) -> None:
    remedy = queued(tmp_path / "locked", {"tasks_waiting": 3})
    assert "3 programs wait" in remedy.cause
    remedy = queued(tmp_path / "kept", {"tasks_waiting": 3}, is_retention_enabled=1)
    assert "ALTER QUEUE [dbo].[StockQueue] WITH RETENTION = OFF;" in (remedy.statement or "")


# A queue of which a question shows only two columns.


def test_an_export_with_only_services_and_statuses_gives_advice(tmp_path: Path) -> None:
    status = "The target service name could not be found."
    (tmp_path / "queue.csv").write_text(f"to_service_name,transmission_status\n//stock,{status}\n", "utf-8")
    routes = "name,remote_service_name,address\nAutoCreatedLocal,NULL,LOCAL\nToStock,//Stock,TCP://stock:4022\n"
    (tmp_path / "routes.csv").write_text(routes, "utf-8")
    done = check([str(tmp_path)])
    [group] = done.groups
    assert group.advice[0].remedy.statement == "ALTER ROUTE [ToStock] WITH SERVICE_NAME = N'//stock';"
    text = print_check(done)
    assert "waiting: for an unknown time" in text
    assert "a message whose conversation handle was not exported" in text
    [note] = [note for note in done.evidence.log.notes if "it lacks" in note]
    assert "conversation_handle, enqueue_time, message_sequence_number" in note


def test_addresses_that_the_view_does_not_have(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY, service_broker_endpoints=[broker_endpoint("SHOP", machine_name=None)])
    assert "give --address, or export by sbroute import queries" in print_check(check([str(tmp_path)]))


# How many messages END CONVERSATION would discard.


@pytest.mark.parametrize(("number", "waiting_too"), [(9719, True), (9784, False)])
def test_the_messages_that_would_be_lost_are_counted(number: int, waiting_too: bool, tmp_path: Path) -> None:
    queue = [waiting(each, "//stock", transmission_status="…", error_number=number) for each in (1, 2)]
    ends = [endpoint(each, far_service="//stock", state="CO", service_name="//from") for each in (1, 2)]
    whole_shop(
        tmp_path,
        queue,
        ends,
        routes=AWAY,
        services={"msdb": [], "Orders": [{"name": "//from", "service_id": 7, "service_queue_id": 70}]},
        service_queues={"Orders": [{**QUEUE, "name": "Replies", "messages": 5}]},
    )
    risk = only_remedy(tmp_path).risk or ""
    assert "5 messages in queue 'Replies'" in risk
    assert ("2 messages in the transmission queue" in risk) is waiting_too


def test_the_messages_that_a_clean_up_would_discard_are_counted(tmp_path: Path) -> None:
    closed = [endpoint(1000 + each, service_name="//orders", state="CD", is_initiator=0) for each in range(150)]
    services = {"msdb": [], "Orders": [{"name": "//orders", "service_id": 7, "service_queue_id": 70}]}
    queues = {"Orders": [{**QUEUE, "messages": 3}]}
    whole_shop(tmp_path, [], closed, services=services, service_queues=queues)
    [leak] = check([str(tmp_path)]).troubles
    assert "3 messages in queue 'StockQueue'" in (leak.remedy.risk or "")


@pytest.mark.parametrize(("state", "cleanup"), [("DI", False), ("DO", True)])
def test_endpoints_are_ended_by_the_side_that_keeps_them(state: str, cleanup: bool, tmp_path: Path) -> None:
    count = {"state": state, "service_name": "//orders", "far_service": "//stock", "endpoints": 400}
    whole_shop(tmp_path, [], [], endpoint_counts={"Orders": [count]})
    [leak] = check([str(tmp_path)]).troubles
    assert f"e.state = '{state}'" in (leak.remedy.statement or "")
    assert ("END CONVERSATION @handle WITH CLEANUP" in (leak.remedy.statement or "")) is cleanup
    assert ("acknowledgement" in leak.remedy.text) is cleanup


@pytest.mark.parametrize(
    ("line", "is_permission"),
    [
        ("INSERT failed because the following SET options have incorrect settings: 'QUOTED_IDENTIFIER'.", False),
        ("Uncommittable transaction is detected at the end of the batch.", False),
        ("VIEW SERVER STATE permission was denied on object 'server'.", True),
    ],
)
def test_only_a_refused_procedure_gets_words_on_permissions(
    line: str, is_permission: bool, tmp_path: Path
) -> None:
    services = {"msdb": [], "Orders": [{"name": "//orders", "service_id": 7, "service_queue_id": 70}]}
    views: dict[str, Any] = {"services": services, "service_queues": {"Orders": [{**QUEUE, "messages": 3}]}}
    said = f"The activated proc '[dbo].[read]' running on queue 'Orders.dbo.StockQueue' output: '{line}'"
    whole_shop(tmp_path, [], **views, **log(said))
    [trouble] = check([str(tmp_path)]).troubles
    assert ("TRUSTWORTHY" in trouble.remedy.text) is is_permission


@pytest.mark.parametrize(("at", "is_on"), [("2026-01-05T18:00:00Z", True), ("2026-01-05T17:00:00Z", False)])
def test_a_queue_that_is_on_by_now_is_not_turned_on(at: str, is_on: bool, tmp_path: Path) -> None:
    shop(tmp_path, 'The service queue "StockQueue" is currently disabled.', 9617, routes=AWAY)
    target(tmp_path, at=at, service_queues={"Stock": [QUEUE]})
    remedy = only_remedy(tmp_path)
    assert ("is on by this export" in remedy.cause) is (remedy.statement is None) is is_on


def test_a_mirror_without_services_leads_to_both_partners(tmp_path: Path) -> None:
    shop(tmp_path, "The database is a replica of a mirrored database.", 28018, routes=AWAY)
    mirror = {"mirroring_role_desc": "MIRROR", "mirroring_partner_instance": "STOCK2", "database_id": 5}
    target(tmp_path, database_mirroring=[mirror], services={"msdb": []}, **stored(state_desc="RESTORING"))
    target(tmp_path, "STOCK2", database_mirroring=[{**mirror, "mirroring_role_desc": "PRINCIPAL"}])
    remedy = only_remedy(tmp_path)
    assert remedy.cause.startswith("The mirror of the database is at 'TCP://stock:4022'")
    assert "MIRROR_ADDRESS = N'tcp://STOCK2:4022';" in (remedy.statement or "")


@pytest.mark.parametrize("is_known", [True, False])
def test_a_target_that_lacks_the_certificate_of_the_sender(is_known: bool, tmp_path: Path) -> None:
    binding = {"name": "b", "remote_service_name": "//stock", "user_name": "StockUser"}
    own, copied = (
        {"pvt_key_encryption_type_desc": kind} for kind in ("ENCRYPTED_BY_MASTER_KEY", "NO_PRIVATE_KEY")
    )
    certificates = {"Orders": [certificate("ShopCert", user_name="dbo", **own)]}
    copies = [certificate("ShopCert", user_name="ShopUser", **copied)] if is_known else []
    sending = {"class_desc": "SERVICE", "permission_name": "SEND", "object_name": "//stock", "state_desc": "GRANT"}
    shop(tmp_path, routes=AWAY, remote_service_bindings={"Orders": [binding]}, certificates=certificates)
    grants = {"Stock": [{**sending, "grantee_name": "ShopUser"}]}
    held = {"Stock": [*copies, certificate("StockCert", user_name="dbo", **own)]}
    target(tmp_path, certificates=held, database_permissions=grants, conversation_endpoints={"Stock": []})
    statement = only_remedy(tmp_path).statement or ""
    assert ("CREATE CERTIFICATE [ShopCert] AUTHORIZATION [ShopUser] FROM FILE" in statement) is not is_known


@pytest.mark.parametrize("state", ["DROPPED", None])
def test_a_queue_without_a_monitor_is_activated_again(state: str | None, tmp_path: Path) -> None:
    services = {"msdb": [], "Orders": [{"name": "//orders", "service_id": 7, "service_queue_id": 70}]}
    other = {"database_id": 5, "queue_id": 71, "tasks_waiting": 0}
    views: dict[str, Any] = {"services": services, "service_queues": {"Orders": [{**QUEUE, "messages": 3}]}}
    views["dm_broker_queue_monitors"] = [other if state is None else {**other, "queue_id": 70, "state": state}]
    whole_shop(tmp_path, [], **views)
    [trouble] = check([str(tmp_path)]).troubles
    assert "ACTIVATION (STATUS = OFF);" in (trouble.remedy.statement or "")


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_user_without_a_token_may_be_the_owner_of_the_target(is_lost: bool, tmp_path: Path) -> None:
    shop(tmp_path, "Could not create user token for user 1 in database 5.", 28020, routes=AWAY)
    target(tmp_path, **stored(owner_sid="0x0105", owner_is_known=int(not is_lost)))
    remedy = only_remedy(tmp_path)
    assert ("ALTER AUTHORIZATION ON DATABASE::[Stock] TO [sa];" in (remedy.statement or "")) is is_lost


def test_a_duplicate_comes_of_the_missing_way_back(tmp_path: Path) -> None:
    status = "This message could not be delivered because it is a duplicate."
    shop(tmp_path, status, 11218, routes=AWAY)
    target(tmp_path, routes={"msdb": [route("AutoCreatedLocal")], "Stock": [route("AutoCreatedLocal")]})
    assert "No acknowledgement comes back" in only_remedy(tmp_path).cause


def test_the_broker_of_msdb_is_off(tmp_path: Path) -> None:
    databases = [database("msdb", "d4d4d4d4", 4, is_enabled=0), database("Orders", "0c0c0c0c")]
    whole_shop(tmp_path, [], databases=databases)
    [trouble] = check([str(tmp_path)]).troubles
    assert trouble.kind is TroubleKind.BROKER_OFF
    assert trouble.remedy.statement == "USE [master];\nALTER DATABASE [msdb] SET ENABLE_BROKER WITH NO_WAIT;"
    assert "ALTER DATABASE [msdb] SET ENABLE_BROKER WITH ROLLBACK IMMEDIATE" in trouble.remedy.text


def test_without_a_queue_the_brokers_that_are_off_are_troubles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = database("Copy", "0d0d0d0d", 6, is_enabled=0)
    databases = [database("msdb", "d4d4d4d4", 4), database("Orders", "0d0d0d0d"), copy]
    whole_shop(tmp_path, [], transmission_queue=None, databases=databases)
    assert cli.main(["check", str(tmp_path)]) == 2
    printed = " ".join(capsys.readouterr().out.split())
    assert "no transmission queue was exported; the other exports show: the broker of 'Copy' is off" in printed
    assert "ALTER DATABASE [Copy] SET NEW_BROKER" in printed
    assert "No message waits" not in printed


def test_closed_endpoints_are_those_of_their_own_services(tmp_path: Path) -> None:
    closed = {"state": "CD", "service_name": "//orders", "is_initiator": 0, "endpoints": 9_000}
    ended = {"state": "DI", "service_name": "//from", "is_initiator": 1, "endpoints": 1_000}
    whole_shop(tmp_path, [], [], endpoint_counts={"Orders": [closed, ended]})
    [leak] = check([str(tmp_path)]).troubles
    assert leak.count == 10_000
    assert "9,000 closed conversation endpoints of '//orders' stay in 'Orders'" in leak.remedy.cause


@pytest.mark.parametrize("bound", [None, BOUND, ELSEWHERE])
@pytest.mark.parametrize("are_routes_known", [True, False])
def test_a_closed_database_may_hold_a_service_of_its_own_instance(
    bound: str | None, are_routes_known: bool, tmp_path: Path
) -> None:
    closed = {**database("Stock", "5c5c5c5c", 6), "state_desc": "RESTORING"}
    databases = [database("msdb", "d4d4d4d4", 4), database("Orders", "0d0d0d0d"), closed]
    here = {name: [route("AutoCreatedLocal")] for name in ("msdb", "Orders")} if are_routes_known else None
    shop(tmp_path, "The target service broker is disabled.", 28012, routes=here, databases=databases, bound=bound)
    [group] = check([str(tmp_path)]).groups
    statements = [advice.remedy.statement or "" for advice in group.advice]
    assert any("RESTORE DATABASE [Stock] WITH RECOVERY;" in line for line in statements) is are_routes_known


def test_a_queue_of_unknown_services_is_a_trouble_if_it_is_off(tmp_path: Path) -> None:
    whole_shop(tmp_path, [])
    off = {**QUEUE, "is_receive_enabled": 0}
    target(tmp_path, services={"msdb": [], "Stock": [{"name": "//stock"}]}, service_queues={"Stock": [off]})
    [trouble] = check([str(tmp_path)]).troubles
    assert (trouble.kind, trouble.remedy.cause) == (TroubleKind.QUEUE_OFF, "Queue 'StockQueue' is off.")


def test_an_expired_dialog_is_answered_once(tmp_path: Path) -> None:
    ends = [endpoint(number, lifetime="2026-01-02T00:00:00", far_service="//stock") for number in (1, 2)]
    said = waiting(1, "//stock", transmission_status="The dialog lifetime has expired.", error_number=8489)
    whole_shop(tmp_path, [said, waiting(2, "//stock")], ends)
    [group] = check([str(tmp_path)]).groups
    [advice] = group.advice
    assert advice.count == 2
    assert "END CONVERSATION" in (advice.remedy.statement or "")


def test_a_queue_of_another_holder_is_named_as_off(tmp_path: Path) -> None:
    holders = [database("msdb", "d5d5d5d5", 4), database("Was", "5d5d5d5d", 7), database("Stock", "5c5c5c5c")]
    service = [{"name": "//stock", "service_id": 7, "service_queue_id": 70}]
    queues = {"Stock": [QUEUE], "Was": [{**QUEUE, "is_enqueue_enabled": 0}]}
    shop(tmp_path, routes=AWAY)
    services = {"msdb": [], "Stock": service, "Was": service}
    target(tmp_path, databases=holders, services=services, service_queues=queues)
    assert "'Was' (its queue is off) of 'STOCK' holds the service too" in only_remedy(tmp_path).text


@pytest.mark.parametrize("state", ["CO", "SO"])
def test_dialogs_that_nobody_ends_are_troubles(state: str, tmp_path: Path) -> None:
    counts = [{"state": state, "service_name": "//orders", "far_service": "//stock", "endpoints": 90_000}]
    other_end = {**counts[0], "service_name": "//stock", "far_service": "//orders", "is_initiator": 0}
    rows = [{**counts[0], "is_initiator": 1}, other_end, {**counts[0], "far_service": "//any", "endpoints": 40}]
    whole_shop(tmp_path, [], [], endpoint_counts={"Orders": rows})
    [leak] = check([str(tmp_path)]).troubles
    assert (leak.kind, leak.count) == (TroubleKind.ENDPOINTS_LEAK, 90_000)
    assert leak.remedy.confidence is Confidence.TO_BE_CHECKED
    assert "END CONVERSATION" not in (leak.remedy.statement or "")


def test_dialogs_whose_messages_wait_are_no_leak(tmp_path: Path) -> None:
    rows = [waiting(number, "//stock") for number in range(1, 41)]
    counts = [{"state": "CO", "service_name": "//orders", "far_service": "//stock", "endpoints": 520}]
    whole_shop(tmp_path, rows, endpoint_counts={"Orders": counts})
    assert check([str(tmp_path)]).troubles == []


def test_messages_wait_in_both_directions(tmp_path: Path) -> None:
    rows = [waiting(number, "//orders") for number in range(1, 41)]
    one = {"state": "CO", "service_name": "//orders", "far_service": "//stock", "is_initiator": 1, "endpoints": 10}
    other = {**one, "service_name": "//stock", "far_service": "//orders", "endpoints": 520}
    whole_shop(tmp_path, rows, endpoint_counts={"Orders": [one, other]})
    assert [trouble.kind for trouble in check([str(tmp_path)]).troubles] == []


@pytest.mark.parametrize(
    ("service", "habit"),
    [
        ("SqlQueryNotificationService-{}", "SqlDependency.Start once"),
        ("dbo_Items_{}_Receiver", "Stop or Dispose"),
        ("SQL/Notifications/ProcessWMIEventProviderNotification/v1.0", "queries WMI"),
    ],
)
@pytest.mark.parametrize("state", ["CO", "DI"])
def test_programs_of_live_clients_are_told_their_own_habit(
    service: str, habit: str, state: str, tmp_path: Path
) -> None:
    name = service.format(LEFT)
    services = {"msdb": [], "Orders": [{"name": name, "service_id": 7, "service_queue_id": 70}]}
    counts = {"Orders": [{"state": state, "service_name": name, "far_service": "//any", "endpoints": 900}]}
    views: dict[str, Any] = {"services": services, "service_queues": {"Orders": [QUEUE]}}
    views["dm_broker_queue_monitors"] = [{"database_id": 5, "queue_id": 70, "tasks_waiting": 1}]
    whole_shop(tmp_path, [], [], endpoint_counts=counts, **views)
    [leak] = check([str(tmp_path)]).troubles
    assert habit in leak.remedy.text
    assert ("SqlDependency" in leak.remedy.text) is ("SqlDependency" in habit)


@pytest.mark.parametrize(("messages", "of_own"), [((0, 7), False), ((9, 0), True)])
def test_a_queue_whose_program_the_external_activator_starts(
    messages: tuple[int, int], of_own: bool, tmp_path: Path
) -> None:
    names = ("ExternalActivatorService", "//orders")
    services = [{"name": name, "service_queue_id": 70 + number} for number, name in enumerate(names)]
    bare = {**QUEUE, "activation_procedure": None, "is_activation_enabled": 0}
    queues = [
        {**bare, "object_id": 70 + number, "name": name, "messages": messages[number]}
        for number, name in enumerate(("ExternalActivatorQueue", "OrdersQueue"))
    ]
    monitors = [{"database_id": 5, "queue_id": queue, "tasks_waiting": 0} for queue in (70, 71)]
    views: dict[str, Any] = {"service_queues": {"Orders": queues}, "services": {"msdb": [], "Orders": services}}
    whole_shop(tmp_path, [], [], dm_broker_queue_monitors=monitors, **views)
    [trouble] = check([str(tmp_path)]).troubles
    assert "External Activator" in trouble.remedy.cause
    assert ("its program" in trouble.remedy.cause) is of_own
    assert "ALTER QUEUE" not in (trouble.remedy.statement or "")


@pytest.mark.parametrize(("initiator", "troubles"), [("DO", 1), ("CD", 2)])
def test_ends_that_only_one_side_has_ended_are_one_leak(initiator: str, troubles: int, tmp_path: Path) -> None:
    ours = {"state": "CO", "service_name": "//orders", "far_service": "//from", "is_initiator": 0}
    theirs = {"state": initiator, "service_name": "//from", "far_service": "//orders", "is_initiator": 1}
    counts = {"Orders": [{**end, "endpoints": 900} for end in (ours, theirs)]}
    whole_shop(tmp_path, [], [], endpoint_counts=counts)
    assert len(check([str(tmp_path)]).troubles) == troubles


def test_a_queue_may_have_a_program_that_notifications_start(tmp_path: Path) -> None:
    service = "http://schemas.microsoft.com/SQL/Notifications/EventNotificationService"
    counts = [
        {"state": "CO", "service_name": "//notify", "far_service": service, "is_initiator": 0, "endpoints": 1}
    ]
    queue = {**QUEUE, "activation_procedure": None, "is_activation_enabled": 0, "messages": 7}
    services = {"msdb": [], "Orders": [{"name": "//orders", "service_id": 7, "service_queue_id": 70}]}
    views: dict[str, Any] = {"services": services, "service_queues": {"Orders": [queue]}}
    whole_shop(tmp_path, [], [], endpoint_counts={"Orders": counts}, **views)
    [trouble] = check([str(tmp_path)]).troubles
    assert "leave the activation off" in trouble.remedy.actions[0]


def test_mail_waits_for_the_broker_of_msdb(tmp_path: Path) -> None:
    services = {"msdb": [{"name": "ExternalMailService", "service_id": 7, "service_queue_id": 70}], "Orders": []}
    queues = {"msdb": [{**QUEUE, "name": "ExternalMailQueue", "messages": 5}]}
    databases = [database("msdb", "d4d4d4d4", 4, 0), database("Orders", "0d0d0d0d")]
    whole_shop(tmp_path, [], services=services, service_queues=queues, databases=databases)
    assert [trouble.kind for trouble in check([str(tmp_path)]).troubles] == [TroubleKind.BROKER_OFF]


@pytest.mark.parametrize("test_broker", ["bbbbbbbb", "aaaaaaaa"])
def test_routes_to_several_broker_instances_are_named(test_broker: str, tmp_path: Path) -> None:
    brokers = {"Prod": GUID.format("aaaaaaaa"), "Test": GUID.format(test_broker)}
    routes = [
        route(name, "//stock", f"TCP://{name}:4022", broker_instance=broker) for name, broker in brokers.items()
    ]
    message = waiting(1, "//stock", to_broker_instance=brokers["Test"])
    whole_shop(tmp_path, [message], routes={"msdb": [], "Orders": routes})
    actions = only_remedy(tmp_path).actions
    is_named = f"'Prod' to '{brokers['Prod']}' and 'Test' to '{brokers['Test']}'" in actions[0]
    assert is_named is ("BEGIN DIALOG" in actions[1]) is (test_broker == "bbbbbbbb")


def test_a_client_that_is_gone_hides_neither_errors_nor_a_queue_that_is_off(tmp_path: Path) -> None:
    client = f"SqlQueryNotificationService-{LEFT}"
    services = {"msdb": [], "Orders": [{"name": client, "service_id": 7, "service_queue_id": 70}]}
    queues = {"Orders": [{**QUEUE, "is_receive_enabled": 0}]}
    counts = {"Orders": [{"state": "ER", "service_name": client, "far_service": "//any", "endpoints": 2}]}
    whole_shop(tmp_path, [], [], services=services, service_queues=queues, endpoint_counts=counts)
    kinds = [trouble.kind for trouble in check([str(tmp_path)]).troubles]
    assert kinds == [TroubleKind.QUEUE_OFF, TroubleKind.DIALOGS_IN_ERROR]


MAIL_DENIED = "The EXECUTE permission was denied on the object 'sp_send_dbmail', database 'msdb', schema 'dbo'."
POLICY = (
    'Cannot execute as the database principal because the principal "##MS_PolicyEventProcessingLogin##" does not.'
)
_USER = "[##MS_PolicyEventProcessingLogin##]"


@pytest.mark.parametrize(
    ("line", "trusted", "change"),
    [
        (MAIL_DENIED, 0, "ALTER DATABASE [Orders] SET TRUSTWORTHY ON;"),
        (MAIL_DENIED, 1, "dm_broker_activated_tasks"),
        (POLICY, 0, f"ALTER USER {_USER} WITH LOGIN = {_USER};"),
    ],
)
def test_a_procedure_that_fails_in_another_database_gets_no_grant_here(
    line: str, trusted: int, change: str, tmp_path: Path
) -> None:
    queue = {**QUEUE, "is_activation_enabled": 1, "activation_procedure": "[dbo].[p]", "messages": 5}
    services = {"msdb": [], "Orders": [{"name": "//orders", "service_id": 7, "service_queue_id": 70}]}
    trusting = {**database("Orders", "0d0d0d0d"), "is_trustworthy_on": trusted, "owner_sid": "0x01"}
    failure = (
        f"The activated proc '[dbo].[p]' running on queue 'Orders.dbo.StockQueue' output the following: '{line}'"
    )
    databases = [database("msdb", "d4d4d4d4", 4), trusting]
    queues = {"Orders": [queue]}
    whole_shop(tmp_path, [], services=services, service_queues=queues, databases=databases, **log(failure))
    [trouble] = check([str(tmp_path)]).troubles
    statement = trouble.remedy.statement or ""
    assert change in statement
    assert not any(words in statement for words in ("GRANT", "EXECUTE AS OWNER"))


def test_queues_of_sql_server_itself_need_no_reader(tmp_path: Path) -> None:
    wmi = "SQL/Notifications/ProcessWMIEventProviderNotification/v1.0"
    errors = "http://schemas.microsoft.com/SQL/Notifications/EventNotificationService"
    services = {
        name: [{"name": service, "service_id": 7, "service_queue_id": 70}]
        for name, service in (("msdb", wmi), ("Orders", errors))
    }
    queue = {**QUEUE, "activation_procedure": None, "messages": 7}
    whole_shop(tmp_path, [], [], services=services, service_queues={"msdb": [queue], "Orders": [queue]})
    [trouble] = check([str(tmp_path)]).troubles
    assert trouble.kind is TroubleKind.CLIENTS_GONE
    assert "DROP EVENT NOTIFICATION [<name>] ON SERVER;" in (trouble.remedy.statement or "")
    assert "ALTER QUEUE" not in (trouble.remedy.statement or "")


@pytest.mark.parametrize(
    "status", ["The Service Broker protocol transport is not available.", "Error: 916, State: 3."]
)
def test_amazon_rds_gets_no_statement_that_it_refuses(status: str, tmp_path: Path) -> None:
    databases = [
        database("msdb", "d4d4d4d4", 4),
        database("Orders", "0d0d0d0d"),
        database("rdsadmin", "05050505", 6),
    ]
    nothing = [dict.fromkeys(("endpoint_id", "is_message_forwarding_enabled", "machine_name", "port"))]
    service, number = ("//stock", 9748) if "transport" in status else ("//orders", 28005)
    message = waiting(1, service, transmission_status=status, error_number=number)
    whole_shop(tmp_path, [message], databases=databases, service_broker_endpoints=nothing)
    remedy = only_remedy(tmp_path)
    assert remedy.statement is None
    assert "'SHOP' is Amazon RDS" in remedy.actions[0]
    assert not any("Create an endpoint" in action or "TRUSTWORTHY" in action for action in remedy.actions)


LEFT = "1f0a6b1c-7d88-4b7a-9d5e-2f0a6b1c7d88"


@pytest.mark.parametrize(("tasks", "kind"), [(None, "CLIENTS_GONE"), (0, "CLIENTS_GONE"), (1, None)])
@pytest.mark.parametrize(
    ("library", "service", "dropped"),
    [
        ("SqlDependency", f"SqlQueryNotificationService-{LEFT}", f"SqlQueryNotificationQueue-{LEFT}"),
        ("SqlTableDependency", f"dbo_Items_{LEFT}_Receiver", f"tr_dbo_Items_{LEFT}_Sender"),
    ],
)
def test_the_objects_of_a_client_that_is_gone_are_dropped(
    library: str, service: str, dropped: str, tasks: int | None, kind: str | None, tmp_path: Path
) -> None:
    services = {"msdb": [], "Orders": [{"name": service, "service_id": 7, "service_queue_id": 70}]}
    queue = {**QUEUE, "activation_procedure": None, "messages": 0 if tasks else 16_302_361}
    monitors = None if tasks is None else [{"database_id": 5, "queue_id": 70, "tasks_waiting": tasks}]
    counts = [{"state": "CO", "service_name": service, "far_service": "//any", "endpoints": 400}]
    views = {"service_queues": {"Orders": [queue]}, "endpoint_counts": {"Orders": counts}}
    whole_shop(tmp_path, [], [], services=services, dm_broker_queue_monitors=monitors, **views)
    troubles = check([str(tmp_path)]).troubles
    assert [trouble.kind for trouble in troubles] == ([] if kind is None else [kind])
    for trouble in troubles:
        assert f"1 client of {library} has 16,302,361 unread messages and 400 dialogs" in trouble.remedy.cause
        assert f"[{dropped}];" in (trouble.remedy.statement or "")
        assert ("tasks_waiting" in trouble.remedy.text) is (tasks is None)


# What the project's own session of Extended Events recorded.


UNDELIVERABLE = "broker_message_undeliverable"


def undeliverable(number: int, reason: str) -> str:
    """The event of a message that an instance throws away."""
    fields = {
        "conversation_id": "C0000001-0000-4000-8000-000000000000",
        "is_initiator": "true",
        "error_number": str(number),
        "message_drop_reason": reason,
    }
    data = "".join(f'<data name="{name}"><value>{value}</value></data>' for name, value in fields.items())
    return f'<event name="{UNDELIVERABLE}" timestamp="2026-01-05T12:02:00.000Z">{data}</event>'


@pytest.mark.parametrize(("number", "is_replica"), [(28018, True), (28014, False)])
def test_a_status_that_names_a_mirror_leads_to_the_principal(
    number: int, is_replica: bool, tmp_path: Path
) -> None:
    stock = {**database("Stock", "5c5c5c5c"), "state_desc": "ONLINE"}
    shop(tmp_path, "The database takes nothing.", number, routes=AWAY)
    target(tmp_path, databases=[database("msdb", "d5d5d5d5", 4), stock])
    assert ("let the route lead to the principal" in only_remedy(tmp_path).text) is is_replica


def test_a_duplicate_is_not_a_message_that_is_lost(tmp_path: Path) -> None:
    event = undeliverable(11218, "This message could not be delivered because it is a duplicate.")
    arrived = {"Stock": [endpoint(1, is_initiator=0, far_service="//orders")]}
    shop(tmp_path, routes=AWAY)
    target(tmp_path, broker_events=[{"event_data": event}], conversation_endpoints=arrived)
    assert "Their acknowledgement is lost" in only_remedy(tmp_path).cause


@pytest.mark.parametrize(
    ("number", "reason", "words"),
    [
        (11210, "This message has been dropped because the TO service could not be found.", "Compare the names"),
        (
            11225,
            "This message could not be delivered because the message type name could not be found.",
            "there too",
        ),
        (11230, "The message could not be decrypted and validated.", "Create a certificate"),
        (11282, "This message has been dropped due to licensing restrictions.", "MESSAGE_FORWARDING"),
        (11211, "The user does not have permission to access the target database.", "Run GRANT CONNECT"),
        (11213, "This is not the first message in the conversation.", "begin a new dialog"),
        (11290, "The time to live is over.", "The time to live is over."),
    ],
)
def test_the_reason_of_a_discarded_message_is_explained(
    number: int, reason: str, words: str, tmp_path: Path
) -> None:
    shop(tmp_path, routes=AWAY)
    target(tmp_path, broker_events=[{"event_name": UNDELIVERABLE, "event_data": undeliverable(number, reason)}])
    remedy = only_remedy(tmp_path)
    assert words in remedy.text
    assert "is not known here" not in remedy.text


def test_a_recorded_event_of_a_missing_permission_gets_the_grant(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY, remote_service_bindings={"Orders": []})
    event = {"event_name": UNDELIVERABLE, "event_data": undeliverable(11215, "It has no permission to send.")}
    target(tmp_path, broker_events=[event], database_permissions={"Stock": []})
    remedy = only_remedy(tmp_path)
    assert remedy.actions[0].startswith("Its events say: 11215")
    assert remedy.statement == "USE [Stock];\nGRANT SEND ON SERVICE::[//stock] TO [public];"


def test_a_recorded_event_shows_why_a_message_is_discarded(tmp_path: Path) -> None:
    name, event = UNDELIVERABLE, undeliverable(11214, "The contract could not be found.")
    shop(tmp_path, routes=AWAY)
    target(
        tmp_path,
        broker_events=[{"event_name": name, "event_data": "<cut"}, {"event_name": name, "event_data": event}],
    )
    remedy = only_remedy(tmp_path)
    assert remedy.place.instance == "STOCK"
    assert "throws messages of these dialogs away" in remedy.cause
    assert any("11214, The contract could not be found." in action for action in remedy.actions)
    assert any("ADD CONTRACT" in action for action in remedy.actions)
    # Of another dialog.
    other = event.replace("C0000001", "C0000009")
    target(tmp_path, broker_events=[{"event_name": name, "event_data": other}])
    assert "away" not in only_remedy(tmp_path).cause


def test_a_master_key_of_another_server(tmp_path: Path) -> None:
    text = "An exception occurred while enqueueing a message in the target queue. Error: 15581, State: 7."
    orders = {**database("Orders", "0d0d0d0d"), "is_master_key_encrypted_by_server": 1}
    services = {"msdb": [], "Orders": [{"name": "//stock"}]}
    databases = [database("msdb", "d4d4d4d4", 4), orders]
    routes = {"msdb": [], "Orders": [route("AutoCreatedLocal")]}
    shop(tmp_path, text, 28005, services=services, routes=routes, databases=databases)
    statement = only_remedy(tmp_path).statement or ""
    assert "ADD ENCRYPTION BY SERVICE MASTER KEY" in statement
    assert "CREATE MASTER KEY" not in statement


# Causes in the target's database, which an address names only by its machine.

OWNER = "An exception occurred while enqueueing a message in the target queue. Error: 15404, State: 19. {}"


def owned(name: str, broker: str, sid: str) -> dict[str, Any]:
    """A database with its owner."""
    return {**database(name, broker), "owner_sid": sid}


@pytest.mark.parametrize("owner", ["0x0105", "0x01"])
def test_the_owner_that_is_sa_stays(owner: str, tmp_path: Path) -> None:
    views = {"databases": [database("msdb", "d4d4d4d4", 4), owned("Orders", "0c0c0c0c", "0x01")]}
    there = [database("msdb", "d5d5d5d5", 4), owned("Stock", "5c5c5c5c", owner)]
    status = OWNER.format("Could not obtain information about Windows NT group/user 'CORP\\jdoe'.")
    shop(tmp_path, status, 28005, routes=to_stock("TCP://stock.corp.example:4022"), **views)
    target(tmp_path, databases=there, service_broker_endpoints=[broker_endpoint("STOCK", machine_name=None)])
    remedy = only_remedy(tmp_path)
    assert "[Orders]" not in (remedy.statement or "")
    assert ("[Stock] TO [sa]" in (remedy.statement or "")) is (owner != "0x01")
    assert remedy.place[0] == "STOCK"


def test_a_database_that_is_not_online_may_hold_the_service(tmp_path: Path) -> None:
    closed = {**database("Stock", "5c5c5c5c"), "state_desc": "RECOVERY_PENDING"}
    views: dict[str, Any] = {"routes": {"msdb": [route("AutoCreatedLocal")]}, "services": {"msdb": []}}
    shop(tmp_path, routes=AWAY)
    target(tmp_path, databases=[database("msdb", "d5d5d5d5", 4), closed], **views)
    remedy = only_remedy(tmp_path)
    assert "'Stock' of 'STOCK' is RECOVERY_PENDING" in remedy.cause
    assert remedy.confidence is Confidence.TO_BE_CHECKED


# A status that cannot be read, beside views that show the cause.


def test_the_views_answer_a_status_in_another_language(tmp_path: Path) -> None:
    status = "Fehler beim Verbindungshandshake. Es ist kein kompatibler Algorithmus vorhanden. Status 22."
    old = [broker_endpoint("STOCK", encryption_algorithm_desc="RC4")]
    shop(tmp_path / "endpoints", status, routes=AWAY)
    target(tmp_path / "endpoints", service_broker_endpoints=old)
    remedy = only_remedy(tmp_path / "endpoints")
    assert "ALTER ENDPOINT [STOCK Broker]" in (remedy.statement or "")
    assert any("could not be read" in action for action in remedy.actions)

    shop(tmp_path / "queue", "服务队列当前已被禁用。", routes=AWAY)
    target(tmp_path / "queue", service_queues={"Stock": [{**QUEUE, "is_receive_enabled": 0}]})
    assert "ALTER QUEUE [dbo].[StockQueue] WITH STATUS = ON;" in (only_remedy(tmp_path / "queue").statement or "")


# Messages without a status: the endpoints of both sides, and a Managed Instance.


@pytest.mark.parametrize("stopped", ["SHOP", "STOCK"])
def test_a_stopped_endpoint_explains_silence(stopped: str, tmp_path: Path) -> None:
    states = {name: [broker_endpoint(name, state_desc="STARTED")] for name in ("SHOP", "STOCK")}
    states[stopped] = [broker_endpoint(stopped, state_desc="STOPPED")]
    shop(tmp_path, routes=AWAY, service_broker_endpoints=states["SHOP"])
    target(tmp_path, service_broker_endpoints=states["STOCK"])
    remedy = only_remedy(tmp_path)
    assert remedy.place == (stopped, "master")
    assert remedy.statement == f"USE [master];\nALTER ENDPOINT [{stopped} Broker] STATE = STARTED;"


@pytest.mark.parametrize(("status", "number"), [("", None), ("The target service broker is unreachable.", 9753)])
def test_a_copy_with_the_same_id_is_named(status: str, number: int | None, tmp_path: Path) -> None:
    shop(tmp_path, status, number, routes=AWAY)
    copies = [database("Stock", "5c5c5c5c"), database("StockCopy", "5c5c5c5c", 6, is_enabled=0)]
    target(tmp_path, databases=[database("msdb", "d5d5d5d5", 4), *copies])
    assert "'StockCopy' of 'STOCK' has the broker instance of 'Stock'" in only_remedy(tmp_path).text
    copies[1]["source_database_id"] = 5
    target(tmp_path, databases=[database("msdb", "d5d5d5d5", 4), *copies])
    assert "StockCopy" not in only_remedy(tmp_path).text


def test_an_expired_certificate_explains_silence_before_a_missing_copy(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY, certificates={"master": [certificate("ShopCert")]})
    target(tmp_path, certificates={"master": [certificate("StockCert", until="2025-12-31T00:00:00")]})
    assert "'StockCert', valid until 2025-12-31" in only_remedy(tmp_path).cause


def test_a_managed_instance_listens_on_one_port(tmp_path: Path) -> None:
    managed = [{"engine_edition": 8, "edition": "SQL Azure"}]
    routes = to_stock("TCP://mi2.abc.database.windows.net:3342")
    shop(tmp_path, routes=routes, server_properties=managed)
    assert only_remedy(tmp_path).statement == (
        "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://mi2.abc.database.windows.net:4022';"
    )


@pytest.mark.parametrize("status", ["", TIMED_OUT])
def test_a_managed_instance_reaches_only_others(status: str, tmp_path: Path) -> None:
    managed = [{"engine_edition": 8, "edition": "SQL Azure"}]
    shop(tmp_path, status, 9754 if status else None, routes=AWAY, server_properties=managed)
    target(tmp_path)
    assert "reaches only other managed instances" in only_remedy(tmp_path).cause


def test_a_managed_instance_has_no_binding(tmp_path: Path) -> None:
    status = "Dialog security is not available … there is no remote service binding for the target service."
    shop(tmp_path, status, 9727, routes=AWAY, server_properties=[{"engine_edition": 8}])
    remedy = only_remedy(tmp_path)
    assert remedy.actions == ("Begin the dialog with ENCRYPTION = OFF.",)


def test_a_listener_gets_the_port_of_the_only_known_replica(tmp_path: Path) -> None:
    shop(tmp_path, CLOSED, 9755, routes=to_stock("TCP://group:1433"))
    replica = [{"group_name": "G", "replica_server_name": "STOCK", "role_desc": "PRIMARY", "is_local": 1}]
    listener = [{"group_name": "G", "dns_name": "group", "port": 1433}]
    in_group = stored(group_database_id=GROUP)
    target(tmp_path, **in_group, availability_group_listeners=listener, availability_replicas=replica)
    assert only_remedy(tmp_path).statement == (
        "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://group:4022';"
    )


@pytest.mark.parametrize("port", [1433, 5022])
def test_the_port_of_a_primary_is_not_given_to_a_route_if_its_replicas_differ(port: int, tmp_path: Path) -> None:
    shop(tmp_path, CLOSED, 9755, routes=to_stock(f"TCP://group:{port}"))
    listener = [{"group_name": "G", "dns_name": "group", "port": 1433}]
    in_group = {**stored(group_database_id=GROUP), "availability_group_listeners": listener}
    for name, role, own_port in (("STOCK", "PRIMARY", 4022), ("SPARE", "SECONDARY", 5022)):
        replica = [{"group_name": "G", "replica_server_name": name, "role_desc": role, "is_local": 1}]
        endpoints = [broker_endpoint(name, own_port)]
        target(tmp_path, name, **in_group, availability_replicas=replica, service_broker_endpoints=endpoints)
    assert "N'TCP://group:4022'" not in (only_remedy(tmp_path).statement or "")


@pytest.mark.parametrize("port", [1433, 5022])
def test_a_listener_with_another_port_than_all_replicas(port: int, tmp_path: Path) -> None:
    shop(tmp_path, CLOSED, 9755, routes=to_stock(f"TCP://agl.corp.example:{port}"))
    for name in ("STOCK", "SPARE"):
        target(tmp_path, name, service_broker_endpoints=[broker_endpoint(name, listener_names="agl")])
    remedy = only_remedy(tmp_path)
    assert (
        remedy.statement == "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://agl.corp.example:4022';"
    )


def test_a_route_back_names_the_exported_endpoint(tmp_path: Path) -> None:
    """SELECT * FROM sys.service_broker_endpoints has no address."""
    shop(tmp_path, routes=AWAY, service_broker_endpoints=[broker_endpoint("SHOP", 4711, machine_name=None)])
    routes = {"msdb": [route("AutoCreatedLocal")], "Stock": [route("AutoCreatedLocal")]}
    target(tmp_path, routes=routes)
    assert "ADDRESS = N'tcp://shop:4711'" in (only_remedy(tmp_path).statement or "")


def test_a_queue_that_no_monitor_watches(tmp_path: Path) -> None:
    other = [{"database_id": 4, "queue_id": 1, "state": "INACTIVE", "tasks_waiting": 0}]
    queues = {"Stock": [{**QUEUE, "messages": 40}]}
    whole_shop(tmp_path / "on", [])
    target(tmp_path / "on", service_queues=queues, dm_broker_queue_monitors=other)
    [trouble] = check([str(tmp_path / "on")]).troubles
    assert (trouble.remedy.statement or "").splitlines()[1:] == [
        "ALTER QUEUE [dbo].[StockQueue] WITH ACTIVATION (STATUS = OFF);",
        "ALTER QUEUE [dbo].[StockQueue] WITH ACTIVATION (STATUS = ON);",
    ]
    whole_shop(tmp_path / "off", [])
    databases = [database("msdb", "d5d5d5d5", 4), database("Stock", "5c5c5c5c", is_enabled=0)]
    target(tmp_path / "off", service_queues=queues, databases=databases)
    [trouble] = check([str(tmp_path / "off")]).troubles
    assert trouble.kind is TroubleKind.BROKER_OFF
    assert "ALTER DATABASE [Stock] SET ENABLE_BROKER" in (trouble.remedy.statement or "")


@pytest.mark.parametrize(
    ("columns", "services", "is_named"),
    [
        ({}, ["//stock"], True),
        ({}, ["http://schemas.microsoft.com/SQL/Notifications/QueryNotificationService"], False),
        ({"is_read_only": 1}, ["//stock"], False),
        ({"source_database_id": 9}, ["//stock"], False),
        ({"service_broker_guid": ZERO}, ["//stock"], False),
    ],
)
def test_a_broker_that_is_off_where_nothing_waits(
    columns: dict[str, Any], services: list[str], is_named: bool, tmp_path: Path
) -> None:
    whole_shop(tmp_path, [])
    stock = {**database("Stock", "5c5c5c5c", is_enabled=0), **columns}
    views = {"msdb": [], "Stock": [{"name": name} for name in services]}
    target(tmp_path, databases=[database("msdb", "d5d5d5d5", 4), stock], services=views)
    kinds = [trouble.kind for trouble in check([str(tmp_path)]).troubles]
    assert kinds == ([TroubleKind.BROKER_OFF] if is_named else [])


@pytest.mark.parametrize(("keys", "statement"), [([], "CREATE MASTER KEY"), ([KEY], "OPEN MASTER KEY")])
def test_a_master_key_that_the_error_log_names(keys: list[Any], statement: str, tmp_path: Path) -> None:
    line = "Service Broker needs to access the master key in the database 'Orders'. Error code:25. …"
    whole_shop(tmp_path, [], symmetric_keys={"Orders": keys}, **log(line, line))
    [trouble] = check([str(tmp_path)]).troubles
    assert (trouble.kind, trouble.count) == (TroubleKind.KEY_CLOSED, 2)
    assert trouble.remedy.place == ("SHOP", "Orders")
    assert statement in (trouble.remedy.statement or "")


def test_a_queue_whose_readers_do_not_keep_up(tmp_path: Path) -> None:
    monitor = {"database_id": 5, "queue_id": 70, "state": "RECEIVES_OCCURRING", "tasks_waiting": 0}
    whole_shop(tmp_path, [])
    for messages, count in ((99_999, 0), (100_000, 1)):
        queue = {**QUEUE, "messages": messages, "max_readers": 1}
        target(tmp_path, service_queues={"Stock": [queue]}, dm_broker_queue_monitors=[monitor])
        assert len(troubles := check([str(tmp_path)]).troubles) == count
    assert "with at most 1 reader" in troubles[0].remedy.cause
    assert "MAX_QUEUE_READERS = <number>" in (troubles[0].remedy.statement or "")


def test_the_queue_of_database_mail(tmp_path: Path) -> None:
    queue = {**QUEUE, "name": "ExternalMailQueue", "messages": 9}
    mail = {"name": "ExternalMailService", "service_id": 7, "service_queue_id": 70}
    views: dict[str, Any] = {"services": {"msdb": [mail]}, "service_queues": {"msdb": [queue]}}
    whole_shop(tmp_path, [], **views)
    [trouble] = check([str(tmp_path)]).troubles
    assert trouble.remedy.statement == "USE [msdb];\nEXEC msdb.dbo.sysmail_start_sp;"
    # A message that finds its queue off gets the same remedy as the queue.
    off = {"msdb": [{**queue, "is_receive_enabled": 0}]}
    status = 'The service queue "ExternalMailQueue" is currently disabled.'
    mailed = waiting(1, "ExternalMailService", transmission_status=status)
    views |= {"service_queues": off, "conversation_endpoints": {"msdb": [endpoint(1)]}}
    whole_shop(tmp_path, [], **views, transmission_queue={"msdb": [mailed]})
    done = check([str(tmp_path)])
    assert not done.troubles
    assert "EXEC msdb.dbo.sysmail_start_sp;" in (done.groups[0].advice[0].remedy.statement or "")


def test_a_started_endpoint_is_not_started(tmp_path: Path) -> None:
    remedy = connecting(tmp_path, REFUSED, 9754)
    assert "is STARTED on port 4022" in remedy.text
    assert "STATE = STARTED" not in (remedy.statement or "")


def test_a_client_that_is_gone_does_not_hide_the_owner(tmp_path: Path) -> None:
    client, status = "SqlQueryNotificationService-6ed7b9a7-1111-4b4b-8f2c-1a2b3c4d5e6f", "Error: 15404, State: 19."
    whole_shop(tmp_path, [waiting(1, client, transmission_status=status, error_number=28005)])
    [group] = check([str(tmp_path)]).groups
    owner, cleanup = (advice.remedy.statement or "" for advice in group.advice)
    assert "ALTER AUTHORIZATION ON DATABASE::[Orders]" in owner
    assert "WITH CLEANUP" in cleanup


@pytest.mark.parametrize("start", ["Cannot enable the Service Broker", "The Service Broker"])
def test_a_broker_that_was_off_for_its_id_is_enabled_before_it_gets_a_new_one(start: str, tmp_path: Path) -> None:
    line = (
        f'{start} in database "Orders" because the Service Broker GUID in the database (B1E3A5F0) does not match'
        " the one in sys.databases (B1E3A5F1)."
    )
    off = [database("msdb", "d4d4d4d4", 4), database("Orders", "0d0d0d0d", is_enabled=0)]
    shop(tmp_path, databases=off, **log(line))
    remedy = only_remedy(tmp_path)
    assert remedy.statement == "USE [master];\nALTER DATABASE [Orders] SET ENABLE_BROKER WITH NO_WAIT;"
    assert "if ENABLE_BROKER fails with error 9776" in remedy.text
    assert "without a message to the other sides" in (remedy.risk or "")
    assert "rolls back all open transactions" in (remedy.risk or "")


def test_a_user_of_a_dialog_gets_the_certificate_of_its_side(tmp_path: Path) -> None:
    status = "There is no security certificate bound to the database principal (Id: 5)."
    statement = connecting(tmp_path, status, 9731).statement or ""
    assert "WITH SUBJECT" in statement
    assert "FROM FILE" in statement


def test_an_instance_that_is_not_managed_cannot_send_to_a_managed_one(tmp_path: Path) -> None:
    shop(tmp_path, TIMED_OUT, 9754, routes=to_stock("TCP://mi.public.x.database.windows.net:3342"))
    assert "only with other managed instances" in only_remedy(tmp_path).cause


def test_the_queue_explains_a_local_service_that_takes_nothing(tmp_path: Path) -> None:
    shop(tmp_path, "One or more messages could not be delivered to the local service …", 28021, routes=AWAY)
    target(tmp_path, service_queues={"Stock": [{**QUEUE, "is_receive_enabled": 0}]})
    assert "ALTER QUEUE [dbo].[StockQueue] WITH STATUS = ON;" in (only_remedy(tmp_path).statement or "")


def test_the_owner_without_access_is_the_senders(tmp_path: Path) -> None:
    """The sender is trusted already, and sa owns the target's database."""
    status = (
        "An exception occurred while enqueueing a message in the target queue. Error: 916, State: 3. The server"
        ' principal "CORP\\own" is not able to access the database "Stock" under the current security context.'
    )
    sender = {**owned("Orders", "0c0c0c0c", "0x0105"), "is_trustworthy_on": 1}
    databases = [database("msdb", "d4d4d4d4", 4), sender, {**owned("Stock", "5c5c5c5c", "0x01"), "database_id": 6}]
    services = {"msdb": [], "Orders": [{"name": "//from"}], "Stock": [{"name": "//stock"}]}
    routes = {name: [route("AutoCreatedLocal")] for name in ("msdb", "Orders", "Stock")}
    shop(tmp_path, status, 28005, databases=databases, services=services, routes=routes)
    remedy = only_remedy(tmp_path)
    assert remedy.statement == "USE [master];\nALTER AUTHORIZATION ON DATABASE::[Orders] TO [sa];"
    assert "TRUSTWORTHY" not in remedy.text


@pytest.mark.parametrize(("status", "number"), [("", None), (REFUSED, 9754)])
def test_another_instance_of_the_machine_holds_the_service(
    status: str, number: int | None, tmp_path: Path
) -> None:
    shop(tmp_path, status, number, routes=to_stock("TCP://box:4022"))
    one = {"databases": [database("msdb", "d6d6d6d6", 4)], "routes": {"msdb": [route("AutoCreatedLocal")]}}
    bare: dict[str, Any] = {"machine_name": None}
    target(
        tmp_path, "BOX\\ONE", **one, services={"msdb": []}, service_broker_endpoints=[broker_endpoint("1", **bare)]
    )
    target(tmp_path, "BOX\\TWO", service_broker_endpoints=[broker_endpoint("2", 4023, **bare)])
    assert only_remedy(tmp_path).statement == (
        "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://box:4023';"
    )


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", ".", "(local)"])
@pytest.mark.parametrize("status", ["", "The target service name could not be found.", REFUSED])
@pytest.mark.parametrize("is_raw", [True, False])
def test_a_route_to_the_own_machine_leads_to_the_holder(
    host: str, status: str, is_raw: bool, tmp_path: Path
) -> None:
    bare: dict[str, Any] = {"machine_name": None, "port": None} if is_raw else {}
    endpoints = [broker_endpoint("SHOP", **bare)]
    shop(tmp_path, status, routes=to_stock(f"TCP://{host}:4022"), service_broker_endpoints=endpoints)
    target(tmp_path, service_broker_endpoints=[broker_endpoint("STOCK", **bare)])
    remedy = only_remedy(tmp_path)
    assert remedy.place == ("SHOP", "Orders")
    address = f"tcp://stock:{'<port>' if is_raw else 4022}"
    assert f"alter route [tostock] with address = n'{address}';" in (remedy.statement or "").lower()


def test_forwarding_is_enabled_on_the_exported_endpoint(tmp_path: Path) -> None:
    shop(tmp_path, routes=to_stock("TCP://hub:4022"))
    hub = {"databases": [database("msdb", "d6d6d6d6", 4)], "services": {"msdb": []}}
    target(tmp_path, "HUB", **hub, routes={"msdb": [route("On", "//stock", "TCP://stock:4022")]})
    assert "ALTER ENDPOINT [HUB Broker] FOR SERVICE_BROKER (MESSAGE" in (only_remedy(tmp_path).statement or "")


def test_query_notifications_that_the_service_refuses(tmp_path: Path) -> None:
    line = "The query notification dialog on conversation handle '{A}.' closed due to … <Code>-8494</Code> …"
    whole_shop(tmp_path, [], **log(line))
    [trouble] = check([str(tmp_path)]).troubles
    assert trouble.kind is TroubleKind.LOGIN_REFUSED
    assert "GRANT SEND ON SERVICE::[<service>] TO [guest]" in trouble.remedy.text
    whole_shop(tmp_path, [], **log(line.replace("8494", "8408")))
    [trouble] = check([str(tmp_path)]).troubles
    assert trouble.kind is TroubleKind.DIALOGS_IN_ERROR
    assert "Notifications/PostQueryNotification]" in trouble.remedy.text


@pytest.mark.parametrize(("code", "count"), [("-8490", 2), ("-8470", 2), ("-8489", None), ("not found", 2)])
def test_query_notifications_to_clients_that_are_gone(code: str, count: int | None, tmp_path: Path) -> None:
    line = f"The query notification dialog on conversation handle '{{A}}.' closed due to … <Code>{code}</Code> …"
    if code == "not found":
        line = (
            "Query notification delivery could not send message on dialog '{A}.'. Delivery failed for notification"
            " '…' because of the following error in service broker: 'The conversation handle \"A\" is not found.'."
        )
    whole_shop(tmp_path, [], **log(line, line, "The query notification dialog is …"))
    troubles = check([str(tmp_path)]).troubles
    assert [(trouble.kind, trouble.count) for trouble in troubles] == (
        [] if count is None else [(TroubleKind.CLIENTS_GONE, count)]
    )
    assert all("SqlDependency.Start once" in trouble.remedy.text for trouble in troubles)


def test_a_refused_login_without_a_message(tmp_path: Path) -> None:
    inner = (
        "Connection handshake failed. The login 'CORP\\shopsvc' does not have CONNECT permission on the endpoint."
    )
    whole_shop(tmp_path / "alone", [])
    target(tmp_path / "alone", **log(refused(inner)))
    [trouble] = check([str(tmp_path / "alone")]).troubles
    assert trouble.kind is TroubleKind.LOGIN_REFUSED
    assert "ENDPOINT::[STOCK Broker] TO [CORP\\shopsvc];" in (trouble.remedy.statement or "")

    whole_shop(tmp_path / "granted", [])
    granted: dict[str, Any] = {"server_permissions": [grant("CORP\\shopsvc", "STOCK Broker")]}
    target(tmp_path / "granted", **granted, **log(refused(inner)))
    assert check([str(tmp_path / "granted")]).troubles == []

    shop(tmp_path / "waiting", CLOSED, 9757, routes=AWAY)
    target(tmp_path / "waiting", **log(refused(inner)))
    assert check([str(tmp_path / "waiting")]).troubles == []


def test_the_error_log_is_quoted_for_silent_messages(tmp_path: Path) -> None:
    line = refused("Connection handshake failed. The certificate used by the peer is invalid.")
    shop(tmp_path, routes=AWAY)
    target(tmp_path, **log(line))
    assert any(line in action for action in only_remedy(tmp_path).actions)


# Partners, certificates and replicas that decide beside the routes.


@pytest.mark.parametrize(
    ("status", "state", "statement"),
    [
        (REFUSED, {"state_desc": "STOPPED"}, "ALTER ENDPOINT [MIRB Broker] STATE = STARTED;"),
        (TIMED_OUT, {"state_desc": "STOPPED"}, "ALTER ENDPOINT [MIRB Broker] STATE = STARTED;"),
        (TIMED_OUT, None, "-- CREATE ENDPOINT [ServiceBrokerEndpoint]"),
        (TIMED_OUT, {}, None),
    ],
)
def test_the_partner_with_the_service_answers_for_a_mirror_address(
    status: str, state: dict[str, Any] | None, statement: str | None, tmp_path: Path
) -> None:
    routes = to_stock("TCP://mira:4022", mirror_address="TCP://mirb:4022", broker_instance=BOUND)
    shop(tmp_path, status, 9754, routes=routes, bound=BOUND)
    target(tmp_path, "MIRB", service_broker_endpoints=[] if state is None else [broker_endpoint("MIRB", **state)])
    remedy = only_remedy(tmp_path)
    assert "'TCP://mirb:4022'" in remedy.cause
    heading = " ".join(print_check(check([str(tmp_path)])).split())
    assert "the connection to 'TCP://mira:4022' or 'TCP://mirb:4022' fails" in heading
    assert (statement or "None") in str(remedy.statement)


@pytest.mark.parametrize("number", [28080, 9754])
def test_the_port_of_a_mirroring_endpoint(number: int, tmp_path: Path) -> None:
    status = "Connection handshake failed. The Service Broker endpoint is not configured. State 3."
    shop(tmp_path, status if number == 28080 else REFUSED, number, routes=to_stock("TCP://stock:5022"))
    target(tmp_path)
    assert "ADDRESS = N'TCP://stock:4022'" in (only_remedy(tmp_path).statement or "")


def test_an_error_inside_an_error_of_the_transmission(tmp_path: Path) -> None:
    text = "An error occurred in dialog transmission: Error: 28054, State: 1. The master key has to exist."
    shop(tmp_path, text, 9736, routes=AWAY, symmetric_keys={"Orders": []})
    assert "CREATE MASTER KEY" in (only_remedy(tmp_path).statement or "")


@pytest.mark.parametrize(("owner", "is_given"), [("CORP\\jdoe", True), ("CORP\\other", False)])
def test_the_account_in_the_text_is_the_exported_owner(owner: str, is_given: bool, tmp_path: Path) -> None:
    text = "Could not obtain information about Windows NT group/user 'CORP\\jdoe', error code 0x5."
    shop(tmp_path / "status", OWNER.format(text), 28005, routes=AWAY)
    target(tmp_path / "status", **stored(owner_sid="0x0105", owner_name=owner))
    remedies = [only_remedy(tmp_path / "status")]
    line = f"The activated proc '[dbo].[read]' running on queue 'Stock.dbo.StockQueue' output: '{text}'"
    whole_shop(tmp_path / "log", [])
    queues = {"Stock": [{**QUEUE, "messages": 40}]}
    target(tmp_path / "log", **stored(owner_sid="0x0105", owner_name=owner), service_queues=queues, **log(line))
    remedies += [trouble.remedy for trouble in check([str(tmp_path / "log")]).troubles]
    for remedy in remedies:
        assert ("ALTER AUTHORIZATION ON DATABASE::[Stock]" in (remedy.statement or "")) is is_given


@pytest.mark.parametrize("kind", ["NO_PRIVATE_KEY", "ENCRYPTED_BY_MASTER_KEY"])
def test_an_expired_certificate_of_the_other_side_is_installed_from_a_file(kind: str, tmp_path: Path) -> None:
    expired = certificate("Theirs", "2025-06-01T00:00:00", pvt_key_encryption_type_desc=kind, user_name="Stock")
    shop(tmp_path, "The security certificate has expired.", 28025, routes=AWAY, certificates={"Orders": [expired]})
    statement = only_remedy(tmp_path).statement or ""
    assert ("AUTHORIZATION [Stock] FROM FILE" in statement) is (kind == "NO_PRIVATE_KEY")
    assert ("AUTHORIZATION [Stock] WITH SUBJECT" in statement) is (kind != "NO_PRIVATE_KEY")


def test_messages_that_the_monitor_of_a_queue_does_not_see(tmp_path: Path) -> None:
    assert "something locks these" in queued(tmp_path, {"state": "INACTIVE"}).cause


def test_the_route_back_leads_to_a_secondary_replica(tmp_path: Path) -> None:
    for name, role in (("SHOP", "PRIMARY"), ("SHOP2", "SECONDARY")):
        orders = {**database("Orders", "0d0d0d0d"), "group_database_id": GROUP}
        export(
            tmp_path,
            name,
            databases=[database("msdb", "d4d4d4d4", 4), orders],
            service_broker_endpoints=[broker_endpoint(name, listener_names="shopag")],
            routes=AWAY,
            services={"msdb": [], "Orders": [{"name": "//from"}]},
            conversation_endpoints={"Orders": [endpoint(1)]},
            transmission_queue={"Orders": [waiting(1, "//stock")] if role == "PRIMARY" else []},
            availability_replicas=[{"replica_server_name": name, "role_desc": role, "is_local": 1}],
        )
    routes = {"msdb": [route("AutoCreatedLocal")], "Stock": [route("Back", "//from", "TCP://shop2:4022")]}
    target(tmp_path, routes=routes, conversation_endpoints={"Stock": [endpoint(1, is_initiator=0)]})
    remedy = only_remedy(tmp_path)
    assert remedy.place == ("STOCK", "Stock")
    assert "ALTER ROUTE [Back] WITH ADDRESS = N'TCP://shopag:4022';" in (remedy.statement or "")


def test_the_error_log_explains_silent_messages(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY)
    target(tmp_path, **log(refused(NO_CONNECT.replace("stocksvc", "shopsvc"))))
    remedy = only_remedy(tmp_path)
    assert "GRANT CONNECT ON ENDPOINT::[STOCK Broker] TO [CORP\\shopsvc];" in (remedy.statement or "")
    assert remedy.confidence is Confidence.TO_BE_CHECKED


def test_a_status_repeats_no_statement_of_the_path(tmp_path: Path) -> None:
    shop(tmp_path, "The target service broker is disabled.", 28012, routes=AWAY)
    target(tmp_path, **stored(is_broker_enabled=0))
    assert "ENABLE_BROKER" in (only_remedy(tmp_path).statement or "")


@pytest.mark.parametrize("status", [TIMED_OUT, CLOSED])
def test_a_managed_instance_leads_to_the_port_of_another_one(status: str, tmp_path: Path) -> None:
    managed = [{"engine_edition": 8, "edition": "SQL Azure"}]
    routes = to_stock("TCP://mi2.abc.database.windows.net:1433")
    shop(tmp_path, status, 9754, routes=routes, server_properties=managed)
    assert "N'TCP://mi2.abc.database.windows.net:4022'" in (only_remedy(tmp_path).statement or "")


def test_a_name_in_another_domain_than_the_server(tmp_path: Path) -> None:
    shop(tmp_path, UNNAMED, 9754, routes=to_stock("TCP://stock.old.example:4022"))
    target(tmp_path, service_broker_endpoints=[broker_endpoint("STOCK", full_name="stock.new.example")])
    assert "N'tcp://stock.new.example:4022'" in (only_remedy(tmp_path).statement or "")


@pytest.mark.parametrize(
    ("columns", "words", "address"),
    [
        ({"full_name": "gate.new.example"}, "The machine is that of 'GATE'", "N'tcp://gate.new.example:4022'"),
        ({"machine_name": None}, "do not show the address of 'GATE'", "N'TCP://<host>:<port>'"),
    ],
)
def test_a_forwarder_with_a_name_that_is_not_resolved(
    tmp_path: Path, columns: dict[str, Any], words: str, address: str
) -> None:
    shop(tmp_path, UNNAMED, 9754, routes=to_stock("TCP://gate.old.example:4022"))
    target(tmp_path)
    forwarder = broker_endpoint("GATE", is_message_forwarding_enabled=1, **columns)
    routes = {"msdb": [route("On", "//stock", "TCP://stock:4022")]}
    target(tmp_path, "GATE", service_broker_endpoints=[forwarder], routes=routes, services={"msdb": []})
    remedy = only_remedy(tmp_path)
    assert words in remedy.cause
    assert address in (remedy.statement or "")


def test_a_timeout_opens_no_endpoint_to_all_addresses(tmp_path: Path) -> None:
    shop(tmp_path, TIMED_OUT, 9754, routes=AWAY)
    target(tmp_path, tcp_endpoints=[{"endpoint_id": 65540, "port": 4022, "ip_address": "10.0.0.7"}])
    assert only_remedy(tmp_path).statement is None


def test_a_forwarder_of_acknowledgements_may_be_a_secondary_replica(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY)
    local = {"msdb": [route("AutoCreatedLocal")]}
    target(tmp_path, routes={**local, "Stock": [route("Back", "//from", "TCP://gate:4022")]})
    for name, role in (("GATE", "SECONDARY"), ("GATE2", "PRIMARY")):
        other = {**database("Other", "0e0e0e0e"), "group_database_id": GROUP}
        forwarder = broker_endpoint(name, is_message_forwarding_enabled=1, listener_names="gateag")
        target(
            tmp_path,
            name,
            databases=[database("msdb", "a1a1a1a1", 4), other],
            service_broker_endpoints=[forwarder],
            routes={"msdb": [route("On", "//from", "TCP://copy:4022")]},
            services={"msdb": [], "Other": []},
            availability_replicas=[{"replica_server_name": name, "role_desc": role, "is_local": 1}],
        )
    copied = [database("msdb", "b1b1b1b1", 4), database("Orders", "0d0d0d0d")]
    services = {"msdb": [], "Orders": [{"name": "//from"}]}
    target(tmp_path, "COPY", databases=copied, routes=local, services=services)
    [group] = check([str(tmp_path)]).groups
    assert [advice.remedy.place.instance for advice in group.advice] == ["COPY", "SHOP"]


def test_the_error_log_hides_no_copies(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY)
    target(tmp_path, **log(refused(NO_CONNECT)))
    target(tmp_path, "COPY")
    [group] = check([str(tmp_path)]).groups
    assert all("one of them is a copy" in advice.remedy.cause for advice in group.advice)


TO_TWO_BROKERS = {
    "msdb": [route("AutoCreatedLocal")],
    "Orders": [
        route("ToStock", "//stock", "TCP://stock:4022", broker_instance=BOUND),
        route("Test", "//stock", "TCP://gone:4022", broker_instance=ELSEWHERE),
    ],
}


@pytest.mark.parametrize(("broker", "is_dead"), [(ELSEWHERE, True), (BOUND, False)])
def test_a_dead_route_beside_one_to_another_broker_instance(broker: str, is_dead: bool, tmp_path: Path) -> None:
    shop(tmp_path, TIMED_OUT, 9755, routes=TO_TWO_BROKERS, bound=broker)
    target(tmp_path)
    remedy = only_remedy(tmp_path)
    assert (remedy.statement == "-- USE [Orders];\n-- DROP ROUTE [Test];") is is_dead
    assert ("'TCP://gone:4022', the address of route 'Test'" in remedy.cause) is is_dead
    assert ("WITH CLEANUP ends them" in (remedy.risk or "")) is is_dead


LIVE, DEAD = TO_TWO_BROKERS["Orders"]


@pytest.mark.parametrize(
    ("status", "routes"),
    [
        pytest.param(TIMED_OUT, [{**LIVE, "lifetime": "2026-01-01T00:00:00"}, DEAD], id="the other has expired"),
        pytest.param(TIMED_OUT, [LIVE, route("Rest", None, "TCP://gone:4022")], id="it is for any service"),
        pytest.param(UNNAMED, [LIVE, DEAD], id="only its name is wrong"),
        pytest.param(UNNAMED, [LIVE, DEAD, {**DEAD, "name": "Old", "address": "TCP://old:4022"}], id="two names"),
    ],
)
def test_a_dead_route_is_not_dropped(status: str, routes: list[dict[str, Any]], tmp_path: Path) -> None:
    shop(tmp_path, status, 9755, routes={**TO_TWO_BROKERS, "Orders": routes}, bound=ELSEWHERE)
    target(tmp_path)
    assert "DROP ROUTE" not in (only_remedy(tmp_path).statement or "")


@pytest.mark.parametrize("further", [[], [{**DEAD, "name": "Old", "address": "TCP://old:4022"}]])
def test_a_route_to_a_broker_instance_with_a_known_holder_is_not_dropped(
    further: list[dict[str, Any]], tmp_path: Path
) -> None:
    routes = {**TO_TWO_BROKERS, "Orders": [LIVE, DEAD, *further]}
    shop(tmp_path, TIMED_OUT, 9755, routes=routes, bound=ELSEWHERE)
    target(tmp_path)
    holder: dict[str, Any] = {"databases": [database("msdb", "d6d6d6d6", 4), database("Stock", "77777777")]}
    target(tmp_path, "HUB", service_broker_endpoints=None, **holder)
    assert "DROP ROUTE" not in (only_remedy(tmp_path).statement or "")


def test_several_dead_routes_beside_a_live_one(tmp_path: Path) -> None:
    routes = [route(name, "//stock", f"TCP://{host}:4022") for name, host in zip("ABC", HOSTS, strict=True)]
    shop(tmp_path, TIMED_OUT, 9755, routes={"msdb": [route("AutoCreatedLocal")], "Orders": routes})
    target(tmp_path)
    remedy = only_remedy(tmp_path)
    assert remedy.statement == "-- USE [Orders];\n-- DROP ROUTE [B];\n-- DROP ROUTE [C];"
    assert "'TCP://gone:4022', the address of route 'B'" in remedy.cause


def test_a_sending_database_without_an_owner_by_its_error_log(tmp_path: Path) -> None:
    lost = {**database("Orders", "0d0d0d0d"), "owner_is_known": 0, "owner_sid": "0x0106"}
    line = 'An error occurred in dialog transmission: Error: 15517, State: 1. Cannot execute as "dbo".'
    views = log("Error: 9736, Severity: 16, State: 1.", line)
    [trouble] = check([str(export(tmp_path, databases=[database("msdb", "d4d4d4d4", 4), lost], **views))]).troubles
    assert trouble.remedy.statement == "USE [master];\nALTER AUTHORIZATION ON DATABASE::[Orders] TO [sa];"


def test_an_error_in_the_log_stays_if_only_the_routes_are_answered(tmp_path: Path) -> None:
    lost = {**database("Orders", "0d0d0d0d"), "owner_is_known": 0, "owner_sid": "0x0106"}
    line = 'An error occurred in dialog transmission: Error: 15517, State: 1. Cannot execute as "dbo".'
    views = log("Error: 9736, Severity: 16, State: 1.", line)
    databases = [database("msdb", "d4d4d4d4", 4), lost]
    shop(tmp_path, line, 9736, databases=databases, routes={"msdb": [], "Orders": []}, **views)
    [trouble] = check([str(tmp_path)]).troubles
    assert "ALTER AUTHORIZATION ON DATABASE::[Orders]" in (trouble.remedy.statement or "")


ENQUEUING = "An exception occurred while enqueueing a message in the target queue. Error: {}, State: 1. {}"
NO_SEND = "The SEND permission was denied on the object '//stock', database 'Stock', schema 'dbo'."
NO_EXECUTE = "The EXECUTE permission was denied on the object 'f', database 'Stock', schema 'dbo'."


@pytest.mark.parametrize(
    ("number", "text", "expected"),
    [
        (229, NO_SEND, "has no permission to send"),
        (229, NO_EXECUTE, "has no EXECUTE permission on 'f'"),
        (15562, "The module being executed is not trusted.", "is not trusted there"),
        (
            15151,
            "Cannot find the user 'U', because it does not exist.",
            "the user or the object that the text names",
        ),
        (1205, "Transaction (Process ID 9) was deadlocked on lock resources.", None),
    ],
)
def test_an_exception_in_the_error_log(number: int, text: str, expected: str | None, tmp_path: Path) -> None:
    target(tmp_path, **log("Error: 28005, Severity: 16, State: 2.", ENQUEUING.format(number, text)))
    troubles = check([str(whole_shop(tmp_path, []))]).troubles
    assert [expected in trouble.remedy.cause for trouble in troubles if expected] == [True] * (
        expected is not None
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (8425, "The service contract '//orders' is not found."),
        (28005, ENQUEUING.format(229, NO_EXECUTE)),
        (
            9616,
            "A message of type '//t' was received and failed XML validation. This is of Conversation ID '{}'",
        ),
    ],
)
@pytest.mark.parametrize("is_same", [True, False])
def test_an_error_in_the_log_and_in_a_status_is_one(number: int, text: str, is_same: bool, tmp_path: Path) -> None:
    shop(tmp_path, text.format(1), number, routes=AWAY)
    line = text.format(2) if is_same else text.replace("'//", "'//other/").replace("object 'f'", "object 'g'")
    target(tmp_path, **log(f"Error: {number}, Severity: 16, State: 1.", line))
    assert len(check([str(tmp_path)]).troubles) == (not is_same)


BROKER_OFF = (
    "The Service Broker in the target database is unavailable: 'The service broker is administratively disabled.'."
)


def test_a_broker_that_was_off_at_the_last_attempt(tmp_path: Path) -> None:
    remedy = connecting(tmp_path, BROKER_OFF, 28012)
    assert remedy.statement is None
    assert "is on by this export" in remedy.cause


def test_the_only_broker_of_several_holders_that_is_off(tmp_path: Path) -> None:
    databases = [
        database("msdb", "d5d5d5d5", 4),
        database("Stock", "5c5c5c5c"),
        database("Other", "5d5d5d5d", 6, 0),
    ]
    services = {"msdb": [], "Stock": [{"name": "//stock"}], "Other": [{"name": "//stock"}]}
    remedy = connecting(tmp_path, BROKER_OFF, 28012, databases=databases, services=services)
    assert "ALTER DATABASE [Other] SET ENABLE_BROKER" in (remedy.statement or "")


LOST_DBO = ENQUEUING.format(15517, 'Cannot execute as "dbo".')
RAW_LOG = f"""2026-01-05 12:00:01.12 Server      Microsoft SQL Server 2019
\tCopyright (C) 2019
2026-01-05 12:00:01.12 spid25s     Error: 28005, Severity: 16, State: 2.
2026-01-05 12:00:01.12 spid25s     {LOST_DBO}
"""
GRID = "LogDate\tProcessInfo\tText\n" + "".join(
    f"2026-01-05 12:00\tspid5s\t{line}\n" for line in ("Error: 28005, Severity: 16, State: 2.", LOST_DBO)
)


@pytest.mark.parametrize(
    ("name", "text"), [("ERRORLOG", RAW_LOG), ("ERRORLOG.1", RAW_LOG), ("a.txt", RAW_LOG), ("a.txt", GRID)]
)
def test_an_error_log_as_sql_server_and_ssms_write_it(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-16")
    [trouble] = check(
        [str(tmp_path)], instance="SHOP", exported_at=datetime(2026, 1, 5, 18, tzinfo=timezone.utc)
    ).troubles
    assert trouble.summary == "error 28005 in the error log"
    assert "Cannot execute as" in trouble.remedy.actions[0]


def test_the_newest_line_of_an_error_log_counts(tmp_path: Path) -> None:
    refusal = (
        "Service Broker login attempt failed with error: 'Connection handshake failed. The login 'L{}' does not"
        " have CONNECT permission on the endpoint. State 84.'."
    )
    rows = [{"log_date": f"2026-01-0{day} 12:00:00.10", "text": refusal.format(day)} for day in (2, 5, 4)]
    remedy = connecting(tmp_path, "An error occurred while receiving data: '10054(x)'.", 9757, error_log=rows)
    assert "TO [L5];" in (remedy.statement or "")


def test_old_entries_of_an_error_log_are_no_trouble(tmp_path: Path) -> None:
    old = RAW_LOG.replace("2026-01-05", "2025-12-29")
    newer = "2026-01-05 12:00:02.10 spid9s      Recovery is complete. This is an informational message only.\n"
    (tmp_path / "ERRORLOG").write_text(f"{old}{newer}", encoding="utf-16")
    with pytest.raises(InputError):
        check([str(tmp_path)], instance="SHOP", exported_at=datetime(2026, 1, 5, 18, tzinfo=timezone.utc))


def test_a_broker_of_two_holders_in_the_sending_instance(tmp_path: Path) -> None:
    databases = [database("msdb", "d4d4d4d4", 4), database("Orders", "0d0d0d0d")]
    databases += [database("Stock", "5c5c5c5c", 6), database("Other", "5d5d5d5d", 7, 0)]
    services = {"msdb": [], "Orders": [], "Stock": [{"name": "//stock"}], "Other": [{"name": "//stock"}]}
    local = {name: [route("AutoCreatedLocal")] for name in services}
    views = {"databases": databases, "services": services, "routes": local, "conversation_endpoints": None}
    shop(tmp_path, BROKER_OFF, 28012, **views)
    remedy = only_remedy(tmp_path)
    assert remedy.instance == "SHOP"
    assert "ALTER DATABASE [Other] SET ENABLE_BROKER" in (remedy.statement or "")


def test_statements_for_two_unknown_servers(tmp_path: Path) -> None:
    refused: dict[str, Any] = {
        "transmission_status": "Connection attempt failed with error: '10061(x)'.",
        "error_number": 9754,
    }
    routes = [route(name, f"//{name}", f"TCP://{name}:4022") for name in ("a", "b")]
    queue = [waiting(1, "//a", **refused), waiting(2, "//b", **refused)]
    whole_shop(tmp_path, queue, routes={"msdb": [route("AutoCreatedLocal")], "Orders": routes})
    servers = {statement.server for statement in list_statements(check([str(tmp_path)]))}
    assert servers == {"<the server at 'TCP://a:4022'>", "<the server at 'TCP://b:4022'>"}
