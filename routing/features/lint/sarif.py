"""Findings as SARIF 2.1.0, which code hosts show beside the lines of a change."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from routing.features.lint.catalogue import LintRule, Severity
from routing.features.lint.finding_places import finding_line, name_of
from routing.render.wording import printable

Row = Mapping[str, Any]
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_FINGERPRINT = "sbroute/v1"


def as_sarif(
    findings: Sequence[Row], kinds: Mapping[str, LintRule], pages: Mapping[str, str], version: str, root: Path
) -> str:
    """Return one line of JSON: rows of findings in their order, with ``file`` and ``line`` where there are any.

    ``kinds`` and ``pages`` (Markdown) are those of all codes. Files in the folder ``root`` are named from there,
    as a code host knows them. Equal findings have equal fingerprints in every run, whatever their lines and times.
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
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(kind: LintRule, page: str) -> dict[str, Any]:
    shown = "\n".join(map(printable, page.splitlines()))
    return {
        "id": kind.code,
        "shortDescription": {"text": printable(kind.title)},
        "help": {"text": shown, "markdown": shown},
        "defaultConfiguration": {"level": _LEVELS[kind.severity]},
    }


def _location(row: Row, root: Path) -> dict[str, Any]:
    """Return the place of a finding in a file, and the object that it is about."""
    location: dict[str, Any] = {}
    if row.get("file") is not None:
        place: dict[str, Any] = {"artifactLocation": _artifact(row["file"], root)}
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


def fingerprints(findings: Iterable[Row]) -> list[str]:
    """Return a digest of each finding's code and place, and of its message where it has no object.

    Messages may hold times and counts, and lines move. Those that have all in common are numbered.
    """
    seen: Counter[str] = Counter()
    hashes = []
    for row in findings:
        about = [row[name] for name in ("code", "instance_name", "database_name", "object")]
        if row["object"] is None:
            about.append(row["message"])
        text = json.dumps(about)
        seen[text] += 1
        hashes.append(hashlib.sha256(f"{text}{seen[text]}".encode()).hexdigest()[:32])
    return hashes
