"""Run one script on a server with Microsoft's driver. Only this module uses the driver."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from routing.errors import EXIT_CONTRACT, EnvironmentFault, InputError, RoutingError, quote

if TYPE_CHECKING:
    from mssql_python import Connection, Cursor

    from routing.importing.servers.result_file import ResultFile

WINDOWS, SQL, ENTRA, ENTRA_INTERACTIVE = "windows", "sql", "entra", "entra-interactive"
_SIGN_IN = {
    WINDOWS: {"Trusted_Connection": "yes"},
    SQL: {},
    # The environment, a managed identity or the Azure command line, whichever is available.
    ENTRA: {"Authentication": "ActiveDirectoryDefault"},
    ENTRA_INTERACTIVE: {"Authentication": "ActiveDirectoryInteractive"},
}
AUTHENTICATIONS = tuple(_SIGN_IN)
"""The methods to sign in to a server."""

_LONGEST_SIGN_IN = 15
# The driver keeps room for so many of the longest rows.
_AT_ONCE = 200
_PROVIDER, _PROVIDER_WITHOUT_LIBRARIES = "MSSQL_PYTHON_NATIVE_PROVIDER", "mssql-odbc"
_NAME_OF_SERVER = re.compile(r"[^;{}=\x00-\x1f]+")
_SOURCE = re.compile(r"(?:\[[^\]\[]*\])*")
_HIDDEN = "…"


@dataclass(frozen=True)
class ServerAccess:
    """The login for servers. ``is_encrypted`` is False only in tests: no option turns it off."""

    authentication: str = WINDOWS
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    trusts_certificate: bool = False
    has_read_intent: bool = False
    is_encrypted: bool = True

    def connection_string(self, server: str) -> str:
        """Return the connection string of the driver, including the password."""
        values = {
            "Server": _braced(server),
            "Database": "master",
            # A scheduler tries again, and a person need not wait.
            "ConnectRetryCount": "0",
            "Encrypt": "yes" if self.is_encrypted else "no",
            **_SIGN_IN[self.authentication],
        }
        if self.trusts_certificate:
            values["TrustServerCertificate"] = "yes"
        if self.has_read_intent:
            values["ApplicationIntent"] = "ReadOnly"
        if self.authentication == SQL:
            values |= {"UID": _braced(self.user or ""), "PWD": _braced(self.password or "")}
        return "".join(f"{key}={value};" for key, value in values.items())

    def without_secret(self, text: str) -> str:
        """Return a text without the password."""
        return text.replace(self.password, _HIDDEN) if self.password else text


class ServerError(RoutingError):
    """The failure to read a server. ``is_lasting`` is True if another try would fail too."""

    def __init__(self, message: str, hint: str | None = None, *, is_lasting: bool = False) -> None:
        super().__init__(message, hint)
        self.is_lasting = is_lasting

    @property
    def exit_code(self) -> int:
        """2 for a fault that lasts, else 3: a scheduler may try again."""
        return EXIT_CONTRACT if self.is_lasting else super().exit_code


def check_server(server: str) -> None:
    """Refuse a text that is not a server name, without showing it. Raises InputError."""
    if not server.strip() or _NAME_OF_SERVER.fullmatch(server) is None:
        hint = "as in HUB, HUB\\SALES or HUB,1435; other parts of a connection string are options of their own"
        raise InputError("--server takes the name of a server", hint)


def check_driver() -> None:
    """Raise EnvironmentFault if the driver is not installed."""
    try:
        import mssql_python
    except ImportError as error:
        raise EnvironmentFault.no_package("mssql-python", "server") from error
    # A connection is used once.
    mssql_python.pooling(enabled=False)


def run_script(
    server: str, access: ServerAccess, script: str, results: ResultFile, seconds: int
) -> tuple[list[str], list[str]]:
    """Run a script as one batch, and write its result sets into a file.

    Returns:
        The errors after which result sets are missing, and the messages that the script printed.

    Raises:
        ServerError: nothing could be read.
        EnvironmentFault: the driver's own libraries are missing.
    """
    connection = _connect(server, access, seconds)
    try:
        connection.timeout = seconds
        faults, messages = _read_all(connection.cursor(), script, results)
    finally:
        _close(connection)
    faults = [access.without_secret(fault) for fault in faults]
    if faults and not results.sets:
        raise ServerError(f"{quote(server)} cannot be read: {faults[0]}")
    return faults, [access.without_secret(message) for message in messages]


def _connect(server: str, access: ServerAccess, seconds: int) -> Connection:
    import mssql_python

    try:
        return mssql_python.connect(
            access.connection_string(server),
            # A transaction that stays open would keep log records of the server.
            autocommit=True,
            attrs_before={mssql_python.SQL_ATTR_LOGIN_TIMEOUT: min(seconds, _LONGEST_SIGN_IN)},
        )
    except (mssql_python.Error, RuntimeError, ValueError) as error:
        raise _describe(server, access, error) from None


def _close(connection: Connection) -> None:
    import mssql_python

    # The server may have gone before.
    with suppress(mssql_python.Error, RuntimeError):
        connection.close()


def _read_all(cursor: Cursor, script: str, results: ResultFile) -> tuple[list[str], list[str]]:
    """Read all result sets. An error of the server ends only its own statement."""
    import mssql_python

    faults = list[str]()
    messages = list[str]()
    step: Callable[[], object] = lambda: cursor.execute(script)  # noqa: E731
    has_failed = False
    while True:
        try:
            if step() in (False, None):
                return faults, messages
            messages += (_text_of(text) for _, text in cursor.messages)
            del cursor.messages[:]
            _read_set(cursor, results)
            has_failed = False
        except mssql_python.Error as error:
            results.drop()
            faults.append(_text_of(error.ddbc_error))
            # The connection is gone, or nothing else comes.
            if has_failed or isinstance(error, mssql_python.OperationalError):
                return faults, messages
            has_failed = True
        step = cursor.nextset


def _read_set(cursor: Cursor, results: ResultFile) -> None:
    # Without columns it is what PRINT or a statement without rows leaves.
    if not cursor.description:
        return
    results.begin([column[0] for column in cursor.description])
    while rows := cursor.fetchmany(_AT_ONCE):
        results.add(rows)
    results.end()


# The driver's errors as sentences with advice.


_UNSIGNED = "Invalid authorization specification"
_UNLOADED = "Failed to load the driver"
_CERTIFICATE = re.compile(r"certificate", re.IGNORECASE)
_ENCRYPTION = re.compile(r"encrypt|\bSSL\b|\bTLS\b", re.IGNORECASE)
_KERBEROS = re.compile(r"SSPI|GSS|Kerberos|\bSPN\b", re.IGNORECASE)
_TIME = re.compile(r"time-?d? ?out|deadline", re.IGNORECASE)


def _text_of(text: str) -> str:
    """Return a text of the driver in one line, without the programs that it came through."""
    source = _SOURCE.match(text)
    return " ".join(text[source.end() if source else 0 :].split())


def _describe(server: str, access: ServerAccess, error: Exception) -> RoutingError:
    reason = getattr(error, "ddbc_error", None) or str(error)
    text = access.without_secret(_text_of(reason))
    if _UNLOADED in text:
        alternative = "" if os.environ.get(_PROVIDER) else f", or set {_PROVIDER}={_PROVIDER_WITHOUT_LIBRARIES}"
        hint = f"install what it needs, on Debian: apt-get install libltdl7 libgssapi-krb5-2{alternative}"
        return EnvironmentFault("the ODBC library of mssql-python cannot be loaded", hint)
    message = f"{quote(server)} cannot be read: {text}"
    if getattr(error, "driver_error", None) == _UNSIGNED:
        return ServerError(message, "see --authentication and --user", is_lasting=True)
    if _CERTIFICATE.search(text):
        hint = "give the server a certificate that this machine trusts, or add --trust-server-certificate"
        return ServerError(message, hint, is_lasting=True)
    if _ENCRYPTION.search(text):
        return ServerError(message, "no connection is made without encryption", is_lasting=True)
    if _KERBEROS.search(text):
        hint = "Windows authentication from Linux needs a Kerberos ticket (kinit), or use --authentication sql"
        return ServerError(message, hint, is_lasting=True)
    hint = "see --time-limit" if _TIME.search(text) else "check the name, the port and the firewall"
    return ServerError(message, hint)


def _braced(value: str) -> str:
    return "{" + value.replace("}", "}}") + "}"
