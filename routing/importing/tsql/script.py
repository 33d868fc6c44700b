"""A script as it was read, and its run against what an instance holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from routing.importing.tsql.calling import CallRunner
from routing.importing.tsql.interpreter import ScriptInterpreter
from routing.importing.tsql.script_run import ScriptRun
from routing.importing.tsql.script_statements import ScriptStatement, StatementProblem, in_order
from routing.importing.tsql.state import InstanceState
from routing.importing.tsql.statement_condition import ALWAYS
from routing.importing.tsql.statement_parser import ParserSettings
from routing.importing.tsql.tree import ScriptBatch


@dataclass(frozen=True)
class ReadScript:
    """One script as it was read.

    ``statements`` are those that may run, in their order, as far as the script alone tells, and ``problems``, in
    the order of `in_order`, what it leaves unknown or SQL Server refuses whatever the instance holds.
    ``encoding`` is None where the caller gave text; ``database`` is the one in use at the end, ``first_database``
    the one at the beginning; ``statement_count`` is how many statements of T-SQL were recognised, about whatever
    they are. ``servers`` are those that ``:connect`` names. ``content_digest`` is the SHA-256 of all that was
    read, files of ``:r`` included, of the first database and of the variables of ``-v``. ``own_time`` is that of
    its file, where ``scripted_at`` is a later one. ``parts`` are its batches, and what is wrong between them.
    """

    file: str
    scripted_at: datetime
    statements: tuple[ScriptStatement, ...] = ()
    problems: tuple[StatementProblem, ...] = ()
    encoding: str | None = None
    database: str | None = None
    statement_count: int = 0
    servers: tuple[str, ...] = ()
    content_digest: str = ""
    own_time: datetime | None = None
    first_database: str | None = None
    template_defaults: bool = True
    parts: tuple[ScriptBatch | StatementProblem, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class AppliedScript:
    """The state after a script, and what became of its statements.

    ``statements`` are those that were applied, ``passed_over`` those whose own IF did not hold, ``left_out`` those
    that the caller leaves out. A problem that is ``counted`` is a remark on a statement that was applied.
    """

    state: InstanceState
    problems: tuple[StatementProblem, ...] = ()
    statements: tuple[ScriptStatement, ...] = ()
    passed_over: tuple[ScriptStatement, ...] = ()
    left_out: tuple[ScriptStatement, ...] = ()

    @property
    def applied(self) -> int:
        """How many statements were applied."""
        return len(self.statements)

    @property
    def refused(self) -> int:
        """How many statements do not count: refused, rolled back, or not known."""
        return sum(not problem.counted for problem in self.problems)


def read_parts(
    file: str,
    scripted_at: datetime,
    parts: Sequence[ScriptBatch | StatementProblem],
    database: str | None,
    template_defaults: bool,
) -> ReadScript:
    """Return a script of these parts, with what it alone tells of its statements."""
    statement_count = sum(part.parsed.statements for part in parts if isinstance(part, ScriptBatch))
    script = ReadScript(
        file,
        scripted_at,
        statement_count=statement_count,
        first_database=database,
        template_defaults=template_defaults,
        parts=tuple(parts),
    )
    run = _run_script(script, ScriptRun(database, None))
    return replace(
        script,
        statements=tuple(effect.statement for effect in run.effects),
        problems=_problems_of(run, file, with_effects=False),
        database=run.connection.database,
    )


def apply_script(
    state: InstanceState,
    script: ReadScript,
    leaves_out: Callable[[ScriptStatement], bool] = lambda statement: False,
) -> AppliedScript:
    """Apply a script to a state.

    Names of databases, routes and endpoints are found in any case, as under SQL Server's default collation, an
    exact match first; service names exactly, as Service Broker compares them. A database is spelled as the state
    spells it. Statements for which ``leaves_out`` holds change nothing.
    """
    run = _run_script(script, ScriptRun(script.first_database, state, leaves_out))
    if run.holdings is None:
        raise TypeError("a script is applied to a state")
    return AppliedScript(
        run.holdings.state(),
        _problems_of(run, script.file, with_effects=True),
        tuple(effect.statement for effect in run.effects),
        tuple(run.passed_over),
        tuple(run.left_out),
    )


def _run_script(script: ReadScript, run: ScriptRun) -> ScriptRun:
    settings = ParserSettings(script.scripted_at, script.template_defaults, is_script=True)
    calls = CallRunner(run, settings)
    interpreter = ScriptInterpreter(run, calls)
    connection = 0
    for part in script.parts:
        if isinstance(part, StatementProblem):
            run.problems.append(part)
            continue
        if part.connection != connection:
            connection = part.connection
            run.connect(None)
        if part.is_foreign:
            failed = part.parsed.faults[0].place[1] if part.parsed.faults else None
        else:
            interpreter.run_batch(part.parsed, ALWAYS.not_run(part.why_not).not_run(run.ended))
            failed = run.connection.failed_line
        if failed is not None and part.exits and run.ended is None:
            run.ended = f"sqlcmd ends the script after the error in line {failed}, as :on error exit says"
    run.close("the script ends")
    calls.name_uncalled()
    return run


def _problems_of(run: ScriptRun, file: str, *, with_effects: bool) -> tuple[StatementProblem, ...]:
    problems = list(run.problems)
    for effect in run.effects if with_effects else ():
        statement = effect.statement
        remarks = [*effect.remarks, *([] if statement.doubt is None else [statement.doubt])]
        problems += [
            StatementProblem(statement.file, statement.line, f"{statement.title}: {remark}", counted=True)
            for remark in dict.fromkeys(remarks)
        ]
    return in_order(problems, file)
