"""Commands that get signals at random times: their reports are correct, and the next start repairs the tables."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from routing.config import TableLocation
from tests.crash.estate import NOW, OUTCOMES, before, copied, run_ids, state
from tests.signalled import SIGNAL_WORDS, Ended, ended, started, wait_until_guarded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.long,
    pytest.mark.classic,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc"),
]
EXAMPLES = Path(__file__).parents[2] / "conf" / "examples"
CHANCE = random.Random(int(os.environ.get("SBROUTE_SIGNALS_SEED", "20260105")))
SIGNALS = int(os.environ.get("SBROUTE_SIGNALS", "2"))
NOTHING, NO_RUN, COUNTS = (
    "nothing was written",
    r"the run does not count \(start it again\)",
    r"run \S+ counts, .*",
)
NO_DEMO = r"the demo is not complete \(start it again\)"
STAYS = r"committed changes stay \(the next import completes the rest\)"


def _interrupt(arguments: Sequence[str], within: float, folder: Path, *texts: str) -> Ended:
    """Send a signal to a command within some seconds, and check its output and leftovers."""
    number, at, to_all = CHANCE.choice(list(SIGNAL_WORDS)), CHANCE.uniform(0, within), CHANCE.random() < 0.5
    folder.mkdir(exist_ok=True)
    process = started(["-m", "routing", *arguments], TMPDIR=str(folder))
    wait_until_guarded(process)
    time.sleep(at)
    begun = time.monotonic()
    if to_all:
        # A terminal also sends the signal to all processes that have not left its group.
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    done = ended(process)
    case_text = f"{number.name} after {at:.2f} s: {done}"
    assert done.left == {}, case_text
    if done.code != 0:
        assert done.code == 128 + number, case_text
        assert re.fullmatch(
            rf"((note|rejected|Spark): .*\n)*sbroute: {SIGNAL_WORDS[number]}: ({'|'.join(texts)})\n", done.err
        ), case_text
        assert time.monotonic() - begun < 30, case_text
        assert list(folder.glob("sbroute-java-*")) == [], case_text
    return done


def _seconds(arguments: Sequence[str]) -> float:
    """Run a command without a signal, and return its duration."""
    begun = time.monotonic()
    done = ended(started(["-m", "routing", *arguments]), 400)
    assert done.code == 0, done
    return time.monotonic() - begun


def test_resolve(spark: SparkSession, tmp_path: Path) -> None:
    case = before(spark, tmp_path / "case")
    single, again = copied(case, tmp_path / "single"), copied(case, tmp_path / "again")
    options = ["--now", NOW.isoformat(), "--quiet"]
    seconds = _seconds(["resolve", "--config", str(single.file), *options])
    clean = state(single)
    later = [row for row in clean["resolved_routes"] if row["run_id"] == "later"]
    assert {(row["message_id"], row["attempt"]): row["reason"] for row in later} == OUTCOMES
    line = ["resolve", "--config", str(again.file), *options]
    for _ in range(SIGNALS):
        done = _interrupt(line, seconds, tmp_path / "temporary", NOTHING, NO_RUN, COUNTS)
        counts = len(run_ids(again)) == 2
        assert counts == (done.code == 0 or " counts, " in done.err), done
        assert not (again.folder / "out" / "runs.lock").exists()
        if counts:
            # Another run would try the delayed messages again.
            break
    else:
        _seconds(line)
    assert state(again) == clean


def test_while_spark_starts(tmp_path: Path) -> None:
    """The Java process is first a shell script, then a program that prints a command line, then Spark itself."""
    line = ["demo", "--engine", "spark", "--out", str(tmp_path / "demo")]
    for _ in range(2 * SIGNALS):
        done = _interrupt(line, 5, tmp_path / "temporary", NOTHING, NO_DEMO)
        assert done.code != 0
    assert not (tmp_path / "demo" / "out").exists()


def test_demo(tmp_path: Path) -> None:
    line = ["demo", "--engine", "spark", "--out", str(tmp_path / "demo")]
    seconds = _seconds(line)
    for _ in range(SIGNALS // 2):
        _interrupt(line, seconds, tmp_path / "temporary", NOTHING, NO_DEMO, COUNTS)
    _seconds(line)
    assert len(list((tmp_path / "demo" / "out" / "runs").glob("*.parquet"))) == 1


def _imported(folder: Path) -> dict[str, list[str]]:
    """Return the rows of every input table without the time of the import."""
    from tests.imports import rows_at

    found = {}
    for table in sorted((folder / "data").iterdir()):
        rows = rows_at(TableLocation(str(table)))
        found[table.name] = sorted(repr({**row, "imported_at": None}) for row in rows)
    return found


def _import_into(folder: Path) -> list[str]:
    folder.mkdir()
    text = (EXAMPLES / "import.yaml").read_text(encoding="utf-8").replace("../../build/demo-import/", "")
    (folder / "job.yaml").write_text(text, encoding="utf-8")
    return ["import", "catalog", str(EXAMPLES / "exports"), "--config", str(folder / "job.yaml")]


def test_import(tmp_path: Path) -> None:
    single, again = _import_into(tmp_path / "single"), _import_into(tmp_path / "again")
    seconds = _seconds(single)
    for _ in range(3 * SIGNALS):
        _interrupt(again, seconds, tmp_path / "temporary", NOTHING, STAYS)
        assert list((tmp_path / "again").rglob("*.lock")) == []
    _seconds(again)
    clean = _imported(tmp_path / "single")
    assert len(clean["routes"]) > 3
    assert _imported(tmp_path / "again") == clean
