"""Java's log goes when a command has ended well, and stays, its place told, when it has not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from routing.errors import EnvironmentFault
from routing.sessions import session

# A process whose commands start a session as the real ones do, but for Java itself, and end as they are told.
_COMMAND = """
import os, signal, sys
from types import SimpleNamespace
import delta, pyspark.sql
from routing import cli
from routing.sessions import session
from routing.errors import InputError, StorageError

class Builder:
    def appName(self, _): return self
    def config(self, *_): return self
    def getOrCreate(self):
        os.write(2, b"WARNING: of Java")
        return SimpleNamespace(conf={})

class Sessions:
    builder = Builder()
    @staticmethod
    def getActiveSession(): return None

def command(options, console):
    if not session.java_logs():
        session.start({}, verbose=options.verbose)
    end = ends.pop(0)
    if end == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if end == "interrupted":
        raise KeyboardInterrupt
    if end == "refused":
        raise InputError.missing_table("routes", "/data/routes")
    if end == "failed":
        raise StorageError.failed("writing", "no space")
    if end == "broken":
        raise ZeroDivisionError
    return int(end)

pyspark.sql.SparkSession = Sessions
session.find_remembered_jars = lambda: ["/a.jar"]
cli._COMMANDS["resolve"] = command
ends = sys.argv[1].split()
line = ["resolve", "--config", "x", *sys.argv[2:]]
status = [cli.main(line) for _ in range(len(ends))][-1]
sys.exit(status)
"""


def _run(ends: str, folder: Path, *options: str) -> tuple[list[Path], str]:
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, ends, *options],
        env={**os.environ, "PYTHONPATH": str(Path(session.__file__).parents[2]), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return list(folder.iterdir()), done.stderr


@pytest.mark.parametrize("ends", ["0", "0 0"])
def test_a_command_that_ends_well_leaves_none(tmp_path: Path, ends: str) -> None:
    assert _run(ends, tmp_path) == ([], "")


@pytest.mark.parametrize(
    "ends", ["1", "refused", "failed", "broken", "interrupted", "killed", "0 failed", "failed 0"]
)
def test_any_other_leaves_it(tmp_path: Path, ends: str) -> None:
    (log,), told = _run(ends, tmp_path)
    assert log.read_text() == "WARNING: of Java"
    is_told = f"Java's own messages are in {log}\n" in told
    assert is_told == any(end in ends for end in ("failed", "broken"))
    if is_told:
        assert told.splitlines()[-1].startswith("sbroute: ")


def test_who_is_shown_java_s_messages_has_no_log(tmp_path: Path) -> None:
    left, told = _run("failed", tmp_path, "--verbose")
    assert left == []
    assert "WARNING: of Java" in told


def test_a_failed_start_says_where_there_is_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Builder:
        def appName(self, _: str) -> Builder:  # noqa: N802 - Spark's name.
            return self

        def config(self, *_: str) -> Builder:
            return self

        def getOrCreate(self) -> None:  # noqa: N802 - Spark's name.
            os.write(2, b"hello\nError: Could not create the Java Virtual Machine.\n")
            raise OSError("[JAVA_GATEWAY_EXITED]")

    class Sessions:
        builder = Builder()

    # It looks at Spark's own builder when it is imported.
    pytest.importorskip("delta")
    monkeypatch.setattr("pyspark.sql.SparkSession", Sessions)
    monkeypatch.setattr("routing.sessions.session.find_remembered_jars", lambda: ["/a.jar"])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    (tmp_path / "java" / "bin").mkdir(parents=True)
    (tmp_path / "java" / "bin" / "java").touch()
    logs: list[Path] = []
    with pytest.raises(EnvironmentFault, match="Could not create the Java Virtual Machine") as caught:
        session._start_local({}, verbose=False, logs=logs)
    (log,) = tmp_path.glob("sbroute-java-*.log")
    assert logs == [log]
    assert f"(more in {log})" in str(caught.value)
    assert log.read_text().startswith("hello\n")
