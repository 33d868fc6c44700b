"""A batch as its statements lie inside one another.

Each node is one statement with its place, a file and a line; what governs others holds them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from routing.importing.tsql.refusal import RefusalError
from routing.importing.tsql.script_statements import ScriptStatement
from routing.importing.tsql.tokens import Lexeme

Place = tuple[str, int]
"""A file and a line of it."""

Words = tuple[Lexeme, ...]


@dataclass(frozen=True, kw_only=True)
class ScriptNode:
    """One statement; ``words`` are all of its lexemes, or those of its head."""

    place: Place
    words: Words = ()


@dataclass(frozen=True, kw_only=True)
class OtherStatement(ScriptNode):
    """A statement that says nothing about routing."""

    @property
    def verb(self) -> str:
        """Its first word."""
        return self.words[0].upper if self.words else ""


@dataclass(frozen=True, kw_only=True)
class BlockNode(ScriptNode):
    """BEGIN … END."""

    body: tuple[ScriptNode, ...]


@dataclass(frozen=True, kw_only=True)
class IfElse(ScriptNode):
    """IF, of which ``words`` are the condition; ``is_else``: an ELSE whose IF was not recognised."""

    then: ScriptNode | None
    is_else: bool = False
    otherwise: ScriptNode | None = None


@dataclass(frozen=True, kw_only=True)
class LoopNode(ScriptNode):
    """WHILE."""

    body: ScriptNode | None


@dataclass(frozen=True, kw_only=True)
class TryCatch(ScriptNode):
    """BEGIN TRY … END TRY BEGIN CATCH … END CATCH."""

    body: tuple[ScriptNode, ...]
    handler: tuple[ScriptNode, ...]
    catch_line: int


@dataclass(frozen=True, kw_only=True)
class LabelNode(ScriptNode):
    """A place that GOTO names, in lower case."""

    name: str


@dataclass(frozen=True, kw_only=True)
class GotoNode(ScriptNode):
    """GOTO; the label in lower case."""

    label: str


@dataclass(frozen=True, kw_only=True)
class ReturnNode(ScriptNode):
    """RETURN."""


@dataclass(frozen=True, kw_only=True)
class ThrowNode(ScriptNode):
    """THROW."""


@dataclass(frozen=True, kw_only=True)
class RaiseError(ScriptNode):
    """RAISERROR; ``severity`` is the words of its second argument."""

    severity: Words
    is_logged: bool


@dataclass(frozen=True)
class VariableAssignment:
    """One variable that DECLARE, SET or SELECT gives a value: by ``=``, by another sign, or by none."""

    name: str
    sign: str
    value: Words
    type_words: Words = ()


@dataclass(frozen=True, kw_only=True)
class AssignNode(ScriptNode):
    """DECLARE, SET or SELECT of variables; with ``has_source`` a FROM or WHERE decides what they hold."""

    assignments: tuple[VariableAssignment, ...]
    is_declaration: bool = False
    has_source: bool = False


@dataclass(frozen=True, kw_only=True)
class SetOptions(ScriptNode):
    """SET of options of the session; ``is_on`` None where they are set to something else."""

    options: tuple[str, ...]
    is_on: bool | None


@dataclass(frozen=True, kw_only=True)
class TransactionStatement(ScriptNode):
    """BEGIN, COMMIT, ROLLBACK or SAVE of a transaction; ``name`` is its own, a savepoint's, or a variable."""

    verb: str
    name: Lexeme | None = None


@dataclass(frozen=True, kw_only=True)
class DefinitionNode(ScriptNode):
    """A statement about routes, services, endpoints or databases.

    It makes ``statements``, whose database is filled in when it runs, or is refused. ``is_fault``: for that its
    batch cannot be parsed.
    """

    title: str
    statements: tuple[ScriptStatement, ...] = ()
    refusal: RefusalError | None = field(default=None, compare=False)
    notes: tuple[str, ...] = ()
    is_fault: bool = False


@dataclass(frozen=True, kw_only=True)
class UseNode(ScriptNode):
    """USE; ``name`` None where it is not known."""

    name: str | None
    refusal: RefusalError | None = field(default=None, compare=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProcedureParameter:
    """A parameter of a procedure; ``default`` None without one."""

    name: str
    type_words: Words
    default: Words | None
    is_output: bool


@dataclass(frozen=True, kw_only=True)
class ModuleNode(ScriptNode):
    """CREATE or ALTER of a procedure, function or trigger: all that follows in the batch is its ``body``.

    ``name`` is as written, ``key`` its schema and name in lower case.
    """

    verb: str
    kind: str
    name: str
    key: tuple[str, str]
    parameters: tuple[ProcedureParameter, ...]
    body: tuple[ScriptNode, ...]
    labels: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class DropModules(ScriptNode):
    """DROP PROCEDURE; ``keys`` are the schemas and names in lower case."""

    keys: tuple[tuple[str, str], ...]
    if_exists: bool


@dataclass(frozen=True)
class CallArgument:
    """An argument of a call: by name, or in order; ``words`` empty for DEFAULT."""

    name: str | None
    words: Words
    is_output: bool


@dataclass(frozen=True, kw_only=True)
class CallNode(ScriptNode):
    """EXEC of a procedure, whose name has up to four ``parts`` or is what the ``variable`` holds.

    ``result`` is the variable of its return value.
    """

    parts: tuple[str, ...]
    variable: Lexeme | None
    result: str | None
    arguments: tuple[CallArgument, ...]


@dataclass(frozen=True, kw_only=True)
class RunText(ScriptNode):
    """EXEC of a text in parentheses; ``server`` is a linked server."""

    value: Words
    server: str | None


@dataclass(frozen=True)
class BatchFault:
    """For what SQL Server cannot parse a batch, and its number."""

    place: Place
    why: str
    number: int | None


@dataclass(frozen=True)
class ParsedBatch:
    """A batch, or the text of an EXEC: its nodes, its labels, and why nothing of it runs, if anything.

    ``unread`` is the place from which on blocks nest too deep to be read; ``statements`` how many statements were
    recognised, about whatever they are.
    """

    nodes: tuple[ScriptNode, ...]
    faults: tuple[BatchFault, ...]
    labels: frozenset[str]
    unread: Place | None = None
    statements: int = 0


@dataclass(frozen=True)
class ScriptBatch:
    """A batch as a script sends it; ``why_not`` where it does not run on the instance that is asked about.

    ``connection`` numbers the connections of the script. With ``exits`` an error in it ends the script. A batch
    that ``is_foreign`` is another instance's, of which nothing is said.
    """

    parsed: ParsedBatch
    connection: int = 0
    exits: bool = False
    why_not: str | None = None
    is_foreign: bool = False
