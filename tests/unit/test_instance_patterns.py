"""Patterns of instances: what they match, in Python and in SQL, and which of them overlap."""

from __future__ import annotations

import re
from itertools import product

import pytest

from routing.config import ConfigError, load
from routing.instance_patterns import find_overlaps, like_pattern, overlap

SIGNS = "ab*?"
PATTERNS = ["".join(signs) for size in range(4) for signs in product(SIGNS, repeat=size)]
NAMES = ["".join(signs) for size in range(6) for signs in product("ab", repeat=size)]


def matches(name: str, patterns: list[str]) -> bool:
    """Return whether a name matches one of the patterns."""
    forms = {"*": ".*", "?": "."}
    regexes = ("".join(forms.get(sign, re.escape(sign)) for sign in pattern) for pattern in patterns)
    return any(re.fullmatch(regex, name, re.DOTALL) for regex in regexes)


def test_two_patterns_overlap_if_some_name_matches_both() -> None:
    """All patterns of three signs, and all names that could matter to them."""
    matched = {pattern: {name for name in NAMES if matches(name, [pattern])} for pattern in PATTERNS}
    assert matched["a?"] == {"aa", "ab"}
    assert matched["*"] == {*NAMES}
    assert len(PATTERNS) == 85
    for one, other in product(PATTERNS, repeat=2):
        assert overlap(one, other) == bool(matched[one] & matched[other]), (one, other)


@pytest.mark.parametrize("sign", ["%", "_", "\\", ".", "[", "é", "字", "\n"])
def test_other_characters_stand_for_themselves(sign: str) -> None:
    assert matches(f"a{sign}", [f"?{sign}"])
    assert not matches("ab", [f"a{sign}"])
    # As LIKE reads it: a backslash before a sign takes its meaning away.
    like = "".join(
        "." if part == "_" else ".*" if part == "%" else re.escape(part[-1])
        for part in re.findall(r"\\.|.", like_pattern(f"*?{sign}"), re.DOTALL)
    )
    assert re.fullmatch(like, f"xyz{sign}", re.DOTALL)
    assert not re.fullmatch(like, "xyzw", re.DOTALL)


def test_long_patterns_take_no_long_time() -> None:
    assert not overlap("*a" * 60 + "b", "*a" * 60 + "c")


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


@pytest.mark.parametrize("value", ["[]", "5", "[5]", "['']", "{a: b}", f"[{'a' * 257}]"])
def test_invalid_patterns(value: str) -> None:
    with pytest.raises(ConfigError, match=r"resolve\.instances must be a list of names or patterns"):
        load("conf/local.yaml", [f"resolve.instances={value}"])
