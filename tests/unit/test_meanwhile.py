"""A session that starts while something else is done, and what becomes of stages within each other."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from routing.delta.opening import TableOpener
from routing.errors import EnvironmentFault, NoJavaFault
from routing.runs.run_work import Progress, Stages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION = cast("SparkSession", object())


@pytest.fixture(autouse=True)
def _no_session_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routing.sessions.session.is_given", lambda: False)


def test_a_session_that_is_given_is_taken_by_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routing.sessions.session.is_given", lambda: True)
    threads = list[threading.Thread]()

    def start() -> SparkSession:
        threads.append(threading.current_thread())
        return SESSION

    opener = TableOpener(start)
    opener.start_meanwhile()
    assert threads == [threading.current_thread()]
    assert opener.spark is SESSION


def test_the_session_is_waited_for_where_it_is_needed() -> None:
    may_go_on, told = threading.Event(), list[str]()

    def start() -> SparkSession:
        assert may_go_on.wait(10)
        told.append(threading.current_thread().name)
        return SESSION

    @contextmanager
    def waiting() -> Iterator[None]:
        told.append("waiting")
        may_go_on.set()
        yield
        told.append("waited")

    opener = TableOpener(start, waiting=waiting)
    opener.start_meanwhile()
    opener.start_meanwhile()
    assert told == []
    assert opener.spark is opener.spark is SESSION
    assert told == ["waiting", "starting Spark", "waited"]
    opener.start_meanwhile()
    assert told == ["waiting", "starting Spark", "waited"]


def test_why_no_session_could_be_started_is_told_where_it_is_needed() -> None:
    def start() -> SparkSession:
        raise NoJavaFault.no_java("none")

    opener = TableOpener(start)
    opener.start_meanwhile()
    with pytest.raises(EnvironmentFault, match="Spark could not start"):
        _ = opener.spark


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        (None, True),
        ("local", True),
        ("local[*]", True),
        ("local[2,3]", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://head:7077", False),
        ("yarn", False),
    ],
)
def test_a_session_that_is_to_come_is_of_one_machine_or_not(
    master: str | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {} if master is None else {"spark.master": master}
    assert TableOpener(lambda: SESSION, settings).is_of_one_machine is expected
    monkeypatch.setattr("routing.sessions.session.is_given", lambda: True)
    assert TableOpener(lambda: SESSION).is_of_one_machine is False


def test_what_python_writes_while_java_starts_goes_where_it_ever_does(tmp_path: Path) -> None:
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


def test_the_seconds_of_a_stage_within_another_are_its_own() -> None:
    told = list[Progress]()
    clock = Stages(told.append)
    begun = time.monotonic()
    with clock.stage("outer"):
        time.sleep(0.02)
        with clock.stage("inner"):
            time.sleep(0.1)
    with clock.stage("later"):
        time.sleep(0.01)
    whole = time.monotonic() - begun
    assert clock.seconds["inner"] >= 0.1
    assert clock.seconds["outer"] >= 0.02
    # Nothing is counted twice.
    assert sum(clock.seconds.values()) <= whole
    assert [(one.stage, one.seconds is None) for one in told] == [
        ("outer", True),
        ("inner", True),
        ("inner", False),
        ("outer", False),
        ("later", True),
        ("later", False),
    ]
