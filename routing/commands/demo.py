"""``sbroute demo``: build example estates, resolve their messages, and show the result."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from routing import document
from routing.commands import command_context as context
from routing.errors import EXIT_DONE
from routing.render.wording import count, mark_outcome, write_json
from routing.terms import SPARK, ReadRow, Rejection

if TYPE_CHECKING:
    from routing.config import Config

_FOLDER = "sbroute-demo"


def add(commands: context.Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "demo",
        parents=[common],
        help="build example tables, resolve their messages, show the result",
        description="Build example estates as Delta tables in DIR, resolve them, show the result and suggest"
        " further commands.",
        example="sbroute demo --out sbroute-demo",
    )
    context.add_engine(command)
    command.add_argument(
        "--all", action="store_true", help="also show each message of the documentation's examples"
    )
    command.add_argument(
        "--out", metavar="DIR", default=_FOLDER, help=f"the folder to create (default: ./{_FOLDER})"
    )


def run(options: argparse.Namespace, console: context.Console) -> int:
    """Build the tables, resolve them and print the documents' estates and the counts of the day."""
    from routing.delta.opening import LocalOpener
    from routing.demo import build

    folder = Path(options.out)
    build.check(folder)
    settings = build.settings(folder, [*options.overrides, *context.engine_override(options)])
    choice = context.choose_run_engine(settings)
    choice.check_installed()
    console.note(str(choice))
    tables = LocalOpener() if choice.is_local else context.opener(settings, options, console)
    without_spark = choice.is_local or build.by_deltalake(tables, settings)
    with context.naming_local_engine(settings):
        spark = None if choice.is_local else tables.spark
    from routing.delta.counted_runs import new_run_id
    from routing.runs.running import run_by

    # Only after all checks that may fail.
    console.command_progress.text = "the demo is not complete (start it again)"
    build.claim(folder)
    with console.during(f"writing the input tables to {folder / 'data'}"):
        build.write_tables(settings, None if without_spark else spark)
    console.command_progress.run_id = new_run_id()
    done = run_by(
        context.engine_of(tables),
        settings,
        run_id=console.command_progress.run_id,
        progress=console.progress,
        recording=console.command_progress.recording,
    )
    if options.format == "json":
        console.result(write_json(done.row))
        return EXIT_DONE
    versions = done.row["output_versions"]
    resolved = build.read_resolved(tables, settings, versions["resolved_routes"])
    rejections = build.read_rejections(tables, settings, versions["rejected_messages"])
    details = [*_describe_estates(resolved), *_describe_day(resolved)] if options.all else []
    console.document([*details, *_summarize(resolved, rejections, done.row, settings)])
    return EXIT_DONE


# The output of the demo. With --all, each example by message and the day in counts come before the summary.


def _describe_estates(resolved: Iterable[ReadRow], name: str = "") -> Iterator[document.Block]:
    """Yield the documented estates with titles that begin with a name, and a sentence on each message."""
    from routing.demo.example_estates import document_estates

    rows = {(row["instance_name"], row["message_id"]): row for row in resolved}
    for estate in (estate for estate in document_estates() if estate.title.startswith(name)):
        yield document.DocumentHeading(estate.title)
        for message in estate.tables["messages"]:
            yield document.ListItem(_describe_message(rows[message["instance_name"], message["message_id"]]))


def _describe_message(row: ReadRow) -> document.Words:
    """Describe the destination of a message: outcome, place and reason, then the route and its step."""
    place = row["destination_database"] or row["address"]
    destination = "" if place is None else f" to {place}"
    route = "" if row["route_name"] is None else f" by {row['route_name']}"
    step = f"step {row['matching_step']}, {row['reason']}"
    message_and_service = f"{row['message_id']} for {row['to_service_name']}: "
    return (message_and_service, mark_outcome(row["outcome"]), f"{destination}{route} ({step})")


def _describe_day(resolved: Iterable[ReadRow]) -> Iterator[document.Block]:
    """Yield the messages of the generated day by outcome and reason, most first."""
    from routing.demo.example_estates import document_estates

    documents = {str(row["instance_name"]) for estate in document_estates() for row in estate.tables["instances"]}
    day = [row for row in resolved if row["instance_name"] not in documents]
    counts = Counter((str(row["outcome"]), str(row["reason"])) for row in day)
    lines = [
        (*columns, number) for columns, number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    columns = document.make_columns(("outcome", "reason", "messages"), ("messages",))
    yield document.DataTable(columns, lines, f"A generated day of {count(len(day), 'message')}")


_EXAMPLE = "example-2"
_MOST_REASONS = 2
_REJECTIONS = {
    str(Rejection.CONVERSATION_ID_NOT_A_GUID): "the conversation id is not a GUID",
    str(Rejection.UNKNOWN_INSTANCE): "tables.instances does not have the instance",
    str(Rejection.UNKNOWN_DATABASE): "tables.databases does not have the database",
}


def _summarize(
    resolved: Sequence[ReadRow], rejections: Mapping[str, int], run: ReadRow, config: Config
) -> Iterator[document.Block]:
    """Yield one example, the outcomes of all messages, the reasons for rejections, and commands to try."""
    yield from _describe_estates(resolved, _EXAMPLE)
    yield _count_outcomes(resolved)
    read, resolved_rows, rejected = (run[f"rows_{name}"] for name in ("read", "resolved", "rejected"))
    yield document.Paragraph(
        f"{count(read, 'message')} read = {resolved_rows:,} resolved + {rejected:,} rejected. The demo has wrong"
        " rows on purpose:"
    )
    yield from _explain_rejections(rejections)
    yield document.DocumentHeading("What to try next")
    yield document.SqlStatement(
        "\n".join(f"sbroute {line}" for line in _commands(config.file, run["engine"])), indent=1
    )
    yield document.Paragraph("Then write a configuration for your own tables: docs/how-to/install.md.")


def _count_outcomes(resolved: Iterable[ReadRow]) -> document.DataTable:
    """Count all messages by outcome, most first, with the reasons that are most frequent."""
    reasons: dict[str, Counter[str]] = {}
    for row in resolved:
        reasons.setdefault(str(row["outcome"]), Counter())[str(row["reason"])] += 1
    by_size = sorted(reasons.items(), key=lambda item: (-item[1].total(), item[0]))
    lines = [
        (outcome, by_reason.total(), ", ".join(f"{name} {number:,}" for name, number in _most(by_reason)))
        for outcome, by_reason in by_size
    ]
    columns = document.make_columns(("outcome", "messages", "most frequent reasons"), ("messages",))
    return document.DataTable(columns, lines, "Where the messages go")


def _most(reasons: Counter[str]) -> list[tuple[str, int]]:
    """Return the most frequent reasons. Equally frequent ones are ordered by name."""
    return sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:_MOST_REASONS]


def _explain_rejections(rejections: Mapping[str, int]) -> Iterator[document.Block]:
    """Yield a line for each reason of rejections. All missing values share one line."""
    lacking = [reason for reason in rejections if reason.startswith(Rejection.missing(""))]
    if lacking:
        columns = ", ".join(sorted(reason.removeprefix(Rejection.missing("")).lower() for reason in lacking))
        total = sum(rejections[reason] for reason in lacking)
        yield document.ListItem(f"{total} without a required value: {columns}")
    for reason in sorted(rejections.keys() - set(lacking)):
        yield document.ListItem(f"{rejections[reason]} {reason}: {_REJECTIONS[reason]}")


def _commands(file: str, engine: str) -> Iterator[str]:
    yield f"resolve --config {file} --as-of 2026-01-05T18:00:00Z"
    yield f"runs --config {file}"
    yield f"messages --config {file} --outcome DELAYED --now 2026-01-05T18:00:00Z"
    yield f"trace --config {file} --message-id d00263-i0 --instance depot-east"
    yield f"trace --config {file} --all"
    if engine == SPARK:
        # Only Spark writes candidates.
        yield f"candidates --config {file}"
