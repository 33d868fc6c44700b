"""``sbroute lint``: faults and hazards of the configuration."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from routing import config
from routing.commands.common import Console, Subparsers, load, moment, opener
from routing.errors import EXIT_DONE, EXIT_FOUND, quote
from routing.storage.arrow import leave_pandas_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.analysis.lint.linting import Lint
    from routing.runs.pipeline import Resolution
    from routing.storage.columns import Table

_SEVERITIES = ("error", "warning", "info")
_SHOWN = 500
_COLUMNS = ("code", "severity", "instance_name", "database_name", "object", "message", "error_number")
Found = Sequence[Mapping[str, Any]]


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "lint",
        parents=[common],
        help="faults and hazards of the configuration",
        description="Find faults and hazards in routes, databases, services, instances and dialogs; the tables"
        " may hold rows that resolve refuses.",
    )
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", metavar="FILE", help="the configuration (YAML)")
    what.add_argument("--explain", metavar="CODE", help="print the page of a finding, such as SBR001, and end")
    command.add_argument(
        "--now", metavar="TIME", help="judge routes as of this time (ISO 8601; default: the clock)"
    )
    command.add_argument(
        "--messages",
        action="store_true",
        help="resolve tables.messages as well: routes that no message used, dialogs whose pick changed, dialogs at"
        " risk",
    )
    command.add_argument(
        "--all",
        action="store_true",
        help="list what every instance has by default one by one, instead of counting it",
    )
    command.add_argument(
        "--fail-under",
        metavar="PERCENT",
        type=_percent,
        help="exit code 1 where messages used fewer of the routes; implies --messages",
    )
    command.add_argument(
        "--fail-on",
        choices=_SEVERITIES,
        help="exit code 1 where there is a finding as bad as this, or worse",
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Print the findings, or the page of one code."""
    if options.explain is not None:
        from routing.analysis.lint.pages import page

        console.result(page(options.explain).rstrip("\n"))
        return EXIT_DONE
    settings, now = load(options), _now(options)
    from routing.analysis.lint.options import settings as lint_settings

    asked = lint_settings(settings.lint, settings.file)
    leave_pandas_out()
    from routing.analysis.lint.linting import lint
    from routing.analysis.lint.reading import READ

    opening = opener(settings, options, console)
    tables = opening.open({key: settings.tables[key] for key in READ if key in settings.tables})
    with_messages = options.messages or options.fail_under is not None
    resolution = _resolution(opening.spark, settings, tables) if with_messages else None
    console.progress("linting")
    try:
        done = lint(
            tables,
            now=now,
            expiring_within_days=asked.expiring_within_days,
            suppress=asked.suppress,
            resolved=None if resolution is None else resolution.resolved_routes,
        )
    finally:
        if resolution is not None:
            resolution.unpersist()
    return report(done, options, console)


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{quote(text)} is not a percentage from 0 to 100")
    return value


def _now(options: argparse.Namespace) -> datetime:
    return datetime.now(timezone.utc) if options.now is None else moment(options.now, "--now")


def _resolution(spark: SparkSession, settings: config.Config, opened: Mapping[str, Table]) -> Resolution:
    """The messages resolved, by the tables that are open; what grows with the traffic is read by Spark."""
    from routing.runs import pipeline
    from routing.storage.tables import snapshots

    traffic = {key: settings.tables[key] for key in ("messages", "dialogs") if key in settings.tables}
    frames = {key: snapshot.read(spark) for key, snapshot in snapshots(spark, traffic).items()}
    return pipeline.resolve(
        spark,
        {**opened, **frames},
        as_of=settings.resolve.as_of,
        dialog_hash=settings.resolve.dialog_hash,
        broadcast_limit=settings.resolve.broadcast_limit,
    )


def report(done: Lint, options: argparse.Namespace, console: Console) -> int:
    """Print what was found; the exit status."""
    found, suppressed = [dict(row) for row in done.findings], len(done.suppressed)
    routes = used = None
    if done.coverage is not None:
        routes, used = (sum(row[name] for row in done.coverage) for name in ("routes", "used"))
    if options.format == "json":
        result: dict[str, Any] = {"findings": found, "suppressed": suppressed}
        if routes is not None:
            result["coverage"] = {"routes": routes, "used": used}
        console.result(json.dumps(result))
    else:
        _print(found, suppressed, console, with_defaults=options.all)
        if routes is not None:
            console.result(f"messages used {used:,} of {routes:,} routes ({_share(used, routes):.1f} %)")
    bad = _SEVERITIES[: _SEVERITIES.index(options.fail_on) + 1] if options.fail_on else ()
    fails = any(row["severity"] in bad for row in found)
    if options.fail_under is not None:
        fails = fails or _share(used, routes) < options.fail_under
    return EXIT_FOUND if fails else EXIT_DONE


def _share(used: int | None, routes: int | None) -> float:
    """The percentage of routes that are used; of no routes all are."""
    return 100 * (used or 0) / routes if routes else 100.0


def _print(found: Found, suppressed: int, console: Console, *, with_defaults: bool) -> None:
    from routing.analysis.lint.catalogue import BY_CODE

    def is_listed(code: str) -> bool:
        return with_defaults or code not in BY_CODE or not BY_CODE[code].is_default

    _list([row for row in found if is_listed(row["code"])], console)
    defaults = Counter(row["code"] for row in found if not is_listed(row["code"]))
    if defaults:
        kinds = ", ".join(f"{code} ({count:,})" for code, count in sorted(defaults.items()))
        console.result(f"not listed, since every instance has it by default: {kinds}; --all lists them")
        console.result("")
    counts = Counter(row["severity"] for row in found)
    error, warning = (f"{counts[name]:,} {name}{'' if counts[name] == 1 else 's'}" for name in _SEVERITIES[:2])
    more = "; sbroute lint --explain CODE tells more" if found else ""
    console.result(f"{error}, {warning}, {counts['info']:,} info, {suppressed:,} suppressed{more}")


def _list(found: Found, console: Console) -> None:
    """The findings one by one, and what to do about each kind."""
    from routing import show

    if not found:
        return
    lines = [
        tuple(str(row[name]) if name == "error_number" and row[name] else row[name] for name in _COLUMNS)
        for row in found[:_SHOWN]
    ]
    console.result(show.table("Findings", _COLUMNS, lines, ("error_number",)))
    if len(found) > _SHOWN:
        console.result(f"and {len(found) - _SHOWN:,} more; --format json prints all of them")
    console.result("")
    advice = sorted({(row["code"], row["advice"]) for row in found})
    console.result(show.table("What to do", ("code", "advice"), advice))
    console.result("")
