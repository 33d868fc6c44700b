"""The parser of command lines: one sentence for whatever is wrong, with the nearest option that there is."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from routing.commands.terminal_streams import tell_besides, tell_result
from routing.errors import EXIT_CONTRACT, name_nearest, quote
from routing.importing.import_files import as_shown, is_writable
from routing.render.wording import printable

COMMON_OPTIONS = "common options"
"""The title of the options that every command has."""
_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


class _StoreOnce(argparse.Action):
    """Keeps an option's one value, and refuses a second instead of letting the last win."""

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
    """argparse with one sentence for a wrong command line: options are written out, and given once.

    ``example`` is a command line that runs; it ends the help text.
    """

    def __init__(self, *, example: str = "", **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)
        self.example = example
        for action in (None, "store"):
            self.register("action", action, _StoreOnce)

    def format_help(self) -> str:
        """Return the help text: the common options last, then the example as it is typed."""
        self._action_groups.sort(key=lambda group: group.title == COMMON_OPTIONS)
        return f"{super().format_help()}\nexample:\n  {self.example}\n"

    def error(self, message: str) -> NoReturn:
        """End with one sentence about a wrong command line."""
        self.exit(EXIT_CONTRACT, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse passes over what cannot be written.
        (tell_result if file is sys.stdout else tell_besides)(message)

    def parse_all(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Parse a command line; end with one sentence where a word is too many, or is no text."""
        words = sys.argv[1:] if arguments is None else arguments
        for number, word in enumerate(words, start=1):
            # Python hands on what is no UTF-8 as half characters, which no table takes and no file can show.
            if not is_writable(word):
                self.error(f"argument {number} holds bytes that are no UTF-8: '{printable(as_shown(word))}'")
        options, surplus = self.parse_known_args(arguments)
        if surplus:
            self.error(f"unexpected argument {quote(surplus[0])}")
        return options

    def _parse_known_args(self, arg_strings: list[str], *rest: Any) -> Any:
        # First of all: a misspelt --config would else be told as a missing one.
        for word in arg_strings:
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                break
            self._refuse_unknown(word)
        return super()._parse_known_args(arg_strings, *rest)

    def _refuse_unknown(self, word: str) -> None:
        """End where a word looks like an option, as argparse sees it, and is none of this command's."""
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
        what = (action.metavar if not action.option_strings else None) or "/".join(action.option_strings)
        self.error(f"unknown {str(what).lower()} {quote(value)}, {which}")
