"""The output of commands about messages, without line breaks for tests that look for sentences."""

from __future__ import annotations

from routing.commands.checked_message import explain_messages
from routing.render.text import write_text
from routing.views.check.check_report import make_document
from routing.views.check.checking import Check

WIDE = 100_000
UNWRAPPED = ("--width", str(WIDE))
"""The option with which the command wraps nothing."""


def lines_to_run(sql: str) -> list[str]:
    """Return the lines of a script that a server gets: neither comments nor commands of sqlcmd."""
    lines = (line for line in sql.split("\n") if line and not line.startswith("--"))
    return [line for line in lines if line != "GO" and not line.startswith((":CONNECT ", ":on "))]


def print_check(done: Check) -> str:
    """Return the text of a check, a sentence a line."""
    return write_text(make_document(done), width=WIDE)


def print_message(done: Check, message: str) -> str:
    """Return the text of one message, a sentence a line."""
    return write_text(explain_messages(done, message), width=WIDE)
