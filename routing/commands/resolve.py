"""``sbroute resolve``: the main job."""

from __future__ import annotations

import argparse
import json
import time
from datetime import datetime
from typing import TYPE_CHECKING

from routing.commands.common import Console, Subparsers, add_config, load, moment_or_none, opener, plain
from routing.errors import EXIT_DONE, ConfigError

if TYPE_CHECKING:
    from routing.config import Config
    from routing.runs.done import Run
    from routing.storage.opening import Opener


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
    command.add_argument(
        "--run-id", metavar="ID", help="the id of this run: started again once it counts, it does nothing"
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Resolve as configured, and print the row of ``runs``."""
    from routing.runs.done import find_done
    from routing.storage.recorded import check_run_id, new_run_id

    is_given = options.run_id is not None
    run_id = console.standing.run_id = check_run_id(options.run_id) if is_given else new_run_id()
    as_of = [] if options.as_of is None else [f"resolve.as_of={json.dumps(options.as_of)}"]
    now = moment_or_none(options.now, "--now")
    settings = load(options, *as_of)
    if now is not None and settings.resolve.mode != "incremental":
        raise ConfigError.now_without_retries()
    from routing.storage.sizes import are_small

    begun = time.monotonic()
    little_data = are_small(settings.tables.values(), settings.output.values(), settings.spark)
    opening = opener(settings, options, console, little_data=little_data)
    # Before Spark is started, where `runs` is read without it.
    done = find_done(opening, settings, run_id, now) if is_given else None
    if done is None:
        done = _run(settings, opening, console, run_id, now, begun)
    for note in done.notes:
        console.note(f"note: {note}", "warning")
    if options.format == "json":
        console.result(json.dumps(plain(done.row)))
    else:
        from routing import show

        console.result(show.run(done.row))
    return EXIT_DONE


def _run(
    settings: Config, opening: Opener, console: Console, run_id: str, now: datetime | None, begun: float
) -> Run:
    """The run, in a session that is started first; ``begun`` is when that began, by the monotonic clock."""
    spark = opening.spark
    from routing.runs import pipeline

    seconds = time.monotonic() - begun
    console.standing.text = "the run does not count (start it again)"
    return pipeline.run(
        spark,
        settings,
        run_id=run_id,
        now=now,
        progress=console.progress,
        tell=opening.tell,
        session_seconds=seconds,
        recording=console.standing.recording,
    )
