"""What a T-SQL script says about routing: the statements that count, and what could not be read.

Names are unquoted and spelled as in the script. ``database`` is the context that ``USE`` or the caller set, None
where it cannot be known. Times are aware and UTC, lifetimes seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum

from routing.errors import show_text


@dataclass(frozen=True)
class StatementProblem:
    """Something that could not be known or was refused, and the engine's number if it has one.

    ``counted`` tells a mere remark, on a statement that was read all the same, from a statement left out;
    ``by_server`` that SQL Server is sure to refuse it.
    """

    file: str
    line: int
    why: str
    number: int | None = None
    counted: bool = False
    by_server: bool = False


class GuardSubject(Enum):
    """The subject of a condition; the value is its name in texts."""

    ROUTE = "route"
    SERVICE = "service"
    ENDPOINT = "endpoint"
    BROKER_ENDPOINT = "SERVICE_BROKER endpoint"
    DATABASE = "database"
    BROKER = "enabled broker"


@dataclass(frozen=True)
class ConditionGuard:
    """A condition of an IF: that ``subject`` ``name`` exists, or does not if ``holds`` is false.

    ``database`` is where a route or service is looked for. For BROKER_ENDPOINT, an empty ``name`` is any. For
    BROKER, ``name`` is the database and ``holds`` whether its broker is enabled.
    """

    subject: GuardSubject
    database: str | None
    name: str
    holds: bool

    def inverse(self) -> ConditionGuard:
        """Return the condition of the ELSE branch."""
        return replace(self, holds=not self.holds)


@dataclass(frozen=True)
class RouteOptions:
    """The WITH clause; None = not given. ``lifetime`` is the expiry, so many seconds after the script's time."""

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


@dataclass(frozen=True, kw_only=True)
class ScriptStatement:
    """One statement, at its place.

    ``doubt`` is what only the server knows of whether it runs, where that is taken to be so.
    """

    file: str
    line: int
    database: str | None
    name: str
    doubt: str | None = None

    words = "statement"

    @property
    def title(self) -> str:
        """How texts call this statement: ``CREATE ROUTE 'name'``."""
        return f"{self.words} {quote(self.name)}"


@dataclass(frozen=True, kw_only=True)
class CreateRoute(ScriptStatement):
    """CREATE ROUTE; its options passed the engine's checks."""

    owner: str | None = None
    options: RouteOptions = field(default_factory=RouteOptions)
    words = "CREATE ROUTE"


@dataclass(frozen=True, kw_only=True)
class AlterRoute(ScriptStatement):
    """ALTER ROUTE; only the given options change, and the whole is checked when it is applied."""

    options: RouteOptions = field(default_factory=RouteOptions)
    words = "ALTER ROUTE"


@dataclass(frozen=True, kw_only=True)
class DropRoute(ScriptStatement):
    """DROP ROUTE."""

    words = "DROP ROUTE"


@dataclass(frozen=True, kw_only=True)
class CreateService(ScriptStatement):
    """CREATE SERVICE."""

    owner: str | None = None
    words = "CREATE SERVICE"


@dataclass(frozen=True, kw_only=True)
class DropService(ScriptStatement):
    """DROP SERVICE."""

    words = "DROP SERVICE"


@dataclass(frozen=True, kw_only=True)
class CreateEndpoint(ScriptStatement):
    """CREATE ENDPOINT; one for something else is kept because a later DROP may name it.

    ``state`` is that of STATE, in upper case, STOPPED where it is not given.
    """

    for_service_broker: bool
    state: str = "STOPPED"
    listener_port: int | None = None
    is_message_forwarding_enabled: bool | None = None
    words = "CREATE ENDPOINT"


@dataclass(frozen=True, kw_only=True)
class AlterEndpoint(ScriptStatement):
    """ALTER ENDPOINT; ``for_service_broker`` None where the statement has no FOR clause."""

    for_service_broker: bool | None = None
    state: str | None = None
    listener_port: int | None = None
    is_message_forwarding_enabled: bool | None = None
    words = "ALTER ENDPOINT"


@dataclass(frozen=True, kw_only=True)
class DropEndpoint(ScriptStatement):
    """DROP ENDPOINT."""

    words = "DROP ENDPOINT"


@dataclass(frozen=True, kw_only=True)
class AlterDatabase(ScriptStatement):
    """ALTER DATABASE … SET with a broker option; ``name`` is the database it changes."""

    setting: BrokerSetting
    words = "ALTER DATABASE"


@dataclass(frozen=True, kw_only=True)
class AlterDatabaseState(ScriptStatement):
    """ALTER DATABASE … SET with an option that no table holds, such as OFFLINE or READ_ONLY."""

    state: str
    words = "ALTER DATABASE"


@dataclass(frozen=True, kw_only=True)
class RenameDatabase(ScriptStatement):
    """ALTER DATABASE … MODIFY NAME, sp_renamedb, and sp_rename of a database."""

    new_name: str
    words = "ALTER DATABASE"


@dataclass(frozen=True, kw_only=True)
class CreateDatabase(ScriptStatement):
    """CREATE DATABASE of an empty, new database."""

    words = "CREATE DATABASE"


@dataclass(frozen=True, kw_only=True)
class DropDatabase(ScriptStatement):
    """DROP DATABASE; ``if_exists`` where the statement itself says so."""

    if_exists: bool = False
    words = "DROP DATABASE"


@dataclass(frozen=True, kw_only=True)
class DetachDatabase(ScriptStatement):
    """sp_detach_db: the database leaves the instance, its files stay."""

    words = "sp_detach_db"


def in_order(problems: Iterable[StatementProblem], file: str) -> tuple[StatementProblem, ...]:
    """Return the problems by line, those of the script's own file first, then file by file as they come up."""
    all_problems = tuple(problems)
    files = {
        name: rank for rank, name in enumerate(dict.fromkeys([file, *(problem.file for problem in all_problems)]))
    }
    return tuple(sorted(all_problems, key=lambda problem: (files[problem.file], problem.line)))


def quote(value: str) -> str:
    """Return a value as texts show it: printable, in quotes, at most 80 characters."""
    return show_text(value if len(value) <= 80 else value[:80] + "…")
