"""Evaluate the condition of an IF.

A condition is taken apart at AND, OR and NOT. What is left is put into one line of a plain form, its strings as
``§0``, ``§1``…, and compared with the forms that scripts use: constants, what the session itself knows, an error
of the statement before, and whether something exists or a broker is enabled, which a state answers. Any other form
is known to the server alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from routing.importing.tsql.script_statements import ConditionGuard, GuardSubject
from routing.importing.tsql.tokens import Lexeme, LexemeKind
from routing.importing.tsql.vocabulary import find_unknown_variable

_SUBJECTS = {
    "routes": GuardSubject.ROUTE,
    "services": GuardSubject.SERVICE,
    "endpoints": GuardSubject.ENDPOINT,
    "service_broker_endpoints": GuardSubject.BROKER_ENDPOINT,
    "tcp_endpoints": GuardSubject.ENDPOINT,
    "databases": GuardSubject.DATABASE,
    "sysdatabases": GuardSubject.DATABASE,
}
_LONGEST = 100
_LONGEST_WHOLE = 1000
_DEEPEST = 20
_ALIAS = r"(?:\w+ \. )?"
_SCHEMA = r"(?:(?:(?P<db>\w+) \. )?(?:sys|dbo) \. |\w+ \. \. )?"
_FROM = rf"from {_SCHEMA}(?P<view>{'|'.join(_SUBJECTS)})(?: as \w+| (?!where )\w+)?"
_NAME = rf"(?:\( )?{_ALIAS}name (?:= |in \( |like )(?:(?P<name>§\d+)|(?P<current>db_name \( \)))(?: \))?(?: \))?"
_ID = rf"(?:\( )?{_ALIAS}database_id = (?P<by_id>db_id \( (?P<id>§\d+ )?\))(?: \))?"
_ENABLED = rf"{_ALIAS}is_broker_enabled (?P<on_sign>= |< > |! = )(?P<on>[01])"
_KIND = rf"{_ALIAS}(?:type = 3|type_desc = (?P<kind>§\d+))"
_TEST = re.compile("|".join((_NAME, _ID, _ENABLED, _KIND)))
_ROWS = r"(?:top \(? ?\d+ ?\)? )?(?:\*|\d+|§\d+|" + _ALIAS + r"\w+)"
_WHERE = r"(?: where (?P<tests>.+?))?"
_EXISTS = re.compile(rf"exists \( select {_ROWS} {_FROM}{_WHERE} \)")
_COUNT = re.compile(rf"\( select count \( (?:\*|1) \) {_FROM}{_WHERE} \) (?:= (?P<none>0)|> 0|< > 0|> = 1|= 1)")
_VALUE = re.compile(
    rf"\( select {_ALIAS}is_broker_enabled {_FROM}{_WHERE} \) (?P<value_sign>= |< > |! = )(?P<value>[01])"
)
_DB_ID = re.compile(r"db_id \( (?P<name>§\d+) \) is (?P<none>not )?null")
_PROPERTY = re.compile(
    r"databasepropertyex \( (?:(?P<name>§\d+)|db_name \( \)) , (?P<asked>§\d+) \) = (?P<value>[01])"
)
_ERROR = re.compile(r"@@error (?:< >|! =|>|(?P<none>=)) 0")
_OPERAND = r"§\d+|(?:- )?\d+|db_name \( \)"
_SIGN = r"= |< > |! = |> = |< = |> |< |like |not like "
_COMPARED = re.compile(rf"(?P<left>{_OPERAND}) (?P<sign>{_SIGN})(?P<right>{_OPERAND})")
_NUMBERS: Mapping[str, Callable[[int, int], bool]] = {
    "=": lambda left, right: left == right,
    "< >": lambda left, right: left != right,
    "! =": lambda left, right: left != right,
    "> =": lambda left, right: left >= right,
    "< =": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    "<": lambda left, right: left < right,
}
_ANY_ERROR = 50000


@dataclass(frozen=True)
class SessionFacts:
    """The facts of a session at the time of a condition.

    ``error`` is @@ERROR, None where it is not known. ``caught`` is the error that a CATCH block handles, if known.
    ``ask`` answers what depends on the state, None where that cannot tell.
    """

    database: str | None
    error: int | None
    depth: int
    transaction_state: int
    caught: int | None
    ask: Callable[[ConditionGuard], bool | None]


@dataclass(frozen=True)
class ConditionAnswer:
    """The value of a condition; ``holds`` is None where it is not known.

    ``expects_no_error``: it rests on the statement before having ended without an error. ``by_state``: a state
    has answered. ``guards`` are what a state would have to answer, if nothing else is open.
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


def answer_condition(words: Sequence[Lexeme], facts: SessionFacts) -> ConditionAnswer:
    """Evaluate a condition."""
    if len(words) > _LONGEST_WHOLE or any(find_unknown_variable(word.text) for word in words):
        return _NOT_KNOWN
    return _answer(_with_facts(words, facts), facts, 0)


def _with_facts(words: Sequence[Lexeme], facts: SessionFacts) -> list[Lexeme]:
    """Return the words with numbers in the place of what the session knows."""
    session_values = {"XACT_STATE": facts.transaction_state}
    if facts.caught is not None:
        session_values["ERROR_NUMBER"] = facts.caught
    resolved: list[Lexeme] = []
    index = 0
    while index < len(words):
        word = words[index]
        is_call = [after.text for after in words[index + 1 : index + 3]] == ["(", ")"]
        if word.upper == "@@TRANCOUNT":
            resolved += _number(word, facts.depth)
        elif word.upper == "@@ERROR" and facts.error:
            resolved += _number(word, facts.error if facts.error > 0 else _ANY_ERROR)
        elif word.upper in session_values and is_call:
            resolved += _number(word, session_values[word.upper])
            index += 2
        else:
            resolved.append(word)
        index += 1
    return resolved


def _number(word: Lexeme, value: int) -> list[Lexeme]:
    sign = [replace(word, kind=LexemeKind.SIGN, text="-", upper="")] if value < 0 else []
    return [*sign, replace(word, kind=LexemeKind.NUMBER, text=str(abs(value)), upper="")]


def _answer(words: Sequence[Lexeme], facts: SessionFacts, depth: int) -> ConditionAnswer:
    words = _without_parentheses(words)
    if depth > _DEEPEST or any(word.upper == "BETWEEN" for word in words):
        return _NOT_KNOWN
    for joint in ("OR", "AND"):
        parts = _split(words, joint)
        if len(parts) > 1:
            return _join([_answer(part, facts, depth + 1) for part in parts], joint == "OR")
    if words and words[0].upper == "NOT":
        return _answer(words[1:], facts, depth + 1).inverse()
    return _answer_one(words, facts)


def _without_parentheses(words: Sequence[Lexeme]) -> Sequence[Lexeme]:
    """Return the words without parentheses around all of them."""
    while len(words) > 1 and words[0].text == "(" and words[-1].text == ")":
        depth = 0
        for index, word in enumerate(words):
            depth += _depth(word)
            if depth == 0 and index < len(words) - 1:
                return words
        words = words[1:-1]
    return words


def _depth(word: Lexeme) -> int:
    return ((word.text == "(") - (word.text == ")")) if word.kind is LexemeKind.SIGN else 0


def _split(words: Sequence[Lexeme], joint: str) -> list[Sequence[Lexeme]]:
    parts: list[Sequence[Lexeme]] = []
    depth = start = 0
    for index, word in enumerate(words):
        depth += _depth(word)
        if depth == 0 and word.upper == joint:
            parts.append(words[start:index])
            start = index + 1
    return [*parts, words[start:]]


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


def _answer_one(words: Sequence[Lexeme], facts: SessionFacts) -> ConditionAnswer:
    if len(words) >= _LONGEST:
        return _NOT_KNOWN
    error = asks_for_an_error(words)
    if error is not None:
        return ConditionAnswer(not error, expects_no_error=True)
    constant = answer_of(words, facts.database)
    if constant is not None:
        return ConditionAnswer(constant)
    guard = guard_of(words, facts.database)
    if guard is None:
        return _NOT_KNOWN
    answer = facts.ask(guard)
    if answer is None:
        return ConditionAnswer(None, guards=(guard,))
    return ConditionAnswer(answer == guard.holds, by_state=True)


def asks_for_an_error(condition: Sequence[Lexeme]) -> bool | None:
    """Return whether it asks for an error of the statement before, or for none; None if it asks else."""
    match = _ERROR.fullmatch(_plain(_form(condition)))
    return None if match is None else match["none"] is None


def answer_of(condition: Sequence[Lexeme], database: str | None) -> bool | None:
    """Evaluate a comparison of constants; None for an unknown value or another condition.

    Texts that differ in more than case differ under every collation, if they are ASCII.
    """
    match = _COMPARED.fullmatch(_plain(_form(condition)))
    if match is None:
        return None
    strings = [lexeme.text for lexeme in condition if lexeme.kind is LexemeKind.STRING]
    left, right = (_operand(match[operand_name], strings, database) for operand_name in ("left", "right"))
    if left is None or right is None or left[0] != right[0]:
        return None
    sign, one, other = match["sign"].strip(), left[1].rstrip(" "), right[1].rstrip(" ")
    if left[0] == "number":
        compare = _NUMBERS.get(sign)
        return None if compare is None else compare(int(one), int(other))
    if sign not in ("=", "< >", "! =", "like", "not like"):
        return None
    if "like" in sign and any(wildcard in other for wildcard in "%_["):
        return None
    if one == other:
        return sign in ("=", "like")
    is_sure = one.isascii() and other.isascii() and one.lower() != other.lower()
    return sign not in ("=", "like") if is_sure else None


def _operand(form: str, strings: Sequence[str], database: str | None) -> tuple[str, str] | None:
    """Return the kind of an operand's constant, and its text."""
    if form.startswith("§"):
        return "text", strings[int(form[1:])]
    digits = form.replace("- ", "-")
    if digits.removeprefix("-").isdecimal():
        return "number", str(int(digits))
    return None if database is None else ("text", database)


def guard_of(condition: Sequence[Lexeme], database: str | None) -> ConditionGuard | None:
    """Return the guard that a condition sets, asked in ``database``; None where it is of another form."""
    strings = [lexeme.text for lexeme in condition if lexeme.kind is LexemeKind.STRING]
    form, holds = _plain(_form(condition)), True
    while form.startswith("not "):
        form, holds = _plain(form[4:]), not holds
    by_id = _DB_ID.fullmatch(form)
    if by_id:
        name = strings[int(by_id["name"][1:])]
        return ConditionGuard(GuardSubject.DATABASE, None, name, holds == bool(by_id["none"]))
    of_property = _PROPERTY.fullmatch(form)
    if of_property:
        return _property_guard(of_property, strings, database, holds)
    match = _EXISTS.fullmatch(form) or _VALUE.fullmatch(form) or _COUNT.fullmatch(form)
    if match is None:
        return None
    groups = match.groupdict()
    tests = _tests(groups["tests"], strings)
    if tests is None:
        return None
    if groups.get("value") is not None:
        is_same = groups["value_sign"] == "= "
        tests["on"] = groups["value"] if is_same else "10"[int(groups["value"])]
    return _guard(groups, tests, database, holds == (groups.get("none") is None))


def _property_guard(
    match: re.Match[str], strings: Sequence[str], database: str | None, holds: bool
) -> ConditionGuard | None:
    name = strings[int(match["name"][1:])] if match["name"] else database
    if name is None or strings[int(match["asked"][1:])].lower() != "isbrokerenabled":
        return None
    return ConditionGuard(GuardSubject.BROKER, None, name, holds == (match["value"] == "1"))


def _tests(form: str | None, strings: Sequence[str]) -> dict[str, str] | None:
    """Return the tests of a WHERE, joined by AND: a name, ``current`` for the database in use, and so on."""
    tests: dict[str, str] = {}
    for part in (form or "").split(" and ") if form else ():
        match = _TEST.fullmatch(part)
        if match is None:
            return None
        if match["name"]:
            tests["name"] = strings[int(match["name"][1:])]
            if " like " in part and any(wildcard in tests["name"] for wildcard in "%_["):
                return None
        elif match["id"]:
            tests |= {"by_id": "", "name": strings[int(match["id"][1:])]}
        elif match["by_id"] or match["current"]:
            tests["current"] = ""
        elif match["on"]:
            tests["on"] = match["on"] if match["on_sign"] == "= " else "10"[int(match["on"])]
        elif match["kind"] is None or strings[int(match["kind"][1:])].upper() == "SERVICE_BROKER":
            tests["kind"] = ""
        else:
            return None
    return tests


def _guard(
    match: Mapping[str, str | None], tests: Mapping[str, str], database: str | None, holds: bool
) -> ConditionGuard | None:
    subject = _SUBJECTS[match["view"] or ""]
    name = database if "current" in tests else tests.get("name")
    if subject is GuardSubject.DATABASE:
        if name is None or "kind" in tests:
            return None
        if "on" in tests:
            return ConditionGuard(GuardSubject.BROKER, None, name, holds == (tests["on"] == "1"))
        return ConditionGuard(subject, None, name, holds)
    if tests.keys() & {"current", "by_id", "on"}:
        return None
    if "kind" in tests and subject in (GuardSubject.ENDPOINT, GuardSubject.BROKER_ENDPOINT):
        subject = GuardSubject.BROKER_ENDPOINT
    elif "kind" in tests:
        return None
    if subject is GuardSubject.BROKER_ENDPOINT:
        return ConditionGuard(subject, None, name or "", holds)
    if name is None:
        return None
    return ConditionGuard(
        subject, None if subject is GuardSubject.ENDPOINT else match["db"] or database, name, holds
    )


def _form(condition: Sequence[Lexeme]) -> str:
    words: list[str] = []
    strings = 0
    for lexeme in condition:
        if lexeme.kind is LexemeKind.STRING:
            words.append(f"§{strings}")
            strings += 1
        else:
            # A quoted name that a word could not be fits no form.
            words.append(lexeme.text if re.fullmatch(r"@*\w+|\W", lexeme.text) else "¤")
    return " ".join(words).lower()


def _plain(form: str) -> str:
    """Return the form without parentheses around all of it."""
    while form.startswith("( ") and form.endswith(" )"):
        depth = 0
        for index, sign in enumerate(form):
            depth += (sign == "(") - (sign == ")")
            if depth == 0 and index < len(form) - 1:
                return form
        form = form[2:-2]
    return form
