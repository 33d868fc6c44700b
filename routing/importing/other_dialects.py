"""Recognise scripts for databases other than SQL Server by words that T-SQL does not have."""

from __future__ import annotations

import re
from pathlib import PurePath

from routing.importing.tsql.tokens import TextMode, segments
from routing.importing.tsql.vocabulary import speaks_of_routing

_MYSQL, _POSTGRES, _ORACLE, _SQLITE = "MySQL", "PostgreSQL", "Oracle", "SQLite"
_OTHER = "another database"
"""The name where several databases have a sign."""
_TYPES = (
    "text|int[248]?|integer|bigint|smallint|numeric|date|time|timestamp|jsonb?|uuid|varchar|regclass|bool(?:ean)?"
)
_DIALECT_SIGNS = (
    ("ClickHouse", r"\bENGINE\s*=\s*\w*MergeTree\b|\bLowCardinality\s*\(|\bUInt(?:8|16|32|64)\b"),
    ("BigQuery", r"`[\w-]+\.[\w-]+\.[\w*-]+`"),
    ("DB2", r"\bMODE\s+DB2SQL\b"),
    (_MYSQL, r"^DELIMITER\s+\S+\s*$|\)\s*ENGINE\s*=\s*(?:InnoDB|MyISAM|Aria)\b|\bAUTO_INCREMENT\b|\bDEFINER\s*="),
    (_MYSQL, r"\bUNSIGNED\b|\bDEFAULT\s+CHARSET\b|\bLOCK\s+TABLES\b|\bON\s+DUPLICATE\s+KEY\b|\bTINYTEXT\b"),
    (_POSTGRES, r"\$\w*\$\s*(?:LANGUAGE\b|BEGIN\b|DECLARE\b|;|$)|\bplpgsql\b|\bBIGSERIAL\b|\bjsonb\b|\bILIKE\b"),
    (_POSTGRES, rf"\bSERIAL\s+(?:PRIMARY|NOT|UNIQUE)|\bCREATE\s+EXTENSION\b|::(?:{_TYPES})\b|\bTIMESTAMPTZ\b"),
    (
        _POSTGRES,
        r"\bON\s+CONFLICT\b|\bOWNER\s+TO\b|^\\(?:c|connect|i)\s|\bFROM\s+stdin\b|\bAS\s+ENUM\b|(?<![\w.])public\.\w",
    ),
    (_MYSQL, r"\bHANDLER\s+FOR\b|\bENUM\s*\(|\b(?:MEDIUM|LONG)TEXT\b"),
    (_SQLITE, r"^PRAGMA\b|\bAUTOINCREMENT\b|\bWITHOUT\s+ROWID\b|\bINSERT\s+OR\s+(?:REPLACE|IGNORE)\b"),
    (_ORACLE, r"\b(?:N?VARCHAR2|PLS_INTEGER|SYSDATE|SYSTIMESTAMP)\b|\bDBMS_\w+\s*\.|\bFROM\s+dual\b"),
    (_ORACLE, r"%(?:ROW)?TYPE\b|\bNUMBER\s*\(|\bPACKAGE\s+BODY\b|\.(?:NEXTVAL|CURRVAL)\b|\bEXECUTE\s+IMMEDIATE\b"),
    (_ORACLE, r"^(?:WHENEVER\s+SQLERROR|SET\s+(?:SERVEROUTPUT|DEFINE))\b|^/\s*$"),
    (_ORACLE, r"\bCREATE\s+PACKAGE\b"),
    ("Informix or Firebird", r"\bEND\s+(?:PROCEDURE|FUNCTION)\b|^SET\s+TERM\b"),
    ("Snowflake", r"\bCREATE\s+STAGE\b"),
    (_OTHER, r"\bCREATE\s+OR\s+REPLACE\b|\bFOR\s+EACH\s+ROW\b|\bCOMMENT\s+ON\s+\w+\b"),
    (_OTHER, r"\bEND\s+(?:LOOP|REPEAT)\b|\bEND\s+(?:IF|WHILE|CASE)\s*;|\bEXCEPTION\s+WHEN\b"),
    (_OTHER, r"\bIDENTIFIED\s+BY\b|\bLIMIT\s+\d|\bAS\s+IDENTITY\b"),
    (_OTHER, r"`[^`\n]+`|\b(?:INT|FLOAT)64\b|\)\s*ENGINE\s*=\s*\w+|\bEND\s*@\s*$|\bBEGIN\s+ATOMIC\b(?!\s+WITH\b)"),
    (_OTHER, r"\bCREATE\s+(?:TABLE|DATABASE|SCHEMA|INDEX)\s+IF\s+NOT\s+EXISTS\b"),
)
_SIGNS = tuple(re.compile(sign, re.IGNORECASE | re.MULTILINE) for _, sign in _DIALECT_SIGNS)
# A backslash before a quotation mark in a string ends none in most other databases.
_ESCAPED_QUOTE = re.compile(r"'[^'\n]*\\'\w[^'\n]*'\s*[,)]")
# What only T-SQL has.
_TSQL = re.compile(
    r"^GO\s*$|\[[a-z_]\w*\]\s*[.(,;]|\bCREATE\s+OR\s+ALTER\b|\bSET\s+(?:NOCOUNT|XACT_ABORT)\b|\bDECLARE\s+@|\bN'"
    r"|\bNVARCHAR\b|\bIDENTITY\s*\(|\bdbo\.|\b(?:CONTRACT|MESSAGE\s+TYPE)\b|\bsys\.\w+",
    re.IGNORECASE | re.MULTILINE,
)
# The signs are near the beginning. Later parts of a dump are data.
_LONGEST = 200_000
_FOLDERS = {
    **dict.fromkeys(("mysql", "mariadb"), _MYSQL),
    **dict.fromkeys(("postgres", "postgresql", "pgsql", "pg"), _POSTGRES),
    **dict.fromkeys(("oracle", "plsql", "ora"), _ORACLE),
    **dict.fromkeys(("sqlite", "sqlite3"), _SQLITE),
}


def find_dialect(text: str, path: PurePath) -> str | None:
    """Return the database that a script is for, by its text or a folder's name; None for T-SQL and for no sign."""
    code = _code_of(text[:_LONGEST])
    signs = (place for place in range(len(_SIGNS)) if _SIGNS[place].search(code))
    by_text = next((_DIALECT_SIGNS[place][0] for place in signs), None)
    names = [*(folder.casefold() for folder in path.parts[:-1]), *re.split(r"[._-]", path.stem.casefold())]
    by_name = next((_FOLDERS[name] for name in reversed(names) if name in _FOLDERS), None)
    if by_text is None and _ESCAPED_QUOTE.search(text[:_LONGEST]):
        by_text = _OTHER
    dialect = by_name or by_text if by_text == _OTHER else by_text or by_name
    return None if dialect is None or _TSQL.search(code) or speaks_of_routing(text) else dialect


def _code_of(text: str) -> str:
    """Return the lines of a text without comments, the insides of strings, and blanks beside one another."""
    pieces = []
    for part in segments(text)[0]:
        if part.mode in (TextMode.CODE, TextMode.BRACKET):
            pieces.append(text[part.start : part.end])
        else:
            pieces.append({TextMode.STRING: "''", TextMode.LINE_COMMENT: " \n"}.get(part.mode, " "))
    lines = (" ".join(line.split()) for line in "".join(pieces).splitlines())
    return "\n".join(filter(None, lines))
