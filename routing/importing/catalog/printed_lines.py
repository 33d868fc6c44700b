"""Recognise the lines that tools print around rows, such as counts, and rows in columns of fixed width."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple

from routing.importing.catalog.views import LONGEST, NAMES, export_again, fold_columns

_LINE_END = re.compile(r"(?<!\r)\r*\n|\r")
# SQL Server counts rows in the language of the session, as in (2 Zeile(n) betroffen).
_REST = r"(?:[^()\d]|\([^()\d]{0,20}\)){0,60}"
_COUNT = re.compile(rf"[(\uff08]{_REST}\d[\d.,' \u00a0\u202f]{{0,30}}{_REST}[)\uff09]")
_NUMBER = re.compile(r"\d+(?:[.,' \u00a0\u202f]\d{3}\b)*")
# SSMS puts the server and the login before the messages of a server group, as in HUB(CORP\dba): (1 row affected)
_OF_GROUP = re.compile(r"^[^\s()]{1,128}\([^()]{1,128}\): ")
_COUNTED = re.compile(
    r"row|zeile|ligne|fila|righ?[ae]|linha|строк|sat.r|řádk|rad|wiersz|rij|sor\b|行|列|행", re.IGNORECASE
)
# SSMS ends its results with a time, as in Hora de finalización: 2026-01-05T19:00:00.1234567+01:00
_MOMENT = re.compile(r"[^\d,;|\t]{1,60}[:\uff1a] *\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:[+-]\d\d:\d\d|Z)?")
_HEADING = re.compile(r"(?:-{2,}|={2,}|\*{2,}|#+) .+ (?:-{2,}|={2,}|\*{2,}|#+)")
# Headings of Markdown, Jira and Confluence as well.
_TITLE = re.compile(r"(?:#{1,6}|h[1-6]\.) .+|(\*{1,2})[^*]+\1")
# The marks around text of fixed width in Markdown, Jira and Confluence.
_FENCE = re.compile(r"[`~]{3,}\w*|\{(?:code|noformat)[^{}]*\}")
# Msg 916, Level 14, State 1 in any language, with the commas of Chinese and Japanese too. Read in another encoding
# than its own, such a comma and the letters are other characters: sqlcmd writes files in that of a console.
_COMMA = r"(?:,[ \u00a0]|[\uff0c、] ?|\udc81A|\u00a3\u00ac|\u00a1A)"
_LETTER = r"[A-Za-z\[\u0080-\U0010ffff]"
_ERROR = re.compile(
    rf"(?:{_LETTER}{{1,20}}[:\uff1a] ?)?{_LETTER}{{1,20}}\.? ?(\d{{1,10}}|0x[0-9A-Fa-f]+){_COMMA}"
    rf"[^\d,\uff0c、]{{1,40}}\d{{1,3}}{_COMMA}[^\d,\uff0c、]{{1,40}}\d{{1,3}}(?!\d)"
)
ELLIPSES = ("...", "\u2026")
LONGEST_LINE = 200
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
    r"|A severe error|Transaction \(Process|Unexpected EOF|(?i:communication link failure|schwerwiegender fehler)"
    r"|.{0,20}(?i:error|erreur|erro|errore) grave\b|(?i:(?:tcp|shared memory|named pipes|ssl) provider ?:)"
    r"|(?i:tcp[- ]anbieter|(?:proveedor|fournisseur|provedor|provider|поставщик) (?:de |do )?tcp) ?:"
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
# sqlcmd -e prints the statements too. In small letters it may be a sentence.
_USE = re.compile(r"USE (?P<name>[\w$]+|\[[^\[\]]+\]) ?;?|(?i:use) (?P<quoted>\[[^\[\]]+\]|[\w$]+(?= ?;)) ?;?")
# The same in another encoding than its own has signs for letters, and the name alone is readable.
_QUOTED = re.compile(r"(?P<before>[^'\"]{1,80})(?P<quote>['\"])(?P<name>[^'\"]{1,128})(?P=quote)[^'\"]{0,40}")
_FOREIGN_SIGN = re.compile(r"[^\w\s\x00-\x7f]|[\u00c0-\u00ff]{4}")
_MANY_SIGNS = 3
DATABASE = (
    r"databas\w*|db|(?:initial )?catalog|datenbank"
    r"|bases? de (?:données|datos)|ban(?:co|que) de (?:dados|données)|base de dados"
    r"|баз\w+ данных|baz\w+ danych|veri ?taban\w*|databáz\w*|データベース|数据库|資料庫|데이터베이스"
)
_BEGIN = re.compile(
    rf"[-=*#\s]{{0,80}}(?P<end>(?i:end|ende|fin|fine|fim|koniec|конец)\b[\w ]{{0,12}} )?(?i:[^\W\d]+ (?:of )?)?"
    rf"(?i:{DATABASE})(?i: name)?\s*[:\uff1a=]\s*(?P<name>.{{1,200}}?)[-=*#\s]{{0,80}}"
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


def _message(line: str) -> str:
    text = line.strip()
    return _OF_GROUP.sub("", text) if "): " in text else text


def is_remark(line: str, *, may_be_row: bool = True) -> bool:
    """Return whether a line is blank, a heading, a count of rows or a closing time: no row in any language."""
    text = _message(line)
    if _FENCE.fullmatch(text) or _COUNT.fullmatch(text) or _MOMENT.fullmatch(text) or _HEADING.fullmatch(text):
        return True
    return not text or (not may_be_row and is_title(text))


def is_title(text: str) -> bool:
    """Return whether a line is a heading in any form."""
    return _HEADING.fullmatch(text) is not None or _TITLE.fullmatch(text) is not None


def find_count(line: str) -> int | None:
    """Return the number of rows that a line below a result set counts, or None if it is not certain."""
    text = _message(line)
    numbers = _NUMBER.findall(text) if _COUNT.fullmatch(text) and _COUNTED.search(text) else []
    return int("".join(filter(str.isdigit, numbers[0]))) if len(numbers) == 1 else None


def find_error(line: str) -> str | None:
    """Return the number of the error that a line names in any language, or None."""
    match = _ERROR.match(_message(line))
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


NO_DATABASE = DatabaseMark(None)


def find_database(line: str) -> DatabaseMark | None:
    """Return the database that a line names as the one in use, or None."""
    text = line.strip()
    match = _CONTEXT.fullmatch(text)
    if match is not None:
        return DatabaseMark(match["name"].strip())
    match = _USE.fullmatch(text)
    if match is not None:
        return DatabaseMark((match["name"] or match["quoted"]).strip("[]"))
    match = _QUOTED.fullmatch(text)
    if match is not None and len(_FOREIGN_SIGN.findall(match["before"])) >= _MANY_SIGNS:
        return DatabaseMark(match["name"], is_certain=False)
    match = _BEGIN.fullmatch(text)
    if match is None:
        return None
    if match["end"]:
        return NO_DATABASE
    name = match["name"].strip()
    id_beside = _ID.search(name)
    if id_beside is not None:
        name = name[: id_beside.start()].rstrip()
    is_certain = _CERTAIN.fullmatch(name) is not None
    return DatabaseMark(name.strip("[]'\" ") if is_certain else name, is_certain)


def are_dashes(line: str) -> bool:
    """Return whether a line has the dashes that sqlcmd writes under a header without a separator."""
    return "-" in line and not line.strip("- ")


# sqlcmd's columns without a separator. The line of dashes gives the width of each column.


_SIDE_BY_SIDE = re.compile(r"^-+(?: -+)+ *\r?$", re.MULTILINE)
_DASHES = re.compile(r"-+")
_FILLER = "\uffff"
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
# How much room a character takes differs between releases and code pages of sqlcmd, but one for all is the rule.
_ROOMS: tuple[Callable[[str], int], ...] = (
    lambda character: 2 if ord(character) > 0xFFFF else 1,
    lambda character: 2 if unicodedata.east_asian_width(character) in "WF" else 1,
    lambda character: len(character.encode("utf-8", "surrogatepass")),
)


def is_fixed_width(text: str) -> bool:
    """Return True if dashes are in adjacent columns, with one blank between them."""
    return _SIDE_BY_SIDE.search(text) is not None


@dataclass(frozen=True)
class FixedColumns:
    """The names of the columns and where each begins and ends.

    ``is_trimmed`` if -W took the blanks off: then dashes are as long as names, and say nothing of the rows.
    """

    names: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    is_trimmed: bool

    def split(self, line: str) -> list[str] | str:
        """Return the cells of a line, or the reason why it is not a row."""
        texts = line.split() if self.is_trimmed else cut(line, self.spans)
        if texts is None:
            return "it is not aligned with the dashes of its header"
        if len(texts) != len(self.names):
            return f"it has {len(texts)} words, the header {len(self.names)}: -W needs a separator (-s)"
        return texts if self.is_trimmed else self._find_cut(texts) or texts

    def _find_cut(self, texts: Sequence[str]) -> str | None:
        """Return the reason why a row is not trusted: a text fills a column that is narrower than the view's."""
        for name, text, (start, end) in zip(self.names, texts, self.spans, strict=True):
            if end - start < LONGEST.get(name, 0) and len(text) >= end - start:
                return f"{name} fills its {end - start} characters: sqlcmd may have cut it off (-y, -Y)"
        return None


def find_columns(line: str, below: str, file: str) -> FixedColumns | None:
    """Return the columns of a header line and the dashes below it, or None for other lines.

    Raises InputError where a name fills its column and begins a known one: values may be cut off as well.
    """
    if not are_dashes(below):
        return None
    spans = tuple(match.span() for match in _DASHES.finditer(below))
    written = [line[start:end].strip() for start, end in spans]
    names, are_full = fold_columns(written), list[bool]()
    for name, text, (start, end) in zip(names, written, spans, strict=True):
        are_full.append(len(text) == end - start)
        is_full = name and are_full[-1] and name not in NAMES
        if (
            is_full
            and any(column in NAMES for column in names)
            and any(known_name.startswith(name) for known_name in NAMES)
        ):
            raise export_again(file, f"sqlcmd has cut off the name of its column {name}", "-Y 0 and -y 0")
    if len(spans) > 1 and not any(names[1:]) and len(NAMES.intersection(line.lower().split())) > 1:
        shown = ", ".join(line.lower().split())
        raise export_again(file, f"its blanks have collapsed, so cells are not under their columns: {shown}", "-s")
    return FixedColumns(names, spans, all(are_full)) if any(names) else None


def cut(line: str, spans: Sequence[tuple[int, int]]) -> list[str] | None:
    """Return the values under the dashes, or None if any text is between the columns."""
    fitting_texts = []
    # Fillers follow the characters that take more than one column.
    rooms = () if line.isascii() else _ROOMS
    for text in chain([line], (_with_fillers(line, room) for room in rooms)):
        is_between = any(text[end:start].strip(" ") for (_, end), (start, _) in pairwise(spans))
        if is_between or text[spans[-1][1] :].strip():
            continue
        fitting_texts.append(text)
        # sqlcmd fills up the last column too, so the right one has the length of the dashes.
        if len(text) == spans[-1][1]:
            fitting_texts = [text]
            break
    if not fitting_texts:
        return None
    return [fitting_texts[0][start:end].replace(_FILLER, "").strip() for start, end in spans]


def _with_fillers(line: str, room: Callable[[str], int]) -> str:
    return _BEYOND_ASCII.sub(lambda match: match[0] + _FILLER * (room(match[0]) - 1), line)
