"""The options of commands that read running servers: which, and how to sign in to them."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from routing.commands.command_context import Console, at_least_one
from routing.errors import InputError
from routing.importing.servers.driver import (
    AUTHENTICATIONS,
    SQL,
    WINDOWS,
    ServerAccess,
    check_driver,
    check_server,
)
from routing.render.wording import count

if TYPE_CHECKING:
    from routing.importing.servers.server_exports import ServersExport

PASSWORD_VARIABLE = "SBROUTE_SQL_PASSWORD"
"""The environment variable with the password of ``--authentication sql``; no option takes one."""
_SECONDS = 120


def add_script_options(command: argparse._ActionsContainer) -> None:
    """Declare the options of the script that exports the views."""
    command.add_argument(
        "--no-people", action="store_true", help="leave out logins, owners, client addresses and the error log"
    )
    command.add_argument(
        "--most-endpoints",
        metavar="N",
        type=at_least_one,
        help="the maximum of conversation endpoints, and of queue rows, for each database (default: 1000000)",
    )


def script_of(options: argparse.Namespace) -> str:
    """Return the script that exports the views."""
    from routing.importing.catalog.query_script import MOST_ENDPOINTS, queries

    most = options.most_endpoints or MOST_ENDPOINTS
    return queries(with_people=not options.no_people, most_endpoints=most)


def add_servers(command: argparse.ArgumentParser, *, required: bool) -> None:
    """Declare the options that name servers and say how to sign in."""
    group = command.add_argument_group("running servers (experimental)")
    group.add_argument(
        "--server",
        metavar="NAME",
        action="append",
        default=[],
        required=required,
        dest="servers",
        help="read this server with Microsoft's driver: HOST, HOST\\INSTANCE or HOST,PORT (repeatable)",
    )
    group.add_argument(
        "--authentication",
        choices=AUTHENTICATIONS,
        default=WINDOWS,
        help="how to sign in (default: windows); the password of sql comes from the environment variable"
        f" {PASSWORD_VARIABLE} or a prompt",
    )
    group.add_argument("--user", metavar="NAME", help="the login of --authentication sql")
    group.add_argument(
        "--trust-server-certificate",
        action="store_true",
        help="accept any certificate: the connection is encrypted, but the server is not verified",
    )
    group.add_argument(
        "--read-intent",
        action="store_true",
        help="connect with ApplicationIntent=ReadOnly; a listener may then choose another replica",
    )
    group.add_argument(
        "--time-limit",
        metavar="SECONDS",
        type=at_least_one,
        default=_SECONDS,
        help=f"give up on a server after this many seconds (default: {_SECONDS})",
    )
    add_script_options(group)


def read_access(options: argparse.Namespace) -> ServerAccess:
    """Return how to sign in to the servers; ask for the password if the environment has none.

    Raises:
        InputError: a name is none, or the login or its password is missing.
        EnvironmentFault: the driver is not installed.
    """
    for server in options.servers:
        check_server(server)
    is_sql = options.authentication == SQL
    if is_sql and options.user is None:
        raise InputError("--authentication sql needs --user NAME")
    if not is_sql and options.user is not None:
        raise InputError("--user is the login of --authentication sql")
    check_driver()
    return ServerAccess(
        options.authentication,
        options.user,
        _read_password(options.user) if is_sql else None,
        trusts_certificate=options.trust_server_certificate,
        has_read_intent=options.read_intent,
    )


def read_servers(
    options: argparse.Namespace, access: ServerAccess, folder: str, console: Console
) -> ServersExport:
    """Read the named servers into a folder. Raises EnvironmentFault, OutputError."""
    from routing.importing.servers.server_exports import export_servers

    servers = list({server.strip().casefold(): server.strip() for server in options.servers}.values())
    with console.during(f"reading {count(len(servers), 'server')}", final_line="servers read"):
        done = export_servers(servers, access, script_of(options), Path(folder), options.time_limit)
    console.command_progress.is_stuck = any(export.is_given_up for export in done.exports)
    return done


def tell_servers(done: ServersExport, console: Console) -> None:
    """Print a warning for each server that was not read, and the other notes."""
    for sentence in done.unread:
        console.note(f"note: {sentence}", "warning")
    for sentence in done.notes:
        console.note(f"note: {sentence}")


def _read_password(user: str) -> str:
    password = os.environ.get(PASSWORD_VARIABLE)
    if password:
        return password
    if sys.stdin is None or not sys.stdin.isatty():
        raise InputError(f"the password of --user is missing: set the environment variable {PASSWORD_VARIABLE}")
    from getpass import getpass

    return getpass(f"Password of {user}: ")
