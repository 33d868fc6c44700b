"""The pictures of a terminal show the commands' output, load nothing, and occur on pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.shown_output import PAGES, build_reader_folder, copied
from tests.terminal_pictures import FOLDER, PICTURES, draw_picture, print_lines, read_picture


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("reader")
    build_reader_folder(folder)
    return folder


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_what_the_command_prints(name: str, built: Path) -> None:
    picture = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    with copied(built):
        lines = print_lines(name, is_coloured=False)
    assert len(lines) > 10
    assert read_picture(picture) == lines, "make pictures renews it"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_drawn_the_same_each_time(name: str, built: Path) -> None:
    picture = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    with copied(built):
        assert draw_picture(name) == picture, "make pictures renews it"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_loads_nothing_and_is_on_a_page(name: str) -> None:
    picture = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\s\"')]+", picture))
    assert addresses <= {"http://www.w3.org/2000/svg", "https://www.textualize.io"}
    assert "@font-face" not in picture
    assert any(f"images/{name}.svg)" in page.read_text(encoding="utf-8") for page in PAGES)
