"""A signal ends a command with one line on the valid results, exit code 130 or 143, and no leftovers."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.signalled import SIGNAL_WORDS, Ended, ended, started

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
# `sbroute resolve`, with something else in its place, which prints a line once it is to be signalled.
_COMMAND = """
import atexit, os, subprocess, sys, time
from pathlib import Path
from routing import __main__, cli
from routing.config import TableLocation
from routing.errors import StorageError
from routing.sessions import session
from routing.delta.run_lock import only_run

def ready(what="ready"):
    print(what, flush=True)

def command(options, console):
    program, folder = os.environ["PROGRAM"], Path(os.environ["FOLDER"])
    exec(program, {**globals(), "console": console, "folder": folder})
    return 0

cli._COMMANDS["resolve"] = command
sys.argv = ["sbroute", "resolve", "--config", "x", *sys.argv[1:]]
__main__.script()
"""
SLEEPS = "ready(); time.sleep(60)"
Running = subprocess.Popen[str]
BOTH = pytest.mark.parametrize("number", list(SIGNAL_WORDS))


def _begun(program: str, folder: Path, *options: str, command: str = _COMMAND, **environment: str) -> Running:
    """Start the command and wait for its first line."""
    environment = {"PROGRAM": program, "FOLDER": str(folder), "TMPDIR": str(folder), **environment}
    return _ready(started(["-c", command, *options], **environment))


def _ready(process: Running) -> Running:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line == "ready\n", ended(process)
    return process


def _end(program: str, folder: Path, *numbers: signal.Signals, options: tuple[str, ...] = ()) -> Ended:
    process = _begun(program, folder, *options)
    for number in numbers or (signal.SIGTERM,):
        process.send_signal(number)
    return ended(process)


@pytest.mark.parametrize(
    ("program", "number"),
    [
        *((SLEEPS, number) for number in SIGNAL_WORDS),
        ("ready()\nwhile True: pass", signal.SIGINT),
        ("ready(); subprocess.run(['sleep', '60'])", signal.SIGTERM),
    ],
)
def test_a_signal_at_any_moment_ends_the_command(program: str, number: signal.Signals, tmp_path: Path) -> None:
    line = f"sbroute: {SIGNAL_WORDS[number]}: nothing was written\n"
    assert _end(program, tmp_path, number) == Ended(128 + number, "", line, {})


@BOTH
def test_a_signal_after_the_end_keeps_the_exit_code(number: signal.Signals, tmp_path: Path) -> None:
    """While Python puts its modules away, the exit code stays that of the command."""
    program = (
        "class Late:\n  def __del__(self, write=os.write, sleep=time.sleep): write(1, b'ready\\n'); sleep(0.2)\n"
        "sys.late = Late()"
    )
    assert _end(program, tmp_path, number) == Ended(0, "", "", {})


@BOTH
def test_a_signal_during_imports_ends_the_command(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    process = _ready(started(["-m", "routing", "--help"], first_on_path=str(tmp_path)))
    process.send_signal(number)
    assert ended(process) == Ended(128 + number, "", f"sbroute: {SIGNAL_WORDS[number]}: nothing was written\n", {})


def test_the_message_of_a_signal_says_how_far_the_command_is(tmp_path: Path) -> None:
    done = _end("console.command_progress.text = 'the run does not count'; " + SLEEPS, tmp_path)
    assert done.err == "sbroute: ended by SIGTERM: the run does not count\n"


_RECORDS = "with console.command_progress.recording('r1'): ready(); time.sleep({})\ntime.sleep(60)"


def test_a_run_being_recorded_is_completed(tmp_path: Path) -> None:
    done = _end(_RECORDS.format(0.3), tmp_path, signal.SIGINT)
    assert done == Ended(130, "", "sbroute: interrupted: run r1 had already been recorded\n", {})


def test_a_second_signal_does_not_wait_for_the_record_of_a_run(tmp_path: Path) -> None:
    process = _begun(_RECORDS.format(60), tmp_path)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    process.send_signal(signal.SIGTERM)
    expected = "run r1 was being recorded (it counts if sbroute runs lists it)"
    assert ended(process) == Ended(143, "", f"sbroute: ended by SIGTERM: {expected}\n", {})


def test_a_run_reported_as_void_is_never_recorded(tmp_path: Path) -> None:
    """The child runs one more second, in which the command would record its run."""
    child = "import signal, time; signal.signal(15, lambda *_: None); print(flush=True); time.sleep(1)"
    program = (
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); ready(); time.sleep(0.2)\n"
        "with console.command_progress.recording('r1'): (folder / 'recorded').touch()"
    )
    done = _end(program, tmp_path, signal.SIGTERM)
    assert done == Ended(143, "", "sbroute: ended by SIGTERM: nothing was written\n", {})
    assert list(tmp_path.iterdir()) == []


def test_errors_caused_by_a_signal_are_hidden(tmp_path: Path) -> None:
    program = (
        "child = subprocess.Popen(['sleep', '60']); ready(); child.wait()\n"
        "print('result'); (folder / 'unwound').touch()\nraise StorageError.failed('writing', 'no Java')"
    )
    done = _end(program, tmp_path, signal.SIGINT, options=("--verbose",))
    assert done == Ended(130, "", "sbroute: interrupted: nothing was written\n", {})
    # It had the time to put away what it held.
    assert [file.name for file in tmp_path.iterdir()] == ["unwound"]


def _child(script: str) -> str:
    """Return a program that starts a shell and continues after its script's echo."""
    return f"child = subprocess.Popen(['sh', '-c', {script!r}], stdout=subprocess.PIPE); child.stdout.readline(); "


def test_children_of_children_end_too(tmp_path: Path) -> None:
    program = _child("sleep 60 & sleep 61 & echo; wait") + SLEEPS
    process = _begun(program, tmp_path)
    process.send_signal(signal.SIGTERM)
    assert ended(process).left == {}


def test_a_child_that_does_not_end_is_killed_by_the_second_signal(tmp_path: Path) -> None:
    # A shell that outlives its sleep by a moment says so.
    child = _child('exec 2>/dev/null; trap "" TERM; echo; while :; do sleep 0.1; done')
    process = _begun(child + SLEEPS, tmp_path)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.send_signal(signal.SIGINT)
    assert ended(process) == Ended(130, "", "sbroute: interrupted: nothing was written\n", {})


def test_the_lock_is_released(tmp_path: Path) -> None:
    program = (
        "with only_run(TableLocation(str(folder / 'out' / 'runs')), 'r1'):\n  assert (folder / 'out').exists()\n  "
    )
    assert _end(program + SLEEPS, tmp_path).code == 143
    assert list(tmp_path.rglob("*.lock")) == []


def test_the_lock_of_another_run_stays(tmp_path: Path) -> None:
    program = "import shutil\nwith only_run(TableLocation(str(folder / 'runs')), 'r1'):\n  "
    program += "(folder / 'runs.lock').unlink(); (folder / 'runs.lock').write_text('another'); "
    assert _end(program + SLEEPS, tmp_path).code == 143
    assert (tmp_path / "runs.lock").read_text() == "another"


def test_while_java_starts_the_line_is_not_written_to_java_s_log(tmp_path: Path) -> None:
    program = "with session._java_messages_in(session._new_java_log()):\n  os.write(2, b'of Java'); " + SLEEPS
    assert _end(program, tmp_path) == Ended(143, "", "sbroute: ended by SIGTERM: nothing was written\n", {})
    assert list(tmp_path.iterdir()) == []


def test_as_json(tmp_path: Path) -> None:
    done = _end(SLEEPS, tmp_path, signal.SIGINT, options=("--log-format", "json", "--quiet"))
    (line,) = map(json.loads, done.err.splitlines())
    assert {**line, "time": ""} == {
        "time": "",
        "level": "error",
        "message": "sbroute: interrupted: nothing was written",
    }


def test_as_json_of_a_run(tmp_path: Path) -> None:
    program = "console.command_progress.run_id = 'r1'; " + SLEEPS
    done = _end(program, tmp_path, signal.SIGTERM, options=("--log-format", "json"))
    (line,) = map(json.loads, done.err.splitlines())
    assert (line["run_id"], line["message"]) == ("r1", "sbroute: ended by SIGTERM: nothing was written")


def test_a_signal_after_the_end_prints_no_traceback(tmp_path: Path) -> None:
    sleeping = f"atexit.register(lambda: exec({SLEEPS!r}, globals()))"
    program = f"{sleeping}\nwith console.command_progress.recording('r1'): pass"
    done = _end(program, tmp_path, signal.SIGINT)
    assert done == Ended(130, "", "sbroute: interrupted: run r1 had already been recorded\n", {})


def test_an_ignored_ctrl_c_stays_ignored(tmp_path: Path) -> None:
    ignoring = _COMMAND.replace(
        "__main__.script()", "import signal; signal.signal(2, signal.SIG_IGN)\n__main__.script()"
    )
    process = _begun(SLEEPS, tmp_path, command=ignoring)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    process.send_signal(signal.SIGTERM)
    assert ended(process).code == 143


@pytest.mark.parametrize(
    ("platform", "line"),
    [
        ("library", "import routing.cli; routing.cli.main(['--version'])"),
        ("wheel task", "import os; os.environ['DATABRICKS_RUNTIME_VERSION'] = '17.3'; script(); script()"),
        ("thread", "import threading; t = threading.Thread(target=script); t.start(); t.join()"),
    ],
)
def test_signal_handlers_of_a_host_program_stay(platform: str, line: str) -> None:
    program = f"""
import signal, sys
from routing.__main__ import script
sys.argv = ["sbroute", "--version"]
kept = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
{line}
sys.exit([signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] != kept)
"""
    done = ended(started(["-c", program]))
    assert (done.code, done.err) == (0, ""), platform
    assert done.out.startswith("sbroute ")


def test_ctrl_c_is_handled_without_own_signal_handlers(tmp_path: Path) -> None:
    process = _begun(SLEEPS, tmp_path, DATABRICKS_RUNTIME_VERSION="17.3")
    process.send_signal(signal.SIGINT)
    assert ended(process) == Ended(130, "", "sbroute: interrupted: nothing was written\n", {})


def test_other_exits_are_unchanged() -> None:
    assert ended(started(["-m", "routing", "--nonsense"])).code == 2
    assert ended(started(["-m", "routing", "--version"])).code == 0
    broken = _COMMAND.replace("__main__.script()", "cli.main = None\n__main__.script()")
    done = ended(started(["-c", broken]))
    assert (done.code, done.err.splitlines()[-1]) == (1, "TypeError: 'NoneType' object is not callable")
