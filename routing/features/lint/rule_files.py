"""Files of custom rules → rules. Such a file is a program: it runs with the rights of the user who lints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from routing.errors import RuleError, first_sentence
from routing.features.lint.custom_rules import MARKED, CustomRule, line_in
from routing.process.ordinary_files import read_ordinary_file


def load_rules(files: Sequence[str]) -> tuple[CustomRule, ...]:
    """Load the rules of Python files, in the order of files and functions; a file named twice is read once.

    Raises RuleError for a file that cannot be read or run, that holds no rule, and for a code that stands twice.
    """
    rules_by_code: dict[str, CustomRule] = {}
    for file in dict.fromkeys(str(Path(file).absolute()) for file in files):
        # Not those that it imports.
        file_rules = [rule for rule in _run(file) if rule.place[0] == file]
        if not file_rules:
            raise RuleError.no_rule(file)
        for rule in file_rules:
            if rule.code in rules_by_code:
                raise RuleError.doubled(rule.code, rules_by_code[rule.code].place, rule.place)
            rules_by_code[rule.code] = rule
    return tuple(rules_by_code.values())


class _Loader(SourceFileLoader):
    """Python's own, without the compiled code, which it would write beside the file."""

    def __init__(self, file: str, source: bytes) -> None:
        super().__init__(file, file)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the file as it was read."""
        code: CodeType = self.source_to_code(self._source, self.path)
        return code


def _run(file: str) -> list[CustomRule]:
    """Run a file, and return the functions that it marks as rules. Raises RuleError."""
    try:
        source = read_ordinary_file(Path(file))
    except OSError as error:
        raise RuleError.unreadable(file, error.strerror or first_sentence(error)) from error
    module = ModuleType(file)
    module.__file__ = file
    # Where dataclasses look for the names of a class's own module.
    sys.modules[module.__name__] = module
    marked: list[CustomRule] = []
    token = MARKED.set(marked)
    try:
        with redirect_stdout(sys.stderr):
            _Loader(file, source).exec_module(module)
    except (Exception, SystemExit) as error:
        raise RuleError.not_run(file, line_in(file, error), error) from error
    finally:
        MARKED.reset(token)
    return marked
