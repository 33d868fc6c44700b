"""The page of a report as its reader has it before them: its tables, its filter, its pictures."""

from __future__ import annotations

from typing import NamedTuple

from tests.platforms.browser import Browser

_TABLE = """
const table = document.getElementById(arguments[0]), heads = [...table.tHead.rows[0].cells];
return [...table.tBodies[0].rows].filter(row => !row.hidden && row.cells.length === heads.length)
    .map(row => Object.fromEntries(heads.map((head, n) => [head.textContent, row.cells[n].textContent])));
"""
_TILES = """
return Object.fromEntries([...document.querySelectorAll('[data-outcome]')].filter(tile => tile.checkVisibility())
    .map(tile => [tile.dataset.outcome, tile.querySelector('strong').textContent]));
"""
_BARS = """
return [...document.querySelectorAll(`#${CSS.escape(arguments[0])} svg .mark-rect path`)]
    .map(bar => ({ box: bar.getBBox(), hue: getComputedStyle(bar).fill }))
    .filter(({ box }) => box.width > 0 && box.height > 0)
    .map(({ box, hue }) => [hue, box.x, box.y, box.width, box.height]);
"""
_WORDS = """
return [...document.querySelectorAll(`#${CSS.escape(arguments[0])} svg text`)]
    .map(label => label.textContent).filter(label => label.trim());
"""
_HUES = """
return Object.fromEntries([...document.querySelectorAll('[data-outcome]')].map(tile =>
    [getComputedStyle(tile.querySelector('.outcome'), '::before').backgroundColor, tile.dataset.outcome]));
"""
# Pictures are drawn when there is time: done is what has stayed as it is for a while.
_SETTLE = """
const drawn = () => [...document.querySelectorAll('figure')].map(one => one.innerHTML).join();
return new Promise((done, fail) => {
    let before = drawn(), same = 0, left = 400;
    const look = () => {
        const now = drawn();
        same = now === before ? same + 1 : 0;
        before = now;
        if (same === 6) done(true);
        else if (left-- === 0) fail(new Error('the pictures do not come to rest'));
        else setTimeout(look, 25);
    };
    look();
});
"""


class Bar(NamedTuple):
    """A bar of a picture: its colour as CSS computes it, and where it is in points of the picture."""

    hue: str
    x: float
    y: float
    width: float
    height: float


def tiles(shown: Browser) -> dict[str, str]:
    """The messages of each outcome, as the head of the page tells them."""
    return dict(shown.ask(_TILES))


def table(shown: Browser, name: str, *heads: str) -> list[tuple[str, ...]]:
    """The rows of a table, of each the cells under these heads; one that says that there is none is none."""
    rows = shown.ask(_TABLE, name)
    return [tuple(row[head] for head in heads) for row in rows]


def words(shown: Browser, picture: str) -> list[str]:
    """The words and numbers that stand in a picture."""
    return list(shown.ask(_WORDS, picture))


def bars(shown: Browser, picture: str) -> list[Bar]:
    """The bars of a picture, from left to right and from top to bottom, to the tenth of a point."""
    found = (Bar(hue, *(round(number, 1) for number in box)) for hue, *box in shown.ask(_BARS, picture))
    return sorted(found, key=lambda bar: (bar.x, bar.y, bar))


def hues(shown: Browser) -> dict[str, str]:
    """The outcome that each colour stands for, by the marks that stand beside the outcomes' words."""
    return dict(shown.ask(_HUES))


def settle(shown: Browser) -> None:
    """Wait until the pictures are drawn."""
    shown.ask(_SETTLE)


def choose(shown: Browser, **asked: str) -> None:
    """Set the filter: instance, service, outcome."""
    for name, value in asked.items():
        shown.choose(f"#filter select[name={name}]", value)
    settle(shown)


def clear(shown: Browser) -> None:
    """Show all again."""
    shown.click("#filter button[type=reset]")
    settle(shown)


def open_all(shown: Browser) -> None:
    """Open everything that is folded."""
    shown.ask("for (const fold of document.querySelectorAll('details')) fold.open = true;")
