"""Whether a session can cache frames is tried once. Caches are released after a session has ended."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException

from routing.sessions.existing_session import let_go, takes_persist
from routing.tables.cached_frames import FrameCache
from tests.refusing import refused

NO_PERSIST = refused("NOT_SUPPORTED_WITH_SERVERLESS", "PERSIST TABLE is not supported on serverless compute.")
LOST = refused("INTERNAL_ERROR", "the network", PySparkException)
CLOSED = refused("INVALID_HANDLE.SESSION_CLOSED", "Session was closed.", PySparkException)
STOPPED = refused("NO_ACTIVE_SESSION", "No active Spark session found.", PySparkException)


class Frame:
    """A frame that fails in one of its verbs."""

    def __init__(self, failing: dict[str, Exception], done: list[str]) -> None:
        self.failing, self.done = failing, done

    def _do(self, what: str) -> None:
        self.done.append(what)
        if what in self.failing:
            raise self.failing[what]

    def persist(self) -> None:
        self._do("persist")

    def count(self) -> int:
        self._do("count")
        return 1

    def unpersist(self) -> None:
        self._do("unpersist")


class Session:
    """A minimal session of Spark Connect."""

    def __init__(self, **failing: Exception) -> None:
        self.failing, self.done = failing, []  # type: tuple[dict[str, Exception], list[str]]

    def createDataFrame(self, rows: Any, schema: str) -> Frame:  # noqa: N802 - Spark's name.
        return Frame(self.failing, self.done)


Session.__module__ = "pyspark.sql.connect.session"


@pytest.mark.parametrize(
    ("failing", "takes", "done"),
    [
        ({}, True, ["persist", "count", "unpersist"]),
        ({"persist": NO_PERSIST}, False, ["persist"]),
        ({"count": NO_PERSIST}, False, ["persist", "count"]),
    ],
)
def test_a_connect_session_is_tested_once_for_caching(
    failing: dict[str, Exception], takes: bool, done: list[str]
) -> None:
    session: Any = Session(**failing)
    other: Any = Session()
    assert [takes_persist(session), takes_persist(session), takes_persist(other)] == [takes, takes, True]
    assert session.done == done


def test_a_classic_session_is_not_tried() -> None:
    session: Any = object()
    assert takes_persist(session)


@pytest.mark.parametrize("verb", ["persist", "count"])
def test_other_errors_are_raised_and_not_remembered(verb: str) -> None:
    session: Any = Session(**{verb: LOST})
    for _ in range(2):
        with pytest.raises(PySparkException, match="the network"):
            takes_persist(session)
    session.failing = {}
    assert takes_persist(session)


@pytest.mark.parametrize("error", [CLOSED, STOPPED])
def test_an_ended_session_has_no_cached_frames(error: PySparkException) -> None:
    frame: Any = Frame({"unpersist": error}, [])
    let_go(frame)
    assert frame.done == ["unpersist"]


def test_a_failed_release_is_reported() -> None:
    with FrameCache() as frame_cache:
        pass
    frame_cache.frames = [Frame({"unpersist": LOST}, [])]  # type: ignore[list-item]
    with pytest.raises(PySparkException, match="the network"):
        frame_cache.release()


def test_the_first_error_of_a_block_is_raised() -> None:
    frame: Any = Frame({"unpersist": LOST}, [])

    def work(error: Exception | None) -> None:
        with FrameCache() as frame_cache:
            frame_cache.frames = [frame]
            if error is not None:
                raise error

    with pytest.raises(LookupError):
        work(LookupError())
    with pytest.raises(PySparkException, match="the network"):
        work(None)
    assert frame.done == ["unpersist", "unpersist"]
