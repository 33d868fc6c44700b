"""Open the shared parts of commands: the output, the Spark session, and the configuration."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import datetime, timezone
from itertools import chain
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from routing import config
from routing.commands.terminal_streams import PlainLines, open_line, tell_besides, tell_result
from routing.config import Config, ConfigError
from routing.errors import ContractError, EnvironmentFault, NoJavaFault, quote
from routing.process import CommandProgress
from routing.terms import ENGINES, LOCAL_ENGINE, SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.delta.opening import TableOpener
    from routing.document import Document
    from routing.run_context import Progress
    from routing.runs.engine_choice import EngineChoice
    from routing.runs.running import RunEngine

# The type of argparse's add_subparsers(), which has no public name.
Subparsers = Any
STATEMENTS_ALONE = "sql"
"""The value of ``--format`` that prints only the T-SQL of a document."""
# The number of printed sentences of a kind.
_SENTENCES = 50


class Console:
    """The output of a command: results to standard output, everything else to standard error.

    On a terminal, a line shows live progress. It disappears while other text is printed.
    """

    def __init__(self, options: argparse.Namespace, progress: CommandProgress | None = None) -> None:
        self.command_progress = progress or CommandProgress()
        self._quiet = options.quiet
        self._json = options.log_format == "json"
        self._width: int | None = options.width
        self._color: str = options.color
        is_silent = self._quiet or self._json
        self._line_below = None if is_silent else open_line() or PlainLines(options.command)
        self.command_progress.output = self

    def close(self) -> None:
        """Remove the live line, and print nothing more."""
        if self._line_below is not None:
            self._line_below.close()

    def _aside(self) -> AbstractContextManager[None]:
        return nullcontext() if self._line_below is None else self._line_below.aside()

    def result(self, text: str) -> None:
        """Print a result of the command to standard output."""
        with self._aside():
            tell_result(f"{text}\n")

    def document(self, document: Document) -> None:
        """Print a document to standard output: as wide as ``--width`` or the terminal, coloured as ``--color``."""
        from routing.render.text import PIPE_WIDTH, write_text

        is_terminal = sys.stdout is not None and sys.stdout.isatty()
        # COLUMNS, which some shells and schedulers export, does not apply to a pipe.
        width = self._width or (get_terminal_size().columns if is_terminal else PIPE_WIDTH)
        is_dull = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        is_coloured = self._color == "always" or (self._color == "auto" and is_terminal and not is_dull)
        self.result(write_text(document, width=width, is_coloured=is_coloured))

    def note(self, text: str, level: str = "info") -> None:
        """Print a note to standard error. ``level`` is info, warning or error. ``--quiet`` omits info."""
        self._note(text, level, {})

    def _note(self, text: str, level: str, fields: Mapping[str, object]) -> None:
        if self._quiet and level == "info":
            return
        from routing.render.wording import printable

        # Keep it on one line, even if names or Java's messages have line breaks.
        with self._aside():
            tell_besides(f"{self._line(printable(text), level, fields)}\n")

    def error_line(self, text: str) -> str:
        """Return the printed line of an error."""
        return self._line(text, "error", {})

    def _line(self, text: str, level: str, fields: Mapping[str, object]) -> str:
        if not self._json:
            return text
        moment = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        entry = {"time": moment, "level": level, "message": text}
        run = {} if self.command_progress.run_id is None else {"run_id": self.command_progress.run_id}
        return json.dumps({**entry, **run, **fields})

    def progress(self, stage: Progress) -> None:
        """Report that a stage begins or has ended: on a terminal's live line, or as JSON in a scheduler's log."""
        has_ended = stage.seconds is not None
        if has_ended and self._json:
            self._note(str(stage), "info", stage.fields())
        if self._line_below is not None:
            if has_ended:
                self._line_below.end(stage.stage, str(stage))
            else:
                self._line_below.begin(stage.stage)

    def during(self, text: str, final_line: str | None = None) -> AbstractContextManager[None]:
        """Show an activity. On a terminal its text, or ``final_line``, remains with its duration."""
        if self._json:
            self.note(text)
        return nullcontext() if self._line_below is None else self._line_below.during(text, final_line or text)

    def show_progress(self, text: str) -> None:
        """Show the progress of the activity."""
        if self._line_below is not None:
            self._line_below.show_progress(text)

    def watch(self, spark: SparkSession) -> None:
        """Show the progress of Spark's tasks from now on."""
        if self._line_below is not None:
            from routing.sessions.existing_session import count_tasks

            self._line_below.watch(count_tasks(spark))


@contextmanager
def steps(console: Console) -> Iterator[Callable[[str], None]]:
    """Yield a function that begins a named step on the console and ends the previous one."""
    with ExitStack() as step:

        def begin(name: str) -> None:
            step.close()
            step.enter_context(console.during(name))

        yield begin


def session(
    settings: Mapping[str, str], options: argparse.Namespace, on_note: Callable[[str], None] = warnings.warn
) -> SparkSession:
    """Return the Spark session of a command. ``on_note`` is called with a note on refused settings.

    Raises EnvironmentFault.
    """
    from routing.sessions.session import start

    return start(dict(settings), verbose=options.verbose, on_note=on_note)


def opener(
    settings: config.Config, options: argparse.Namespace, console: Console, *, choice: EngineChoice | None = None
) -> TableOpener:
    """Create the opener of a command's tables. It starts Spark for the first table that needs it.

    If the ``choice`` of an engine is Spark, Spark reads and writes all tables. If it is the local engine, a note
    names the table that needs Spark.
    """
    from routing.delta.local_tables import UnreadableTable
    from routing.delta.opening import TableOpener, say_nothing

    def note_refused(refused: str) -> None:
        console.note(f"note: {refused}", "warning")

    def start() -> SparkSession:
        spark = session(settings.spark, options, note_refused)
        console.watch(spark)
        return spark

    return TableOpener(
        start,
        settings.spark,
        note_reading(options, console),
        # The remaining line has the name of the stage in a run.
        waiting=lambda: console.during("starting Spark", "session"),
        on_missing=lambda text: console.note(f"note: {text}", "warning"),
        unfit=None if choice is None or choice.is_local else UnreadableTable(choice.why),
        on_start=say_nothing if choice is None or not choice.is_local else console.note,
    )


def note_reading(options: argparse.Namespace, console: Console) -> Callable[[str], None]:
    """Return the function that notes how tables are read, which only ``--verbose`` shows."""
    from routing.delta.opening import say_nothing

    return console.note if options.verbose else say_nothing


def engine_of(opening: TableOpener) -> RunEngine:
    """Return the engine of a run whose tables this opener opens."""
    from routing.delta.opening import LocalOpener

    if isinstance(opening, LocalOpener):
        from routing.runs.local_runs import local_engine

        return local_engine(opening)
    from routing.runs.pipeline import spark_engine

    return spark_engine(opening)


def load(options: argparse.Namespace, *overrides: str) -> config.Config:
    """Return the configuration named by ``--config``, with ``--set`` and then the command's own overrides."""
    all_overrides = [*options.overrides, *overrides]
    if not config.is_uri(options.config):
        return config.load(options.config, all_overrides)
    from routing.config.secrets import refuse_secrets
    from routing.sessions.existing_session import too_late
    from routing.sessions.session import is_given

    # Before Spark gets the address, because Spark would print it.
    refuse_secrets(options.config, {}, all_overrides)
    is_own = not is_given()
    try:
        spark = session({}, options)
    except EnvironmentFault as fault:
        raise fault.because("--config", "it is behind a URI") from fault
    from routing.delta.spark_tables import read_text

    loaded = config.load(options.config, all_overrides, read_text(spark, options.config))
    late = too_late(spark, loaded.spark) if is_own else []
    if late:
        raise ConfigError.too_late(options.config, late)
    return loaded


def add_config(command: argparse.ArgumentParser) -> None:
    """Add the option ``--config``."""
    command.add_argument("--config", metavar="FILE", required=True, help="the configuration (YAML)")


_SPELLED = {"variables": "-v", "window_from": "--from", "window_to": "--to"}


def option_of(name: str) -> str:
    """Return the option that fills an attribute of the parsed command line."""
    return _SPELLED.get(name, f"--{name.replace('_', '-')}")


def given_options(options: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """List those of some options that the command line has. A command may lack some of them."""
    values = {name: vars(options).get(name) for name in names}
    # 0 is a value, although it equals False.
    return [
        option_of(name) for name, value in values.items() if not (value is None or value is False or value == [])
    ]


def at_least_one(text: str) -> int:
    """Return a number of an option that is 1 or more, for argparse."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{quote(text)} is not a whole number of at least 1")
    return number


def moment(text: str, option: str) -> datetime:
    """Return the time of an option, UTC if it has no zone. Raises ContractError."""
    try:
        return config.parse_time(text)
    except ValueError as error:
        raise ContractError(f"{option}: {error}") from error


def moment_or_none(text: str | None, option: str) -> datetime | None:
    """Read the time of an option that may be absent."""
    return None if text is None else moment(text, option)


def moment_or_now(text: str | None, option: str) -> datetime:
    """Read the time of an option that is the clock's by default."""
    return moment_or_none(text, option) or datetime.now(timezone.utc)


def add_variables(command: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the option ``-v`` of every command that reads T-SQL scripts."""
    command.add_argument(
        "-v",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        dest="variables",
        help="the value of a sqlcmd variable or a migration tool's placeholder (repeatable)",
    )


def variables(assignments: Sequence[str]) -> dict[str, str]:
    """Return the sqlcmd variables of ``-v``. Raises ContractError."""
    return dict(map(_variable, assignments))


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ContractError(f"-v takes NAME=VALUE, not {quote(text)}")
    return name, value


def tell_sentences(console: Console, rejected: Sequence[str], notes: Sequence[str]) -> None:
    """Print the sentences on rejected statements or rows, and the notes: the first of each, the rest counted."""
    for label, sentences, level in (("rejected", rejected, "warning"), ("note", notes, "info")):
        for sentence in sentences[:_SENTENCES]:
            console.note(f"{label}: {sentence}", level)
        if len(sentences) > _SENTENCES:
            console.note(f"{label}: and {len(sentences) - _SENTENCES} more (--format json has all)", level)


def tell_unfinished(opening: TableOpener, console: Console, *settings: config.Config) -> list[str]:
    """Print notes on unfinished imports into the tables of configurations, and return them."""
    from routing.delta.import_times import note_unfinished

    journals = dict.fromkeys(unfinished.journal for unfinished in settings)
    notes = [note for journal in journals for note in note_unfinished(opening, journal)]
    for note in notes:
        console.note(f"note: {note}", "warning")
    return notes


def with_notes(document: str, notes: Sequence[str]) -> str:
    """Add notes to a JSON object if there are any."""
    return json.dumps({**json.loads(document), "notes": list(notes)}) if notes else document


def print_result(
    options: argparse.Namespace,
    console: Console,
    as_json: Callable[[], str],
    as_document: Callable[[], Document],
    notes: Sequence[str] = (),
) -> None:
    """Print a result in the requested format. ``notes`` are only added to JSON."""
    if options.format == "json":
        console.result(with_notes(as_json(), notes))
    else:
        console.document(as_document())


# The engine of a command.


def add_engine(command: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the option that names an engine."""
    command.add_argument(
        "--engine",
        choices=ENGINES,
        help="local: a full run over tables on this machine's disk, without Java; spark: every run; auto (the"
        " default): local if it can do the run, otherwise spark",
    )


def engine_override(options: argparse.Namespace) -> list[str]:
    """Return the override of the configuration for the option ``--engine``."""
    return [] if options.engine is None else [f"resolve.engine={options.engine}"]


def choose_run_engine(settings: Config, *, is_job: bool = False) -> EngineChoice:
    """Choose the engine of a run of the main job.

    Raises ContractError if the local engine is named and does not do the work.
    """
    from routing.runs.engine_choice import choose_engine, find_run_reasons, find_session_reasons

    reasons = chain(find_session_reasons(is_job=is_job), find_run_reasons(settings))
    return choose_engine(settings.resolve.engine, reasons)


def open_by_choice(settings: Config, options: argparse.Namespace, console: Console) -> TableOpener:
    """Create the opener of a command that goes through all messages.

    Unless an engine is named or a session is given, its tables decide which engine reads them. A note says why
    Spark is started. Raises ContractError if the local engine is named and a session is given.
    """
    from routing.delta.opening import LocalOpener
    from routing.runs.engine_choice import choose_engine, find_session_reasons

    choice = choose_engine(settings.resolve.engine, find_session_reasons())
    if settings.resolve.engine == LOCAL_ENGINE:
        return LocalOpener(note_reading(options, console), lambda text: console.note(f"note: {text}", "warning"))
    if not choice.is_local:
        choice.check_installed()
        console.note(str(choice))
    return opener(settings, options, console, choice=choice)


@contextmanager
def naming_local_engine(settings: Config) -> Iterator[None]:
    """Name the local engine in the error that Spark finds no Java, if an option or key named Spark."""
    try:
        yield
    except NoJavaFault as fault:
        if settings.resolve.mode != "full" or settings.resolve.engine != SPARK:
            raise
        raise fault.with_hint("or run without it over local tables: --engine local") from fault
