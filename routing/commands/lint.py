"""``sbroute lint``: find faults and hazards of the configuration, or of exports and scripts in files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from importlib.util import find_spec
from typing import TYPE_CHECKING

from routing import config
from routing.commands import command_context as context
from routing.commands import shared_arguments
from routing.commands.shared_arguments import SEVERITIES, report, status_of
from routing.config import ConfigError
from routing.document import Block, DocumentHeading, ListItem, Paragraph
from routing.errors import EXIT_DONE, EXIT_FOUND, ContractError, EnvironmentFault, quote
from routing.process import no_search_for_cycles
from routing.render.wording import count_files
from routing.schemas import TRAFFIC
from routing.tables.arrow_rows import leave_pandas_out
from routing.terms import JsonObject

if TYPE_CHECKING:
    from routing.delta.opening import TableOpener
    from routing.lint.custom_rules import CustomRule
    from routing.lint.file_linting import FilesLinted
    from routing.lint.lint_settings import LintSettings
    from routing.lint.linting import LintResult
    from routing.tables.table_columns import Table

# ``sbroute lint PATH…``: exports and scripts in files.


def run_on_files(options: argparse.Namespace, console: context.Console) -> int:
    """Lint exports and scripts, and print the findings. Raises EnvironmentFault without the T-SQL parser."""
    if find_spec("sqlglot") is None:
        raise EnvironmentFault.no_package("sqlglot", "check")
    now, section = context.moment_or_now(options.now, "--now"), _section(options)
    from routing.cases.exported_files import FileOptions
    from routing.lint.file_linting import lint_files

    times = shared_arguments.times(options)
    file_options = FileOptions(
        shared_arguments.stand_ins(options, times, console),
        times,
        context.variables(options.variables),
        shared_arguments.addresses(options),
        clock=datetime.now(timezone.utc),
        environment=options.environment,
    )
    with no_search_for_cycles():
        done = lint_files(options.paths, file_options, now=now, settings=section)
    return tell_files(done, options, console, section.rules)


def _section(options: argparse.Namespace) -> LintSettings:
    """Return the section lint of a configuration, which need have no other where files are linted.

    Raises ConfigError.
    """
    from routing.lint.lint_settings import settings as lint_settings

    file = options.config
    if file is not None and config.is_uri(file):
        raise ConfigError(f"--config {quote(file)} needs Spark, which lint PATHs does not start", "copy it here")
    return lint_settings(config.load_section(file, "lint", options.overrides), file or "--set", options.rules)


def tell_files(
    done: FilesLinted, options: argparse.Namespace, console: context.Console, rules: tuple[CustomRule, ...] = ()
) -> int:
    """Print the findings in files and the limits of the judgement. Return the exit code."""
    from routing.views.check.check_json import gap_object

    findings = list(done.findings)
    files = count_files(done.files_read, done.files_skipped, done.rows_refused)
    if options.format == "json":
        unread = frozenset(done.unread)
        result = {
            "findings": findings,
            "suppressed": len(done.suppressed),
            "not_judged": dict(sorted(done.not_judged.items())),
            "not_known": [gap_object(gap) for gap in done.not_known],
            **{name: list(vars(done)[name]) for name in ("rejected", "not_taken", "unread", "left_out")},
            "notes": [note for note in done.notes if note not in unread],
        }
        console.result(json.dumps(result))
        console.note(files)
        return EXIT_FOUND if options.fail_on and not done.is_judged else status_of(findings, options)
    if options.format == "table":
        from routing.views.lint.lint_reports import describe_findings

        remarks = _say_not_judged(done)
        console.document(
            describe_findings(findings, len(done.suppressed), rules, lists_all=options.all, remarks=remarks)
        )
    else:
        not_judged = [*done.rejected, *done.not_taken, *done.unread]
        console.result(report(options, findings, rules, not_judged=not_judged, is_judged=done.is_judged))
    not_taken = [f"not taken, {sentence}" for sentence in done.not_taken]
    left_out = [f"left out, {sentence}" for sentence in done.left_out]
    context.tell_sentences(console, done.rejected, [*not_taken, *left_out, *done.notes])
    console.note(files)
    if options.fail_on and not done.is_judged:
        console.note("no statement and no row could be judged, so --fail-on fails", "warning")
        return EXIT_FOUND
    return status_of(findings, options)


def _say_not_judged(done: FilesLinted) -> list[Block]:
    """Write the number of findings that depend on missing exports, and list these."""
    from routing.cases.known_estate import gap_sentence
    from routing.render.phrases import bounded
    from routing.views.lint.lint_reports import count_codes

    if not done.not_judged:
        return []
    sentences = bounded(map(gap_sentence, done.not_known), len(done.not_known))
    return [
        DocumentHeading(f"Not judged, because exports are missing: {count_codes(done.not_judged)}"),
        *(ListItem(sentence, indent=1) for sentence in sentences),
    ]


FORMATS = ("table", "json", "sarif", "junit")
"""The values of ``--format``."""
_OF_FILES = (
    "instance",
    "database",
    "exported_at",
    "date_format",
    "time_zone",
    "encoding",
    "address",
    "variables",
    "environment",
)
_OF_TABLES = ("messages", "fail_under")


def add(commands: context.Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "lint",
        parents=[common],
        help="find faults in the routes before they cause trouble",
        description="Find faults and hazards in routes, databases, services, instances and dialogs: in the tables"
        " of a configuration, which may hold rows that resolve refuses, or in exports and scripts without tables.",
        example="sbroute lint conf/examples/scripts conf/examples/exports --fail-on error",
    )
    command.add_argument("paths", metavar="PATH", nargs="*", help="exports and scripts, or folders of them")
    choices = command.add_mutually_exclusive_group()
    choices.add_argument(
        "--config", metavar="FILE", help="the configuration (YAML); with PATHs only its section lint is used"
    )
    choices.add_argument("--explain", metavar="CODE", help="print the page of a finding, such as SBR001, and exit")
    command.add_argument(
        "--now", metavar="TIME", help="judge routes as of this time (ISO 8601; default: the clock)"
    )
    command.add_argument(
        "--rules",
        metavar="FILE",
        action="append",
        default=[],
        help="a Python file of your own rules, which is run (repeatable)",
    )
    _add_of_tables(command)
    command.add_argument(
        "--all", action="store_true", help="list every finding of each rule, and the defaults of every instance"
    )
    command.add_argument(
        "--fail-on", choices=SEVERITIES, help="exit code 1 if there is a finding of this severity or worse"
    )
    of_files = command.add_argument_group("facts missing in PATHs")
    shared_arguments.add_options(of_files, has_defaults=True)
    context.add_variables(of_files)


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
        help="exit code 1 if messages used a smaller share of the routes; implies --messages",
    )


def run(options: argparse.Namespace, console: context.Console) -> int:
    """Print the findings, or the page of one code."""
    if options.explain is not None:
        from routing.lint.lint_settings import load_rules, page

        console.result(page(options.explain, load_rules(options.rules)).rstrip("\n"))
        return EXIT_DONE
    if options.paths:
        _refuse(options, _OF_TABLES, "needs --config and no PATH")
        return run_on_files(options, console)
    _refuse(options, _OF_FILES, "goes with PATHs")
    if options.config is None:
        raise ContractError("lint needs --config FILE, PATHs or --explain CODE", "sbroute lint --help")
    return _run_on_tables(options, console)


def _refuse(options: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    """Refuse options that would be left unread."""
    for option in context.given_options(options, names):
        raise ContractError(f"{option} {why}", "leave it out")


def _run_on_tables(options: argparse.Namespace, console: context.Console) -> int:
    settings, now = context.load(options), context.moment_or_now(options.now, "--now")
    from routing.lint.lint_settings import settings as lint_settings

    section = lint_settings(settings.lint, settings.file, options.rules)
    leave_pandas_out()
    from routing.delta.counted_runs import leave_out_missing
    from routing.lint.lint_estate import READ
    from routing.lint.linting import lint

    opening = context.opener(settings, options, console)
    settings = leave_out_missing(opening, settings)
    with_messages = options.messages or options.fail_under is not None
    # Read before the configuration, which is then as new as all messages.
    traffic = _open_traffic(opening, settings) if with_messages else {}
    queues = opening.find_all({key: place for key, place in settings.import_tables.items() if key == "queues"})
    tables = {**queues, **opening.open({key: settings.tables[key] for key in READ if key in settings.tables})}
    with console.during("linting"), ExitStack() as resources:
        resolved = None
        if traffic:
            resolved = resources.enter_context(_resolved(opening, settings, traffic, {**tables, **traffic}))
        done = lint(
            tables,
            now=now,
            expiring_within_days=section.expiring_within_days,
            suppress=section.suppress,
            resolved=resolved,
            rules=section.rules,
        )
    notes = context.tell_unfinished(opening, console, settings)
    return tell_tables(done, options, console, section.rules, notes)


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{quote(text)} is not a percentage from 0 to 100")
    return value


def _open_traffic(opening: TableOpener, settings: config.Config) -> dict[str, Table]:
    """Open messages and dialogs for one engine. Raises InputError if one is missing."""
    locations = {key: settings.tables[key] for key in TRAFFIC if key in settings.tables}
    opened = {key: opening.require(f"tables.{key}", location) for key, location in locations.items()}
    return {
        key: traffic_rows.rows for key, traffic_rows in opening.read_alike(opened, locations, "resolved").items()
    }


@contextmanager
def _resolved(
    opening: TableOpener, settings: config.Config, traffic: Mapping[str, Table], tables: Mapping[str, Table]
) -> Iterator[Table]:
    """Yield the messages resolved, for the block, by the engine that reads them. Raises InputError."""
    from routing.tables.table_columns import by_engine

    yield from by_engine(
        traffic,
        spark=lambda: _resolve_by_spark(opening, settings, tables),
        arrow=lambda: _resolve_by_arrow(settings, tables),
    )


def _resolve_by_spark(
    opening: TableOpener, settings: config.Config, tables: Mapping[str, Table]
) -> Iterator[Table]:
    from routing.runs import pipeline

    resolution = pipeline.resolve(
        opening.spark,
        tables,
        as_of=settings.resolve.as_of,
        dialog_hash=settings.resolve.dialog_hash,
        broadcast_limit=settings.resolve.broadcast_limit,
    )
    try:
        yield resolution.resolved_routes
    finally:
        resolution.unpersist()


def _resolve_by_arrow(settings: config.Config, tables: Mapping[str, Table]) -> Iterator[Table]:
    from routing.runs.local_runs import resolved_in_files

    with resolved_in_files(tables, settings.resolve.as_of) as resolved:
        yield resolved


def tell_tables(
    done: LintResult,
    options: argparse.Namespace,
    console: context.Console,
    rules: tuple[CustomRule, ...] = (),
    notes: Sequence[str] = (),
) -> int:
    """Print the findings in tables, with their notes in JSON. Return the exit code."""
    findings, suppressed = [dict(row) for row in done.findings], len(done.suppressed)
    routes = used = None
    if done.coverage is not None:
        routes, used = (sum(row[name] for row in done.coverage) for name in ("routes", "used"))
    if options.format == "json":
        result: JsonObject = {"findings": findings, "suppressed": suppressed}
        if routes is not None:
            result["coverage"] = {"routes": routes, "used": used}
        console.result(context.with_notes(json.dumps(result), notes))
    elif options.format == "table":
        from routing.views.lint.lint_reports import describe_findings

        document = [*describe_findings(findings, suppressed, rules, lists_all=options.all)]
        if routes is not None:
            share = f"{_share(used, routes):.1f} %"
            document.append(Paragraph(f"messages used {used:,} of {routes:,} routes ({share})"))
        console.document(document)
    else:
        file = None if config.is_uri(options.config) else options.config
        console.result(report(options, findings, rules, config=file))
    status = status_of(findings, options)
    if options.fail_under is not None and _share(used, routes) < options.fail_under:
        return EXIT_FOUND
    return status


def _share(used: int | None, routes: int | None) -> float:
    """Return the percentage of used routes, or 100 without routes."""
    return 100 * (used or 0) / routes if routes else 100.0
