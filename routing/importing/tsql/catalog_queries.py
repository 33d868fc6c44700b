"""Read queries of catalog views that ask for one thing by its name, as guards that a state may answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from routing.importing.tsql.script_statements import ConditionGuard, GuardSubject
from routing.importing.tsql.tokens import Lexeme, LexemeKind
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


class UnreadableError(Exception):
    """An expression of a form that only the server evaluates."""


class QueryReader:
    """Reads words from left to right. ``database`` is the current one."""

    def __init__(self, words: Sequence[Lexeme], database: str | None) -> None:
        self._words = words
        self._database = database
        self._at = 0

    @property
    def at_end(self) -> bool:
        """Whether all words are read."""
        return self._at == len(self._words)

    def _peek(self, ahead: int = 0) -> Lexeme | None:
        return self._words[self._at + ahead] if self._at + ahead < len(self._words) else None

    def _next(self) -> Lexeme:
        word = self._peek()
        if word is None:
            raise UnreadableError
        self._at += 1
        return word

    def _take(self, *texts: str) -> bool:
        """Move past these signs or unquoted words, if they come next."""
        for index, text in enumerate(texts):
            word = self._peek(index)
            if word is None or (word.text if word.kind is LexemeKind.SIGN else word.upper) != text:
                return False
        self._at += len(texts)
        return True

    def _expect(self, *texts: str) -> None:
        if not self._take(*texts):
            raise UnreadableError

    def _sign(self) -> str:
        if self._take("LIKE"):
            return "LIKE"
        if self._take("NOT", "LIKE"):
            return "NOT LIKE"
        sign = ""
        while self._peek() is not None and self._words[self._at].text in ("=", "<", ">", "!"):
            sign += self._next().text
        return sign

    def sum(self) -> Value | None:
        """Read a value."""
        raise NotImplementedError

    def query(self) -> tuple[ConditionGuard, Sequence[Lexeme]]:
        """Read SELECT … FROM a view WHERE tests, and return the guard and the words of its one column."""
        self._expect("SELECT")
        if self._take("TOP"):
            is_group = self._take("(")
            self._next()
            if is_group:
                self._expect(")")
        start = self._at
        if self._take("COUNT", "("):
            if not self._take("*"):
                self._next()
            self._expect(")")
        elif not self._take("*"):
            self._next()
            if self._take("."):
                self._next()
        item = self._words[start : self._at]
        self._expect("FROM")
        parts = self._parts()
        if self._take("AS") or not (self.at_end or self._at_any("WHERE", ")")):
            self._next()
        tests = self._tests() if self._take("WHERE") else {}
        return self._guard_of(parts, tests), item

    def _at_any(self, *texts: str) -> bool:
        word = self._peek()
        return word is not None and (word.upper or word.text) in texts

    def _parts(self) -> list[str]:
        """Read a name in parts, those left out between dots empty."""
        parts = [self._next().text]
        while self._take("."):
            parts.append("" if self._at_any(".") else self._next().text)
        return parts

    def _tests(self) -> dict[str, str]:
        tests: dict[str, str] = {}
        while True:
            tests |= self._test()
            if not self._take("AND"):
                return tests

    def _test(self) -> dict[str, str]:
        if self._take("("):
            tests = self._tests()
            self._expect(")")
            return tests
        column = self._parts()[-1].lower()
        is_list = self._take("IN", "(")
        sign = "=" if is_list else self._sign()
        if column == "database_id" and sign == "=" and self._take("DB_ID", "("):
            name = None if self._take(")") else self._text()
            if name is not None:
                self._expect(")")
            tests = {"by_id": ""} | ({"current": ""} if name is None else {"name": name})
        elif column == "is_broker_enabled" and sign in ("=", "<>", "!="):
            value = self.sum()
            if value not in (ZERO, ONE):
                raise UnreadableError
            tests = {"on": "1" if (value == ONE) == (sign == "=") else "0"}
        elif (column == "type" and sign == "=" and self.sum() == KnownValue("3", is_number=True)) or (
            column == "type_desc" and sign == "=" and self._text().upper() == "SERVICE_BROKER"
        ):
            tests = {"kind": ""}
        elif column == "name" and sign in EQUAL and self._take("DB_NAME", "(", ")"):
            tests = {"current": ""}
        elif column in ("name", "migrationid") and sign in EQUAL:
            text = self._text()
            if sign == "LIKE" and any(wildcard in text for wildcard in "%_["):
                raise UnreadableError
            tests = {column: text}
        else:
            raise UnreadableError
        if is_list:
            self._expect(")")
        return tests

    def _text(self) -> str:
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
