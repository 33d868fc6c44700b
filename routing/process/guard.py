"""Signals that end a command: one line that says what counts, no traceback, and nothing left behind.

A command works in a thread of its own while the main thread waits, for signals are handled there: at once,
whatever the command is busy with, and never by an exception in the midst of it. The process then ends as abruptly
as a killed one, which every write survives.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from routing.process.children import end_children
from routing.process.standing import CommandProgress

_SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "ended by SIGTERM"}
# How long Java may take to end, and the command to notice that it has.
_JAVA_SECONDS, _COMMAND_SECONDS = 5.0, 1.0
# How long a process that is being started takes to be one.
_STARTING_SECONDS = 0.1
# What a main thread has on most systems; others may have much less.
_STACK = 16 << 20


def is_for_this_process() -> bool:
    """Return whether signals are this process's to handle: not on Databricks, nor off the main thread."""
    is_main = threading.current_thread() is threading.main_thread()
    return os.name == "posix" and is_main and "DATABRICKS_RUNTIME_VERSION" not in os.environ


def say(line: str, descriptor: int = 2) -> None:
    """Write a line past all that Python holds back or has in use."""
    # Nobody may listen, and standard error may have been closed from the beginning.
    with suppress(OSError):
        os.write(descriptor, f"{line}\n".encode(errors="backslashreplace"))


def _start_nothing(event: str, _: tuple[object, ...]) -> None:
    """Refuse to start processes, which nobody would end; the main thread may look for those that there are."""
    if event == "subprocess.Popen" and threading.current_thread() is not threading.main_thread():
        raise ChildProcessError("this process is about to end")


class SignalGuard:
    """Ends the process when a signal says so, from the moment it is made until the process is gone."""

    def __init__(self, clean_up: Callable[[], None]) -> None:
        self.progress = CommandProgress()
        self._clean_up = clean_up
        self._told_to = -1
        # While Java starts, what is written to standard error goes elsewhere.
        with suppress(OSError):
            self._told_to = os.dup(2)
        self._is_told = False
        self._worker: threading.Thread | None = None
        for number in _SIGNALS:
            # A shell that starts a command in the background has it ignore Ctrl-C.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._end)
                # After all others, for it is the first: Python is then about to take these handlers away, and a
                # signal would end a process whose command has ended and whose exit code is known.
                atexit.register(signal.signal, number, signal.SIG_IGN)

    def run(self, command: Callable[[CommandProgress], int]) -> int:
        """Run a command in another thread; return its status, or raise its exception."""
        done: list[int] = []
        failed: list[BaseException] = []

        def work() -> None:
            try:
                done.append(command(self.progress))
            # Handed on to the main thread: SystemExit too.
            except BaseException as error:  # noqa: BLE001
                failed.append(error)
            finally:
                has_ended.set()

        has_ended = threading.Event()
        before = threading.stack_size(_STACK)
        self._worker = threading.Thread(target=work, name="sbroute", daemon=True)
        self._worker.start()
        threading.stack_size(before)
        has_ended.wait()
        for error in failed:
            raise error
        return done[0]

    def _end(self, number: int, _: FrameType | None) -> None:
        """Handle SIGINT and SIGTERM; it does not return."""
        if self.progress.is_interrupted:
            # The second one: whoever sent it has waited long enough.
            self._report_end(number)
            end_children(0)
            self._leave(number)
        self.progress.is_interrupted = True
        self.progress.deciding.acquire()
        self._report_end(number)
        sys.addaudithook(_start_nothing)
        if end_children(_JAVA_SECONDS) and self._worker is not None:
            # Without Java the command fails, and puts away what it holds.
            self._worker.join(_COMMAND_SECONDS)
        else:
            time.sleep(_STARTING_SECONDS)
        # What was just being started when nothing more was to be.
        end_children(_JAVA_SECONDS)
        self._leave(number)

    def _report_end(self, number: int) -> None:
        if self._is_told:
            return
        # Before it is told: a second signal, which would not wait, tells it then.
        self.progress.clear()
        self._is_told = True
        line = self.progress.as_line(f"sbroute: {_SIGNALS[signal.Signals(number)]}: {self.progress.text}")
        # What fails from now on does so because of this end.
        sys.stdout = sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
        say(line, self._told_to)

    def _leave(self, number: int) -> NoReturn:
        try:
            self._clean_up()
        finally:
            # 130 and 143, as shells say it.
            os._exit(128 + number)
