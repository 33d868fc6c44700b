"""The reference page on reasons shows the words that the commands print."""

from __future__ import annotations

from routing.advice.status_meanings import StatusTrouble
from routing.advice.trouble_catalogue import STATUSES
from routing.rules.observed import NUMBERS, compare
from routing.terms import Reason
from tests import reasons_page
from tests.documented_errors import PAGES


def test_the_tables_are_those_of_the_catalogue() -> None:
    text = reasons_page.PAGE.read_text(encoding="utf-8")
    assert reasons_page.renewed(text) == text, "python -m tests.reasons_page renews it"


def test_every_reason_and_number_is_in_a_table() -> None:
    text = reasons_page.PAGE.read_text(encoding="utf-8")
    assert {row[0] for row in reasons_page.reason_rows()} == set(map(str, Reason))
    assert all(f"| {reason} |" in text for reason in Reason)
    shown = {number for _, cell in reasons_page.topic_rows() for number in expanded(cell)}
    assert shown == NUMBERS


def test_every_status_has_a_row_or_a_page() -> None:
    assert set(STATUSES) == set(StatusTrouble)
    explained = {page.trouble for page in PAGES} - {StatusTrouble.OTHER_NUMBER}
    assert len(reasons_page.status_rows()) + len(explained) == len(STATUSES)


def test_the_numbers_of_a_reason_agree_with_it() -> None:
    for reason in Reason:
        for number in reasons_page.find_agreeing_numbers(reason):
            assert any(compare(reason, number, in_msdb=msdb).agreement == "AGREES" for msdb in (False, True))


def expanded(cell: str) -> list[int]:
    """The numbers of a cell, with those of its ranges."""
    found: list[int] = []
    for part in cell.split(", "):
        first, _, last = part.partition("–")
        found += range(int(first), int(last or first) + 1)
    return found
