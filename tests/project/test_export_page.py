"""What the page on the nightly export says is what the script for SQL Server needs."""

from __future__ import annotations

import re

from routing.importing.catalog.query_script import QUERIES, queries
from tests.pages import ROOT

PAGE = (ROOT / "docs" / "how-to" / "export-nightly.md").read_text(encoding="utf-8")
PRIVACY = (ROOT / "docs" / "explanation" / "privacy.md").read_text(encoding="utf-8")
SCRIPT = queries()


def test_the_login_gets_what_the_script_names() -> None:
    head = SCRIPT.partition("SET NOCOUNT ON;")[0]
    granted = re.findall(r"^GRANT (.+?)(?: ON .+)? TO \[CORP\\sbroute\];$", PAGE, re.MULTILINE)
    named = re.findall(r"\b(?:VIEW|CONNECT) (?:ANY|SERVER) [A-Z]+\b|\bEXECUTE\b", head)
    assert set(granted) == set(named)
    assert "EXECUTE ON sys.xp_readerrorlog" in PAGE
    assert "master.sys.xp_readerrorlog" in head


def test_the_job_calls_sqlcmd_as_the_script_says() -> None:
    [wanted] = re.findall(r"sqlcmd -S SERVER (.+) -i ", SCRIPT)
    [used] = re.findall(r"sqlcmd -S SHOP (.+) -i ", PAGE)
    assert used == wanted


def test_the_page_on_privacy_names_every_column_about_people() -> None:
    names = {name for query in QUERIES.values() for name in query.people}
    names |= {view for view, query in QUERIES.items() if query.only_with_people}
    rows = {
        name
        for row in re.findall(r"^\|.*\| yes \|$", PRIVACY, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert rows == names
