"""A batch as a tree of nested statements.

Each node is one statement with its place, a file and a line. A node contains the statements that it governs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.script_statements import RefusalError, ScriptStatement
from routing.importing.tsql.sqlcmd import Changeset
from routing.importing.tsql.tokens import Lexeme, LexemeKind, LexemeList, split_words

Place = tuple[str, int]
"""A file and a line of it."""

Words = tuple[Lexeme, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptNode:
    """One statement. ``words`` are all of its lexemes, or those of its head."""

    place: Place
    words: Words = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class OtherStatement(ScriptNode):
    """A statement that is not about routing. It keeps only the ``words`` that `needed_words` returns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockNode(ScriptNode):
    """BEGIN … END."""

    body: tuple[ScriptNode, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class IfElse(ScriptNode):
    """IF, with ``words`` as its condition. ``is_else`` is True for an ELSE without a recognised IF."""

    then: ScriptNode | None
    is_else: bool = False
    otherwise: ScriptNode | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopNode(ScriptNode):
    """WHILE."""

    body: ScriptNode | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TryCatch(ScriptNode):
    """BEGIN TRY … END TRY BEGIN CATCH … END CATCH."""

    body: tuple[ScriptNode, ...]
    handler: tuple[ScriptNode, ...]
    catch_line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelNode(ScriptNode):
    """A place that GOTO names, in lower case."""

    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GotoNode(ScriptNode):
    """GOTO, with the label in lower case."""

    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReturnNode(ScriptNode):
    """RETURN."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ThrowNode(ScriptNode):
    """THROW."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RaiseError(ScriptNode):
    """RAISERROR. ``severity`` has the words of its second argument."""

    severity: Words
    is_logged: bool


@dataclass(frozen=True, slots=True)
class VariableAssignment:
    """A variable in DECLARE, SET or SELECT, with ``=``, another sign or none."""

    name: str
    sign: str
    value: Words
    type_words: Words = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AssignNode(ScriptNode):
    """DECLARE, SET or SELECT of variables. With ``has_source`` a FROM or WHERE decides their values."""

    assignments: tuple[VariableAssignment, ...]
    is_declaration: bool = False
    has_source: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SetOptions(ScriptNode):
    """SET of session options. ``is_on`` is None for a value other than ON and OFF."""

    options: tuple[str, ...]
    is_on: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TransactionStatement(ScriptNode):
    """BEGIN, COMMIT, ROLLBACK or SAVE of a transaction. ``name`` is its own, a savepoint's, or a variable."""

    verb: str
    name: Lexeme | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DefinitionNode(ScriptNode):
    """A statement about routes, services, endpoints or databases.

    It makes ``statements`` or is refused. Their database is filled in when it runs. ``is_fault`` is True if it
    prevents the batch from being parsed.
    """

    title: str
    statements: tuple[ScriptStatement, ...] = ()
    refusal: RefusalError | None = field(default=None, compare=False)
    notes: tuple[str, ...] = ()
    is_fault: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class UseNode(ScriptNode):
    """USE. ``name`` is None if it is unknown."""

    name: str | None
    refusal: RefusalError | None = field(default=None, compare=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcedureParameter:
    """A parameter of a procedure. ``default`` is None without one."""

    name: str
    type_words: Words
    default: Words | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModuleNode(ScriptNode):
    """CREATE or ALTER of a procedure, function or trigger: all that follows in the batch is its body.

    ``name`` is as written, ``key`` its schema and name in lower case. ``read_body`` returns the statements of the
    body. None of them is reported if the module ``is_silent`` and does not run.
    """

    verb: str
    kind: str
    name: str
    key: tuple[str, str]
    parameters: tuple[ProcedureParameter, ...]
    read_body: Callable[[], tuple[ScriptNode, ...]]
    is_silent: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class DropModules(ScriptNode):
    """DROP PROCEDURE. ``keys`` are the schemas and names in lower case."""

    keys: tuple[tuple[str, str], ...]
    if_exists: bool


@dataclass(frozen=True, slots=True)
class CallArgument:
    """An argument of a call, by name or in order. ``words`` are empty for DEFAULT."""

    name: str | None
    words: Words


def bind(arguments: Sequence[CallArgument], names: Sequence[str]) -> dict[str, Words]:
    """Return the words of the given arguments by parameter in lower case, given by name or in order."""
    words_by_name: dict[str, Words] = {}
    for index, argument in enumerate(arguments):
        name = names[index] if index < len(names) else ""
        if argument.words:
            words_by_name[(argument.name or name).casefold()] = argument.words
    return words_by_name


@dataclass(frozen=True, kw_only=True, slots=True)
class CallNode(ScriptNode):
    """EXEC of a procedure with a name of up to four ``parts``, or in a ``variable``."""

    parts: tuple[str, ...]
    variable: Lexeme | None
    arguments: tuple[CallArgument, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunText(ScriptNode):
    """EXEC of a text in parentheses. ``server`` is a linked server."""

    value: Words
    server: str | None


@dataclass(frozen=True, slots=True)
class BatchFault:
    """The reason why SQL Server cannot parse a batch, with its number."""

    place: Place
    why: str
    number: int | None


@dataclass(frozen=True, slots=True)
class ParsedBatch:
    """A batch, or the text of an EXEC: its nodes, and its faults that prevent it from running.

    ``unread`` is the place where blocks begin to nest too deep. ``statements`` counts the recognised statements on
    any subject.
    """

    nodes: tuple[ScriptNode, ...]
    faults: tuple[BatchFault, ...]
    unread: Place | None = None
    statements: int = 0


@dataclass(frozen=True, slots=True)
class ScriptBatch:
    """A batch of a script. ``why_not`` is the reason if it does not run on the instance in question.

    ``connection`` numbers the connections of the script. With ``exits`` an error in it ends the script. A batch
    that ``is_foreign`` belongs to another instance and is not reported. ``changeset`` is Liquibase's.
    """

    parsed: ParsedBatch
    connection: int = 0
    exits: bool = False
    why_not: str | None = None
    is_foreign: bool = False
    changeset: Changeset | None = None


def governed_by(node: ScriptNode) -> tuple[ScriptNode | None, ...]:
    """Return the statements directly inside a statement."""
    if isinstance(node, IfElse):
        return node.then, node.otherwise
    if isinstance(node, LoopNode):
        return (node.body,)
    if isinstance(node, BlockNode):
        return node.body
    return (*node.body, *node.handler) if isinstance(node, TryCatch) else ()


# The heads of procedures, functions, triggers and views: names, parameters, and the begin of the body.


_MODULES = ("PROC", "PROCEDURE", "FUNCTION", "TRIGGER", "VIEW")
AFTER_CREATE = frozenset(["SCHEMA", "DEFAULT", "RULE"])
"""The kinds that must be first in their batch after CREATE, but not after ALTER."""

FIRST_IN_BATCH = frozenset(
    [*((verb, kind) for verb in ("CREATE", "ALTER") for kind in _MODULES)]
    + [("CREATE", kind) for kind in AFTER_CREATE]
)
"""The verbs and kinds of statements that must be first in their batch."""

DEFAULT_SCHEMA = "dbo"
_END_OF_PARAMETERS = frozenset(["WITH", "FOR", "RETURNS", "AS"])


def read_name(cursor: LexemeCursor) -> tuple[str, tuple[str, str]]:
    """Return the last part of the name at the cursor, with its schema and name in lower case. Move past it."""
    parts = cursor.parts()
    parts[-1] += read_number(cursor)
    return parts[-1], key_of(parts)


def read_number(cursor: LexemeCursor) -> str:
    """Read the number of a procedure as a part of its name, ``;2``. The number ``;1`` is the procedure itself."""
    if not (cursor.at(";") and cursor.peek(1).kind is LexemeKind.NUMBER):
        return ""
    cursor.next()
    number = cursor.next().text
    return "" if number == "1" else f";{number}"


def is_of_group(name: str, group: str) -> bool:
    """Return whether a procedure is of this name, with any number."""
    return name == group or (name.startswith(f"{group};") and name[len(group) + 1 :].isdecimal())


def key_of(parts: list[str] | tuple[str, ...]) -> tuple[str, str]:
    """Return schema and name, in lower case, of a name in parts."""
    schema = parts[-2] if len(parts) > 1 and parts[-2] else DEFAULT_SCHEMA
    return schema.casefold(), parts[-1].casefold()


def find_body(cursor: LexemeCursor, kind: str) -> None:
    """Move to the body of a module, from behind its name."""
    before = cursor.peek(-1)
    while not cursor.at_end:
        lexeme = cursor.peek()
        if kind == "FUNCTION" and lexeme.upper in ("BEGIN", "RETURN"):
            return
        if lexeme.upper == "AS" and before.upper not in ("EXECUTE", "EXEC") and not before.text.startswith("@"):
            cursor.next()
            return
        before = lexeme
        cursor.skip_item()


def read_parameters(header: Words) -> tuple[ProcedureParameter, ...]:
    """Return the parameters in the head of a procedure, up to WITH, FOR or the body."""
    cursor = LexemeCursor(LexemeList("", header))
    if cursor.at("(") and cursor.at_group:
        cursor = LexemeCursor(LexemeList("", cursor.group()))
    start = cursor.position
    while not cursor.at_end:
        if cursor.peek().upper in _END_OF_PARAMETERS and not cursor.peek(-1).text.startswith("@"):
            break
        cursor.skip_item()
    parts = split_words(cursor.between(start, cursor.position), ",")
    return tuple(_read_parameter(part) for part in parts if part and part[0].text.startswith("@"))


def _read_parameter(words: Words) -> ProcedureParameter:
    name, declared = words[0].text, list(words[1:])
    declared = [word for word in declared if word.upper not in ("OUTPUT", "OUT", "READONLY", "VARYING")]
    if declared and declared[0].upper == "AS":
        declared = declared[1:]
    equals = next(
        (index for index, word in enumerate(declared) if word.text == "=" and word.kind is LexemeKind.SIGN), None
    )
    default = None if equals is None else tuple(declared[equals + 1 :])
    type_words = [word for word in declared[:equals] if word.upper not in ("NULL", "NOT")]
    return ProcedureParameter(name, tuple(type_words), default)
