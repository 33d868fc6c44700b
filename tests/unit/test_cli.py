"""The command line without Spark: help texts, wrong options, exit codes and streams."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from routing import cli
from routing.commands.command_context import Console
from routing.errors import InputError, StorageError
from routing.run_context import Progress, StageClock
from tests.estate_rows import small_estate
from tests.golden_texts import assert_golden, assert_golden_help
from tests.pages import ROOT
from tests.stored import job_without_tables, save_estate

COMMANDS = (
    "demo",
    "check",
    "export",
    "import",
    "resolve",
    "candidates",
    "runs",
    "messages",
    "explain",
    "trace",
    "lint",
    "diff",
    "reconcile",
    "report",
    "views",
)
pytestmark = pytest.mark.usefixtures("plain_terminal")


def ended(*arguments: str) -> int:
    """The exit status of one command, whichever way it ends."""
    try:
        return cli.main(arguments)
    except SystemExit as end:
        return int(end.code or 0)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], None]:
    """Makes `sbroute resolve` end with an error."""

    def fail_with(error: Exception) -> None:
        def command(*_: object) -> int:
            raise error

        monkeypatch.setitem(cli._COMMANDS, "resolve", command)

    return fail_with


@pytest.mark.parametrize("command", ["", *COMMANDS, "import catalog", "import tsql", "import queries"])
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(*command.split(), "--help") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert_golden_help(f"help_{command.replace(' ', '_') or 'sbroute'}.txt", out)


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(cli._COMMANDS) == sorted(COMMANDS)
    ended("--help")
    shown = capsys.readouterr().out
    assert re.findall(r"^    (\w+)\b", shown, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("resolve --confg a.yaml", "sbroute resolve: unknown option '--confg', did you mean --config?"),
        ("lint --confg=a.yaml", "sbroute lint: unknown option '--confg', did you mean --config?"),
        # No beginning of an option stands for it: what it means would change with the next option.
        ("resolve --conf a.yaml", "sbroute resolve: unknown option '--conf', did you mean --config?"),
        ("check a --inst hub", "sbroute check: unknown option '--inst', did you mean --instance?"),
        ("check a -w X=1", "sbroute check: unknown option '-w', did you mean --width?"),
        ("import tsql a --dryrun", "sbroute import tsql: unknown option '--dryrun', did you mean --dry-run?"),
        ("--versoin", "sbroute: unknown option '--versoin', did you mean --version?"),
        ("--nonsense", "sbroute: unknown option '--nonsense'"),
        ("chekc", "sbroute: unknown command 'chekc', did you mean check?"),
        (
            "nonsense",
            f"sbroute: unknown command 'nonsense', known are {', '.join(COMMANDS)}",
        ),
        ("import catlog", "sbroute import: unknown kind 'catlog', did you mean catalog?"),
        ("demo --format xml", "sbroute demo: unknown --format 'xml', known are table, json"),
        ("demo --format jsn", "sbroute demo: unknown --format 'jsn', did you mean json?"),
        ("check a --fail-on delaid", "sbroute check: unknown --fail-on 'delaid', did you mean delayed?"),
        ("runs --config a --limit x", "sbroute runs: argument --limit: 'x' is not a whole number of at least 1"),
        ("runs --config a --limit -1", "sbroute runs: argument --limit: '-1' is not a whole number of at least 1"),
        (
            "lint --config a --fail-under all",
            "sbroute lint: argument --fail-under: 'all' is not a percentage from 0 to 100",
        ),
        (
            "messages --config a --limit 0",
            "sbroute messages: argument --limit: '0' is not a whole number of at least 1",
        ),
        ("demo extra", "sbroute: unexpected argument 'extra'"),
        ("resolve", "sbroute resolve: the following arguments are required: --config"),
        ("resolve --config", "sbroute resolve: argument --config: expected one argument"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(
    line: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(*line.split()) == 2
    program = expected.partition(":")[0]
    assert capsys.readouterr() == ("", f"{expected} (see {program} --help)\n")


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("resolve --config a --config b", "--config"),
        ("resolve --config=a --now 2026-01-05 --config=a", "--config"),
        ("check a --instance hub --instance spoke", "--instance"),
        ("check a --at 2026-01-05 --at 2026-01-06", "--at"),
        ("check a --message 1 --message 2", "--message"),
        ("explain --config a --conversation 1 --conversation-id 2", "--conversation-id"),
        ("import catalog a --config a --exported-at 2026-01-05 --exported-at 2026-01-06", "--exported-at"),
        ("lint --config a --fail-on error --fail-on info", "--fail-on"),
        ("runs --config a --format json --format json", "--format"),
        ("messages --config a --limit 1 --limit 2", "--limit"),
    ],
)
def test_a_single_option_cannot_be_repeated(line: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The last would win without a word."""
    assert ended(*line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f": {option} is given twice, and takes one value (see " in err
    assert err.count("\n") == 1


def test_repeated_options_and_odd_values_are_accepted() -> None:
    line = "check -- --odd"
    assert cli._parser().parse_all(line.split()).paths == ["--odd"]
    line = "check a --then b --then c -vX=1 -v Y=2 --fail-on error --fail-on delayed --set a=1 --set b=2"
    options = cli._parser().parse_all(line.split())
    assert (options.then, options.variables, options.overrides) == (["b", "c"], ["X=1", "Y=2"], ["a=1", "b=2"])
    assert options.fail_on == ["error", "delayed"]
    assert cli._parser().parse_all(["check", "-1", "- a"]).paths == ["-1", "- a"]


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended() == 2
    assert "usage: sbroute" in "".join(capsys.readouterr())


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("--version") == 0
    assert re.fullmatch(r"sbroute \S+\n", capsys.readouterr().out)


def test_a_fault_of_the_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("tabels: {}\n", encoding="utf-8")
    assert ended("resolve", "--config", str(file), "--as-of", "noon", "--set", "resolve.mode=fast") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert_golden("config_faults.txt", err.replace(str(tmp_path), "FOLDER"))


def test_now_is_only_for_incremental_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Told before Spark is started."""
    file = str(job_without_tables(tmp_path))
    assert cli.main(["resolve", "--config", file, "--now", "2026-01-05"]) == 2
    assert "--now is for resolve.mode: incremental" in capsys.readouterr().err
    assert cli.main(["resolve", "--config", file, "--now", "noon"]) == 2
    assert "--now: 'noon' is not an ISO 8601 time" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError.missing_table("routes", "/data/routes"), 2),
        (StorageError.failed("writing", "disk full"), 3),
        (ValueError("line one\nline two"), 3),
    ],
    ids=["contract", "storage", "unexpected"],
)
def test_an_error_is_one_sentence(
    error: Exception,
    status: int,
    failing: Callable[[Exception], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing(error)
    assert ended("resolve", "--config", "x", "--quiet") == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sbroute: ")
    assert err.count("\n") == 1


def test_verbose_shows_the_traceback(
    failing: Callable[[Exception], None], capsys: pytest.CaptureFixture[str]
) -> None:
    failing(InputError.missing_table("routes", "/data/routes"))
    assert ended("resolve", "--config", "x", "--verbose") == 2
    err = capsys.readouterr().err
    assert "Traceback (most recent call last)" in err
    assert err.splitlines()[-1].startswith("sbroute: tables.routes: ")


def test_errors_as_json(failing: Callable[[Exception], None], capsys: pytest.CaptureFixture[str]) -> None:
    failing(InputError.missing_table("routes", "/data/routes"))
    assert ended("resolve", "--config", "x", "--log-format", "json", "--quiet") == 2
    line = json.loads(capsys.readouterr().err)
    assert set(line) == {"time", "level", "message"}
    assert (line["level"], line["message"][:23]) == ("error", "sbroute: tables.routes:")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("", ["note"]),
        ("--quiet", []),
        ("--log-format json", ["reading", "read: 1.0 s", "note"]),
        ("--log-format json --quiet", []),
    ],
)
def test_progress_in_a_pipe_is_json_only(line: str, shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A step when it begins, a stage of a run when it has ended."""
    console = Console(cli._parser().parse_args(["demo", *line.split()]))
    with console.during("reading"):
        console.progress(Progress("read"))
        console.progress(Progress("read", 1.0))
    console.note("note")
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert [json.loads(text)["message"] if "json" in line else text for text in lines] == shown


def test_a_stage_is_reported_with_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    """And every line of a run by its id, once there is one."""
    console = Console(cli._parser().parse_args(["demo", "--log-format", "json"]))
    with console.during("starting Spark", "session"):
        pass
    console.command_progress.run_id = "r1"
    console.progress(Progress("keys", 1.23456, 12_000))
    console.progress(Progress("write", 2.0))
    console.note("note: \x1b[2J", "warning")
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [{name: line[name] for name in line if name != "time"} for line in events] == [
        {"level": "info", "message": "starting Spark"},
        {
            "level": "info",
            "message": "keys: 1.2 s",
            "run_id": "r1",
            "stage": "keys",
            "seconds": 1.235,
            "rows": 12_000,
        },
        {"level": "info", "message": "write: 2.0 s", "run_id": "r1", "stage": "write", "seconds": 2.0},
        {"level": "warning", "message": "note: \ufffd[2J", "run_id": "r1"},
    ]


def test_ended_stages_are_reported() -> None:
    """A stage that is entered twice is reported twice with its details. A failed stage has no end."""
    reported: list[Progress] = []
    clock = StageClock(reported.append)
    with clock.stage("read"):
        pass
    with clock.stage("keys") as tally:
        tally.rows = 7
    with clock.stage("read") as tally:
        tally.rows = 0
    with pytest.raises(StorageError, match="in stage write: no space"), clock.stage("write"):
        raise OSError("no space")
    over = [(one.stage, one.rows) for one in reported if one.seconds is not None]
    assert over == [("read", None), ("keys", 7), ("read", 0)]
    assert [str(one) for one in reported if one.seconds is None] == ["read", "keys", "read", "write"]
    assert [one.seconds is None for one in reported] == [True, False, True, False, True, False, True]
    assert list(clock.seconds) == ["read", "keys"]


@pytest.mark.parametrize("line", ["--run-id r1", ""])
def test_the_last_line_of_a_run_that_failed(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(job_without_tables(tmp_path))
    assert ended("resolve", "--config", file, "--now", "noon", "--log-format", "json", *line.split()) == 2
    event = json.loads(capsys.readouterr().err)
    assert set(event) == {"time", "level", "message", "run_id"}
    # One of its own, where none is given.
    assert event["run_id"] == "r1" if line else re.fullmatch("[0-9a-f-]{36}", event["run_id"])


_SPARK_FREE = """
import sys
from routing import cli
from routing.commands.command_context import Console
try:
    cli.main(sys.argv[1:])
except SystemExit as end:
    code = end.code
else:
    code = "returned"
names = ("pyspark", "delta", "pandas", "pyarrow", "py4j", "sqlglot")
heavy = sorted(name for name in names if name in sys.modules)
sys.stderr.write(f"code {code} heavy {heavy}")
"""


_OF_EXPORTS = f"check {ROOT}/conf/examples/exports"


@pytest.mark.parametrize("line", ["--help", "resolve --help", "resolve --nonsense", "--version", _OF_EXPORTS])
def test_a_command_loads_nothing_heavy_that_it_does_not_need(line: str) -> None:
    command = [sys.executable, "-c", _SPARK_FREE, *line.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.endswith("heavy []")


def _seconds_of_help(bytecode: Path) -> float:
    started = time.monotonic()
    command = [sys.executable, "-m", "routing", "--help"]
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])}
    environment |= {"PYTHONPYCACHEPREFIX": str(bytecode), "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(command, capture_output=True, timeout=60, check=True, env=environment)
    return time.monotonic() - started


def test_help_takes_less_than_half_a_second(tmp_path: Path) -> None:
    # The first try compiles the modules, and a busy machine is given several tries.
    assert any(_seconds_of_help(tmp_path) < 0.5 for _ in range(10))


@pytest.mark.parametrize("home", [None, "/no/such/java"], ids=["nowhere", "wrong JAVA_HOME"])
def test_a_missing_java_is_one_sentence(tmp_path: Path, home: str | None) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    # What Spark's own start script calls, and nothing else.
    for name in ("bash", "sh", "env", "dirname", "uname", "ls", "cat", "grep", "sed", "ps"):
        if (program := shutil.which(name)) is not None:
            (programs / name).symlink_to(program)
    unset = ("JAVA_HOME", "SPARK_HOME", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")
    # Tables that are read without it, so that it is missed at the last.
    save_estate(small_estate(), tmp_path / "none")
    variables = {key: value for key, value in os.environ.items() if key not in unset}
    line = ["resolve", "--config", str(job_without_tables(tmp_path))]
    environment = {**variables, "PATH": str(programs), **({} if home is None else {"JAVA_HOME": home})}
    done = subprocess.run(
        [sys.executable, "-m", "routing", *line, "--engine", "spark", "--quiet"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**environment, "PYTHONPATH": str(Path(cli.__file__).parents[1])},
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert_golden(f"no_java_{'path' if home is None else 'home'}.txt", done.stderr)
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
