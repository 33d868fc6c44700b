"""Findings → rows: what is suppressed, in full columns, sorted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from routing.features.lint.catalogue import BY_CODE, LintRule
from routing.features.lint.custom_rules import CustomRule
from routing.features.lint.lint_finding import LintFinding
from routing.features.lint.lint_settings import LintSuppression
from routing.schemas import FINDINGS
from routing.tables.schema_rows import SchemaRows


def kinds_with(rules: Iterable[CustomRule]) -> Mapping[str, LintRule]:
    """Return every kind of finding by its code, those of custom rules last."""
    return {**BY_CODE, **{rule.code: rule.kind for rule in rules}}


def suppressed_of(every: Iterable[LintFinding], suppress: Sequence[LintSuppression]) -> set[LintFinding]:
    """Return the findings that are not to be shown."""
    return {one for one in every if any(_covers(part, one) for part in suppress)}


def _covers(one: LintSuppression, finding: LintFinding) -> bool:
    """Return True if a suppression's every given part is the finding's."""
    parts = finding._asdict()
    return all(parts[name] == value for name, value in vars(one).items() if value is not None)


def rows_of(findings: Iterable[LintFinding], kinds: Mapping[str, LintRule]) -> SchemaRows:
    """Return findings in their full columns, sorted by them."""
    full = [full_row(one, kinds) for one in findings]
    full.sort(key=place_of)
    return SchemaRows(FINDINGS, tuple(full))


def place_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a row's place in the order of its columns, null first."""
    return tuple((value is not None, value or "") for value in row.values())


def full_row(one: LintFinding, kinds: Mapping[str, LintRule]) -> dict[str, Any]:
    """Return a finding in its full columns."""
    kind = kinds[one.code]
    values = {**one._asdict(), "severity": str(kind.severity), "advice": kind.advice}
    return {name: values[name] for name in FINDINGS.names}
