"""How far a command has come: what counts and what does not, should it be interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NOTHING_WRITTEN = "nothing was written"


class CommandProgress:
    """The state of a command, for the text of an interruption.

    ``text`` says what counts; ``as_line`` makes the line of it that is printed, and ``clear`` takes away before it
    what moves on the terminal. ``run_id`` is that of the run, once there is one. An ending of the process takes
    ``deciding`` and keeps it, so that no run begins to count after the text was said.
    """

    def __init__(self) -> None:
        self.text = NOTHING_WRITTEN
        self.run_id: str | None = None
        self.as_line: Callable[[str], str] = str
        self.clear: Callable[[], None] = lambda: None
        self.is_interrupted = False
        self.deciding = threading.Lock()

    @contextmanager
    def recording(self, run_id: str) -> Iterator[None]:
        """Guard the commit with which a run begins to count: the first interruption waits for it."""
        with self.deciding:
            self.text = f"run {run_id} was being recorded (it counts if sbroute runs lists it)"
            yield
            self.text = f"run {run_id} counts, it was recorded before"

    @contextmanager
    def replacing_page(self) -> Iterator[None]:
        """Guard the replacement of a page: the first interruption waits for its end."""
        with self.deciding:
            self.text = "the page is as it was, or as it is to be (start it again)"
            yield
            self.text = "the page was written before"
