"""The condition of an IF, where it asks whether something exists or a broker is enabled.

A condition is put into one line of a plain form, its strings as ``§0``, ``§1``…, and compared with
the forms that scripts use. Any other condition is None: whether its branch runs is known to the
server alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from routing.importing.tsql.statements import Guard, Subject
from routing.importing.tsql.tokens import Kind, Lexeme
from routing.importing.tsql.vocabulary import find_unknown_variable

_SUBJECTS = {
    "routes": Subject.ROUTE,
    "services": Subject.SERVICE,
    "endpoints": Subject.ENDPOINT,
    "service_broker_endpoints": Subject.ENDPOINT,
    "tcp_endpoints": Subject.ENDPOINT,
    "databases": Subject.DATABASE,
    "sysdatabases": Subject.DATABASE,
}
_LONGEST = 100
_ALIAS = r"(?:\w+ \. )?"
_SCHEMA = r"(?:(?:(?P<db>\w+) \. )?(?:sys|dbo) \. |\w+ \. \. )?"
_FROM = rf"from {_SCHEMA}(?P<view>{'|'.join(_SUBJECTS)})(?: as \w+| (?!where )\w+)?"
_BY_NAME = r"name = (?:(?P<name>§\d+)|db_name \( \))"
_BY_ID = r"database_id = db_id \( (?P<id>§\d+ )?\)"
_NAME = rf"(?:\( )?{_ALIAS}(?:{_BY_NAME}|{_BY_ID})(?: \))?"
_ENABLED = rf"{_ALIAS}is_broker_enabled = (?P<on>[01])"
_ENABLED_FIRST = rf"{_ALIAS}is_broker_enabled = (?P<on_first>[01])"
_EXISTS = re.compile(
    rf"exists \( select (?:top \(? ?\d+ ?\)? )?(?:\*|\d+|§\d+|{_ALIAS}\w+) {_FROM} "
    rf"where (?:{_ENABLED_FIRST} and )?{_NAME}(?: and {_ENABLED})? \)"
)
_COUNT = re.compile(rf"\( select count \( (?:\*|1) \) {_FROM} where {_NAME} \) (?:= (?P<none>0)|> 0|< > 0|= 1)")
_VALUE = re.compile(rf"\( select {_ALIAS}is_broker_enabled {_FROM} where {_NAME} \) = (?P<on>[01])")
_DB_ID = re.compile(r"db_id \( (?P<name>§\d+) \) is (?P<none>not )?null")


_ERROR = re.compile(r"@@error (?:< >|! =|>) 0")


def asks_for_an_error(condition: Sequence[Lexeme]) -> bool:
    """Whether a condition asks if the statement before it ended with an error."""
    return len(condition) < _LONGEST and _ERROR.fullmatch(_plain(_form(condition))) is not None


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
    match = _EXISTS.fullmatch(form) or _VALUE.fullmatch(form) or _COUNT.fullmatch(form)
    if match is None:
        return None
    groups = match.groupdict()
    return _guard(groups, strings, database, holds == (groups.get("none") is None), asked)


def _guard(
    match: dict[str, str | None],
    strings: Sequence[str],
    database: str | None,
    holds: bool,
    asked: int,
) -> Guard | None:
    subject = _SUBJECTS[match["view"] or ""]
    reference = match["name"] or match["id"]
    name = strings[int(reference[1:])] if reference else database
    on = match.get("on") or match.get("on_first")
    if name is None:
        return None
    if subject is not Subject.DATABASE:
        if reference is None or match["id"] or on:
            return None
        place = None if subject is Subject.ENDPOINT else match["db"] or database
        return Guard(subject, place, name, holds, asked)
    if on:
        return Guard(Subject.BROKER, None, name, holds == (on == "1"), asked)
    return Guard(subject, None, name, holds, asked)


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
