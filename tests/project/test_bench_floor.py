"""The use of measurements by `make floor`, and the processes that it starts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from benchmarks import floor, processes
from benchmarks.gates import LARGE, SMALL, judge, lines
from benchmarks.parts import of_middle_round, parts
from benchmarks.processes import Process, over_large, results_differ
from benchmarks.shape import Shape
from benchmarks.stored import placed
from benchmarks.taken import Taken, taken_by

_GIB = 2**30


def _rounds(*seconds: float) -> list[Taken]:
    """Rounds of so many seconds, with twice the CPU and so many GiB."""
    return [Taken(0.0, value, 2 * value, int(value * _GIB)) for value in seconds]


_ROUNDS = {
    "bare-spark": _rounds(20.0, 10.0, 90.0),
    "resolve": _rounds(32.0, 31.0, 33.0),
    "bare-reader": _rounds(0.5),
    "explain": _rounds(2.5),
}
_LARGE_ROUNDS = {
    "resolve": _rounds(37.0, 38.0, 40.0),
    "copy": _rounds(20.0, 21.0, 19.0),
    "polars": _rounds(10.0),
    "duckdb": _rounds(8.0),
    "resolve-local": _rounds(9.0),
    "lint": _rounds(20.1),
    "explain": _rounds(5.0, 7.0),
    "group-by": _rounds(20.0),
    "report": _rounds(31.2),
    "reconcile": _rounds(38.4),
    "diff": _rounds(5.0),
}


def test_a_line_has_medians_the_largest_peak_and_the_ratio_to_the_floor() -> None:
    assert [line.cells() for line in lines(_ROUNDS, SMALL)] == [
        ("bare-spark", "20.0", "10.0", "90.0", "-", "40.0", "90.00"),
        ("resolve", "32.0", "31.0", "33.0", "1.60", "64.0", "33.00"),
        ("bare-reader", "0.5", "0.5", "0.5", "-", "1.0", "0.50"),
        ("explain", "2.5", "2.5", "2.5", "5.00", "5.0", "2.50"),
    ]
    multiples = {line.contender: line.times_floor for line in lines(_LARGE_ROUNDS, LARGE)}
    assert multiples == {
        "resolve": 1.9,
        "copy": None,
        "polars": 0.5,
        "duckdb": 0.4,
        "resolve-local": 0.9,
        "lint": None,
        "explain": None,
    } | {
        "group-by": None,
        "report": 1.56,
        "reconcile": pytest.approx(1.011, abs=0.001),
        "diff": None,
    }


def test_a_floor_that_was_not_measured_is_no_success() -> None:
    with pytest.raises(KeyError, match="bare-spark"):
        lines({"resolve": _rounds(1.0)}, SMALL)


def test_measurements_are_compared_with_their_limits() -> None:
    assert [str(verdict) for verdict in judge(lines(_ROUNDS, SMALL), SMALL)] == [
        "resolve: 1.60 times bare-spark, at most 1.6: met",
        "explain: 5.00 times bare-reader, at most 4: MISSED",
    ]
    # Polars is beside the copy as well, and nothing is asked of it.
    assert [str(verdict) for verdict in judge(lines(_LARGE_ROUNDS, LARGE), LARGE)] == [
        "resolve: 1.90 times copy, at most 1.9: met",
        "resolve-local: 0.90 times polars, at most 0.85: MISSED",
        "resolve-local: 1.12 times duckdb, at most 1.25: met",
        "explain: 6.0 s, at most 6 s: met",
        "lint: 20.1 s, at most 20 s: MISSED",
        # 1.3 times 20 s, and 5 s.
        "report: 1.56 times group-by, at most 1.55: MISSED",
        "reconcile: 1.01 times resolve, at most 1: MISSED",
        "diff: 5.0 s, at most 35 s: met",
        "diff: 5.0 GiB, at most 4.2 GiB: MISSED",
    ]
    slower = {**_LARGE_ROUNDS, "resolve": _rounds(38.2)}
    assert not judge(lines(slower, LARGE), LARGE)[0].is_met


_BEGAN = datetime(2026, 1, 5, 12, 0, 0, tzinfo=timezone.utc)


def _run(ended: float, **stages: float) -> dict[str, object]:
    """A row of runs that begins two seconds after its process."""
    started, finished = (_BEGAN + timedelta(seconds=seconds) for seconds in (2.0, ended))
    return {"started_at": started, "finished_at": finished, "stage_seconds": stages}


def test_the_parts_of_a_run_add_up_to_its_duration() -> None:
    measured = Taken(_BEGAN.timestamp(), 20.0, 35.0, _GIB)
    found = parts(measured, _run(19.0, session=6.5, read=1.5, write=8.0))
    assert {name: round(seconds, 3) for name, seconds in found.items()} == {
        "start": 2.0,
        "session": 6.5,
        "read": 1.5,
        "write": 8.0,
        "between stages": 1.0,
        "end": 1.0,
    }
    assert sum(found.values()) == pytest.approx(20.0)


def test_the_parts_are_those_of_the_round_in_the_middle() -> None:
    rounds = [Taken(_BEGAN.timestamp(), seconds, 0.0, 0) for seconds in (30.0, 10.0, 20.0, 25.0)]
    runs = [_run(9.0, write=write) for write in (3.0, 1.0, 2.0, 2.5)]
    assert of_middle_round(rounds, runs)["write"] == 2.0
    assert of_middle_round(rounds[:1], runs[:1])["write"] == 3.0
    assert of_middle_round([rounds[0], *rounds[2:]], [runs[0], *runs[2:]])["write"] == 2.5


def _as_told(name: str, command: Sequence[str]) -> Taken:
    return Taken(0.0, float(command[0]), 0.0, 0)


def test_only_the_gate_makes_a_missed_gate_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def exits(reader: str, lint: str) -> list[int]:
        both = {
            "bare-reader": Process("bare-reader", lambda out: [reader]),
            "lint": Process("lint", lambda out: [lint]),
        }
        asked = ["--rounds", "1", "--only", "lint"]
        return [floor.main(line, lambda arguments: (both, tmp_path)) for line in (asked, [*asked, "--gate"])]

    monkeypatch.setattr(processes, "taken_by", _as_told)
    assert exits("1.0", "4.1") == [0, 1]
    assert exits("1.0", "4.0") == [0, 0]


_ORPHAN = "x = bytearray(100 * 2**20); import time; time.sleep(1); y = sum(range(5_000_000))"
_LEAVES = f"import subprocess, sys; subprocess.Popen([sys.executable, '-S', '-c', {_ORPHAN!r}])"


def test_measurements_of_a_process_include_its_children() -> None:
    alone = taken_by("alone", [sys.executable, "-S", "-c", ""])
    both = taken_by("both", [sys.executable, "-S", "-c", _LEAVES])
    assert both.seconds < 1
    assert both.cpu - alone.cpu > 0.05
    assert both.peak - alone.peak > 100 * 2**20
    assert 0 < alone.peak < 50 * 2**20


def test_all_measured_commands_use_one_configuration_and_the_first_outputs(tmp_path: Path) -> None:
    shape = Shape(messages=10)
    for table in placed(shape, tmp_path).tables.values():
        Path(table, "_delta_log").mkdir(parents=True)
    large, results = over_large(shape, tmp_path)
    config = tmp_path / "out" / "floor.yaml"
    assert "spark:\n  spark.driver.memory: 4g" in config.read_text(encoding="utf-8")
    resolve, copy, report = (large[name].command(tmp_path / "new") for name in ("resolve", "copy", "report"))
    assert str(config) in resolve
    assert f"--set=output.resolved_routes={tmp_path / 'new' / 'resolved_routes'}" in resolve
    first = f"{results}/resolve-0/resolved_routes"
    assert copy[-4:] == ["copy", str(config), first, str(tmp_path / "new" / "resolved_routes")]
    assert f"--set=output.resolved_routes={first}" in report
    # Whatever writes a result is held to that of resolve.
    assert {name for name, process in large.items() if process.after and process.writes} >= {"copy"}
    assert [large[name].writes for name in ("group-by", "report")] == [False, False]


def test_a_process_that_fails_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "kept").write_text("text", encoding="utf-8")
    # Ends with 0 only where it finds what it starts from.
    looks = "import pathlib, sys; sys.exit(not pathlib.Path(sys.argv[1], 'kept').exists())"

    def command(out: Path) -> list[str]:
        return [sys.executable, "-c", looks, str(out)]

    found = Process("looks", command, tmp_path / "before")
    assert found.timed(tmp_path / "out") == found.taken[0].seconds
    with pytest.raises(RuntimeError, match="looks ended with exit code 1"):
        Process("looks", command).timed(tmp_path / "nothing")


def test_outputs_of_another_size_are_reported(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    import pyarrow

    def write(folder: str, **rows: int) -> Path:
        for key, number in rows.items():
            deltalake.write_deltalake(str(tmp_path / folder / key), pyarrow.table({"n": list(range(number))}))
        return tmp_path / folder

    before = write("before", new_route_requests=3, rejected_messages=2, resolved_routes=5, runs=1)
    good = write("good", new_route_requests=3, rejected_messages=2, resolved_routes=5, runs=2)
    bad = write("bad", new_route_requests=3, rejected_messages=2, resolved_routes=4, runs=1)
    process = Process("resolve", lambda out: [], before)
    assert results_differ(process, good) == []
    assert results_differ(process, bad) == ["resolved_routes has 4 rows, not 5", "runs has 1 rows, not 2"]
    assert results_differ(Process("runs", lambda out: []), bad) == []
