"""What commands print about messages, for tests that look for sentences: no line is wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from routing.commands.checked_message import explain_messages
from routing.document import Block, LabelledFact, ListItem, Paragraph, SqlStatement
from routing.render.text import write_text
from routing.views.check.check_report import make_document
from routing.views.check.checking import Check

WIDE = 100_000
UNWRAPPED = ("--width", str(WIDE))
"""The option with which the command wraps nothing."""

ANNOUNCES = re.compile(
    r":$|\b[Rr]un (?:this|it)\b|Uncomment|two ways|the query finds|the other two|\bbelow\b|following statement"
)
"""A sentence that says that a statement follows."""


def words_of(block: Block) -> str:
    """The plain words of a sentence."""
    words = block.words if isinstance(block, (LabelledFact, ListItem, Paragraph)) else ""
    parts = [words] if isinstance(words, str) or not isinstance(words, Sequence) else words
    return "".join(part if isinstance(part, str) else part.text for part in parts)


def announcing(document: Sequence[Block]) -> Iterator[tuple[str, bool]]:
    """Yield each sentence on what to do that announces a statement, and whether one comes before other things."""
    is_advice = False
    for place, block in enumerate(document):
        if isinstance(block, LabelledFact):
            is_advice = block.label.startswith("what to do")
        elif isinstance(block, Paragraph):
            is_advice = words_of(block).startswith("what to do")
            continue
        elif not isinstance(block, ListItem):
            is_advice = False
        if is_advice and ANNOUNCES.search(words_of(block)):
            rest = next(later for later in document[place + 1 :] if not isinstance(later, ListItem))
            yield words_of(block), isinstance(rest, SqlStatement)


def lines_to_run(sql: str) -> list[str]:
    """Return the lines of a script that a server gets: neither comments nor commands of sqlcmd."""
    lines = (line for line in sql.split("\n") if line and not line.startswith("--"))
    return [line for line in lines if line != "GO" and not line.startswith((":CONNECT ", ":on "))]


def print_check(done: Check) -> str:
    """Return the text of a check, a sentence a line."""
    return write_text(make_document(done), width=WIDE)


def print_message(done: Check, asked: str) -> str:
    """Return the text of one message, a sentence a line."""
    return write_text(explain_messages(done, asked), width=WIDE)
