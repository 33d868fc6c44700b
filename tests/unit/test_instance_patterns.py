"""Patterns of instances: what they match, in Python and in SQL, and which of them overlap."""

from __future__ import annotations

import re
from itertools import product

import pytest

from routing.config import ConfigError, load
from routing.config.instance_patterns import find_overlaps, is_pattern, overlap

TEXTS = ["".join(signs) for size in range(4) for signs in product("ab", repeat=size)]
PATTERNS = [f"{start}{text}{end}" for text in TEXTS for start in ("", "*") for end in ("", "*")]
PATTERNS = [*dict.fromkeys(pattern for pattern in PATTERNS if is_pattern(pattern))]
NAMES = ["".join(signs) for size in range(8) for signs in product("ab", repeat=size)]


def matched(pattern: str) -> set[str]:
    """Return the names that match a pattern."""
    regex = ".*".join(map(re.escape, pattern.split("*")))
    return {name for name in NAMES if re.fullmatch(regex, name)}


def test_two_patterns_overlap_if_some_name_matches_both() -> None:
    """All patterns with up to three signs, and all names that could matter to them."""
    names = {pattern: matched(pattern) for pattern in PATTERNS}
    assert names["a*"] == {name for name in NAMES if name[:1] == "a"}
    assert len(PATTERNS) == 58
    for one, other in product(PATTERNS, repeat=2):
        assert overlap(one, other) == bool(names[one] & names[other]), (one, other)


def test_overlaps_of_jobs() -> None:
    jobs = [("east.yaml", ["E*", "X1"]), ("west.yaml", ["W*", "*1"]), ("all.yaml", [])]
    assert list(find_overlaps(jobs)) == [
        "'E*' of east.yaml and '*1' of west.yaml",
        "'X1' of east.yaml and '*1' of west.yaml",
        "'E*' of east.yaml and '*' of all.yaml",
        "'X1' of east.yaml and '*' of all.yaml",
        "'W*' of west.yaml and '*' of all.yaml",
        "'*1' of west.yaml and '*' of all.yaml",
    ]


@pytest.mark.parametrize("value", ["[]", "5", "[5]", "['']", "{a: b}", "[a*b]", f"[{'a' * 257}]"])
def test_invalid_patterns(value: str) -> None:
    with pytest.raises(ConfigError, match=r"resolve\.instances must be a list of names, with"):
        load("conf/local.yaml", [f"resolve.instances={value}"])
