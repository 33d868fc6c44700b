"""A console for commands in tests that ignore its output."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from routing.commands.command_context import Console
from routing.document import Document
from routing.process import CommandProgress
from routing.render.text import write_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.run_context import Progress


class Busy(Console):
    """Accepts the activities of a command and its session, and stores nothing."""

    def __init__(self) -> None:
        self.command_progress = CommandProgress()

    def result(self, what: Any) -> None:
        """A result of the command."""

    def document(self, document: Document) -> None:
        """A result of the command, as a pipe has it."""
        self.result(write_text(document))

    def progress(self, stage: Progress) -> None:
        """A stage."""

    def during(self, text: str, final_line: str | None = None) -> AbstractContextManager[None]:
        """A step."""
        return nullcontext()

    def show_progress(self, text: str) -> None:
        """Ignore the progress of an activity."""

    def watch(self, spark: SparkSession) -> None:
        """A session."""
