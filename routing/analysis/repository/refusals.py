"""Statements of scripts that SQL Server is sure to refuse, as findings."""

from __future__ import annotations

from collections.abc import Iterator

from routing.analysis.check.evidence import Evidence
from routing.analysis.check.subjects import Spot
from routing.analysis.lint.catalogue import FINDINGS
from routing.analysis.lint.finding import Found

# The options of a route: SBR001 to SBR009, which have a number each.
_CODES = {kind.error_number: kind.code for kind in FINDINGS[:9]}
_OTHERS = "SBR042"


def refused_statements(evidence: Evidence) -> Iterator[tuple[Found, Spot]]:
    """A finding for each of them, with its file and line."""
    for instance, problem in evidence.problems:
        if problem.by_server and not problem.counted:
            code = _CODES.get(problem.number, _OTHERS)
            found = Found(code, instance, None, None, problem.why, problem.number)
            yield found, (problem.file, problem.line)
