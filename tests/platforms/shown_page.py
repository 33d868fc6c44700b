"""The page of a report as its reader has it before them: its tables, its filter, its pictures."""

from __future__ import annotations

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
_WORDS = """
return [...document.querySelectorAll(`#${CSS.escape(arguments[0])} svg text`)]
    .filter(label => label.checkVisibility()).map(label => label.textContent).filter(label => label.trim());
"""
# What the script does on a change is done at once; a reset waits for the form.
_SETTLE = "return new Promise(done => setTimeout(() => setTimeout(done)));"


def tiles(shown: Browser) -> dict[str, str]:
    """The messages of each outcome, as the head of the page tells them."""
    return dict(shown.ask(_TILES))


def table(shown: Browser, name: str, *heads: str) -> list[tuple[str, ...]]:
    """Return the rows of a table, with the cells under these headers. A row that says "none" does not count."""
    rows = shown.ask(_TABLE, name)
    return [tuple(row[head] for head in heads) for row in rows]


def words(shown: Browser, picture: str) -> list[str]:
    """Return the visible words and numbers in a chart."""
    return list(shown.ask(_WORDS, picture))


def wait_for_script(shown: Browser) -> None:
    """Wait until the script has answered."""
    shown.ask(_SETTLE)


def choose(shown: Browser, **asked: str) -> None:
    """Set the filter: instance, service, outcome."""
    for name, value in asked.items():
        shown.choose(f"#filter select[name={name}]", value)
    wait_for_script(shown)


def clear(shown: Browser) -> None:
    """Show all again."""
    shown.click("#filter button[type=reset]")
    wait_for_script(shown)


def open_all(shown: Browser) -> None:
    """Open everything that is folded."""
    shown.ask("for (const fold of document.querySelectorAll('details')) fold.open = true;")
