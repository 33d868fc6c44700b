"""``make bench-check``: are the ratios still those of the recorded baseline?

Compares ratios within a round, and never absolute times, which are the machine's. ``--record`` writes a baseline.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.shape import Shape

BASELINE = Path(__file__).with_name("baseline.json")
# Worse by more than a third fails.
_ALLOWED = 4 / 3
# Of each ratio, whether a larger one is worse.
LARGER_IS_WORSE = {"resolve / copy": True, "naive / resolve": False}


@dataclass(frozen=True)
class Verdict:
    """A ratio beside its baseline. worse_by: 1 is the same, 2 is twice as bad."""

    ratio: str
    baseline: float
    now: float
    worse_by: float

    @property
    def fails(self) -> bool:
        """Whether it is worse by more than a third."""
        return self.worse_by > _ALLOWED

    def __str__(self) -> str:
        change = f"worse by {self.worse_by - 1:.0%}" if self.worse_by > 1 else "no worse"
        end = ": FAILED, more than a third" if self.fails else ""
        return f"{self.ratio}: baseline {self.baseline:.2f}, now {self.now:.2f}, {change}{end}"


def compare(baseline: Mapping[str, float], now: Mapping[str, float]) -> list[Verdict]:
    """Return each ratio of the baseline beside the current one. Raises ValueError if one was not measured."""
    missing = sorted(set(LARGER_IS_WORSE) - (set(baseline) & set(now)))
    if missing:
        raise ValueError(f"no {' and no '.join(missing)} in the baseline or in the measurement")
    verdicts = []
    for name, larger_is_worse in LARGER_IS_WORSE.items():
        worse_by = now[name] / baseline[name] if larger_is_worse else baseline[name] / now[name]
        verdicts.append(Verdict(name, baseline[name], now[name], worse_by))
    return verdicts


def main() -> int:
    """Measure like the baseline, and compare. Return 1 if a ratio fails or results differ."""
    from benchmarks.bench import Options, bench
    from benchmarks.gates import COPY
    from benchmarks.report import NAIVE, ratios
    from benchmarks.rounds import Mismatch

    parser = argparse.ArgumentParser(prog="make bench-check", description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000, help="with --record (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="with --record (%(default)s)")
    parser.add_argument("--record", action="store_true", help="write the baseline instead of comparing")
    options = parser.parse_args()
    if not options.record and not BASELINE.exists():
        sys.stderr.write(f"no baseline is recorded in {BASELINE}: make bench-check ARGS=--record\n")
        return 1
    recorded = {} if options.record else json.loads(BASELINE.read_text(encoding="utf-8"))
    shape = Shape(messages=recorded.get("messages", options.messages))
    rounds = recorded.get("rounds", options.rounds)
    try:
        result = bench(shape, Options(wanted=(COPY, NAIVE), rounds=rounds))
    except Mismatch as fault:
        sys.stderr.write(f"the results differ. {fault}\n")
        return 1
    now = ratios(result.lines)
    if options.record:
        baseline = {"messages": shape.messages, "rounds": rounds, "ratios": now}
        BASELINE.write_text(json.dumps(baseline, indent=2) + "\n", encoding="utf-8")
        print(f"recorded: {now}")
        return 0
    verdicts = compare(recorded["ratios"], now)
    print(f"{shape.messages:,} messages, {rounds} rounds")
    print(*verdicts, sep="\n")
    return 1 if any(verdict.fails for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
