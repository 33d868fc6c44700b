"""Findings as lint prints them: rule by rule, the worst first, each with its advice once and some examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from routing.document import Block, Document, DocumentHeading, LabelledFact, ListItem, Paragraph, Tone, TonedText
from routing.features.lint.catalogue import LintRule, Severity
from routing.features.lint.custom_rules import CustomRule
from routing.features.lint.finding_places import name_of, where
from routing.features.lint.finding_rows import kinds_with
from routing.render.wording import count

_EXAMPLES = 3
_INSTANCES_SHOWN = 10
_TONES = {Severity.ERROR: Tone.BAD, Severity.WARNING: Tone.WAITING, Severity.INFO: Tone.QUIET}
Row = Mapping[str, Any]


def describe_findings(
    findings: Sequence[Row],
    suppressed: int,
    rules: Sequence[CustomRule] = (),
    *,
    lists_all: bool = False,
    remarks: Sequence[Block] = (),
) -> Document:
    """Return findings grouped by rule, errors first, and last how many there are.

    A rule with many findings has three examples, and what every instance has by default is counted, unless
    ``lists_all``. ``rules`` are custom ones; ``remarks`` are printed before the last line.
    """
    kinds = kinds_with(rules)
    by_code: dict[str, list[Row]] = {}
    for row in findings:
        by_code.setdefault(row["code"], []).append(row)
    defaults = [] if lists_all else [code for code in by_code if code in kinds and kinds[code].is_default]
    listed = [code for code in by_code if code not in defaults]
    listed.sort(key=lambda code: (list(Severity).index(by_code[code][0]["severity"]), code))
    groups = (block for code in listed for block in _describe_rule(by_code[code], kinds.get(code), lists_all))
    counted = _count_defaults([row for code in defaults for row in by_code[code]])
    return [*groups, *counted, *remarks, _count_all(findings, suppressed)]


def count_codes(counts: Mapping[str, int]) -> str:
    """Return the codes, each with how many findings it has."""
    return ", ".join(f"{code} ({number:,})" for code, number in sorted(counts.items()))


def _count_all(findings: Sequence[Row], suppressed: int) -> DocumentHeading:
    counts = Counter(row["severity"] for row in findings)
    error, warning = (count(counts[severity], severity) for severity in (Severity.ERROR, Severity.WARNING))
    more = "; more: sbroute lint --explain CODE" if findings else ""
    return DocumentHeading(f"{error}, {warning}, {counts[Severity.INFO]:,} info, {suppressed:,} suppressed{more}")


def _describe_rule(rows: Sequence[Row], kind: LintRule | None, lists_all: bool) -> Iterator[Block]:
    """Yield a rule's title with its number of findings, what to do, and its findings or the first of them."""
    first = rows[0]
    title = "" if kind is None else f": {kind.title}"
    numbers = {row["error_number"] for row in rows}
    severity = TonedText(first["severity"], _TONES[first["severity"]])
    yield DocumentHeading((f"{first['code']} ", severity, f" ({len(rows):,}){title}"))
    yield LabelledFact("what to do", first["advice"], indent=1)
    if len(numbers) == 1 and first["error_number"]:
        yield LabelledFact("SQL Server's number", str(first["error_number"]), indent=1)
    is_equal = len(rows) > 1 and len({row["message"] for row in rows}) == 1
    if is_equal:
        yield Paragraph(first["message"], indent=1, hang=1)
    shown = rows if lists_all else rows[:_EXAMPLES]
    for row in shown:
        yield ListItem(_describe_finding(row, with_message=not is_equal, with_number=len(numbers) > 1), indent=1)
    if len(shown) < len(rows):
        yield Paragraph(f"and {len(rows) - len(shown):,} more; --all lists them", indent=1)


def _describe_finding(row: Row, *, with_message: bool, with_number: bool) -> str:
    """Describe a finding's place and object, with its message where the rule's findings differ in it."""
    place = where(row) if row.get("file") is not None else ""
    name = ", ".join(part for part in (place, name_of(row)) if part)
    number = f" (SQL Server's number {row['error_number']})" if with_number and row["error_number"] else ""
    if not with_message and name:
        return f"{name}{number}"
    return f"{name}: {row['message']}{number}" if name else f"{row['message']}{number}"


def _count_defaults(findings: Sequence[Row]) -> Iterator[Block]:
    """Yield the numbers of findings that every instance has by default, by code and by instance."""
    if not findings:
        return
    codes = count_codes(Counter(row["code"] for row in findings))
    yield DocumentHeading(f"Not listed, since every instance has it by default: {codes}; --all lists them")
    counts: dict[str, Counter[str]] = {}
    for row in findings:
        counts.setdefault(row["instance_name"] or "", Counter())[row["code"]] += 1
    by_size = sorted(counts.items(), key=lambda item: (-item[1].total(), item[0]))
    for instance, of_instance in by_size[:_INSTANCES_SHOWN]:
        yield ListItem(f"{instance}: {count_codes(of_instance)}", indent=1)
    if len(by_size) > _INSTANCES_SHOWN:
        yield Paragraph(f"and {count(len(by_size) - _INSTANCES_SHOWN, 'more instance')}", indent=1)
