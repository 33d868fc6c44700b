"""``sbroute demo``: build example estates, resolve their messages, and show the result."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from routing.commands.command_context import (
    Console,
    Subparsers,
    add_engine,
    choose_engine,
    engine_override,
    naming_local_engine,
    open_locally,
    opener,
    run_locally,
)
from routing.document import (
    Block,
    DataTable,
    Document,
    DocumentHeading,
    ListItem,
    Paragraph,
    SqlStatement,
    Words,
    make_columns,
)
from routing.errors import EXIT_DONE
from routing.render.wording import count, mark_outcome, write_json
from routing.terms import LOCAL_ENGINE, ReadRow

if TYPE_CHECKING:
    from routing.config import Config
    from routing.delta.opening import TableOpener
    from routing.runs.running import Run

_FOLDER = "sbroute-demo"


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "demo",
        parents=[common],
        help="build example tables, resolve their messages, show the result",
        description="Build example estates as Delta tables in DIR, resolve them, show the result and say what"
        " to try next.",
        example="sbroute demo --engine local --out sbroute-demo",
    )
    add_engine(command)
    command.add_argument("--out", metavar="DIR", default=_FOLDER, help=f"where to build (./{_FOLDER})")


def run(options: argparse.Namespace, console: Console) -> int:
    """Build the tables, resolve them and print the documents' estates and the counts of the day."""
    from routing.demo import build

    folder = Path(options.out)
    build.check(folder)
    settings = build.settings(folder, [*options.overrides, *engine_override(options)])
    is_local = choose_engine(settings) == LOCAL_ENGINE
    tables = open_locally(settings) if is_local else opener(settings, options, console, little_data=True)
    without_spark = is_local or build.by_deltalake(tables, settings)
    with naming_local_engine(settings):
        spark = None if is_local else tables.spark
    from routing.delta.counted_runs import new_run_id

    # Not before everything that can be refused has been looked at.
    console.command_progress.text = "the demo is not complete (start it again)"
    build.claim(folder)
    with console.during(f"writing the input tables to {folder / 'data'}"):
        build.write_tables(settings, None if without_spark else spark)
    console.command_progress.run_id = new_run_id()
    done = _resolve(settings, None if is_local else tables, console)
    if options.format == "json":
        console.result(write_json(done.row))
        return EXIT_DONE
    resolved = build.read_resolved(tables, settings, done.row["output_versions"]["resolved_routes"])
    console.document(_make_document(resolved, done.row, settings))
    return EXIT_DONE


def _resolve(settings: Config, tables: TableOpener | None, console: Console) -> Run:
    """Run the demo's resolve; by the local engine where no session is at hand."""
    run_id, progress, recording = (
        console.command_progress.run_id,
        console.progress,
        console.command_progress.recording,
    )
    if tables is None:
        return run_locally(settings, run_id, console)
    from routing.runs import pipeline

    return pipeline.run_with(tables, settings, run_id=run_id, progress=progress, recording=recording)


# What the demo prints: each estate message by message, the day as counts, outcomes, and commands to try.


def _make_document(resolved: Sequence[ReadRow], run: ReadRow, config: Config) -> Document:
    """Describe the demo's resolved messages and the row of its run."""
    return [*_describe_estates(resolved), *_describe_day(resolved), *_say_what_next(config, run)]


def _describe_estates(resolved: Iterable[ReadRow]) -> Iterator[Block]:
    """Yield the estates of the documentation, with a sentence on each message."""
    from routing.demo.example_estates import document_estates

    rows = {(row["instance_name"], row["message_id"]): row for row in resolved}
    for estate in document_estates():
        yield DocumentHeading(estate.title)
        for message in estate.tables["messages"]:
            yield ListItem(_describe_message(rows[message["instance_name"], message["message_id"]]))


def _describe_message(row: ReadRow) -> Words:
    """Describe where a message goes: outcome, place and reason, then the route and its step."""
    place = row["destination_database"] or row["address"]
    where = "" if place is None else f" to {place}"
    route = "" if row["route_name"] is None else f" by {row['route_name']}"
    step = f"step {row['matching_step']}, {row['reason']}"
    message_and_service = f"{row['message_id']} for {row['to_service_name']}: "
    return (message_and_service, mark_outcome(row["outcome"]), f"{where}{route} ({step})")


def _describe_day(resolved: Iterable[ReadRow]) -> Iterator[Block]:
    """Yield the messages of the generated day by outcome and reason, most first."""
    from routing.demo.example_estates import document_estates

    documents = {str(row["instance_name"]) for estate in document_estates() for row in estate.tables["instances"]}
    day = [row for row in resolved if row["instance_name"] not in documents]
    counts = Counter((str(row["outcome"]), str(row["reason"])) for row in day)
    lines = [(*what, number) for what, number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    columns = make_columns(("outcome", "reason", "messages"), ("messages",))
    yield DataTable(columns, lines, f"A generated day of {count(len(day), 'message')}")


def _say_what_next(config: Config, run: ReadRow) -> Iterator[Block]:
    """Yield the counts of the run, and commands to try."""
    read, resolved, rejected = (run[f"rows_{name}"] for name in ("read", "resolved", "rejected"))
    yield Paragraph(
        f"{count(read, 'message')} read = {resolved:,} resolved + {rejected:,} rejected; the tables are Delta,"
        f" described in {config.file}."
    )
    yield DocumentHeading("What to try next")
    yield SqlStatement("\n".join(f"sbroute {line}" for line in _commands(config.file, run["engine"])), indent=1)
    yield Paragraph("Then write a configuration for your own tables: docs/reference/configuration.md.")


def _commands(file: str, engine: str) -> Iterator[str]:
    is_local = engine == LOCAL_ENGINE
    option = " --engine local" if is_local else ""
    yield f"resolve --config {file}{option} --as-of 2026-01-05T18:00:00Z"
    yield f"runs --config {file}"
    yield f"messages --config {file} --outcome DELAYED --now 2026-01-05T18:00:00Z"
    yield f"trace --config {file} --message-id d00263-i0 --instance depot-east"
    yield f"trace --config {file} --all"
    if not is_local:
        # Spark alone ranks.
        yield f"candidates --config {file}"
