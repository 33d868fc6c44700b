"""Read queries of catalog views that ask for one thing by its name, as guards that a state may answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.script_statements import ConditionGuard, GuardSubject, RefusalError
from routing.importing.tsql.tokens import Lexeme, LexemeList
from routing.importing.tsql.values import KnownValue, Value

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
ONE, ZERO = KnownValue("1", is_number=True), KnownValue("0", is_number=True)
EQUAL = ("=", "LIKE")
"""Signs under which a name without wildcards is that name."""


class UnreadableError(RefusalError):
    """An expression of a form that only the server evaluates."""

    def __init__(self) -> None:
        super().__init__("only the server evaluates it")


class QueryReader(LexemeCursor):
    """Reads the words of an expression from left to right. ``database`` is the current one."""

    def __init__(self, words: Sequence[Lexeme], database: str | None) -> None:
        super().__init__(LexemeList("", tuple(words)), template_defaults=True)
        self._database = database

    def next(self) -> Lexeme:
        """Return the current word and move past it. Raises UnreadableError at the end."""
        if self.at_end:
            raise UnreadableError
        return super().next()

    def unexpected(self, expected: str) -> RefusalError:
        """Return the error for an unexpected word."""
        return UnreadableError()

    def _sign(self) -> str:
        if self.take("LIKE"):
            return "LIKE"
        if self.take("NOT", "LIKE"):
            return "NOT LIKE"
        sign = ""
        while self.peek().text in ("=", "<", ">", "!"):
            sign += self.next().text
        return sign

    def sum(self) -> Value | None:
        """Read a value."""
        raise NotImplementedError

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
        database = self._database
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
