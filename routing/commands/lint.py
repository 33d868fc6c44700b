"""``sbroute lint``: faults and hazards of the configuration, or of exports and scripts as they lie in files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from routing import config
from routing.commands import exports
from routing.commands.common import (
    Console,
    Subparsers,
    add_variables,
    load,
    moment,
    opener,
    tell_sentences,
    variables,
)
from routing.commands.findings import SEVERITIES, at_least, count_codes, print_findings, report
from routing.errors import EXIT_DONE, EXIT_FOUND, ConfigError, ContractError, EnvironmentFault, quote
from routing.storage.arrow import leave_pandas_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.analysis.lint.linting import Lint
    from routing.analysis.lint.options import LintSettings
    from routing.analysis.lint.own import Rule
    from routing.analysis.repository.linting import FilesLinted
    from routing.runs.pipeline import Resolution
    from routing.storage.columns import Table

FORMATS = ("table", "json", "sarif", "junit")
"""What ``--format`` takes here."""
_OF_FILES = ("instance", "database", "exported_at", "date_format", "time_zone", "address", "variables")
_OF_TABLES = ("messages", "fail_under")


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "lint",
        parents=[common],
        help="faults and hazards of the configuration, or of exports and scripts",
        description="Find faults and hazards in routes, databases, services, instances and dialogs: in the tables"
        " of a configuration, which may hold rows that resolve refuses, or in exports and scripts without tables.",
    )
    command.add_argument("paths", metavar="PATH", nargs="*", help="exports and scripts, or folders of them")
    what = command.add_mutually_exclusive_group()
    what.add_argument(
        "--config", metavar="FILE", help="the configuration (YAML); with PATHs its section lint alone counts"
    )
    what.add_argument("--explain", metavar="CODE", help="print the page of a finding, such as SBR001, and end")
    command.add_argument(
        "--now", metavar="TIME", help="judge routes as of this time (ISO 8601; default: the clock)"
    )
    command.add_argument(
        "--rules",
        metavar="FILE",
        action="append",
        default=[],
        help="a Python file of rules of one's own, which is run (repeatable)",
    )
    _add_of_tables(command)
    command.add_argument(
        "--all",
        action="store_true",
        help="list what every instance has by default one by one, instead of counting it",
    )
    command.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        help="exit code 1 where there is a finding as bad as this, or worse",
    )
    of_files = command.add_argument_group("options of PATHs")
    exports.add_options(of_files)
    add_variables(of_files)


def _add_of_tables(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--messages",
        action="store_true",
        help="resolve tables.messages as well: routes that no message used, dialogs whose pick changed, dialogs at"
        " risk",
    )
    command.add_argument(
        "--fail-under",
        metavar="PERCENT",
        type=_percent,
        help="exit code 1 where messages used fewer of the routes; implies --messages",
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Print the findings, or the page of one code."""
    if options.explain is not None:
        from routing.analysis.lint.pages import page
        from routing.analysis.lint.rule_files import load_rules

        console.result(page(options.explain, load_rules(options.rules)).rstrip("\n"))
        return EXIT_DONE
    if options.paths:
        _refuse(options, _OF_TABLES, "goes with --config and no PATH")
        return _run_on_files(options, console)
    _refuse(options, _OF_FILES, "goes with PATHs")
    if options.config is None:
        raise ContractError("lint needs --config FILE, PATHs or --explain CODE", "sbroute lint --help")
    return _run_on_tables(options, console)


def _refuse(options: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    """Refuse options that would be left unread."""
    for name in names:
        given = vars(options)[name]
        if not (given is None or given is False or given == []):
            option = "-v" if name == "variables" else f"--{name.replace('_', '-')}"
            raise ContractError(f"{option} {why}", "leave it out")


def _run_on_tables(options: argparse.Namespace, console: Console) -> int:
    settings, now = load(options), _now(options)
    from routing.analysis.lint.options import settings as lint_settings

    asked = lint_settings(settings.lint, settings.file, options.rules)
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
            rules=asked.rules,
        )
    finally:
        if resolution is not None:
            resolution.unpersist()
    return tell_tables(done, options, console, asked.rules)


def _run_on_files(options: argparse.Namespace, console: Console) -> int:
    if find_spec("sqlglot") is None:
        raise EnvironmentFault.no_package("sqlglot", "import")
    now, asked = _now(options), _section(options)
    from routing.analysis.check.sources import Given
    from routing.analysis.repository.linting import lint_files

    times = exports.times(options)
    given = Given(
        exports.stand_ins(options, times, console),
        times,
        variables(options.variables),
        exports.addresses(options),
    )
    done = lint_files(options.paths, given, now=now, settings=asked)
    return tell_files(done, options, console, asked.rules)


def _section(options: argparse.Namespace) -> LintSettings:
    """The section lint of a configuration, which need have no other where files are linted. Raises ConfigError."""
    from routing.analysis.lint.options import settings as lint_settings

    file = options.config
    if file is not None and config.is_uri(file):
        raise ConfigError(f"--config {quote(file)} is read by Spark, which PATHs do without", "copy it here")
    return lint_settings(config.load_section(file, "lint", options.overrides), file or "--set", options.rules)


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


def tell_tables(done: Lint, options: argparse.Namespace, console: Console, rules: tuple[Rule, ...] = ()) -> int:
    """Print what was found in tables; the exit status."""
    found, suppressed = [dict(row) for row in done.findings], len(done.suppressed)
    routes = used = None
    if done.coverage is not None:
        routes, used = (sum(row[name] for row in done.coverage) for name in ("routes", "used"))
    if options.format == "json":
        result: dict[str, Any] = {"findings": found, "suppressed": suppressed}
        if routes is not None:
            result["coverage"] = {"routes": routes, "used": used}
        console.result(json.dumps(result))
    elif options.format == "table":
        print_findings(found, suppressed, console, rules, with_defaults=options.all)
        if routes is not None:
            console.result(f"messages used {used:,} of {routes:,} routes ({_share(used, routes):.1f} %)")
    else:
        file = None if config.is_uri(options.config) else options.config
        failing = at_least(options.fail_on or "warning")
        console.result(report(options.format, found, rules, failing=failing, config=file))
    status = _status(found, options)
    if options.fail_under is not None and _share(used, routes) < options.fail_under:
        return EXIT_FOUND
    return status


def tell_files(
    done: FilesLinted, options: argparse.Namespace, console: Console, rules: tuple[Rule, ...] = ()
) -> int:
    """Print what was found in files, and what was not judged; the exit status."""
    from routing.analysis.check.json_form import gap_object
    from routing.analysis.check.phrases import bounded, gap_sentence

    found = list(done.findings)
    if options.format == "json":
        result = {
            "findings": found,
            "suppressed": len(done.suppressed),
            "not_judged": dict(sorted(done.not_judged.items())),
            "not_known": [gap_object(gap) for gap in done.not_known],
            **{name: list(vars(done)[name]) for name in ("rejected", "not_taken", "left_out", "notes")},
        }
        console.result(json.dumps(result))
        return _status(found, options)
    if options.format == "table":
        print_findings(found, len(done.suppressed), console, rules, with_defaults=options.all)
        if done.not_judged:
            codes = count_codes(done.not_judged)
            console.result(f"not judged, since they rest on what was not read: {codes}")
            for sentence in bounded(map(gap_sentence, done.not_known), len(done.not_known)):
                console.result(f"  {sentence}")
    else:
        failing = at_least(options.fail_on or "warning")
        console.result(report(options.format, found, rules, failing=failing))
    not_taken = [f"not taken, {sentence}" for sentence in done.not_taken]
    left_out = [f"left out, {sentence}" for sentence in done.left_out]
    tell_sentences(console, done.rejected, [*not_taken, *left_out, *done.notes])
    return _status(found, options)


def _status(found: list[Mapping[str, Any]] | list[dict[str, Any]], options: argparse.Namespace) -> int:
    failing = at_least(options.fail_on) if options.fail_on else ()
    return EXIT_FOUND if any(row["severity"] in failing for row in found) else EXIT_DONE


def _share(used: int | None, routes: int | None) -> float:
    """The percentage of routes that are used; of no routes all are."""
    return 100 * (used or 0) / routes if routes else 100.0
