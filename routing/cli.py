"""The commands: parse, call one function, print, return an exit status (commands.md).

Spark is imported only by what runs in a command, so that ``--help`` and a wrong option answer at once.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from routing import config
from routing.errors import (
    EXIT_CONTRACT,
    EXIT_DONE,
    EXIT_FAILED,
    RoutingError,
    first_sentence,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import RenderableType

_PIPE_WIDTH = 200
_DEMO_FOLDER = "sbroute-demo"


class _Parser(argparse.ArgumentParser):
    """argparse with one sentence for a wrong command line."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_CONTRACT, f"{self.prog}: {message} (see {self.prog} --help)\n")


class Console:
    """Where a command writes: results to standard output, everything else to standard error."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._quiet = options.quiet
        self._json = options.log_format == "json"

    def result(self, what: RenderableType) -> None:
        """A result of the command: text, or a table of rich."""
        if isinstance(what, str):
            print(what)
            return
        from rich.console import Console as Terminal

        # A pipe has no width of its own: lines are then as long as they need to be.
        Terminal(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False).print(what)

    def note(self, text: str, level: str = "info") -> None:
        """Progress or a warning; ``--quiet`` leaves out progress."""
        if self._quiet and level == "info":
            return
        if self._json:
            moment = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
            text = json.dumps({"time": moment, "level": level, "message": text})
        print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    common = _Parser(add_help=False)
    group = common.add_argument_group("common options")
    group.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="overrides",
        help="override one key of the configuration (dotted key, value as YAML; repeatable)",
    )
    group.add_argument("--format", choices=("table", "json"), default="table", help="how results are printed")
    group.add_argument("--log-format", choices=("text", "json"), default="text", help="how progress is printed")
    group.add_argument("--quiet", action="store_true", help="no progress on standard error")
    group.add_argument("--verbose", action="store_true", help="tracebacks, and Java's own messages")
    parser = _Parser(
        prog="sbroute",
        description="Where SQL Server Service Broker messages go, and why.",
        epilog="Exit codes: 0 done; 1 found what it was told to fail on; 2 the command line, configuration or"
        " an input breaks the contract, nothing written; 3 the run failed part-way.",
    )
    parser.add_argument("--version", action="store_true", help="print the release and end")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    demo = commands.add_parser(
        "demo",
        parents=[common],
        help="build example estates as Delta tables, resolve them, show the result",
        description="Build example estates as Delta tables in DIR, resolve them, show the result and say what"
        " to try next.",
    )
    demo.add_argument("--out", metavar="DIR", default=_DEMO_FOLDER, help=f"where to build (./{_DEMO_FOLDER})")
    resolve = commands.add_parser(
        "resolve",
        parents=[common],
        help="resolve messages against route tables (the main job)",
        description="Resolve messages against route tables: for every message where it goes, and why.",
    )
    resolve.add_argument("--config", metavar="FILE", required=True, help="the configuration (YAML)")
    resolve.add_argument("--as-of", metavar="TIME", help="one decision time for all messages (ISO 8601)")
    return parser


def _session(settings: dict[str, str], options: argparse.Namespace) -> SparkSession:
    from routing.session import start

    return start(settings, verbose=options.verbose)


def _load(options: argparse.Namespace) -> config.Config:
    overrides = list(options.overrides)
    if getattr(options, "as_of", None) is not None:
        overrides.append(f"resolve.as_of={json.dumps(options.as_of)}")
    if not config.is_uri(options.config):
        return config.load(options.config, overrides)
    from routing.tables import read_text

    return config.load(options.config, overrides, read_text(_session({}, options), options.config))


def _resolve(options: argparse.Namespace, console: Console) -> int:
    settings = _load(options)
    spark = _session(dict(settings.spark), options)
    from routing.pipeline import run

    done = run(spark, settings, progress=console.note)
    for note in done.notes:
        console.note(f"note: {note}", "warning")
    if options.format == "json":
        console.result(json.dumps(_plain(done.row)))
    else:
        from routing import show

        console.result(show.run(done.row))
    return EXIT_DONE


def _demo(options: argparse.Namespace, console: Console) -> int:
    from routing.demo import build

    folder = Path(options.out)
    build.claim(folder)
    settings = config.load(build.write_config(folder).file, options.overrides)
    console.note("starting Spark")
    spark = _session(dict(settings.spark), options)
    from routing.pipeline import read_run, run

    console.note(f"writing the input tables to {folder / 'data'}")
    build.write_tables(spark, settings)
    done = run(spark, settings, progress=console.note)
    if options.format == "json":
        console.result(json.dumps(_plain(done.row)))
        return EXIT_DONE
    from routing import show

    resolved = read_run(spark, settings, done.row["run_id"]).resolved_routes
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


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in row.items()}


_COMMANDS = {"demo": _demo, "resolve": _resolve}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.version:
        from routing.release import release

        print(f"sbroute {release()}")
        return EXIT_DONE
    if options.command is None:
        parser.print_help()
        return EXIT_CONTRACT
    console = Console(options)
    try:
        return _COMMANDS[options.command](options, console)
    # The last resort of a command: everything is told, nothing is swallowed.
    except Exception as error:  # noqa: BLE001
        if options.verbose:
            traceback.print_exc()
        if isinstance(error, RoutingError):
            console.note(f"sbroute: {error}", "error")
            return error.exit_code
        console.note(f"sbroute: {first_sentence(error)} (an unexpected error; --verbose shows more)", "error")
        return EXIT_FAILED
