"""Every regular expression of the package takes linear time in the length of a text.

The expressions are found automatically, so that new ones are tested too. ``tests/spark/test_regex_in_java.py``
tests the ones for Java.
"""

from __future__ import annotations

import ast
import re
import sys
import time
from collections import deque
from fnmatch import fnmatchcase

import pytest

from routing.importing.tsql import kept_batches
from tests.adversaries import Text, texts
from tests.patterns import LENGTH, Room, Use, java_uses, python_uses, rooms

# What is linear takes a fifth of a millisecond for 2,000 characters and ten for 100,000; what goes by the square
# four and ten seconds; what grows faster still is slow long before. A text that goes by the square and takes less
# than the screen allows takes less than the bound for 100,000 characters. A busy machine is given time.
_SHORT, _SCREENED = (30, 300), 2_000
_SLOW, _SUSPECT, _BOUND = 0.02, 0.0008, 2.0
USES, BREACHES = python_uses(rooms())


def _seconds(use: Use, text: str) -> float:
    pattern = re.compile(use.pattern, use.flags)
    started = time.process_time()
    if use.method in ("sub", "subn"):
        pattern.sub("", text)
    elif use.method == "finditer":
        deque(pattern.finditer(text), maxlen=0)
    else:
        getattr(pattern, use.method)(text)
    return time.process_time() - started


def slow_text(use: Use, bound: float = _BOUND) -> Text | None:
    """The first text that takes too long, of 30 characters up to 100,000."""
    return next((text for text in texts(use.pattern, use.flags) if _is_slow(use, text, bound)), None)


def _is_slow(use: Use, text: Text, bound: float) -> bool:
    for length in _SHORT:
        # A stop of the machine's is not there again.
        if all(_seconds(use, text.of(length)) > _SLOW for _ in range(5)):
            return True
    screened = text.of(_SCREENED)
    if _seconds(use, screened) <= _SUSPECT:
        return False
    # Linear time grows fourfold here, and quadratic time sixteenfold.
    if _seconds(use, text.of(4 * _SCREENED)) < 5 * min(_seconds(use, screened) for _ in range(3)):
        return False
    return any(_seconds(use, text.of(length)) > bound for length in (10_000, 30_000, LENGTH))


# Compiled when a script needs it, for it takes time; and the patterns of paths in a project. Both are tried below.
_WHEN_NEEDED = ("routing.importing.tsql.kept_batches, line", "routing.importing.sql_projects, line 11:")


def test_every_expression_is_collected() -> None:
    assert [breach for breach in BREACHES if not breach.startswith(_WHEN_NEEDED)] == []
    # As many as there were when this was written: a walk that finds fewer has lost its way.
    assert len(USES) >= 60
    uses, breaches = java_uses(rooms())
    assert breaches == []
    assert len(uses) >= 4


@pytest.mark.long
@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no possessive quantifiers")
def test_the_statement_that_is_skipped_takes_time_by_its_length() -> None:
    pattern = kept_batches._statement()
    assert slow_text(Use("kept_batches._statement", pattern.pattern, pattern.flags, "match")) is None


def test_a_pattern_of_paths_takes_little_time() -> None:
    started = time.process_time()
    # A name of a file has at most 255 characters.
    assert not fnmatchcase("a" * 255, "*a" * 100 + "b")
    assert time.process_time() - started < 0.1


@pytest.mark.parametrize("use", USES, ids=lambda use: f"{use.where} {use.method}")
def test_each_expression_takes_linear_time(use: Use) -> None:
    assert slow_text(use) is None


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"/+\Z", "search"),
        (r"[ \t\n\r/]+\Z|\A[ \t\n\r]+", "sub"),
        (r"\s*GO(?:\s+(\S+?))?\s*;?\s*", "fullmatch"),
        (r"\s*:?(?:EXIT|QUIT)\s*(\(.*\))?\s*", "fullmatch"),
        (r"[A-Za-z][\w+.-]*://[^/\s?#@]*:[^/\s?#@]+@", "search"),
        (r"\beyJ[\w-]{10,}\.eyJ", "search"),
        ("<([^>]*)>", "findall"),
        ("(a|aa)+b", "match"),
    ],
)
def test_a_slow_expression_is_reported(pattern: str, method: str) -> None:
    # Sooner than in earnest: a text that is known to be slow need not be read to its end.
    assert slow_text(Use("", pattern, 0, method), _BOUND / 10) is not None


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return re.compile(x)",
        "def f(x):\n    return re.compile('a').match(x)",
        "def f(x):\n    return re.match(x, 'a')",
        "def f(x):\n    return re.sub(f'{x}+', '', 'a')",
        "def f(x):\n    return re.search('a', x, flags=re.I)",
        "P = re.compile('a')",
        "P = {'a': re.compile('a')}\ndef f(x):\n    q = P[x]\n    return q.match(x)",
        "from re import match",
        "import re as expressions",
        "import fnmatch",
    ],
)
def test_an_uncollected_expression_is_a_breach(source: str) -> None:
    uses, breaches = python_uses([_room(source)])
    assert (uses, len(breaches)) == ([], 1)


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("P = re.compile('a', re.I)\ndef f(x):\n    return P.match(x) or P.search(x)", ["match", "search"]),
        ("P = {'a': re.compile('a')}\ndef f(x):\n    return P[x].sub('', x)", ["sub"]),
        ("A = 'a'\ndef f(x):\n    return re.split(rf'{A}+', x)", ["split"]),
    ],
)
def test_uses_of_an_expression_are_collected(source: str, seen: list[str]) -> None:
    uses, breaches = python_uses([_room(source)])
    assert breaches == []
    assert [use.method for use in uses] == seen
    assert uses[0].pattern in ("a", "a+")


@pytest.mark.parametrize(
    "line",
    [
        "F.regexp_replace(x, y, '')",
        "F.regexp_extract(x, f'{y}+', 1)",
        "x.rlike(y)",
        "F.expr('x rlike \\'a\\'')",
        "F.expr('regexp_count(x, y)')",
    ],
)
def test_an_uncollected_java_expression_is_a_breach(line: str) -> None:
    uses, breaches = java_uses([_room(f"def f(x, y):\n    return {line}")])
    assert (uses, len(breaches)) == ([], 1)


def _room(source: str) -> Room:
    names: dict[str, object] = {"re": re}
    exec(source, names)
    return Room("room", ast.parse(source), names)
