"""The condition of an IF, where it asks whether something exists or a broker is enabled.

A condition is put into one line of a plain form, its strings as ``§0``, ``§1``…, and compared with
the forms that scripts use. Any other condition is None: whether its branch runs is known to the
server alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from routing.importing.tsql.statements import Guard, Subject
from routing.importing.tsql.tokens import Kind, Lexeme
from routing.importing.tsql.vocabulary import find_unknown_variable

_SUBJECTS = {
    "routes": Subject.ROUTE,
    "services": Subject.SERVICE,
    "endpoints": Subject.ENDPOINT,
    "service_broker_endpoints": Subject.BROKER_ENDPOINT,
    "tcp_endpoints": Subject.ENDPOINT,
    "databases": Subject.DATABASE,
    "sysdatabases": Subject.DATABASE,
}
_LONGEST = 100
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
_OPERAND = r"§\d+|\d+|db_name \( \)"
_COMPARED = re.compile(rf"(?P<left>{_OPERAND}) (?P<sign>=|< >|! =|like|not like) (?P<right>{_OPERAND})")


def asks_for_an_error(condition: Sequence[Lexeme]) -> bool | None:
    """Whether it holds where the statement before it ended with an error, or without one; None if it asks else."""
    match = _ERROR.fullmatch(_plain(_form(condition))) if len(condition) < _LONGEST else None
    return None if match is None else match["none"] is None


def answer_of(condition: Sequence[Lexeme], database: str | None) -> bool | None:
    """What a comparison of constants comes to; None where that is not known, or it is another condition.

    Texts that differ in more than case differ under every collation, if they are ASCII.
    """
    match = _COMPARED.fullmatch(_plain(_form(condition))) if len(condition) < _LONGEST else None
    if match is None or any(find_unknown_variable(lexeme.text) for lexeme in condition):
        return None
    strings = [lexeme.text for lexeme in condition if lexeme.kind is Kind.STRING]
    left, right = (_operand(match[side], strings, database) for side in ("left", "right"))
    if left is None or right is None or left[0] != right[0]:
        return None
    sign, one, other = match["sign"], left[1].rstrip(" "), right[1].rstrip(" ")
    if "like" in sign and any(mark in other for mark in "%_["):
        return None
    if one == other:
        return sign in ("=", "like")
    is_sure = one.isascii() and other.isascii() and one.lower() != other.lower()
    return sign not in ("=", "like") if is_sure else None


def _operand(form: str, strings: Sequence[str], database: str | None) -> tuple[str, str] | None:
    """Which kind of constant an operand is, and its text."""
    if form.startswith("§"):
        return "text", strings[int(form[1:])]
    if form.isdecimal():
        return "number", str(int(form))
    return None if database is None else ("text", database)


def guard_of(condition: Sequence[Lexeme], database: str | None, asked: int) -> Guard | None:
    """The guard that a condition sets, asked in ``database``; None where it is of another form."""
    if len(condition) > _LONGEST:
        return None
    strings = [lexeme.text for lexeme in condition if lexeme.kind is Kind.STRING]
    if any(find_unknown_variable(lexeme.text) for lexeme in condition):
        return None
    form, holds = _plain(_form(condition)), True
    while form.startswith("not "):
        form, holds = _plain(form[4:]), not holds
    by_id = _DB_ID.fullmatch(form)
    if by_id:
        name = strings[int(by_id["name"][1:])]
        return Guard(Subject.DATABASE, None, name, holds == bool(by_id["none"]), asked)
    of_property = _PROPERTY.fullmatch(form)
    if of_property:
        return _property_guard(of_property, strings, database, holds, asked)
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
    return _guard(groups, tests, database, holds == (groups.get("none") is None), asked)


def _property_guard(
    match: re.Match[str], strings: Sequence[str], database: str | None, holds: bool, asked: int
) -> Guard | None:
    name = strings[int(match["name"][1:])] if match["name"] else database
    if name is None or strings[int(match["asked"][1:])].lower() != "isbrokerenabled":
        return None
    return Guard(Subject.BROKER, None, name, holds == (match["value"] == "1"), asked)


def _tests(form: str | None, strings: Sequence[str]) -> dict[str, str] | None:
    """What the tests of a WHERE ask for, joined by AND: a name, ``current`` for the database in use, and so on."""
    found: dict[str, str] = {}
    for part in (form or "").split(" and ") if form else ():
        match = _TEST.fullmatch(part)
        if match is None:
            return None
        if match["name"]:
            found["name"] = strings[int(match["name"][1:])]
            if " like " in part and any(mark in found["name"] for mark in "%_["):
                return None
        elif match["id"]:
            found |= {"by_id": "", "name": strings[int(match["id"][1:])]}
        elif match["by_id"] or match["current"]:
            found["current"] = ""
        elif match["on"]:
            found["on"] = match["on"] if match["on_sign"] == "= " else "10"[int(match["on"])]
        elif match["kind"] is None or strings[int(match["kind"][1:])].upper() == "SERVICE_BROKER":
            found["kind"] = ""
        else:
            return None
    return found


def _guard(
    match: Mapping[str, str | None], tests: Mapping[str, str], database: str | None, holds: bool, asked: int
) -> Guard | None:
    subject = _SUBJECTS[match["view"] or ""]
    name = database if "current" in tests else tests.get("name")
    if subject is Subject.DATABASE:
        if name is None or "kind" in tests:
            return None
        if "on" in tests:
            return Guard(Subject.BROKER, None, name, holds == (tests["on"] == "1"), asked)
        return Guard(subject, None, name, holds, asked)
    if tests.keys() & {"current", "by_id", "on"}:
        return None
    if "kind" in tests and subject in (Subject.ENDPOINT, Subject.BROKER_ENDPOINT):
        subject = Subject.BROKER_ENDPOINT
    elif "kind" in tests:
        return None
    if subject is Subject.BROKER_ENDPOINT:
        return Guard(subject, None, name or "", holds, asked)
    if name is None:
        return None
    return Guard(subject, None if subject is Subject.ENDPOINT else match["db"] or database, name, holds, asked)


def _form(condition: Sequence[Lexeme]) -> str:
    words: list[str] = []
    strings = 0
    for lexeme in condition:
        if lexeme.kind is Kind.STRING:
            words.append(f"§{strings}")
            strings += 1
        else:
            # A quoted name that a word could not be fits no form.
            words.append(lexeme.text if re.fullmatch(r"@*\w+|\W", lexeme.text) else "¤")
    return " ".join(words).lower()


def _plain(form: str) -> str:
    """The form without parentheses around all of it."""
    while form.startswith("( ") and form.endswith(" )"):
        depth = 0
        for index, sign in enumerate(form):
            depth += (sign == "(") - (sign == ")")
            if depth == 0 and index < len(form) - 1:
                return form
        form = form[2:-2]
    return form
