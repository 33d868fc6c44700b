"""Read the servers that ``:connect`` and ``--instance`` name, and find the instances that these are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from routing.importing.tsql.vocabulary import INVISIBLE, VARIABLE
from routing.rules import text

_PROTOCOL = re.compile(r"^\s*(?:tcp|np|lpc|admin):", re.IGNORECASE)
_PIPE = re.compile(r"\\\\(?P<host>[^\\]+)\\pipe\\(?:MSSQL\$(?P<instance>[^\\]+)\\)?sql\\query", re.IGNORECASE)
_QUOTED = re.compile(r"""\s*("[^"]*"|'[^']*')""")
_COMMA = re.compile(r"(?<!\s)\s*,\s*(?=[0-9])")
_LOCAL_HOSTS = frozenset([".", "(local)", "localhost", "127.0.0.1", "::1"])
_PORTS = 65_536
_DEFAULT_INSTANCE, _DEFAULT_PORT = "mssqlserver", "1433"
# Letters and digits of any language, and the signs that names of machines and instances have. A name does not
# begin with a hyphen, as options do, and a blank would end it.
_CONNECTABLE = re.compile(
    r"(?:\(local(?:db)?\)|\[?[0-9a-f]*:[0-9a-f:.]+(?:%\w+)?\]?|[\w.][\w.\-&#@$]*)(?:\\\w[\w\-&#@$]*)?(?:\s*,\s*[0-9]{1,5})?",
    re.IGNORECASE,
)


class ServerParts(NamedTuple):
    """The parts of a server's name. The default instance is empty, and so is its port 1433."""

    host: str
    instance: str = ""
    port: str = ""

    def __str__(self) -> str:
        instance, port = self.instance and f"\\{self.instance}", self.port and f",{self.port}"
        return f"{self.host}{instance}{port}" if self.host else ""


def split_server(name: str) -> ServerParts:
    """Return the parts of a server's name. A named instance has no default port."""
    server, _, port = name.partition(",")
    host, _, instance = server.strip().partition("\\")
    instance = "" if instance.casefold() == _DEFAULT_INSTANCE else instance
    port = port.strip()
    port = port.lstrip("0") if port.isdecimal() else port
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    return ServerParts(host, instance, "" if port == _DEFAULT_PORT and not instance else port)


def read_server(written: str) -> str:
    """Return the server that the rest of a ``:connect`` line names: no quotes, protocol, options or default port.

    >>> read_server("tcp:HUB,1433 -U sa -l 30"), read_server("HUB, 14331")
    ('HUB', 'HUB,14331')
    """
    written = _PROTOCOL.sub("", written, count=1)
    quoted = _QUOTED.match(written)
    name = quoted.group(1)[1:-1] if quoted else (_COMMA.sub(",", written).split() or [""])[0]
    name = "" if name.startswith("-") else _PROTOCOL.sub("", name, count=1).strip()
    pipe = _PIPE.fullmatch(name)
    if pipe is not None:
        name = "\\".join(part for part in pipe.group("host", "instance") if part)
    return str(split_server(name))


def instance_name(written: str) -> str:
    """Return the name under which an instance is stored. A text that is not a server name stays unchanged.

    >>> instance_name("tcp:HUB,1433"), instance_name("the hub")
    ('HUB', 'the hub')
    """
    name = _PROTOCOL.sub("", written, count=1)
    return read_server(name) if is_server(name) else written


def is_server(name: str) -> bool:
    """Return whether a text can be the name of a server.

    >>> is_server("HUB,1435"), is_server("HUB;"), is_server("HUB,99999")
    (True, False, False)
    """
    port = split_server(name).port
    is_port = not port or (port.isdecimal() and int(port) < _PORTS)
    return is_port and any(form.fullmatch(name) for form in (_CONNECTABLE, _PIPE))


def write_server(instance: str) -> str | None:
    """Return an instance's name for ``:connect``, or None for a text that is not a server name.

    >>> write_server("HUB,1435"), write_server("the hub")
    ('HUB,1435', None)
    """
    is_read_back = str(split_server(instance)) in (instance, instance.removesuffix(f",{_DEFAULT_PORT}"))
    is_server = _CONNECTABLE.fullmatch(instance) is not None and is_read_back
    return None if not is_server or VARIABLE.search(instance) or INVISIBLE.search(instance) else instance


_NO_ADDRESSES: Mapping[str, Sequence[str]] = {}


def find_instance(
    server: str, instances: Iterable[str], addresses: Mapping[str, Sequence[str]] = _NO_ADDRESSES
) -> str | None:
    """Return the instance that a server is: by its name in any case, else by an address.

    ``addresses`` are those of instances, tcp://HOST:PORT. A host without a port is the only default instance that
    has it in an address. A server with a port needs an address with the same port.
    """
    names = list(instances)
    spelled = {instance_name(name).casefold(): name for name in reversed(names)}
    spelled.update({name.casefold(): name for name in names})
    own_name = spelled.get(server.casefold()) or spelled.get(instance_name(server).casefold())
    if own_name is not None:
        return own_name
    parts = split_server(server)
    if parts.instance or is_local(server):
        return None
    owners = {
        name
        for name, instance_addresses in addresses.items()
        if any(_is_at(parts, name, address) for address in instance_addresses)
    }
    return owners.pop() if len(owners) == 1 else None


def _is_at(server: ServerParts, instance: str, address: str) -> bool:
    if (text.host(address) or "").strip("[]") != server.host.casefold():
        return False
    if server.port:
        return text.port(address) == server.port
    own_parts = split_server(instance)
    return not own_parts.instance and not own_parts.port


def is_local(server: str) -> bool:
    """Return whether a server is called as the machine that the script runs on."""
    return split_server(server).host.casefold() in _LOCAL_HOSTS


def is_same_server(server: str, instance: str) -> bool:
    """Return whether a server is an instance, by name in any case, or as the local machine's of the same port."""
    if find_instance(server, [instance]) is not None:
        return True
    server_parts, instance_parts = split_server(server.casefold()), split_server(instance.casefold())
    return is_local(server) and server_parts[1:] == instance_parts[1:]
