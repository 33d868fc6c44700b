"""Read calls of the system procedures that change an instance's databases, as statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from routing.importing.tsql import tree
from routing.importing.tsql.database_definitions import attached
from routing.importing.tsql.definitions import StatementPlace
from routing.importing.tsql.instance_state import DATABASES, NamedRows
from routing.importing.tsql.script_statements import (
    AlterDatabaseState,
    DetachDatabase,
    DropDatabase,
    RefusalError,
    RenameDatabase,
    ScriptStatement,
    known_to_the_server,
    no_value,
    quote,
)
from routing.importing.tsql.tokens import Lexeme, LexemeKind, tokenize
from routing.importing.tsql.vocabulary import BESIDE_DATABASE, find_unknown_variable, speaks_of_routing

ValueOf = Callable[[Lexeme], str | None]
"""A function that returns the text of a variable, or None if it is unknown."""

Arguments = Mapping[str, str | RefusalError]

_MOST_ARGUMENTS = 20
_STATES = {
    "offline": "OFFLINE",
    "read only": "READ_ONLY",
    "single user": "SINGLE_USER",
    "dbo use only": "RESTRICTED_USER",
}


def read_procedure(
    name: str, arguments: Sequence[tree.CallArgument], place: StatementPlace, value_of: ValueOf
) -> list[ScriptStatement] | None:
    """Read a procedure call as statements, or return None if the procedure has no effect here.

    Raises RefusalError if an argument or the effect is unknown.
    """
    procedure = _PROCEDURES.get(name.lower())
    if procedure is None:
        return None
    parameters, read = procedure
    words_by_name = tree.bind(arguments[:_MOST_ARGUMENTS], [f"@{parameter}" for parameter in parameters])
    # An unknown value is a refusal where it is needed.
    return read({parameter[1:]: _value(words[0], value_of) for parameter, words in words_by_name.items()}, place)


def _value(lexeme: Lexeme, value_of: ValueOf) -> str | RefusalError:
    missing = find_unknown_variable(lexeme.text)
    if missing is not None:
        return no_value(missing)
    if lexeme.kind is LexemeKind.WORD and lexeme.text.startswith("@"):
        value = value_of(lexeme)
        return known_to_the_server(lexeme.text) if value is None else value
    if lexeme.kind not in (LexemeKind.STRING, LexemeKind.NAME, LexemeKind.WORD):
        return RefusalError(f"its argument {quote(lexeme.text)} cannot be read")
    return lexeme.text


def _text(arguments: Arguments, parameter: str, default: str | None = None) -> str:
    value = arguments.get(parameter, default)
    if isinstance(value, RefusalError):
        raise value
    if value is None:
        raise RefusalError(f"its argument @{parameter} is missing")
    return value


def _detach(arguments: Arguments, place: StatementPlace) -> list[ScriptStatement]:
    return [DetachDatabase(*place.parts, _text(arguments, "dbname"))]


def _remove(arguments: Arguments, place: StatementPlace) -> list[ScriptStatement]:
    return [DropDatabase(*place.parts, _text(arguments, "dbname"))]


def _attach(arguments: Arguments, place: StatementPlace) -> list[ScriptStatement]:
    raise attached(_text(arguments, "dbname"))


def _rename_database(arguments: Arguments, place: StatementPlace, named: str = "dbname") -> list[ScriptStatement]:
    new_name = _unquoted(_text(arguments, "newname"))
    return [RenameDatabase(*place.parts, _unquoted(_text(arguments, named)), new_name=new_name)]


def _rename_object(arguments: Arguments, place: StatementPlace) -> list[ScriptStatement]:
    if _text(arguments, "objtype", "").lower() != "database":
        return []
    return _rename_database(arguments, place, "objname")


def _set_option(arguments: Arguments, place: StatementPlace) -> list[ScriptStatement]:
    option = _STATES.get(_text(arguments, "optname", "").lower())
    if option is None:
        return []
    return [AlterDatabaseState(*place.parts, _text(arguments, "dbname"), state=option)]


def _unquoted(name: str) -> str:
    """Return a name that may be given in brackets inside its string."""
    return name[1:-1].replace("]]", "]") if name.startswith("[") and name.endswith("]") else name


_PROCEDURES: dict[str, tuple[tuple[str, ...], Callable[[Arguments, StatementPlace], list[ScriptStatement]]]] = {
    "sp_attach_db": (("dbname",), _attach),
    "sp_attach_single_file_db": (("dbname",), _attach),
    "sp_dboption": (("dbname", "optname", "optvalue"), _set_option),
    "sp_dbremove": (("dbname",), _remove),
    "sp_detach_db": (("dbname",), _detach),
    "sp_rename": (("objname", "newname", "objtype"), _rename_object),
    "sp_renamedb": (("dbname", "newname"), _rename_database),
}


def is_read_procedure(name: str) -> bool:
    """Return whether `read_procedure` reads calls of this procedure."""
    return name.lower() in _PROCEDURES


# USE of a database that its own batch makes: the batch is compiled before, when there is none.


_NO_DATABASE = 911


def find_early_use(nodes: Sequence[tree.ScriptNode], holdings: NamedRows | None) -> tree.BatchFault | None:
    """Return the fault of a batch that uses a database before it exists, or None without a known state."""
    if holdings is None:
        return None
    created_names: set[str] = set()
    known_names: set[str] = set()
    for node in _walk(nodes):
        if isinstance(node, tree.UseNode) and node.name is not None:
            name = node.name.casefold()
            if name in created_names:
                why = f"USE: the database {quote(node.name)} does not exist yet when its batch is compiled"
                return tree.BatchFault(node.place, why, _NO_DATABASE)
            known_names.add(name)
        elif isinstance(node, tree.DefinitionNode):
            dropped = (statement for statement in node.statements if isinstance(statement, DropDatabase))
            known_names.update(statement.name.casefold() for statement in dropped)
        for name in _made_by(node):
            is_there = holdings.holds_database(name)
            is_missing = holdings.knows(DATABASES, "", name) and not is_there
            if not is_there and (is_missing or name not in known_names):
                created_names.add(name)
    return None


def _walk(nodes: Sequence[tree.ScriptNode | None]) -> Iterator[tree.ScriptNode]:
    for node in nodes:
        if node is not None:
            yield node
            yield from _walk(tree.governed_by(node))


def _made_by(node: tree.ScriptNode) -> Iterator[str]:
    if isinstance(node, tree.DefinitionNode):
        yield from _find_created(node.words)
        renamed = (statement for statement in node.statements if isinstance(statement, RenameDatabase))
        yield from (statement.new_name.casefold() for statement in renamed)
    elif isinstance(node, tree.RunText):
        for word in node.value:
            if word.kind is LexemeKind.STRING and speaks_of_routing(word.text):
                yield from _find_created(tokenize(word.text).lexemes)


def _find_created(words: Sequence[Lexeme]) -> Iterator[str]:
    for verb, noun, name in zip(words, words[1:], words[2:], strict=False):
        is_database = verb.upper == "CREATE" and noun.upper == "DATABASE" and name.upper not in BESIDE_DATABASE
        if is_database and name.kind in (LexemeKind.WORD, LexemeKind.NAME):
            yield name.text.casefold()
