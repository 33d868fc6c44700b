"""What to do about messages that are stuck or lost: SQL Server's numbers of a reason, and advice."""

from __future__ import annotations

from routing.features.explain.path_sentences import advice
from routing.rules.observed import numbers_of
from routing.terms import Reason


def advice_of(reason: str) -> tuple[tuple[int, ...], str]:
    """Return SQL Server's numbers of a reason, that of its event first, and what to do in a sentence or two.

    ``reason`` is a word of `terms.Reason`. There are no numbers where SQL Server has none for it.
    """
    return numbers_of(Reason(reason)), advice(reason) or ""
