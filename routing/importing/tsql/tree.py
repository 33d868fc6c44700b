"""A batch as its statements lie inside one another.

Each node is one statement with its place, a file and a line; what governs others holds them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from routing.importing.tsql.refusal import RefusalError
from routing.importing.tsql.statements import Statement
from routing.importing.tsql.tokens import Lexeme

Place = tuple[str, int]
"""A file and a line of it."""

Words = tuple[Lexeme, ...]


@dataclass(frozen=True, kw_only=True)
class Node:
    """One statement; ``words`` are all of its lexemes, or those of its head."""

    place: Place
    words: Words = ()


@dataclass(frozen=True, kw_only=True)
class OtherStatement(Node):
    """A statement that says nothing about routing."""

    @property
    def verb(self) -> str:
        """Its first word."""
        return self.words[0].upper if self.words else ""


@dataclass(frozen=True, kw_only=True)
class Block(Node):
    """BEGIN … END."""

    body: tuple[Node, ...]


@dataclass(frozen=True, kw_only=True)
class IfElse(Node):
    """IF, of which ``words`` are the condition; ``is_else``: an ELSE whose IF was not recognised."""

    then: Node | None
    is_else: bool = False
    otherwise: Node | None = None


@dataclass(frozen=True, kw_only=True)
class Loop(Node):
    """WHILE."""

    body: Node | None


@dataclass(frozen=True, kw_only=True)
class TryCatch(Node):
    """BEGIN TRY … END TRY BEGIN CATCH … END CATCH."""

    body: tuple[Node, ...]
    handler: tuple[Node, ...]
    catch_line: int


@dataclass(frozen=True, kw_only=True)
class Label(Node):
    """A place that GOTO names, in lower case."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Goto(Node):
    """GOTO; the label in lower case."""

    label: str


@dataclass(frozen=True, kw_only=True)
class Return(Node):
    """RETURN."""


@dataclass(frozen=True, kw_only=True)
class Throw(Node):
    """THROW."""


@dataclass(frozen=True, kw_only=True)
class RaiseError(Node):
    """RAISERROR; ``severity`` is the words of its second argument."""

    severity: Words
    is_logged: bool


@dataclass(frozen=True)
class Assignment:
    """One variable that DECLARE, SET or SELECT gives a value: by ``=``, by another sign, or by none."""

    name: str
    sign: str
    value: Words
    type_words: Words = ()


@dataclass(frozen=True, kw_only=True)
class Assign(Node):
    """DECLARE, SET or SELECT of variables; with ``has_source`` a FROM or WHERE decides what they hold."""

    assignments: tuple[Assignment, ...]
    is_declaration: bool = False
    has_source: bool = False


@dataclass(frozen=True, kw_only=True)
class SetOptions(Node):
    """SET of options of the session; ``is_on`` None where they are set to something else."""

    options: tuple[str, ...]
    is_on: bool | None


@dataclass(frozen=True, kw_only=True)
class TransactionStatement(Node):
    """BEGIN, COMMIT, ROLLBACK or SAVE of a transaction; ``name`` is its own, a savepoint's, or a variable."""

    verb: str
    name: Lexeme | None = None


@dataclass(frozen=True, kw_only=True)
class Definition(Node):
    """A statement about routes, services, endpoints or databases.

    It makes ``statements``, whose database is filled in when it runs, or is refused. ``is_fault``: for that its
    batch cannot be parsed.
    """

    title: str
    statements: tuple[Statement, ...] = ()
    refusal: RefusalError | None = field(default=None, compare=False)
    notes: tuple[str, ...] = ()
    is_fault: bool = False


@dataclass(frozen=True, kw_only=True)
class Use(Node):
    """USE; ``name`` None where it is not known."""

    name: str | None
    refusal: RefusalError | None = field(default=None, compare=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a procedure; ``default`` None without one."""

    name: str
    type_words: Words
    default: Words | None
    is_output: bool


@dataclass(frozen=True, kw_only=True)
class Module(Node):
    """CREATE or ALTER of a procedure, function or trigger: all that follows in the batch is its ``body``.

    ``name`` is as written, ``key`` its schema and name in lower case.
    """

    verb: str
    kind: str
    name: str
    key: tuple[str, str]
    parameters: tuple[Parameter, ...]
    body: tuple[Node, ...]
    labels: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class DropModules(Node):
    """DROP PROCEDURE; ``keys`` are the schemas and names in lower case."""

    keys: tuple[tuple[str, str], ...]
    if_exists: bool


@dataclass(frozen=True)
class Argument:
    """What a call gives: by name, or in order; ``words`` empty for DEFAULT."""

    name: str | None
    words: Words
    is_output: bool


@dataclass(frozen=True, kw_only=True)
class Call(Node):
    """EXEC of a procedure, whose name has up to four ``parts`` or is what the ``variable`` holds.

    ``result`` is the variable of its return value.
    """

    parts: tuple[str, ...]
    variable: Lexeme | None
    result: str | None
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, kw_only=True)
class RunText(Node):
    """EXEC of a text in parentheses; ``server`` is a linked server."""

    value: Words
    server: str | None


@dataclass(frozen=True)
class Fault:
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

    nodes: tuple[Node, ...]
    faults: tuple[Fault, ...]
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
