"""Recognise the lines that tools print around rows, such as rules, counts, errors and names of databases."""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE_END = re.compile(r"(?<!\r)\r*\n|\r")
# SQL Server counts rows in the language of the session, as in (2 Zeile(n) betroffen).
_REST = r"(?:[^()\d]|\([^()\d]{0,20}\)){0,60}"
_COUNT = re.compile(rf"[(\uff08]{_REST}\d[\d.,' \u00a0\u202f]{{0,30}}{_REST}[)\uff09]")
# SSMS ends its results with a time, as in Hora de finalización: 2026-01-05T19:00:00.1234567+01:00
_MOMENT = re.compile(r"[^\d,;|\t]{1,60}[:\uff1a] *\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:[+-]\d\d:\d\d|Z)?")
_HEADING = re.compile(r"(?:-{2,}|={2,}|\*{2,}|#+) .+ (?:-{2,}|={2,}|\*{2,}|#+)")
# The marks around text of fixed width in Markdown, Jira and Confluence.
_FENCE = re.compile(r"[`~]{3,}\w*|\{(?:code|noformat)[^{}]*\}")
# Msg 916, Level 14, State 1 in any language, with the commas of Chinese and Japanese too.
_COMMA = r"(?:, |[\uff0c、] ?)"
_ERROR = re.compile(
    rf"(?:[^\W\d_]{{1,20}}[:\uff1a] ?)?[^\W\d_]{{1,20}}\.? ?(\d{{1,10}}|0x[0-9A-Fa-f]+){_COMMA}"
    rf"[^\d,\uff0c、]{{1,40}}\d{{1,3}}{_COMMA}[^\d,\uff0c、]{{1,40}}\d{{1,3}}(?!\d)"
)
_SQLCMD_ERROR = re.compile(r"Sqlcmd: ")
# The forms of DataGrip, DBeaver, FreeTDS, ODBC, PowerShell, Java, Python and Go, of a query without an end, and of
# tools that show only the first rows.
_TOOL_ERROR = re.compile(
    r"\[[0-9A-Z]{5}\] ?\[\d+\]|[\w-]{1,20} ?\w{0,20} ?\[\d{1,10}\] ?\[[0-9A-Z]{5}\]"
    r"|(?i:msg|error|fehler|erreur|errore|erro|ошибка|błąd|hata)[: ]{1,3}\d+"
    r"|(?i:error|fehler|fatal) ?[:=] |(?i:warning: fatal error|sql ?state)\b"
    r"|[\w.]{0,80}(?:Exception|Error)\b ?:|(?i:invoke-\w{1,20}|mssql) ?:|(?i:exception calling) "
    r"|\W{0,3}only showing top \d"
    r"|\W{0,3}(?:[Ff]irst )?(?P<part>[\d.,]{1,12}) of (?!(?P=part) )[\d.,]{1,12} rows?\b"
    r"|A severe error|Transaction \(Process|Unexpected EOF"
    r"|(?i:execution |query )?(?i:time-?out (?:expired|.{0,20}abgelaufen)|zeitüberschreitung|tiempo de espera)\b"
    r"|(?i:délai d.{0,40}expir|tempo limite.{0,40}(?:expir|esgot)|query failed|время ожидания)"
    r"|.{0,60}(?i:cancell?ed by|vom benutzer abgebrochen|cancelad[ao] p|annulée? par|annullat[ao] da"
    r"|отменен\w* польз|anulowan\w* przez"
    r"|用户.{0,3}取消|キャンセルされ)|.{0,40}(?i:execution failed)"
)
_CONTEXT = re.compile(
    r"(?i:[^'\"«“„]{0,80}(?:conte[xs]t|kontekst|kontext|контекст|bağlam|コンテキスト|上下文|資料庫內容|내용|컨텍스트)"
    r"[^'\"«“„]{0,80})['\"«“„](?P<name>.{1,200})['\"»”“][^'\"»”“]{0,40}"
)
_DATABASE = (
    r"databas\w*|datenbank|bases? de (?:données|datos)|ban(?:co|que) de (?:dados|données)|base de dados"
    r"|баз\w+ данных|baz\w+ danych|veri ?taban\w*|databáz\w*|データベース|数据库|資料庫|데이터베이스"
)
_BEGIN = re.compile(
    rf"[-=*#\s]{{0,80}}(?P<end>(?i:end|ende|fin|fine|fim|koniec|конец)\b[\w ]{{0,12}} )?(?i:[^\W\d]+ (?:of )?)?"
    rf"(?i:{_DATABASE})(?i: name)?\s*[:\uff1a=]\s*(?P<name>.{{1,200}}?)[-=*#\s]{{0,80}}"
)

# Tools add the id of a database to its name, as in Orders (id 7). Without the word it may be part of the name.
_ID = re.compile(r"[-,;(\[|] ?(?:db|database)?[ _]?id ?[:=#]? ?\d+ ?[)\]]?$", re.IGNORECASE)
_CERTAIN = re.compile(
    r"\[[^\[\]]+\]|'[^']+'|\"[^\"]+\"|(?!.*\bid\W*\d+$)(?!.* (?:on|at|from|auf|von|sur|en|em|su|na) )"
    r"\w[\w@$#.-]*(?: \w[\w@$#.-]*)*",
    re.IGNORECASE,
)


def lines_of(text: str) -> list[str]:
    """Split a text at the line ends that tools write: others, such as U+2028, may be part of a value."""
    # Nearly all texts have one kind of line end, which is split far faster.
    plain = text.replace("\r\n", "\n")
    return _LINE_END.split(text) if "\r" in plain else plain.split("\n")


def is_remark(line: str) -> bool:
    """Return whether a line is blank, a heading, a count of rows or a closing time: no row in any language."""
    text = line.strip()
    return not text or bool(
        _FENCE.fullmatch(text) or _COUNT.fullmatch(text) or _MOMENT.fullmatch(text) or _HEADING.fullmatch(text)
    )


def find_error(line: str) -> str | None:
    """Return the number of the error that a line names, in any language; None where it names none."""
    match = _ERROR.match(line.strip())
    if match is not None:
        return match.group(1)
    return "of sqlcmd" if _SQLCMD_ERROR.match(line) else None


def is_tool_error(line: str) -> bool:
    """Return whether a line outside tables says that a tool failed, was cancelled, or shows only a part."""
    return _TOOL_ERROR.match(line.strip()) is not None


class DatabaseMark(NamedTuple):
    """A line with the database of the next result sets. ``name`` is None if the line ends a database.

    The name is not certain where the line may have more than it, as in ``Orders (7)``.
    """

    name: str | None
    is_certain: bool = True


def find_database(line: str) -> DatabaseMark | None:
    """Return the database that a line names as the one in use; None where it names none."""
    text = line.strip()
    match = _CONTEXT.fullmatch(text)
    if match is not None:
        return DatabaseMark(match["name"].strip())
    match = _BEGIN.fullmatch(text)
    if match is None:
        return None
    if match["end"]:
        return DatabaseMark(None)
    name = match["name"].strip()
    id_beside = _ID.search(name)
    if id_beside is not None:
        name = name[: id_beside.start()].rstrip()
    is_certain = _CERTAIN.fullmatch(name) is not None
    return DatabaseMark(name.strip("[]'\" ") if is_certain else name, is_certain)


def are_dashes(line: str) -> bool:
    """Return whether a line has the dashes that sqlcmd writes under a header without a separator."""
    return "-" in line and not line.strip("- ")
