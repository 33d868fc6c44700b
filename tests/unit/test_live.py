"""The live line on a terminal while a command works, and the lines that remain."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from routing.commands import terminal_streams
from routing.sessions.existing_session import count_tasks
from routing.views.check.checking import check
from tests.large_estates import many_messages
from tests.signalled import ROOT, SIGNAL_WORDS
from tests.terminals import open_terminal, read_all, see, start_on

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
# `sbroute demo`, with something else in its place; the live line is looked after fifty times a second.
_COMMAND = """
import os, sys, time, warnings
from routing import __main__, cli
from routing.commands import command_context, terminal_streams
from routing.errors import StorageError
from routing.run_context import StageClock
from routing.sessions import session
pause = float(os.environ.get("PAUSE", "0.02"))
command_context.open_line = lambda: terminal_streams.open_line(pause)

def command(options, console):
    def see_line():
        # Until the line is drawn, where there is one, and drawn anew.
        line = console._line_below
        is_seen = line is None or isinstance(line, terminal_streams.PlainLines)
        while not is_seen:
            time.sleep(0.01)
            with line._lock:
                is_seen = line._line is not None
        time.sleep(0.1)

    names = {"console": console, "clock": StageClock(console.progress), "see_line": see_line}
    exec(os.environ["PROGRAM"], {**globals(), **names})
    return 0

cli._COMMANDS["demo"] = command
sys.argv = ["sbroute", "demo", *sys.argv[1:]]
__main__.script()
"""
STAGES = """
with clock.stage("read"): see_line()
with clock.stage("write"): see_line()
"""


def run(program: str, *options: str, columns: int = 80, **environment: str) -> tuple[int, str]:
    """Return the exit code and the output of a command with a terminal as its streams."""
    screen, end = open_terminal(columns)
    process = start_on(end, ["-c", _COMMAND, *options], environment={"PROGRAM": program, **environment})
    os.close(end)
    written = read_all(screen)
    return process.wait(30), written


def visible_lines(written: str, columns: int = 80) -> list[str]:
    """Return the text that remains on the screen, with all seconds as 0.0."""
    return [re.sub(r"\d+\.\d s$", "0.0 s", line) for line in see(written, columns)]


def test_each_stage_has_a_live_line_and_a_final_line() -> None:
    code, written = run(STAGES)
    assert code == 0
    assert visible_lines(written) == ["read: 0.0 s", "write: 0.0 s", "|"]
    # While it worked, with its seconds.
    assert "\x1b[2Kwrite\x1b[2m  0 s" in written
    assert re.search(r"\x1b\[2Kwrite: 0\.[1-9] s\r\n$", written)


def test_other_output_is_not_mixed_with_the_live_line() -> None:
    program = """
with clock.stage("read"):
    see_line()
    console.note("a note " + "of many words " * 10 + "that is longer than the terminal is wide")
    see_line()
    warnings.warn("of a library")
    time.sleep(0.1)
    console.result("a result")
    see_line()
"""
    code, written = run(program, "--verbose", PYTHONWARNINGS="always")
    assert code == 0
    lines = [line for line in visible_lines(written, 200) if "warnings.warn" not in line]
    # Nor broken into lines, which somebody may want to copy.
    assert lines[0] == "a note " + "of many words " * 10 + "that is longer than the terminal is wide"
    assert re.search("UserWarning: of a library$", lines[1])
    assert lines[2:] == ["a result", "read: 0.0 s", "|"]
    # It came back below each of them.
    for text in ("wide", "of a library", "a result"):
        assert "read\x1b[2m" in written.partition(text)[2]


@pytest.mark.parametrize("number", list(SIGNAL_WORDS))
def test_an_interruption_removes_the_line(number: signal.Signals) -> None:
    screen, end = open_terminal()
    program = "with clock.stage('write'): see_line(); print('ready', flush=True); time.sleep(60)"
    process = start_on(
        end, ["-c", _COMMAND], environment={"PROGRAM": program}, stdout=subprocess.PIPE, preexec_fn=_take_ctrl_c
    )
    os.close(end)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    written = read_all(screen)
    assert (process.wait(30), process.stdout.read()) == (128 + number, b"")
    process.stdout.close()
    assert "write\x1b[2m" in written
    assert see(written) == [f"sbroute: {SIGNAL_WORDS[number]}: nothing was written", "|"]


def _take_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("within", "why"),
    [
        ("clock.stage('write')", "in stage write: no space"),
        ("console.during('write')", "writing: no space"),
    ],
)
def test_a_failed_stage_leaves_only_its_error(within: str, why: str) -> None:
    error = "OSError('no space')" if "stage" in within else "StorageError.failed('writing', 'no space')"
    # Nor does the line come back while Python, and Java, end.
    program = f"import atexit\natexit.register(time.sleep, 0.1)\nwith {within}: see_line(); raise {error}"
    code, written = run(program, columns=200)
    assert code == 3
    assert "write\x1b[2m" in written
    expected = f"sbroute: the run failed while {why} (run again once the cause is gone)"
    assert see(written, 200) == [expected, "|"]


def test_nested_and_successive_stages_are_shown() -> None:
    program = """
from routing.commands.command_context import steps
with steps(console) as step:
    step("reading the tables")
    see_line()
    with console.during("starting Spark", "session"): see_line()
    see_line()
    step("writing the tables")
    see_line()
"""
    code, written = run(program)
    assert code == 0
    shown = re.findall(r"\x1b\[2K([a-zA-Z ]+)\x1b\[2m", written)
    named = [name for name, before in zip(shown, ["", *shown], strict=False) if name != before]
    assert named == ["reading the tables", "starting Spark", "reading the tables", "writing the tables"]
    assert visible_lines(written) == [
        "session: 0.0 s",
        "reading the tables: 0.0 s",
        "writing the tables: 0.0 s",
        "|",
    ]


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_dumb_terminal_has_only_final_lines(term: str) -> None:
    code, written = run(STAGES, TERM=term)
    assert (code, visible_lines(written)) == (0, ["read: 0.0 s", "write: 0.0 s", "|"])
    assert "\x1b" not in written


def test_no_color_removes_colours_from_the_live_line() -> None:
    code, written = run(STAGES, NO_COLOR="1")
    assert (code, visible_lines(written)) == (0, ["read: 0.0 s", "write: 0.0 s", "|"])
    assert set(re.findall(r"\x1b\[\d*[A-Za-z]", written)) - {"\x1b[2m", "\x1b[0m"} == {"\x1b[2K", "\x1b[1A"}


def test_quiet_shows_only_the_result_on_a_terminal() -> None:
    assert run(STAGES + "console.result('a result')", "--quiet") == (0, "a result\r\n")


def test_json_on_a_terminal_is_only_json() -> None:
    code, written = run(STAGES, "--log-format", "json")
    events = [json.loads(line) for line in written.splitlines()]
    assert (code, [line["stage"] for line in events]) == (0, ["read", "write"])


@pytest.mark.parametrize("options", [[], ["--log-format", "json"], ["--quiet"]])
def test_a_pipe_gets_no_live_line(options: list[str]) -> None:
    """Neither rich nor the module that draws the line is loaded."""
    program = STAGES + (
        "with console.during('starting Spark', 'session'): pass\n"
        "assert not [m for m in sys.modules if m.partition('.')[0] in ('rich', 'pyspark')]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, *options],
        env={**os.environ, "PROGRAM": program, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    messages = [json.loads(line)["message"] for line in done.stderr.splitlines()]
    named = [re.sub(r"\d\.\d s", "0.0 s", text) for text in messages]
    assert named == (["read: 0.0 s", "write: 0.0 s", "starting Spark"] if "json" in options else [])


def test_a_fast_command_has_no_live_line() -> None:
    program = "with console.during('reading'): pass\nassert 'rich' not in sys.modules"
    code, written = run(program, PAUSE="60")
    assert (code, visible_lines(written)) == (0, ["reading: 0.0 s", "|"])


def test_while_java_starts_the_line_stays_on_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "java.log"
    program = f"""
from pathlib import Path
with console.during("starting Spark"), session._java_messages_in(Path({str(log)!r})): see_line()
"""
    code, written = run(program)
    assert (code, visible_lines(written)) == (0, ["starting Spark: 0.0 s", "|"])
    assert "starting Spark\x1b[2m" in written
    assert log.read_bytes() == b""


def test_the_command_works_without_standard_error() -> None:
    screen, end = open_terminal()
    closes = "import os, sys; os.close(2); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    process = start_on(
        end, ["-c", closes, "-c", _COMMAND], environment={"PROGRAM": STAGES + "console.result('a result')"}
    )
    os.close(end)
    assert (read_all(screen), process.wait(30)) == ("a result\r\n", 0)


def test_a_closed_terminal_is_ignored(tmp_path: Path) -> None:
    screen, end = open_terminal()
    done = tmp_path / "done"
    program = f"with clock.stage('read'): time.sleep(0.3)\n{STAGES}\nopen({str(done)!r}, 'w').close()"
    process = start_on(end, ["-c", _COMMAND], environment={"PROGRAM": program})
    os.close(end)
    assert os.read(screen, 1)
    os.close(screen)
    assert process.wait(30) == 0
    assert done.exists()


class OnScreen:
    """A live line on a terminal of this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, columns: int = 80) -> None:
        self.screen, end = open_terminal(columns)
        monkeypatch.setenv("TERM", "xterm")
        for name in ("COLUMNS", "NO_COLOR"):
            monkeypatch.delenv(name, raising=False)
        self.line = terminal_streams.LiveLine(os.fdopen(end, "w", encoding="utf-8"), pause=0.01)

    def wait_for(self, text: str) -> str:
        """Read the output until it contains a text."""
        written, until = "", time.monotonic() + 10
        while text not in written:
            assert time.monotonic() < until, written
            if select.select([self.screen], [], [], 0.1)[0]:
                written += os.read(self.screen, 65536).decode()
        return written

    def finish(self) -> str:
        """Return the remaining output."""
        self.line.close()
        return read_all(self.screen)


@pytest.fixture
def on_screen(monkeypatch: pytest.MonkeyPatch) -> OnScreen:
    return OnScreen(monkeypatch)


@pytest.mark.parametrize(
    ("columns", "name", "shown"),
    [
        (20, "write", "write{}  3/12  0 s"),
        (20, "pending_messages", "pending_messa\u2026{}  0 s"),
        (20, "writing to /very/long", "writing to /v\u2026{}  0 s"),
        (40, "writing the input tables to /very/long", "writing the input tab\u2026{}  3/12 tasks  0 s"),
        (3, "write", "\u2026{}"),
    ],
)
def test_a_narrow_terminal_has_one_line(
    monkeypatch: pytest.MonkeyPatch, columns: int, name: str, shown: str
) -> None:
    """A line that is too long would be more than one, and not be taken away as a whole."""
    narrow = OnScreen(monkeypatch, columns)
    narrow.line.watch(lambda: (3, 12))
    narrow.line.begin(name)
    line = f"\x1b[2K{shown.format(chr(27) + '[2m')}"
    written = narrow.wait_for(line) + narrow.finish()
    if columns > 8:
        assert see(written, columns) == ["|"]


def test_the_live_line_shows_finished_and_all_tasks(on_screen: OnScreen) -> None:
    task_counts: Iterator[terminal_streams.Tasks | None] = iter([(0, 4), (1200, 1204), None])
    on_screen.line.watch(lambda: next(task_counts, None))
    on_screen.line.begin("write")
    on_screen.wait_for("write\x1b[2m  0/4 tasks  0 s")
    on_screen.wait_for("write\x1b[2m  1,200/1,204 tasks  0 s")
    on_screen.wait_for("write\x1b[2m  0 s")
    on_screen.finish()


def test_an_error_of_the_session_only_hides_tasks(on_screen: OnScreen) -> None:
    asked: list[int] = []

    def ask() -> terminal_streams.Tasks | None:
        asked.append(1)
        raise ConnectionError("Java has ended")

    on_screen.line.watch(ask)
    on_screen.line.begin("write")
    on_screen.wait_for("write\x1b[2m  0 s")
    on_screen.wait_for("write\x1b[2m  0 s")
    assert asked == [1]
    assert see(on_screen.finish())[-1] == "|"


def test_a_session_that_does_not_answer_does_not_block(on_screen: OnScreen) -> None:
    is_asked, answer = threading.Event(), threading.Event()

    def ask() -> terminal_streams.Tasks | None:
        is_asked.set()
        answer.wait(30)
        return 1, 2

    on_screen.line.watch(ask)
    on_screen.line.begin("write")
    assert is_asked.wait(10)
    begun = time.monotonic()
    on_screen.line.end("write")
    assert on_screen.finish() == ""
    assert time.monotonic() - begun < 5
    answer.set()


def test_control_characters_in_names_are_replaced(on_screen: OnScreen) -> None:
    on_screen.line.begin("writing to /a\x1b[2J[red]b\nc")
    written = on_screen.wait_for("0 s")
    assert "writing to /a\ufffd[2J[red]b\ufffdc\x1b[2m" in written
    on_screen.finish()


def test_a_closed_live_line_is_not_drawn_again(on_screen: OnScreen) -> None:
    on_screen.line.begin("write")
    on_screen.wait_for("0 s")
    assert see(on_screen.finish()) == ["|"]
    on_screen.line.begin("read")
    with on_screen.line.aside():
        pass
    on_screen.line.end("read")


def test_a_blocked_terminal_does_not_block_the_command(on_screen: OnScreen) -> None:
    """Somebody has stopped its output (Ctrl-S) while something was printed."""
    is_printing, may_go_on = threading.Event(), threading.Event()

    def print_long() -> None:
        with on_screen.line.aside():
            is_printing.set()
            may_go_on.wait(30)

    on_screen.line.begin("write")
    on_screen.wait_for("0 s")
    printing = threading.Thread(target=print_long)
    printing.start()
    assert is_printing.wait(10)
    begun = time.monotonic()
    on_screen.line.close()
    assert time.monotonic() - begun < 5
    may_go_on.set()
    printing.join()
    on_screen.line.begin("read")
    written = on_screen.finish()
    assert "read" not in written
    assert see(written) == ["|"]


class _Broken(io.StringIO):
    """A terminal that takes nothing any more."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


def test_an_error_in_the_line_ends_only_the_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    # Another test's line may still be ending.
    others = set(threading.enumerate())
    ours, line = sys.stderr, terminal_streams.LiveLine(_Broken(), pause=0.01)
    line.begin("read")
    [drawer] = (one for one in threading.enumerate() if one.name == "live line" and one not in others)
    drawer.join(10)
    assert not drawer.is_alive()
    line.begin("write")
    line.end("write", "write: 1.0 s")
    line.close()
    assert sys.stderr is ours
    assert capsys.readouterr().err == "write: 1.0 s\n"


def test_standard_error_is_restored(on_screen: OnScreen, capsys: pytest.CaptureFixture[str]) -> None:
    ours = sys.stderr
    on_screen.line.begin("write")
    on_screen.wait_for("0 s")
    sys.stderr.write("of a library\n")
    assert "\r\x1b[2Kof a library" in on_screen.wait_for("of a library")
    on_screen.finish()
    assert sys.stderr is ours
    assert capsys.readouterr().err == ""


class _Connect:
    """A session of Spark Connect, which has no sparkContext and raises where one is asked for."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"[JVM_ATTRIBUTE_NOT_SUPPORTED] {name}")


_Connect.__module__ = "pyspark.sql.connect.session"


def test_on_connect_stages_have_no_tasks() -> None:
    session: Any = _Connect()
    assert count_tasks(session)() is None


class _Tracker:
    """Spark's status tracker with fixed values: done and all tasks by stage, or None for a forgotten stage."""

    def __init__(self, stages: dict[int, tuple[int, int] | None]) -> None:
        self.stages = stages

    def getActiveStageIds(self) -> list[int]:  # noqa: N802 - Spark's name.
        return list(self.stages)

    def getStageInfo(self, stage: int) -> Any:  # noqa: N802 - Spark's name.
        from pyspark import SparkStageInfo

        stage_tasks = self.stages[stage]
        return (
            None if stage_tasks is None else SparkStageInfo(stage, 0, "save", stage_tasks[1], 1, stage_tasks[0], 0)
        )


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        ({}, None),
        ({7: None}, None),
        ({7: (0, 1)}, (0, 1)),
        ({7: (3, 8), 8: None, 9: (1, 200)}, (4, 208)),
    ],
)
def test_the_tasks_of_all_active_stages(
    stages: dict[int, tuple[int, int] | None], expected: tuple[int, int] | None
) -> None:
    class Context:
        def statusTracker(self) -> _Tracker:  # noqa: N802 - Spark's name.
            return _Tracker(stages)

    session: Any = SimpleNamespace(sparkContext=Context())
    ask: Callable[[], terminal_streams.Tasks | None] = count_tasks(session)
    assert ask() == expected


def test_progress_in_a_pipe_is_a_line_from_time_to_time(capsys: pytest.CaptureFixture[str]) -> None:
    lines = terminal_streams.PlainLines("check", pause=0.05)
    with lines.during("reading the files", "checked"):
        lines.show_progress("judged 120,000 of 200,000 messages")
        time.sleep(0.4)
    lines.close()
    printed = capsys.readouterr().err.splitlines()
    assert 0 < len(printed) < 9
    for line in printed:
        assert re.fullmatch(r"check: judged 120,000 of 200,000 messages \(\d+ s\)", line)


def test_a_fast_command_in_a_pipe_prints_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    lines = terminal_streams.PlainLines("check")
    with lines.during("reading the files", "checked"):
        lines.show_progress("judged 1 of 2 messages")
    lines.close()
    assert capsys.readouterr().err == ""


def test_check_reports_judged_messages(tmp_path: Path) -> None:
    progress: list[str] = []
    check([str(many_messages(tmp_path, 3, 1))], on_progress=progress.append)
    assert progress == ["judged 0 of 3 messages", "followed 0 of 3 messages"]
