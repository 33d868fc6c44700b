"""``sbroute check``: read a folder of exports and scripts, and report the problems of waiting messages."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.util import find_spec
from typing import TYPE_CHECKING

from routing.commands import command_context as context
from routing.commands import shared_arguments
from routing.commands.server_options import add_servers, read_access, read_servers, tell_servers
from routing.errors import EXIT_DONE, EXIT_FAILED, EXIT_FOUND, EnvironmentFault, InputError, quote
from routing.process import no_search_for_cycles
from routing.render.wording import count_files

if TYPE_CHECKING:
    from routing.importing.catalog import StandIns, TimeFormats
    from routing.importing.servers.server_exports import ServersExport
    from routing.views.check.checking import Check

FORMATS = ("table", "json", context.STATEMENTS_ALONE)
_FAIL_ON = ("delayed", "dropped", "error", "warning", "not-known")


def add(commands: context.Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "check",
        parents=[common],
        help="why messages wait in a queue, from exports only: no tables, no Java",
        description="Show why messages wait in a transmission queue and what to do, from exports of catalog"
        " views and T-SQL scripts. It needs no configuration, no tables and no Java. docs/how-to/check.md"
        " shows how.",
        example="sbroute check conf/examples/exports conf/examples/scripts/hub.sql",
    )
    command.add_argument("paths", metavar="PATH", nargs="*", help="exports and scripts, or folders of them")
    add_servers(command, required=False)
    of_files = command.add_argument_group("facts missing in the files")
    shared_arguments.add_options(of_files, has_defaults=True)
    context.add_variables(of_files)
    group = command.add_argument_group("what to ask")
    group.add_argument(
        "--at", metavar="TIME", help="decide as of this time (default: each instance's newest export)"
    )
    choices = group.add_mutually_exclusive_group()
    choices.add_argument(
        "--message", metavar="ID", help="explain one message: its id, or its conversation's id or handle"
    )
    choices.add_argument(
        "--then",
        metavar="FILE",
        action="append",
        default=[],
        help="decide again as if this script had run, and show what changes (repeatable)",
    )
    printed = command.add_argument_group("what to print")
    printed.add_argument(
        "--all", action="store_true", help="also list messages that are on their way (--verbose shows full lists)"
    )
    printed.add_argument(
        "--html", metavar="FILE", help="also write an HTML page with charts and tables of the messages"
    )
    printed.add_argument(
        "--fail-on",
        metavar="WHAT",
        action="append",
        default=[],
        choices=_FAIL_ON,
        help="exit code 1 if there is any: delayed, dropped, error, warning, not-known (repeatable)",
    )


def run(options: argparse.Namespace, console: context.Console) -> int:
    """Read, decide and print."""
    if find_spec("sqlglot") is None:
        raise EnvironmentFault.no_package("sqlglot", "check")
    if options.html is not None:
        from routing.views.page.page_file import check_packages, check_place

        check_packages()
        check_place(options.html)
    if not options.paths and not options.servers:
        raise InputError("nothing to check is named", "give PATHs of exports, or --server NAME")
    times = shared_arguments.times(options)
    stand_ins = shared_arguments.stand_ins(options, times, console)
    at = context.moment_or_none(options.at, "--at")
    if not options.servers:
        return _check(options, console, options.paths, stand_ins, times, at, None)
    access = read_access(options)
    from routing.importing.servers.server_exports import scratch_folder

    with scratch_folder() as folder:
        read = read_servers(options, access, folder, console)
        if not options.paths:
            read.check_any()
        tell_servers(read, console)
        return _check(options, console, [*options.paths, folder], stand_ins, times, at, read)


@no_search_for_cycles()
def _check(
    options: argparse.Namespace,
    console: context.Console,
    paths: Sequence[str],
    stand_ins: StandIns,
    times: TimeFormats,
    at: datetime | None,
    read: ServersExport | None,
) -> int:
    from routing.cases.exported_files import no_queue
    from routing.views.check.checking import check

    with console.during("reading the files", final_line="checked"):
        done = check(
            paths,
            instance=stand_ins.instance_name,
            database=stand_ins.database_name,
            exported_at=stand_ins.exported_at,
            times=times,
            variables=context.variables(options.variables),
            addresses=shared_arguments.addresses(options),
            at=at,
            then=options.then,
            notes=[] if read is None else [*read.unread, *read.notes],
            clock=datetime.now(timezone.utc),
            environment=options.environment,
            on_progress=console.show_progress,
        )
        console.show_progress("describing the causes")
        _print(done, options, console)
    log = done.evidence.log
    console.note(count_files(log.files_read, log.files_skipped, sum(log.rows_rejected.values())))
    if options.html is not None:
        _write_page(done, options.html, console)
    if not done.evidence.has_queue:
        raise no_queue(paths)
    if any(_is_found(done.described, condition) for condition in options.fail_on):
        return EXIT_FOUND
    return EXIT_FAILED if read is not None and read.unread else EXIT_DONE


def _print(done: Check, options: argparse.Namespace, console: context.Console) -> None:
    """Print a check, or the answer about one message, in the requested format."""
    from routing.commands import checked_message
    from routing.render.text import write_sql
    from routing.render.wording import write_json
    from routing.views.check import check_report

    if options.format == "json":
        from routing.views.check.check_json import as_object

        is_one = options.message is not None
        values = checked_message.explain_as_object(done.described, options.message) if is_one else as_object(done)
        console.result(write_json(values))
    elif options.format == context.STATEMENTS_ALONE:
        listed_results = (
            None if options.message is None else checked_message.find_messages(done.described, options.message)
        )
        statements = check_report.list_statements(done, listed_results)
        console.result(write_sql(statements, "There is nothing to paste: no problem has a statement."))
    else:
        limits = check_report.EVERYTHING if options.verbose else None
        if options.message is not None:
            console.document(checked_message.explain_messages(done.described, options.message, limits))
        else:
            console.document(check_report.make_document(done, with_all=options.all, limits=limits))


def _write_page(done: Check, file: str, console: context.Console) -> None:
    from routing.views.check.check_report import as_report
    from routing.views.page.page_file import write_page

    write_page(as_report(done), file, replacing=console.command_progress.replacing_page)
    console.note(f"the page is {quote(file)}")


def _is_found(done: Check, condition: str) -> bool:
    """Return True if the check has a result that ``--fail-on`` names."""
    from routing.rules.judging import IS_DELAYED, IS_DROPPED
    from routing.views.check.checking import count_severities

    if condition in ("error", "warning"):
        severities = count_severities(done.findings)
        return severities["error"] > 0 or (condition == "warning" and severities["warning"] > 0)
    if condition == "not-known":
        log = done.evidence.log
        is_unread = log.refused_messages > 0 or bool(log.unread_queues)
        return is_unread or any(result.case.verdict is None for result in done.results)
    words = {str(end) for end in (IS_DROPPED if condition == "dropped" else IS_DELAYED)}
    ends = (end for result in done.results for end in result.case.ends)
    return any(end in words for end in ends)
