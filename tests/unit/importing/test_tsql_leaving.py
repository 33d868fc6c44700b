"""RETURN, THROW, GOTO and SET NOEXEC: statements that never run do not count, and uncertain ones are named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from routing.importing.tsql.instance_state import DatabaseState, EndpointState, InstanceState, RouteState
from routing.importing.tsql.script_reader import ReadScript, apply_script

ReadText = Callable[..., ReadScript]


def _names(script: ReadScript) -> list[str]:
    return [statement.name for statement in script.statements]


def _applied(script: ReadScript, *databases: str) -> list[str]:
    """The names of the statements that are applied to an instance with these databases."""
    routes = tuple(RouteState("db", name, "LOCAL") for name in "abc")
    state = InstanceState(routes, databases=tuple(DatabaseState(name, None) for name in (*databases, "db")))
    return [statement.name for statement in apply_script(state, script).statements]


def _doubts(script: ReadScript) -> list[tuple[str, str | None]]:
    return [(statement.name, statement.doubt) for statement in script.statements]


def test_a_throw_ends_the_batch(read: ReadText) -> None:
    script = read("DROP ROUTE a; THROW 50000, 'no', 1; DROP ROUTE b\nGO\nDROP ROUTE c")
    assert _names(script) == ["a", "c"]
    assert [problem.why for problem in script.problems] == ["DROP ROUTE 'b': it comes after the THROW in line 1"]


def test_a_raiserror_ends_nothing(read: ReadText) -> None:
    script = read("RAISERROR('no', 16, 1) WITH NOWAIT DROP ROUTE a")
    assert (_names(script), script.problems) == (["a"], ())


def test_a_throw_in_a_try_block_goes_to_its_catch(read: ReadText) -> None:
    script = read(
        """BEGIN TRY
             DROP ROUTE a;
             THROW 50000, 'x', 1;
             DROP ROUTE b
           END TRY
           BEGIN CATCH
             DROP ROUTE c
           END CATCH
           DROP ROUTE d
           BEGIN TRY DROP ROUTE e END TRY
           BEGIN CATCH DROP ROUTE f; THROW END CATCH
           DROP ROUTE g"""
    )
    assert _names(script) == ["a", "c", "d", "e", "g"]
    assert [problem.line for problem in script.problems] == [4, 11]
    assert [statement.doubt for statement in script.statements] == [None] * 5


def test_a_return_in_a_try_block_ends_the_batch(read: ReadText) -> None:
    script = read("BEGIN TRY RETURN END TRY BEGIN CATCH DROP ROUTE a END CATCH DROP ROUTE b")
    assert _names(script) == []
    assert len(script.problems) == 2


def test_a_throw_in_the_text_of_an_exec_ends_the_batch_around_it(read: ReadText) -> None:
    script = read("EXEC('RETURN; DROP ROUTE a')\nDROP ROUTE b\nEXEC('THROW 50000, ''x'', 1')\nDROP ROUTE c")
    assert _names(script) == ["b"]
    assert [problem.line for problem in script.problems] == [1, 4]


def test_statements_between_goto_and_its_label_are_skipped(read: ReadText) -> None:
    script = read(
        """DROP ROUTE a
        GOTO Done
        DROP ROUTE b
        other:
        DROP ROUTE c
        done: DROP ROUTE d"""
    )
    assert _names(script) == ["a", "d"]
    assert [problem.why for problem in script.problems] == [
        "DROP ROUTE 'b': it comes after the GOTO in line 2",
        "DROP ROUTE 'c': it comes after the GOTO in line 2",
    ]


def test_statements_after_a_goto_backwards_are_skipped(read: ReadText) -> None:
    assert _names(read("again:\nDROP ROUTE a\nGOTO again\nDROP ROUTE b\nGO\nDROP ROUTE c")) == ["a", "c"]


def test_a_goto_under_a_known_condition(read: ReadText) -> None:
    script = read("IF DB_ID('x') IS NULL GOTO done DROP ROUTE a\ndone:\nDROP ROUTE b")
    assert _applied(script) == ["b"]
    assert _applied(script, "x") == ["a", "b"]


def test_error_handling_with_goto_and_return_is_understood(read: ReadText) -> None:
    script = read(
        """BEGIN TRAN
        DROP ROUTE a
        IF @@ERROR <> 0 GOTO failed
        DROP ROUTE b
        IF (@@error != 0) BEGIN ROLLBACK; RETURN END
        COMMIT
        RETURN
        failed:
        ROLLBACK
        DROP ROUTE c"""
    )
    assert _doubts(script) == [("a", None), ("b", None)]
    (problem,) = script.problems
    assert problem.why == "DROP ROUTE 'c': it runs only if the GOTO in line 3 reaches it"


SERVERS_OWN = "and only the server knows its condition"


@pytest.mark.parametrize(
    ("leaves", "words"),
    [
        ("RETURN", "RETURN in line 2"),
        ("BEGIN PRINT 'x'; THROW 50000, 'x', 1 END", "THROW in line 2"),
        ("GOTO done", "GOTO in line 2"),
        ("SET NOEXEC ON", "SET NOEXEC ON in line 2"),
    ],
)
def test_later_statements_are_applied_and_marked_as_dependent(read: ReadText, leaves: str, words: str) -> None:
    script = read(
        f"DROP ROUTE a\nIF @@VERSION LIKE '%9.0%' {leaves}\nDROP ROUTE b\ndone:\nSET NOEXEC OFF\nGO\nDROP ROUTE c"
    )
    doubt = f"it runs only if the {words} does not, which depends on the IF in line 2, {SERVERS_OWN}"
    assert _doubts(script) == [("a", None), ("b", doubt), ("c", None)]
    assert script.problems == ()
    state = InstanceState(routes=tuple(RouteState("db", name, "LOCAL") for name in "abc"))
    applied = apply_script(state, script)
    assert applied.state.routes == ()
    assert [(problem.line, problem.why, problem.counted) for problem in applied.problems] == [
        (3, f"DROP ROUTE 'b': {doubt}", True)
    ]


def test_two_returns_under_known_conditions(read: ReadText) -> None:
    script = read("IF DB_ID('x') IS NULL RETURN\nIF DB_ID('y') IS NULL RETURN\nDROP ROUTE a")
    assert [_applied(script), _applied(script, "x"), _applied(script, "x", "y")] == [[], [], ["a"]]
    nested = read("IF DB_ID('x') IS NULL IF DB_ID('y') IS NULL RETURN\nDROP ROUTE a")
    assert [_applied(nested), _applied(nested, "x"), _applied(nested, "y")] == [[], ["a"], ["a"]]


def test_noexec_under_a_known_condition(read: ReadText) -> None:
    script = read("IF DB_ID('x') IS NULL SET NOEXEC ON\nGO\nDROP ROUTE a\nGO\nSET NOEXEC OFF\nDROP ROUTE b")
    assert _applied(script) == ["b"]
    assert _applied(script, "x") == ["a", "b"]


def test_an_unknown_condition_is_named(read: ReadText) -> None:
    """Where the tables do not tell, the branch that comes first is taken to run, and that is said."""
    script = read(
        """IF NOT EXISTS (SELECT * FROM sys.routes WHERE name = 'a') CREATE ROUTE a WITH ADDRESS = 'LOCAL'
        ELSE DROP ROUTE b
        IF EXISTS (SELECT * FROM sys.endpoints WHERE name = 'e')
            ALTER ENDPOINT e FOR SERVICE_BROKER (MESSAGE_FORWARDING = ENABLED)
        ELSE
            CREATE ENDPOINT e STATE = STARTED AS TCP (LISTENER_PORT = 4023) FOR SERVICE_BROKER ()"""
    )
    applied = apply_script(InstanceState(endpoint=EndpointState()), script)
    assert applied.state.endpoint == EndpointState("e", True)
    assert [found.line for found in applied.passed_over] == [2, 6]
    assert [(problem.line, problem.why) for problem in applied.problems] == [
        (4, "ALTER ENDPOINT 'e': it runs only if the endpoint 'e' exists, which is not known")
    ]
