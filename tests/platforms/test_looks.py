"""Each check of pages finds its fault. Each page here has one fault that no other check finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.platforms.browser import NARROW, Browser
from tests.platforms.looks import faults

WIDE_BOX = '<div style="width: 500px; height: 1em; background: #fff">a</div>'
# A title, a language, headings and landmarks: nothing that is complained of.
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>A page</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body {{ color: #111; background: #fff; margin: 1em }} pre {{ overflow: auto }}</style></head>
<body><main><h1>A page</h1>{body}</main></body></html>
"""
WELL = f'<p>well</p><div tabindex="0" style="overflow-x: auto">{WIDE_BOX}</div>'
FAULTS = {
    "an error in the console": ("<script>console.error('no')</script>", {"complaints"}),
    "an exception": ("<script>undefined.x</script>", {"complaints"}),
    "an exception later": ("<script>setTimeout(() => undefined.x)</script>", {"complaints"}),
    "a sheet from elsewhere": (
        '<link rel="stylesheet" href="https://example.invalid/a.css">',
        {"complaints", "made_of_text", "requests"},
    ),
    "an image from elsewhere": (
        '<img alt="a" src="https://example.invalid/a.png">',
        {"complaints", "made_of_text", "requests"},
    ),
    "an image beside the page": ('<img alt="a" src="a.png">', {"complaints", "made_of_text", "requests"}),
    "a request of a script": (
        "<script>fetch('https://example.invalid/a').catch(() => 0)</script>",
        {"complaints", "requests"},
    ),
    "a box that is too wide": (WIDE_BOX, {"stands_out"}),
    "a box that is too wide in one that cuts it off": (
        f'<div style="overflow: hidden">{WIDE_BOX}</div>',
        {"stands_out"},
    ),
    "a word that is too long": (f"<p>{'long' * 30}</p>", {"stands_out"}),
    "a word that is cut off": (f'<p style="overflow: hidden">{"long" * 30}</p>', {"stands_out"}),
    "a label that is cut off": (
        '<svg role="img" aria-label="a" width="50" height="20"><text y="15">too long a label</text></svg>',
        {"cut_labels"},
    ),
    "a script made of a name": ("<script>alert(1)</script>", {"made_of_text"}),
    "an attribute made of a name": ('<p onclick="x()">a</p>', {"made_of_text"}),
    "a pale text": ('<p style="color: #999">pale</p>', {"barriers"}),
    "a picture without words": ('<svg role="img" width="9" height="9"></svg>', {"barriers"}),
    "a choice without a name": ("<select><option>a</option></select>", {"barriers"}),
    "a box that no key scrolls": (f'<div style="overflow-x: auto">{WIDE_BOX}</div>', {"barriers"}),
}


def found_in(shown: Browser, folder: Path, body: str) -> set[str]:
    file = folder / "page.html"
    file.write_text(PAGE.format(body=body), encoding="utf-8")
    shown.open(file, width=NARROW)
    # What a script leaves for later is done by then.
    shown.ask("return new Promise(done => setTimeout(done, 100))")
    return set(faults(shown))


def test_a_good_page_has_no_fault(shown: Browser, tmp_path: Path) -> None:
    assert found_in(shown, tmp_path, WELL) == set()


@pytest.mark.parametrize("what", FAULTS)
def test_each_fault_of_a_page_is_found(shown: Browser, tmp_path: Path, what: str) -> None:
    body, expected = FAULTS[what]
    assert found_in(shown, tmp_path, body) == expected


def test_a_fault_only_in_dark_colours_is_found(shown: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    style = "<style>@media (prefers-color-scheme: dark) { p { color: #eee } }</style><p>some text</p>"
    file.write_text(PAGE.format(body=style), encoding="utf-8")
    found = []
    for dark in (False, True):
        shown.open(file, dark=dark)
        found.append(set(faults(shown)))
    assert found == [set(), {"barriers"}]


def test_a_page_is_shown_in_print_and_without_scripts(shown: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    style = "<style>@media print { b { display: none } }</style><b>screen</b>"
    script = "<script>document.querySelector('i').textContent = 'done'</script>"
    file.write_text(PAGE.format(body=f"{style}<i>not done</i>{script}"), encoding="utf-8")
    shown.open(file)
    assert shown.texts("b, i") == ["screen", "done"]
    shown.show_as(medium="print")
    assert shown.texts("b, i") == ["done"]
    shown.open(file, scripts=False)
    assert shown.texts("b, i") == ["screen", "not done"]
