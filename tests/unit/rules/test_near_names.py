"""The differences between service names, such as blanks around them, and the words for these."""

from __future__ import annotations

import time

import pytest

from routing.rules.text import SpelledName, name_core, name_edges

# A name; its core; what is before and after that.
AROUND = [
    ("", "", ("", "")),
    ("/", "", ("", "/")),
    (" ", "", (" ", " ")),
    ("a", "a", ("", "")),
    ("A//", "A", ("", "//")),
    (" /a/ ", "/a", (" ", "/ ")),
    ("a/b", "a/b", ("", "")),
    ("/a", "/a", ("", "")),
    ("\t\na b / /\r", "a b", ("\t\n", " / /\r")),
    ("\u00a0a\u00a0", "\u00a0a\u00a0", ("", "")),
    ("É//é/", "É//é", ("", "/")),
]
DIFFERENCES = [
    ("S", "S", []),
    ("S", "s", ["NAME_CASE"]),
    ("É", "é", ["NAME_CASE"]),
    ("S", "S ", ["NAME_BLANKS"]),
    ("S", "\tS", ["NAME_BLANKS"]),
    (" S", "S ", ["NAME_BLANKS"]),
    ("S/", "S", ["NAME_SLASH"]),
    ("S/", "S //", ["NAME_BLANKS", "NAME_SLASH"]),
    ("S", " s/", ["NAME_CASE", "NAME_BLANKS", "NAME_SLASH"]),
    ("S", "T", ["OTHER_SERVICE"]),
    ("S", "/S", ["OTHER_SERVICE"]),
    ("", "S", ["OTHER_SERVICE"]),
    ("", " ", ["NAME_BLANKS"]),
    ("S", "S\u00a0", ["OTHER_SERVICE"]),
]


@pytest.mark.parametrize(("name", "its_core", "around"), AROUND)
def test_a_name_is_split_into_its_core_and_edges(name: str, its_core: str, around: tuple[str, str]) -> None:
    assert (name_core(name), name_edges(name)) == (its_core, around)


@pytest.mark.parametrize(("asked", "named", "differences"), DIFFERENCES)
def test_how_names_differ(asked: str, named: str, differences: list[str]) -> None:
    assert SpelledName(asked).list_differences(named) == differences


@pytest.mark.parametrize("part", [" ", "/", " /", "a "])
def test_a_hostile_name_takes_time_by_its_length(part: str) -> None:
    started = time.process_time()
    for name in (part * 500_000, part * 500_000 + "b", "b" + part * 500_000):
        SpelledName("Stock").list_differences(name)
    assert time.process_time() - started < 5
