"""check on causes other than routing, such as endpoints, databases, queues and certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from routing.advice.remedy import Confidence, Remedy, TroubleKind
from routing.cases.server_evidence import ServerEvidence
from routing.views.check.checking import Check, check, find_notes
from routing.views.check.problems import find_problems, state_silence
from tests.check_texts import print_check
from tests.exported import AT, conversation, database, endpoint, export, handle, route, waiting, whole_shop
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
from tests.imports import config_in, import_views, no_spark


def evidence_of(done: Check) -> ServerEvidence:
    return done.evidence.server


# The broker is off: in an availability group, in a mirroring session, on a Managed Instance, or in use.


def off(folder: Path, **views: Any) -> Remedy:
    """Return the remedy for a message of a database with its broker off."""
    columns = views.pop("columns", {})
    orders = {**database("Orders", "0d0d0d0d", is_enabled=0), **columns}
    shop(folder, databases=[database("msdb", "d4d4d4d4", 4), orders], **views)
    return only_remedy(folder)


def test_a_disabled_broker_is_enabled_unless_in_a_group(tmp_path: Path) -> None:
    remedy = off(tmp_path / "plain")
    assert remedy.statement == "USE [master];\nALTER DATABASE [Orders] SET ENABLE_BROKER WITH NO_WAIT;"
    assert any("WITH ROLLBACK IMMEDIATE" in action and "rolls back" in action for action in remedy.actions)

    remedy = off(tmp_path / "group", columns={"replica_id": GROUP, "group_database_id": GROUP})
    assert not remedy.is_complete
    assert "1468" in remedy.text
    lines = (remedy.statement or "").split("\n")
    assert [line.split("[Orders]")[0] for line in lines[1:]] == [
        "-- ALTER AVAILABILITY GROUP [<group>] REMOVE DATABASE ",
        "-- ALTER DATABASE ",
        "-- ALTER AVAILABILITY GROUP [<group>] ADD DATABASE ",
    ]
    assert "NO_WAIT" not in (remedy.statement or "")
    assert "rolls back" in (remedy.risk or "")

    mirrored = [{"name": "Orders", "database_id": 5, "mirroring_role_desc": "PRINCIPAL"}]
    remedy = off(tmp_path / "mirrored", database_mirroring=mirrored)
    assert "SET PARTNER OFF" in (remedy.statement or "")
    assert "1468" in remedy.text

    remedy = off(tmp_path / "managed", server_properties=[{"engine_edition": 8, "edition": "SQL Azure"}])
    assert remedy.statement is None
    assert "Managed Instance" in remedy.cause


def test_messages_that_routing_keeps_were_not_sent(tmp_path: Path) -> None:
    orders = database("Orders", "0d0d0d0d", is_enabled=0)
    shop(tmp_path, databases=[database("msdb", "d4d4d4d4", 4), orders])
    [group] = check([str(tmp_path)]).groups
    assert state_silence(group).endswith(": not sent")


# The connection: listeners, ports, partners, encryption, certificates.


def replica(folder: Path, instance: str, port: int, broker: str, *, is_open: bool) -> None:
    """A replica of the group of Stock, behind the listener stocklistener."""
    stock = {**database("Stock", "5c5c5c5c", is_enabled=int(is_open)), "group_database_id": GROUP}
    if not is_open:
        stock["service_broker_guid"] = ZERO
    views = {} if is_open else {"services": {"msdb": []}, "routes": {"msdb": [route("AutoCreatedLocal")]}}
    target(
        folder,
        instance,
        databases=[database("msdb", broker, 4), stock],
        service_broker_endpoints=[broker_endpoint(instance, port, listener_names="stocklistener")],
        **views,
    )


@pytest.mark.parametrize(
    ("roles", "spelling", "counted"),
    [
        (("PRIMARY", "SECONDARY"), "Orders", 1),
        (("PRIMARY", "SECONDARY"), "ORDERS", 1),
        ((None, None), "Orders", 2),
    ],
)
def test_messages_of_a_readable_secondary_are_counted_and_imported_once(
    tmp_path: Path, roles: tuple[str | None, str | None], spelling: str, counted: int
) -> None:
    for name, role in zip(("NODEA", "NODEB"), roles, strict=True):
        orders = {**database("Orders", "0d0d0d0d"), "group_database_id": GROUP}
        views: dict[str, Any] = {
            "databases": [database("msdb", "d4d4d4d4", 4), orders],
            "service_broker_endpoints": [broker_endpoint(name)],
            "conversation_endpoints": {spelling: [endpoint(number, state="CD") for number in range(600)]},
            "transmission_queue": {spelling: [waiting(1, "//stock")]},
            "routes": {"msdb": [], "Orders": [route("ToStock", "//stock", "TCP://stock:4022")]},
            "services": {"msdb": [], "Orders": [{"name": "//from"}]},
            "availability_replicas": [{"replica_server_name": name, "role_desc": role, "is_local": 1}],
        }
        export(tmp_path / "exports", name, **views)
    done = check([str(tmp_path / "exports")])
    assert sum(len(group.results) for group in done.groups) == counted
    assert len([trouble for trouble in done.troubles if trouble.kind is TroubleKind.ENDPOINTS_LEAK]) == counted
    imported = import_views(no_spark(), config_in(tmp_path), [str(tmp_path / "exports")])
    assert imported.written["messages"]["added"] == counted
    for notes in (done.evidence.log.notes, imported.notes):
        assert any("counted once, at the primary" in note for note in notes) is (counted == 1)
    apart = tmp_path / "apart"
    apart.mkdir()
    for name, is_noted in (("NODEA", False), ("NODEB", True), ("NODEB", False)):
        notes = import_views(no_spark(), config_in(apart), [str(tmp_path / "exports" / name)]).notes
        assert ("if these are replicas" in " ".join(notes)) is is_noted


@pytest.mark.parametrize(
    ("columns", "role", "note"),
    [
        ({"group_database_id": GROUP}, "SECONDARY", "run the statement at the primary"),
        ({"group_database_id": GROUP}, "PRIMARY", None),
        ({}, "SECONDARY", None),
        ({"is_read_only": 1}, None, "needs it to be writable"),
    ],
)
def test_no_statement_is_ready_for_a_database_that_takes_no_changes(
    tmp_path: Path, columns: dict[str, Any], role: str | None, note: str | None
) -> None:
    stock = {**database("Stock", "5c5c5c5c"), "state_desc": "ONLINE", **columns}
    role_of = {"replica_server_name": "STOCK", "role_desc": role, "is_local": 1}
    off = {"Stock": [{**QUEUE, "is_receive_enabled": 0}]}
    databases = [database("msdb", "d5d5d5d5", 4), stock]
    target(tmp_path, databases=databases, availability_replicas=[role_of], service_queues=off)
    [trouble] = check([str(tmp_path)]).troubles
    assert trouble.remedy.is_complete is (note is None)
    assert any((note or "Then turn the queue on.") in action for action in trouble.remedy.actions)


def test_a_name_that_looks_like_a_statement_hides_no_read_only_database(tmp_path: Path) -> None:
    databases = [database("msdb", "d5d5d5d5", 4), {**database("Stock", "5c5c5c5c"), "is_read_only": 1}]
    off = {"Stock": [{**QUEUE, "name": "ALTER DATABASE [msdb] READ_WRITE", "is_receive_enabled": 0}]}
    target(tmp_path, databases=databases, service_queues=off)
    [trouble] = check([str(tmp_path)]).troubles
    assert not trouble.remedy.is_complete
    assert any("needs it to be writable" in action for action in trouble.remedy.actions)


def test_a_listener_whose_primary_listens_on_another_port(tmp_path: Path) -> None:
    shop(tmp_path, REFUSED, 9754, routes=to_stock("TCP://stocklistener:4022"))
    replica(tmp_path, "NODEA", 4022, "d6d6d6d6", is_open=False)
    replica(tmp_path, "NODEB", 4023, "d7d7d7d7", is_open=True)
    [group] = check([str(tmp_path)]).groups
    # The listener leads to the primary: the secondary is no stop on the path.
    assert group.path is not None
    assert not group.path.failing_paths
    [advice] = group.advice
    assert advice.remedy.place == ("NODEB", "master")
    assert advice.remedy.statement == "USE [master];\nALTER ENDPOINT [NODEB Broker] AS TCP (LISTENER_PORT = 4022);"
    assert advice.remedy.risk is not None
    assert "ALTER ROUTE" not in advice.remedy.text


def test_a_route_to_a_secondary_replica_is_led_to_the_listener(tmp_path: Path) -> None:
    shop(tmp_path, routes=to_stock("TCP://nodea:4022"))
    replica(tmp_path, "NODEA", 4022, "d6d6d6d6", is_open=False)
    replica(tmp_path, "NODEB", 4022, "d7d7d7d7", is_open=True)
    remedy = only_remedy(tmp_path)
    assert remedy.place == ("SHOP", "Orders")
    assert remedy.statement == "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://stocklistener:4022';"


def test_the_primary_behind_a_listener_refuses_the_connection(tmp_path: Path) -> None:
    closed = "An error occurred while receiving data: '10054(An existing connection was forcibly closed …)'."
    shop(tmp_path, closed, 9755, routes=to_stock("TCP://stocklistener:4022"))
    replica(tmp_path, "NODEA", 4022, "d6d6d6d6", is_open=False)
    replica(tmp_path, "NODEB", 4022, "d7d7d7d7", is_open=True)
    export(tmp_path, "NODEB", server_permissions=[{"permission_name": "ALTER", "grantee_name": "x"}])
    remedy = only_remedy(tmp_path)
    assert remedy.place == ("NODEB", "master")
    assert "GRANT CONNECT ON ENDPOINT::[NODEB Broker]" in (remedy.statement or "")


def test_a_failing_connection_comes_before_a_missing_route_back(tmp_path: Path) -> None:
    shop(tmp_path, TIMED_OUT, 9754, routes=AWAY)
    target(tmp_path, routes={"msdb": [route("AutoCreatedLocal")], "Stock": []})
    [problem] = find_problems(check([str(tmp_path)]).groups)
    assert "10060" in problem.why
    first, second = (advice.remedy for advice in problem.advice)
    assert (first.statement, second.place) == (None, ("STOCK", "Stock"))
    assert "No acknowledgement comes back" in second.cause


def test_all_addresses_are_named_if_the_status_names_none(tmp_path: Path) -> None:
    routes = {**AWAY, "Orders": [*AWAY["Orders"], route("Gone", "//stock", "TCP://gone:4022")]}
    shop(tmp_path, TIMED_OUT, 9754, routes=routes)
    target(tmp_path)
    [problem] = find_problems(check([str(tmp_path)]).groups)
    either = "'TCP://gone:4022' or 'TCP://stock:4022'"
    assert f"the connection to {either} fails" in problem.headline
    remedy = problem.advice[0].remedy
    assert "no endpoint is known at 'TCP://gone:4022', the address of route 'Gone'" in remedy.cause
    assert remedy.statement == "-- USE [Orders];\n-- DROP ROUTE [Gone];"
    # Without the target both are unknown.
    shop(tmp_path / "alone", TIMED_OUT, 9754, routes=routes)
    remedy = only_remedy(tmp_path / "alone")
    assert f"At {either}:" in remedy.cause
    assert any("DROP ROUTE" in action for action in remedy.actions)


def test_the_status_of_an_expired_dialog_shows_why_it_was_late(tmp_path: Path) -> None:
    expired = {"Orders": [endpoint(1, far_service="//stock", lifetime="2026-01-05T13:00:00")]}
    shop(tmp_path, TIMED_OUT, 9754, routes=AWAY, conversation_endpoints=expired)
    [group] = check([str(tmp_path)]).groups
    first, second = (advice.remedy for advice in group.advice)
    assert "lifetime" in first.cause
    assert "Test-NetConnection" in second.text


def test_the_primary_behind_a_listener_has_no_endpoint(tmp_path: Path) -> None:
    shop(tmp_path, REFUSED, 9754, routes=to_stock("TCP://stocklistener:4022"))
    replica(tmp_path, "NODEA", 4022, "d6d6d6d6", is_open=False)
    replica(tmp_path, "NODEB", 4022, "d7d7d7d7", is_open=True)
    none = {"endpoint_id": None, "machine_name": "NODEB", "listener_names": "stocklistener"}
    export(tmp_path, "NODEB", service_broker_endpoints=[none])
    remedy = only_remedy(tmp_path)
    assert remedy.place == ("NODEB", "master")
    assert "has no Service Broker endpoint" in remedy.cause
    assert "CREATE ENDPOINT" in (remedy.statement or "")


def test_the_route_with_a_known_fault_is_answered_first(tmp_path: Path) -> None:
    routes = {**AWAY, "Orders": [*AWAY["Orders"], route("ToSpare", "//stock", "TCP://spare:4022")]}
    shop(tmp_path, REFUSED, 9754, routes=routes)
    target(tmp_path)
    spare = [broker_endpoint("SPARE", state_desc="STOPPED")]
    databases = [database("msdb", "d6d6d6d6", 4), database("Stock", "6c6c6c6c")]
    target(tmp_path, "SPARE", databases=databases, service_broker_endpoints=spare)
    [group] = check([str(tmp_path)]).groups
    assert group.advice[0].remedy.statement == "USE [master];\nALTER ENDPOINT [SPARE Broker] STATE = STARTED;"


def test_a_route_back_to_an_unknown_address_is_to_be_checked(tmp_path: Path) -> None:
    back = [route("Back", "//from", "TCP://oldshop:4022")]
    shop(tmp_path, routes=AWAY)
    target(
        tmp_path, routes={"msdb": [route("AutoCreatedLocal")], "Stock": back}, conversation_endpoints={"Stock": []}
    )
    assert "Check that 'TCP://oldshop:4022'" in only_remedy(tmp_path).actions[0]


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (28014, "read-only"),
        (11214, "no contract"),
        (11225, "lacks"),
        (11282, "Express"),
        (8409, "contract"),
        (28010, "refused"),
        (28005, "Error: 9002"),
    ],
)
def test_trouble_of_the_target_is_shown_there(number: int, status: str, tmp_path: Path) -> None:
    shop(tmp_path, status, number, routes=AWAY)
    target(tmp_path)
    assert only_remedy(tmp_path).place == ("STOCK", "Stock")


@pytest.mark.parametrize(("role", "kinds"), [("SECONDARY", []), ("PRIMARY", [TroubleKind.BROKER_OFF])])
def test_a_replica_with_its_broker_off(role: str, kinds: list[TroubleKind], tmp_path: Path) -> None:
    shop(tmp_path)
    stock = {**database("Stock", "5c5c5c5c", is_enabled=0), "group_database_id": GROUP}
    target(
        tmp_path,
        databases=[database("msdb", "d5d5d5d5", 4), stock],
        availability_group_listeners=[{"dns_name": "stocklistener"}],
        availability_replicas=[{"replica_server_name": "STOCK", "role_desc": role, "is_local": 1}],
    )
    assert [trouble.kind for trouble in check([str(tmp_path)]).troubles] == kinds


def test_a_new_route_leads_to_the_listener(tmp_path: Path) -> None:
    shop(tmp_path, routes={"msdb": [route("AutoCreatedLocal")], "Orders": [route("AutoCreatedLocal")]})
    replica(tmp_path, "NODEA", 4022, "d6d6d6d6", is_open=False)
    replica(tmp_path, "NODEB", 4022, "d7d7d7d7", is_open=True)
    statement = only_remedy(tmp_path).statement or ""
    assert "CREATE ROUTE" in statement
    assert "tcp://stocklistener:4022" in statement
    assert "nodeb" not in statement.lower()


def test_a_managed_instance_gets_its_own_advice(tmp_path: Path) -> None:
    managed = {"server_properties": [{"engine_edition": 8, "edition": "SQL Azure"}]}
    shop(tmp_path, TIMED_OUT, 9754, routes=to_stock("TCP://onpremises:5022"), **managed)
    remedy = only_remedy(tmp_path)
    assert remedy.statement is None
    assert "4022" in remedy.cause
    unbound = "Dialog security is not available for this conversation because there is no remote service binding."
    shop(tmp_path, unbound, 9727, routes=to_stock("TCP://other:4022"), **managed)
    remedy = only_remedy(tmp_path)
    assert remedy.statement is None
    assert "does not support" in remedy.text


@pytest.mark.parametrize(("keys", "expected"), [([], "CREATE MASTER KEY"), ([{}], "ADD ENCRYPTION")])
def test_the_master_key_that_was_exported(tmp_path: Path, keys: list[dict[str, Any]], expected: str) -> None:
    text = "An exception occurred while enqueueing a message in the target queue. Error: 15581, State: 7."
    rows = [{"name": "##MS_DatabaseMasterKey##", **key} for key in keys]
    services = {"msdb": [], "Orders": [{"name": "//stock"}]}
    routes = {"msdb": [], "Orders": [route("AutoCreatedLocal")]}
    shop(tmp_path, text, 28005, services=services, routes=routes, symmetric_keys={"Orders": rows})
    statement = only_remedy(tmp_path).statement or ""
    assert expected in statement
    assert ("CREATE MASTER KEY" in statement) == (not keys)


@pytest.mark.parametrize("status", ["", REFUSED], ids=["silent", "refused"])
def test_two_instances_of_one_machine_on_one_port(tmp_path: Path, status: str) -> None:
    shop(tmp_path, status, 9754 if status else None, routes=to_stock("TCP://box:4022"))
    for name in ("FIRST", "SECOND"):
        named = broker_endpoint("BOX", name=f"{name} Broker", machine_name=None)
        is_target = name == "SECOND"
        views: dict[str, Any] = {} if is_target else {"services": {"msdb": [], "Stock": []}}
        target(tmp_path, f"BOX\\{name}", service_broker_endpoints=[named], **views)
    remedy = only_remedy(tmp_path)
    assert remedy.place == ("BOX\\SECOND", "master")
    assert "9692" in remedy.cause
    assert "ALTER ENDPOINT [SECOND Broker] AS TCP (LISTENER_PORT = <port>);" in (remedy.statement or "")
    assert "not exported" not in remedy.text


def test_two_folders_named_like_named_instances_are_these(tmp_path: Path) -> None:
    for name in ("ONE", "TWO"):
        folder = tmp_path / f"BOX${name}"
        folder.mkdir()
        (folder / "sys.services Db.csv").write_text("name,service_id,service_queue_id\n//a,7,70\n", "utf-8")
        (folder / "sys.transmission_queue Db.csv").write_text(
            "conversation_handle,to_service_name,enqueue_time,message_sequence_number\n", "utf-8"
        )
    assert check([str(tmp_path)]).evidence.instances == ["BOX\\ONE", "BOX\\TWO"]


def test_the_partner_of_a_mirror_that_has_failed_over(tmp_path: Path) -> None:
    named = to_stock("TCP://mirrora:4022", broker_instance=BOUND)
    shop(tmp_path, TIMED_OUT, 9754, routes=named, bound=BOUND)
    target(tmp_path, "MIRRORB")
    remedy = only_remedy(tmp_path)
    assert remedy.statement == (
        "USE [Orders];\nALTER ROUTE [ToStock] WITH SERVICE_NAME = N'//stock',"
        f" BROKER_INSTANCE = N'{BOUND}', ADDRESS = N'TCP://mirrora:4022', MIRROR_ADDRESS = N'tcp://MIRRORB:4022';"
    )
    # A route that has a mirror already is not given the same again.
    named = to_stock("TCP://mirrora:4022", broker_instance=BOUND, mirror_address="TCP://mirrorb:4022")
    shop(tmp_path, TIMED_OUT, 9754, routes=named, bound=BOUND)
    assert "MIRROR_ADDRESS" not in (only_remedy(tmp_path).statement or "")


def test_endpoints_without_a_common_algorithm(tmp_path: Path) -> None:
    status = "Connection handshake failed. There is no compatible encryption algorithm. State 22."
    old = broker_endpoint("SHOP", encryption_algorithm_desc="RC4")
    shop(tmp_path, status, 28027, routes=to_stock("TCP://stock:4022"), service_broker_endpoints=[old])
    target(tmp_path)
    remedy = only_remedy(tmp_path)
    assert remedy.confidence is Confidence.CERTAIN
    assert remedy.place == ("SHOP", "master")
    assert remedy.statement == (
        "USE [master];\nALTER ENDPOINT [SHOP Broker] FOR SERVICE_BROKER (ENCRYPTION = REQUIRED ALGORITHM AES);"
    )
    # Where both agree the status is of something else.
    shop(tmp_path, status, 28027, routes=to_stock("TCP://stock:4022"))
    assert "REQUIRED ALGORITHM" not in (only_remedy(tmp_path).statement or "")


def test_a_peer_whose_certificate_is_not_known(tmp_path: Path) -> None:
    status = (
        "Connection handshake failed. The certificate used by the peer is invalid due to the following reason:"
        " Certificate not found. State 89."
    )
    shop(tmp_path, status, 28035, routes=to_stock("TCP://stock:4022"))
    certificates = [{"name": "StockCert", "certificate_id": 261, "expiry_date": "2030-01-01T00:00:00"}]
    target(tmp_path, certificates={"master": certificates})
    remedy = only_remedy(tmp_path)
    statement = remedy.statement or ""
    assert remedy.place == ("SHOP", "master")
    assert "CREATE CERTIFICATE [StockCert] AUTHORIZATION [<user>] FROM FILE" in statement
    assert "GRANT CONNECT ON ENDPOINT::[SHOP Broker]" in statement
    # The endpoint of one's own works, and stays as it is.
    assert "ALTER ENDPOINT" not in statement


def test_a_peer_whose_certificate_has_expired(tmp_path: Path) -> None:
    status = (
        "Connection handshake failed. The certificate used by the peer is invalid due to the following reason:"
        " The certificate has expired. State 81."
    )
    shop(tmp_path, status, 28035, routes=to_stock("TCP://stock:4022"))
    certificates = [{"name": "StockCert", "certificate_id": 261, "expiry_date": "2026-01-01T00:00:00"}]
    target(tmp_path, certificates={"master": certificates})
    remedy = only_remedy(tmp_path)
    assert remedy.place == ("STOCK", "master")
    assert "'StockCert', valid until 2026-01-01" in remedy.cause
    assert "ALTER ENDPOINT [STOCK Broker]" in (remedy.statement or "")
    assert "SHOP Broker" not in (remedy.statement or "")


@pytest.mark.parametrize(
    ("ours", "differs"),
    [("NTLM", True), ("NEGOTIATE", True), ("NTLM, CERTIFICATE", False), ("CERTIFICATE", False)],
)
def test_endpoints_without_a_common_authentication(tmp_path: Path, ours: str, differs: bool) -> None:
    closed = "An error occurred while receiving data: '10054(An existing connection was forcibly closed …)'."
    own_endpoint = broker_endpoint("SHOP", connection_auth_desc=ours)
    shop(tmp_path, closed, 9757, routes=to_stock("TCP://stock:4022"), service_broker_endpoints=[own_endpoint])
    target(tmp_path)
    remedy = only_remedy(tmp_path)
    assert ("no kind of authentication in common" in remedy.cause) is differs
    assert "[SHOP Broker]" in (remedy.statement or "")


def test_an_endpoint_that_was_exported_as_stopped(tmp_path: Path) -> None:
    shop(tmp_path, REFUSED, 9754, routes=to_stock("TCP://stock:4022"))
    target(tmp_path, service_broker_endpoints=[broker_endpoint("STOCK", state_desc="STOPPED")])
    remedy = only_remedy(tmp_path)
    assert remedy.place == ("STOCK", "master")
    assert remedy.statement == "USE [master];\nALTER ENDPOINT [STOCK Broker] STATE = STARTED;"


def test_one_error_at_many_addresses_is_one_problem(tmp_path: Path) -> None:
    numbers = range(1, 6)
    routes = [route(f"To{number}", f"//s{number}", f"TCP://host{number}:4022") for number in numbers]
    queue = [
        waiting(number, f"//s{number}", transmission_status=TIMED_OUT, error_number=9754) for number in numbers
    ]
    reached = waiting(9, "//s9", transmission_status=REFUSED, error_number=9754)
    routes.append(route("To9", "//s9", "TCP://host9:4022"))
    whole_shop(tmp_path, [*queue, reached], routes={"msdb": [route("AutoCreatedLocal")], "Orders": routes})
    common, other = find_problems(check([str(tmp_path)]).groups)
    assert (common.count, other.count) == (5, 1)
    [advice] = common.advice
    assert advice.remedy.statement is None
    assert all(f"TCP://host{number}:4022" in advice.remedy.text for number in numbers)


# 916 within one instance.

ACCESS = (
    "An exception occurred while enqueueing a message in the target queue. Error: 916, State: 3. The server"
    ' principal "sa" is not able to access the database "Stock" under the current security context.'
)


UNTRUSTED = (
    "An exception occurred while enqueueing a message in the target queue. Error: 15562, State: 1. The module"
    " being executed is not trusted."
)


def in_one_instance(folder: Path, status: str = ACCESS, **columns: Any) -> Remedy:
    """Return the remedy for a status, with Orders and Stock in one instance. ``columns`` are those of Stock."""
    stock = {**database("Stock", "5c5c5c5c", 6), "owner_sid": "0x01", **columns}
    orders = {**database("Orders", "0d0d0d0d"), "owner_sid": "0x01", "is_trustworthy_on": 0}
    shop(
        folder,
        status,
        28005,
        databases=[database("msdb", "d4d4d4d4", 4), orders, stock],
        services={"msdb": [], "Orders": [{"name": "//from"}], "Stock": [{"name": "//stock"}]},
        routes={"msdb": [], "Orders": [route("AutoCreatedLocal")], "Stock": [route("AutoCreatedLocal")]},
    )
    return only_remedy(folder)


def test_a_sender_that_is_not_trusted_in_another_database(tmp_path: Path) -> None:
    for number, status in enumerate((ACCESS, UNTRUSTED)):
        remedy = in_one_instance(tmp_path / str(number), status)
        assert remedy.statement == "USE [master];\nALTER DATABASE [Orders] SET TRUSTWORTHY ON;"
        assert remedy.risk is not None
    # An owner that is no login of the instance comes first.
    remedy = in_one_instance(tmp_path / "owner", owner_sid="0x0105", owner_is_known=0)
    assert remedy.statement == "USE [master];\nALTER AUTHORIZATION ON DATABASE::[Stock] TO [sa];"


# A blank status: what the target's own views show.


def silent(folder: Path, sender: dict[str, Any] | None = None, **views: Any) -> Remedy:
    """The remedy for a message that was sent to STOCK and is not acknowledged."""
    shop(folder, routes=AWAY, **(sender or {}))
    target(folder, **views)
    return only_remedy(folder)


def test_a_silent_target_is_explained_by_its_queue(tmp_path: Path) -> None:
    remedy = silent(tmp_path / "off", service_queues={"Stock": [{**QUEUE, "is_receive_enabled": 0}]})
    assert remedy.place == ("STOCK", "Stock")
    assert remedy.statement == "USE [Stock];\nALTER QUEUE [dbo].[StockQueue] WITH STATUS = ON;"

    unread = {**QUEUE, "activation_procedure": None, "messages": 12}
    views: dict[str, Any] = {"service_queues": {"Stock": [unread]}}
    views["dm_broker_queue_monitors"] = [{"database_id": 5, "queue_id": 70, "tasks_waiting": 0}]
    remedy = silent(tmp_path / "unread", **views)
    assert "12 messages" in remedy.cause
    assert "WITH ACTIVATION" in (remedy.statement or "")
    views["dm_broker_queue_monitors"] = [{"database_id": 5, "queue_id": 70, "tasks_waiting": 1}]
    assert "12 messages" not in silent(tmp_path / "read", **views).cause


def test_no_principal_may_send_to_the_target(tmp_path: Path) -> None:
    unbound: dict[str, Any] = {"remote_service_bindings": {"Orders": []}}
    grants: dict[str, Any] = {"database_permissions": {"Stock": []}}
    remedy = silent(tmp_path / "nobody", unbound, **grants)
    assert remedy.place == ("STOCK", "Stock")
    assert remedy.statement == "USE [Stock];\nGRANT SEND ON SERVICE::[//stock] TO [public];"
    assert remedy.risk is not None
    public = {"permission_name": "SEND", "object_name": "//stock", "grantee_name": "public", "state_desc": "GRANT"}
    granted = silent(tmp_path / "public", unbound, database_permissions={"Stock": [public]})
    assert "GRANT SEND" not in (granted.statement or "")


def test_a_route_back_to_another_port(tmp_path: Path) -> None:
    away = {"service_broker_endpoints": [broker_endpoint("SHOP", 4023)]}
    remedy = silent(tmp_path, away)
    assert remedy.place == ("STOCK", "Stock")
    assert "the endpoint of 'SHOP' listens on port 4023" in remedy.cause
    assert "ALTER ROUTE [Back] WITH ADDRESS = N'tcp://SHOP:4023';" in (remedy.statement or "")


def test_two_express_instances(tmp_path: Path) -> None:
    express = {"server_properties": [{"engine_edition": 4, "edition": "Express Edition (64-bit)"}]}
    assert "Express" in silent(tmp_path / "both", express, **express).cause
    paid = {"server_properties": [{"engine_edition": 3, "edition": "Enterprise Edition"}]}
    assert "Express" not in silent(tmp_path / "one", express, **paid).cause


def test_a_silent_target_is_explained_by_its_dialogs(tmp_path: Path) -> None:
    known_dialog = endpoint(1, is_initiator=0, conversation_handle=handle(9))
    remedy = silent(tmp_path / "known", conversation_endpoints={"Stock": [known_dialog]})
    assert remedy.place == ("STOCK", "Stock")
    assert "acknowledgement is lost" in remedy.cause
    other = {**known_dialog, "conversation_id": conversation(8)}
    remedy = silent(tmp_path / "other", conversation_endpoints={"Stock": [other]})
    assert "do not arrive" in remedy.cause
    assert any("Broker:Message Undeliverable" in action for action in remedy.actions)


def test_a_target_that_was_exported_before_the_message_was_sent(tmp_path: Path) -> None:
    shop(tmp_path, routes=AWAY)
    views: dict[str, Any] = {
        "databases": [database("msdb", "d5d5d5d5", 4), database("Stock", "5c5c5c5c")],
        "service_broker_endpoints": [broker_endpoint("STOCK")],
        "routes": {"msdb": [route("AutoCreatedLocal")], "Stock": [route("Back", "//from", "TCP://shop:4022")]},
        "services": {"msdb": [], "Stock": [{"name": "//stock"}]},
        "service_queues": {"Stock": [{**QUEUE, "is_receive_enabled": 0}]},
    }
    export(tmp_path, "STOCK", "2026-01-05T03:00:00Z", **views)
    remedy = only_remedy(tmp_path)
    assert "not known" in remedy.cause
    assert remedy.statement is None
    done = check([str(tmp_path)])
    assert [str(result.case.end) for result in done.results] == ["NOT_KNOWN"]
    assert "'STOCK': it was exported before the messages were sent" in print_check(done)


def test_the_only_possible_target_is_looked_at_if_the_end_is_not_known(tmp_path: Path) -> None:
    off: dict[str, Any] = {"service_queues": {"Stock": [{**QUEUE, "is_receive_enabled": 0}]}}
    remedy = silent(tmp_path, routes=None, **off)
    assert [str(result.case.end) for result in check([str(tmp_path)]).results] == ["NOT_KNOWN"]
    assert remedy.statement == "USE [Stock];\nALTER QUEUE [dbo].[StockQueue] WITH STATUS = ON;"


@pytest.mark.parametrize(
    ("exported_at", "end"), [("2026-01-05T13:00:00Z", "DELIVERED"), ("2026-01-05T11:59:00Z", "NOT_KNOWN")]
)
def test_a_verdict_needs_an_export_that_is_newer_than_the_message(
    exported_at: str, end: str, tmp_path: Path
) -> None:
    """The message was sent at 12:01, and the sender was exported at 18:00."""
    shop(tmp_path, routes=AWAY)
    target(tmp_path)
    for file in (tmp_path / "STOCK").iterdir():
        file.write_text(file.read_text("utf-8").replace("2026-01-05T18:00:00Z", exported_at), "utf-8")
    done = check([str(tmp_path)])
    assert [str(result.case.end) for result in done.results] == [end]
    assert any("long before" in note for note in find_notes(done)) is (end == "DELIVERED")


@pytest.mark.parametrize("is_enabled", [1, 0])
def test_another_database_that_holds_the_service_is_named(is_enabled: int, tmp_path: Path) -> None:
    databases = [database("msdb", "d5d5d5d5", 4), database("Stock", "5c5c5c5c")]
    databases.append(database("Stock_Test", "7c7c7c7c", 6, is_enabled))
    services = {"msdb": [], "Stock": [{"name": "//stock"}], "Stock_Test": [{"name": "//stock"}]}
    remedy = silent(tmp_path, databases=databases, services=services)
    assert ("'Stock_Test' of 'STOCK' holds the service too" in remedy.text) is bool(is_enabled)


def test_helpful_exports_are_named(tmp_path: Path) -> None:
    remedy = silent(tmp_path)
    [sentence] = [action for action in remedy.actions if "sys.service_queues" in action]
    assert "whether the queue is on" in sentence


# Nothing waits, and something is wrong all the same.


def test_leaking_endpoints_and_failed_dialogs_are_troubles(tmp_path: Path) -> None:
    def ends(count: int, start: int, **columns: Any) -> list[dict[str, Any]]:
        return [endpoint(start + number, service_name="//orders", **columns) for number in range(count)]

    closed = ends(150, 1000, state="CD", is_initiator=0, security_timestamp="1900-01-01 00:00:00.000")
    failed = ends(3, 3000, state="ER")
    whole_shop(tmp_path, [], [*closed, *failed, *ends(20, 4000, state="CO")])
    done = check([str(tmp_path)])
    in_error, leak = done.troubles
    assert (in_error.kind, in_error.count) == (TroubleKind.DIALOGS_IN_ERROR, 3)
    assert "WITH CLEANUP" not in (in_error.remedy.statement or "")
    assert (leak.kind, leak.count, leak.remedy.place) == (TroubleKind.ENDPOINTS_LEAK, 150, ("SHOP", "Orders"))
    assert "fire and forget" in leak.remedy.cause
    assert "LIFETIME" in leak.remedy.text
    # Those that have a message waiting are left alone.
    assert "sys.transmission_queue" in (leak.remedy.statement or "")
    assert leak.remedy.risk is not None

    waiting_for_the_other = ends(150, 5000, state="DISCONNECTED_INBOUND")
    whole_shop(tmp_path, [], waiting_for_the_other)
    [leak] = check([str(tmp_path)]).troubles
    assert "END CONVERSATION @handle;" in (leak.remedy.statement or "")


def test_counts_of_endpoints_in_place_of_their_rows(tmp_path: Path) -> None:
    counts = [{"state": "CD", "service_name": "//orders", "is_initiator": 0, "endpoints": 2_000_000}]
    whole_shop(tmp_path, [], [], endpoint_counts={"Orders": counts})
    [leak] = check([str(tmp_path)]).troubles
    assert (leak.kind, leak.count) == (TroubleKind.ENDPOINTS_LEAK, 2_000_000)


def test_queues_that_are_off_or_not_read_are_troubles(tmp_path: Path) -> None:
    services = {"msdb": [], "Orders": [{"name": "//orders", "service_queue_id": 70}]}
    unread = {**QUEUE, "activation_procedure": None, "messages": 7}
    monitors = [{"database_id": 5, "queue_id": 70, "tasks_waiting": 0}]
    views: dict[str, Any] = {"services": services, "dm_broker_queue_monitors": monitors}
    whole_shop(tmp_path, [], service_queues={"Orders": [unread]}, **views)
    [trouble] = check([str(tmp_path)]).troubles
    assert (trouble.kind, trouble.count) == (TroubleKind.QUEUE_NOT_READ, 7)
    whole_shop(tmp_path, [], service_queues={"Orders": [{**QUEUE, "is_enqueue_enabled": 0}]}, **views)
    [trouble] = check([str(tmp_path)]).troubles
    assert trouble.kind is TroubleKind.QUEUE_OFF
    whole_shop(tmp_path, [], service_queues={"Orders": [QUEUE]}, **views)
    assert check([str(tmp_path)]).troubles == []
    mail = {**QUEUE, "name": "ExternalMailQueue", "is_receive_enabled": 0}
    services = {"msdb": [{"name": "ExternalMailService", "service_queue_id": 70}], "Orders": []}
    whole_shop(tmp_path, [], service_queues={"msdb": [mail]}, services=services)
    [trouble] = check([str(tmp_path)]).troubles
    assert "EXEC msdb.dbo.sysmail_start_sp;" in (trouble.remedy.statement or "")


# What was refused, and columns that cannot be read.


def test_refused_parts_name_the_grant(tmp_path: Path) -> None:
    errors = [
        {"part": "dm_broker_connections", "error_number": 300},
        {"part": "every part", "of_database": "Secret", "error_number": 916},
        {"part": "routes", "of_database": "Orders", "error_number": 1222},
        {"part": "conversation_endpoints", "of_database": "Orders", "left_out": 5},
    ]
    whole_shop(tmp_path, [], export_errors=errors)
    refusals = {one.part: one for one in evidence_of(check([str(tmp_path)])).list_refusals()}
    assert refusals["dm_broker_connections"].permission == "VIEW SERVER STATE"
    assert refusals["every part"].permission == "CONNECT ANY DATABASE"
    # A lock is no lack of a permission.
    assert refusals["routes"].permission is None
    assert refusals["conversation_endpoints"].left_out == 5
    assert "GRANT VIEW SERVER STATE" in refusals["dm_broker_connections"].state()


def test_evidence_that_cannot_be_read_rejects_no_row(tmp_path: Path) -> None:
    orders = {**database("Orders", "0d0d0d0d"), "is_trustworthy_on": "perhaps", "group_database_id": "none"}
    whole_shop(tmp_path, [], databases=[database("msdb", "d4d4d4d4", 4), orders])
    done = check([str(tmp_path)])
    assert done.evidence.log.rejected == ()
    facts = evidence_of(done).database("SHOP", "Orders")
    assert facts is not None
    assert (facts.is_trustworthy, facts.is_in_group) == (None, False)


@pytest.mark.parametrize("at", ["2026-01-05T06:00:00Z", AT])
def test_an_error_log_from_before_the_messages_does_not_explain_them(at: str, tmp_path: Path) -> None:
    line = "Service Broker login attempt failed with error: 'Connection handshake failed. The login 'C\\shop' does"
    line += " not have CONNECT permission on the endpoint. State 84.'."
    shop(tmp_path, routes=AWAY)
    target(tmp_path, at=at, error_log=[{"log_date": "2026-01-05T05:00:00", "text": line}])
    remedy = only_remedy(tmp_path)
    assert ("Export both sides again" in remedy.text) is (at != AT)
    assert ("GRANT CONNECT" in (remedy.statement or "")) is (at == AT)
