"""scripts/setup.sh and .ci/run choose the interpreter, and setup reports its steps."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.project.test_chromium_script import program

ROOT = Path(__file__).parents[2]
LOCK = "setuptools==80.0\nyaml==6.0\n"


def interpreter(file: Path, identity: str) -> Path:
    """Return a program that answers as a Python would, and copies itself into the environments it creates."""
    file.parent.mkdir(parents=True, exist_ok=True)
    return program(
        file,
        f"echo {file.name} $* >> '{file.parents[1]}/calls'",
        'case "$*" in',
        f"*base_prefix*) echo '{identity}' ;;",
        '*"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;',
        "-V) echo 'Python 3.x' ;;",
        "*'pip install'*lock*) echo 'Downloading pyspark-4.1.4.tar.gz (455.2 MB)'",
        "   echo 'Downloading six.whl (11 kB)'",
        "   echo '  Building wheel for pyspark (pyproject.toml): started' ;;",
        "esac",
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the script and a lock, and two interpreters beside it."""
    (tmp_path / "clone" / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "setup.sh", tmp_path / "clone" / "scripts")
    (tmp_path / "clone" / "requirements.lock").write_text(LOCK, encoding="utf-8")
    for name in ("python-old", "python-new"):
        interpreter(tmp_path / "bin" / name, f"/opt/{name}")
    return tmp_path / "clone"


def set_up(project: Path, python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script with an interpreter."""
    return subprocess.run(
        ["bash", str(project / "scripts" / "setup.sh"), *arguments],
        env={**os.environ, "PYTHON": python and str(project.parent / "bin" / python)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_environment_of_another_interpreter_is_created_again(project: Path) -> None:
    for python in ("python-old", "python-new"):
        assert set_up(project, python, "--compare").stdout == "other\n"
        assert set_up(project, python).returncode == 0
        assert set_up(project, python, "--compare").stdout == ""
        assert f"/opt/{python}" in (project / ".venv" / "bin" / "python").read_text(encoding="utf-8")
    # No interpreter is asked for: any environment does.
    assert set_up(project, "", "--compare").stdout == ""


def test_setup_says_what_takes_time(project: Path) -> None:
    lines = set_up(project, "python-new").stderr.splitlines()
    assert lines[0] == "setup: creating .venv with Python 3.x"
    assert [line for line in lines if "pyspark" in line] == [
        "setup:   downloading pyspark-4.1.4.tar.gz, 455.2 MB",
        "setup:   building pyspark",
    ]
    assert [line.split(":")[1] for line in lines if " of 3" in line] == [" 1 of 3", " 2 of 3", " 3 of 3"]
    assert "six" not in "".join(lines)
    assert lines[-1].startswith("setup: done in ")


def test_a_failed_installation_fails(project: Path) -> None:
    file = interpreter(project.parent / "bin" / "python-broken", "/opt/broken")
    file.write_text(
        file.read_text(encoding="utf-8").replace("esac", "esac\ncase $* in *'pip install'*) exit 1 ;; esac"),
        encoding="utf-8",
    )
    done = set_up(project, "python-broken")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("setup: the packages could not be installed")


def test_ci_uses_the_python_of_the_system(tmp_path: Path) -> None:
    """`make` is a program that fails, so .ci/run ends after its first stage."""
    program(tmp_path / "make", f"echo $* >> '{tmp_path}/calls'", "exit 1")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    assert subprocess.run(
        ["bash", str(ROOT / ".ci" / "run")], env={**os.environ, "PATH": path}, capture_output=True
    ).returncode
    system = "/usr/bin/python3"
    question = "import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 10))"
    is_fit = (
        Path(system).exists() and subprocess.run([system, "-c", question], capture_output=True).returncode == 0
    )
    expected = f"setup PYTHON={system}" if is_fit else "setup"
    assert (tmp_path / "calls").read_text(encoding="utf-8").splitlines() == [expected]
