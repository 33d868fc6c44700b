"""Statements applied to the objects of an instance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from routing.importing.tsql.instance_state import (
    DatabaseState,
    EndpointState,
    InstanceState,
    RouteState,
    ServiceState,
)
from routing.importing.tsql.script_reader import AppliedScript, ReadScript, apply_script

ReadText = Callable[..., ReadScript]
GUID = "4c8c5a5c-1d3e-4b7a-9d5e-2f0a6b1c7d88"
STATE = InstanceState(
    routes=(
        RouteState("Shop", "AutoCreatedLocal", "LOCAL"),
        RouteState(
            "Shop",
            "ToStock",
            "TCP://stock:4022",
            remote_service_name="//stock",
            broker_instance=GUID,
            lifetime=datetime(2025, 1, 1, tzinfo=timezone.utc),
            mirror_address="TCP://stock2:4022",
        ),
        RouteState("msdb", "AutoCreatedLocal", "LOCAL"),
    ),
    services=(ServiceState("Shop", "//shop"),),
    databases=(DatabaseState("Shop", GUID), DatabaseState("msdb", GUID, is_broker_enabled=False)),
    endpoint=EndpointState("broker"),
)


@pytest.fixture
def run(read: ReadText) -> Callable[..., AppliedScript]:
    """Applies a script in database Shop to STATE."""

    def applied(text: str, state: InstanceState = STATE, **options: object) -> AppliedScript:
        script = read(text, **{"database": "SHOP", **options})
        assert script.problems == ()
        return apply_script(state, script)

    return applied


Run = Callable[..., AppliedScript]


@pytest.mark.parametrize("drop", ["DROP ROUTE ToStock", "DROP SERVICE [//shop]"])
def test_what_a_script_drops_is_known_to_be_missing(run: Run, drop: str) -> None:
    in_part = replace(STATE, in_part=frozenset([("routes", "Shop"), ("services", "Shop")]))
    assert [problem.number for problem in run(f"{drop}\n{drop}", in_part).problems] == [15151]


def test_an_empty_script_changes_nothing(run: Run) -> None:
    assert run("") == AppliedScript(STATE)


def test_routes_are_created_altered_and_dropped_in_order(run: Run) -> None:
    result = run(
        """CREATE ROUTE New WITH SERVICE_NAME = 's', ADDRESS = 'TCP://a:1', LIFETIME = 60
           ALTER ROUTE new WITH ADDRESS = 'TCP://b:1'
           ALTER ROUTE TOSTOCK WITH BROKER_INSTANCE = 'x', LIFETIME = 120
           DROP ROUTE autocreatedlocal
           CREATE ROUTE Gone WITH ADDRESS = 'LOCAL' DROP ROUTE Gone"""
    )
    assert set(result.state.routes) == {
        RouteState(
            "Shop",
            "New",
            "TCP://b:1",
            remote_service_name="s",
            lifetime=datetime(2024, 5, 1, 0, 1, tzinfo=timezone.utc),
        ),
        RouteState(
            "Shop",
            "ToStock",
            "TCP://stock:4022",
            remote_service_name="//stock",
            broker_instance="x",
            lifetime=datetime(2024, 5, 1, 0, 2, tzinfo=timezone.utc),
            mirror_address="TCP://stock2:4022",
        ),
        RouteState("msdb", "AutoCreatedLocal", "LOCAL"),
    }
    assert (len(result.statements), result.passed_over, result.refused) == (6, (), 0)
    assert result.problems == ()


@pytest.mark.parametrize(
    ("text", "number", "why"),
    [
        ("CREATE ROUTE tostock WITH ADDRESS = 'LOCAL'", 15530, "'ToStock' already exists"),
        ("ALTER ROUTE x WITH ADDRESS = 'LOCAL'", 15151, "has no such route"),
        ("DROP ROUTE x", 15151, "the database 'Shop' has no such route"),
        ("ALTER ROUTE ToStock WITH ADDRESS = 'LOCAL'", 9743, "a mirror address with ADDRESS"),
        ("ALTER ROUTE ToStock WITH ADDRESS = 'tcp://STOCK2:4022'", 9747, "are the same"),
        (
            "ALTER ROUTE AutoCreatedLocal WITH BROKER_INSTANCE = 'x'",
            9662,
            "BROKER_INSTANCE without SERVICE_NAME",
        ),
        (
            "ALTER ROUTE AutoCreatedLocal WITH MIRROR_ADDRESS = 'tcp://m'",
            9743,
            "a mirror address with ADDRESS 'LOCAL'",
        ),
        ("CREATE SERVICE [//shop] ON QUEUE q", 15530, "already exists"),
        ("DROP SERVICE [//SHOP]", 15151, "has no such service"),
        ("CREATE DATABASE shop", 1801, "already exists"),
        ("DROP DATABASE other", 3701, "no such database"),
        ("ALTER DATABASE other SET ENABLE_BROKER", 5011, "no such database is known"),
        (
            "CREATE ENDPOINT e AS TCP (LISTENER_PORT = 4023) FOR SERVICE_BROKER ()",
            7862,
            "already has a SERVICE_BROKER endpoint, 'broker'",
        ),
        (
            "CREATE ENDPOINT Broker AS TCP (LISTENER_PORT = 4023) FOR TSQL ()",
            None,
            "the endpoint already exists",
        ),
        (
            "ALTER ENDPOINT e FOR SERVICE_BROKER (MESSAGE_FORWARDING = ENABLED)",
            15151,
            "no such endpoint",
        ),
        ("DROP ENDPOINT e", 15151, "no such endpoint"),
        ("EXEC sp_detach_db 'other'", 15010, "no such database"),
        ("EXEC sp_renamedb 'other', 'x'", 5011, "no such database is known"),
        ("ALTER DATABASE Shop MODIFY NAME = MSDB", 1801, "'MSDB' already exists"),
    ],
)
def test_refused_statements_change_nothing(run: Run, text: str, number: int | None, why: str) -> None:
    result = run(f"\n{text}")
    assert result.state == STATE
    (problem,) = result.problems
    assert (problem.file, problem.line, problem.number) == ("f.sql", 2, number)
    assert why in problem.why
    assert (problem.counted, len(result.statements), result.refused) == (False, 0, 1)


def test_statements_without_a_database_are_reported(run: Run) -> None:
    result = run("DROP ROUTE ToStock\nCREATE SERVICE s ON QUEUE q", database=None)
    assert result.state == STATE
    assert [(problem.line, problem.number) for problem in result.problems] == [(1, None), (2, None)]
    assert all("its database is unknown" in problem.why for problem in result.problems)


def test_services_are_found_exactly(run: Run) -> None:
    result = run("CREATE SERVICE [//SHOP] ON QUEUE q\nDROP SERVICE [//shop]")
    assert result.state.services == (ServiceState("Shop", "//SHOP"),)


def test_broker_options_of_databases_are_applied(run: Run) -> None:
    result = run(
        """ALTER DATABASE shop SET DISABLE_BROKER
           ALTER DATABASE msdb SET ENABLE_BROKER"""
    )
    assert result.state.databases == (
        DatabaseState("Shop", GUID, is_broker_enabled=False),
        DatabaseState("msdb", GUID),
    )
    assert result.problems == ()


def test_a_new_broker_has_an_id_that_only_the_server_knows(run: Run) -> None:
    result = run("ALTER DATABASE msdb SET NEW_BROKER")
    assert result.state.databases == (DatabaseState("Shop", GUID), DatabaseState("msdb", None))
    (problem,) = result.problems
    assert (problem.line, problem.counted) == (1, True)
    assert "service_broker_guid" in problem.why


def test_a_new_database_has_its_local_route(run: Run) -> None:
    result = run("CREATE DATABASE Stock\nGO\nUSE stock\nCREATE ROUTE r WITH ADDRESS = 'LOCAL'")
    assert result.state.databases[-1] == DatabaseState("Stock", None)
    assert result.state.routes[-2:] == (
        RouteState("Stock", "AutoCreatedLocal", "LOCAL"),
        RouteState("Stock", "r", "LOCAL"),
    )
    assert [problem.counted for problem in result.problems] == [True]


def test_a_dropped_database_takes_its_rows_along(run: Run) -> None:
    result = run("DROP DATABASE SHOP\nDROP DATABASE IF EXISTS shop")
    assert result.state == InstanceState(
        routes=STATE.routes[2:], databases=STATE.databases[1:], endpoint=STATE.endpoint
    )
    assert result.problems == ()


def test_conversations_that_end_with_an_error_have_a_broker(run: Run) -> None:
    result = run("ALTER DATABASE msdb SET ERROR_BROKER_CONVERSATIONS WITH ROLLBACK IMMEDIATE")
    assert result.state.databases == (DatabaseState("Shop", GUID), DatabaseState("msdb", GUID))
    (problem,) = result.problems
    assert problem.counted
    assert "its conversations end with an error" in problem.why


def test_a_renamed_database_takes_its_rows_along(run: Run) -> None:
    named = replace(STATE, databases=(DatabaseState("Shop", GUID, database_id=7), DatabaseState("msdb", GUID)))
    result = run("ALTER DATABASE SHOP MODIFY NAME = Store\nDROP ROUTE ToStock\nDROP SERVICE [//shop]", named)
    assert set(result.state.routes) == {
        RouteState("Store", "AutoCreatedLocal", "LOCAL"),
        RouteState("msdb", "AutoCreatedLocal", "LOCAL"),
    }
    assert result.state.services == ()
    assert set(result.state.databases) == {
        DatabaseState("Store", GUID, database_id=7),
        DatabaseState("msdb", GUID),
    }
    (problem,) = result.problems
    assert problem.counted
    assert "its name is 'Store' from here on" in problem.why
    again = run("EXEC sp_renamedb 'Shop', 'SHOP'")
    assert {route.database_name for route in again.state.routes} == {"SHOP", "msdb"}
    assert [service.database_name for service in again.state.services] == ["SHOP"]


def test_a_detached_database_takes_its_rows_along(run: Run) -> None:
    result = run("EXEC master.dbo.sp_detach_db @dbname = N'shop'")
    assert result.state == InstanceState(
        routes=STATE.routes[2:], databases=STATE.databases[1:], endpoint=STATE.endpoint
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "ALTER DATABASE Shop SET OFFLINE WITH ROLLBACK IMMEDIATE",
            "ALTER DATABASE 'Shop': SET OFFLINE is reported but not applied",
        ),
        ("ALTER DATABASE Shop SET READ_ONLY", "SET READ_ONLY is reported but not applied: no table stores it"),
        (
            "ALTER ENDPOINT broker STATE = STOPPED",
            "STATE = STOPPED: no table stores whether an endpoint is STARTED",
        ),
    ],
)
def test_changes_without_a_table_are_reported(run: Run, text: str, why: str) -> None:
    result = run(text)
    assert result.state == STATE
    (problem,) = result.problems
    assert problem.counted
    assert why in problem.why


def test_statements_change_the_endpoint(run: Run) -> None:
    result = run(
        """ALTER ENDPOINT BROKER FOR SERVICE_BROKER (MESSAGE_FORWARDING = ENABLED)
           ALTER ENDPOINT broker AS TCP (LISTENER_PORT = 4023)"""
    )
    assert result.state.endpoint == EndpointState("broker", is_message_forwarding_enabled=True)
    result = run(
        """DROP ENDPOINT broker
           CREATE ENDPOINT mirror AS TCP (LISTENER_PORT = 5022) FOR DATABASE_MIRRORING ()
           CREATE ENDPOINT web AS HTTP (PATH = '/') FOR SOAP ()
           CREATE ENDPOINT e AS TCP (LISTENER_PORT = 4023) FOR SERVICE_BROKER ()
           ALTER ENDPOINT mirror AS TCP (LISTENER_PORT = 5023) DROP ENDPOINT web"""
    )
    assert result.state.endpoint == EndpointState("e")
    assert result.state.other_endpoints == {"mirror"}
    assert [(problem.line, problem.counted) for problem in result.problems] == [(4, True)]


def test_an_endpoint_whose_name_is_not_known(run: Run) -> None:
    unnamed = InstanceState(endpoint=EndpointState(is_message_forwarding_enabled=True))
    result = run(
        """ALTER ENDPOINT a STATE = STARTED
           ALTER ENDPOINT a AS TCP (LISTENER_PORT = 4023)
           DROP ENDPOINT a
           ALTER ENDPOINT a FOR SERVICE_BROKER (MESSAGE_FORWARDING = ENABLED)""",
        unnamed,
    )
    assert [(problem.line, problem.counted) for problem in result.problems] == [(1, True), (2, False), (3, False)]
    assert result.state.endpoint == EndpointState("a", is_message_forwarding_enabled=True)
    created = "CREATE ENDPOINT b AS TCP (LISTENER_PORT = 4023) FOR SERVICE_BROKER ()"
    result = run(created, InstanceState(endpoint=EndpointState()))
    assert result.state.endpoint == EndpointState("b")
    guarded = "IF EXISTS (SELECT * FROM sys.service_broker_endpoints WHERE name = 'a') DROP ENDPOINT a"
    result = run(guarded, InstanceState(endpoint=EndpointState()))
    assert [problem.counted for problem in result.problems] == [True, True]
    assert result.state.endpoint == EndpointState()


@pytest.mark.parametrize(
    ("text", "passed_over"),
    [
        ("IF EXISTS (SELECT * FROM sys.routes WHERE name = 'x') DROP ROUTE x", 1),
        ("IF NOT EXISTS (SELECT * FROM sys.routes WHERE name = 'tostock') DROP ROUTE ToStock", 1),
        ("IF EXISTS (SELECT * FROM sys.services WHERE name = '//SHOP') DROP SERVICE [//shop]", 1),
        ("IF DB_ID('other') IS NOT NULL DROP DATABASE other", 1),
        ("IF DB_ID('SHOP') IS NULL CREATE DATABASE Shop", 1),
        ("IF EXISTS (SELECT * FROM sys.endpoints WHERE name = 'x') DROP ENDPOINT x", 1),
        (
            (
                "IF EXISTS (SELECT * FROM sys.databases WHERE name = 'Shop' AND is_broker_enabled = 0)"
                " ALTER DATABASE Shop SET NEW_BROKER"
            ),
            1,
        ),
        (
            "IF EXISTS (SELECT * FROM sys.routes WHERE name = 'x') BEGIN DROP ROUTE x; DROP ROUTE ToStock END",
            2,
        ),
    ],
)
def test_statements_under_a_false_condition_are_skipped(run: Run, text: str, passed_over: int) -> None:
    result = run(text)
    assert len(result.passed_over) == passed_over
    assert result == AppliedScript(STATE, passed_over=result.passed_over)


@pytest.mark.parametrize(
    ("endpoint", "asked", "is_made", "doubts"),
    [
        (None, "", True, 0),
        (EndpointState("broker"), "", False, 0),
        (EndpointState("broker"), " WHERE name = 'BROKER'", False, 0),
        # One that forwards is there, whatever its name, which no table holds.
        (EndpointState(is_message_forwarding_enabled=True), "", False, 0),
        (EndpointState(), "", True, 1),
    ],
)
def test_statements_show_whether_an_endpoint_exists(
    run: Run, endpoint: EndpointState | None, asked: str, is_made: bool, doubts: int
) -> None:
    create = "CREATE ENDPOINT e STATE = STARTED AS TCP (LISTENER_PORT = 4024) FOR SERVICE_BROKER ()"
    text = f"IF NOT EXISTS (SELECT * FROM sys.service_broker_endpoints{asked}) {create}"
    result = run(text, InstanceState(endpoint=endpoint))
    assert result.state.endpoint == (EndpointState("e") if is_made else endpoint)
    assert [problem.counted for problem in result.problems] == [True] * doubts


def test_a_condition_is_evaluated_once(run: Run) -> None:
    """The effects of a branch change neither its own rest nor the ELSE."""
    result = run(
        """IF EXISTS (SELECT * FROM sys.routes WHERE name = 'ToStock')
           BEGIN
             DROP ROUTE ToStock
             CREATE ROUTE ToStock WITH ADDRESS = 'TRANSPORT'
             DROP ROUTE ToStock
           END
           ELSE CREATE ROUTE ToStock WITH ADDRESS = 'LOCAL'
           IF EXISTS (SELECT * FROM sys.routes WHERE name = 'ToStock') DROP ROUTE ToStock
           ELSE CREATE ROUTE ToStock WITH ADDRESS = 'TCP://new'"""
    )
    assert RouteState("Shop", "ToStock", "TCP://new") in result.state.routes
    assert [statement.line for statement in result.passed_over] == [7, 8]
    assert (len(result.statements), result.refused) == (4, 0)


def test_names_that_differ_only_in_case_are_separate_if_both_exist(run: Run) -> None:
    both = InstanceState(routes=(RouteState("Shop", "r", "LOCAL"), RouteState("Shop", "R", "TRANSPORT")))
    assert run("DROP ROUTE R", both).state.routes == (RouteState("Shop", "r", "LOCAL"),)
    assert run("DROP ROUTE r", both).state.routes == (RouteState("Shop", "R", "TRANSPORT"),)
    assert run("USE sHop CREATE ROUTE q WITH ADDRESS = 'LOCAL'", both).state.routes[-1] == RouteState(
        "Shop", "q", "LOCAL"
    )
