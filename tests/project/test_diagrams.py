"""The diagrams are what their code draws, load nothing, follow a dark setting, and say what the program says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from routing import config
from routing.terms import Outcome, Reason
from tests.diagrams import DIAGRAMS, FOLDER
from tests.pages import ROOT
from tests.shown_output import PAGES, run_command, within

by_name = pytest.mark.parametrize("name", DIAGRAMS)


def words_of(name: str) -> list[str]:
    root = ElementTree.fromstring((FOLDER / f"{name}.svg").read_text(encoding="utf-8"))
    return [str(node.text) for node in root.iter("{http://www.w3.org/2000/svg}text")]


@by_name
def test_a_diagram_is_what_its_code_draws(name: str) -> None:
    picture = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert DIAGRAMS[name]().render() == picture, "make pictures renews it"
    assert set(re.findall(r"https?://[^\s\"')]+", picture)) == {"http://www.w3.org/2000/svg"}
    assert "prefers-color-scheme: dark" in picture


@by_name
def test_a_diagram_is_on_a_page_with_a_text_alternative(name: str) -> None:
    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    [words] = [
        words for page in pages for words in re.findall(rf"!\[([^\]]+)\]\([\w./]*images/{name}\.svg\)", page)
    ]
    assert len(words) > 100


@by_name
def test_words_in_capitals_are_those_of_the_program(name: str) -> None:
    known = {*map(str, Outcome), *map(str, Reason)}
    found = {word for line in words_of(name) for word in re.findall(r"\b[A-Z]+_[A-Z_]+\b", line)}
    assert found <= known


def test_the_tables_are_those_of_the_configuration() -> None:
    named = set(re.findall(r"[a-z_]+", ",".join(words_of("tables"))))
    assert {key for key, is_needed in config.INPUTS.items() if is_needed} <= named
    assert {key for key, is_needed in config.OUTPUTS.items() if is_needed} <= named


def test_the_path_is_the_answer_of_check_about_the_example() -> None:
    with within(ROOT):
        answer = " ".join(run_command(["check", "conf/examples/no-return"]).split())
    for word in ("ToStock", "AutoCreatedLocal", "BROKER_INSTANCE_NOT_FOUND", "looks only in this instance"):
        assert word in answer
        assert any(word in line for line in words_of("path"))
