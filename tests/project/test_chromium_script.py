"""scripts/chromium.sh on machines that have a browser and its driver, only one of them, or neither."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "chromium.sh"
# No browser or driver that this machine has is of this version.
BROWSER, DRIVER = "Chromium 9999.0.8078.79 built on Debian", "ChromeDriver 9999.0.8078.12 (a21c)"
MISSING = "chromium: Chromium and a chromedriver of its version are missing"


def program(file: Path, *lines: str) -> Path:
    """A program of the shell."""
    file.write_text("\n".join(("#!/bin/bash", *lines, "")), encoding="utf-8")
    file.chmod(0o755)
    return file


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Return a folder with the only programs that the script needs, and a user who is root."""
    for name in ("bash", "env", "sed"):
        found = shutil.which(name)
        assert found
        (tmp_path / name).symlink_to(found)
    program(tmp_path / "id", "echo 0")
    return tmp_path


def run(machine: Path, **variables: str) -> tuple[int, list[str], str]:
    """Return the exit status, the lines of standard output, and the messages."""
    environment = {name: value for name, value in os.environ.items() if name not in ("CHROMIUM", "CHROMEDRIVER")}
    line = [str(machine / "bash"), str(SCRIPT)]
    environment = {**environment, "PATH": str(machine), **variables}
    ended = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stdout.splitlines(), ended.stderr


def test_a_pair_on_the_path(machine: Path) -> None:
    chromium = program(machine / "google-chrome", f"echo '{BROWSER}'", "echo 'of 12.3' >&2")
    driver = program(machine / "chromedriver", f"echo '{DRIVER}'")
    assert run(machine) == (0, [str(chromium), str(driver)], "")


def test_browsers_named_by_variables_come_first(machine: Path, tmp_path: Path) -> None:
    for name, says in (("chromium", BROWSER), ("chromedriver", DRIVER)):
        program(machine / name, f"echo '{says}'")
        program(tmp_path / f"my {name}", f"echo '{says}'")
    named = [str(tmp_path / "my chromium"), str(tmp_path / "my chromedriver")]
    assert run(machine, CHROMIUM=named[0], CHROMEDRIVER=named[1]) == (0, named, "")


def test_a_browser_that_does_not_run_is_passed_over(machine: Path) -> None:
    program(machine / "chromium", "echo 'run: snap install chromium' >&2", "exit 1")
    chrome = program(machine / "google-chrome", f"echo '{BROWSER}'")
    driver = program(machine / "chromedriver", f"echo '{DRIVER}'")
    assert run(machine) == (0, [str(chrome), str(driver)], "")


def test_a_driver_of_another_version_is_refused(machine: Path) -> None:
    chromium = program(machine / "chromium", f"echo '{BROWSER}'")
    driver = program(machine / "chromedriver", "echo 'ChromeDriver 9998.0.1 (a)'")
    status, printed, err = run(machine)
    assert (status, printed) == (1, [])
    assert err.startswith(f"{MISSING} ({chromium} is of version 9999 and {driver} of 9998); install both and set")


def test_users_other_than_root_get_the_install_command(machine: Path) -> None:
    program(machine / "id", "echo 1000")
    program(machine / "apt-get", "exit 9")
    status, printed, err = run(machine)
    assert (status, printed) == (1, [])
    assert err.startswith(MISSING)
    assert err.endswith("; run: sudo apt-get update && sudo apt-get install chromium chromium-driver\n")


def test_root_gets_them_from_apt_get(machine: Path) -> None:
    for name, says in (("chromium", BROWSER), ("chromedriver", DRIVER)):
        program(machine / f"new-{name}", f"echo '{says}'")
    put = [
        f"[ $1 = update ] || PATH=/usr/bin:/bin mv {machine}/new-{name} {machine}/{name}"
        for name in ("chromium", "chromedriver")
    ]
    program(machine / "apt-get", 'echo "$@"', *put)
    status, printed, err = run(machine)
    assert (status, printed) == (0, [str(machine / "chromium"), str(machine / "chromedriver")])
    assert err.splitlines()[1:] == ["update", "install -y --no-install-recommends chromium chromium-driver"]


def test_a_failing_apt_get_is_reported(machine: Path) -> None:
    program(machine / "apt-get", "echo 'E: no network' >&2", "exit 100")
    status, printed, err = run(machine)
    assert (status, printed) == (1, [])
    last = "chromium: apt-get could not install chromium chromium-driver: see its message above"
    assert err.splitlines()[-2:] == ["E: no network", last]
