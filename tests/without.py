"""A command in a process of its own, in which some modules cannot be imported and no Java is found."""

from __future__ import annotations

import os
import subprocess
import sys

EVERYTHING = ("pyspark", "delta", "py4j", "pandas", "rich")
"""What a command over local tables does without, as long as it prints no table."""
_CODE = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from routing.cli import main
sys.exit(main(sys.argv[1:]))
"""


def without(missing: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, ended."""
    code = _CODE.replace("{missing!r}", repr(missing))
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**environment, "PATH": "", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
