"""Jobs of a run have its id and stage, by a description or by a tag; the user's own come back."""

from __future__ import annotations

from typing import Any, cast

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from routing.errors import StorageError
from routing.run_context import StageClock
from routing.sessions.job_labels import DESCRIPTION, labelled_jobs


class Context:
    """The context of a classic session: its local properties."""

    def __init__(self, values: dict[str, str | None]) -> None:
        self.values = values

    def getLocalProperty(self, key: str) -> str | None:  # noqa: N802 - Spark's name.
        return self.values.get(key)

    def setLocalProperty(self, key: str, value: str | None) -> None:  # noqa: N802 - Spark's name.
        self.values[key] = value


class Classic:
    """A classic session."""

    def __init__(self, **values: str) -> None:
        self.sparkContext = Context(dict(values))


class Connect:
    """A session of Spark Connect: its tags."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self, *tags: str) -> None:
        self.tags = set(tags)

    def getTags(self) -> set[str]:  # noqa: N802 - Spark's name.
        return self.tags

    def addTag(self, tag: str) -> None:  # noqa: N802 - Spark's name.
        assert "," not in tag
        self.tags.add(tag)

    def removeTag(self, tag: str) -> None:  # noqa: N802 - Spark's name.
        self.tags.remove(tag)


def _session(stand_in: object) -> SparkSession:
    session: Any = stand_in
    return cast("SparkSession", session)


@pytest.mark.parametrize("own", ["the user's", None])
def test_a_description_changes_with_the_stage_and_is_restored(own: str | None) -> None:
    session = Classic()
    values = session.sparkContext.values = {DESCRIPTION: own}
    with labelled_jobs("night", lambda: _session(session)) as label_jobs:
        label_jobs(None)
        clock = StageClock(on_change=label_jobs)
        assert values[DESCRIPTION] == "sbroute night"
        with clock.stage("read"):
            assert values[DESCRIPTION] == "sbroute night: read"
            with clock.stage("requests"):
                assert values[DESCRIPTION] == "sbroute night: requests"
            assert values[DESCRIPTION] == "sbroute night: read"
        assert values[DESCRIPTION] == "sbroute night"
    assert values[DESCRIPTION] == own


def test_a_tag_changes_with_the_stage_beside_those_of_the_user() -> None:
    session = Connect("mine")
    with labelled_jobs("a,b", lambda: _session(session)) as label_jobs:
        label_jobs(None)
        clock = StageClock(on_change=label_jobs)
        assert session.tags == {"mine", "sbroute a;b"}
        with clock.stage("read"):
            assert session.tags == {"mine", "sbroute a;b: read"}
        assert session.tags == {"mine", "sbroute a;b"}
    assert session.tags == {"mine"}


def test_tags_that_the_user_has_or_clears_are_the_users() -> None:
    session = Connect("sbroute night: read")
    with labelled_jobs("night", lambda: _session(session)) as label_jobs:
        label_jobs("read")
        label_jobs("write")
        assert session.tags == {"sbroute night: read", "sbroute night: write"}
        session.tags.clear()
    assert session.tags == set()


def test_a_session_started_within_a_stage_is_labelled() -> None:
    session, started = Classic(), list[SparkSession]()
    values = session.sparkContext.values
    with labelled_jobs("night", lambda: started[0] if started else None) as label_jobs:
        clock = StageClock(on_change=label_jobs)
        with clock.stage("read"):
            with clock.stage("session"):
                started.append(_session(session))
            assert values == {DESCRIPTION: "sbroute night: read"}
    assert values == {DESCRIPTION: None}


def test_a_stage_that_failed_is_not_the_current_one() -> None:
    descriptions = list[str | None]()
    clock = StageClock(on_change=descriptions.append)
    with clock.stage("read"):
        with pytest.raises(StorageError), clock.stage("pending"):
            raise KeyError
        with clock.stage("plan"):
            pass
    assert descriptions == ["read", "pending", "plan", "read", None]


def test_a_session_that_has_ended_hides_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_answer(*_: object) -> None:
        raise Py4JNetworkError

    session = Classic()

    def fail() -> None:
        with labelled_jobs("night", lambda: _session(session)) as label_jobs:
            label_jobs("read")
            monkeypatch.setattr(session.sparkContext, "setLocalProperty", no_answer)
            raise ValueError("the run's own error")

    with pytest.raises(ValueError, match="the run's own error"):
        fail()
