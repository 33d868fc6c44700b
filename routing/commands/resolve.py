"""``sbroute resolve``: run the main job."""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from routing.commands.command_context import (
    Console,
    Subparsers,
    add_config,
    add_engine,
    choose_run_engine,
    engine_of,
    engine_override,
    given_options,
    load,
    moment_or_none,
    naming_local_engine,
    note_reading,
    opener,
    print_result,
)
from routing.config import ConfigError, read_duration
from routing.errors import EXIT_DONE, EXIT_FOUND, RoutingError, first_sentence, quote
from routing.render.wording import write_json
from routing.terms import QUARANTINE

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent

    from routing.config import Config
    from routing.delta.opening import TableOpener
    from routing.runs.running import Run


_DOES_NOT_COUNT = "the run does not count (start it again)"


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "resolve",
        parents=[common],
        help="where every message goes, and why: the main job",
        description="Decide where every message of tables.messages goes, and why, and write the output tables."
        " This is the main job.",
        example="sbroute resolve --config sbroute-demo/demo.yaml --as-of 2026-01-05T18:00:00Z",
    )
    add_config(command)
    command.add_argument("--as-job", action="store_true", help=argparse.SUPPRESS)
    of_run = command.add_argument_group("the run")
    add_engine(of_run)
    of_run.add_argument("--as-of", metavar="TIME", help="one decision time for all messages (ISO 8601)")
    of_run.add_argument(
        "--now", metavar="TIME", help="incremental mode: the time for retrying delayed messages (default: now)"
    )
    of_run.add_argument(
        "--from",
        metavar="TIME",
        dest="window_from",
        help="decide the messages from this enqueue_time on again, up to --to, and replace their rows",
    )
    of_run.add_argument("--to", metavar="TIME", dest="window_to", help="the end of that window (exclusive)")
    of_run.add_argument(
        "--erase",
        action="store_true",
        help="incremental mode: delete the output rows of messages that were deleted from tables.messages",
    )
    of_run.add_argument(
        "--follow",
        action="store_true",
        help="incremental mode: keep running, and resolve when an input changes or a delayed message is due",
    )
    of_run.add_argument(
        "--every", metavar="TIME", help="with --follow: how often to look for changes (default: 60s)"
    )
    of_run.add_argument(
        "--fail-on",
        metavar="WHAT",
        choices=[QUARANTINE],
        help="exit code 1 if there is any: quarantine (instances excluded by resolve.on_config_fault)",
    )
    of_run.add_argument(
        "--run-id",
        metavar="ID",
        help="the id of this run; another start with the id of a completed run does nothing",
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Resolve as configured, and print the row of ``runs``."""
    from routing.delta.counted_runs import check_run_id, new_run_id, open_runs
    from routing.runs.running import find_done

    is_given = options.run_id is not None
    run_id = console.command_progress.run_id = check_run_id(options.run_id) if is_given else new_run_id()
    as_of = [] if options.as_of is None else [f"resolve.as_of={json.dumps(options.as_of)}"]
    now = moment_or_none(options.now, "--now")
    settings = load(options, *as_of, *_window(options), *engine_override(options))
    if now is not None and settings.resolve.mode != "incremental":
        raise ConfigError.now_without_retries()
    if options.erase and settings.resolve.mode != "incremental":
        raise ConfigError.erase_in_full_run()
    from routing.delta.opening import LocalOpener
    from routing.runs.lineage import check_client

    check_client(settings)
    if options.follow or options.every is not None:
        return _follow(settings, options, console)
    choice = choose_run_engine(settings, is_job=options.as_job)
    if choice.is_local:
        opening: TableOpener = LocalOpener(note_reading(options, console))
    else:
        opening = opener(settings, options, console)
    # Before Spark is started, where `runs` is read without it.
    runs = open_runs(opening, settings.output["runs"]) if is_given else None
    done = find_done(runs, settings, run_id, now, erase=options.erase)
    if done is None:
        choice.check_installed()
        console.note(str(choice))
        done = _run(settings, opening, console, run_id, now, erase=options.erase)
    return _show(done, options, console)


_OF_ONE_RUN = ("run_id", "as_of", "now", "window_from", "fail_on")


def _follow(settings: Config, options: argparse.Namespace, console: Console) -> int:
    """Run whenever there is a reason, until a signal ends the process. A signal waits for a run that has begun."""
    for option in given_options(options, _OF_ONE_RUN):
        raise ConfigError.not_with_follow(option)
    if not options.follow:
        raise ConfigError.wrong_pause("it needs --follow")
    try:
        interval = read_duration(options.every or "60s")
    except ValueError as error:
        raise ConfigError.wrong_pause(str(error)) from error
    from routing.delta.counted_runs import new_run_id
    from routing.runs.following import Follower, check_follows

    check_follows(settings)
    choice = choose_run_engine(settings)
    choice.check_installed()
    console.note(str(choice))
    opening, progress = opener(settings, options, console), console.command_progress

    def run_once(reason: str) -> None:
        with progress.completing(_DOES_NOT_COUNT):
            run_id = progress.run_id = new_run_id()
            console.note(f"{reason}: run {run_id}")
            done = _run(settings, opening, console, run_id, None, erase=options.erase)
            _show(done, options, console)
            progress.text = f"run {run_id} was the last one, and no other had begun"

    def tell_failure(error: Exception, pause: timedelta) -> None:
        if options.verbose:
            console.note("".join(traceback.format_exception(error)).rstrip())
        why = str(error) if isinstance(error, RoutingError) else first_sentence(error)
        console.note(f"sbroute: the run failed: {why}; trying again in {pause}", "error")

    follower = Follower(opening, settings, interval, run_once, tell_failure)
    while True:
        time.sleep(follower.step().total_seconds())


def _window(options: argparse.Namespace) -> list[str]:
    """Return the settings of a window of time. Raises ConfigError if one end is missing."""
    ends = {"window_from": options.window_from, "window_to": options.window_to}
    if None in ends.values():
        if any(ends.values()):
            raise ConfigError.half_a_window()
        return []
    return ["resolve.mode=window", *(f"resolve.{name}={json.dumps(time)}" for name, time in ends.items())]


def _show(done: Run, options: argparse.Namespace, console: Console) -> int:
    """Print the row of a run, and its notes."""
    for note in done.notes:
        console.note(f"note: {note}", "warning")
    from routing.views.run_documents import summarize_run

    print_result(options, console, lambda: write_json(done.row), lambda: summarize_run(done), done.unfinished)
    return EXIT_FOUND if options.fail_on and done.row["quarantined_instances"] else EXIT_DONE


def _run(
    settings: Config, opening: TableOpener, console: Console, run_id: str, now: datetime | None, *, erase: bool
) -> Run:
    """Run by the engine of an opener, and send the event of the completed or failed run."""
    started = datetime.now(timezone.utc)
    from routing.runs import lineage
    from routing.runs.running import run_by

    console.command_progress.text = _DOES_NOT_COUNT
    try:
        with naming_local_engine(settings):
            done = run_by(
                engine_of(opening),
                settings,
                run_id=run_id,
                now=now,
                erase=erase,
                progress=console.progress,
                recording=console.command_progress.recording,
            )
    except Exception as error:
        ended, why = datetime.now(timezone.utc), error
        _tell_lineage(settings, console, lambda: lineage.failed(settings, run_id, started, ended, why))
        raise
    if not done.was_recorded:
        _tell_lineage(settings, console, lambda: lineage.completed(settings, done.row))
    return done


def _tell_lineage(settings: Config, console: Console, make: Callable[[], RunEvent]) -> None:
    """Send a run's event to the configured target. A failure is a note, not an error."""
    if settings.lineage.is_wanted:
        from routing.runs.lineage import send

        why = send(make, settings.lineage)
        if why is not None:
            target = quote(settings.lineage.url or settings.lineage.file)
            console.note(f"note: the run's lineage event was not sent to {target}: {why}", "warning")
