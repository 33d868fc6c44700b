"""How findings are printed: as a table, as JSON, and as code hosts and build servers read them."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routing.commands.common import Console, moment
from routing.errors import EXIT_DONE, EXIT_FOUND
from routing.render.wording import count, printable

if TYPE_CHECKING:
    from routing.analysis.lint.own import Rule

SEVERITIES = ("error", "warning", "info")
"""The worst first."""
_SHOWN = 500
_INSTANCES_SHOWN = 10
_COLUMNS = ("code", "severity", "instance_name", "database_name", "object", "message", "error_number")
Found = Sequence[Mapping[str, Any]]


def at_least(severity: str) -> tuple[str, ...]:
    """Return the severities that are as bad, or worse."""
    return SEVERITIES[: SEVERITIES.index(severity) + 1]


def report(options: argparse.Namespace, found: Found, rules: Sequence[Rule], *, config: str | None = None) -> str:
    """SARIF, or JUnit's XML in which findings fail as ``--fail-on`` says, errors and warnings if it is not given.

    ``config`` is the file that names the tables, which stands for them where a file is asked for.
    """
    from routing.analysis.lint.reporting import kinds_with

    kinds = kinds_with(rules)
    if options.format == "junit":
        from routing.analysis.lint.junit import as_junit

        return as_junit(found, kinds, at_least(options.fail_on or "warning"))
    from routing.analysis.lint.pages import page
    from routing.analysis.lint.sarif import as_sarif
    from routing.storage.releases import release

    pages = {code: page(code, rules) for code in kinds}
    placed = found if config is None else [{"file": config, **row} for row in found]
    return as_sarif(placed, kinds, pages, release(), Path.cwd())


def print_findings(
    found: Found, suppressed: int, console: Console, rules: Sequence[Rule] = (), *, with_defaults: bool
) -> None:
    """Print the findings, what to do, and how many there are; what every instance has is counted."""
    from routing.analysis.lint.reporting import kinds_with

    kinds = kinds_with(rules)

    def is_listed(code: str) -> bool:
        return with_defaults or code not in kinds or not kinds[code].is_default

    _list([row for row in found if is_listed(row["code"])], console)
    defaults = Counter(row["code"] for row in found if not is_listed(row["code"]))
    if defaults:
        kinds_left = count_codes(defaults)
        console.result(f"not listed, since every instance has it by default: {kinds_left}; --all lists them")
        for line in _count_by_instance([row for row in found if not is_listed(row["code"])]):
            console.result(f"  {line}")
        console.result("")
    counts = Counter(row["severity"] for row in found)
    error, warning = (f"{counts[name]:,} {name}{'' if counts[name] == 1 else 's'}" for name in SEVERITIES[:2])
    more = "; sbroute lint --explain CODE tells more" if found else ""
    console.result(f"{error}, {warning}, {counts['info']:,} info, {suppressed:,} suppressed{more}")


def _count_by_instance(found: Found) -> Iterator[str]:
    """Yield how many findings of each code an instance has, the instances with most of them first."""
    counts: dict[str, Counter[str]] = {}
    for row in found:
        counts.setdefault(row["instance_name"] or "", Counter())[row["code"]] += 1
    by_size = sorted(counts.items(), key=lambda item: (-item[1].total(), item[0]))
    for instance, of_instance in by_size[:_INSTANCES_SHOWN]:
        yield printable(f"{instance}: {count_codes(of_instance)}")
    if len(by_size) > _INSTANCES_SHOWN:
        yield f"and {count(len(by_size) - _INSTANCES_SHOWN, 'more instance')}"


def count_codes(counts: Mapping[str, int]) -> str:
    """Return the codes, each with how many findings it has."""
    return ", ".join(f"{code} ({count:,})" for code, count in sorted(counts.items()))


def _list(found: Found, console: Console) -> None:
    """Print the findings one by one, and what to do about each kind."""
    from routing import show
    from routing.analysis.lint.telling import where

    if not found:
        return
    shown = found[:_SHOWN]
    in_files = any("file" in row for row in shown)
    lines = [
        (
            *([where(row) if row["file"] is not None else None] if in_files else []),
            *(str(row[name]) if name == "error_number" and row[name] else row[name] for name in _COLUMNS),
        )
        for row in shown
    ]
    columns = (*(["where"] if in_files else []), *_COLUMNS)
    console.result(show.table("Findings", columns, lines, ("error_number",)))
    if len(found) > _SHOWN:
        console.result(f"and {len(found) - _SHOWN:,} more; --format json prints all of them")
    console.result("")
    advice = sorted({(row["code"], row["advice"]) for row in found})
    console.result(show.table("What to do", ("code", "advice"), advice))
    console.result("")


def now_of(options: argparse.Namespace) -> datetime:
    """Return the time of judgement, the clock's where none is given. Raises ContractError."""
    return datetime.now(timezone.utc) if options.now is None else moment(options.now, "--now")


def status_of(found: Found, options: argparse.Namespace) -> int:
    """Return the exit status for findings, by ``--fail-on``."""
    failing = at_least(options.fail_on) if options.fail_on else ()
    return EXIT_FOUND if any(row["severity"] in failing for row in found) else EXIT_DONE
