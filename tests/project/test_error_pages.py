"""The pages on errors are what the generator makes of the catalogue, of `check` and of the texts of SQL Server."""

from __future__ import annotations

import re

import pytest

from routing.advice.status_meanings import StatusTrouble
from routing.importing.catalog.conversation_rows import error_number
from routing.rules.observed import NUMBERS
from tests.documented_errors import PAGES, WHERE_TO_LOOK, ErrorPage
from tests.error_pages import EXAMPLES, FOLDER, render_all
from tests.message_texts import MESSAGE_TEXTS

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def test_the_pages_are_those_of_the_generator() -> None:
    stored = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.iterdir()}
    assert stored == render_all(), "make docs-output writes them"


def test_every_known_number_is_in_the_table() -> None:
    index, _, _ = (FOLDER / "index.md").read_text(encoding="utf-8").partition("## What to do")
    listed = {int(number) for number in re.findall(r"^\| \[?(\d+)", index, re.MULTILINE)}
    assert listed == NUMBERS | {page.number for page in PAGES}


@by_page
def test_the_title_is_a_text_that_the_program_knows(page: ErrorPage) -> None:
    assert "…" not in page.text
    if page.query is None:
        assert error_number(page.text) == page.number
        assert page.trouble not in (StatusTrouble.OTHER_NUMBER, StatusTrouble.TARGET_EXCEPTION)
    else:
        assert page.number not in NUMBERS


@by_page
def test_a_page_has_sources(page: ErrorPage) -> None:
    assert page.sources
    assert all(re.match(r"https?://[\w.-]+/\S*$", source.address) for source in page.sources)


def test_pages_are_in_the_order_of_their_numbers() -> None:
    keys = [(page.number, page.inner or 0) for page in PAGES]
    assert keys == sorted(set(keys))
    assert set(EXAMPLES) <= {page.name for page in PAGES}


def test_every_message_text_is_recognized_by_its_number() -> None:
    assert MESSAGE_TEXTS.keys() == NUMBERS
    assert {number: error_number(text) for number, text in MESSAGE_TEXTS.items()} == {n: n for n in NUMBERS}


def test_every_trouble_has_a_place_to_look() -> None:
    assert set(WHERE_TO_LOOK) == set(StatusTrouble) - {StatusTrouble.OTHER_NUMBER, StatusTrouble.UNREAD}
