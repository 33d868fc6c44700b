"""Statements of scripts that SQL Server is sure to refuse, as findings."""

from __future__ import annotations

from collections.abc import Iterator

from routing.features.check.evidence import FileEvidence
from routing.features.check.subjects import Spot
from routing.features.lint.catalogue import FINDINGS
from routing.features.lint.lint_finding import LintFinding

# The options of a route: SBR001 to SBR009, which have a number each.
_CODES = {kind.error_number: kind.code for kind in FINDINGS[:9]}
_OTHERS = "SBR042"


def refused_statements(evidence: FileEvidence) -> Iterator[tuple[LintFinding, Spot]]:
    """Yield a finding for each of them, with its file and line."""
    for instance, problem in evidence.problems:
        if problem.by_server and not problem.counted:
            code = _CODES.get(problem.number, _OTHERS)
            finding = LintFinding(code, instance, None, None, problem.why, problem.number)
            yield finding, (problem.file, problem.line)
