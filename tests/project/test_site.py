"""The site of the documentation, as `make docs` builds it."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = {f"lint/{path.stem}.html" for path in (ROOT / "routing" / "lint" / "pages").glob("*.md")}
ERRORS = {f"errors/{path.stem}.html" for path in (ROOT / "docs" / "errors").glob("[0-9]*.md")}
PAGES = LINT | {
    path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.md")
}

MOVED = json.loads((ROOT / "docs" / "moved.json").read_text(encoding="utf-8"))


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    options = ["--quiet", "--nitpicky", "--fail-on-warning", "--keep-going"]
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(target)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    done = build(ROOT / "docs", target)
    assert done.returncode == 0, done.stderr
    return target


def test_every_page_is_built_and_has_a_place_in_the_navigation(site: Path) -> None:
    index = (site / "index.html").read_text(encoding="utf-8")
    menu = re.search(r'<div class="sidebar-tree">(.*?)</div>', index, re.DOTALL)
    assert menu is not None
    linked = {html.unescape(link) for link in re.findall(r'href="([^"#:]+\.html)"', menu[1])}
    assert {page for page in PAGES if (site / page).exists()} == PAGES
    assert PAGES - LINT - ERRORS - {"index.html"} <= linked
    codes = (site / "reference" / "lint-codes.html").read_text(encoding="utf-8")
    assert all(f'href="../{page}"' in codes for page in LINT)
    errors = (site / "errors" / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{page.removeprefix("errors/")}"' in errors for page in ERRORS)


def test_search_knows_the_words_of_pages(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert all(f'"{page.removesuffix(".html")}"' in index for page in PAGES)
    assert '"transmission_statu"' in index or '"transmission_status"' in index


def test_links_out_of_the_pages_lead_to_the_repository(site: Path) -> None:
    index = (site / "index.html").read_text(encoding="utf-8")
    assert re.search(r'href="https://github\.com/[\w-]+/service-broker-routing/blob/main/README\.md"', index)


def test_old_addresses_lead_to_pages(site: Path) -> None:
    for old in MOVED:
        text = (site / f"{old}.html").read_text(encoding="utf-8")
        [target] = re.findall(r"url=([^\"]+)\"", text)
        assert (site / old).parent.joinpath(target).resolve().is_file(), old


def test_every_removed_page_has_a_redirect() -> None:
    """As far as the history at hand reaches."""
    log = ["git", "log", "--name-only", "--format=", "--diff-filter=DR", "--no-renames", "--", "docs"]
    listed = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    # Pages of lint are still at their address on the site.
    old = {name for name in listed if name.endswith(".md") and not name.startswith("docs/lint/")}
    gone = {name.removeprefix("docs/").removesuffix(".md") for name in old if not (ROOT / name).exists()}
    assert gone <= MOVED.keys(), "add them to docs/moved.json"
    assert not [page for page in MOVED if (ROOT / "docs" / f"{page}.md").exists()]
    assert all((ROOT / "docs" / f"{page}.md").is_file() for page in MOVED.values())


def test_a_broken_link_ends_the_build(tmp_path: Path) -> None:
    source = tmp_path / "docs"
    (source / "site").mkdir(parents=True)
    for name in ("conf.py", "moved.json"):
        (source / name).write_text((ROOT / "docs" / name).read_text(encoding="utf-8"), encoding="utf-8")
    (source / "index.md").write_text("# Start\n\n## Part\n\n[a page](page.md)\n", encoding="utf-8")
    (source / "page.md").write_text("# Page\n\n[gone](gone.md) [heading](index.md#nowhere)\n", encoding="utf-8")
    done = build(source, tmp_path / "site")
    assert done.returncode != 0
    assert "gone.md" in done.stderr
    assert "nowhere" in done.stderr
