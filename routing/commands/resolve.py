"""``sbroute resolve``: the main job."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from routing import config
from routing.commands.common import Console, Subparsers, add_config, load, moment, plain, session
from routing.errors import EXIT_DONE, ConfigError, quote

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent


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
    from routing.runs import lineage
    from routing.storage.sizes import are_small

    lineage.check_client(settings)
    started, begun = datetime.now(timezone.utc), time.monotonic()
    little_data = are_small(settings.tables.values(), settings.output.values())
    spark = session(settings.spark, options, little_data=little_data)
    from routing.runs import pipeline

    seconds = time.monotonic() - begun
    tell = console.note if options.verbose else lambda text: None
    console.standing.text = "the run does not count (start it again)"
    run_id = pipeline.new_run_id()
    with _telling_failures(settings, run_id, started, console):
        done = pipeline.run(
            spark,
            settings,
            run_id=run_id,
            now=now,
            progress=console.progress,
            tell=tell,
            session_seconds=seconds,
            recording=console.standing.recording,
        )
    _tell_lineage(settings, console, lambda: lineage.completed(settings, done.row))
    for note in done.notes:
        console.note(f"note: {note}", "warning")
    if options.format == "json":
        console.result(json.dumps(plain(done.row)))
    else:
        from routing import show

        console.result(show.run(done.row))
    return EXIT_DONE


@contextmanager
def _telling_failures(settings: config.Config, run_id: str, started: datetime, console: Console) -> Iterator[None]:
    """Send the event of a run that ends in an error."""
    try:
        yield
    except Exception as error:
        from routing.runs import lineage

        ended, why = datetime.now(timezone.utc), error
        _tell_lineage(settings, console, lambda: lineage.failed(settings, run_id, started, ended, why))
        raise


def _tell_lineage(settings: config.Config, console: Console, make: Callable[[], RunEvent]) -> None:
    """Send a run's event to where the configuration says; that it could not be sent is a note, and no fault."""
    if settings.lineage.is_wanted:
        from routing.runs.sending import send

        why = send(make, settings.lineage)
        if why is not None:
            there = quote(settings.lineage.url or settings.lineage.file)
            console.note(f"note: the run's lineage event was not sent to {there}: {why}", "warning")
