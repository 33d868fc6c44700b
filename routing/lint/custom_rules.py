"""Custom rules: a function is marked with its code, and yields its findings."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from types import CodeType
from typing import Any, NamedTuple

from routing.arguments import checked
from routing.errors import ContractError, first_sentence, quote
from routing.lint.catalogue import LintRule, Severity
from routing.lint.lint_estate import LintFinding
from routing.plan.checked_inputs import routes_of
from routing.rules.timeline import moment_of
from routing.schemas import INPUTS, ColumnKind
from routing.tables.table_columns import TableColumns
from routing.terms import TableRow


class RuleError(ContractError):
    """A file of custom lint rules cannot be loaded, or one of its rules fails. No finding was reported."""

    @classmethod
    def unreadable(cls, file: str, why: str) -> RuleError:
        """Say that the file is missing or cannot be read."""
        return cls(f"the lint rules {quote(file)} cannot be read: {why}", "check lint.rules and --rules")

    @classmethod
    def not_run(cls, file: str, line: int | None, error: BaseException) -> RuleError:
        """Say that Python cannot run the file."""
        location = quote(file) if line is None else f"{quote(file)}, line {line}"
        return cls(
            f"the lint rules {location} cannot be run: {type(error).__name__}: {first_sentence(error)}",
            "correct the file; docs/how-to/lint-rules.md shows one",
        )

    @classmethod
    def no_rule(cls, file: str) -> RuleError:
        """Say that the file marks no function as a rule."""
        return cls(f"the lint rules {quote(file)} define no rule", "mark functions with @routing.finding(…)")

    @classmethod
    def doubled(cls, code: str, first: tuple[str, int], second: tuple[str, int]) -> RuleError:
        """Say that two rules have one code."""
        places = " and ".join(f"{quote(file)}, line {line}" for file, line in (first, second))
        return cls(f"two lint rules have the code {code}: {places}", "give each rule its own code")

    @classmethod
    def failed(cls, code: str, file: str, line: int, error: BaseException) -> RuleError:
        """Say that a rule raised an error."""
        return cls(
            f"the lint rule {code} failed in {quote(file)}, line {line}: {type(error).__name__}:"
            f" {first_sentence(error)}",
            "--verbose shows more; nothing was reported",
        )

    @classmethod
    def no_finding(cls, code: str, file: str, line: int, yielded: object, expected: str) -> RuleError:
        """Say that a rule yields something else than a finding."""
        return cls(
            f"the lint rule {code}, {quote(file)}, line {line}, yields {quote(yielded)} instead of {expected}"
        )


# The argument of a custom rule: whole tables as plain rows, which stay as they are described here.


class RoutesRow(NamedTuple):
    """A row of table ``routes``. Times are in UTC, with a time zone."""

    instance_name: str
    database_name: str
    name: str
    remote_service_name: str | None
    broker_instance: str | None
    lifetime: datetime | None
    address: str
    mirror_address: str | None
    valid_from: datetime | None
    valid_to: datetime | None

    @property
    def subject(self) -> Subject:
        """The parts of a finding that name this row."""
        return self.instance_name, self.database_name, self.name


class DatabasesRow(NamedTuple):
    """A row of table ``databases``."""

    instance_name: str
    name: str
    database_id: int | None
    service_broker_guid: str
    is_broker_enabled: bool | None

    @property
    def subject(self) -> Subject:
        """The parts of a finding that name this row."""
        return self.instance_name, self.name, self.name


class ServicesRow(NamedTuple):
    """A row of table ``services``."""

    instance_name: str
    database_name: str
    name: str

    @property
    def subject(self) -> Subject:
        """The parts of a finding that name this row."""
        return self.instance_name, self.database_name, self.name


class InstancesRow(NamedTuple):
    """A row of table ``instances``."""

    instance_name: str
    is_message_forwarding_enabled: bool | None
    addresses: tuple[str, ...] | None

    @property
    def subject(self) -> Subject:
        """The parts of a finding that name this row."""
        return self.instance_name, None, self.instance_name


Subject = tuple["str | None", "str | None", "str | None"]
"""Instance, database and object of a finding."""
ROWS = (RoutesRow, DatabasesRow, ServicesRow, InstancesRow)


@dataclass(frozen=True)
class Configuration:
    """Hold the rows of a configuration for custom rules of lint. Any value may be None, since rows may be faulty.

    Args:
        routes: rows of all versions of routes.
        routes_in_force: rows of the routes that are valid at ``now``.
        databases: rows of ``databases``.
        services: rows of ``services``.
        instances: rows of ``instances``.
        now: the time of the check (UTC).

    Example:
        >>> from datetime import datetime, timezone
        >>> routing.Configuration([], [], [], [], [], datetime(2026, 1, 5, tzinfo=timezone.utc)).now.isoformat()
        '2026-01-05T00:00:00+00:00'
    """

    routes: Sequence[RoutesRow]
    routes_in_force: Sequence[RoutesRow]
    databases: Sequence[DatabasesRow]
    services: Sequence[ServicesRow]
    instances: Sequence[InstancesRow]
    now: datetime


def configuration_of(columns: Mapping[str, TableColumns], now: int) -> Configuration:
    """Convert columns to the rows that custom rules take, as of a moment (microseconds)."""
    routes = tuple(RoutesRow(**row) for row in _rows(columns["routes"], "routes"))
    live = [route.is_live(now) for _, _, route in routes_of(columns["routes"])]
    return Configuration(
        routes,
        tuple(row for row, is_live in zip(routes, live, strict=True) if is_live),
        tuple(DatabasesRow(**row) for row in _rows(columns["databases"], "databases")),
        tuple(ServicesRow(**row) for row in _rows(columns["services"], "services")),
        tuple(
            InstancesRow(**{**row, "addresses": None if row["addresses"] is None else tuple(row["addresses"])})
            for row in _rows(columns["instances"], "instances")
        ),
        moment_of(now),
    )


def _rows(columns: TableColumns, key: str) -> list[TableRow]:
    times = [field.name for field in INPUTS[key] if field.kind == ColumnKind.TIMESTAMP]
    rows = list(columns.dicts())
    for row in rows:
        row.update({name: moment_of(row[name]) for name in times if row[name] is not None})
    return rows


_CODE = re.compile(r"[A-Z][A-Z0-9_-]{0,40}[0-9]\Z")
_OURS = "SBR"
_SUBJECT = (
    "(subject, message): a row of the configuration, or a tuple of instance, database and object (text or None),"
    " and a text"
)
MARKED: ContextVar[list[CustomRule] | None] = ContextVar("MARKED", default=None)
"""The marked functions of the file that runs now, including those with a name that is later reused."""
Function = Callable[[Configuration], Iterable[tuple[Any, str]]]


@dataclass(frozen=True)
class CustomRule:
    """A kind of finding, and the function that finds it."""

    kind: LintRule
    function: Function = field(compare=False)

    def __call__(self, configuration: Configuration) -> Iterable[tuple[Any, str]]:
        """Call the function: a test can call the rule as it would call the function."""
        return self.function(configuration)

    @property
    def code(self) -> str:
        """The code of its findings."""
        return self.kind.code

    @property
    def place(self) -> tuple[str, int]:
        """The file and line of the function."""
        code: CodeType | None = getattr(self.function, "__code__", None)
        return ("", 0) if code is None else (code.co_filename, code.co_firstlineno)


@checked
def custom_rule(code: str, severity: str, title: str, advice: str) -> Callable[[Function], CustomRule]:
    """Mark a function as a custom rule of lint (docs/how-to/lint-rules.md).

    The function takes a `Configuration` and yields pairs of a row and the message of a finding.

    Args:
        code: upper-case letters, digits, ``_`` and ``-`` with a digit at the end, such as SHOP001; not SBR….
        severity: error, warning or info.
        title: the finding in a few words.
        advice: the action that solves it.

    Returns:
        The decorator.

    Raises:
        ValueError: a text is empty, or ``code`` or ``severity`` is invalid.

    Example:
        >>> @routing.finding("SHOP001", "warning", "A route has a mirror", "Remove the mirror address.")
        ... def mirrored(configuration):
        ...     for route in configuration.routes_in_force:
        ...         if route.mirror_address:
        ...             yield route, f"its mirror is {route.mirror_address}"
        >>> mirrored.code
        'SHOP001'
    """
    texts: dict[str, object] = {"code": code, "severity": severity, "title": title, "advice": advice}
    for name, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"the {name} of a finding is text, not {quote(text)}")
    if not _CODE.match(code) or code.startswith(_OURS):
        raise ValueError(
            f"{quote(code)} is no code for a finding of your own: upper-case letters, digits, _ and -, a digit at"
            f" the end, and not {_OURS}…"
        )
    if severity not in tuple(Severity):
        raise ValueError(f"severity {quote(severity)} of {code} is not one of {', '.join(Severity)}")
    kind = LintRule(code, Severity(severity), title.strip(), advice.strip())

    def marked(function: Function) -> CustomRule:
        rule = CustomRule(kind, function)
        noted = MARKED.get()
        if noted is not None:
            noted.append(rule)
        return rule

    return marked


def find_own(rules: Sequence[CustomRule], configuration: Configuration) -> set[LintFinding]:
    """Run custom rules. Raises RuleError if one fails, or yields an invalid finding.

    Printed text of the rules is sent to standard error, since standard output has the report.
    """
    findings: set[LintFinding] = set()
    with redirect_stdout(sys.stderr):
        for rule in rules:
            findings.update(_run(rule, configuration))
    return findings


def _run(rule: CustomRule, configuration: Configuration) -> Iterator[LintFinding]:
    try:
        for yielded in rule(configuration):
            yield _yielded_finding(rule, yielded)
    except RuleError:
        raise
    # SystemExit too: a rule that ends Python would end the command before it reports anything.
    except (Exception, SystemExit) as error:
        file, line = rule.place
        raise RuleError.failed(rule.code, file, line_in(file, error) or line, error) from error


def _yielded_finding(rule: CustomRule, yielded: Any) -> LintFinding:
    match yielded:
        case (subject, str(message)) if isinstance(subject, ROWS):
            named = subject.subject
        case (tuple((str() | None, str() | None, str() | None)) as subject, str(message)):
            named = subject
        case _:
            raise RuleError.no_finding(rule.code, *rule.place, yielded, _SUBJECT)
    return LintFinding(rule.code, *named, message, None)


def line_in(file: str, error: BaseException) -> int | None:
    """Return the last line of a file in the traceback of an error, or None if the file is not in it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines.append(error.lineno)
    return next((line for line in reversed(lines) if line is not None), None)
