"""Which engine a command works with: Spark, or where it is asked for or no Spark is installed the local one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from routing.commands.common import Console
from routing.config import Config
from routing.errors import ConfigError, NoJavaFault
from routing.terms import ENGINES, LOCAL_ENGINE, SPARK

if TYPE_CHECKING:
    from routing.delta.opening import TableOpener
    from routing.runs.done import Run


def add_engine(command: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the option that names an engine."""
    command.add_argument(
        "--engine",
        choices=ENGINES,
        help="spark (the default), or local: a full run over tables on this machine's disk, without Java",
    )


def engine_override(options: argparse.Namespace) -> list[str]:
    """Return the override of the configuration that the option stands for."""
    return [] if options.engine is None else [f"resolve.engine={options.engine}"]


def choose_engine(settings: Config) -> str:
    """Return the engine of a run: the one that is named, or Spark, or local where no Spark is installed."""
    if settings.resolve.engine is not None:
        return settings.resolve.engine
    if settings.resolve.mode != "full" or find_spec("pyspark") is not None:
        return SPARK
    return LOCAL_ENGINE


def open_locally(settings: Config, *, is_job: bool = False) -> TableOpener:
    """Create the opener of the local engine's tables. Raises ConfigError.

    Raises ConfigError where a session is given or a job is to have one, or where the engine does not do what is
    configured.
    """
    from routing.delta.local_opening import LocalOpener
    from routing.runs.local_runs import check_local
    from routing.sessions.session import is_given

    if is_job or is_given():
        raise ConfigError.local_in_session()
    check_local(settings)
    return LocalOpener()


def run_locally(
    settings: Config, run_id: str | None, console: Console, tell: Callable[[str], None] = lambda text: None
) -> Run:
    """Run by the local engine, and note that where no option or key names the engine.

    ``tell`` is called with the reader of each table.
    """
    from routing.runs.local_runs import resolve_local

    if settings.resolve.engine is None:
        what = "pyspark is not installed, so the local engine resolves (resolve.engine: local)"
        console.note(f"note: {what}", "warning")
    progress, recording = console.progress, console.standing.recording
    return resolve_local(settings, run_id=run_id, progress=progress, tell=tell, recording=recording)


@contextmanager
def naming_local_engine(settings: Config) -> Iterator[None]:
    """Name the local engine in the error that Spark finds no Java."""
    try:
        yield
    except NoJavaFault as fault:
        if settings.resolve.mode != "full":
            raise
        raise fault.with_hint("or run without it over local tables: --engine local") from fault
