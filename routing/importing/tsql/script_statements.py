"""Define the statements of a T-SQL script about routing, with problems and reasons for skipped ones.

Names are unquoted, in the spelling of the script. ``database`` is the context from ``USE`` or the caller, or None
if it is unknown. Times are in UTC with a time zone, lifetimes in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum

from routing.errors import show_text
from routing.importing.tsql.vocabulary import UnknownVariable
from routing.rules.estate import AddressKind, kind_of
from routing.rules.text import comparable_address
from routing.terms import BROKER_CONFIGURATION_SERVICE


@dataclass(frozen=True, slots=True)
class StatementProblem:
    """An unknown or refused part of a script, with SQL Server's error number if it has one.

    ``counted`` is True for a mere remark on a statement that was read. ``by_server`` is True if SQL Server
    certainly refuses it. ``is_unfilled`` is True if it has a placeholder of another tool.
    """

    file: str
    line: int
    why: str
    number: int | None = None
    counted: bool = False
    by_server: bool = False
    is_unfilled: bool = False


class GuardSubject(Enum):
    """The subject of a condition. The value is its name in texts."""

    ROUTE = "route"
    SERVICE = "service"
    ENDPOINT = "endpoint"
    BROKER_ENDPOINT = "SERVICE_BROKER endpoint"
    DATABASE = "database"
    BROKER = "enabled broker"
    MIGRATION = "migration"


@dataclass(frozen=True, slots=True)
class ConditionGuard:
    """A condition of an IF: that ``subject`` ``name`` exists, or does not if ``holds`` is false.

    ``database`` is where a route or service is looked for. For BROKER_ENDPOINT, an empty ``name`` is any. For
    BROKER, ``name`` is the database and ``holds`` whether its broker is enabled. A MIGRATION of EF Core is in its
    table or not, which no state answers.
    """

    subject: GuardSubject
    database: str | None
    name: str
    holds: bool

    def inverse(self) -> ConditionGuard:
        """Return the condition of the ELSE branch."""
        return replace(self, holds=not self.holds)


@dataclass(frozen=True, slots=True)
class RouteOptions:
    """The WITH clause, with None for missing options. ``lifetime`` is the expiry after the script's time."""

    service_name: str | None = None
    broker_instance: str | None = None
    lifetime_seconds: int | None = None
    lifetime: datetime | None = None
    address: str | None = None
    mirror_address: str | None = None


class BrokerSetting(Enum):
    """The option of ALTER DATABASE … SET."""

    ENABLE = "ENABLE_BROKER"
    DISABLE = "DISABLE_BROKER"
    NEW = "NEW_BROKER"
    ERROR = "ERROR_BROKER_CONVERSATIONS"


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """One statement. Its place and database are filled in when it runs.

    ``doubt`` is a condition that only the server can decide and that is assumed to be true.
    """

    file: str = ""
    line: int = 0
    database: str | None = None
    name: str = ""
    doubt: str | None = field(default=None, kw_only=True)

    words = "statement"

    @property
    def key(self) -> StatementKey:
        """The file, line and title, which identify a statement of a script."""
        return self.file, self.line, self.title

    @property
    def title(self) -> str:
        """How texts call this statement: ``CREATE ROUTE 'name'``."""
        return f"{self.words} {quote(self.name) if self.name else 'CURRENT'}"


StatementKey = tuple[str, int, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateRoute(ScriptStatement):
    """CREATE ROUTE. Its options have passed SQL Server's checks."""

    options: RouteOptions = field(default_factory=RouteOptions)
    words = "CREATE ROUTE"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlterRoute(ScriptStatement):
    """ALTER ROUTE. Only the given options change, and the whole route is checked at its application."""

    options: RouteOptions = field(default_factory=RouteOptions)
    words = "ALTER ROUTE"


@dataclass(frozen=True, kw_only=True, slots=True)
class DropRoute(ScriptStatement):
    """DROP ROUTE."""

    words = "DROP ROUTE"


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateService(ScriptStatement):
    """CREATE SERVICE."""

    words = "CREATE SERVICE"


@dataclass(frozen=True, kw_only=True, slots=True)
class DropService(ScriptStatement):
    """DROP SERVICE."""

    words = "DROP SERVICE"


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateEndpoint(ScriptStatement):
    """CREATE ENDPOINT. Endpoints for other payloads are kept because a later DROP may name them.

    ``state`` is that of STATE in upper case. The default is STOPPED.
    """

    for_service_broker: bool
    state: str = "STOPPED"
    listener_port: int | None = None
    is_message_forwarding_enabled: bool | None = None
    words = "CREATE ENDPOINT"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlterEndpoint(ScriptStatement):
    """ALTER ENDPOINT. ``for_service_broker`` is None without a FOR clause."""

    for_service_broker: bool | None = None
    state: str | None = None
    listener_port: int | None = None
    is_message_forwarding_enabled: bool | None = None
    words = "ALTER ENDPOINT"


@dataclass(frozen=True, kw_only=True, slots=True)
class DropEndpoint(ScriptStatement):
    """DROP ENDPOINT."""

    words = "DROP ENDPOINT"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlterDatabase(ScriptStatement):
    """ALTER DATABASE … SET with a broker option. ``name`` is the database that changes."""

    setting: BrokerSetting
    words = "ALTER DATABASE"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlterDatabaseState(ScriptStatement):
    """ALTER DATABASE … SET with an option that no table holds, such as OFFLINE or READ_ONLY."""

    state: str
    words = "ALTER DATABASE"


@dataclass(frozen=True, kw_only=True, slots=True)
class RenameDatabase(ScriptStatement):
    """ALTER DATABASE … MODIFY NAME, sp_renamedb, and sp_rename of a database."""

    new_name: str
    words = "ALTER DATABASE"


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateDatabase(ScriptStatement):
    """CREATE DATABASE of an empty, new database."""

    words = "CREATE DATABASE"


@dataclass(frozen=True, kw_only=True, slots=True)
class DropDatabase(ScriptStatement):
    """DROP DATABASE. ``if_exists`` is True for a statement with IF EXISTS."""

    if_exists: bool = False
    words = "DROP DATABASE"


@dataclass(frozen=True, kw_only=True, slots=True)
class DetachDatabase(ScriptStatement):
    """sp_detach_db: the database leaves the instance, its files stay."""

    words = "sp_detach_db"


def in_order(problems: Iterable[StatementProblem], file: str) -> tuple[StatementProblem, ...]:
    """Return the problems by line, those of the script's own file first, then file by file as they come up."""
    all_problems = tuple(problems)
    names = dict.fromkeys([file, *(problem.file for problem in all_problems)])
    files = {name: rank for rank, name in enumerate(names)}
    return tuple(sorted(all_problems, key=lambda problem: (files[problem.file], problem.line)))


def quote(value: str) -> str:
    """Return a value as texts show it: printable, in quotes, at most 80 characters."""
    return show_text(value if len(value) <= 80 else value[:80] + "…")


SYNTAX = 102
RESERVED_WORD = 156
JOINED = "it is built by string concatenation, where SQL Server accepts only a literal"

# What these miss may be there, for all that a script says.
_MISSING = frozenset([3701, 5011, 15010, 15151])


class RefusalError(Exception):
    """A statement that cannot be known or that the engine refuses: why, and the engine's number.

    ``by_server``: the engine is sure to refuse it, as where it has a number for that, unless something is missing.
    """

    def __init__(self, why: str, number: int | None = None, *, by_server: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.number = number
        self.by_server = by_server or (number is not None and number not in _MISSING)


class UnfilledError(RefusalError):
    """A name or text that still holds the placeholder of another tool."""


class UntoldError(RefusalError):
    """A statement that presumably succeeds with an unknown result. It is reported and not applied."""


class UnparsedError(RefusalError):
    """A text that SQL Server certainly cannot parse. No statement of its batch runs."""

    def __init__(self, why: str, number: int | None = SYNTAX) -> None:
        super().__init__(why, number, by_server=True)


def length(text: str) -> int:
    """Return the length that SQL Server counts, in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def phrase_unknown(variable: UnknownVariable) -> str:
    """Say that the beginning of a sentence on a place that has no value."""
    if variable.is_of_sqlcmd:
        return f"sqlcmd variable {quote(variable.name)} has no value"
    return f"the placeholder {quote(variable.written)} of a migration tool has no value"


def no_value(variable: UnknownVariable) -> RefusalError:
    """Return the error that a place in a text has no value."""
    # A tool's own statement, such as #{if broker}, is not a name.
    advice = (
        f"give it with -v {variable.name}=VALUE" if " " not in variable.name else "let the tool fill it in first"
    )
    return RefusalError(f"{phrase_unknown(variable)}: {advice}")


def not_filled_in(placeholder: str) -> RefusalError:
    """Return the error that a text still holds the placeholder of another tool."""
    return UnfilledError(f"the placeholder {quote(placeholder)} was not filled in: let its tool do so first")


# What CREATE ROUTE and ALTER ROUTE refuse, under the engine's own numbers (``sys.messages``).
#
# Addresses are read as the tables read them: any case, blanks around and slashes after ignored.


LONGEST_TEXTS = {"SERVICE_NAME": 256, "BROKER_INSTANCE": 128, "ADDRESS": 256, "MIRROR_ADDRESS": 256}
"""The longest text of each option, in UTF-16 units."""

LONGEST_LIFETIME = 2**31 - 1
_EMPTY, _TOO_LONG, _MIRROR_ALONE, _BROKER_ALONE = 9659, 9660, 9661, 9662
_MIRROR_NO_ADDRESS, _BAD_ADDRESS, _TRANSPORT_SERVICE, _LIFETIME, _SAME = (9743, 9744, 9745, 9746, 9747)
_KEYWORDS = (AddressKind.LOCAL, AddressKind.TRANSPORT)


def check_options(options: RouteOptions) -> None:
    """Check each given option by itself. Raises RefusalError."""
    texts = (options.service_name, options.broker_instance, options.address, options.mirror_address)
    for (word, longest), text in zip(LONGEST_TEXTS.items(), texts, strict=True):
        if text is None:
            continue
        if text == "":
            raise RefusalError(f"{word} is empty", _EMPTY)
        if length(text) > longest:
            raise RefusalError(f"{word} is longer than {longest} characters", _TOO_LONG)
    seconds = options.lifetime_seconds
    if seconds is not None and not 1 <= seconds <= LONGEST_LIFETIME:
        raise RefusalError(f"LIFETIME {seconds} is outside 1 to {LONGEST_LIFETIME}", _LIFETIME)
    address, mirror = options.address, options.mirror_address
    if address is not None and kind_of(address) is None:
        raise RefusalError(f"ADDRESS {quote(address)} is not a valid address", _BAD_ADDRESS)
    if mirror is not None and kind_of(mirror) in _KEYWORDS:
        raise RefusalError(f"MIRROR_ADDRESS {quote(mirror)} is not a network address", _MIRROR_NO_ADDRESS)
    if mirror is not None and kind_of(mirror) is None:
        raise RefusalError(f"MIRROR_ADDRESS {quote(mirror)} is not a valid address", _BAD_ADDRESS)


def check_route(
    service_name: str | None, broker_instance: str | None, address: str | None, mirror_address: str | None
) -> None:
    """Check a whole route's options together. Raises RefusalError."""
    nearby = kind_of(address) in _KEYWORDS
    if mirror_address is not None:
        if nearby:
            raise RefusalError(f"a mirror address with ADDRESS {quote(str(address))}", _MIRROR_NO_ADDRESS)
        if service_name is None or broker_instance is None:
            raise RefusalError("MIRROR_ADDRESS without SERVICE_NAME and BROKER_INSTANCE", _MIRROR_ALONE)
        if address is not None and comparable_address(address) == comparable_address(mirror_address):
            raise RefusalError("ADDRESS and MIRROR_ADDRESS are the same", _SAME)
    if broker_instance is not None and service_name is None:
        raise RefusalError("BROKER_INSTANCE without SERVICE_NAME", _BROKER_ALONE)
    if broker_instance is not None and service_name == BROKER_CONFIGURATION_SERVICE:
        why = f"a route to the service {BROKER_CONFIGURATION_SERVICE} cannot have a BROKER_INSTANCE"
        raise RefusalError(why, by_server=True)
    if address is None:
        raise RefusalError("ADDRESS is missing", by_server=True)
    if service_name is not None and kind_of(address) is AddressKind.TRANSPORT:
        raise RefusalError("ADDRESS 'TRANSPORT' with SERVICE_NAME", _TRANSPORT_SERVICE)
