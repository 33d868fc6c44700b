"""Java's log is deleted after a successful command. After a failure it stays and its place is printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from routing.errors import EnvironmentFault
from routing.sessions import session

# A process that imports once, and becomes another for each line: there commands start a session as the real ones
# do, but for Java itself, and end as they are told.
_COMMANDS = """
import json, os, signal, sys, tempfile
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
        session.start({"spark.jars": "/a.jar"}, verbose=options.verbose)
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
cli._COMMANDS["resolve"] = command
for asked in sys.stdin:
    child = os.fork()
    if not child:
        break
    os.waitpid(child, 0)
    print("ended", flush=True)
else:
    sys.exit()
told, folder, *options = json.loads(asked)
ends = told.split()
os.dup2(os.open(folder + ".err", os.O_CREAT | os.O_WRONLY), 2)
tempfile.tempdir = folder
line = ["resolve", "--config", "x", *options]
status = [cli.main(line) for _ in range(len(ends))][-1]
sys.exit(status)
"""
Runner = Callable[..., tuple[list[Path], str]]


@pytest.fixture(scope="module")
def run() -> Iterator[Runner]:
    """Run commands with this end and a folder for temporary files, and return the files and messages left."""
    with subprocess.Popen(
        [sys.executable, "-c", _COMMANDS],
        env={**os.environ, "PYTHONPATH": str(Path(session.__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, answers = process.stdin, process.stdout

        def run(ends: str, folder: Path, *options: str) -> tuple[list[Path], str]:
            asked.write(json.dumps([ends, str(folder), *options]) + "\n")
            asked.flush()
            assert answers.readline() == "ended\n"
            return list(folder.iterdir()), Path(f"{folder}.err").read_text(encoding="utf-8")

        yield run


@pytest.mark.parametrize("ends", ["0", "0 0"])
def test_a_successful_command_leaves_no_log(run: Runner, tmp_path: Path, ends: str) -> None:
    assert run(ends, tmp_path) == ([], "")


@pytest.mark.parametrize(
    "ends", ["1", "refused", "failed", "broken", "interrupted", "killed", "0 failed", "failed 0"]
)
def test_a_failed_command_leaves_its_log(run: Runner, tmp_path: Path, ends: str) -> None:
    (log,), err = run(ends, tmp_path)
    assert log.read_text() == "WARNING: of Java"
    is_told = f"Java's own messages are in {log}\n" in err
    assert is_told == any(end in ends for end in ("failed", "broken"))
    if is_told:
        assert err.splitlines()[-1].startswith("sbroute: ")


def test_verbose_output_has_no_log(run: Runner, tmp_path: Path) -> None:
    left, err = run("failed", tmp_path, "--verbose")
    assert left == []
    assert "WARNING: of Java" in err


def test_a_failed_start_names_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    (tmp_path / "java" / "bin").mkdir(parents=True)
    (tmp_path / "java" / "bin" / "java").touch()
    logs: list[Path] = []
    with pytest.raises(EnvironmentFault, match="Could not create the Java Virtual Machine") as caught:
        session._start_local({"spark.jars": "/a.jar"}, verbose=False, logs=logs)
    (log,) = tmp_path.glob("sbroute-java-*.log")
    assert logs == [log]
    assert f"(more in {log})" in str(caught.value)
    assert "section spark of the configuration" in str(caught.value.hint)
    assert log.read_text().startswith("hello\n")


def test_output_of_python_is_not_redirected(tmp_path: Path) -> None:
    log = tmp_path / "java.log"
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom routing.sessions import session\n"
        "print('before', file=sys.stderr)\n"
        f"with session._java_messages_in(Path({str(log)!r})):\n"
        "    os.write(2, b'of Java\\n')\n    print('meanwhile', file=sys.stderr, flush=True)\n"
        "print('after', file=sys.stderr)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, env=environment
    )
    assert (done.stderr, log.read_text()) == ("before\nmeanwhile\nafter\n", "of Java\n")
