"""Parse statements that govern no others into nodes, and say for which texts SQL Server cannot parse them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime

from routing.importing.tsql import definitions, tree
from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.database_definitions import find_stray_sign, title_of
from routing.importing.tsql.extents import StatementExtent, at_end_of_condition, finish
from routing.importing.tsql.held_texts import needed_words
from routing.importing.tsql.parse_faults import VariableNames, find_misspelt_definition
from routing.importing.tsql.script_statements import JOINED, SYNTAX, RefusalError, UnparsedError
from routing.importing.tsql.tokens import LexemeKind, LexemeList, split_words
from routing.importing.tsql.tree import Place, Words
from routing.importing.tsql.vocabulary import STARTERS, find_unknown_variable

Locate = Callable[[int], Place]
"""The file and line of a row of the text."""

_COMMON_TABLE, _MERGE, _VALUE_RETURNED, _RETHROW, _USE_IN_MODULE = 319, 10713, 178, 10704, 154
_RETURNS_NOTHING = frozenset(["batch", "trigger"])


@dataclass(frozen=True)
class ParserSettings:
    """The settings with which a text is read.

    ``is_script``: statements were recognised before it. ``declared`` are the variables that it has from outside,
    None where that is not known.
    """

    scripted_at: datetime
    is_script: bool = False
    declared: Collection[str] | None = ()


class StatementParser:
    """Reads statements at its cursor. ``faults`` are the reasons why the batch cannot be parsed."""

    def __init__(self, tokens: LexemeList, locate: Locate, settings: ParserSettings) -> None:
        self._tokens = tokens
        self._locate = locate
        self._settings = settings
        self._cursor = LexemeCursor(tokens)
        self._names = VariableNames(tokens.lexemes, settings.declared)
        self._faults: list[tree.BatchFault] = []
        self._gotos: list[tree.GotoNode] = []
        self._handlers = 0
        self._module = "batch"
        # A sqlcmd variable without value may be any text, so a syntax error is then not certain.
        self._is_whole = not any(find_unknown_variable(lexeme.text) for lexeme in tokens.lexemes if lexeme.upper)
        self._is_balanced = True

    def _add_fault(self, place: Place, why: str, number: int | None) -> None:
        self._faults.append(tree.BatchFault(place, why, number))

    def _fault(self, place: Place, why: str, number: int | None = SYNTAX) -> bool:
        """Note why the batch cannot be parsed, if that is certain."""
        is_certain = self._is_whole and self._is_balanced
        if is_certain:
            self._add_fault(place, why, number)
        return is_certain

    def _next_place(self) -> Place:
        return self._locate(self._cursor.peek().row)

    def _skip(self) -> StatementExtent:
        place, start = self._next_place(), self._cursor.position
        extent = StatementExtent(self._cursor)
        extent.skip()
        self._check_extent(extent, place, start)
        return extent

    def _check_extent(self, extent: StatementExtent, place: Place, start: int) -> None:
        cursor = self._cursor
        if extent.lacks_semicolon:
            why = "WITH begins a common table expression here, and the statement before it has no semicolon"
            self._fault(self._next_place(), why, _COMMON_TABLE)
        if extent.verb == "MERGE" and not cursor.at(";"):
            self._fault(place, "MERGE must end with a semicolon", _MERGE)
        misspelt = find_misspelt_definition(cursor.between(start, cursor.position + 1))
        if misspelt is not None:
            self._fault(place, misspelt)

    def _words_since(self, start: int) -> Words:
        return self._cursor.between(start, self._cursor.position)

    def _skipped_statement(self, place: Place, start: int) -> tree.OtherStatement:
        return tree.OtherStatement(place=place, words=needed_words(self._words_since(start)))

    def _other_statement(self) -> tree.ScriptNode:
        place, start = self._next_place(), self._cursor.position
        extent = self._skip()
        if extent.calls_at is not None:
            end, self._cursor.position = self._cursor.position, extent.calls_at
            node = self._execute()
            self._cursor.position = max(end, self._cursor.position)
            return node
        return self._skipped_statement(place, start)

    def _transaction(self) -> tree.ScriptNode:
        return _read_transaction(self._cursor, self._next_place())

    def _goto(self) -> tree.ScriptNode:
        place, start = self._next_place(), self._cursor.position
        self._cursor.next()
        label = self._cursor.next().text.casefold()
        node = tree.GotoNode(place=place, words=finish(self._cursor, start), label=label)
        if node.words[1:] and node.words[1].kind in (LexemeKind.WORD, LexemeKind.NAME):
            self._gotos.append(node)
        return node

    def _return(self) -> tree.ScriptNode:
        place, start = self._next_place(), self._cursor.position
        self._cursor.next()
        if not at_end_of_condition(self._cursor) and self._module in _RETURNS_NOTHING:
            self._fault(place, "RETURN has a value outside a procedure or function", _VALUE_RETURNED)
        return tree.ReturnNode(place=place, words=finish(self._cursor, start))

    def _throw(self) -> tree.ScriptNode:
        place, start = self._next_place(), self._cursor.position
        self._cursor.next()
        if at_end_of_condition(self._cursor) and not self._handlers:
            self._fault(place, "THROW has no arguments outside a CATCH block", _RETHROW)
        return tree.ThrowNode(place=place, words=finish(self._cursor, start))

    def _raise(self) -> tree.ScriptNode:
        return _read_error(self._cursor, self._next_place())

    def _declare(self) -> tree.ScriptNode:
        is_variable = self._cursor.peek(1).text.startswith("@")
        return self._assign(self._names) if is_variable else self._other_statement()

    def _set(self) -> tree.ScriptNode:
        is_variable = self._cursor.peek(1).text.startswith("@")
        return self._assign() if is_variable else _read_options(self._cursor, self._next_place())

    def _select(self) -> tree.ScriptNode:
        cursor = self._cursor
        is_variable = cursor.peek(1).text.startswith("@") and cursor.peek(2).text in ("=", "+")
        return self._assign() if is_variable else self._other_statement()

    def _assign(self, names: VariableNames | None = None) -> tree.ScriptNode:
        place, start = self._next_place(), self._cursor.position
        self._skip()
        end, self._cursor.position = self._cursor.position, start
        return _read_assignments(self._cursor, end, place, names)

    def _use(self) -> tree.ScriptNode:
        place, start, cursor = self._next_place(), self._cursor.position, self._cursor
        cursor.next()
        self._take_notes()
        if self._module != "batch":
            self._fault(place, f"USE is in the body of a {self._module}", _USE_IN_MODULE)
        try:
            name: str | None = cursor.name("database name")
            cursor.end_of_statement()
            refusal: RefusalError | None = None
        except RefusalError as error:
            name, refusal = None, error
            if isinstance(error, UnparsedError):
                self._fault(place, f"USE: {error.why}", error.number)
        words, notes = finish(cursor, start), self._take_notes()
        return tree.UseNode(place=place, words=words, name=name, refusal=refusal, notes=notes)

    def _execute(self) -> tree.ScriptNode:
        if self._cursor.peek(1).upper == "AS":
            return self._other_statement()
        start = self._cursor.position
        if self._cursor.peek(1).text == "(" and self._cursor.peek(1).kind is LexemeKind.SIGN:
            return _read_text_call(self._cursor, self._next_place())
        self._cursor.next()
        return self._call(start)

    def _call(self, start: int | None = None) -> tree.ScriptNode:
        cursor = self._cursor
        start = cursor.position if start is None else start
        place = self._locate(cursor.between(start, start + 1)[0].row)
        call = _read_call(cursor, place, self._names)
        later_words = (word for argument in call.arguments for word in argument.words[1:])
        if any(word.text == "+" and word.kind is LexemeKind.SIGN for word in later_words):
            self._fault(place, f"EXEC: {JOINED}")
        finish(cursor, start)
        misspelt = find_misspelt_definition(cursor.between(start, cursor.position + 1))
        if misspelt is not None:
            self._fault(place, misspelt)
        cursor.position = max(cursor.position, start + 1)
        return replace(call, words=self._words_since(start))

    def _brings_database(self) -> tree.ScriptNode:
        """Read RESTORE or DBCC CLONEDATABASE, which create routes and services without naming them."""
        cursor, place, start = self._cursor, self._next_place(), self._cursor.position
        title, why = definitions.find_brought_database(cursor)
        stray = find_stray_sign(cursor) if cursor.peek(1).upper in ("DATABASE", "LOG") else None
        if stray is not None:
            self._fault(place, f"{cursor.peek().upper} {cursor.peek(1).upper}: {stray.why}", stray.number)
        self._skip()
        if title is None:
            return self._skipped_statement(place, start)
        words = self._words_since(start)
        return tree.DefinitionNode(place=place, words=words, title=title, refusal=RefusalError(why))

    def _read_definition(self, read: definitions.Definition) -> tree.ScriptNode:
        cursor, place, start = self._cursor, self._next_place(), self._cursor.position
        title = title_of(cursor)
        self._take_notes()
        statement_place = definitions.StatementPlace(*place, None, self._settings.scripted_at)
        try:
            statements = read(cursor, statement_place)
        except RefusalError as refusal:
            why = f"{title}: {refusal.why}"
            is_fault = isinstance(refusal, UnparsedError) and self._fault(place, why, refusal.number)
            cursor.position = max(cursor.position, start + 2)
            words = _needed_of_definition(finish(cursor, start))
            return tree.DefinitionNode(place=place, words=words, title=title, refusal=refusal, is_fault=is_fault)
        notes = self._take_notes()
        words = _needed_of_definition(finish(cursor, start))
        return tree.DefinitionNode(
            place=place, words=words, title=title, statements=tuple(statements), notes=notes
        )

    def _drop_modules(self) -> tree.ScriptNode:
        place, start = self._next_place(), self._cursor.position
        keys, if_exists = tree.read_dropped(self._cursor)
        return tree.DropModules(place=place, words=finish(self._cursor, start), keys=keys, if_exists=if_exists)

    def _take_notes(self) -> tuple[str, ...]:
        notes, self._cursor.notes = tuple(self._cursor.notes), []
        return notes


def _needed_of_definition(words: Words) -> Words:
    """Return the verb, noun and name, or all words if they contain another CREATE."""
    return words if any(word.upper == "CREATE" for word in words[1:]) else words[:3]


# Read statements that have no faults by themselves.


_TRANSACTION = frozenset(["TRAN", "TRANSACTION", "WORK"])
_SOURCES = frozenset(
    ["FROM", "WHERE", "GROUP", "HAVING", "ORDER", "OPTION", "UNION", "EXCEPT", "INTERSECT", "INTO", "FOR"]
)
_OUTPUT = frozenset(["OUTPUT", "OUT"])


def _read_transaction(cursor: LexemeCursor, place: Place) -> tree.ScriptNode:
    """Read BEGIN, COMMIT, ROLLBACK or SAVE of a transaction, or another statement that begins like one."""
    start, verb = cursor.position, cursor.next().upper
    cursor.take("DISTRIBUTED")
    has_noun = cursor.peek().upper in _TRANSACTION
    if has_noun:
        cursor.next()
    elif verb in ("SAVE", "BEGIN"):
        return tree.OtherStatement(place=place, words=needed_words(finish(cursor, start)))
    name = None
    lexeme = cursor.peek()
    is_name = lexeme.kind is LexemeKind.NAME or (lexeme.kind is LexemeKind.WORD and lexeme.upper != "WITH")
    if has_noun and is_name and not at_end_of_condition(cursor):
        name = cursor.next()
    return tree.TransactionStatement(place=place, words=finish(cursor, start), verb=verb, name=name)


def _read_options(cursor: LexemeCursor, place: Place) -> tree.SetOptions:
    """Read SET option, option… ON or OFF."""
    start = cursor.position
    cursor.next()
    options: list[str] = []
    while cursor.peek().kind is LexemeKind.WORD and not at_end_of_condition(cursor):
        options.append(cursor.next().upper)
        if not cursor.take(","):
            break
    is_on = {"ON": True, "OFF": False}.get(cursor.peek().upper)
    return tree.SetOptions(place=place, words=finish(cursor, start), options=tuple(options), is_on=is_on)


def _read_error(cursor: LexemeCursor, place: Place) -> tree.RaiseError:
    """Read RAISERROR (message, severity, state) WITH LOG."""
    start = cursor.position
    cursor.next()
    arguments = split_words(cursor.group(), ",") if cursor.at_group else []
    after = cursor.position
    words = finish(cursor, start)
    return tree.RaiseError(
        place=place,
        words=words,
        severity=arguments[1] if len(arguments) > 1 else (),
        is_logged=bool(arguments) and any(word.upper == "LOG" for word in cursor.between(after, cursor.position)),
    )


def _read_assignments(
    cursor: LexemeCursor, end: int, place: Place, names: VariableNames | None
) -> tree.AssignNode:
    """Read DECLARE, SET or SELECT of variables, up to ``end``. DECLARE notes its ``names``."""
    start = cursor.position
    cursor.next()
    assignments: list[tree.VariableAssignment] = []
    has_source = False
    while cursor.position < end and cursor.peek().text.startswith("@"):
        if names is not None:
            names.declare(cursor.position)
        name = cursor.next().text
        type_words = _read_type(cursor, end) if names is not None else ()
        sign = _read_sign(cursor)
        value_at = cursor.position
        while cursor.position < end and not cursor.at(","):
            if cursor.peek().upper in _SOURCES:
                has_source = True
                break
            cursor.skip_item()
        value = cursor.between(value_at, cursor.position)
        assignments.append(tree.VariableAssignment(name, sign, value, type_words))
        if has_source or not cursor.take(","):
            break
    has_source = has_source or (names is None and cursor.position < end)
    cursor.position = end
    return tree.AssignNode(
        place=place,
        words=cursor.between(start, end),
        assignments=tuple(assignments),
        is_declaration=names is not None,
        has_source=has_source,
    )


def _read_type(cursor: LexemeCursor, end: int) -> Words:
    cursor.take("AS")
    start = cursor.position
    while cursor.position < end and not (cursor.at("=") or cursor.at(",")):
        cursor.skip_item()
    return cursor.between(start, cursor.position)


def _read_sign(cursor: LexemeCursor) -> str:
    """Read ``=``, ``+=`` or another sign, or an empty text without an assignment."""
    sign = ""
    while cursor.peek().kind is LexemeKind.SIGN and cursor.peek().text in "+-*/%&|^=.":
        sign += cursor.next().text
        if sign.endswith("="):
            break
    return sign


def _read_text_call(cursor: LexemeCursor, place: Place) -> tree.RunText:
    """Read EXEC of a text in parentheses, and the linked server of AT."""
    start = cursor.position
    cursor.next()
    value: Words = ()
    server = None
    if cursor.at_group:
        value = cursor.group()
        if cursor.take("AS"):
            cursor.next()
            cursor.take("=")
            cursor.next()
        server = cursor.next().text if cursor.take("AT") else None
    return tree.RunText(place=place, words=finish(cursor, start), value=value, server=server)


def _read_call(cursor: LexemeCursor, place: Place, names: VariableNames) -> tree.CallNode:
    """Read a procedure with its arguments, after EXEC or first in a batch. ``names`` collects its parameters."""
    result = variable = None
    if cursor.peek().text.startswith("@") and cursor.peek(1).text == "=":
        result = cursor.next().text
        cursor.next()
    parts: list[str] = []
    if cursor.peek().text.startswith("@"):
        variable = cursor.next()
    else:
        parts = _read_parts(cursor)
    number = tree.read_number(cursor)
    if parts:
        parts[-1] += number
    arguments: list[tree.CallArgument] = []
    while not at_end_of_condition(cursor) and not cursor.at("WITH"):
        before = cursor.position
        arguments.append(_read_argument(cursor, names))
        if not cursor.take(",") or cursor.position == before:
            break
    return tree.CallNode(
        place=place, parts=tuple(parts), variable=variable, result=result, arguments=tuple(arguments)
    )


def _read_argument(cursor: LexemeCursor, names: VariableNames) -> tree.CallArgument:
    name = None
    if cursor.peek().text.startswith("@") and cursor.peek(1).text == "=":
        names.ignore(cursor.position)
        name = cursor.next().text
        cursor.next()
    start = cursor.position
    while not (at_end_of_condition(cursor) or cursor.at(",") or cursor.peek().upper in (*_OUTPUT, "WITH")):
        cursor.skip_item()
    words = cursor.between(start, cursor.position)
    if cursor.peek().upper in _OUTPUT:
        cursor.next()
    is_default = len(words) == 1 and words[0].upper == "DEFAULT"
    return tree.CallArgument(name, () if is_default else words)


def _read_parts(cursor: LexemeCursor) -> list[str]:
    """Return the parts of a procedure's name at the cursor, those left out between dots empty."""
    parts: list[str] = []
    while cursor.peek().kind in (LexemeKind.WORD, LexemeKind.NAME) and cursor.peek().upper not in STARTERS:
        parts.append(cursor.next().text)
        dots = 0
        while cursor.take("."):
            dots += 1
        if dots == 0:
            break
        parts.extend([""] * (dots - 1))
    return parts
