"""Declare the options for facts that export files lack: instance, database, time and format."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from routing.cases.questions import DescribedMessage, Question, QuestionError, StoredMessage
from routing.commands.command_context import Console, given_options, moment, moment_or_none, option_of
from routing.errors import EXIT_DONE, EXIT_FOUND, InputError, quote
from routing.terms import ReadRow

if TYPE_CHECKING:
    from routing.importing.catalog import StandIns, TimeFormats
    from routing.lint.custom_rules import CustomRule


def add_options(command: argparse.ArgumentParser | argparse._ArgumentGroup, *, has_defaults: bool) -> None:
    """Declare the options. ``has_defaults`` is True if a file's folder and time replace the first three."""
    of_folder, of_file = (" (default: from its folder)", ", default: the file's") if has_defaults else ("", "")
    command.add_argument(
        "--instance", metavar="NAME", help=f"the instance of rows without a column instance_name{of_folder}"
    )
    command.add_argument(
        "--database", metavar="NAME", help=f"the database of rows without a column database_name{of_folder}"
    )
    command.add_argument(
        "--exported-at", metavar="TIME", help=f"the time of rows without a column exported_at (ISO 8601{of_file})"
    )
    command.add_argument(
        "--date-format",
        metavar="FORMAT",
        help="the format of times that are not ISO 8601, such as 'dd.MM.yyyy HH:mm:ss'",
    )
    command.add_argument(
        "--time-zone",
        metavar="ZONE",
        help="the time zone of exported_at if it has none, such as Europe/Berlin or +02:00 (UTC)",
    )
    add_encoding(command)
    command.add_argument(
        "--address",
        metavar="ADDRESS",
        action="append",
        default=[],
        help="a network address of the instance, tcp://HOST:PORT (repeatable)",
    )
    if has_defaults:
        command.add_argument(
            "--environment",
            metavar="ENV",
            help="apply the scripts of this environment in folders, such as NAME.PROD.sql (default: none)",
        )


def add_encoding(command: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Declare the option for files without a known encoding; `cli` passes it on."""
    command.add_argument(
        "--encoding",
        metavar="NAME",
        help="the encoding of files that are neither marked nor UTF-8, such as cp1251 (Windows-1252, with a note)",
    )


def addresses(options: argparse.Namespace) -> Sequence[str]:
    """Return the addresses of ``--address``. Raises InputError for one that is none."""
    from routing.rules.text import is_tcp

    named_addresses: list[str] = options.address
    for address in named_addresses:
        if not is_tcp(address):
            raise InputError(f"--address {quote(address)} is not tcp://HOST[:PORT]")
    return named_addresses


def times(options: argparse.Namespace) -> TimeFormats:
    """Read the formats of times from the options. Raises InputError."""
    from routing.importing.catalog import TimeFormats
    from routing.importing.catalog.cell_values import time_zone
    from routing.importing.catalog.culture_times import date_format

    form = None if options.date_format is None else date_format(options.date_format)
    return TimeFormats(form, None if options.time_zone is None else time_zone(options.time_zone))


def stand_ins(options: argparse.Namespace, times: TimeFormats, console: Console) -> StandIns:
    """Read the options' values for columns that an export lacks. Raises ContractError."""
    from routing.importing.catalog import StandIns
    from routing.importing.tsql.servers import instance_name

    at = moment_on_clock(options.exported_at, "--exported-at", times.zone, console)
    return StandIns(None if options.instance is None else instance_name(options.instance), options.database, at)


def moment_on_clock(text: str | None, option: str, zone: tzinfo | None, console: Console) -> datetime | None:
    """Return the time of an option in ``--time-zone`` if it has no zone itself. Raises ContractError.

    Raises ContractError.
    """
    if text is None:
        return None
    from routing.config.config_model import names_zone
    from routing.importing.catalog.cell_values import moment_of, twofold

    at = moment(text, option)
    if names_zone(text):
        return at
    if zone is None:
        console.note(f"{option} {quote(text)} has no time zone and is read as UTC (--time-zone)")
        return at
    local = at.replace(tzinfo=None)
    try:
        at, is_twofold = moment_of(local, zone)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from error
    if is_twofold:
        console.note(twofold(option, local, at), "warning")
    return at


# The options that name or describe one message, and the question that they form.


def add_question(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare the options, and return the group that describes a message."""
    group = command.add_argument_group("which message")
    group.add_argument("--message-id", metavar="ID", help="a message of tables.messages")
    group.add_argument(
        "--conversation",
        "--conversation-id",
        metavar="GUID",
        help="a conversation id, or the handle of an imported endpoint: explain its oldest stored message; with a"
        " message that you describe: its dialog (without it, step 3 shows the outcome for every broker instance)",
    )
    group.add_argument(
        "--instance",
        metavar="NAME",
        help="the message's instance; required if several instances have the id or conversation",
    )
    command.add_argument(
        "--exports",
        metavar="PATH",
        action="append",
        help="exports of catalog views, or a folder of them, that show causes other than routing (repeatable)",
    )
    described = command.add_argument_group("a message that you describe")
    described.add_argument("--database", metavar="NAME", help="the database that sends the message")
    described.add_argument("--from-network", action="store_true", help="the message arrives over the network")
    described.add_argument("--service", metavar="NAME", help="the service that the message is sent to")
    described.add_argument("--broker-instance", metavar="ID", help="the broker instance that the message names")
    described.add_argument("--is-target", action="store_true", help="the dialog's target sends the message")
    return described


_DESCRIBING = (
    *("database", "from_network", "service", "broker_instance", "conversation", "is_target"),
    *("from_service", "hops"),
)
MESSAGE_OPTIONS = ("message_id", "instance", *_DESCRIBING)
"""The attributes of the options that name or describe a message. Some commands lack a few."""


def question_of(options: argparse.Namespace) -> Question:
    """Build the question that the options describe. Raises QuestionError."""
    described, at = given_options(options, _DESCRIBING), moment_or_none(options.at, "--at")
    for name in MESSAGE_OPTIONS:
        value = vars(options).get(name)
        # Python reads invalid bytes as halves of surrogates, which Spark cannot accept.
        if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
            raise QuestionError.no_text(option_of(name))
    if options.message_id is not None:
        if described:
            raise QuestionError.mixed(described)
        return StoredMessage(options.message_id, options.instance, at)
    if described == ["--conversation"]:
        return StoredMessage(None, options.instance, at, options.conversation)
    if options.instance is None and not described:
        raise QuestionError.neither()
    if options.from_network and options.database is not None:
        raise QuestionError.both_origins()
    missing = [] if options.instance is not None else ["--instance"]
    missing += [] if options.from_network or options.database is not None else ["--database or --from-network"]
    missing += [] if options.service is not None else ["--service"]
    if missing:
        raise QuestionError.incomplete(missing)
    return DescribedMessage(
        options.instance,
        options.database,
        options.service,
        at or datetime.now(timezone.utc),
        options.broker_instance,
        options.conversation,
        options.is_target,
        vars(options).get("from_service"),
        vars(options).get("hops"),
    )


def tell_others(other_count: int, console: Console) -> None:
    """Print a note that more messages of the end of a conversation are stored."""
    if other_count:
        console.note(
            f"this is the oldest message of that end of the conversation; {other_count} more of it"
            f" {'is' if other_count == 1 else 'are'} stored (--message-id selects one)"
        )


# The shared parts of linting tables and files: reports for other programs, the time, the exit code.


SEVERITIES = ("error", "warning", "info")
"""The worst first."""
FindingRows = Sequence[ReadRow]


def at_least(severity: str) -> tuple[str, ...]:
    """Return the severities that are as bad, or worse."""
    return SEVERITIES[: SEVERITIES.index(severity) + 1]


def report(
    options: argparse.Namespace,
    findings: FindingRows,
    rules: Sequence[CustomRule],
    *,
    config: str | None = None,
    not_judged: Sequence[str] = (),
    is_judged: bool = True,
) -> str:
    """Write findings as SARIF, or as JUnit's XML with the failures of ``--fail-on`` (default: warnings).

    ``config`` is the configuration file, which represents the tables in reports that need a file. ``not_judged``
    and ``is_judged`` are as in `as_sarif`.
    """
    from routing.lint.linting import kinds_with

    kinds = kinds_with(rules)
    if options.format == "junit":
        from routing.views.lint.lint_reports import as_junit

        return as_junit(findings, kinds, at_least(options.fail_on or "warning"), not_judged)
    from routing.delta.counted_runs import release
    from routing.lint.lint_settings import page
    from routing.views.lint.lint_reports import as_sarif

    pages = {code: page(code, rules) for code in kinds}
    placed = findings if config is None else [{"file": config, **row} for row in findings]
    return as_sarif(placed, kinds, pages, release(), Path.cwd(), not_judged, is_judged=is_judged)


def status_of(findings: FindingRows, options: argparse.Namespace) -> int:
    """Return the exit status for findings, by ``--fail-on``."""
    failing = at_least(options.fail_on) if options.fail_on else ()
    return EXIT_FOUND if any(row["severity"] in failing for row in findings) else EXIT_DONE
