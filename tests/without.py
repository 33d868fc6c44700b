"""A command in a separate process in which some packages cannot be imported and Java is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import TracebackType
from typing import NamedTuple

SPARK = ("pyspark", "py4j", "delta")
EVERYTHING = (*SPARK, "pandas", "rich")
"""What a command over local tables does without, as long as it prints no table."""
# What makes another engine or disk likely than that of a laptop.
_PLATFORM = (
    *("JAVA_HOME", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "DATABRICKS_RUNTIME_VERSION", "PYSPARK_SUBMIT_ARGS"),
    *("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_HOME", "SPARK_CONF_DIR"),
)
_COMMAND = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {missing!r} else super().find_spec(name, path, target)

sys.meta_path[:] = [Without if finder is PathFinder else finder for finder in sys.meta_path]
from routing.cli import main
"""
_ONE = "sys.exit(main(sys.argv[1:]))\n"
# A line of standard input has the arguments of a command, one of standard output how it ended.
_MANY = """
import contextlib, io, json
for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(json.loads(line))
        except SystemExit as left:
            status = left.code or 0
    print(json.dumps([status, out.getvalue(), err.getvalue()]), flush=True)
"""


def without(missing: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, ended."""
    return run_python(_COMMAND.format(missing=missing) + _ONE, *arguments)


class EndedCommand(NamedTuple):
    """How a command ended: its exit code and its streams."""

    returncode: int
    stdout: str
    stderr: str


class CommandsWithout:
    """Commands one after the other in one process in which some packages cannot be imported.

    Python starts and imports once for all of them.
    """

    def __init__(self, missing: tuple[str, ...]) -> None:
        program = _COMMAND.format(missing=missing) + _MANY
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> CommandsWithout:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _, err = self._process.communicate(timeout=120)
        assert (self._process.returncode, err) == (0, "")

    def run(self, *arguments: str) -> EndedCommand:
        """Run the command and return its result. Fails if the command ends the process itself."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self._process.communicate(timeout=120)
        return EndedCommand(*json.loads(answer))


def _environment() -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if name not in _PLATFORM}
    own = {"PATH": "", "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "COLUMNS": "200", "NO_COLOR": "1"}
    return {**variables, **own}


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of Python, ended."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
