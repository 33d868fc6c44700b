"""Drop parts of a script without an effect, so that a large script needs little memory.

Long runs of statements that only load data are not tokenized. In a parsed batch, statements without routing are
merged. The body of a module without routing is read again from its text at each call.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import cache

from routing.importing.tsql import tree
from routing.importing.tsql.batch_course import ALWAYS, StoredProcedure
from routing.importing.tsql.interpreter import ScriptInterpreter
from routing.importing.tsql.script_run import ScriptRun
from routing.importing.tsql.session_statements import may_start_transaction
from routing.importing.tsql.statement_parser import ParserSettings
from routing.importing.tsql.tokens import (
    COMMENTS,
    OPENER,
    OPENING,
    LexemeKind,
    LexicalState,
    SkippedText,
    close_segment,
)
from routing.importing.tsql.vocabulary import NOUNS, RESERVED, STARTERS, find_unknown_variable

# Leave out long runs of statements such as INSERT … VALUES. Each omitted statement is complete, and holds only
# literals and plain names. The first and last statements of a run stay, so that the text around it keeps its
# neighbours.


KEPT_LEXEMES = 300
"""The lexemes that stay at the begin of a run. No earlier statement looks further ahead, not even a GRANT for its
TO.
"""

_MODULE = re.compile(r"\b(?:PROC|PROCEDURE|FUNCTION|TRIGGER|VIEW)\b", re.IGNORECASE)
# A private character marks a variable without value, which may be any text.
_STRING = "[Nn]?'[^'\ue000-\ue1ff]*+(?:''[^'\ue000-\ue1ff]*+)*+'"
_NUMBER = r"(?:0x[0-9A-F]++|[0-9]++(?:\.[0-9]*+)?(?:E[+-]?[0-9]++)?)(?![\w.@#$])"
_KEYWORDS = "|".join(sorted(RESERVED | STARTERS | {*NOUNS, "ADDRESS", "STATE"}))
_NAME = rf"(?:\[[A-Za-z0-9_ .-]++\](?!\])|(?!(?:{_KEYWORDS})(?![\w@#$]))[A-Za-z_][A-Za-z0-9_]*+(?![\w@#$]))"
_ = r"[ \t\n]*+"
_GAP = r"[ \t\n]++"
_TYPE = (
    r"\[?(?:bigint|binary|bit|char|date|datetime|datetime2|datetimeoffset|decimal|float|int|money|nchar|ntext"
    r"|numeric|nvarchar|real|smalldatetime|smallint|smallmoney|text|time|tinyint|uniqueidentifier|varbinary"
    rf"|varchar|xml)\b\]?(?:{_}\({_}(?:max|[0-9]++(?:{_},{_}[0-9]++)?){_}\))?"
)
_LITERAL = rf"(?:{_STRING}|[+-]?{_NUMBER}|NULL(?![\w@#$])|DEFAULT(?![\w@#$]))"
_CALL = r"(?:GETDATE|GETUTCDATE|NEWID|SYSDATETIME|SYSUTCDATETIME)"
_VALUE = (
    rf"(?:{_LITERAL}|CAST{_}\({_}{_LITERAL}{_GAP}AS{_GAP}{_TYPE}{_}\)"
    rf"|CONVERT{_}\({_}{_TYPE}{_},{_}{_LITERAL}(?:{_},{_}[0-9]++)?{_}\)|{_CALL}{_}\({_}\))"
)
_TABLE = rf"{_NAME}(?:{_}\.{_}{_NAME}){{0,3}}+"
_COLUMNS = rf"\({_}{_NAME}(?:{_},{_}{_NAME})*+{_}\)"
_ROW = rf"\({_}{_VALUE}(?:{_},{_}{_VALUE})*+{_}\)"
_WHERE = rf"WHERE{_GAP}{_NAME}{_}={_}{_VALUE}(?:{_GAP}AND{_GAP}{_NAME}{_}={_}{_VALUE})*+"
_NEXT = re.compile(rf"{OPENER.pattern}|(?<![\w@#$])(?:INSERT|UPDATE|DELETE)(?![\w@#$])", re.IGNORECASE)
_BLANKS = re.compile(r"[ \t\n]*")
# Never more than there are: a name in parts counts as one.
_LEXEME = re.compile("[Nn]?'(?:[^'\ue000-\ue1ff]|'')*'|\\[[A-Za-z0-9_ .-]*\\]|[\\w.+-]+|[(),]")
# Python 3.10 has no possessive quantifiers, without which the pattern of a statement is slow: it skips nothing.
_CAN_SKIP = sys.version_info >= (3, 11)


@cache
def _statement() -> re.Pattern[str]:
    """Return the pattern of a statement, which takes time to compile and few scripts need."""
    return re.compile(
        rf"INSERT{_GAP}(?:INTO{_GAP})?+{_TABLE}{_}(?:{_COLUMNS}{_})?+VALUES{_}{_ROW}(?:{_},{_}{_ROW})*+"
        rf"(?P<end>{_};)?+"
        # These end in no parenthesis and need their semicolon: UPDATE behind 'FOR' would be a clause.
        rf"|(?:UPDATE{_GAP}{_TABLE}{_GAP}SET{_GAP}{_NAME}{_}={_}{_VALUE}(?:{_},{_}{_NAME}{_}={_}{_VALUE})*+"
        rf"(?:{_GAP}{_WHERE})?+|DELETE{_GAP}(?:FROM{_GAP})?+{_TABLE}(?:{_GAP}{_WHERE})?+)(?P<close>{_};)",
        re.IGNORECASE | re.ASCII,
    )


def find_data_runs(text: str) -> list[SkippedText]:
    """Find the parts of a batch that can be left out, in order.

    A batch that makes a procedure or similar module keeps all its parts, because they count at each call.
    """
    if not _CAN_SKIP or len(text) < KEPT_LEXEMES or _MODULE.search(text):
        return []
    return _RunFinder(text).find()


class _RunFinder:
    def __init__(self, text: str) -> None:
        self._text = text
        self._runs: list[SkippedText] = []
        self._lexemes = self._skipped = self._start = self._last = 0
        self._ends_in_semicolon = False

    def find(self) -> list[SkippedText]:
        text, position = self._text, 0
        while (match := _NEXT.search(text, position)) is not None:
            is_neighbour = match.start() == position
            mode = OPENING.get(match.group())
            statement = None if mode else _statement().match(text, match.start())
            if mode is not None:
                position, _ = close_segment(text, match.end(), LexicalState(mode, 1), len(text))
                if not is_neighbour or mode not in COMMENTS:
                    self._end_run()
            elif statement is not None:
                position = statement.end()
                self._add(statement, is_neighbour)
            else:
                position = match.end()
                self._end_run()
            blanks = _BLANKS.match(text, position)
            position = blanks.end() if blanks else position
        self._end_run()
        return self._runs

    def _add(self, statement: re.Match[str], is_neighbour: bool) -> None:
        """Add a statement to the run, or begin another: of one, all or none end in a semicolon."""
        ends_in_semicolon = statement.lastgroup is not None
        if not is_neighbour or ends_in_semicolon != self._ends_in_semicolon:
            self._end_run()
        self._ends_in_semicolon = ends_in_semicolon
        self._last = statement.start()
        if self._lexemes < KEPT_LEXEMES:
            self._lexemes += len(_LEXEME.findall(statement.group()))
            self._start = statement.end()
        else:
            self._skipped += 1

    def _end_run(self) -> None:
        if self._skipped > 1:
            self._runs.append(SkippedText(self._start, self._last, self._skipped - 1))
        self._lexemes = self._skipped = 0


# The part of a parsed batch that is kept, to run it repeatedly against instances.


# Times make no difference to a statement that only may be named.
_SETTINGS = ParserSettings(datetime.max.replace(tzinfo=timezone.utc), is_script=True)


def keep_batch(parsed: tree.ParsedBatch, read_again: Callable[[], tree.ParsedBatch]) -> tree.ParsedBatch:
    """Return a batch of a script without parts that have no effect. ``read_again`` returns the full one."""
    if len(parsed.nodes) == 1 and isinstance(parsed.nodes[0], tree.ModuleNode):
        module = parsed.nodes[0]
        if not _is_silent(module):
            return parsed
        silent_module = replace(module, read_body=cache(lambda: _body_of(read_again())), is_silent=True)
        return replace(parsed, nodes=(silent_module,))
    return replace(parsed, nodes=_merge(parsed.nodes))


def _is_silent(module: tree.ModuleNode) -> bool:
    """Return True if no statement of a module is reported when it does not run."""
    run = ScriptRun(None, None)
    procedure = StoredProcedure(module, None, is_sure=False)
    ScriptInterpreter(run, _SETTINGS).calls.name_body(procedure, ALWAYS)
    return not run.problems


def _body_of(parsed: tree.ParsedBatch) -> tuple[tree.ScriptNode, ...]:
    module = parsed.nodes[0]
    assert isinstance(module, tree.ModuleNode)
    return module.read_body()


def _merge(nodes: Sequence[tree.ScriptNode]) -> tuple[tree.ScriptNode, ...]:
    """Merge neighbours that only reset @@ERROR. One that may begin a transaction represents the others."""
    merged: list[tree.ScriptNode] = []
    for node in nodes:
        before = merged[-1] if merged else None
        if not (before is not None and _is_silent_other(before) and _is_silent_other(node)):
            merged.append(node)
        elif may_start_transaction(node.words):
            merged[-1] = node
    return tuple(merged)


def _is_silent_other(node: tree.ScriptNode) -> bool:
    """Return True if a statement is not about routing and sets no variable, so that only plain words were kept."""
    return isinstance(node, tree.OtherStatement) and all(
        word.kind is LexemeKind.WORD and not word.text.startswith("@") and find_unknown_variable(word.text) is None
        for word in node.words
    )
