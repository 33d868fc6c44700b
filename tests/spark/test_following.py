"""Following a job: it runs when an input changes or a message is due, as a loop or as a stream's alarm."""

from __future__ import annotations

import shutil
import signal
import time
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

import routing
from routing.config import ConfigError
from routing.delta.opening import TableOpener
from routing.errors import EnvironmentFault
from routing.runs.following import LONGEST_PAUSE, Follower, find_reason
from routing.schemas import INPUTS
from tests.estate_rows import endpoint, message, route, small_estate
from tests.frames import frame_of
from tests.hooks import hooked, once
from tests.imports import rows_at
from tests.signalled import ended, started
from tests.stored import config_of, save_estate, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

pytestmark = [pytest.mark.core, pytest.mark.classic]
NOON = datetime(2026, 1, 5, 12, 30, tzinfo=timezone.utc)


class Job:
    """A job over the small estate, and a second job that never fails."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        estate = small_estate()
        estate["dialogs"] = []
        save_estate(estate, folder / "in", files=1)
        self.config = self._config("out")

    def _config(self, name: str) -> Config:
        pending = f"output.pending_messages={self.folder / name / 'pending_messages'}"
        return config_of(self.folder / "in", self.folder / name, "resolve.mode=incremental", pending)

    def append(self, key: str, *rows: dict[str, Any]) -> None:
        """Append rows to an input."""
        frame = frame_of(self.spark, list(rows), INPUTS[key]).coalesce(1)
        frame.write.format("delta").mode("append").save(str(self.folder / "in" / key))

    def reason(self, now: datetime = NOON) -> str | None:
        """Return the reason for a run, or None."""
        return find_reason(TableOpener.of_session(self.spark), self.config, now)

    def runs(self) -> int:
        """Count the recorded runs."""
        first = Path(self.config.output["runs"].text, "_delta_log", f"{0:020}.json")
        return len(rows_at(self.config.output["runs"])) if first.exists() else 0

    def decided(self, config: Config | None = None) -> Counter[tuple[str, str]]:
        """Return the last decisions of all messages."""
        rows = routing.current_routes(self.spark, config or self.config).collect()
        return Counter((row["message_id"], row["reason"]) for row in rows)

    def stream(self, checkpoint: str) -> None:
        """Run a stream over the commits so far."""
        place = str(self.folder / checkpoint)
        query = routing.resolve_stream(self.spark, self.config, checkpoint=place, trigger={"availableNow": True})
        query.awaitTermination()

    def run_other(self) -> Counter[tuple[str, str]]:
        """Run a second job over the same inputs, and return its decisions."""
        other = self._config("other")
        routing.run(self.spark, other)
        return self.decided(other)


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Job:
    """Return a job without a run."""
    return Job(spark, tmp_path)


@pytest.mark.spark
def test_reasons_for_a_run(job: Job) -> None:
    assert job.reason() == "no run is recorded yet"
    job.append("dialogs", endpoint(4, lifetime="2026-01-05T14:00:00Z"))
    routing.run(job.spark, job.config, now=NOON)
    assert job.reason() is None
    assert job.reason(NOON + timedelta(hours=1)) is None
    assert job.reason(NOON + timedelta(hours=2)) == "a delayed message is due"
    for key, row in (
        ("messages", message(20, "//far")),
        ("routes", route("New", "//nowhere", "TCP://near.example:4022")),
        ("dialogs", endpoint(21)),
    ):
        job.append(key, row)
        assert job.reason() == f"tables.{key} has changed"
        routing.run(job.spark, job.config, now=NOON)
        assert job.reason() is None, key
    # The new route was enough to send the delayed message.
    assert ("m4", "NETWORK_ADDRESS") in job.decided()
    job.spark.sql(f"RESTORE TABLE delta.`{job.config.output['runs'].text}` TO VERSION AS OF 1")
    assert job.reason() is not None


def test_pauses_double_after_failures(job: Job, tmp_path: Path) -> None:
    failures: list[tuple[str, timedelta]] = []
    every = timedelta(minutes=5)

    def run(reason: str) -> None:
        routing.run(job.spark, job.config, now=NOON)

    follower = Follower(
        TableOpener.of_session(job.spark),
        job.config,
        every,
        run,
        lambda error, pause: failures.append((type(error).__name__, pause)),
    )
    messages = job.folder / "in" / "messages"
    messages.rename(job.folder / "elsewhere")
    pauses = [follower.step() for _ in range(4)]
    assert pauses == [every * 2, every * 4, LONGEST_PAUSE, LONGEST_PAUSE]
    assert failures == [("InputError", pause) for pause in pauses]
    (job.folder / "elsewhere").rename(messages)
    assert (follower.step(), follower.failures, job.runs()) == (every, 0, 1)
    files = written(tmp_path / "out")
    assert follower.step() == every
    assert written(tmp_path / "out") == files


@pytest.mark.long
def test_a_stream_only_triggers_runs(job: Job) -> None:
    """A lost, copied or replayed checkpoint changes nothing, nor does a delete or a restored table of runs."""
    job.stream("checkpoint")
    assert job.runs() == 1
    shutil.copytree(job.folder / "checkpoint", job.folder / "copy")
    job.stream("checkpoint")
    job.stream("lost")
    assert job.runs() == 1
    job.append("messages", message(20, "//far"), message(21, "//nowhere"))
    job.stream("checkpoint")
    job.stream("copy")
    assert job.runs() == 2
    job.spark.sql(f"DELETE FROM delta.`{job.folder / 'in' / 'messages'}` WHERE message_id = 'm20'")
    job.append("messages", message(22, "//stock"))
    job.stream("copy")
    assert (job.runs(), "m20" in {number for number, _ in job.decided()}) == (3, True)
    job.spark.sql(f"RESTORE TABLE delta.`{job.config.output['runs'].text}` TO VERSION AS OF 1")
    job.append("messages", message(23, "//stock"))
    job.stream("checkpoint")
    decided = job.decided()
    assert {number for number, _ in decided} >= {"m21", "m22", "m23"}
    assert max(decided.values()) == 1


def _fail() -> None:
    raise RuntimeError("failed here")


@pytest.mark.long
@pytest.mark.parametrize("point", ["before resolved_routes", "before pending_messages", "before runs"])
def test_a_stream_continues_after_a_failure(job: Job, point: str) -> None:
    job.stream("checkpoint")
    job.run_other()
    job.append("messages", message(20, "//far"), message(21, "//nowhere"))
    with hooked(once(point, _fail)), pytest.raises(StreamingQueryException, match="failed here"):
        job.stream("checkpoint")
    assert job.runs() == 1
    job.stream("checkpoint")
    assert job.runs() == 2
    assert job.decided() == job.run_other()


def test_only_an_incremental_job_is_followed(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    full = config_of(job.folder / "in", job.folder / "full")
    with pytest.raises(ConfigError, match=r"only resolve\.mode: incremental can follow new messages"):
        routing.resolve_stream(job.spark, full, checkpoint=str(job.folder / "checkpoint"))
    monkeypatch.setattr("routing.runs.following.is_connect", lambda spark: True)
    with pytest.raises(EnvironmentFault, match="needs a classic Spark session"):
        routing.resolve_stream(job.spark, job.config, checkpoint=str(job.folder / "checkpoint"))


@pytest.mark.long
def test_the_command_follows_until_a_signal(job: Job) -> None:
    file = job.folder / "job.yaml"
    lines = ["tables:", *(f"  {key}: {place}" for key, place in job.config.tables.items())]
    lines += ["output:", *(f"  {key}: {place}" for key, place in job.config.output.items())]
    file.write_text("\n".join([*lines, "resolve:", "  mode: incremental"]), encoding="utf-8")
    process = started(["-m", "routing", "resolve", "--config", str(file), "--follow", "--every", "1s"])
    try:
        _wait_for(lambda: job.runs() == 1)
        time.sleep(3)
        assert job.runs() == 1
        # Only a route is new.
        job.append("routes", route("New", "//nowhere", "TCP://near.example:4022"))
        _wait_for(lambda: job.runs() == 2)
        job.append("messages", message(20, "//far"))
        _wait_for(lambda: job.runs() == 3)
    finally:
        process.send_signal(signal.SIGTERM)
    done = ended(process)
    assert (done.code, done.left) == (143, {})
    assert "sbroute: ended by SIGTERM: run" in done.err
    assert "tables.routes has changed" in done.err
    assert {"m4", "m20"} <= {number for number, _ in job.decided()}


def _wait_for(holds: Any, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)
