"""``sbroute resolve``: the main job."""

from __future__ import annotations

import argparse
import json
import time

from routing.commands.common import Console, Subparsers, add_config, load, moment, plain, session
from routing.errors import EXIT_DONE, ConfigError


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "resolve",
        parents=[common],
        help="resolve messages against route tables (the main job)",
        description="Resolve messages against route tables: for every message where it goes, and why.",
    )
    add_config(command)
    command.add_argument("--as-of", metavar="TIME", help="one decision time for all messages (ISO 8601)")
    command.add_argument(
        "--now", metavar="TIME", help="incremental mode: when delayed messages are tried again (the clock)"
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Resolve as configured, and print the row of ``runs``."""
    as_of = [] if options.as_of is None else [f"resolve.as_of={json.dumps(options.as_of)}"]
    now = None if options.now is None else moment(options.now, "--now")
    settings = load(options, *as_of)
    if now is not None and settings.resolve.mode != "incremental":
        raise ConfigError.now_without_retries()
    from routing.storage.sizes import are_small

    begun = time.monotonic()
    little_data = are_small(settings.tables.values(), settings.output.values(), settings.spark)
    spark = session(settings.spark, options, console, little_data=little_data)
    from routing.runs import pipeline

    seconds = time.monotonic() - begun
    tell = console.note if options.verbose else lambda text: None
    console.standing.text = "the run does not count (start it again)"
    done = pipeline.run(
        spark,
        settings,
        now=now,
        progress=console.progress,
        tell=tell,
        session_seconds=seconds,
        recording=console.standing.recording,
    )
    for note in done.notes:
        console.note(f"note: {note}", "warning")
    if options.format == "json":
        console.result(json.dumps(plain(done.row)))
    else:
        from routing import show

        console.result(show.run(done.row))
    return EXIT_DONE
