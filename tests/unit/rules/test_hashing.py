"""The dialog-ID hash: rule book, section 6."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.rules.hashing import dialog_id_hash, xxhash64
from routing.rules.timeline import TimeInterval
from tests.reference.dialog_hash import xxhash64 as second_opinion
from tests.unit.rules.made import DIALOGS


@pytest.mark.parametrize(("text", "digest"), [("", 0xEF46DB3751D8E999), ("a", 0xD24EC4F1A98C6E5B)])
def test_the_digests_that_xxh64_publishes(text: str, digest: int) -> None:
    assert xxhash64(text.encode(), 0) == digest


# pmod: never negative, whatever the sign of the hash.
@pytest.mark.parametrize(
    ("choices", "picked"),
    [("a", "aaaa"), ("ab", "abba"), ("abcde", "cbde"), (["x", None], ["x", None, None, "x"])],
)
def test_the_hash_of_a_dialog_picks_a_choice(
    choices: str | list[str | None], picked: str | list[str | None]
) -> None:
    interval = TimeInterval(None, None, tuple(choices))
    assert [interval.pick(dialog_id_hash(dialog)) for dialog in DIALOGS] == list(picked)


def test_the_hash_equals_the_reference_at_every_length() -> None:
    """0 to 100 bytes: no stripe, one and several, and every length of the rest."""
    rng = random.Random(100)
    for length in range(101):
        text = "".join(rng.choice("abcxyz0189-{} ") for _ in range(length))
        assert dialog_id_hash(text) == second_opinion(text)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=100))
def test_the_hash_equals_the_reference_for_any_text(text: str) -> None:
    folded = "".join(letter.lower() if "A" <= letter <= "Z" else letter for letter in text)
    assert dialog_id_hash(text) == second_opinion(folded)
