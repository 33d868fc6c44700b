"""Standard output and standard error that are full, closed or left by their reader."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from routing import cli
from routing.demo import build
from routing.errors import OutputError

PAGE = ("lint", "--explain", "SBR001")
TABLE = ("check", str(Path(__file__).parents[2] / "conf" / "examples" / "exports"), "--fail-on", "delayed")
FULL = "No space left on device"
# Both ways in which Python may be told to write are tried as ``unbuffered``: line by line ("1"), once in a while.
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is full")


def run_in_shell(redirected: str, *arguments: str, unbuffered: str = "") -> subprocess.CompletedProcess[str]:
    """``sbroute`` with its streams redirected as a shell does."""
    environment = {
        **os.environ,
        "PYTHONUNBUFFERED": unbuffered,
        "PYTHONPATH": str(Path(cli.__file__).parents[1]),
    }
    script = f'"$@" {redirected}'
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "routing", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


def unwritable(why: str) -> str:
    return f"sbroute: standard output cannot be written: {why} (tables that the command wrote are complete)\n"


@needs_full
@pytest.mark.parametrize(
    ("line", "unbuffered"),
    [
        *((line, unbuffered) for line in (PAGE, ("--help",)) for unbuffered in ("1", "")),
        (TABLE, "1"),
        *(
            pytest.param(line, unbuffered, marks=pytest.mark.long)
            for line in (("--version",), ("demo", "--help"), ())
            for unbuffered in ("1", "")
        ),
    ],
)
def test_a_full_disk_is_one_sentence(line: tuple[str, ...], unbuffered: str) -> None:
    done = run_in_shell(">/dev/full", *line, unbuffered=unbuffered)
    assert (done.returncode, done.stderr) == (2, unwritable(FULL))


def test_a_closed_standard_output_is_one_sentence() -> None:
    done = run_in_shell(">&-", *PAGE)
    assert (done.returncode, done.stderr) == (2, unwritable("it is closed"))


@pytest.mark.parametrize(
    ("line", "status", "unbuffered"),
    [(PAGE, 0, "1"), (PAGE, 0, ""), (TABLE, 1, ""), (("--help",), 0, "1"), (("--help",), 0, "")],
)
def test_a_closed_pipe_changes_nothing(line: tuple[str, ...], status: int, unbuffered: str) -> None:
    """The pipe's other end is closed before the command writes."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "routing", *line],
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
        env={
            **os.environ,
            "PYTHONUNBUFFERED": unbuffered,
            "PYTHONPATH": str(Path(cli.__file__).parents[1]),
        },
    )
    os.close(write)
    closing = rb"\d+ files read, \d+ skipped, \d+ rows refused\n" if line is TABLE else rb""
    assert done.returncode == status
    assert re.fullmatch(closing, done.stderr) is not None


@pytest.mark.parametrize(
    ("redirected", "unbuffered"),
    [
        # Without a stream there is nothing to buffer.
        ("2>&-", ""),
        pytest.param("2>/dev/full", "1", marks=needs_full),
        pytest.param("2>/dev/full", "", marks=needs_full),
    ],
)
def test_without_standard_error_the_status_is_the_same(redirected: str, unbuffered: str) -> None:
    assert run_in_shell(redirected, "chek", unbuffered=unbuffered).returncode == 2
    assert run_in_shell(redirected, "check", "/no/such", unbuffered=unbuffered).returncode == 2
    done = run_in_shell(redirected, *PAGE, unbuffered=unbuffered)
    assert (done.returncode, done.stdout[:8]) == (0, "# SBR001")


def test_a_folder_of_the_demo_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Told before Spark starts."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert cli.main(["demo", "--out", str(tmp_path / "file" / "demo")]) == 2
    file = tmp_path / "file"
    assert capsys.readouterr().err == (
        f"sbroute: '{file}/demo' cannot be written: '{file}' is not a folder (name another folder with --out)\n"
    )
    # Who may do anything may write there all the same.
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert cli.main(["demo", "--out", str(tmp_path / "a" / "demo")]) == 2
    assert capsys.readouterr().err == (
        f"sbroute: '{tmp_path}/a/demo' cannot be written: '{tmp_path}' does not allow it"
        " (name another folder with --out)\n"
    )


def test_a_demo_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(OutputError, match="cannot be written: Not a directory"):
        build.claim(tmp_path / "file" / "demo")
