"""Read expressions and conditions with known values of texts, sessions and views.

A condition is split at AND, OR and NOT. A view or function that looks up one name becomes a `CatalogValue`. Any
other part makes the value of an expression unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from routing.importing.tsql.cursor import LexemeCursor, drop_line_breaks
from routing.importing.tsql.script_statements import ConditionGuard, GuardSubject, RefusalError, length
from routing.importing.tsql.servers import find_instance
from routing.importing.tsql.tokens import Lexeme, LexemeKind, LexemeList, depth_of, split_words
from routing.importing.tsql.values import (
    ANYTHING,
    EQUAL,
    LONGEST_JOINED,
    ONE,
    ZERO,
    CatalogValue,
    KnownValue,
    Value,
    call_function,
    compare,
    join,
    number_of,
    read_type,
)
from routing.importing.tsql.vocabulary import find_unknown_variable

_LONGEST, _LONGEST_WHOLE, _DEEPEST = 100, 1000, 20
_ANY_ERROR = 50000
_SUBJECTS = {
    "routes": GuardSubject.ROUTE,
    "services": GuardSubject.SERVICE,
    "endpoints": GuardSubject.ENDPOINT,
    "service_broker_endpoints": GuardSubject.BROKER_ENDPOINT,
    "tcp_endpoints": GuardSubject.ENDPOINT,
    "databases": GuardSubject.DATABASE,
    "sysdatabases": GuardSubject.DATABASE,
}
_OF_DATABASE = (GuardSubject.ROUTE, GuardSubject.SERVICE)
_OF_ENDPOINT = (GuardSubject.ENDPOINT, GuardSubject.BROKER_ENDPOINT)


class UnreadableError(RefusalError):
    """An expression of a form that only the server evaluates."""

    def __init__(self) -> None:
        super().__init__("only the server evaluates it")


@dataclass(frozen=True)
class SessionFacts:
    """The facts of a session at the time of an expression.

    ``error`` is @@ERROR, or None if it is unknown. ``caught`` is the known error that a CATCH block handles.
    ``ask`` answers questions about the state, or returns None if it cannot. ``value_of`` returns a variable's
    value. ``instance`` may have another name than the server has for itself.
    """

    database: str | None
    error: int | None = None
    depth: int = 0
    transaction_state: int = 0
    caught: int | None = None
    ask: Callable[[ConditionGuard], bool | None] = lambda guard: None
    value_of: Callable[[str], Value | None] = lambda name: None
    instance: str | None = None


@dataclass(frozen=True)
class ConditionAnswer:
    """The value of a condition. ``holds`` is None if it is unknown.

    ``expects_no_error`` is True if it assumes that the statement before succeeded. ``by_state`` is True if a state
    has answered. ``guards`` are the questions for a state if all else is known.
    """

    holds: bool | None
    expects_no_error: bool = False
    by_state: bool = False
    guards: tuple[ConditionGuard, ...] = ()

    def inverse(self) -> ConditionAnswer:
        """Return the answer to NOT."""
        holds = None if self.holds is None else not self.holds
        return replace(self, holds=holds, guards=tuple(guard.inverse() for guard in self.guards))


_NOT_KNOWN = ConditionAnswer(None)


def evaluate(words: Sequence[Lexeme], facts: SessionFacts, *, is_plain: bool = False) -> Value | None:
    """Evaluate a whole expression, or return None if its value is unknown.

    With ``is_plain`` it is the text of EXEC(…), which allows texts in double quotes but no functions.
    """
    reader = _ExpressionReader(words, facts, is_plain=is_plain)
    try:
        value = reader.sum()
    except UnreadableError:
        return None
    return value if reader.at_end else None


def answer_condition(words: Sequence[Lexeme], facts: SessionFacts) -> ConditionAnswer:
    """Evaluate a condition."""
    if len(words) > _LONGEST_WHOLE or any(find_unknown_variable(word.text) for word in words):
        return _NOT_KNOWN
    return _answer(words, facts, 0)


def _answer(words: Sequence[Lexeme], facts: SessionFacts, depth: int) -> ConditionAnswer:
    words = _without_parentheses(words)
    if depth > _DEEPEST or any(word.upper == "BETWEEN" for word in words):
        return _NOT_KNOWN
    for joint in ("OR", "AND"):
        parts = split_words(words, joint)
        if len(parts) > 1:
            return _join([_answer(part, facts, depth + 1) for part in parts], joint == "OR")
    if words and words[0].upper == "NOT":
        return _answer(words[1:], facts, depth + 1).inverse()
    listed = split_words(words, "IN")
    if len(listed) == 2:
        comparisons, is_negated = _compare_each(*listed)
        return _join([_answer(each, facts, depth + 1) for each in comparisons], not is_negated)
    if len(words) >= _LONGEST:
        return _NOT_KNOWN
    reader = _ExpressionReader(words, facts, in_condition=True)
    try:
        answer = reader.predicate()
    except UnreadableError:
        return _NOT_KNOWN
    return answer if reader.at_end else _NOT_KNOWN


def _compare_each(left: Sequence[Lexeme], right: Sequence[Lexeme]) -> tuple[list[list[Lexeme]], bool]:
    """Replace IN by one comparison for each value of its list. The second result is True for NOT IN."""
    is_negated = bool(left) and left[-1].upper == "NOT"
    operand = left[:-1] if is_negated else left
    signs = [Lexeme(LexemeKind.SIGN, sign, "", 0, 0, 0) for sign in ("<>" if is_negated else "=")]
    values = split_words(_without_parentheses(right), ",")
    return [[*operand, *signs, *value] for value in values], is_negated


def _without_parentheses(words: Sequence[Lexeme]) -> Sequence[Lexeme]:
    while len(words) > 1 and words[0].text == "(" and words[-1].text == ")":
        depth = 0
        for index, word in enumerate(words):
            depth += depth_of(word)
            if depth == 0 and index < len(words) - 1:
                return words
        words = words[1:-1]
    return words


def _join(parts: Sequence[ConditionAnswer], decides: bool) -> ConditionAnswer:
    """Combine the answers of OR, which one true part decides, or of AND, which one false part decides."""
    deciding = [part for part in parts if part.holds is decides]
    if deciding:
        return ConditionAnswer(
            decides,
            expects_no_error=all(part.expects_no_error for part in deciding),
            by_state=all(part.by_state for part in deciding),
        )
    unknown = [part for part in parts if part.holds is None]
    if not unknown:
        return ConditionAnswer(
            not decides,
            expects_no_error=any(part.expects_no_error for part in parts),
            by_state=any(part.by_state for part in parts),
        )
    is_open = all(part.guards for part in unknown)
    return ConditionAnswer(None, guards=tuple(g for part in unknown for g in part.guards) if is_open else ())


class _ExpressionReader(LexemeCursor):
    """Reads the words of an expression from left to right."""

    def __init__(
        self, words: Sequence[Lexeme], facts: SessionFacts, *, is_plain: bool = False, in_condition: bool = False
    ) -> None:
        super().__init__(LexemeList("", tuple(words)))
        self._facts = facts
        self._is_plain = is_plain
        self._in_condition = in_condition

    def next(self) -> Lexeme:
        """Return the current word and move past it. Raises UnreadableError at the end."""
        if self.at_end:
            raise UnreadableError
        return super().next()

    def unexpected(self, expected: str) -> RefusalError:
        """Return the error for an unexpected word."""
        return UnreadableError()

    # Predicates

    def predicate(self) -> ConditionAnswer:
        """Read EXISTS, IS NULL or a comparison."""
        if self.take("EXISTS", "("):
            guard, _ = self.query()
            self.expect(")")
            return self._answer_guard(guard, self._facts.ask(guard))
        if self.take("@@ERROR"):
            sign = self._sign()
            if not self._facts.error and sign in ("=", "<>", "!=", ">") and self.sum() == ZERO:
                return ConditionAnswer(sign == "=", expects_no_error=True)
            self.position = 0
        if self.take("@@SERVERNAME"):
            sign, name = self._sign(), self._literal()
            is_named = find_instance(name, filter(None, [self._facts.instance])) is not None
            is_known = is_named and sign in ("=", "<>", "!=")
            return ConditionAnswer(sign == "=", by_state=True) if is_known else _NOT_KNOWN
        left = self.sum()
        if self.take("IS", "NULL"):
            return self._decide(left, lambda value: value is None)
        if self.take("IS", "NOT", "NULL"):
            return self._decide(left, lambda value: value is not None)
        sign = self._sign()
        right = self.sum()
        if left is None or right is None:
            return _NOT_KNOWN
        if isinstance(right, CatalogValue):
            return self._decide(right, lambda value: compare(sign, left, value))
        return self._decide(left, lambda value: compare(sign, value, right))

    def _sign(self) -> str:
        if self.take("LIKE"):
            return "LIKE"
        if self.take("NOT", "LIKE"):
            return "NOT LIKE"
        sign = ""
        while self.peek().text in ("=", "<", ">", "!"):
            sign += self.next().text
        return sign

    def _decide(self, value: Value | None, test: Callable[[KnownValue | None], bool | None]) -> ConditionAnswer:
        """Test a value. For a catalog view, the answer has the guard that decides it."""
        if not isinstance(value, CatalogValue):
            return _NOT_KNOWN if value is None else ConditionAnswer(test(value))
        yes, no = test(value.yes), test(value.no)
        if yes is None or no is None or yes == no:
            return _NOT_KNOWN
        return self._answer_guard(value.guard if yes else value.guard.inverse(), value.answer)

    def _answer_guard(self, guard: ConditionGuard, answer: bool | None) -> ConditionAnswer:
        if answer is None:
            return ConditionAnswer(None, guards=(guard,))
        return ConditionAnswer(answer == guard.holds, by_state=True)

    # Values

    def sum(self) -> Value | None:
        """Read terms that are joined by ``+``."""
        total = self._term()
        while self.take("+"):
            right = self._term()
            is_known = isinstance(total, KnownValue) and isinstance(right, KnownValue)
            total = join(total, right) if is_known else None  # type: ignore[arg-type]
        return total

    def _term(self) -> Value | None:
        if self._in_condition and self.take("-"):
            value = self._term()
            is_number = isinstance(value, KnownValue) and value.is_number
            return replace(value, text=str(-int(value.text))) if is_number else None  # type: ignore[union-attr, type-var]
        word = self.next()
        if word.kind is LexemeKind.STRING or (self._is_plain and word.kind is LexemeKind.NAME):
            text = drop_line_breaks(word.text)
            return KnownValue(text, False, length(text) > LONGEST_JOINED, word.is_national)
        if word.kind is LexemeKind.NUMBER and re.fullmatch(r"[0-9]{1,18}", word.text):
            return KnownValue(str(int(word.text)), is_number=True)
        if word.kind is LexemeKind.WORD and word.text.startswith("@"):
            return self._variable(word)
        if word.kind is LexemeKind.SIGN and word.text == "(":
            value = self._scalar() if self.at("SELECT") else self.sum()
            self.expect(")")
            return value
        return None if self._is_plain else self._function(word.upper)

    def _variable(self, word: Lexeme) -> Value | None:
        facts = self._facts
        if word.upper == "@@ERROR" and self._in_condition:
            return number_of(facts.error if (facts.error or 0) > 0 else _ANY_ERROR) if facts.error else None
        value = facts.value_of(word.text)
        if self._in_condition and isinstance(value, KnownValue) and find_unknown_variable(value.text) is not None:
            raise UnreadableError
        return value

    def _function(self, name: str) -> Value | None:
        if name == "CASE":
            return self._case()
        self.expect("(")
        facts = self._facts
        if name == "DB_NAME":
            self.expect(")")
            return None if facts.database is None else KnownValue(facts.database)
        if name in ("XACT_STATE", "ERROR_NUMBER") and self._in_condition:
            self.expect(")")
            if name == "XACT_STATE":
                return number_of(facts.transaction_state)
            return None if facts.caught is None else number_of(facts.caught)
        if name == "CAST":
            inner = self.sum()
            self.expect("AS")
            return self._converted(inner)
        arguments = [self.sum()]
        while self.take(","):
            arguments.append(self.sum())
        self.expect(")")
        if None in arguments:
            return None
        return self._call(name, [value for value in arguments if value is not None])

    def _case(self) -> Value | None:
        self.expect("WHEN")
        start = self.position
        while not self.take("THEN"):
            self.next()
        answer = _answer(self.between(start, self.position - 1), self._facts, 1)
        result = self._term()
        otherwise = self._term() if self.take("ELSE") else None
        self.expect("END")
        is_of_view = (
            len(answer.guards) == 1 and isinstance(result, KnownValue) and isinstance(otherwise, KnownValue)
        )
        if answer.holds is None and is_of_view:
            return CatalogValue(answer.guards[0], result, otherwise, None)  # type: ignore[arg-type]
        if answer.by_state and isinstance(result, KnownValue) and isinstance(otherwise, KnownValue):
            # Which condition a state has answered makes no difference: it is answered.
            guard = ConditionGuard(GuardSubject.DATABASE, None, "", True)
            return CatalogValue(guard, result, otherwise, answer.holds)
        return None if answer.holds is None else (result if answer.holds else otherwise)

    def _converted(self, value: Value | None) -> Value | None:
        start = self.position
        while not self.at(")"):
            self.next()
        has_length = any(word.text == "(" for word in self.between(start, self.position))
        self.position += has_length
        kind = read_type(self.between(start, self.position), default=30)
        self.expect(")")
        return kind.hold(value)

    def _call(self, name: str, arguments: list[Value]) -> Value | None:
        first = arguments[0]
        if name in ("ISNULL", "COALESCE") and len(arguments) == 2 and isinstance(arguments[1], KnownValue):
            if not isinstance(first, CatalogValue):
                return first
            alternative = arguments[1]
            return replace(first, yes=first.yes or alternative, no=first.no or alternative)
        known_values = [value for value in arguments if isinstance(value, KnownValue)]
        if len(known_values) < len(arguments):
            return None
        if name == "DB_ID" and len(known_values) == 1 and not known_values[0].is_number:
            guard = ConditionGuard(GuardSubject.DATABASE, None, known_values[0].text, True)
            return self._of_view(guard, ANYTHING, None)
        if (
            name == "DATABASEPROPERTYEX"
            and len(known_values) == 2
            and known_values[1].text.lower() == "isbrokerenabled"
        ):
            return self._of_view(ConditionGuard(GuardSubject.BROKER, None, known_values[0].text, True), ONE, ZERO)
        return call_function(name, known_values)

    def _of_view(self, guard: ConditionGuard, yes: KnownValue | None, no: KnownValue | None) -> CatalogValue:
        return CatalogValue(guard, yes, no, self._facts.ask(guard))

    def _scalar(self) -> Value | None:
        guard, item = self.query()
        column = item[-1].text.lower()
        if column == "is_broker_enabled" and guard.subject is GuardSubject.DATABASE:
            return self._of_view(ConditionGuard(GuardSubject.BROKER, None, guard.name, True), ONE, ZERO)
        if item[0].upper == "COUNT":
            return self._of_view(guard, ONE, ZERO)
        if len(item) == 1 and item[0].kind is LexemeKind.NUMBER:
            return self._of_view(guard, number_of(int(item[0].text)), None) if item[0].text.isdecimal() else None
        return self._of_view(guard, ANYTHING, None)

    # Queries of catalog views that ask for one thing by its name

    def query(self) -> tuple[ConditionGuard, Sequence[Lexeme]]:
        """Read SELECT … FROM a view WHERE tests, and return the guard and the words of its one column."""
        self.expect("SELECT")
        if self.take("TOP"):
            is_group = self.take("(")
            self.next()
            if is_group:
                self.expect(")")
        start = self.position
        if self.take("COUNT", "("):
            if not self.take("*"):
                self.next()
            self.expect(")")
        elif not self.take("*"):
            self.next()
            if self.take("."):
                self.next()
        item = self.between(start, self.position)
        self.expect("FROM")
        parts = self.parts()
        if self.take("AS") or not (self.at_end or self.at("WHERE") or self.at(")")):
            self.next()
        tests = self._tests() if self.take("WHERE") else {}
        return self._guard_of(parts, tests), item

    def _tests(self) -> dict[str, str]:
        tests: dict[str, str] = {}
        while True:
            tests |= self._test()
            if not self.take("AND"):
                return tests

    def _test(self) -> dict[str, str]:
        if self.take("("):
            tests = self._tests()
            self.expect(")")
            return tests
        column = self.parts()[-1].lower()
        is_list = self.take("IN", "(")
        sign = "=" if is_list else self._sign()
        if column == "database_id" and sign == "=" and self.take("DB_ID", "("):
            name = None if self.take(")") else self._literal()
            if name is not None:
                self.expect(")")
            tests = {"by_id": ""} | ({"current": ""} if name is None else {"name": name})
        elif column == "is_broker_enabled" and sign in ("=", "<>", "!="):
            value = self.sum()
            if value not in (ZERO, ONE):
                raise UnreadableError
            tests = {"on": "1" if (value == ONE) == (sign == "=") else "0"}
        elif (column == "type" and sign == "=" and self.sum() == KnownValue("3", is_number=True)) or (
            column == "type_desc" and sign == "=" and self._literal().upper() == "SERVICE_BROKER"
        ):
            tests = {"kind": ""}
        elif column == "name" and sign in EQUAL and self.take("DB_NAME", "(", ")"):
            tests = {"current": ""}
        elif column in ("name", "migrationid") and sign in EQUAL:
            text = self._literal()
            if sign == "LIKE" and any(wildcard in text for wildcard in "%_["):
                raise UnreadableError
            tests = {column: text}
        else:
            raise UnreadableError
        if is_list:
            self.expect(")")
        return tests

    def _literal(self) -> str:
        value = self.sum()
        if not isinstance(value, KnownValue) or value.is_number:
            raise UnreadableError
        return value.text

    def _guard_of(self, parts: Sequence[str], tests: Mapping[str, str]) -> ConditionGuard:
        """Return the guard that a view and these tests ask for. Raises UnreadableError."""
        if "migrationid" in tests:
            if len(tests) > 1:
                raise UnreadableError
            return ConditionGuard(GuardSubject.MIGRATION, None, tests["migrationid"], True)
        subject = _SUBJECTS.get(parts[-1].lower())
        schema = parts[-2].lower() if len(parts) > 1 else "sys"
        if (
            subject is None
            or len(parts) > 3
            or not (schema in ("sys", "dbo") or (schema == "" and len(parts) == 3))
        ):
            raise UnreadableError
        database = self._facts.database
        name = database if "current" in tests else tests.get("name")
        if subject is GuardSubject.DATABASE:
            if name is None or "kind" in tests:
                raise UnreadableError
            if "on" in tests:
                return ConditionGuard(GuardSubject.BROKER, None, name, tests["on"] == "1")
            return ConditionGuard(subject, None, name, True)
        if tests.keys() & {"current", "by_id", "on"} or ("kind" in tests and subject not in _OF_ENDPOINT):
            raise UnreadableError
        if "kind" in tests or subject is GuardSubject.BROKER_ENDPOINT:
            return ConditionGuard(GuardSubject.BROKER_ENDPOINT, None, name or "", True)
        if name is None:
            raise UnreadableError
        named_database = parts[0] if len(parts) == 3 and parts[1] else database
        return ConditionGuard(subject, named_database if subject in _OF_DATABASE else None, name, True)
