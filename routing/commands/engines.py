"""Which engine a command works with: Spark, or where it is asked for or no Spark is installed the local one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from routing.commands.common import Console
from routing.config import Config
from routing.errors import ConfigError, NoJavaFault
from routing.terms import ENGINES, LOCAL_ENGINE, SPARK


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


def tell_choice(settings: Config, console: Console) -> None:
    """Say that the local engine resolves where no one has named it."""
    if settings.resolve.engine is None:
        what = "pyspark is not installed, so the local engine resolves (resolve.engine: local)"
        console.note(f"note: {what}", "warning")


def refuse_session(*, is_job: bool) -> None:
    """Refuse the local engine where a session is given, or a job is to have one. Raises ConfigError."""
    from routing.sessions.session import is_given

    if is_job or is_given():
        raise ConfigError.local_in_session()


@contextmanager
def naming_local_engine(settings: Config) -> Iterator[None]:
    """Name the local engine where Spark finds no Java."""
    try:
        yield
    except NoJavaFault as fault:
        if settings.resolve.mode != "full":
            raise
        raise fault.with_hint("or run without it over local tables: --engine local") from fault
