"""Read simple statements: assignments, session options, transactions, errors and calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from routing.importing.tsql import tree
from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.extents import at_end_of_condition
from routing.importing.tsql.script_statements import quote
from routing.importing.tsql.tokens import Lexeme, LexemeKind, split_words
from routing.importing.tsql.tree import Place, Words
from routing.importing.tsql.vocabulary import STARTERS

# The variables of a batch are declared once, before they are used, and known only in their batch.


_TWICE, _NOT_DECLARED, _NO_TABLE = 134, 137, 1087
_BEFORE_TABLES = frozenset(["FROM", "JOIN", "INTO", "INSERT", "APPLY"])


class VariableNames:
    """The places that declare or name variables. ``outside`` is None if any variable may be declared."""

    def __init__(self, lexemes: Sequence[Lexeme], outside: Collection[str] | None) -> None:
        self._lexemes = lexemes
        self._outside = frozenset(name.casefold() for name in outside or ())
        self._allows_any = outside is None
        self._declarations: set[int] = set()
        self._ignored: set[int] = set()

    def declare(self, position: int) -> None:
        """Note that the lexeme at a place declares a variable."""
        self._declarations.add(position)

    def declare_all(self, first: int, last: int) -> None:
        """Note that the head of a module declares all variables that it names."""
        self._declarations.update(self._named(first, last))

    def ignore(self, position: int) -> None:
        """Note that the lexeme at a place is a parameter of a procedure that is called."""
        self._ignored.add(position)

    def allow_any(self) -> None:
        """Note that variables of this batch need no declaration, as in a RULE."""
        self._allows_any = True

    def find_faults(self) -> Iterator[tuple[int, str, int]]:
        """Yield row, reason and number of each variable that is declared twice, or not before it is named."""
        declared = set(self._outside)
        for position in self._named(0, len(self._lexemes)):
            lexeme = self._lexemes[position]
            name = lexeme.text.casefold()
            if position in self._declarations:
                if name in declared:
                    yield lexeme.row, f"the variable {quote(lexeme.text)} is declared twice", _TWICE
                declared.add(name)
            elif not (name in declared or self._allows_any or position in self._ignored):
                number = _NO_TABLE if self._is_table(position) else _NOT_DECLARED
                yield lexeme.row, f"the variable {quote(lexeme.text)} is not declared in its batch", number
                declared.add(name)

    def _named(self, first: int, last: int) -> Iterator[int]:
        for position in range(first, min(last, len(self._lexemes))):
            lexeme = self._lexemes[position]
            if lexeme.kind is LexemeKind.WORD and lexeme.text.startswith("@") and not lexeme.text.startswith("@@"):
                before = self._lexemes[position - 1] if position else None
                # A name may contain the sign too, and its end is not a variable.
                is_end = before and before.kind is LexemeKind.WORD and before.end == lexeme.start
                if lexeme.text != "@" and not is_end:
                    yield position

    def _is_table(self, position: int) -> bool:
        return position > 0 and self._lexemes[position - 1].upper in _BEFORE_TABLES


_TRANSACTION = frozenset(["TRAN", "TRANSACTION", "WORK"])
_SOURCES = frozenset(
    ["FROM", "WHERE", "GROUP", "HAVING", "ORDER", "OPTION", "UNION", "EXCEPT", "INTERSECT", "INTO", "FOR"]
)
_OUTPUT = frozenset(["OUTPUT", "OUT"])


def read_transaction(cursor: LexemeCursor, place: Place) -> tree.TransactionStatement | None:
    """Read BEGIN, COMMIT, ROLLBACK or SAVE of a transaction, or return None for any other statement."""
    verb = cursor.next().upper
    cursor.take("DISTRIBUTED")
    has_noun = cursor.peek().upper in _TRANSACTION
    if has_noun:
        cursor.next()
    elif verb in ("SAVE", "BEGIN"):
        return None
    name = None
    lexeme = cursor.peek()
    is_name = lexeme.kind is LexemeKind.NAME or (lexeme.kind is LexemeKind.WORD and lexeme.upper != "WITH")
    if has_noun and is_name and not at_end_of_condition(cursor):
        name = cursor.next()
    return tree.TransactionStatement(place=place, verb=verb, name=name)


def read_options(cursor: LexemeCursor, place: Place) -> tree.SetOptions:
    """Read SET option, option… ON or OFF."""
    cursor.next()
    options: list[str] = []
    while cursor.peek().kind is LexemeKind.WORD and not at_end_of_condition(cursor):
        options.append(cursor.next().upper)
        if not cursor.take(","):
            break
    is_on = {"ON": True, "OFF": False}.get(cursor.peek().upper)
    return tree.SetOptions(place=place, options=tuple(options), is_on=is_on)


def read_error(cursor: LexemeCursor, place: Place) -> tree.RaiseError:
    """Read RAISERROR (message, severity, state) WITH LOG."""
    cursor.next()
    if not cursor.at_group:
        return tree.RaiseError(place=place, severity=(), is_logged=False)
    arguments = split_words(cursor.group(), ",")
    is_logged = False
    while not at_end_of_condition(cursor):
        is_logged = is_logged or cursor.peek().upper == "LOG"
        cursor.next()
    return tree.RaiseError(place=place, severity=arguments[1] if len(arguments) > 1 else (), is_logged=is_logged)


def read_assignments(cursor: LexemeCursor, end: int, place: Place, names: VariableNames | None) -> tree.AssignNode:
    """Read DECLARE, SET or SELECT of variables, up to ``end``. DECLARE notes its ``names``."""
    cursor.next()
    assignments: list[tree.VariableAssignment] = []
    has_source = False
    while cursor.position < end and cursor.peek().text.startswith("@"):
        if names is not None:
            names.declare(cursor.position)
        name = cursor.next().text
        type_words = _read_type(cursor, end) if names is not None else ()
        sign = _read_sign(cursor)
        start = cursor.position
        while cursor.position < end and not cursor.at(","):
            if cursor.peek().upper in _SOURCES:
                has_source = True
                break
            cursor.skip_item()
        assignments.append(tree.VariableAssignment(name, sign, cursor.between(start, cursor.position), type_words))
        if has_source or not cursor.take(","):
            break
    has_source = has_source or (names is None and cursor.position < end)
    return tree.AssignNode(
        place=place, assignments=tuple(assignments), is_declaration=names is not None, has_source=has_source
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


def read_text_call(cursor: LexemeCursor, place: Place) -> tree.RunText:
    """Read the text in parentheses of an EXEC, at the cursor, and the linked server of AT."""
    if not cursor.at_group:
        return tree.RunText(place=place, value=(), server=None)
    value = cursor.group()
    if cursor.take("AS"):
        cursor.next()
        cursor.take("=")
        cursor.next()
    server = cursor.next().text if cursor.take("AT") else None
    return tree.RunText(place=place, value=value, server=server)


def read_call(cursor: LexemeCursor, place: Place, names: VariableNames) -> tree.CallNode:
    """Read a procedure with its arguments, after EXEC or first in a batch. ``names`` collects its parameters."""
    result = variable = None
    if cursor.peek().text.startswith("@") and cursor.peek(1).text == "=":
        result = cursor.next().text
        cursor.next()
    parts: list[str] = []
    if cursor.peek().text.startswith("@"):
        variable = cursor.next()
    else:
        parts = read_parts(cursor)
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


def read_parts(cursor: LexemeCursor) -> list[str]:
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
