"""Releases are compared as numbers, and what is no release is passed over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.delta.counted_runs import newer_than, parts

OLDEST_FIRST = ["0.1.0.dev1", "0.1.0", "0.1.1", "0.2", "0.9.12", "0.10.0", "1.0.0rc1", "1.0", "1.0.1", "2", "10.0"]


def test_later_ones_are_newer() -> None:
    for index, own in enumerate(OLDEST_FIRST):
        assert newer_than(own, OLDEST_FIRST[: index + 1]) is None
        for other in OLDEST_FIRST[index + 1 :]:
            assert newer_than(own, [*OLDEST_FIRST[: index + 1], other]) == other


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "1.0.0"),
        ("v1.2", "1.2"),
        ("1.2+local.7", "1.2"),
        ("1.2.post3", "1.2"),
        (" 1.2\n", "1.2"),
        ("1.2.DEV5", "1.2.dev6"),
        ("1.2a1.dev3", "1.2rc1"),
        ("1.2-SNAPSHOT", "1.2b2"),
    ],
)
def test_equals(one: str, other: str) -> None:
    assert parts(one) is not None
    assert parts(one) == parts(other)


@pytest.mark.parametrize(
    "text",
    [
        "unknown",
        "",
        "1!2.0",
        "one",
        "1.x",
        "1..2",
        "-1",
        "1.2 beta of tomorrow",
        "2026-01-05",
        "9" * 5_000,
        "\u0661.\u0662",
    ],
)
def test_what_is_no_release_is_passed_over(text: str) -> None:
    assert parts(text) is None
    assert newer_than("0.1", [text]) is None
    assert newer_than(text, ["99"]) is None
    assert newer_than("0.1", [text, "0.2"]) == "0.2"


@given(st.text())
def test_any_text(text: str) -> None:
    parts(text)


def test_no_runs_yet() -> None:
    assert newer_than("0.1", []) is None
