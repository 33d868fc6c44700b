"""What `check` prints, for tests that look for sentences: no line is wrapped."""

from __future__ import annotations

from routing.features.check.check_report import make_document
from routing.features.check.checking import Check
from routing.features.check.explained_message import explain_messages
from routing.render.text import write_text

WIDE = 100_000
UNWRAPPED = ("--width", str(WIDE))
"""The option with which the command wraps nothing."""


def print_check(done: Check) -> str:
    """Return the text of a check, a sentence a line."""
    return write_text(make_document(done), width=WIDE)


def print_message(done: Check, asked: str) -> str:
    """Return the text of one message, a sentence a line."""
    return write_text(explain_messages(done, asked), width=WIDE)
