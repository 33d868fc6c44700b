"""Find the end of a statement.

T-SQL needs no semicolons, and many words that begin a statement are clauses of others.
"""

from __future__ import annotations

from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.tokens import LexemeKind
from routing.importing.tsql.vocabulary import RESERVED, STARTERS

_PERMISSIONS = frozenset(["GRANT", "DENY", "REVOKE"])
_LONGEST_PERMISSION = 300
_MAIN_VERBS = frozenset(["SELECT", "INSERT", "UPDATE", "DELETE", "MERGE"])
_JOINS_SELECTS = frozenset(["UNION", "ALL", "EXCEPT", "INTERSECT", "AS", "FOR", "EXPLAIN"])
_EVENTS = frozenset(["FOR", "AFTER", "BEFORE", "OF", "ON", "THEN"])
_ALTERED_BY_SET = frozenset(["DATABASE", "SERVER", "FULLTEXT", "EXTERNAL", "AVAILABILITY", "RESOURCE"])
_DROPPED_PARTS = frozenset(
    ["COLUMN", "CONSTRAINT", "PERIOD", "MEMBER", "TARGET", "ENCRYPTION", "FILE", "ATTRIBUTE", "VALUE", "FOR"]
)
_END_OPERANDS = frozenset(["NULL", "END"])
"""Reserved words that a condition may end with."""

_NOT_RESERVED = frozenset(["SEND", "RECEIVE", "GET", "MOVE", "ENABLE", "DISABLE", "THROW"])
"""Words that begin statements and may be names as well."""

_NEEDS = {
    "ADD": ("SIGNATURE", "COUNTER", "SENSITIVITY"),
    "GET": ("CONVERSATION",),
    "MOVE": ("CONVERSATION",),
    "SEND": ("ON",),
    "ENABLE": ("TRIGGER",),
    "DISABLE": ("TRIGGER",),
}
"""The followers that make a word the begin of a statement."""


def at_common_table(cursor: LexemeCursor) -> bool:
    """Return whether WITH begins a statement here: a common table expression or XMLNAMESPACES."""
    if not cursor.at("WITH"):
        return False
    if cursor.peek(1).upper in ("XMLNAMESPACES", "CHANGE_TRACKING_CONTEXT"):
        return cursor.peek(2).text == "("
    if cursor.peek(1).kind not in (LexemeKind.WORD, LexemeKind.NAME):
        return False
    ahead = 2
    if cursor.peek(ahead).text == "(" and cursor.peek(ahead).kind is LexemeKind.SIGN:
        while cursor.peek(ahead).text != ")" and cursor.peek(ahead).kind is not LexemeKind.END:
            ahead += 1
        ahead += 1
    is_group = cursor.peek(ahead).upper == "AS" and cursor.peek(ahead + 1).text == "("
    return is_group and cursor.peek(ahead + 2).upper in ("SELECT", "WITH", "VALUES")


def begins_statement(cursor: LexemeCursor) -> bool:
    """Return whether the word at the cursor begins a statement."""
    word, after = cursor.peek().upper, cursor.peek(1).upper
    if word == "WITH":
        return at_common_table(cursor)
    if word not in STARTERS or (word in _NEEDS and after not in _NEEDS[word]):
        return False
    if word == "IF":
        return not (after == "EXISTS" and cursor.peek(2).text != "(")
    # ALTER DATABASE ends in WITH ROLLBACK IMMEDIATE or WITH ROLLBACK AFTER 5.
    return not (word == "ROLLBACK" and after in ("IMMEDIATE", "AFTER"))


def at_end_of_condition(cursor: LexemeCursor) -> bool:
    """Return whether the condition of an IF or WHILE ends here."""
    if cursor.at("UPDATE") and cursor.peek(1).text == "(":
        return False
    return cursor.at_end or cursor.at(";") or cursor.at_label or begins_statement(cursor)


def at_query_in_parentheses(cursor: LexemeCursor) -> bool:
    """Return True if a SELECT in parentheses begins as a separate statement here, after a whole condition."""
    before, ahead = cursor.peek(-1), 0
    while cursor.peek(ahead).text == "(" and cursor.peek(ahead).kind is LexemeKind.SIGN:
        ahead += 1
    if ahead == 0 or cursor.peek(ahead).upper not in ("SELECT", "WITH") or not cursor.at_group:
        return False
    if before.kind is LexemeKind.SIGN:
        return before.text == ")"
    # A word before two parentheses calls a function with a query.
    is_word = before.kind in (LexemeKind.WORD, LexemeKind.NAME)
    is_call = is_word and ahead > 1 and not before.text.startswith("@")
    return not is_call and (before.upper in _END_OPERANDS or before.upper not in RESERVED)


class StatementExtent:
    """Moves a cursor from the first word of a statement to its end.

    ``verb`` is the statement's first word after any common table expressions. ``calls_at`` is the place of an EXEC
    that gives rows to the statement. ``lacks_semicolon`` is True if WITH follows without a semicolon.
    """

    def __init__(self, cursor: LexemeCursor) -> None:
        self._cursor = cursor
        self._start = cursor.position
        self._first = cursor.peek().upper
        self._second = cursor.peek(1).upper
        self._may_set = self._first == "UPDATE" and self._second != "STATISTICS"
        self._has_source = False
        self.verb = self._first
        self.calls_at: int | None = None
        self.lacks_semicolon = False

    def skip(self) -> None:
        """Move behind the statement, by one word at least."""
        cursor = self._cursor
        if self._first in _PERMISSIONS:
            self._skip_permissions()
        cursor.skip_item()
        while not self.at_end():
            self._note()
            cursor.skip_item()

    def _skip_permissions(self) -> None:
        """Move to TO or FROM. The words before it may begin other statements."""
        cursor = self._cursor
        for ahead in range(1, _LONGEST_PERMISSION):
            lexeme = cursor.peek(ahead)
            if lexeme.upper in ("TO", "FROM"):
                cursor.position += ahead
                return
            if lexeme.text == ";" or lexeme.kind is LexemeKind.END:
                return

    def at_end(self) -> bool:
        """Return whether the statement ends here."""
        cursor = self._cursor
        if cursor.at_end or cursor.at(";") or cursor.at_label:
            return True
        if cursor.peek().upper not in STARTERS or not begins_statement(cursor):
            return False
        before = self._before(1)
        if cursor.at("WITH"):
            if before in ("AS", "FOR", "RETURN") or self._first == "WITH":
                return False
            self.lacks_semicolon = True
            return True
        return not self._goes_on(cursor.peek().upper, before, cursor.peek(1).upper)

    def _before(self, back: int) -> str:
        place = self._cursor.position - back
        lexemes = self._cursor.between(place, place + 1) if place >= self._start else ()
        return (lexemes[0].upper or lexemes[0].text) if lexemes else ""

    def _note(self) -> None:
        word = self._cursor.peek().upper
        if self._first == "WITH" and self.verb == "WITH" and word in _MAIN_VERBS:
            self.verb = word
            self._may_set = word == "UPDATE"
        elif word == "SET":
            self._may_set = False
        elif word in ("SELECT", "VALUES", "DEFAULT"):
            self._has_source = True

    def _goes_on(self, word: str, before: str, after: str) -> bool:
        if word in _NOT_RESERVED and before in (".", "AS", ",", "=", "+", "("):
            return True
        if word in _MAIN_VERBS:
            return self._is_clause(word, before, after)
        if word == "SET":
            return self._sets(before, after)
        if word in ("EXEC", "EXECUTE"):
            return self._executes(before)
        if self._first == "ALTER" and self._alters(word, after):
            return True
        return (
            (word == "FETCH" and before in ("ROW", "ROWS"))
            or (word in ("ROLLBACK", "GRANT") and before == "WITH")
            or (word == "REVERT" and before == "NO")
            or (word == "END" and before == "ROW" and self._before(2) == "AS")
            or (word == "INSERT" and self._first == "BULK")
        )

    def _is_clause(self, word: str, before: str, after: str) -> bool:
        if self._first == "WITH" and self.verb == "WITH":
            return True
        if word == "SELECT":
            is_source = self.verb == "INSERT" and not self._has_source
            return is_source or before in _JOINS_SELECTS
        if word == "MERGE":
            return after in ("JOIN", "RANGE", "UNION")
        if word == "INSERT" and self._first == "BULK":
            return True
        is_event = before in _EVENTS or (before == "," and self._first == "CREATE")
        return before == "FOR" or (is_event and (self.verb == "MERGE" or self._first in ("CREATE", "ALTER")))

    def _sets(self, before: str, after: str) -> bool:
        if self._may_set or (self.verb == "MERGE" and before == "UPDATE"):
            return True
        if self._first not in ("ALTER", "CREATE") or after.startswith("@"):
            return False
        if after in ("NULL", "DEFAULT") or self._cursor.peek(1).text == "(":
            return True
        if self._first != "ALTER" or self._second not in _ALTERED_BY_SET:
            return False
        return all(word.upper != "SET" for word in self._cursor.between(self._start, self._cursor.position))

    def _executes(self, before: str) -> bool:
        if before in ("WITH", ",") and self._first in ("CREATE", "ALTER"):
            return True
        if self.verb == "INSERT" and not self._has_source:
            self.calls_at = self._cursor.position
            self._has_source = True
            return True
        return False

    def _alters(self, word: str, after: str) -> bool:
        if word in ("ADD", "ENABLE", "DISABLE", "RECONFIGURE"):
            return True
        if word == "ALTER":
            return after == "COLUMN"
        if word in ("GRANT", "DENY"):
            return self._second == "AVAILABILITY"
        if word != "DROP":
            return False
        words = self._cursor.between(self._start, self._cursor.position)
        # Right behind ALTER TABLE and a name, which may have a schema.
        is_first = len(words) <= 3 or (len(words) == 5 and words[3].text == ".")
        return is_first or after in _DROPPED_PARTS or self._cursor.peek(1).text == "("
