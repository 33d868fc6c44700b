"""Findings → rows: what is suppressed, in full columns, sorted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from routing.analysis.lint.catalogue import BY_CODE, Finding
from routing.analysis.lint.finding import Found
from routing.analysis.lint.options import Suppression
from routing.analysis.lint.own import Rule
from routing.schemas import FINDINGS
from routing.storage.rows import Rows


def kinds_with(rules: Iterable[Rule]) -> Mapping[str, Finding]:
    """Every kind of finding by its code, those of rules of one's own last."""
    return {**BY_CODE, **{rule.code: rule.kind for rule in rules}}


def suppressed_of(every: Iterable[Found], suppress: Sequence[Suppression]) -> set[Found]:
    """The findings that are not to be shown."""
    return {one for one in every if any(_covers(part, one) for part in suppress)}


def _covers(one: Suppression, finding: Found) -> bool:
    """Whether a suppression's every given part is the finding's."""
    parts = finding._asdict()
    return all(parts[name] == value for name, value in vars(one).items() if value is not None)


def rows_of(found: Iterable[Found], kinds: Mapping[str, Finding]) -> Rows:
    """Findings in their full columns, sorted by them."""
    full = [full_row(one, kinds) for one in found]
    full.sort(key=place_of)
    return Rows(FINDINGS, tuple(full))


def place_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """A row's place in the order of its columns, null first."""
    return tuple((value is not None, value or "") for value in row.values())


def full_row(one: Found, kinds: Mapping[str, Finding]) -> dict[str, Any]:
    """A finding in its full columns."""
    kind = kinds[one.code]
    values = {**one._asdict(), "severity": str(kind.severity), "advice": kind.advice}
    return {name: values[name] for name in FINDINGS.names}
