"""Write to standard output and standard error, even if the other end is full, closed or gone."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, TextIO

from routing.errors import OutputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text


def tell_result(text: str) -> None:
    """Write to standard output, at once and completely.

    If the reader has closed the pipe (``| head -1``), the rest is dropped and the exit code is unchanged. Raises
    OutputError if standard output cannot be written.
    """
    if sys.stdout is None:
        raise OutputError.not_printable("it is closed")
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        _discard_buffer(sys.stdout)
    except OSError as error:
        _discard_buffer(sys.stdout)
        raise OutputError.not_printable(error.strerror or str(error)) from error


def tell_besides(text: str) -> None:
    """Write to standard error. Failures are ignored, because there is no other place to report them."""
    if sys.stderr is None:
        return
    try:
        print(text, end="", file=sys.stderr, flush=True)
    except OSError:
        _discard_buffer(sys.stderr)


def _discard_buffer(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that Python's exit does not write its buffer once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)


# One line at the bottom of a terminal with the activity of a command and its duration.
#
# A thread draws it and polls Spark. It starts with a delay, so that fast commands never import rich. The line is a
# convenience. If anything in it fails, only the line ends.


# Seconds between two polls of Spark, and the wait for a blocked terminal at an interruption.
_PAUSE, _PATIENCE = 0.5, 0.5
_GAP = "  "
# The part of a name that has priority over tasks: as long as the longest stage of a run.
_NAME = len("pending_messages")

Tasks = tuple[int, int]
"""The number of finished Spark tasks, and the number of all."""


class _Step(NamedTuple):
    name: str
    started_at: float
    text: str


def open_line(pause: float = _PAUSE) -> LiveLine | None:
    """Return the live line of this process, or None if standard error is not a terminal.

    The line is redrawn and Spark is polled every ``pause`` seconds.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    try:
        # A separate descriptor, because standard error goes into Java's log while Java starts.
        descriptor = os.dup(sys.stderr.fileno())
    except OSError:
        return None
    terminal = os.fdopen(descriptor, "w", encoding=sys.stderr.encoding, errors="backslashreplace")
    return LiveLine(terminal, pause)


class LiveLine:
    """The nested current steps. The innermost is shown on one line of a terminal."""

    def __init__(self, terminal: TextIO, pause: float = _PAUSE) -> None:
        self._terminal, self._pause = terminal, pause
        self._steps: list[_Step] = []
        self._ask: Callable[[], Tasks | None] | None = None
        self._tasks: Tasks | None = None
        self._console: Console | None = None
        self._line: Live | None = None
        # It protects the line and the steps, and is never held during a poll of Spark.
        self._lock = threading.RLock()
        self._is_closed = threading.Event()
        self._drawer: threading.Thread | None = None

    def watch(self, ask: Callable[[], Tasks | None]) -> None:
        """Show the number of finished tasks as well. The line's thread calls ``ask`` until it raises."""
        self._ask = ask

    def begin(self, name: str) -> None:
        """Begin a step within the current steps."""
        with self._lock:
            self._steps.append(_Step(name, time.monotonic(), name))
            self._tasks = None
            if self._drawer is None:
                self._drawer = threading.Thread(target=self._keep_drawing, name="live line", daemon=True)
                self._drawer.start()
            elif self._console is not None:
                self._draw()

    def show_progress(self, text: str) -> None:
        """Show a text in place of the innermost step's name: how far it has come."""
        with self._lock:
            if self._steps:
                self._steps[-1] = self._steps[-1]._replace(text=text)

    def end(self, name: str, final_line: str | None = None) -> None:
        """End a step and the steps within it. ``final_line`` is the line that remains.

        A step that has not begun here leaves no line, since it was shown under another name.
        """
        with self._lock:
            names = [step.name for step in self._steps]
            if name not in names:
                return
            del self._steps[len(names) - 1 - names[::-1].index(name) :]
            self._tasks = None
            if final_line is not None:
                self._leave(final_line)

    @contextmanager
    def during(self, name: str, final_line: str) -> Iterator[None]:
        """Show a step, and leave a line with its seconds if it ends well."""
        begun, closing_line = time.monotonic(), None
        self.begin(name)
        try:
            yield
            closing_line = f"{final_line}: {time.monotonic() - begun:.1f} s"
        finally:
            self.end(name, closing_line)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Remove the line while other text is printed. It returns below the text during a step."""
        with self._lock:
            self._remove_line()
            yield

    def _leave(self, final_line: str) -> None:
        with self.aside():
            tell_besides(f"{final_line}\n")

    def close(self) -> None:
        """Remove the line permanently, within a second even if the terminal does not respond."""
        self._is_closed.set()
        if self._lock.acquire(timeout=_PATIENCE):
            try:
                self._remove_line()
                with suppress(OSError):
                    self._terminal.close()
            finally:
                self._lock.release()

    def _keep_drawing(self) -> None:
        while not self._is_closed.wait(self._pause):
            tasks = self._count_tasks()
            with self._lock:
                self._tasks = tasks
                self._draw()

    def _count_tasks(self) -> Tasks | None:
        if self._ask is None or not self._steps:
            return None
        try:
            return self._ask()
        # The session refuses the request, or Java has ended. Stages are then shown without tasks.
        except Exception:  # noqa: BLE001
            self._ask = None
            return None

    def _draw(self) -> None:
        """Show the innermost step. The caller holds the lock."""
        if self._is_closed.is_set() or not self._steps:
            return
        try:
            if self._line is None:
                self._line = self._new_line()
                self._line.start()
            self._line.update(self._text(self._steps[-1]), refresh=True)
        # A closed terminal or an unknown encoding must not fail the command.
        except Exception:  # noqa: BLE001
            self._is_closed.set()
            self._remove_line()

    def _remove_line(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            with suppress(Exception):
                line.stop()

    def _new_line(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        class Terminal(Console):
            def show_cursor(self, is_shown: bool = True) -> bool:
                """Keep the cursor shown: it is never hidden, since a killed process would not bring it back."""
                return False

        if self._console is None:
            self._console = Terminal(file=self._terminal, force_jupyter=False, highlight=False)
        # Standard output is written within aside(). Libraries may write to standard error at any time.
        return Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False)

    def _text(self, step: _Step) -> Text:
        """Return the line: the step, tasks and seconds, cut to the available width."""
        from rich.text import Text

        from routing.render.wording import printable

        name, room = Text(printable(step.text), no_wrap=True, overflow="crop"), self._width() - 1
        tails = [f"{_GAP}{int(time.monotonic() - step.started_at)} s"]
        if self._tasks is not None:
            done, total = self._tasks
            tails += [f"{_GAP}{done:,}/{total:,}{tails[0]}", f"{_GAP}{done:,}/{total:,} tasks{tails[0]}"]
        least = min(name.cell_len, _NAME)
        tail = next((tail for tail in reversed(tails) if least + len(tail) <= room), tails[0])
        name.truncate(max(room - len(tail), 1), overflow="ellipsis")
        return name.append(tail, "dim")

    def _width(self) -> int:
        """Return the columns of the terminal. Rich would use descriptor 2, which may be Java's log."""
        console_width = 80 if self._console is None else self._console.width
        try:
            return min(os.get_terminal_size(self._terminal.fileno()).columns or console_width, console_width)
        except OSError:
            return console_width


BETWEEN_LINES = 10.0
"""Seconds between two lines of progress if standard error is not a terminal."""


class PlainLines(LiveLine):
    """Lines of plain text on the same steps, where standard error is a pipe or a file.

    A command that ends within ``pause`` seconds prints none.
    """

    def __init__(self, command: str, pause: float = BETWEEN_LINES) -> None:
        super().__init__(sys.stderr, pause)
        self._command = command
        self._started = self._printed = time.monotonic()

    def close(self) -> None:
        """Print no more lines."""
        self._is_closed.set()

    def _draw(self) -> None:
        if self._is_closed.is_set() or not self._steps or not self._is_due():
            return
        from routing.render.wording import printable

        tasks = "" if self._tasks is None else f", {self._tasks[0]:,} of {self._tasks[1]:,} tasks"
        seconds = int(time.monotonic() - self._started)
        tell_besides(f"{self._command}: {printable(self._steps[-1].text)}{tasks} ({seconds} s)\n")
        self._printed = time.monotonic()

    def _is_due(self) -> bool:
        """Return True if the last line is old. The beginning of a step prints no line."""
        return time.monotonic() - self._printed >= self._pause * 0.9

    def _remove_line(self) -> None:
        """Keep printed lines, because a pipe cannot remove them."""

    def _leave(self, final_line: str) -> None:
        """Print no line for a step that has ended."""
