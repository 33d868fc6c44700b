"""Any text ends in statements or problems: no crash, no hang, and always the same answer."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from routing.importing.tsql.instance_state import DatabaseState, InstanceState
from routing.importing.tsql.script_reader import ReadScript, apply_script, decode, read_script
from routing.importing.tsql.tokens import CODE, LexemeKind, TextMode, segments, tokenize
from tests.examples import count_examples

AT = datetime(2024, 5, 1, tzinfo=timezone.utc)
LONG_ENOUGH = settings(
    deadline=timedelta(seconds=2),
    max_examples=count_examples(300),
    suppress_health_check=[HealthCheck.too_slow],
)

PIECES = st.sampled_from(
    [
        *("CREATE ROUTE", "ALTER ROUTE", "DROP ROUTE", "CREATE SERVICE", "DROP SERVICE", "WITH"),
        *("CREATE ENDPOINT", "ALTER DATABASE", "CREATE DATABASE", "DROP DATABASE", "SET", "USE"),
        *("SERVICE_NAME", "BROKER_INSTANCE", "LIFETIME", "ADDRESS", "MIRROR_ADDRESS", "FOR"),
        *("ENABLE_BROKER", "NEW_BROKER", "LISTENER_PORT", "MESSAGE_FORWARDING", "ENABLED"),
        *("IF", "ELSE", "WHILE", "BEGIN", "END", "BEGIN TRY", "END TRY", "BEGIN CATCH", "CASE"),
        *("EXISTS", "NOT", "SELECT * FROM sys.routes WHERE name =", "RETURN", "GRANT", "TO", "AS"),
        *("BEGIN TRAN", "COMMIT", "ROLLBACK", "EXEC", "EXEC(", "sp_executesql", "CREATE PROC p"),
        *("THROW", "GOTO a", "a:", "DECLARE @v nvarchar(max) =", "SET @v =", "SET @v +=", "EXEC(@v)", "1 = 1"),
        *("SELECT @v =", "QUOTENAME(", "CAST(", "AS nvarchar(9))", "sp_detach_db", "MODIFY NAME =", "STATE ="),
        *("CRAETE", "ERROR_BROKER_CONVERSATIONS", "OFFLINE", "SET NOEXEC OFF", "IF @@ERROR <> 0", "DB_NAME()"),
        *("AUTHORIZATION", "ON QUEUE", "PRINT", "SET NOEXEC ON", "RESTORE DATABASE", "NOEXEC"),
        *("=", ",", ";", "(", ")", "+", ".", "<", ">", "-", "@v", "@@x", "#t", "$(v)", "$(", "$"),
        *("'", "''", "N'", '"', '""', "[", "]", "]]", "/*", "*/", "--", "{#", "#}", "\\", "%"),
        *("\n", "\r\n", "\r", "\nGO\n", "\nGO 2\n", "\nGO 0\n", "\n:setvar v x\n", "\n:r f\n"),
        *(
            "\n:connect s\n",
            "\n:reset\n",
            "\nexit\n",
            "\nexit(1)\n",
            "\n!!dir\n",
            "\n:\n",
            "\n:x\n",
        ),
        *('\n:connect "tcp:s,1" -l 5\n', "${v}", "{{ w }}", "#{v}#", "$w$", "```", "\u2014", "\u200b", "\u00ad"),
        *(
            "sp_MSforeachdb",
            "AFFINITY =",
            "RAISERROR(",
            "Please run this",
            "the",
            "PRINT @v",
            "INSERT t VALUES (@v)",
        ),
        *("r", "[r]", "'LOCAL'", "'tcp://h:1'", "10", "-1", "1e5", "0x1", "<a, b, c>", "<a,b,>"),
        *("\x00", "\ufeff", "\ufffd", "\ue000", "\ue001", "\u00a0", "é", "\U0001f600", "\ud800"),
    ]
)
SCRIPTS = st.one_of(
    st.lists(PIECES, max_size=60).map(" ".join),
    st.lists(PIECES, max_size=60).map("".join),
    st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=40).map("".join),
    st.text(),
)


def _read(text: str) -> ReadScript:
    return read_script(text, file="f.sql", scripted_at=AT, database="db", variables={"v": "it's"})


@LONG_ENOUGH
@given(SCRIPTS)
def test_any_text_ends_in_statements_or_problems(text: str) -> None:
    script = _read(text)
    lines = len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    places = [(statement.file, statement.line) for statement in script.statements]
    places += [(problem.file, problem.line) for problem in script.problems]
    assert all(file == "f.sql" and 1 <= line <= lines for file, line in places)
    assert all(problem.why for problem in script.problems)
    assert _read(text) == script


@LONG_ENOUGH
@given(SCRIPTS)
def test_every_read_script_can_be_applied(text: str) -> None:
    state = InstanceState(databases=(DatabaseState("db", "4c8c5a5c-1d3e-4b7a-9d5e-2f0a6b1c7d88"),))
    script = _read(text)
    applied = apply_script(state, script)
    named = {(found.file, found.line) for found in (*applied.statements, *applied.passed_over)}
    named |= {(problem.file, problem.line) for problem in applied.problems}
    assert all((found.file, found.line) in named for found in script.statements)
    assert apply_script(state, script) == applied


@LONG_ENOUGH
@given(SCRIPTS)
def test_a_statement_after_any_finished_batch_is_read(text: str) -> None:
    """A statement after GO does not depend on a closed batch before it."""
    tail = "\nGO\nUSE zz\nGO\nCREATE ROUTE last_one WITH ADDRESS = 'LOCAL'\n"
    closed = segments(text.replace("\r\n", "\n").replace("\r", "\n") + "\n")[1] == CODE
    words = text.upper()
    leaves = any(word in words for word in ("EXIT", "QUIT", "NOEXEC", ":", "PARSEONLY", "TRAN"))
    if leaves or not closed:
        return
    last = _read(text + tail).statements[-1]
    assert (last.name, last.database) == ("last_one", "zz")


@LONG_ENOUGH
@given(st.binary())
def test_any_bytes_can_be_decoded(data: bytes) -> None:
    if data.startswith((b"+/v8", b"+/v9", b"+/v+", b"+/v/")):
        # These are the marks of UTF-7 (test_tsql_decoding).
        return
    decoded = decode(data)
    assert decoded.unreadable == decoded.text.count("\ufffd") or decoded.encoding == "UTF-8"
    _read(decoded.text)


@LONG_ENOUGH
@example('N""""')
@given(st.text(alphabet="a '\"[]/*-\n{#}\\Nn;", max_size=60))
def test_the_tokenizer_and_the_line_reader_agree_on_strings_and_comments(text: str) -> None:
    found, last = segments(text)
    tokens = tokenize(text)
    open_at_end = last.mode not in (TextMode.CODE, TextMode.LINE_COMMENT)
    assert (tokens.cut is not None) == open_at_end
    if tokens.cut_in:
        assert tokens.cut_in == last.mode.value
    quoted = {
        (part.start, part.end)
        for part in (found[:-1] if open_at_end else found)
        if part.mode in (TextMode.STRING, TextMode.BRACKET, TextMode.QUOTED)
    }
    lexemes = {
        (token.start + text[token.start : token.start + 1].isalpha(), token.end)
        for token in tokens.lexemes
        if token.kind in (LexemeKind.STRING, LexemeKind.NAME)
    }
    assert lexemes == quoted


@pytest.mark.parametrize(
    "piece",
    [
        *("BEGIN ", "IF ", "IF x ", "(", "CASE ", "CASE ( ", "GRANT ", "ELSE ", "EXEC (", "EXEC "),
        *("CREATE ROUTE <", "<a, b, ", "/*", "'", '"', "[]", "''' ", "a", "@", "#", ";", "$(x)"),
        *("CREATE DATABASE (", "ALTER DATABASE x SET ", "CREATE ENDPOINT e (", "\n", "GO\n", "- "),
        *("GOTO a a: ", "a: ", "BEGIN TRY ", "THROW ", "DECLARE @v int = 1 ", "SET @v = @v + @v "),
        *("DECLARE @v varchar(9) = '' ", "SELECT @v = 'x' + @v, ", "EXEC(@v) ", "EXEC('x') "),
        *("CRAETE ROUTE ", ";CRAETE", "IF 1 = 1 RETURN ", "BEGIN END ", "CONCAT(", "SET @v = (", "ROLLBACK "),
        *("IF NOT (", "RETURN ", "USE ", "BEGIN TRAN ", ":r x\n", "CREATE SERVICE s ON QUEUE q ("),
    ],
)
def test_long_runs_end_in_time(piece: str) -> None:
    """Eight times the length takes eight times the time or slightly more. Quadratic time would be sixty times.

    One of three tries is enough on a busy machine.
    """

    def seconds(times: int) -> float:
        begin = time.process_time()
        _read(piece * times + "\nCREATE ROUTE r WITH ADDRESS = 'LOCAL'")
        return time.process_time() - begin

    assert any(seconds(1_000) < 24 * max(seconds(125), 0.0005) for _ in range(3))


def test_blocks_too_deep_are_reported_and_the_next_batch_is_read() -> None:
    tail = "CREATE ROUTE r WITH ADDRESS = 'LOCAL'"
    script = _read("BEGIN " * 500 + tail + " END" * 500 + "\nGO\n" + tail)
    assert [problem.line for problem in script.problems] == [1]
    assert "100 deep" in script.problems[0].why
    assert [statement.line for statement in script.statements] == [3]


def test_nested_exec_is_read_to_its_statement() -> None:
    text = "CREATE ROUTE r WITH ADDRESS = 'LOCAL'"
    for _ in range(12):
        text = "EXEC('" + text.replace("'", "''") + "')"
    assert [statement.name for statement in _read(text).statements] == ["r"]
