"""USE of a database that its own batch makes: the batch is compiled before, when there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from routing.importing.tsql.holdings import NamedRows
from routing.importing.tsql.script_statements import DropDatabase, RenameDatabase, quote
from routing.importing.tsql.state import DATABASES
from routing.importing.tsql.tokens import Lexeme, LexemeKind, tokenize
from routing.importing.tsql.tree import (
    BatchFault,
    BlockNode,
    DefinitionNode,
    IfElse,
    LoopNode,
    RunText,
    ScriptNode,
    TryCatch,
    UseNode,
)
from routing.importing.tsql.vocabulary import speaks_of_routing

_NO_DATABASE = 911
_OTHER_THINGS = frozenset(["AUDIT", "SCOPED", "ENCRYPTION"])


def find_early_use(nodes: Sequence[ScriptNode], holdings: NamedRows | None) -> BatchFault | None:
    """Return the fault of a batch that uses a database before it is there; without a state nothing is sure."""
    if holdings is None:
        return None
    created_names: set[str] = set()
    known_names: set[str] = set()
    for node in _walk(nodes):
        if isinstance(node, UseNode) and node.name is not None:
            name = node.name.casefold()
            if name in created_names:
                why = f"USE: the database {quote(node.name)} is not there yet when its batch is compiled"
                return BatchFault(node.place, why, _NO_DATABASE)
            known_names.add(name)
        elif isinstance(node, DefinitionNode):
            known_names |= {one.name.casefold() for one in node.statements if isinstance(one, DropDatabase)}
        for name in _made_by(node):
            is_there = holdings.holds_database(name)
            is_missing = holdings.tells(DATABASES, "", name) and not is_there
            if not is_there and (is_missing or name not in known_names):
                created_names.add(name)
    return None


def _walk(nodes: Sequence[ScriptNode | None]) -> Iterator[ScriptNode]:
    for node in nodes:
        if node is None:
            continue
        yield node
        if isinstance(node, (BlockNode, TryCatch)):
            yield from _walk(node.body)
        if isinstance(node, TryCatch):
            yield from _walk(node.handler)
        elif isinstance(node, IfElse):
            yield from _walk((node.then, node.otherwise))
        elif isinstance(node, LoopNode):
            yield from _walk((node.body,))


def _made_by(node: ScriptNode) -> Iterator[str]:
    """Yield the databases that a statement makes, in lower case."""
    if isinstance(node, DefinitionNode):
        yield from _find_created(node.words)
        yield from (one.new_name.casefold() for one in node.statements if isinstance(one, RenameDatabase))
    elif isinstance(node, RunText):
        for word in node.value:
            if word.kind is LexemeKind.STRING and speaks_of_routing(word.text):
                yield from _find_created(tokenize(word.text).lexemes)


def _find_created(words: Sequence[Lexeme]) -> Iterator[str]:
    for verb, noun, name in zip(words, words[1:], words[2:], strict=False):
        is_database = verb.upper == "CREATE" and noun.upper == "DATABASE" and name.upper not in _OTHER_THINGS
        if is_database and name.kind in (LexemeKind.WORD, LexemeKind.NAME):
            yield name.text.casefold()
