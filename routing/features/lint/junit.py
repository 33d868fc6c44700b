"""Findings as JUnit's XML, which build servers show as tests: one for each code."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from routing.features.lint.catalogue import LintRule
from routing.features.lint.finding_places import finding_line, where
from routing.render.wording import count, printable

Row = Mapping[str, Any]
_SUITE = "sbroute lint"


def as_junit(findings: Sequence[Row], kinds: Mapping[str, LintRule], failing: Collection[str]) -> str:
    """Return a test for each code, which fails where it has findings of a severity in ``failing``.

    A failure lists them, a line each; other findings are the test's output. What XML cannot hold, and what could
    move a cursor, is replaced.
    """
    by_code: dict[str, list[Row]] = {}
    for row in findings:
        by_code.setdefault(row["code"], []).append(row)
    failed = [code for code, rows in by_code.items() if rows[0]["severity"] in failing]
    counts = {"tests": str(len(kinds)), "failures": str(len(failed)), "errors": "0", "skipped": "0"}
    suites = ElementTree.Element("testsuites", {"name": _SUITE, **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": _SUITE, **counts, "time": "0"})
    for code, kind in kinds.items():
        _add_test(suite, kind, by_code.get(code, []), is_failed=code in failed)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode")


def _add_test(suite: ElementTree.Element, kind: LintRule, rows: Sequence[Row], *, is_failed: bool) -> None:
    name = f"{kind.code} {printable(kind.title)}"
    test = ElementTree.SubElement(suite, "testcase", {"classname": "sbroute.lint", "name": name, "time": "0"})
    if not rows:
        return
    files = [row["file"] for row in rows if row.get("file") is not None]
    if files:
        test.set("file", printable(files[0]))
    lines = "\n".join(map(_line, rows))
    if is_failed:
        of = {"message": f"{count(len(rows), 'finding')}: {_line(rows[0])}", "type": str(kind.severity)}
        ElementTree.SubElement(test, "failure", of).text = lines
    else:
        ElementTree.SubElement(test, "system-out").text = lines


def _line(row: Row) -> str:
    return f"{where(row)}: {finding_line(row)}" if row.get("file") is not None else finding_line(row)
