"""Releases are compared as versions. Other texts are skipped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.delta.counted_runs import newer_than, read_version

OLDEST_FIRST = ["0.2.0.dev1", "0.2.0", "v0.3", "0.9.12", "0.10.0", "1.0.0rc1", "1.0", "1.0.1", "2", "10.0"]


def test_later_releases_are_newer() -> None:
    for index, release in enumerate(OLDEST_FIRST):
        assert newer_than(release, OLDEST_FIRST[: index + 1]) is None
        for other in OLDEST_FIRST[index + 1 :]:
            assert newer_than(release, [*OLDEST_FIRST[: index + 1], other]) == other
    assert newer_than("1", ["1.0.0"]) is None
    assert newer_than("0.1", []) is None


@pytest.mark.parametrize("text", ["unknown", "", "1..2", "1.2 beta of tomorrow", "9" * 5_000, "\u0661.\u0662"])
def test_texts_that_are_no_release_are_skipped(text: str) -> None:
    assert newer_than("0.1", [text]) is None
    assert newer_than(text, ["99"]) is None
    assert newer_than("0.1", [text, "0.2"]) == "0.2"


@given(st.text())
def test_any_text_can_be_read_as_a_release(text: str) -> None:
    read_version(text)
