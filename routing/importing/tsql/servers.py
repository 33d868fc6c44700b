"""Servers as ``:connect`` names them, and the instances that these names are for."""

from __future__ import annotations

import re

_PROTOCOL = re.compile(r"^\s*(?:tcp|np|lpc|admin):", re.IGNORECASE)
_PIPE = re.compile(r"\\\\(?P<host>[^\\]+)\\pipe\\(?:MSSQL\$(?P<instance>[^\\]+)\\)?sql\\query", re.IGNORECASE)
_QUOTED = re.compile(r"""\s*("[^"]*"|'[^']*')""")
_LOCAL_HOSTS = frozenset([".", "(local)", "localhost", "127.0.0.1", "::1"])
_DEFAULT_INSTANCE = "MSSQLSERVER"


def read_server(written: str) -> str:
    """Return the instance that the rest of a ``:connect`` line names: without quotes, protocol, port and options.

    >>> read_server("tcp:HUB,1433 -U sa -l 30")
    'HUB'
    """
    written = _PROTOCOL.sub("", written, count=1)
    quoted = _QUOTED.match(written)
    name = quoted.group(1)[1:-1] if quoted else (written.split() or [""])[0]
    name = "" if name.startswith("-") else _PROTOCOL.sub("", name, count=1).strip()
    pipe = _PIPE.fullmatch(name)
    if pipe is not None:
        name = "\\".join(part for part in pipe.group("host", "instance") if part)
    host, _, instance = name.partition(",")[0].strip().partition("\\")
    is_default = instance.casefold() in ("", _DEFAULT_INSTANCE.casefold())
    return host if is_default else f"{host}\\{instance}"


def is_local(server: str) -> bool:
    """Return whether a server is called as the machine that the script runs on."""
    return server.partition("\\")[0].casefold() in _LOCAL_HOSTS


def is_same_server(server: str, instance: str) -> bool:
    """Return whether a server of ``:connect`` is an instance, by name in any case or as the local machine's."""
    server, instance = server.casefold(), instance.casefold()
    return server == instance or (is_local(server) and server.partition("\\")[2] == instance.partition("\\")[2])
