"""Lines that sqlcmd and SSMS take for themselves: GO, commands, variables."""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from routing.importing.tsql.script_reader import ReadScript
from routing.importing.tsql.script_statements import CreateRoute, StatementProblem
from routing.importing.tsql.sqlcmd import SourceText, SqlBatch, _go, read_batches

ReadText = Callable[..., ReadScript]


def _texts(text: str, **variables: str) -> list[str]:
    batches: list[SqlBatch | StatementProblem] = []
    read_batches([SourceText(text, "f")], variables, None, batches.append)
    return [batch.text for batch in batches if isinstance(batch, SqlBatch)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nGO\nb", ["a", "b"]),
        ("a\r\ngo\r\nb\rGo\rc", ["a", "b", "c"]),
        ("a\n  GO 5 -- five times\nb\nGO;\nc", ["a", "b", "c"]),
        ("a\nGO /* x */\nb", ["a", "b"]),
        ("a\nGO /* x\ny */ b", ["a", "/*\ny */ b"]),
        ("a GO\nGOTO b\n-- GO\nGO x y", ["a GO\nGOTO b\n-- GO\nGO x y"]),
        ("a '\nGO\n' b", ["a '\nGO\n' b"]),
        ("a /*\nGO\n/* */\nGO\n*/ b", ["a /*\nGO\n/* */\nGO\n*/ b"]),
        ("[a\nGO\n]]\nGO\n] b", ["[a\nGO\n]]\nGO\n] b"]),
        ("-- it's\nGO\nb", ["-- it's", "b"]),
        ("GO\n\nGO\n", []),
    ],
)
def test_go_ends_a_batch_outside_strings_and_comments(text: str, expected: list[str]) -> None:
    assert _texts(text) == expected


def test_line_numbers_are_right_across_batches_and_commands(read: ReadText) -> None:
    script = read("\n:setvar a x\n/* two\nlines */ DROP ROUTE a\nGO\n\nDROP ROUTE b DROP\n\nROUTE [$(c)]")
    assert [(statement.name, statement.line) for statement in script.statements] == [("a", 4), ("b", 7)]
    assert [problem.line for problem in script.problems] == [7]


def test_on_error_exit_ends_the_script_at_an_error(read: ReadText) -> None:
    wrong = "DROP ROUTE a\nGO\nDROP ROUTE IF EXISTS b\nGO\nUSE x DROP ROUTE c"
    assert [statement.name for statement in read(wrong).statements] == ["a", "c"]
    script = read(f":On Error exit\n{wrong}")
    assert [statement.name for statement in script.statements] == ["a"]
    why = "sqlcmd ends the script after the error in line 4, as :on error exit says"
    assert script.problems[-1].why == f"DROP ROUTE 'c': {why}"
    assert [statement.name for statement in read(f":on error exit\n:on error ignore\n{wrong}").statements] == [
        "a",
        "c",
    ]


def test_variables_are_replaced_in_code_strings_and_names(read: ReadText) -> None:
    script = read(
        ':setvar Prefix "my shop"\n:setvar host h1 -- the host\n'
        "CREATE ROUTE [$(prefix)_to_$(PREFIX)] WITH ADDRESS = 'TCP://$(host):$(port)', "
        "LIFETIME = $(life)0 -- $(nothing)\n"
        ':setvar host "a ""b"""\n:setvar port\n'
        "GO\nCREATE ROUTE $(life)$(host) WITH ADDRESS = 'TCP://$(port)'",
        variables={"PORT": "4022", "life": "6", "host": "overridden"},
    )
    (statement,) = script.statements
    assert isinstance(statement, CreateRoute)
    assert statement.name == "my shop_to_my shop"
    assert statement.options.address == "TCP://h1:4022"
    assert statement.options.lifetime_seconds == 60
    assert [problem.line for problem in script.problems] == [7]


def test_a_variable_in_part_of_a_name(read: ReadText) -> None:
    text = "CREATE ROUTE $(p)_route WITH ADDRESS = 'LOCAL'\nDROP ROUTE x_$(p)"
    assert [statement.name for statement in read(text, variables={"p": "a"}).statements] == [
        "a_route",
        "x_a",
    ]
    script = read(text)
    assert script.statements == ()
    assert [(problem.line, problem.number) for problem in script.problems] == [(1, None), (2, None)]
    assert script.problems[0].why == (
        "CREATE ROUTE '$(p)_route': sqlcmd variable 'p' has no value: give it with -v p=VALUE"
    )


def test_a_value_is_read_as_the_server_reads_it(read: ReadText) -> None:
    text = "CREATE ROUTE r WITH ADDRESS = '$(v)'\nGO\nDROP ROUTE s"
    assert read(text, variables={"v": "it's"}).problems
    script = read(text, variables={"v": "LOCAL'\nDROP ROUTE q --"})
    assert [(statement.name, statement.line) for statement in script.statements] == [
        ("r", 1),
        ("q", 1),
        ("s", 3),
    ]
    assert read(text, variables={"v": "$(w)"}).problems == (
        StatementProblem(
            "f.sql", 1, "CREATE ROUTE 'r': ADDRESS '$(w)' is not a valid address", 9744, by_server=True
        ),
    )


PLACEHOLDERS = {
    "${%s}": "${%s}",
    "{{%s}}": "{{%s}}",
    "{{ %s }}": "{{%s}}",
    "#{%s}": "#{%s}",
    "#{%s}#": "#{%s}",
    "$%s$": "$%s$",
    "<#=%s#>": "<#= %s #>",
    "<#= %s #>": "<#= %s #>",
}
"""Those of Flyway, RoundhousE, Octopus, a task of Azure DevOps, DbUp and T4; and how they are shown."""


@pytest.mark.parametrize("form", PLACEHOLDERS)
@pytest.mark.parametrize("name", ["host", "Broker.Host"])
def test_a_placeholder_is_replaced_in_code_strings_and_names(read: ReadText, form: str, name: str) -> None:
    place = form % name
    script = read(
        f"CREATE ROUTE [to_{place}] AUTHORIZATION {place} WITH ADDRESS = 'TCP://{place}:4022' -- {place}\n"
        f"USE {place}\nDROP ROUTE {place}_a\nGO\n:connect {place}\nUSE x\nDROP ROUTE b",
        variables={name.upper(): "h"},
        instance="h",
    )
    assert [(statement.name, statement.database) for statement in script.statements] == [
        ("to_h", "db"),
        ("h_a", "h"),
        ("b", "x"),
    ]
    created = script.statements[0]
    assert isinstance(created, CreateRoute)
    assert created.options.address == "TCP://h:4022"
    assert script.problems == ()


@pytest.mark.parametrize(("form", "shown"), PLACEHOLDERS.items())
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE ROUTE @ WITH ADDRESS = 'LOCAL'",
        "CREATE ROUTE @_r WITH ADDRESS = 'LOCAL'",
        "CREATE ROUTE [@] WITH ADDRESS = 'LOCAL'",
        "CREATE ROUTE r WITH ADDRESS = 'TCP://@:4022'",
        "CREATE ROUTE r WITH ADDRESS = 'TCP://hub@:4022'",
        "CREATE ROUTE r WITH ADDRESS = @",
        "CREATE ROUTE r WITH LIFETIME = @, ADDRESS = 'LOCAL'",
        "CREATE ROUTE r WITH @",
        "CREATE ROUTE r @",
        "CREATE ENDPOINT e STATE = @ AS TCP (LISTENER_PORT = 4022) FOR SERVICE_BROKER ()",
        "CREATE ENDPOINT e AS TCP (LISTENER_PORT = @) FOR SERVICE_BROKER ()",
        "CREATE ENDPOINT e AS TCP (LISTENER_PORT = 4022) FOR SERVICE_BROKER (MESSAGE_FORWARDING = @)",
        "ALTER DATABASE @ SET ENABLE_BROKER",
        "CREATE DATABASE @",
        "@",
        "EXEC('CREATE ROUTE @ WITH ADDRESS = ''LOCAL''')",
    ],
)
def test_a_placeholder_without_a_value_is_named(read: ReadText, form: str, shown: str, statement: str) -> None:
    script = read(f"DROP ROUTE a\nDROP SERVICE b;\n{statement.replace('@', form % 'x.y')}\nGO\nDROP ROUTE c")
    assert [found.name for found in script.statements] == ["a", "b", "c"]
    (problem,) = script.problems
    assert (problem.line, problem.number, problem.by_server) == (3, None, False)
    why = f"the placeholder '{shown % 'x.y'}' of a migration tool has no value: give it with -v x.y=VALUE"
    assert why in problem.why


@pytest.mark.parametrize(
    ("place", "expected"),
    [("${env}", "the placeholder '${env}' of a migration tool"), ("$(env)", "sqlcmd variable 'env'")],
)
def test_a_condition_without_a_value_names_the_missing_variable(read: ReadText, place: str, expected: str) -> None:
    text = f"IF '{place}' = 'prod' DROP ROUTE a"
    (problem,) = read(text).problems
    assert problem.why == (
        f"DROP ROUTE 'a': it depends on the IF in line 1: {expected} has no value: give it with -v env=VALUE"
    )
    assert [statement.name for statement in read(text, variables={"env": "prod"}).statements] == ["a"]


@pytest.mark.parametrize("place", ["#{Host | ToLower}", "{{ host | upper }}"])
def test_a_statement_of_a_tool_is_named(read: ReadText, place: str) -> None:
    script = read(f"DROP ROUTE a;\n{place}\nGO\nCREATE ROUTE r WITH ADDRESS = 'TCP://{place}'")
    assert [statement.name for statement in script.statements] == ["a"]
    assert [problem.line for problem in script.problems] == [2, 4]
    place = place.replace("{ ", "{").replace(" }", "}")
    said = f"the placeholder '{place}' of a migration tool has no value: let the tool fill it in first"
    assert all(said in problem.why for problem in script.problems)


def test_only_a_value_of_the_caller_fills_a_placeholder(read: ReadText) -> None:
    script = read(":setvar a ${b}\nDROP ROUTE $(a)\nDROP ROUTE ${a}", variables={"b": "x"})
    assert [statement.name for statement in script.statements] == ["x"]
    assert [problem.line for problem in script.problems] == [3]


def test_other_text_like_a_placeholder_is_ignored(read: ReadText) -> None:
    script = read(
        "SELECT $IDENTITY, $action, 'a$b$c', '{{0}} ${x} #{y}' FROM #t -- ${z}\n"
        "IF OBJECT_ID('tempdb..#{x}') IS NULL PRINT '$5 and $6'\nDROP ROUTE [a$b$c]\nDROP ROUTE a$b$"
    )
    assert [statement.name for statement in script.statements] == ["a$b$c", "a$b$"]
    assert script.problems == ()


def test_commands_without_effect_and_unknown_ones(read: ReadText) -> None:
    script = read(
        ":on error exit\n:OUT x.txt\n!!dir\n:!! dir\n:listvar\nDROP ROUTE a\n"
        ":setvar\n:setvar a b c\n:nonsense x\nSELECT * FROM\n::fn_x()\nDROP ROUTE b"
    )
    assert [statement.name for statement in script.statements] == ["a", "b"]
    assert [problem.line for problem in script.problems] == [7, 8, 9]


def test_a_command_in_a_string_is_ignored(read: ReadText) -> None:
    assert _texts("'\n:setvar a b\nexit\n'") == ["'\n:setvar a b\nexit\n'"]


@pytest.mark.parametrize("command", ["exit", ":EXIT", "quit", " :quit "])
def test_exit_leaves_before_the_batch_runs(read: ReadText, command: str) -> None:
    script = read(f"DROP ROUTE a\nGO\nDROP ROUTE b\n{command}\nGO\nDROP ROUTE c")
    assert [statement.name for statement in script.statements] == ["a"]
    assert [problem.line for problem in script.problems] == [4, 5]


def test_exit_with_a_query_runs_the_batch_first(read: ReadText) -> None:
    script = read("DROP ROUTE a\nexit (SELECT 1)\nSELECT 2")
    assert [statement.name for statement in script.statements] == ["a"]
    assert script.problems == ()


def test_reset_and_go_0_drop_the_batch(read: ReadText) -> None:
    script = read("DROP ROUTE a\n:reset\nDROP ROUTE b\nGO 0\nDROP ROUTE c\nGO 3")
    assert [statement.name for statement in script.statements] == ["c"]
    assert [problem.line for problem in script.problems] == [4]


def test_connect_changes_the_instance_and_back(read: ReadText) -> None:
    script = read(
        "DROP ROUTE a\nGO\n:connect SRV2\nUSE x\nDROP ROUTE b\nEXEC(@sql)\nGO\n"
        ":connect srv1 -l 30\nDROP ROUTE c\nUSE y\nDROP ROUTE d\nGO\n:connect $(s)\nDROP ROUTE e",
        instance="SRV1",
    )
    assert [(statement.name, statement.database) for statement in script.statements] == [
        ("a", "db"),
        ("c", None),
        ("d", "y"),
    ]
    assert [(problem.line, problem.why[-20:]) for problem in script.problems] == [
        (5, "r 'SRV2' of :connect"),
        (13, "ble 's' has no value"),
        (14, "above cannot be read"),
    ]


@pytest.mark.parametrize(
    ("written", "instance"),
    [
        ('"X"', "X"),
        ("'X'", "X"),
        ("x", "X"),
        ("tcp:X", "X"),
        ("tcp:X,1433", "X"),
        ('"tcp:X,1433" -U "a b" -P p', "X"),
        ('TCP: "X"', "X"),
        ("X,1433 -U u -P p", "X"),
        ("X -l 5", "X"),
        ("X\t-l 5", "X"),
        ("lpc:X", "X"),
        ("admin:X", "X"),
        ("np:X", "X"),
        (r"np:\\X\pipe\sql\query", "X"),
        (r"np:\\X\pipe\MSSQL$DEV\sql\query -l 5", r"X\DEV"),
        (r"X\MSSQLSERVER", "X"),
        (r'"x\dev"', r"X\DEV"),
        ("(local)", "X"),
        (".", "X"),
        ("X , 1433 -U sa", "X"),
        ("X", "tcp:X,1433"),
        (r"X\MSSQLSERVER,1433", "X"),
        ("localhost,14331", "X,14331"),
        ("tcp:127.0.0.1,014331 -C", "X,14331"),
        ("[::1],14331", "X,14331"),
        ("[fe80::1],1433", "fe80::1"),
        ("localhost", "X"),
        (r".\DEV", r"X\DEV"),
        (r"(LOCAL)\dev", r"X\DEV"),
        ("$(server)", "X"),
    ],
)
def test_the_server_of_connect_is_the_instance(read: ReadText, written: str, instance: str) -> None:
    script = read(f":CONNECT {written}\nUSE x\nDROP ROUTE a", instance=instance, variables={"server": "X"})
    assert [(statement.name, statement.database) for statement in script.statements] == [("a", "x")]
    assert script.problems == ()


@pytest.mark.parametrize(
    ("written", "instance", "shown"),
    [
        (r"localhost\DEV", "X", r"'localhost\DEV'"),
        ("(local)", r"X\DEV", "'(local)'"),
        ("X.corp.example", "X", "'X.corp.example'"),
        (r'"tcp:Y\DEV,1433" -P secret', "X", r"'Y\DEV,1433'"),
        ("X,14331", "X", "'X,14331'"),
        ("localhost,14332", "HUB,14331", "'localhost,14332'"),
        ("localhost,14331", "HUB", "'localhost,14331'"),
        ("localhost", "HUB,14331", "'localhost'"),
        ("[fe80::1],14331", "fe80::1", "'fe80::1,14331'"),
    ],
)
def test_another_server_of_connect_is_named(read: ReadText, written: str, instance: str, shown: str) -> None:
    script = read(f":CONNECT {written}\nUSE x\nDROP ROUTE a", instance=instance)
    assert script.statements == ()
    assert [problem.why for problem in script.problems] == [
        f"DROP ROUTE 'a': it runs on the server {shown} of :connect"
    ]


def test_connect_opens_a_new_connection(read: ReadText) -> None:
    script = read(":connect X\nUSE y\nDROP ROUTE a\nGO\nDROP ROUTE b\nGO\n:connect X\nDROP ROUTE c", instance="X")
    assert [(statement.name, statement.database) for statement in script.statements] == [
        ("a", "y"),
        ("b", "y"),
        ("c", None),
    ]


def test_a_connect_without_a_server_is_reported(read: ReadText) -> None:
    why = "this :connect cannot be read: the name of a server expected"
    for written in ("", "tcp: -l 5", "X;", "X:1433", "X,99999", "X,abc", "<server>", "__HUB__x;"):
        script = read(f":connect {written}\nDROP ROUTE a\nGO\n:connect X\nDROP ROUTE b", instance="X")
        assert [found.name for found in script.statements] == ["b"], written
        assert [(problem.line, problem.why) for problem in script.problems] == [
            (1, why),
            (2, "its server is unknown, because the :connect above cannot be read"),
        ]


def test_without_access_to_files_an_include_is_reported(read: ReadText) -> None:
    script = read(":r other.sql\n:r $(dir)/x.sql\nDROP ROUTE a")
    assert [statement.name for statement in script.statements] == ["a"]
    assert [(problem.line, problem.why) for problem in script.problems] == [
        (1, "the file 'other.sql' of :r is not read: only the script itself is read here"),
        (2, "the file '$(dir)/x.sql' of :r is not read: sqlcmd variable 'dir' has no value"),
    ]


_LINES = st.text(st.sampled_from("GOgo \t;05x/-"), max_size=12)


@given(_LINES)
@example("GO ;")
@example("GO 5;;")
@example("GO;5")
@example(" GO 0 ; ")
def test_go_lines_are_those_that_a_regular_expression_matches(line: str) -> None:
    """Which takes time by the square of the blanks, and is not used for that."""
    match = re.fullmatch(r"\s*GO(?:\s+(\S+?))?\s*;?\s*", line, re.IGNORECASE)
    go_line = _go(line)
    assert (go_line is None) == (match is None)
    # A semicolon for a count counts nothing either way.
    assert match is None or go_line == (match.group(1) or "").removesuffix(";") or go_line == match.group(1)


@pytest.mark.parametrize(
    ("line", "batches_made"),
    [
        ("GO" + " " * 40_000, 2),
        ("GO" + " " * 40_000 + "x y", 1),
        ("GO 1" + "\t" * 40_000 + "x", 1),
        ("GO " + "9" * 40_000, 2),
        (" " * 40_000 + "GO" + " " * 40_000 + ";", 2),
        ("EXIT" + " " * 40_000 + "x", 1),
        ("EXIT (" + " " * 40_000 + "x", 1),
        (":QUIT" + "\t" * 40_000, 0),
        ("EXIT" + " " * 40_000 + "(" + " " * 40_000 + ")" + " " * 40_000, 1),
        (":setvar a" + " " * 40_000 + "b c", 1),
        (":setvar a " + '"' * 40_001 + " c", 1),
        (":connect" + " " * 40_000 + "srv", 1),
        (":r" + " " * 40_000, 1),
        ("$(" * 40_000, 1),
        ("\ue000" * 40_000, 1),
    ],
)
def test_a_long_line_takes_little_time(line: str, batches_made: int) -> None:
    started = time.process_time()
    assert len(_texts(f"a\n{line}\nb")) == batches_made
    assert time.process_time() - started < 3


def test_a_variable_that_doubles_ends_the_script(read: ReadText) -> None:
    doubling = ":setvar a 0123456789\n" + ":setvar a $(a)$(a)\n" * 100
    tracemalloc.start()
    started = time.process_time()
    script = read(f"DROP ROUTE early\nGO\n{doubling}DROP ROUTE late\nPRINT '$(a)'\n")
    assert time.process_time() - started < 3
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()
    assert [statement.name for statement in script.statements] == ["early"]
    assert [(problem.line, problem.why) for problem in script.problems] == [
        (19, "its variables have more than 1000000 characters in total: the script is read up to here"),
        (20, "the rest is not run: the script ended above"),
    ]


def test_a_long_value_in_many_places_ends_the_script(read: ReadText) -> None:
    script = read(f":setvar a {'x' * 60_000}\n" + "CREATE ROUTE r WITH ADDRESS = '$(a)'\nGO\n" * 100)
    assert script.statements == ()
    assert sum("longer than 256" in problem.why for problem in script.problems) == 16
    assert sum("characters in total" in problem.why for problem in script.problems) == 1
    assert len(script.problems) == 19


def test_values_in_a_large_script_do_not_end_it(read: ReadText) -> None:
    script = read(":setvar db Sales\n" + "DROP ROUTE [$(db)_a]\nGO\n" * 10_000)
    assert (len(script.statements), script.problems) == (10_000, ())
