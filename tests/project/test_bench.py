"""The use of measurements by `make bench` and `make bench-check`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.check import BASELINE, LARGER_IS_WORSE, compare
from benchmarks.report import lines, ratios
from benchmarks.rounds import Mismatch, measure

_BASELINE = {"resolve / copy": 1.5, "naive / resolve": 9.0}


@pytest.mark.parametrize(
    ("now", "failing"),
    [
        ({"resolve / copy": 1.5, "naive / resolve": 9.0}, []),
        ({"resolve / copy": 1.99, "naive / resolve": 6.8}, []),
        ({"resolve / copy": 2.01, "naive / resolve": 9.0}, ["resolve / copy"]),
        ({"resolve / copy": 1.5, "naive / resolve": 6.7}, ["naive / resolve"]),
        ({"resolve / copy": 9.0, "naive / resolve": 1.5}, ["resolve / copy", "naive / resolve"]),
        # Better is never a failure.
        ({"resolve / copy": 0.5, "naive / resolve": 90.0}, []),
    ],
)
def test_a_ratio_fails_when_it_is_worse_by_more_than_a_third(now: dict[str, float], failing: list[str]) -> None:
    assert [verdict.ratio for verdict in compare(_BASELINE, now) if verdict.fails] == failing


def test_a_verdict_prints_both_numbers() -> None:
    good, bad = compare(_BASELINE, {"resolve / copy": 1.65, "naive / resolve": 4.5})
    assert str(good) == "resolve / copy: baseline 1.50, now 1.65, worse by 10%"
    assert str(bad) == "naive / resolve: baseline 9.00, now 4.50, worse by 100%: FAILED, more than a third"


def test_a_ratio_that_was_not_measured_is_no_success() -> None:
    with pytest.raises(ValueError, match="no naive / resolve"):
        compare(_BASELINE, {"resolve / copy": 1.5})
    with pytest.raises(ValueError, match="no resolve / copy"):
        compare({"naive / resolve": 9.0}, _BASELINE)


def test_the_recorded_baseline_holds_every_ratio() -> None:
    recorded = json.loads(BASELINE.read_text(encoding="utf-8"))
    assert set(recorded["ratios"]) == set(LARGER_IS_WORSE)
    assert min(recorded["ratios"].values()) > 0
    assert recorded["messages"] > 0
    assert recorded["rounds"] > 0


@dataclass
class _Fake:
    name: str
    seen: list[str]

    def timed(self, out: Path) -> float:
        out.mkdir(parents=True)
        self.seen.append(out.name)
        return float(len(self.seen))


def test_rounds_alternate_after_the_warm_up_and_only_first_results_stay(tmp_path: Path) -> None:
    seen: list[str] = []
    compared: list[str] = []
    results = tmp_path / "out"
    (results / "left from before").mkdir(parents=True)

    def compare_first(contender: object, out: Path) -> list[str]:
        compared.append(out.name)
        return []

    times = measure([_Fake("a", seen), _Fake("b", seen)], results, 2, compare_first)
    assert seen == ["a-0", "b-0", "a-1", "b-1", "a-2", "b-2"]
    assert compared == ["a-0", "b-0"]
    assert sorted(path.name for path in results.iterdir()) == ["a-0", "b-0"]
    assert times == {"a": (3.0, 5.0), "b": (4.0, 6.0)}


def test_a_mismatch_ends_the_measurement_before_any_round(tmp_path: Path) -> None:
    seen: list[str] = []
    with pytest.raises(Mismatch, match="b: address differs; 2 rows are missing"):
        measure(
            [_Fake("a", seen), _Fake("b", seen)],
            tmp_path / "out",
            3,
            lambda contender, out: ["address differs", "2 rows are missing"] if contender.name == "b" else [],
        )
    assert seen == ["a-0", "b-0"]


def test_lines_and_ratios() -> None:
    times = {
        "resolve": (15.0, 16.0, 90.0),
        "copy": (10.0, 9.0, 11.0),
        "naive": (130.0, 128.0, 117.0),
        "resolve-udf": (8.0,),
    }
    found = lines(times, 1_000_000)
    assert [line.contender for line in found] == ["resolve-udf", "copy", "resolve", "naive"]
    assert found[2].cells() == ("resolve", "16.0", "62,500", "1.60", "1.00")
    assert found[0].cells() == ("resolve-udf", "8.0", "125,000", "0.80", "0.50")
    # Within rounds 1.5, 1.78 and 8.18, and 8.67, 8.0 and 1.3: resolve's odd last round moves neither.
    assert ratios(found) == {"resolve / copy": 1.778, "naive / resolve": 8.0}
    alone = lines({"resolve": times["resolve"]}, 1_000_000)
    assert alone[0].cells()[3:5] == ("-", "1.00")
    assert ratios(alone) == {}
