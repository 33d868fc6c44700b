"""Parse statements that govern no others into nodes, and say for which texts SQL Server cannot parse them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from routing.importing.tsql import definitions, tree
from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.database_definitions import find_stray_sign, title_of
from routing.importing.tsql.extents import StatementExtent, at_end_of_condition
from routing.importing.tsql.held_texts import needed_words
from routing.importing.tsql.parse_faults import VariableNames, find_misspelt_definition
from routing.importing.tsql.script_statements import JOINED, SYNTAX, RefusalError, ScriptStatement, UnparsedError
from routing.importing.tsql.tokens import LexemeKind, LexemeList, split_words
from routing.importing.tsql.tree import Place, Words
from routing.importing.tsql.vocabulary import STARTERS, find_unknown_variable

Locate = Callable[[int], Place]
"""The file and line of a row of the text."""

_COMMON_TABLE, _MERGE, _VALUE_RETURNED, _RETHROW, _USE_IN_MODULE = 319, 10713, 178, 10704, 154
_RETURNS_NOTHING = frozenset(["batch", "trigger"])
_TRANSACTION = frozenset(["TRAN", "TRANSACTION", "WORK"])
_SOURCES = frozenset(
    ["FROM", "WHERE", "GROUP", "HAVING", "ORDER", "OPTION", "UNION", "EXCEPT", "INTERSECT", "INTO", "FOR"]
)
_OUTPUT = frozenset(["OUTPUT", "OUT"])


@dataclass(frozen=True)
class ParserSettings:
    """The settings with which a text is read.

    ``is_script``: statements were recognised before it. ``declared`` are the variables that it has from outside,
    None where that is not known.
    """

    scripted_at: datetime
    is_script: bool = False
    declared: Collection[str] | None = ()


class _NodeHead(TypedDict):
    """The fields of each node."""

    place: Place
    words: Words


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

    def _place(self, position: int) -> Place:
        return self._locate(self._cursor.peek(position - self._cursor.position).row)

    def _skip(self) -> StatementExtent:
        start = self._cursor.position
        extent = StatementExtent(self._cursor)
        extent.skip()
        self._check_extent(extent, start)
        return extent

    def _check_extent(self, extent: StatementExtent, start: int) -> None:
        cursor = self._cursor
        if extent.lacks_semicolon:
            why = "WITH begins a common table expression here, and the statement before it has no semicolon"
            self._fault(self._place(cursor.position), why, _COMMON_TABLE)
        if extent.verb == "MERGE" and not cursor.at(";"):
            self._fault(self._place(start), "MERGE must end with a semicolon", _MERGE)
        self._check_definitions(start)

    def _check_definitions(self, start: int) -> None:
        misspelt = find_misspelt_definition(self._cursor.between(start, self._cursor.position + 1))
        if misspelt is not None:
            self._fault(self._place(start), misspelt)

    def _words_since(self, start: int) -> Words:
        return self._cursor.between(start, self._cursor.position)

    def _finish(self, start: int) -> _NodeHead:
        """Move to the end of a simple statement, and return its place and words."""
        while not at_end_of_condition(self._cursor):
            self._cursor.skip_item()
        return {"place": self._place(start), "words": self._words_since(start)}

    def _skipped_statement(self, start: int) -> tree.OtherStatement:
        return tree.OtherStatement(place=self._place(start), words=needed_words(self._words_since(start)))

    # Each reader is called at the first word of its statement, which is at ``start``.

    def _other_statement(self, start: int) -> tree.ScriptNode:
        extent = self._skip()
        if extent.calls_at is not None:
            end, self._cursor.position = self._cursor.position, extent.calls_at
            node = self._execute(extent.calls_at)
            self._cursor.position = max(end, self._cursor.position)
            return node
        return self._skipped_statement(start)

    def _transaction(self, start: int) -> tree.ScriptNode:
        """Read BEGIN, COMMIT, ROLLBACK or SAVE of a transaction, or another statement that begins like one."""
        cursor, name = self._cursor, None
        verb = cursor.next().upper
        cursor.take("DISTRIBUTED")
        has_noun = cursor.peek().upper in _TRANSACTION
        if has_noun:
            cursor.next()
        elif verb in ("SAVE", "BEGIN"):
            self._finish(start)
            return self._skipped_statement(start)
        lexeme = cursor.peek()
        is_name = lexeme.kind is LexemeKind.NAME or (lexeme.kind is LexemeKind.WORD and lexeme.upper != "WITH")
        if has_noun and is_name and not at_end_of_condition(cursor):
            name = cursor.next()
        return tree.TransactionStatement(**self._finish(start), verb=verb, name=name)

    def _goto(self, start: int) -> tree.ScriptNode:
        self._cursor.next()
        label = self._cursor.next().text.casefold()
        node = tree.GotoNode(**self._finish(start), label=label)
        if node.words[1:] and node.words[1].kind in (LexemeKind.WORD, LexemeKind.NAME):
            self._gotos.append(node)
        return node

    def _return(self, start: int) -> tree.ScriptNode:
        self._cursor.next()
        if not at_end_of_condition(self._cursor) and self._module in _RETURNS_NOTHING:
            why = "RETURN has a value outside a procedure or function"
            self._fault(self._place(start), why, _VALUE_RETURNED)
        return tree.ReturnNode(**self._finish(start))

    def _throw(self, start: int) -> tree.ScriptNode:
        self._cursor.next()
        if at_end_of_condition(self._cursor) and not self._handlers:
            self._fault(self._place(start), "THROW has no arguments outside a CATCH block", _RETHROW)
        return tree.ThrowNode(**self._finish(start))

    def _raise(self, start: int) -> tree.ScriptNode:
        """Read RAISERROR (message, severity, state) WITH LOG."""
        cursor = self._cursor
        cursor.next()
        arguments = split_words(cursor.group(), ",") if cursor.at_group else []
        after = cursor.position
        head = self._finish(start)
        is_logged = bool(arguments) and any(word.upper == "LOG" for word in self._words_since(after))
        return tree.RaiseError(**head, severity=arguments[1] if len(arguments) > 1 else (), is_logged=is_logged)

    def _declare(self, start: int) -> tree.ScriptNode:
        is_variable = self._cursor.peek(1).text.startswith("@")
        return self._assign(start, is_declaration=True) if is_variable else self._other_statement(start)

    def _set(self, start: int) -> tree.ScriptNode:
        """Read SET of a variable, or SET option, option… ON or OFF."""
        cursor = self._cursor
        if cursor.peek(1).text.startswith("@"):
            return self._assign(start)
        cursor.next()
        options: list[str] = []
        while cursor.peek().kind is LexemeKind.WORD and not at_end_of_condition(cursor):
            options.append(cursor.next().upper)
            if not cursor.take(","):
                break
        is_on = {"ON": True, "OFF": False}.get(cursor.peek().upper)
        return tree.SetOptions(**self._finish(start), options=tuple(options), is_on=is_on)

    def _select(self, start: int) -> tree.ScriptNode:
        cursor = self._cursor
        is_variable = cursor.peek(1).text.startswith("@") and cursor.peek(2).text in ("=", "+")
        return self._assign(start) if is_variable else self._other_statement(start)

    def _assign(self, start: int, *, is_declaration: bool = False) -> tree.ScriptNode:
        """Read DECLARE, SET or SELECT of variables."""
        cursor = self._cursor
        self._skip()
        end, cursor.position = cursor.position, start + 1
        assignments: list[tree.VariableAssignment] = []
        has_source = False
        while cursor.position < end and cursor.peek().text.startswith("@"):
            if is_declaration:
                self._names.declare(cursor.position)
            name = cursor.next().text
            type_words = _read_type(cursor, end) if is_declaration else ()
            sign = _read_sign(cursor)
            value_at = cursor.position
            while cursor.position < end and not cursor.at(",") and cursor.peek().upper not in _SOURCES:
                cursor.skip_item()
            has_source = cursor.position < end and not cursor.at(",")
            assignments.append(tree.VariableAssignment(name, sign, self._words_since(value_at), type_words))
            if not cursor.take(","):
                break
        has_source = has_source or (not is_declaration and cursor.position < end)
        cursor.position = end
        return tree.AssignNode(
            place=self._place(start),
            words=self._words_since(start),
            assignments=tuple(assignments),
            is_declaration=is_declaration,
            has_source=has_source,
        )

    def _use(self, start: int) -> tree.ScriptNode:
        cursor, name, refusal = self._cursor, None, None
        cursor.next()
        self._take_notes()
        if self._module != "batch":
            self._fault(self._place(start), f"USE is in the body of a {self._module}", _USE_IN_MODULE)
        try:
            name = cursor.name("database name")
            cursor.end_of_statement()
        except RefusalError as error:
            name, refusal = None, error
            if isinstance(error, UnparsedError):
                self._fault(self._place(start), f"USE: {error.why}", error.number)
        return tree.UseNode(**self._finish(start), name=name, refusal=refusal, notes=self._take_notes())

    def _execute(self, start: int) -> tree.ScriptNode:
        following = self._cursor.peek(1)
        if following.upper == "AS":
            return self._other_statement(start)
        self._cursor.next()
        is_text = following.text == "(" and following.kind is LexemeKind.SIGN
        return self._run_text(start) if is_text else self._call(start)

    def _run_text(self, start: int) -> tree.ScriptNode:
        """Read the text of EXEC in parentheses, and the linked server of AT."""
        cursor, server = self._cursor, None
        value: Words = ()
        if cursor.at_group:
            value = cursor.group()
            if cursor.take("AS"):
                cursor.next()
                cursor.take("=")
                cursor.next()
            server = cursor.next().text if cursor.take("AT") else None
        return tree.RunText(**self._finish(start), value=value, server=server)

    def _call(self, start: int) -> tree.ScriptNode:
        """Read a procedure with its arguments, after EXEC or first in a batch."""
        cursor, variable = self._cursor, None
        # The variable of its return value.
        _read_assigned(cursor)
        parts: list[str] = []
        if cursor.peek().text.startswith("@"):
            variable = cursor.next()
        else:
            parts = _read_parts(cursor)
        number = tree.read_number(cursor)
        if parts:
            parts[-1] += number
        arguments = self._arguments()
        later_words = (word for argument in arguments for word in argument.words[1:])
        if any(word.text == "+" and word.kind is LexemeKind.SIGN for word in later_words):
            self._fault(self._place(start), f"EXEC: {JOINED}")
        self._finish(start)
        self._check_definitions(start)
        cursor.position = max(cursor.position, start + 1)
        return tree.CallNode(
            place=self._place(start),
            words=self._words_since(start),
            parts=tuple(parts),
            variable=variable,
            arguments=tuple(arguments),
        )

    def _arguments(self) -> list[tree.CallArgument]:
        cursor = self._cursor
        arguments: list[tree.CallArgument] = []
        while not at_end_of_condition(cursor) and not cursor.at("WITH"):
            before = cursor.position
            name = _read_assigned(cursor)
            if name is not None:
                self._names.ignore(before)
            words = _read_value(cursor)
            is_default = len(words) == 1 and words[0].upper == "DEFAULT"
            arguments.append(tree.CallArgument(name, () if is_default else words))
            if not cursor.take(",") or cursor.position == before:
                break
        return arguments

    def _brings_database(self, start: int) -> tree.ScriptNode:
        """Read RESTORE or DBCC CLONEDATABASE, which create routes and services without naming them."""
        cursor = self._cursor
        title, why = definitions.find_brought_database(cursor)
        stray = find_stray_sign(cursor) if cursor.peek(1).upper in ("DATABASE", "LOG") else None
        if stray is not None:
            subject = f"{cursor.peek().upper} {cursor.peek(1).upper}"
            self._fault(self._place(start), f"{subject}: {stray.why}", stray.number)
        self._skip()
        if title is None:
            return self._skipped_statement(start)
        return tree.DefinitionNode(
            place=self._place(start), words=self._words_since(start), title=title, refusal=RefusalError(why)
        )

    def _read_definition(self, start: int, read: definitions.Definition) -> tree.ScriptNode:
        title = title_of(self._cursor)
        self._take_notes()
        self._cursor.position += 2
        statements: Sequence[ScriptStatement] = ()
        refusal, is_fault = None, False
        try:
            statements = read(self._cursor, self._settings.scripted_at)
        except RefusalError as error:
            refusal = error
            why = f"{title}: {error.why}"
            is_unparsed = isinstance(error, UnparsedError)
            is_fault = is_unparsed and self._fault(self._place(start), why, error.number)
        notes = () if refusal else self._take_notes()
        head = self._finish(start)
        words = head["words"]
        return tree.DefinitionNode(
            place=head["place"],
            # Only another CREATE needs more than the verb, noun and name.
            words=words if any(word.upper == "CREATE" for word in words[1:]) else words[:3],
            title=title,
            statements=tuple(statements),
            refusal=refusal,
            notes=notes,
            is_fault=is_fault,
        )

    def _drop_modules(self, start: int) -> tree.ScriptNode:
        """Read DROP PROCEDURE."""
        cursor = self._cursor
        cursor.position += 2
        if_exists = cursor.take("IF", "EXISTS")
        keys = []
        while cursor.peek().kind in (LexemeKind.WORD, LexemeKind.NAME):
            keys.append(tree.read_name(cursor)[1])
            if not cursor.take(","):
                break
        return tree.DropModules(**self._finish(start), keys=tuple(keys), if_exists=if_exists)

    def _take_notes(self) -> tuple[str, ...]:
        notes, self._cursor.notes = tuple(self._cursor.notes), []
        return notes


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


def _read_assigned(cursor: LexemeCursor) -> str | None:
    """Read the variable or parameter before ``=``, if one is at the cursor."""
    if not (cursor.peek().text.startswith("@") and cursor.peek(1).text == "="):
        return None
    name = cursor.next().text
    cursor.next()
    return name


def _read_value(cursor: LexemeCursor) -> Words:
    """Read the value of an argument, and move behind its OUTPUT."""
    start = cursor.position
    while not (at_end_of_condition(cursor) or cursor.at(",") or cursor.peek().upper in (*_OUTPUT, "WITH")):
        cursor.skip_item()
    words = cursor.between(start, cursor.position)
    if cursor.peek().upper in _OUTPUT:
        cursor.next()
    return words


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
