"""Parse statements that govern no others into nodes, and say for which texts SQL Server cannot parse them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime

from routing.importing.tsql import definitions, simple_statements, tree
from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.database_definitions import find_stray_sign, title_of
from routing.importing.tsql.extents import StatementExtent, at_end_of_condition
from routing.importing.tsql.held_texts import needed_words
from routing.importing.tsql.parse_faults import find_misspelt_definition
from routing.importing.tsql.script_statements import JOINED, SYNTAX, RefusalError, UnparsedError
from routing.importing.tsql.simple_statements import VariableNames
from routing.importing.tsql.tokens import LexemeKind, LexemeList
from routing.importing.tsql.tree import Place, Words
from routing.importing.tsql.vocabulary import find_unknown_variable

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
    template_defaults: bool
    is_script: bool = False
    declared: Collection[str] | None = ()


class StatementParser:
    """Reads statements at its cursor. ``faults`` are the reasons why the batch cannot be parsed."""

    def __init__(self, tokens: LexemeList, locate: Locate, settings: ParserSettings) -> None:
        self._tokens = tokens
        self._locate = locate
        self._settings = settings
        self._cursor = LexemeCursor(tokens, settings.template_defaults)
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

    def _finish(self) -> None:
        while not at_end_of_condition(self._cursor):
            self._cursor.skip_item()

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
        place, start = self._next_place(), self._cursor.position
        node = simple_statements.read_transaction(self._cursor, place)
        self._finish()
        if node is None:
            return self._skipped_statement(place, start)
        return replace(node, words=self._words_since(start))

    def _goto(self) -> tree.ScriptNode:
        place, start = self._next_place(), self._cursor.position
        self._cursor.next()
        label = self._cursor.next().text.casefold()
        self._finish()
        node = tree.GotoNode(place=place, words=self._words_since(start), label=label)
        if node.words[1:] and node.words[1].kind in (LexemeKind.WORD, LexemeKind.NAME):
            self._gotos.append(node)
        return node

    def _return(self) -> tree.ScriptNode:
        place, start = self._next_place(), self._cursor.position
        self._cursor.next()
        if not at_end_of_condition(self._cursor) and self._module in _RETURNS_NOTHING:
            self._fault(place, "RETURN has a value outside a procedure or function", _VALUE_RETURNED)
        self._finish()
        return tree.ReturnNode(place=place, words=self._words_since(start))

    def _throw(self) -> tree.ScriptNode:
        place, start = self._next_place(), self._cursor.position
        self._cursor.next()
        if at_end_of_condition(self._cursor) and not self._handlers:
            self._fault(place, "THROW has no arguments outside a CATCH block", _RETHROW)
        self._finish()
        return tree.ThrowNode(place=place, words=self._words_since(start))

    def _raise(self) -> tree.ScriptNode:
        place, start = self._next_place(), self._cursor.position
        node = simple_statements.read_error(self._cursor, place)
        self._finish()
        return replace(node, words=self._words_since(start))

    def _declare(self) -> tree.ScriptNode:
        if not self._cursor.peek(1).text.startswith("@"):
            return self._other_statement()
        return self._assign(is_declaration=True)

    def _set(self) -> tree.ScriptNode:
        cursor, place, start = self._cursor, self._next_place(), self._cursor.position
        if not cursor.peek(1).text.startswith("@"):
            node = simple_statements.read_options(cursor, place)
            self._finish()
            return replace(node, words=self._words_since(start))
        return self._assign()

    def _select(self) -> tree.ScriptNode:
        cursor = self._cursor
        if not (cursor.peek(1).text.startswith("@") and cursor.peek(2).text in ("=", "+")):
            return self._other_statement()
        return self._assign()

    def _assign(self, is_declaration: bool = False) -> tree.ScriptNode:
        place, start = self._next_place(), self._cursor.position
        self._skip()
        end, self._cursor.position = self._cursor.position, start
        names = self._names if is_declaration else None
        node = simple_statements.read_assignments(self._cursor, end, place, names)
        self._cursor.position = end
        return replace(node, words=self._words_since(start))

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
        self._finish()
        words, notes = self._words_since(start), self._take_notes()
        return tree.UseNode(place=place, words=words, name=name, refusal=refusal, notes=notes)

    def _execute(self) -> tree.ScriptNode:
        if self._cursor.peek(1).upper == "AS":
            return self._other_statement()
        place, start = self._next_place(), self._cursor.position
        if self._cursor.peek(1).text == "(" and self._cursor.peek(1).kind is LexemeKind.SIGN:
            self._cursor.next()
            run = simple_statements.read_text_call(self._cursor, place)
            self._finish()
            return replace(run, words=self._words_since(start))
        self._cursor.next()
        return self._call(start)

    def _call(self, start: int | None = None) -> tree.ScriptNode:
        cursor = self._cursor
        start = cursor.position if start is None else start
        place = self._locate(cursor.between(start, start + 1)[0].row)
        call = simple_statements.read_call(cursor, place, self._names)
        later_words = (word for argument in call.arguments for word in argument.words[1:])
        if any(word.text == "+" and word.kind is LexemeKind.SIGN for word in later_words):
            self._fault(place, f"EXEC: {JOINED}")
        self._finish()
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
            self._finish()
            words = _needed_of_definition(self._words_since(start))
            return tree.DefinitionNode(place=place, words=words, title=title, refusal=refusal, is_fault=is_fault)
        notes = self._take_notes()
        self._finish()
        words = _needed_of_definition(self._words_since(start))
        return tree.DefinitionNode(
            place=place, words=words, title=title, statements=tuple(statements), notes=notes
        )

    def _drop_modules(self) -> tree.ScriptNode:
        place, start = self._next_place(), self._cursor.position
        keys, if_exists = tree.read_dropped(self._cursor)
        self._finish()
        return tree.DropModules(place=place, words=self._words_since(start), keys=keys, if_exists=if_exists)

    def _take_notes(self) -> tuple[str, ...]:
        notes, self._cursor.notes = tuple(self._cursor.notes), []
        return notes


def _needed_of_definition(words: Words) -> Words:
    """Return the verb, noun and name, or all words if they contain another CREATE."""
    return words if any(word.upper == "CREATE" for word in words[1:]) else words[:3]
