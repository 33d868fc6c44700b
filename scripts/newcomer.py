#!/usr/bin/env python3
"""Follow the README as a newcomer does: in a fresh clone, with the system's Python, command by command.

The commands are the ``sh`` blocks of the README, in their order and in one shell. Each is printed with its exit
code and its time. The exit code is 1 if one of them failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The Python of the system comes first, and nothing tells which environment is active.
HIDDEN = ("PYTHON", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON")
STEP = """
printf '\\n$ %s\\n' {shown}
start=$SECONDS
{command}
status=$?
printf '== exit code %d after %d s\\n' $status $((SECONDS - start))
[ $status = 0 ] || failed=1
"""


def find_commands(readme: str) -> list[str]:
    """Return the commands of a page's sh blocks, one for each line or lines joined by a backslash."""
    blocks = re.findall(r"^```sh\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    lines = re.split(r"(?<!\\)\n", "".join(blocks))
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def write_script(commands: list[str]) -> str:
    """Return a script of bash that runs the commands and ends with 1 if one failed."""
    steps = [STEP.format(shown=shlex.quote(command), command=command) for command in commands]
    return "\n".join(["failed=0", *steps, "exit $failed"])


def main() -> int:
    """Clone the repository and run the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="leave out `make test`")
    parser.add_argument(
        "--repository", type=Path, default=ROOT, help="what to clone (this checkout's last commit)"
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "newcomer", help="where to clone it")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", options.repository, options.folder], check=True)
    commands = find_commands((options.folder / "README.md").read_text(encoding="utf-8"))
    if options.quick:
        commands = [command for command in commands if not command.startswith("make test")]
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN and "MAKE" not in name}
    environment["PATH"] = f"/usr/bin{os.pathsep}{os.environ['PATH']}"
    sys.stdout.flush()
    script = write_script(commands)
    return subprocess.run(["bash", "-c", script], cwd=options.folder, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
