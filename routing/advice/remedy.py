"""Remedies: what to do, with the statement to paste and where it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from routing.advice import statements
from routing.document import SqlStatement
from routing.importing.tsql.sqlcmd import write_server
from routing.render.phrases import named, split_sentences

_USE_UNNAMED = "-- USE [<database>];"


@dataclass(frozen=True)
class MessageRemedy:
    """A remedy: words, a sentence or two, and the statement to paste.

    ``statement`` is T-SQL, `USE` on a line of its own before it; None where there are only words. Where
    ``is_complete`` it can be run as it is; else something must be found out first and every line is a comment.
    ``lead`` is the sentence that announces the statement. It is not shown without one.
    """

    words: str
    statement: str | None = None
    is_complete: bool = False
    lead: str = ""

    @property
    def text(self) -> str:
        """All that is said: the words, then the sentence that announces the statement."""
        return f"{self.words} {self.lead}" if self.lead and self.statement is not None else self.words

    def list_actions(self, *, has_explained_cause: bool) -> list[str]:
        """List the sentences on what to do, without the first one if it has explained the cause.

        If nothing is left, a sentence announces the statement. Without a statement the cause stays.
        """
        sentences = split_sentences(self.words)
        actions = sentences[1:] if has_explained_cause else sentences
        if self.statement is None:
            return actions or sentences
        if self.lead:
            return [*actions, self.lead]
        return actions or ["Run this:" if self.is_complete else "Uncomment what is right, and run it:"]

    def as_statement(self, instance: str, about: Sequence[str], indent: int = 0) -> SqlStatement:
        """Return the statement for an instance, as it stands among others; ``about`` says what it is for."""
        statement, is_complete = self.statement or "", self.is_complete
        if not statement.startswith(("USE ", "-- USE ")):
            # No export names the database: it would run in that of the statement before it.
            statement = f"{_USE_UNNAMED}\n{statements.as_comment(statement) if is_complete else statement}"
            is_complete = False
        remedy = replace(self, statement=statement, is_complete=is_complete)
        # Where the statement is a comment the comments before it end with an empty one.
        purpose = [remedy.state_place(instance), *about, *([] if is_complete else [""])]
        server = write_server(instance) or f"<the server of {named(instance)}>"
        return SqlStatement(statement, "\n".join(purpose), indent, server)

    def state_place(self, instance: str) -> str:
        """Return the sentence that says where the statement is run, and what is done to it before."""
        if self.is_complete:
            return f"Run this on {named(instance)}."
        is_open = "<" in (self.statement or "")
        first = "put a value into each place <…>" if is_open else "uncomment what is right"
        return f"On {named(instance)}, {first} before you run this."


class PlacedRemedy(NamedTuple):
    """A remedy, and the instance that it is for."""

    instance: str
    remedy: MessageRemedy


def ready(words: str, database: str, *lines: str | None) -> MessageRemedy:
    """Build a remedy with statements to be run as they are; words alone where a name cannot be pasted."""
    statement = statements.in_database(database, lines)
    return MessageRemedy(words, statement, True) if statement is not None else in_words(words)


def to_fill_in(words: str, database: str, *lines: str | None, lead: str = "") -> MessageRemedy:
    """Build a remedy whose statements need a value first; words alone where a name cannot be pasted."""
    statement = statements.as_comment(statements.in_database(database, lines))
    return MessageRemedy(words, statement, lead=lead) if statement is not None else in_words(words)


def in_words(words: str) -> MessageRemedy:
    """Build a remedy without a statement, since one of its names cannot be pasted."""
    return MessageRemedy(
        f"{words} There is no statement: a name in it cannot be pasted safely, or is too long for SQL Server."
    )
