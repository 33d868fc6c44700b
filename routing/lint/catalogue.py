"""Read the catalogue of lint's findings from the page of each.

Codes are numbered once and never reused. A page begins with code and title, severity and advice. The error number
of SQL Server follows if every row of the kind has it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

from routing.terms import Word


class Severity(Word):
    """The severity of a finding, worst first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True)
class LintRule:
    """One kind of finding.

    ``error_number`` is SQL Server's, if every row of the kind has it. ``is_default`` is True if every new instance
    has the finding. These findings are printed as one count, so that they do not bury others.
    """

    code: str
    severity: Severity
    title: str
    advice: str
    error_number: int | None = None
    is_default: bool = False


_HEAD = re.compile(
    r"# (?P<code>SBR[0-9]{3}): (?P<title>.+)\n\n"
    r"Severity: (?P<severity>\w+)(?:; SQL Server's number (?P<number>[0-9]+))?\n\n"
    r"Advice: (?P<advice>.+)\n(?P<default>\nEvery instance has it by default\.\n)?"
)


def read_rule(text: str) -> LintRule:
    """Read the head of a page. Raises ValueError for another."""
    head = _HEAD.match(text)
    if head is None:
        raise ValueError(f"a page of lint begins otherwise: {text[:80]!r}")
    number = head["number"] and int(head["number"])
    severity = Severity(head["severity"])
    return LintRule(head["code"], severity, head["title"], head["advice"], number or None, bool(head["default"]))


PAGES: dict[str, str] = {
    name.removesuffix(".md"): (resources.files("routing.lint") / "pages" / name).read_text("utf-8")
    for name in sorted(page.name for page in (resources.files("routing.lint") / "pages").iterdir())
    if name.endswith(".md")
}
"""The text of each page, by code."""

FINDINGS: tuple[LintRule, ...] = tuple(read_rule(text) for text in PAGES.values())
BY_CODE: dict[str, LintRule] = {finding.code: finding for finding in FINDINGS}
