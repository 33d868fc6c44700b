"""The scripts for spark-submit: each runs the command of its name, and its exit status survives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What a job needs on its command line besides.
ARGUMENTS = {"import_": ("catalog", "exports"), "diff": ("--against", "other.yaml")}
# What reads files alone.
WITHOUT_CONFIGURATION = ("check",)
JOBS = sorted((ROOT / "jobs").glob("*.py"))


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.stem)
def test_spark_submit_ends_with_the_exit_code_of_the_command(job: Path, tmp_path: Path) -> None:
    tools = Path(sys.prefix, "bin")
    missing = tmp_path / "missing.yaml"
    has_none = job.stem in WITHOUT_CONFIGURATION
    named = [str(missing)] if has_none else [*ARGUMENTS.get(job.stem, ()), "--config", str(missing)]
    ended = subprocess.run(
        [str(tools / "spark-submit"), str(job), *named],
        # spark-submit looks for its home and its Python on the PATH.
        env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    # spark-submit puts both streams of the job onto its standard output.
    what = "" if has_none else "the configuration "
    assert f"sbroute: {what}'{missing}' cannot be read" in ended.stdout
