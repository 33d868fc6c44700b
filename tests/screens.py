"""A console of commands that are run by tests, for what a test does not look at."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from routing.document import Document
from routing.process import CommandProgress
from routing.render.text import write_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.run_context import Progress


class Busy:
    """Is told what a command is busy with, and in which session, and keeps nothing of it."""

    def __init__(self) -> None:
        self.command_progress = CommandProgress()

    def result(self, what: Any) -> None:
        """A result of the command."""

    def document(self, document: Document) -> None:
        """A result of the command, as a pipe has it."""
        self.result(write_text(document))

    def progress(self, what: Progress) -> None:
        """A stage."""

    def during(self, text: str, left: str | None = None) -> AbstractContextManager[None]:
        """A step."""
        return nullcontext()

    def say(self, text: str) -> None:
        """Nothing is shown of how far an activity has come."""

    def watch(self, spark: SparkSession) -> None:
        """A session."""
