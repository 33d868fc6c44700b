"""Each script for spark-submit runs the command of its name, and returns its exit status."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.prefix, "bin")
# The arguments that a job needs in addition to the configuration.
ARGUMENTS = {
    "import_": ("catalog", "exports"),
    "diff": ("--against", "other.yaml"),
    "report": ("--out", "report.html"),
}
# The jobs that only read files.
WITHOUT_CONFIGURATION = ("check",)
JOBS = sorted((ROOT / "jobs").glob("*.py"))


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.stem)
def test_a_job_ends_with_the_exit_code_of_its_command(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing.yaml"
    has_none = job.stem in WITHOUT_CONFIGURATION
    named = [str(missing)] if has_none else [*ARGUMENTS.get(job.stem, ()), "--config", str(missing)]
    monkeypatch.setattr(sys, "argv", [str(job), *named])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(job), run_name="__main__")
    assert ended.value.code == 2
    what = "" if has_none else "the configuration "
    assert f"sbroute: {what}'{missing}' cannot be read" in capsys.readouterr().err


def test_spark_submit_ends_with_the_exit_code_of_the_command(tmp_path: Path) -> None:
    """One script is enough, because they differ only in the name of their command."""
    missing = tmp_path / "missing.yaml"
    ended = _submitted(tmp_path, ROOT / "jobs" / "resolve.py", "--config", str(missing))
    assert ended.returncode == 2, ended.stderr
    # spark-submit puts both streams of the job onto its standard output.
    assert f"sbroute: the configuration '{missing}' cannot be read" in ended.stdout


def _submitted(folder: Path, job: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(TOOLS / "spark-submit"), str(job), *arguments],
        # spark-submit looks for its home and its Python on the PATH. A job does not need an installed package.
        env={
            **os.environ,
            "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
