"""Print findings: rule by rule, the worst first, each with its advice once and some examples."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from routing.document import Block, Document, DocumentHeading, LabelledFact, ListItem, Paragraph, Tone, TonedText
from routing.groups import group_pairs
from routing.lint.catalogue import LintRule, Severity
from routing.lint.custom_rules import CustomRule
from routing.lint.linting import kinds_with
from routing.render.wording import count, printable
from routing.terms import JsonObject, ReadRow

# A finding in one line, for the reports of other programs.


_NAMES = ("instance_name", "database_name", "object")


def name_of(row: ReadRow) -> str:
    """Name a finding's place: instance, database and object, joined by dots.

    The name of a script is left out if it equals the name of its file.
    """
    names = (row[name] for name in _NAMES if row[name] and row[name] != row.get("file"))
    return printable(".".join(dict.fromkeys(names)))


def finding_line(row: ReadRow) -> str:
    """Write a finding: its place, its message, SQL Server's number and the advice."""
    number = f" (SQL Server's number {row['error_number']})" if row["error_number"] else ""
    name = name_of(row)
    message = printable(f"{row['message']}{number}; {row['advice']}")
    return f"{name}: {message}" if name else message


def where(row: ReadRow) -> str:
    """Return the file of a finding, and its line."""
    line = "" if row["line"] is None else f":{row['line']}"
    return printable(f"{row['file']}{line}")


NOT_JUDGED = "statements and rows that were not judged"
_EXAMPLES = 3
_INSTANCES_SHOWN = 10
_TONES = {Severity.ERROR: Tone.BAD, Severity.WARNING: Tone.WAITING, Severity.INFO: Tone.QUIET}


def describe_findings(
    findings: Sequence[ReadRow],
    suppressed: int,
    rules: Sequence[CustomRule] = (),
    *,
    lists_all: bool = False,
    remarks: Sequence[Block] = (),
) -> Document:
    """Return findings grouped by rule, errors first, with the total at the end.

    Unless ``lists_all``, a rule with many findings has three examples, and defaults of every instance are only
    counted. ``rules`` are custom ones. ``remarks`` are printed before the last line.
    """
    kinds = kinds_with(rules)
    by_code = group_pairs((row["code"], row) for row in findings)
    defaults = [] if lists_all else [code for code in by_code if code in kinds and kinds[code].is_default]
    listed_codes = [code for code in by_code if code not in defaults]
    listed_codes.sort(key=lambda code: (list(Severity).index(by_code[code][0]["severity"]), code))
    groups = (
        block for code in listed_codes for block in _describe_rule(by_code[code], kinds.get(code), lists_all)
    )
    counted = _count_defaults([row for code in defaults for row in by_code[code]])
    return [*groups, *counted, *remarks, _count_all(findings, suppressed)]


def count_codes(counts: Mapping[str, int]) -> str:
    """Return the codes with their numbers of findings."""
    return ", ".join(f"{code} ({number:,})" for code, number in sorted(counts.items()))


def _count_all(findings: Sequence[ReadRow], suppressed: int) -> DocumentHeading:
    counts = Counter(row["severity"] for row in findings)
    error, warning = (count(counts[severity], severity) for severity in (Severity.ERROR, Severity.WARNING))
    explain_hint = "; more: sbroute lint --explain CODE" if findings else ""
    return DocumentHeading(
        f"{error}, {warning}, {counts[Severity.INFO]:,} info, {suppressed:,} suppressed{explain_hint}"
    )


def _describe_rule(rows: Sequence[ReadRow], kind: LintRule | None, lists_all: bool) -> Iterator[Block]:
    """Yield a rule's title with its number of findings, the advice, and all or the first findings."""
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


def _describe_finding(row: ReadRow, *, with_message: bool, with_number: bool) -> str:
    """Describe a finding's place and object, with its message if those of the rule differ."""
    place = where(row) if row.get("file") is not None else ""
    name = ", ".join(part for part in (place, name_of(row)) if part)
    number = f" (SQL Server's number {row['error_number']})" if with_number and row["error_number"] else ""
    if not with_message and name:
        return f"{name}{number}"
    return f"{name}: {row['message']}{number}" if name else f"{row['message']}{number}"


def _count_defaults(findings: Sequence[ReadRow]) -> Iterator[Block]:
    """Yield the numbers of findings that every instance has by default, by code and by instance."""
    if not findings:
        return
    codes = count_codes(Counter(row["code"] for row in findings))
    yield DocumentHeading(f"Not listed, because every instance has it by default: {codes}; --all lists them")
    counts: dict[str, Counter[str]] = {}
    for row in findings:
        counts.setdefault(row["instance_name"] or "", Counter())[row["code"]] += 1
    by_size = sorted(counts.items(), key=lambda item: (-item[1].total(), item[0]))
    for instance, of_instance in by_size[:_INSTANCES_SHOWN]:
        yield ListItem(f"{instance}: {count_codes(of_instance)}", indent=1)
    if len(by_size) > _INSTANCES_SHOWN:
        yield Paragraph(f"and {count(len(by_size) - _INSTANCES_SHOWN, 'more instance')}", indent=1)


# Findings as JUnit's XML, which build servers show as tests: one for each code.


_SUITE = "sbroute lint"


def as_junit(
    findings: Sequence[ReadRow],
    kinds: Mapping[str, LintRule],
    failing: Collection[str],
    not_judged: Sequence[str] = (),
) -> str:
    """Return a test for each code, which fails if it has findings of a severity in ``failing``.

    A failure lists them, a line each. Other findings are the test's output. Statements and rows that were
    ``not_judged`` are one more test, with an error. Characters that XML cannot hold or that move a cursor are
    replaced.
    """
    by_code = group_pairs((row["code"], row) for row in findings)
    failed = [code for code, rows in by_code.items() if rows[0]["severity"] in failing]
    errors = int(bool(not_judged))
    numbers = {"tests": len(kinds) + errors, "failures": len(failed), "errors": errors, "skipped": 0}
    counts = {name: str(number) for name, number in numbers.items()}
    suites = ElementTree.Element("testsuites", {"name": _SUITE, **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": _SUITE, **counts, "time": "0"})
    for code, kind in kinds.items():
        _add_test(suite, kind, by_code.get(code, []), is_failed=code in failed)
    if not_judged:
        test = ElementTree.SubElement(
            suite, "testcase", {"classname": "sbroute.lint", "name": NOT_JUDGED.capitalize(), "time": "0"}
        )
        lines = [printable(sentence) for sentence in not_judged]
        ElementTree.SubElement(test, "error", {"message": lines[0], "type": "error"}).text = "\n".join(lines)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode")


def _add_test(suite: ElementTree.Element, kind: LintRule, rows: Sequence[ReadRow], *, is_failed: bool) -> None:
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


def _line(row: ReadRow) -> str:
    return f"{where(row)}: {finding_line(row)}" if row.get("file") is not None else finding_line(row)


# Findings as SARIF 2.1.0, which code hosts show next to changed lines.


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_FINGERPRINT = "sbroute/v1"


def as_sarif(
    findings: Sequence[ReadRow],
    kinds: Mapping[str, LintRule],
    pages: Mapping[str, str],
    version: str,
    root: Path,
    not_judged: Sequence[str] = (),
    *,
    is_judged: bool = True,
) -> str:
    """Return one line of JSON: findings in their order, with ``file`` and ``line`` if known.

    ``kinds`` and ``pages`` (Markdown) are those of all codes. Paths of files in the folder ``root`` are relative
    to it, as code hosts expect. Equal findings have equal fingerprints in every run, even with other lines and
    times. ``not_judged`` are sentences on statements and rows. ``is_judged`` is False if nothing was judged.
    """
    order = {code: place for place, code in enumerate(kinds)}
    prints = fingerprints(findings)
    results = [
        {
            "ruleId": row["code"],
            "ruleIndex": order[row["code"]],
            "level": _LEVELS[Severity(row["severity"])],
            "message": {"text": finding_line(row)},
            "locations": [_location(row, root)],
            "partialFingerprints": {_FINGERPRINT: fingerprint},
        }
        for row, fingerprint in zip(findings, prints, strict=True)
    ]
    rules = [_rule(kind, pages[code]) for code, kind in kinds.items()]
    driver = {"name": "sbroute lint", "semanticVersion": version, "rules": rules}
    base = {_ROOT: {"uri": f"{root.absolute().as_uri().rstrip('/')}/"}}
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": base,
        "columnKind": "utf16CodeUnits",
        "invocations": [
            {
                "executionSuccessful": is_judged,
                "toolExecutionNotifications": [
                    {"level": "warning", "message": {"text": printable(f"not judged: {sentence}")}}
                    for sentence in not_judged
                ],
            }
        ],
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(kind: LintRule, page: str) -> JsonObject:
    shown = "\n".join(map(printable, page.splitlines()))
    return {
        "id": kind.code,
        "shortDescription": {"text": printable(kind.title)},
        "help": {"text": shown, "markdown": shown},
        "defaultConfiguration": {"level": _LEVELS[kind.severity]},
    }


def _location(row: ReadRow, root: Path) -> JsonObject:
    """Return the place of a finding in a file, and the object that it is about."""
    location: JsonObject = {}
    if row.get("file") is not None:
        place: JsonObject = {"artifactLocation": _artifact(row["file"], root)}
        if row.get("line") is not None:
            place["region"] = {"startLine": row["line"]}
        location["physicalLocation"] = place
    name = name_of(row)
    if name:
        location["logicalLocations"] = [{"fullyQualifiedName": name, "kind": "resource"}]
    return location


def _artifact(file: str, root: Path) -> dict[str, str]:
    path = root.absolute() / file
    try:
        inside = path.relative_to(root.absolute())
    except ValueError:
        return {"uri": path.as_uri()}
    return {"uri": quote(inside.as_posix().encode("utf-8", "surrogateescape")), "uriBaseId": _ROOT}


def fingerprints(findings: Iterable[ReadRow]) -> list[str]:
    """Return a digest of each finding's code and place, and of its message if it has no object.

    Messages may hold times and counts, and lines move. Findings with the same digest are numbered.
    """
    equal_findings: Counter[str] = Counter()
    hashes = []
    for row in findings:
        about = [row[name] for name in ("code", "instance_name", "database_name", "object")]
        if row["object"] is None:
            about.append(row["message"])
        text = json.dumps(about)
        equal_findings[text] += 1
        hashes.append(hashlib.sha256(f"{text}{equal_findings[text]}".encode()).hexdigest()[:32])
    return hashes
