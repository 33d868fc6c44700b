"""Parse a command line, run its command and return its exit code (commands.md).

An invalid command line gets one sentence with the nearest option. Only commands that need Spark import it, so
``--help`` and errors appear at once.
"""

from __future__ import annotations

import argparse
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from io import TextIOWrapper
from types import ModuleType
from typing import Any, NoReturn

from routing.commands import (
    candidates,
    check,
    demo,
    diff,
    explain,
    export,
    import_,
    lint,
    messages,
    reconcile,
    report,
    resolve,
    runs,
    trace,
    views,
)
from routing.commands.command_context import Console, at_least_one
from routing.commands.terminal_streams import tell_besides, tell_result
from routing.errors import (
    EXIT_CONTRACT,
    EXIT_DONE,
    EXIT_FAILED,
    OutputError,
    RoutingError,
    first_sentence,
    name_nearest,
    quote,
)
from routing.importing.import_files import as_shown, is_writable
from routing.process import CommandProgress
from routing.render.wording import printable
from routing.storage_faults import find_lasting_fault

COMMON_OPTIONS = "common options"
"""The title of the options that every command has."""
_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


class _StoreOnce(argparse.Action):
    """Stores the value of an option, and refuses a second value."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        options_seen = vars(namespace).setdefault("given", set())
        if self.dest in options_seen:
            parser.error(f"{option_string} is given twice, and takes one value")
        options_seen.add(self.dest)
        setattr(namespace, self.dest, values)


class CommandParser(argparse.ArgumentParser):
    """An argument parser with one sentence for an invalid command line. Options are not abbreviated or repeated.

    ``example`` is a command line at the end of the help text.
    """

    def __init__(self, *, example: str = "", **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)
        self.example = example
        for action in (None, "store"):
            self.register("action", action, _StoreOnce)

    def format_help(self) -> str:
        """Return the help text with the common options last, then the example."""
        self._action_groups.sort(key=lambda group: group.title == COMMON_OPTIONS)
        return f"{super().format_help()}\nexample:\n  {self.example}\n"

    def error(self, message: str) -> NoReturn:
        """End with one sentence about a wrong command line."""
        self.exit(EXIT_CONTRACT, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse itself ignores errors while it writes.
        (tell_result if file is sys.stdout else tell_besides)(message)

    def parse_all(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Parse a command line. Exit with one sentence if a word is superfluous or not text."""
        words = sys.argv[1:] if arguments is None else arguments
        for number, word in enumerate(words, start=1):
            # Python converts bytes that are not UTF-8 to surrogates, which no table or file can hold.
            if not is_writable(word):
                self.error(f"argument {number} holds bytes that are no UTF-8: '{printable(as_shown(word))}'")
        options, surplus = self.parse_known_args(arguments)
        if surplus:
            self.error(f"unexpected argument {quote(surplus[0])}")
        return options

    def _parse_known_args(self, arg_strings: list[str], *rest: Any) -> Any:
        # This comes first: otherwise a misspelt --config would be reported as missing.
        for word in arg_strings:
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                break
            self._refuse_unknown(word)
        return super()._parse_known_args(arg_strings, *rest)

    def _refuse_unknown(self, word: str) -> None:
        """Exit if a word looks like an option, but the command has no such option."""
        if len(word) < 2 or not word.startswith("-") or " " in word or _NUMBER.fullmatch(word):
            return
        name, known_options = word.partition("=")[0], self._option_string_actions
        if word in known_options or name in known_options or (word[1] != "-" and word[:2] in known_options):
            return
        near = name_nearest(name.lstrip("-"), {option.lstrip("-"): option for option in known_options})
        self.error(f"unknown option {quote(name)}" + (f", did you mean {near}?" if near else ""))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = list(action.choices)
        near = name_nearest(str(value), {choice: choice for choice in choices})
        which = f"did you mean {near}?" if near else f"known are {', '.join(choices)}"
        argument = (action.metavar if not action.option_strings else None) or "/".join(action.option_strings)
        self.error(f"unknown {str(argument).lower()} {quote(value)}, {which}")


_FORMATS = ("table", "json")
# In the order in which --help shows them.
_ROOMS: dict[str, ModuleType] = {
    "demo": demo,
    "check": check,
    "export": export,
    "import": import_,
    "resolve": resolve,
    "candidates": candidates,
    "runs": runs,
    "messages": messages,
    "explain": explain,
    "trace": trace,
    "lint": lint,
    "diff": diff,
    "reconcile": reconcile,
    "report": report,
    "views": views,
}


def _common(formats: Sequence[str]) -> CommandParser:
    """Return a parser of the options that every command has. ``formats`` are the formats of its results."""
    common = CommandParser(add_help=False)
    group = common.add_argument_group(COMMON_OPTIONS)
    group.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="overrides",
        help="override one key of the configuration (dotted key, value as YAML; repeatable)",
    )
    group.add_argument("--format", choices=formats, default="table", help="the format of results")
    group.add_argument(
        "--width",
        metavar="N",
        type=at_least_one,
        help="wrap text to N characters (default: the terminal's width, 80 in a pipe)",
    )
    group.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour text; auto does so on a terminal unless NO_COLOR is set",
    )
    group.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="the format of progress on standard error"
    )
    group.add_argument("--quiet", action="store_true", help="print no progress on standard error")
    group.add_argument(
        "--verbose", action="store_true", help="print tracebacks, Java's messages and the reader of each table"
    )
    return common


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="sbroute",
        description="Where SQL Server Service Broker messages go, and why.",
        example="sbroute check conf/examples/exports",
        epilog="Exit codes: 0 success; 1 --fail-on or --fail-under applies; 2 the command line, the"
        " configuration or an input is invalid, and nothing was written; 3 the run failed part-way; 130"
        " interrupted; 143 ended by SIGTERM.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=CommandParser)
    for room in _ROOMS.values():
        room.add(commands, _common(getattr(room, "FORMATS", _FORMATS)))
    return parser


_COMMANDS: dict[str, Callable[[argparse.Namespace, Console], int]] = {
    name: room.run for name, room in _ROOMS.items()
}


def _tell_text(options: argparse.Namespace, parser: CommandParser) -> int | None:
    """Print a text that the command line asks for, such as help, and return the exit status."""
    if options.version:
        from routing.delta.counted_runs import release

        tell_result(f"sbroute {release()}\n")
        return EXIT_DONE
    if options.command is None:
        parser.print_help()
        return EXIT_CONTRACT
    return None


def main(arguments: Sequence[str] | None = None, progress: CommandProgress | None = None) -> int:
    """Run one command and return its exit code. It reports its state in ``progress``."""
    for stream in (sys.stdout, sys.stderr):
        # A character outside the stream's encoding is printed as an escape, because failing now would waste the
        # work.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        parser = _parser()
        options = parser.parse_all(arguments)
        exit_status = _tell_text(options, parser)
    except OutputError as error:
        tell_besides(f"sbroute: {error}\n")
        return error.exit_code
    if exit_status is not None:
        return exit_status
    console = Console(options, progress)
    # The state after an interruption.
    status = EXIT_FAILED
    try:
        status = _run_to_end(options, console)
    finally:
        console.close()
        from routing.sessions.session import settle_java_logs

        if not console.command_progress.is_interrupted:
            settle_java_logs(ended_well=status == EXIT_DONE)
    return status


def _reading_as(options: argparse.Namespace) -> AbstractContextManager[None]:
    """Return the context in which files are read by ``--encoding``."""
    if vars(options).get("encoding") is None:
        return nullcontext()
    from routing.importing.encodings import reading_as

    return reading_as(options.encoding)


def _run_to_end(options: argparse.Namespace, console: Console) -> int:
    """Run a command and return its exit status. The last line reports its error."""
    try:
        with _reading_as(options):
            return _COMMANDS[options.command](options, console)
    # Every error of a command is reported.
    except Exception as error:  # noqa: BLE001
        if options.verbose:
            tell_besides(traceback.format_exc())
        is_known = isinstance(error, RoutingError)
        if isinstance(error, RoutingError):
            status = error.exit_code
        else:
            status = EXIT_FAILED if find_lasting_fault(error) is None else EXIT_CONTRACT
        if status == EXIT_FAILED:
            from routing.sessions.session import java_logs

            for log in java_logs():
                console.note(f"Java's own messages are in {log}")
        error_text = (
            f"{error}" if is_known else f"{first_sentence(error)} (an unexpected error; --verbose shows more)"
        )
        console.note(f"sbroute: {error_text}", "error")
        return status
