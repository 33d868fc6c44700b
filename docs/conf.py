"""Settings of the documentation site that `make docs` builds with Sphinx."""

from __future__ import annotations

import json
import re
import shutil
from importlib.metadata import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_ROOT = Path(__file__).parent.parent
_PACKAGE = metadata("service-broker-routing")
_URLS = dict(url.split(", ", 1) for url in _PACKAGE.get_all("Project-URL") or ())

project = _PACKAGE["Name"]
release = version = _PACKAGE["Version"]
author = "the authors of service-broker-routing"
project_copyright = "the authors"
extensions = ["myst_parser"]
root_doc = "index"
html_theme = "furo"
html_title = f"{project} {release}"
html_static_path = ["site"]
html_css_files = ["pages.css"]
html_show_copyright = html_show_sphinx = False
# Messages and statements keep the quotes that they have.
smartquotes = False
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "source_repository": _URLS["Source"],
    "source_branch": "main",
    "source_directory": "docs/",
}
# Headings get the anchors that they have on the code host, so that a link works in both places.
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
# Output of commands is shown as it is printed. Some blocks are excerpts, which a lexer rejects.
suppress_warnings = ["misc.highlighting_failure"]

_LINT_PAGES = _ROOT / "routing" / "lint" / "pages"
"""The package holds these pages, because `sbroute lint --explain` prints them."""
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(#[^)\s]*)?(?=\))")
_PAGE = re.compile(r"\]\(([^)\s#:]+)\.md(?:#[^)\s]*)?\)")
_REDIRECT = (
    '<!doctype html><meta charset="utf-8"><title>Moved</title><meta http-equiv="refresh" content="0; url={0}">'
    '<p>This page is now <a href="{0}">{0}</a>.</p>\n'
)


def _copy_lint_pages(app: Sphinx) -> None:
    """Copy the pages of lint to where Sphinx reads them."""
    target = Path(app.srcdir) / "lint"
    target.mkdir(exist_ok=True)
    for page in _LINT_PAGES.glob("*.md"):
        (target / page.name).write_text(page.read_text(encoding="utf-8"), encoding="utf-8")


def _remove_lint_pages(app: Sphinx, _exception: Exception | None) -> None:
    """Remove the copies."""
    shutil.rmtree(Path(app.srcdir) / "lint", ignore_errors=True)


def _redirect_old_pages(app: Sphinx, exception: Exception | None) -> None:
    """Write a page that leads on for every page that was renamed or merged: `moved.json` maps old to new."""
    if exception is None:
        for old, new in json.loads((Path(__file__).parent / "moved.json").read_text(encoding="utf-8")).items():
            page = Path(app.outdir) / f"{old}.html"
            page.parent.mkdir(exist_ok=True)
            target = f"{'../' * old.count('/')}{new}.html"
            page.write_text(_REDIRECT.format(target), encoding="utf-8")


def _link_to_repository(app: Sphinx, docname: str, source: list[str]) -> None:
    """Point links that leave `docs/` to the file on the code host, or to the copied page of lint."""
    page = (Path(app.srcdir) / docname).parent
    if docname.startswith("lint/"):
        page = _LINT_PAGES

    def replace(link: re.Match[str]) -> str:
        target = (page / link[1]).resolve()
        if target.parent == _LINT_PAGES:
            return f"/lint/{target.name}{link[2] or ''}"
        if docname.startswith("lint/") and target.is_relative_to(app.srcdir):
            return f"/{target.relative_to(app.srcdir).as_posix()}{link[2] or ''}"
        if target.is_relative_to(app.srcdir) or not target.exists():
            return link[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"{_URLS['Source']}/{kind}/main/{target.relative_to(_ROOT).as_posix()}{link[2] or ''}"

    source[0] = _LINK.sub(replace, source[0])


def _list_pages(app: Sphinx, docname: str, source: list[str]) -> None:
    """Make the navigation of the site from the headings and links of the index page."""
    if docname == root_doc:
        parts = re.split(r"^## (.*)\n", source[0], flags=re.MULTILINE)
        for title, text in zip(parts[1::2], parts[2::2], strict=True):
            pages = "\n".join(dict.fromkeys(_PAGE.findall(text)))
            # The pages for contributors are on the code host.
            if pages:
                source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n"
    elif docname == "reference/lint-codes":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n../lint/*\n```\n"
    elif docname == "errors/index":
        # The title of such a page is a whole message: the navigation shows its number.
        pages = "\n".join(
            f"{name.replace('-', ', ')} <{name}>"
            for name in dict.fromkeys(_PAGE.findall(source[0]))
            if name[0].isdigit()
        )
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def setup(app: Sphinx) -> None:
    """Register the changes to a page's text before it is read."""
    app.connect("builder-inited", _copy_lint_pages)
    app.connect("build-finished", _remove_lint_pages)
    app.connect("build-finished", _redirect_old_pages)
    app.connect("source-read", _link_to_repository)
    app.connect("source-read", _list_pages)
