"""``sbroute demo``: example estates, resolved and shown."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from routing.commands.common import Console, Subparsers, opener, plain
from routing.errors import EXIT_DONE

_FOLDER = "sbroute-demo"


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "demo",
        parents=[common],
        help="build example estates as Delta tables, resolve them, show the result",
        description="Build example estates as Delta tables in DIR, resolve them, show the result and say what"
        " to try next.",
    )
    command.add_argument("--out", metavar="DIR", default=_FOLDER, help=f"where to build (./{_FOLDER})")


def run(options: argparse.Namespace, console: Console) -> int:
    """Build the tables, resolve them and print the documents' estates and the counts of the day."""
    from routing.demo import build

    folder = Path(options.out)
    build.check(folder)
    settings = build.settings(folder, options.overrides)
    tables = opener(settings, options, console, little_data=True)
    without_spark = build.by_deltalake(tables, settings)
    spark = tables.spark
    from routing.runs import pipeline
    from routing.storage.recorded import new_run_id

    # Not before everything that can be refused has been looked at.
    console.standing.text = "the demo is not complete (start it again)"
    build.claim(folder)
    with console.during(f"writing the input tables to {folder / 'data'}"):
        build.write_tables(settings, None if without_spark else spark)
    console.standing.run_id = new_run_id()
    done = pipeline.run_with(
        tables,
        settings,
        run_id=console.standing.run_id,
        progress=console.progress,
        recording=console.standing.recording,
    )
    if options.format == "json":
        console.result(json.dumps(plain(done.row)))
        return EXIT_DONE
    from routing import show

    resolved = build.read_resolved(tables, settings, done.row["output_versions"]["resolved_routes"])
    for title, lines in build.document_lines(resolved):
        console.result(show.table(title, build.LINE, lines))
        console.result("")
    counts = build.day_counts(resolved)
    total = sum(count for _, _, count in counts)
    title = f"A generated day of {total:,} messages"
    console.result(show.table(title, ("outcome", "reason", "messages"), counts, ("messages",)))
    console.result("")
    console.result(build.what_next(settings, done.row))
    return EXIT_DONE
