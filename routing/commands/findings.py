"""What lint of tables and lint of files share: reports for other programs, the time, the exit status."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routing.commands.common import moment
from routing.errors import EXIT_DONE, EXIT_FOUND

if TYPE_CHECKING:
    from routing.features.lint.custom_rules import CustomRule

SEVERITIES = ("error", "warning", "info")
"""The worst first."""
FindingRows = Sequence[Mapping[str, Any]]


def at_least(severity: str) -> tuple[str, ...]:
    """Return the severities that are as bad, or worse."""
    return SEVERITIES[: SEVERITIES.index(severity) + 1]


def report(
    options: argparse.Namespace, findings: FindingRows, rules: Sequence[CustomRule], *, config: str | None = None
) -> str:
    """Write findings as SARIF, or as JUnit's XML in which those fail that ``--fail-on`` names (default: warnings).

    ``config`` is the file that names the tables, which stands for them where a file is asked for.
    """
    from routing.features.lint.finding_rows import kinds_with

    kinds = kinds_with(rules)
    if options.format == "junit":
        from routing.features.lint.junit import as_junit

        return as_junit(findings, kinds, at_least(options.fail_on or "warning"))
    from routing.delta.releases import release
    from routing.features.lint.pages import page
    from routing.features.lint.sarif import as_sarif

    pages = {code: page(code, rules) for code in kinds}
    placed = findings if config is None else [{"file": config, **row} for row in findings]
    return as_sarif(placed, kinds, pages, release(), Path.cwd())


def now_of(options: argparse.Namespace) -> datetime:
    """Return the time of judgement, the clock's where none is given. Raises ContractError."""
    return datetime.now(timezone.utc) if options.now is None else moment(options.now, "--now")


def status_of(findings: FindingRows, options: argparse.Namespace) -> int:
    """Return the exit status for findings, by ``--fail-on``."""
    failing = at_least(options.fail_on) if options.fail_on else ()
    return EXIT_FOUND if any(row["severity"] in failing for row in findings) else EXIT_DONE
