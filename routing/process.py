"""Run a command as a process. A signal ends it with one line, and ends the processes that it started.

The command runs in its own thread, and the main thread handles signals at once. No exception interrupts the
command. The process ends like a killed one, which every write survives. One line states the result.

This module imports only the standard library, because it is loaded first: a signal may arrive at any time.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn, Protocol

_PAUSE = 0.05


def end_children(seconds: float) -> bool:
    """End all processes that this one started, with their children. Return True if there were any.

    They get SIGTERM first, because Java then removes its temporary files. Processes that still run after some
    seconds are killed. Each is stopped first, so that it cannot start other processes.
    """
    deadline = time.monotonic() + seconds
    were_any = False
    # Repeat this: a process that is just being started loses signals until its program is loaded.
    while children := find_children():
        were_any = True
        if time.monotonic() < deadline:
            _send(children, signal.SIGTERM)
        else:
            _kill(children)
        time.sleep(_PAUSE)
    return were_any


def _kill(processes: set[int]) -> None:
    """Kill processes and the children that they start in the meantime."""
    stopped = set[int]()
    while processes:
        _send(processes, signal.SIGSTOP)
        stopped |= processes
        processes = find_children() - stopped
    _send(stopped, signal.SIGKILL)


def _send(processes: set[int], number: signal.Signals) -> None:
    for process in processes:
        # It may have ended meanwhile, or belong to another user.
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def find_children() -> set[int]:
    """Return the ids of all processes that descend from this one and still run."""
    parents = dict(_parents())
    descendants, newest = set[int](), {os.getpid()}
    while newest:
        newest = {process for process, parent in parents.items() if parent in newest} - descendants
        descendants |= newest
    return descendants


def _parents() -> Iterator[tuple[int, int]]:
    """Yield each running process with its parent."""
    if not Path("/proc/self/stat").exists():
        yield from _parents_by_ps()
        return
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            # A process may end between these steps.
            with suppress(OSError):
                # These follow the program's name, which is in brackets and may contain any text.
                state, parent, *_ = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if state not in "ZX":
                    yield int(folder.name), int(parent)


def _parents_by_ps() -> Iterator[tuple[int, int]]:
    """Yield processes with their parents on systems without /proc, such as macOS."""
    import subprocess

    listed = subprocess.Popen(["/bin/ps", "-A", "-o", "pid=,ppid=,stat="], stdout=subprocess.PIPE, text=True)
    for line in listed.communicate()[0].splitlines():
        process, parent, state = line.split()[:3]
        if not state.startswith("Z") and int(process) != listed.pid:
            yield int(process), int(parent)


# The progress of a command, so that an interruption can report what counts.


NOTHING_WRITTEN = "nothing was written"


class CommandOutput(Protocol):
    """The output of a command, with the operations that an interruption needs."""

    def error_line(self, text: str) -> str:
        """Return the printed line of an error."""

    def close(self) -> None:
        """Remove the live line from the terminal."""


class CommandProgress:
    """The state of a command, for the text of an interruption.

    ``text`` states the result so far, and ``output`` makes the printed line of it. ``run_id`` is set once a run
    exists. The end of the process takes ``deciding`` and keeps it, so that no run starts to count after the text
    was chosen. Before that it waits for ``completing_run``. ``is_stuck`` is True if a thread hangs in a library
    that would wait for it at the end.
    """

    def __init__(self) -> None:
        self.text = NOTHING_WRITTEN
        self.is_stuck = False
        self.run_id: str | None = None
        self.output: CommandOutput | None = None
        self.is_interrupted = False
        self.deciding = threading.Lock()
        self.completing_run = threading.Lock()

    def as_line(self, text: str) -> str:
        """Return the printed line of an error."""
        return text if self.output is None else self.output.error_line(text)

    def clear(self) -> None:
        """Remove the live line from the terminal."""
        if self.output is not None:
            self.output.close()

    @contextmanager
    def recording(self, run_id: str) -> Iterator[None]:
        """Guard the commit with which a run begins to count: the first interruption waits for it."""
        with self.deciding:
            self.text = f"run {run_id} was being recorded (it counts if sbroute runs lists it)"
            yield
            self.text = f"run {run_id} had already been recorded"

    @contextmanager
    def completing(self, text: str) -> Iterator[None]:
        """Guard a run that the first interruption waits for. ``text`` is the result of its failure."""
        with self.completing_run:
            self.text = text
            yield

    @contextmanager
    def replacing_page(self) -> Iterator[None]:
        """Guard the replacement of a page: the first interruption waits for its end."""
        with self.deciding:
            self.text = "the page is either the old or the new one (start it again)"
            yield
            self.text = "the page had already been written"


def leave_at_once(status: int) -> NoReturn:
    """Flush the output, and end the process without waiting for its threads."""
    for stream in (sys.stdout, sys.stderr):
        # The reader of the stream may have ended.
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


_SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "ended by SIGTERM"}
# The seconds for Java to end, and for the command to notice this.
_JAVA_SECONDS, _COMMAND_SECONDS = 5.0, 1.0
# The seconds until a process that is being started exists.
_STARTING_SECONDS = 0.1
# The size of a main thread's stack on most systems. Other threads may have much less.
_STACK = 16 << 20


def is_for_this_process() -> bool:
    """Return whether this process handles signals: on POSIX, in the main thread, and not on Databricks."""
    is_main = threading.current_thread() is threading.main_thread()
    return os.name == "posix" and is_main and "DATABRICKS_RUNTIME_VERSION" not in os.environ


def say(line: str, descriptor: int = 2) -> None:
    """Write a line directly to a file descriptor, without Python's buffers and locks."""
    # The reader may have ended, and standard error may have been closed from the beginning.
    with suppress(OSError):
        os.write(descriptor, f"{line}\n".encode(errors="backslashreplace"))


def _start_nothing(event: str, _: tuple[object, ...]) -> None:
    """Refuse to start processes that nobody would end. The main thread may still list existing ones."""
    if event == "subprocess.Popen" and threading.current_thread() is not threading.main_thread():
        raise ChildProcessError("this process is about to end")


class SignalGuard:
    """Ends the process on SIGINT or SIGTERM, from its creation until the process has ended."""

    def __init__(self, clean_up: Callable[[], None]) -> None:
        self.progress = CommandProgress()
        self._clean_up = clean_up
        self._told_to = -1
        # While Java starts, standard error is redirected.
        with suppress(OSError):
            self._told_to = os.dup(2)
        self._is_told = False
        self._worker: threading.Thread | None = None
        for number in _SIGNALS:
            # Keep ignoring Ctrl-C if a shell started the command in the background.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._end)
                # The first registered function runs last. Python then removes these handlers, and a signal would
                # end a process whose command has ended and whose exit code is known.
                atexit.register(signal.signal, number, signal.SIG_IGN)

    def run(self, command: Callable[[CommandProgress], int]) -> int:
        """Run a command in another thread. Return its exit code, or raise its exception."""
        done: list[int] = []
        failed: list[BaseException] = []

        def work() -> None:
            try:
                done.append(command(self.progress))
            # The main thread raises it again, including SystemExit.
            except BaseException as error:  # noqa: BLE001
                failed.append(error)
            finally:
                has_ended.set()

        has_ended = threading.Event()
        before = threading.stack_size(_STACK)
        self._worker = threading.Thread(target=work, name="sbroute", daemon=True)
        self._worker.start()
        threading.stack_size(before)
        # A signal that arrives just before the wait begins does not interrupt it.
        while not has_ended.wait(_PAUSE):
            pass
        for error in failed:
            raise error
        return done[0]

    def _end(self, number: int, _: FrameType | None) -> None:
        """Handle SIGINT and SIGTERM without returning."""
        if self.progress.is_interrupted:
            # This is the second signal, so do not wait any longer.
            self._report_end(number)
            end_children(0)
            self._leave(number)
        self.progress.is_interrupted = True
        self.progress.completing_run.acquire()
        self.progress.deciding.acquire()
        self._report_end(number)
        sys.addaudithook(_start_nothing)
        if end_children(_JAVA_SECONDS) and self._worker is not None:
            # Without Java the command fails and releases its resources.
            self._worker.join(_COMMAND_SECONDS)
        else:
            time.sleep(_STARTING_SECONDS)
        # End processes that were just being started.
        end_children(_JAVA_SECONDS)
        self._leave(number)

    def _report_end(self, number: int) -> None:
        if self._is_told:
            return
        # Remove the live line first: a second signal, which does not wait, may print the message itself.
        self.progress.clear()
        self._is_told = True
        line = self.progress.as_line(f"sbroute: {_SIGNALS[signal.Signals(number)]}: {self.progress.text}")
        # Later errors are caused by this end, so hide them.
        sys.stdout = sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
        say(line, self._told_to)

    def _leave(self, number: int) -> NoReturn:
        try:
            self._clean_up()
        finally:
            # 130 and 143, as in shells.
            os._exit(128 + number)


# Read only ordinary files: a pipe may have no end, and a device such as ``/dev/zero`` has none.


def refuse_special_file(path: Path) -> None:
    """Raise OSError if the path is a pipe, device or socket."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is a pipe, device or socket, and only ordinary files are read", str(path))


def read_ordinary_file(path: Path) -> bytes:
    """Return the content of a file. Raises OSError."""
    refuse_special_file(path)
    return path.read_bytes()


@contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """Turn off Python's search for cycles of objects, which takes a fifth of the time with a million objects."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
