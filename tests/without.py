"""A command in a process of its own, in which some packages cannot be imported and no Java is found."""

from __future__ import annotations

import os
import subprocess
import sys

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
sys.exit(main(sys.argv[1:]))
"""


def without(missing: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, ended."""
    return run_python(_COMMAND.format(missing=missing), *arguments)


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of Python, ended."""
    kept = {name: value for name, value in os.environ.items() if name not in _PLATFORM}
    own = {"PATH": "", "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**kept, **own},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
