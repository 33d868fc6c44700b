"""``sbroute demo``: build example estates, resolve their messages, and show the result."""

from __future__ import annotations

import argparse
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
from routing.errors import EXIT_DONE
from routing.render.wording import write_json
from routing.terms import LOCAL_ENGINE

if TYPE_CHECKING:
    from routing.config import Config
    from routing.delta.opening import TableOpener
    from routing.runs.run_results import Run

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
    from routing.demo.demo_document import make_document

    resolved = build.read_resolved(tables, settings, done.row["output_versions"]["resolved_routes"])
    console.document(make_document(resolved, done.row, settings))
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
