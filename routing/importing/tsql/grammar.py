"""Parse the lexemes of a batch into statements inside one another, and say why SQL Server cannot parse it.

A batch is parsed before any of it runs. Only causes that are certain are faults: T-SQL that is merely not known
here is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from routing.importing.tsql import tree
from routing.importing.tsql.database_definitions import find_definition, find_other_fault
from routing.importing.tsql.extents import at_end_of_condition, at_query_in_parentheses, begins_statement
from routing.importing.tsql.parse_faults import NOT_BLOCKS, find_foreign_text, find_imbalance, find_misspelt_start
from routing.importing.tsql.script_statements import RESERVED_WORD, SYNTAX, quote
from routing.importing.tsql.statement_parser import Locate, ParserSettings, StatementParser
from routing.importing.tsql.tokens import LexemeKind, LexemeList, TextMode
from routing.importing.tsql.tree import Place, Words
from routing.importing.tsql.vocabulary import RESERVED, STARTERS, find_unknown_variable

DEEPEST = 100
"""Blocks inside one another."""

_TRANSACTION = frozenset(["TRAN", "TRANSACTION", "DISTRIBUTED"])
_BEFORE_STATEMENTS = frozenset(["BEGIN", "TRY", "CATCH", "ELSE"])
_PROCEDURES = ("sp_", "xp_")
_NOT_CLOSED = {
    TextMode.STRING.value: 105,
    TextMode.QUOTED.value: 105,
    TextMode.BRACKET.value: 105,
    TextMode.COMMENT.value: 113,
}
_NOT_FIRST, _LABEL_TWICE, _NO_LABEL, _BREAK, _CONTINUE, _NOT_ALONE = 111, 132, 133, 135, 136, 1067
_PLANS = frozenset(["SHOWPLAN_XML", "SHOWPLAN_ALL", "SHOWPLAN_TEXT"])


class _NestingError(Exception):
    """Blocks nest deeper than any server takes."""


def parse_batch(tokens: LexemeList, locate: Locate, settings: ParserSettings) -> tree.ParsedBatch:
    """Return the statements of a batch, or of the text of an EXEC, and its faults."""
    return _BatchParser(tokens, locate, settings).parse()


class _BatchParser(StatementParser):
    def __init__(self, tokens: LexemeList, locate: Locate, settings: ParserSettings) -> None:
        super().__init__(tokens, locate, settings)
        self._labels: dict[str, Place] = {}
        self._statements = 0
        self._depth = 0
        self._loops = 0
        self._lacks_catch = False
        self._is_first = False

    def parse(self) -> tree.ParsedBatch:
        self._is_balanced = self._check_balance()
        unread: Place | None = None
        nodes: list[tree.ScriptNode] = []
        try:
            while not self._cursor.at_end:
                self._append(nodes)
        except _NestingError:
            unread = self._place(self._cursor.position)
        self._check_whole(nodes)
        return tree.ParsedBatch(
            nodes=tuple(nodes),
            faults=tuple(sorted(self._faults, key=lambda fault: fault.place[1])),
            unread=unread,
            statements=self._statements,
        )

    def _append(self, nodes: list[tree.ScriptNode]) -> None:
        if not self._cursor.take(";"):
            nodes.append(self._statement(is_first=not nodes))

    def _check_balance(self) -> bool:
        """Return True if all groups are closed and the batch has no foreign text."""
        tokens = self._tokens
        foreign = find_foreign_text(tokens)
        for text in foreign:
            self._add_fault(self._locate(text.row), text.why, SYNTAX)
        if tokens.cut is not None:
            why = f"the text ends inside a {tokens.cut_in} that begins here"
            self._add_fault(self._locate(tokens.cut), why, _NOT_CLOSED.get(tokens.cut_in))
            return False
        imbalance = find_imbalance(tokens.lexemes) if self._is_whole else None
        if imbalance is not None:
            self._add_fault(self._locate(imbalance.row), imbalance.why, SYNTAX)
        return imbalance is None and not foreign

    def _check_whole(self, nodes: list[tree.ScriptNode]) -> None:
        for goto in self._gotos:
            if goto.label not in self._labels:
                self._fault(goto.place, f"GOTO: its batch has no label {quote(goto.words[1].text)}", _NO_LABEL)
        # Names are looked at once all can be parsed. One SET as a whole script is a piece of a batch.
        is_piece = not self._settings.is_script and len(nodes) == 1 and isinstance(nodes[0], tree.AssignNode)
        for row, why, number in self._names.find_faults() if not (self._faults or is_piece) else ():
            self._fault(self._locate(row), why, number)
        plans = [node for node in nodes if isinstance(node, tree.SetOptions) and _PLANS & set(node.options)]
        if plans and len(nodes) > 1:
            self._fault(plans[0].place, f"SET {plans[0].options[0]} must be alone in its batch", _NOT_ALONE)

    # Statements

    def _statement(self, is_first: bool = False) -> tree.ScriptNode:
        if self._depth >= DEEPEST:
            raise _NestingError
        if self._cursor.at_label:
            return self._label()
        self._depth += 1
        self._count()
        self._check_spelling()
        try:
            return self._read(is_first)
        finally:
            self._depth -= 1

    def _read(self, is_first: bool) -> tree.ScriptNode:
        start, word = self._cursor.position, self._cursor.peek()
        self._is_first = is_first and self._depth == 1
        if self._is_first and self._at_call():
            return self._call(start)
        if word.upper in STARTERS and not begins_statement(self._cursor):
            return self._other_statement(start)
        return _READERS.get(word.upper, _BatchParser._other_statement)(self, start)

    def _at_call(self) -> bool:
        """Return whether a procedure is called without EXEC, as the first statement of a batch may."""
        first = self._cursor.peek()
        is_name = first.kind in (LexemeKind.WORD, LexemeKind.NAME) and first.upper not in STARTERS
        return is_name and not first.text.startswith("@") and find_unknown_variable(first.text) is None

    def _count(self) -> None:
        first = self._cursor.peek()
        before = self._cursor.peek(-1) if self._cursor.position else None
        is_call = before is None and first.text.lower().startswith(_PROCEDURES)
        is_script = self._settings.is_script or self._statements > 0
        is_begun = first.upper in STARTERS and (before is None or before.text in (";", ":") or is_script)
        # Statements left out before this one count like this one: see `kept_batches`.
        self._statements += (is_call or is_begun) * (1 + self._tokens.skipped.get(first.start, 0))

    def _check_spelling(self) -> None:
        cursor = self._cursor
        is_first = cursor.position == 0
        before = None if is_first else cursor.peek(-1)
        if before is None or before.text == ";" or before.upper in _BEFORE_STATEMENTS:
            why = find_misspelt_start(cursor.peek(), cursor.peek(1), cursor.peek(2), is_first)
            if why is not None:
                self._fault(self._place(cursor.position), why)

    def _label(self) -> tree.ScriptNode:
        place, name = self._place(self._cursor.position), self._cursor.next().text
        self._cursor.next()
        if name.casefold() in self._labels:
            self._fault(place, f"the label {quote(name)} occurs twice in the batch", _LABEL_TWICE)
        self._labels.setdefault(name.casefold(), place)
        return tree.LabelNode(place=place, name=name.casefold())

    # What governs others

    def _governed(self, keyword: str, place: Place) -> tree.ScriptNode | None:
        cursor = self._cursor
        is_end = cursor.at("END") and cursor.peek(1).upper != "CONVERSATION"
        if cursor.at_end or cursor.at(";") or is_end or cursor.at("ELSE"):
            self._fault(place, f"the {keyword} has no statement")
            return None
        return self._statement()

    def _condition(self) -> Words:
        cursor = self._cursor
        cursor.next()
        start = cursor.position
        while not (at_end_of_condition(cursor) or (cursor.position > start and at_query_in_parentheses(cursor))):
            cursor.skip_item()
        return self._words_since(start)

    def _if(self, start: int) -> tree.ScriptNode:
        place = self._place(start)
        condition = self._condition()
        then = self._governed("IF", place)
        end = self._place(self._cursor.position)
        otherwise = self._governed("ELSE", end) if self._take_else() else None
        return tree.IfElse(place=place, words=condition, then=then, otherwise=otherwise)

    def _take_else(self) -> bool:
        cursor, position = self._cursor, self._cursor.position
        while cursor.take(";"):
            pass
        if cursor.take("ELSE"):
            return True
        cursor.position = position
        return False

    def _lone_else(self, start: int) -> tree.ScriptNode:
        place = self._place(start)
        self._cursor.next()
        return tree.IfElse(place=place, is_else=True, then=self._governed("ELSE", place))

    def _while(self, start: int) -> tree.ScriptNode:
        place = self._place(start)
        condition = self._condition()
        self._loops += 1
        body = self._governed("WHILE", place)
        self._loops -= 1
        return tree.LoopNode(place=place, words=condition, body=body)

    def _leave_loop(self, start: int) -> tree.ScriptNode:
        word = self._cursor.next().upper
        if not self._loops:
            number = _BREAK if word == "BREAK" else _CONTINUE
            self._fault(self._place(start), f"{word} is outside a loop", number)
        return self._skipped_statement(start)

    def _begin(self, start: int) -> tree.ScriptNode:
        place, cursor, following = self._place(start), self._cursor, self._cursor.peek(1).upper
        if following in _TRANSACTION:
            return self._transaction(start)
        if following in NOT_BLOCKS:
            return self._other_statement(start)
        cursor.next()
        if cursor.take("TRY"):
            return self._try(place)
        if cursor.take("CATCH"):
            if not self._lacks_catch:
                self._fault(place, "no TRY block ends right before this CATCH")
            return tree.TryCatch(place=place, body=(), handler=self._catch(), catch_line=place[1])
        if cursor.take("ATOMIC", "WITH"):
            cursor.skip_group()
        body = self._block("END")
        if not body:
            self._fault(place, "the BEGIN … END that begins here is empty")
        return tree.BlockNode(place=place, body=body)

    def _try(self, place: Place) -> tree.ScriptNode:
        body = self._block("END TRY")
        if not body:
            self._fault(place, "the TRY block that begins here is empty")
        line = self._place(self._cursor.position)[1]
        if not self._cursor.take("BEGIN", "CATCH"):
            self._lacks_catch = True
            self._fault(place, "no CATCH follows the TRY block that begins here right behind its END TRY")
            return tree.TryCatch(place=place, body=body, handler=(), catch_line=line)
        return tree.TryCatch(place=place, body=body, handler=self._catch(), catch_line=line)

    def _catch(self) -> tuple[tree.ScriptNode, ...]:
        self._handlers += 1
        body = self._block("END CATCH")
        self._handlers -= 1
        return body

    def _block(self, closing: str) -> tuple[tree.ScriptNode, ...]:
        cursor = self._cursor
        nodes: list[tree.ScriptNode] = []
        while not cursor.at_end:
            if cursor.at("END") and cursor.peek(1).upper != "CONVERSATION":
                place = self._place(cursor.position)
                actual = self._take_end()
                if actual != closing:
                    self._fault(place, f"{closing} was expected, not {actual}")
                break
            self._append(nodes)
        return tuple(nodes)

    def _take_end(self) -> str:
        self._cursor.next()
        if self._cursor.peek().upper in ("TRY", "CATCH"):
            return f"END {self._cursor.next().upper}"
        return "END"

    def _end(self, start: int) -> tree.ScriptNode:
        """Read END CONVERSATION, or an END too many, which the balance reports."""
        if self._cursor.peek(1).upper == "CONVERSATION":
            return self._other_statement(start)
        self._take_end()
        return self._skipped_statement(start)

    def _definition(self, start: int) -> tree.ScriptNode:
        cursor = self._cursor
        name_at = 3 if cursor.at("CREATE", "OR", "ALTER") else 1
        verb, kind = cursor.peek().upper, cursor.peek(name_at).upper
        if (verb, kind) in tree.FIRST_IN_BATCH:
            return self._first_in_batch(start, name_at)
        if verb == "DROP" and kind in ("PROC", "PROCEDURE"):
            return self._drop_modules(start)
        read = find_definition(cursor)
        if read is not None:
            return self._read_definition(start, read)
        refusal = find_other_fault(cursor, name_at)
        if refusal is not None:
            self._fault(self._place(start), f"{verb} {kind}: {refusal.why}", refusal.number)
        self._skip()
        return self._skipped_statement(start)

    def _first_in_batch(self, start: int, name_at: int) -> tree.ScriptNode:
        """Read a procedure, view or similar module at the start of its batch. The rest is its body."""
        cursor, place = self._cursor, self._place(start)
        verb, kind = cursor.peek().upper, cursor.peek(name_at).upper
        if self._depth > 1:
            self._fault(place, f"{verb} {kind} cannot be in a block or under a condition", RESERVED_WORD)
        elif not self._is_first:
            self._fault(place, f"{verb} {kind} must be the first statement of its batch", _NOT_FIRST)
        if kind in tree.AFTER_CREATE:
            self._names.allow_any()
            self._skip()
            return self._skipped_statement(start)
        cursor.position += name_at + 1
        name, key = tree.read_name(cursor)
        if cursor.peek(-1).upper in RESERVED:
            self._fault(place, f"{verb} {kind}: {quote(name)} is a reserved keyword", RESERVED_WORD)
        head = cursor.position
        tree.find_body(cursor, kind)
        header = self._words_since(head)
        if kind == "VIEW":
            self._skip_view(place)
            return self._skipped_statement(start)
        self._names.declare_all(head, cursor.position)
        statement = "CREATE OR ALTER" if name_at > 1 else verb
        return self._read_module(place, statement, kind, name, key, header)

    def _skip_view(self, place: Place) -> None:
        cursor = self._cursor
        if cursor.at_end:
            return
        self._skip()
        has_semicolon = cursor.at(";")
        while cursor.take(";"):
            pass
        if not cursor.at_end:
            self._fault(place, "a view must be alone in its batch", _NOT_FIRST if has_semicolon else RESERVED_WORD)

    def _read_module(
        self, place: Place, verb: str, kind: str, name: str, key: tuple[str, str], header: Words
    ) -> tree.ScriptNode:
        cursor = self._cursor
        self._module = {"PROC": "procedure"}.get(kind, kind.lower())
        body: list[tree.ScriptNode] = []
        while not cursor.at_end:
            self._append(body)
        return tree.ModuleNode(
            place=place,
            verb=verb,
            kind=self._module,
            name=name,
            key=key,
            parameters=tree.read_parameters(header) if self._module == "procedure" else (),
            read_body=lambda: tuple(body),
        )


# Not in the parser: with methods bound to itself it would outlive its work, with all lexemes of its batch.
_READERS: Mapping[str, Callable[[_BatchParser, int], tree.ScriptNode]] = {
    "ALTER": _BatchParser._definition,
    "BACKUP": _BatchParser._brings_database,
    "BEGIN": _BatchParser._begin,
    "BREAK": _BatchParser._leave_loop,
    "COMMIT": _BatchParser._transaction,
    "CONTINUE": _BatchParser._leave_loop,
    "CREATE": _BatchParser._definition,
    "DECLARE": _BatchParser._declare,
    "DBCC": _BatchParser._brings_database,
    "DROP": _BatchParser._definition,
    "ELSE": _BatchParser._lone_else,
    "END": _BatchParser._end,
    "EXEC": _BatchParser._execute,
    "EXECUTE": _BatchParser._execute,
    "GOTO": _BatchParser._goto,
    "IF": _BatchParser._if,
    "RAISERROR": _BatchParser._raise,
    "RESTORE": _BatchParser._brings_database,
    "RETURN": _BatchParser._return,
    "ROLLBACK": _BatchParser._transaction,
    "SAVE": _BatchParser._transaction,
    "SELECT": _BatchParser._select,
    "SET": _BatchParser._set,
    "THROW": _BatchParser._throw,
    "USE": _BatchParser._use,
    "WHILE": _BatchParser._while,
}
