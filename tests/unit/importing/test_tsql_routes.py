"""CREATE, ALTER and DROP ROUTE: every way to write them, and all that the engine refuses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

from routing.importing.tsql.script_reader import ReadScript
from routing.importing.tsql.script_statements import (
    AlterRoute,
    CreateRoute,
    DropRoute,
    RouteOptions,
)

ReadText = Callable[..., ReadScript]
LOCAL = RouteOptions(address="LOCAL")


def test_all_options_in_any_order(read: ReadText) -> None:
    script = read(
        """
        create Route [to stock]] room] Authorization "the ""owner"
          with Mirror_Address = N'TCP://m:4023', LIFETIME = 3600 , address=N'TCP://h:4022',
               broker_instance = '{3e2a}', SERVICE_NAME
                 = N'//shop/it''s stock' -- the end
        """
    )
    assert script.statements == (
        CreateRoute(
            file="f.sql",
            line=2,
            database="db",
            name="to stock] room",
            options=RouteOptions(
                service_name="//shop/it's stock",
                broker_instance="{3e2a}",
                lifetime_seconds=3600,
                lifetime=datetime(2024, 5, 1, 1, tzinfo=timezone.utc),
                address="TCP://h:4022",
                mirror_address="TCP://m:4023",
            ),
        ),
    )
    assert script.problems == ()


def test_statements_need_no_semicolon_and_no_go(read: ReadText) -> None:
    script = read(
        "CREATE ROUTE a WITH ADDRESS = 'LOCAL' CREATE ROUTE b WITH ADDRESS = 'LOCAL';;\n"
        "ALTER ROUTE a WITH LIFETIME = 60 DROP ROUTE b DROP ROUTE a"
    )
    assert [(type(statement), statement.name, statement.line) for statement in script.statements] == [
        (CreateRoute, "a", 1),
        (CreateRoute, "b", 1),
        (AlterRoute, "a", 2),
        (DropRoute, "b", 2),
        (DropRoute, "a", 2),
    ]
    assert script.problems == ()


def test_the_same_route_twice_is_read_twice(read: ReadText) -> None:
    script = read("CREATE ROUTE r WITH ADDRESS = 'LOCAL'\nCREATE ROUTE r WITH ADDRESS = 'LOCAL'")
    assert [(statement.name, statement.line) for statement in script.statements] == [("r", 1), ("r", 2)]


def test_a_lifetime_counts_from_the_scripts_time_in_utc(read: ReadText) -> None:
    at = datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    script = read("CREATE ROUTE r WITH LIFETIME = 90, ADDRESS = 'LOCAL'", scripted_at=at)
    (statement,) = script.statements
    assert isinstance(statement, CreateRoute)
    assert statement.options.lifetime == datetime(2024, 5, 1, 10, 1, 30, tzinfo=timezone.utc)
    assert script.scripted_at.utcoffset() == timedelta(0)


def test_a_time_without_zone_is_refused(read: ReadText) -> None:
    with pytest.raises(ValueError, match="time zone"):
        read("", scripted_at=datetime(2024, 5, 1))


@pytest.mark.parametrize(
    "address",
    [
        "LOCAL",
        "local",
        "Transport",
        "TCP://h",
        "tcp://h:1",
        " tcp://[::1]:4022/ ",
        "TCP://1.2.3.4:5",
    ],
)
def test_addresses_that_the_tables_take(read: ReadText, address: str) -> None:
    (statement,) = read(f"CREATE ROUTE r WITH ADDRESS = '{address}'").statements
    assert isinstance(statement, CreateRoute)
    assert statement.options == RouteOptions(address=address)


@pytest.mark.parametrize("written", ["r", "_r", "#r", "##r", "r$1", "straße", "[r]", '"r"', "N"])
def test_names(read: ReadText, written: str) -> None:
    (statement,) = read(f"CREATE ROUTE {written} WITH ADDRESS = 'LOCAL'").statements
    assert statement.name == written.strip('[]"')


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("\U0001f600" * 64, None),
        ("x" * 128, None),
        ("\U0001f600" * 64 + "x", 103),
        ("x" * 129, 103),
        ("", 1038),
    ],
)
def test_a_name_is_a_sysname(read: ReadText, name: str, value: int | None) -> None:
    script = read(f"CREATE ROUTE [{name}] WITH ADDRESS = 'LOCAL'")
    assert [problem.number for problem in script.problems] == ([] if value is None else [value])
    assert len(script.statements) == (value is None)


MIRRORED = "SERVICE_NAME = 's', BROKER_INSTANCE = 'b', "


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ("SERVICE_NAME = '', ADDRESS = 'LOCAL'", 9659),
        ("SERVICE_NAME = 's', BROKER_INSTANCE = N'', ADDRESS = 'LOCAL'", 9659),
        ("ADDRESS = ''", 9659),
        (MIRRORED + "ADDRESS = 'tcp://a', MIRROR_ADDRESS = ''", 9659),
        (f"SERVICE_NAME = '{'s' * 257}', ADDRESS = 'LOCAL'", 9660),
        (f"SERVICE_NAME = 's', BROKER_INSTANCE = '{'b' * 129}', ADDRESS = 'LOCAL'", 9660),
        (f"ADDRESS = 'tcp://{'h' * 251}'", 9660),
        (MIRRORED + f"ADDRESS = 'tcp://a', MIRROR_ADDRESS = 'tcp://{'h' * 251}'", 9660),
        ("ADDRESS = 'tcp://a', MIRROR_ADDRESS = 'tcp://b'", 9661),
        ("SERVICE_NAME = 's', ADDRESS = 'tcp://a', MIRROR_ADDRESS = 'tcp://b'", 9661),
        ("BROKER_INSTANCE = 'b', ADDRESS = 'tcp://a'", 9662),
        (MIRRORED + "ADDRESS = 'LOCAL', MIRROR_ADDRESS = 'tcp://b'", 9743),
        (MIRRORED + "ADDRESS = 'TRANSPORT', MIRROR_ADDRESS = 'tcp://b'", 9743),
        (MIRRORED + "ADDRESS = 'tcp://a', MIRROR_ADDRESS = 'LOCAL'", 9743),
        ("ADDRESS = 'http://a'", 9744),
        ("ADDRESS = ' '", 9744),
        ("ADDRESS = 'tcp://'", 9744),
        ("ADDRESS = 'tcp://a:123456'", 9744),
        ("ADDRESS = 'tcp://a b'", 9744),
        (MIRRORED + "ADDRESS = 'tcp://a', MIRROR_ADDRESS = 'b'", 9744),
        ("SERVICE_NAME = 's', ADDRESS = 'transport'", 9745),
        ("LIFETIME = 0, ADDRESS = 'LOCAL'", 9746),
        ("LIFETIME = -1, ADDRESS = 'LOCAL'", 9746),
        ("LIFETIME = 2147483648, ADDRESS = 'LOCAL'", 9746),
        (MIRRORED + "ADDRESS = 'TCP://a:1', MIRROR_ADDRESS = 'tcp://A:1/'", 9747),
    ],
)
def test_routes_that_sql_server_refuses_are_reported(read: ReadText, options: str, number: int) -> None:
    script = read(f"CREATE ROUTE r WITH {options}\nCREATE ROUTE next_one WITH ADDRESS = 'LOCAL'")
    assert [statement.name for statement in script.statements] == ["next_one"]
    (problem,) = script.problems
    assert (problem.line, problem.number, problem.counted) == (1, number, False)
    assert problem.why.startswith("CREATE ROUTE 'r': ")


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("r WITH SERVICE_NAME = 's'", "ADDRESS is missing"),
        ("r WITH ADDRESS = 'LOCAL', ADDRESS = 'LOCAL'", "the option ADDRESS is given twice"),
        ("r WITH LIFETIME = 1, LIFETIME = 1", "the option LIFETIME is given twice"),
        ("r WITH ADDRESS = 'LOCAL', COST = 1", "a route has no option 'COST'"),
        ("r WITH ADDRESS = 'LOCAL',", "a route option was expected"),
        ("r WITH ADDRESS = 'LOCAL' SERVICE_NAME = 's'", "the end of the statement was expected"),
        ("r WITH ADDRESS = LOCAL", "ADDRESS in quotes was expected, not 'LOCAL'"),
        ("r WITH ADDRESS = [LOCAL]", "ADDRESS in quotes was expected, not 'LOCAL'"),
        ("r WITH ADDRESS 'LOCAL'", "'=' was expected"),
        ("r WITH ADDRESS = 'LOCAL', LIFETIME = '1'", "LIFETIME, a whole number, was expected"),
        ("r WITH ADDRESS = 'LOCAL', LIFETIME = 1.5", "not a whole number"),
        ("r WITH ADDRESS = 'LOCAL', LIFETIME = 1 SECONDS", "the end of the statement was expected"),
        ("r WITH", "a route option was expected, not ';'"),
        ("r ADDRESS = 'LOCAL'", "WITH was expected"),
        ("WITH ADDRESS = 'LOCAL'", "the route name was expected"),
        ("'r' WITH ADDRESS = 'LOCAL'", "the route name was expected"),
        ("1r WITH ADDRESS = 'LOCAL'", "the route name was expected"),
        ("dbo.r WITH ADDRESS = 'LOCAL'", "must have one part"),
        ("r-1 WITH ADDRESS = 'LOCAL'", "WITH was expected, not '-'"),
        ("@r WITH ADDRESS = 'LOCAL'", "not the variable '@r'"),
        ("r WITH ADDRESS = @address", "not the variable '@address'"),
        ("r WITH ADDRESS = 'tcp://' + @host", "string concatenation"),
        ("r WITH ADDRESS = 'tcp://' + 'h:1'", "string concatenation"),
        ("r WITH ADDRESS = 'LOC\ufffdL'", "cannot be read in its encoding"),
    ],
)
def test_invalid_route_statements_are_reported(read: ReadText, rest: str, why: str) -> None:
    script = read(f"\nCREATE ROUTE {rest}\n;\nGO\nDROP ROUTE next_one")
    assert [statement.name for statement in script.statements] == ["next_one"]
    (problem,) = script.problems
    assert problem.line == 2
    assert why in problem.why


def test_a_literal_may_continue_on_the_next_line(read: ReadText) -> None:
    (statement,) = read("CREATE ROUTE r WITH ADDRESS = 'LO\\\r\nCAL'").statements
    assert isinstance(statement, CreateRoute)
    assert statement.options == LOCAL


def test_double_quotes_hold_a_string_where_no_name_is_possible(read: ReadText) -> None:
    (statement,) = read('SET QUOTED_IDENTIFIER OFF\nCREATE ROUTE r WITH ADDRESS = "LOCAL"').statements
    assert isinstance(statement, CreateRoute)
    assert statement.options == LOCAL


def test_alter_route_changes_only_the_named_options(read: ReadText) -> None:
    script = read("ALTER ROUTE r WITH SERVICE_NAME = 's', LIFETIME = 1\nALTER ROUTE r WITH ADDRESS = ''")
    (statement,) = script.statements
    assert isinstance(statement, AlterRoute)
    assert statement.options == RouteOptions(
        service_name="s",
        lifetime_seconds=1,
        lifetime=datetime(2024, 5, 1, 0, 0, 1, tzinfo=timezone.utc),
    )
    assert [problem.number for problem in script.problems] == [9659]


def test_drop_route_has_no_if_exists(read: ReadText) -> None:
    script = read("DROP ROUTE IF EXISTS r\nGO\nDROP ROUTE q")
    assert [statement.name for statement in script.statements] == ["q"]
    (problem,) = script.problems
    assert (problem.line, problem.number) == (1, 102)
    assert "DROP ROUTE has no clause IF EXISTS" in problem.why


def test_a_route_to_the_configuration_service_has_no_broker_instance(read: ReadText) -> None:
    options = "SERVICE_NAME = 'SQL/ServiceBroker/BrokerConfiguration', BROKER_INSTANCE = 'b', ADDRESS = 'LOCAL'"
    script = read(f"CREATE ROUTE r WITH {options}\nDROP ROUTE q")
    assert [statement.name for statement in script.statements] == ["q"]
    (problem,) = script.problems
    assert (problem.line, problem.number) == (1, None)
    assert "cannot have a BROKER_INSTANCE" in problem.why
    (statement,) = read(f"CREATE ROUTE r WITH {options.replace('Configuration', 'configuration')}").statements
    assert statement.name == "r"


@pytest.mark.parametrize(
    "text",
    [
        "-- CREATE ROUTE r WITH ADDRESS = 'LOCAL'",
        "/* CREATE ROUTE r /* nested */ WITH ADDRESS = 'LOCAL' */",
        "GRANT CREATE ROUTE, ALTER ANY ROUTE TO [a user] WITH GRANT OPTION",
        "DENY CREATE ROUTE TO a; REVOKE GRANT OPTION FOR CREATE SERVICE FROM b CASCADE",
        "ALTER AUTHORIZATION ON ROUTE::r TO dbo",
        "SELECT route FROM t -- ' CREATE ROUTE r",
        "CREATE TABLE route (service int, [create] int)",
        "DROP TABLE IF EXISTS route",
        "CREATE REMOTE SERVICE BINDING b TO SERVICE 's' WITH USER = u",
    ],
)
def test_no_route_statement(read: ReadText, text: str) -> None:
    script = read(text + "\nDROP ROUTE last_one")
    assert [statement.name for statement in script.statements] == ["last_one"]
    assert script.problems == ()


def test_statements_between_permissions(read: ReadText) -> None:
    script = read("GRANT CREATE ROUTE TO a WITH GRANT OPTION\nDROP ROUTE b\nGRANT ALTER ON ROUTE::c TO d")
    assert [statement.name for statement in script.statements] == ["b"]
    assert script.problems == ()
