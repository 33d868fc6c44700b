"""What `make floor` does with what it measures, and which processes it starts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import floor
from benchmarks.gates import LARGE, SMALL, Gate, Verdict, judge, lines, wanted_with_floors
from benchmarks.processes import Process, over_demo, rows_differ
from benchmarks.shape import Shape
from benchmarks.stored import placed

_ROUNDS = {
    "bare-spark": (20.0, 10.0, 90.0),
    "resolve": (32.0, 31.0, 33.0),
    "bare-reader": (0.5,),
    "explain": (2.5,),
}


def test_a_line_has_the_median_and_what_it_is_in_floors() -> None:
    found = lines(_ROUNDS, SMALL)
    assert [line.cells() for line in found] == [
        ("bare-spark", "20.0", "10.0", "90.0", "-"),
        ("resolve", "32.0", "31.0", "33.0", "1.60"),
        ("bare-reader", "0.5", "0.5", "0.5", "-"),
        ("explain", "2.5", "2.5", "2.5", "5.00"),
    ]


def test_without_floors_there_are_seconds_alone() -> None:
    [line] = lines({"explain": (5.0, 7.0)}, LARGE)
    assert line.cells() == ("explain", "6.0", "5.0", "7.0", "-")


def test_a_floor_that_was_not_measured_is_no_success() -> None:
    with pytest.raises(KeyError, match="bare-spark"):
        lines({"resolve": (1.0,)}, SMALL)


def test_what_is_measured_is_judged() -> None:
    resolve, explain = judge(lines(_ROUNDS, SMALL), SMALL)
    assert str(resolve) == "resolve: 1.60 times bare-spark, at most 1.6: met"
    assert str(explain) == "explain: 5.00 times bare-reader, at most 4: MISSED"
    large = judge(lines({"lint": (20.1,), "explain": (6.0,)}, LARGE), LARGE)
    assert [str(verdict) for verdict in large] == [
        "explain: 6.0 s, at most 6 s: met",
        "lint: 20.1 s, at most 20 s: MISSED",
    ]


@pytest.mark.parametrize(
    ("wanted", "measured"),
    [
        (["resolve"], ["bare-spark", "resolve"]),
        (["runs", "explain"], ["bare-reader", "explain", "runs"]),
        (["bare-reader"], ["bare-reader"]),
        (["explain", "bare-spark"], ["bare-reader", "explain", "bare-spark"]),
    ],
)
def test_whatever_is_wanted_comes_after_its_floor(wanted: list[str], measured: list[str]) -> None:
    assert wanted_with_floors(wanted, SMALL) == measured


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--routes", "9"], "--routes goes with --messages"),
        (["--messages", "9", "--only", "runs"], "with --messages there are explain and lint"),
        (["--gate", "--only", "bare-reader"], "--gate: nothing that has a gate is measured"),
        (["--rounds", "0"], "--rounds: at least one"),
        (["--only", "import"], "invalid choice: 'import'"),
    ],
)
def test_options_that_make_no_sense(arguments: list[str], fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        floor.options(arguments)
    assert fault in capsys.readouterr().err


def test_the_options_of_make_floor() -> None:
    usual = floor.options([])
    assert (usual.rounds, usual.only, usual.messages, usual.gate, usual.json) == (5, None, None, False, False)
    large = floor.options(["--messages", "1000", "--routes", "50", "--only", "lint", "--gate"])
    assert (large.messages, large.routes, large.only, large.gate) == (1000, 50, ["lint"], True)


def test_the_table_names_each_gate(capsys: pytest.CaptureFixture[str]) -> None:
    measured = lines(_ROUNDS, SMALL)
    floor.print_table(measured, judge(measured, SMALL), 3)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "Whole processes, in turn, 3 rounds after a warm-up"
    assert printed[1].split("  ")[0] == "contender"
    assert [line.split() for line in printed[2:4]] == [
        ["bare-spark", "20.0", "10.0", "90.0", "-"],
        ["resolve", "32.0", "31.0", "33.0", "1.60"],
    ]
    assert printed[-1] == "explain: 5.00 times bare-reader, at most 4: MISSED"


def test_json_has_the_rounds_and_the_gates(capsys: pytest.CaptureFixture[str]) -> None:
    measured = lines({"lint": (3.0, 1.0, 2.0)}, LARGE)
    floor.print_json(measured, [Verdict(Gate("lint", 20), 2.0)])
    assert json.loads(capsys.readouterr().out) == {
        "contenders": [
            {"contender": "lint", "rounds": [3.0, 1.0, 2.0], "median": 2.0, "least": 1.0, "most": 3.0}
            | {"times_floor": None}
        ],
        "gates": [{"contender": "lint", "at_most": 20, "floor": None, "measured": 2.0, "met": True}],
    }


def test_only_the_gate_makes_a_missed_gate_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def sleeping(name: str, seconds: float) -> Process:
        command = [sys.executable, "-S", "-c", f"import time; time.sleep({seconds})"]
        return Process(name, lambda out: command)

    slow = {"bare-spark": sleeping("bare-spark", 0.0), "resolve": sleeping("resolve", 0.5)}
    monkeypatch.setattr(floor, "_prepared", lambda given: (slow, tmp_path))
    asked = ["--rounds", "1", "--only", "resolve"]
    assert floor.main(asked) == 0
    assert floor.main([*asked, "--gate"]) == 1
    fast = {"bare-spark": sleeping("bare-spark", 0.5), "resolve": sleeping("resolve", 0.0)}
    monkeypatch.setattr(floor, "_prepared", lambda given: (fast, tmp_path))
    assert floor.main([*asked, "--gate"]) == 0


def _demo(folder: Path) -> Path:
    """As much of a built demo as is looked at before a process starts."""
    (folder / "demo" / "out" / "runs" / "_delta_log").mkdir(parents=True)
    return folder / "demo"


def test_what_writes_starts_from_the_outputs_of_the_demo_and_leaves_them_alone(tmp_path: Path) -> None:
    demo = _demo(tmp_path)
    processes = over_demo(demo)
    assert list(processes) == ["bare-spark", "resolve", "bare-reader", "explain", "lint", "runs"]
    assert {name for name, process in processes.items() if process.starts_from == demo / "out"} == {
        "bare-spark",
        "resolve",
    }
    command = " ".join(processes["resolve"].command(tmp_path / "new"))
    for key in ("new_route_requests", "rejected_messages", "resolved_routes", "runs"):
        assert f"--set=output.{key}={tmp_path / 'new' / key}" in command


def test_a_process_that_fails_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "kept").write_text("text", encoding="utf-8")
    # Ends with 0 only where it finds what it starts from.
    looks = "import pathlib, sys; sys.exit(not pathlib.Path(sys.argv[1], 'kept').exists())"

    def command(out: Path) -> list[str]:
        return [sys.executable, "-c", looks, str(out)]

    Process("looks", command, tmp_path / "before").run(tmp_path / "out")
    with pytest.raises(RuntimeError, match="looks ended with exit code 1"):
        Process("looks", command).run(tmp_path / "nothing")


def test_outputs_of_another_size_are_told(tmp_path: Path) -> None:
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
    assert rows_differ(process, good) == []
    assert rows_differ(process, bad) == ["resolved_routes has 4 rows, not 5", "runs has 1 rows, not 2"]
    assert rows_differ(Process("runs", lambda out: []), bad) == []


def test_tables_of_a_shape_are_named_before_they_are_made(tmp_path: Path) -> None:
    kept = placed(Shape(messages=10, dialogs=0.0), tmp_path)
    assert list(kept.tables) == ["instances", "databases", "services", "routes", "messages"]
    assert kept.tables["routes"] == str(tmp_path / "routes-200-120000-0-0.0")
    Path(kept.tables["routes"], "_delta_log").mkdir(parents=True)
    assert kept.missing == ["instances", "databases", "services", "messages"]
