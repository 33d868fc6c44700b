"""Read section ``lint`` of the configuration into frozen dataclasses. All faults are reported at once.

This module does not import Spark, so a wrong key fails at once.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from routing.config import ConfigError, is_uri
from routing.config.config_model import folder_of
from routing.errors import ContractError, first_sentence, quote, unknown_key
from routing.lint.catalogue import BY_CODE, PAGES
from routing.lint.custom_rules import MARKED, CustomRule, RuleError, line_in
from routing.lint.lint_estate import list_names
from routing.process import read_ordinary_file

# Files of custom rules → rules. Such a file is a program: it runs with the rights of the user who lints.


def load_rules(files: Sequence[str]) -> tuple[CustomRule, ...]:
    """Load the rules of Python files, in the order of files and functions. A repeated file is read once.

    Raises RuleError for a file that cannot be read or run, for a file without rules, and for a duplicate code.
    """
    rules_by_code: dict[str, CustomRule] = {}
    for file in dict.fromkeys(str(Path(file).absolute()) for file in files):
        # The files that it imports are not listed.
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


DEFAULT_DAYS = 30
_MOST_DAYS = 36_500
_KEYS = ("suppress", "expiring_within_days", "rules")


@dataclass(frozen=True)
class LintSuppression:
    """Findings to hide: those with all the given parts."""

    code: str | None = None
    instance_name: str | None = None
    database_name: str | None = None
    object: str | None = None


@dataclass(frozen=True)
class LintSettings:
    """Section ``lint``. ``rules`` are the custom rules of its files."""

    suppress: tuple[LintSuppression, ...] = ()
    expiring_within_days: int = DEFAULT_DAYS
    rules: tuple[CustomRule, ...] = ()


def settings(section: object, file: str, rule_files: Sequence[str] = ()) -> LintSettings:
    """Return the section from ``file``, or its defaults if the file has none. ``rule_files`` are additional files.

    Raises ConfigError with every fault, and RuleError for an invalid file of rules.
    """
    faults: list[str] = []
    values = _mapping(section, "lint", _KEYS, faults)
    days, wanted_days = DEFAULT_DAYS, values.get("expiring_within_days")
    if isinstance(wanted_days, int) and not isinstance(wanted_days, bool) and 0 <= wanted_days <= _MOST_DAYS:
        days = wanted_days
    elif wanted_days is not None:
        expected = f"a number of days from 0 to {_MOST_DAYS}"
        faults.append(f"lint.expiring_within_days must be {expected}, not {quote(wanted_days)}")
    loaded_rules = load_rules([*_files(values.get("rules"), file, faults), *rule_files])
    suppressions = values.get("suppress")
    if suppressions is not None and not isinstance(suppressions, list):
        faults.append("lint.suppress must be a list")
        suppressions = None
    codes = [rule.code for rule in loaded_rules]
    suppress = tuple(
        _suppression(suppression, f"lint.suppress[{n}]", codes, faults)
        for n, suppression in enumerate(suppressions or [])
    )
    if faults:
        raise ConfigError.faults(file, faults)
    return LintSettings(suppress, days, loaded_rules)


def check_code(code: str, custom_codes: Sequence[str] = ()) -> str | None:
    """Return the fault of a finding's code, or None if lint or a custom rule has the code."""
    if code in BY_CODE or code in custom_codes:
        return None
    custom_text = f", and {list_names(custom_codes)}" if custom_codes else ""
    return f"unknown finding {quote(code)}, codes are {min(BY_CODE)} to {max(BY_CODE)}{custom_text}"


def _files(value: object, file: str, faults: list[str]) -> list[str]:
    """Return the files of rules that the section names, beside the configuration's own."""
    if value is None or value == []:
        return []
    named_files = value if isinstance(value, list) else [value]
    names = [name for name in named_files if isinstance(name, str) and name.strip() and "\0" not in name]
    if len(names) < len(named_files):
        faults.append("lint.rules must be the name of a Python file, or a list of such names")
    elif is_uri(file):
        faults.append("lint.rules names files beside a configuration behind a URI: give local ones with --rules")
    else:
        return [str(Path(folder_of(file), name)) for name in names]
    return []


def _suppression(value: object, name: str, custom_codes: Sequence[str], faults: list[str]) -> LintSuppression:
    parts = tuple(LintSuppression.__dataclass_fields__)
    texts: dict[str, str] = {}
    for key, text in _mapping(value, name, parts, faults).items():
        if isinstance(text, str) and text and key in parts:
            texts[key] = text
        elif text is not None and key in parts:
            faults.append(f"{name}.{key} must be text, not {quote(text)}")
    if "code" in texts and (fault := check_code(texts["code"], custom_codes)):
        faults.append(f"{name}.code: {fault}")
    if isinstance(value, Mapping) and not any(part is not None for part in value.values()):
        faults.append(f"{name} names nothing, and would suppress every finding")
    return LintSuppression(**texts)


def _mapping(value: object, name: str, keys: tuple[str, ...], faults: list[str]) -> Mapping[str, object]:
    if value is None and name == "lint":
        return {}
    if not isinstance(value, Mapping):
        faults.append(f"{name} must be a mapping")
        return {}
    faults.extend(unknown_key(f"{name}.{key}", [f"{name}.{k}" for k in keys]) for key in value if key not in keys)
    return value


# The page of a code: cause, example, remedy. They are data of the package, so that a wheel has them.


def page(code: str, rules: Sequence[CustomRule] = ()) -> str:
    """Return the page of a code, in any case. The page of a custom rule is its docstring.

    Raises ContractError for an unknown code.
    """
    code_upper = code.upper()
    rules_by_code = {rule.code: rule for rule in rules}
    fault = check_code(code_upper, list(rules_by_code))
    if fault:
        raise ContractError(fault, "sbroute lint --explain CODE")
    if code_upper in rules_by_code:
        return _own_page(rules_by_code[code_upper])
    return PAGES[code_upper]


def _own_page(rule: CustomRule) -> str:
    kind = rule.kind
    docstring = inspect.getdoc(rule.function)
    parts = [f"# {kind.code}: {kind.title}", f"Severity: {kind.severity}", *([docstring] if docstring else [])]
    return "\n\n".join([*parts, "## Remedy", kind.advice]) + "\n"
