"""Export several servers at once into a folder, and note each one that could not be read."""

from __future__ import annotations

import re
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from threading import Thread

from routing.errors import OutputError, RoutingError, quote
from routing.importing.servers.driver import ServerAccess, ServerError, run_script
from routing.importing.servers.result_file import ResultFile
from routing.importing.tsql.servers import is_local, split_server
from routing.terms import JsonObject

_MOST_AT_ONCE = 16
_GRACE = 5.0


@dataclass(frozen=True)
class ServerExport:
    """The export of one server. ``file`` is None if the server gave no result.

    ``faults`` describe the unread parts, ``messages`` are the script's output. ``is_lasting`` is True if another
    try would fail too. ``is_given_up`` is True if a thread still hangs in the driver.
    """

    server: str
    file: Path | None = None
    instance_name: str | None = None
    sets: int = 0
    rows: int = 0
    seconds: float = 0
    faults: Sequence[str] = ()
    messages: Sequence[str] = ()
    is_lasting: bool = False
    is_given_up: bool = False

    def as_json(self) -> JsonObject:
        """Convert the export to plain values for ``--format json``."""
        return {
            "server": self.server,
            "instance_name": self.instance_name,
            "file": None if self.file is None else str(self.file),
            "result_sets": self.sets,
            "rows": self.rows,
            "seconds": round(self.seconds, 3),
            "unread": list(self.faults),
        }


@dataclass(frozen=True)
class ServersExport:
    """The exports of all servers, in the order in which they were named."""

    exports: Sequence[ServerExport]

    @property
    def unread(self) -> list[str]:
        """The sentences on unread parts."""
        return [fault for export in self.exports for fault in export.faults]

    @property
    def notes(self) -> list[str]:
        """The sentences on servers with a different instance name, and the script's output."""
        names = [note for export in self.exports for note in _compare_name(export)]
        printed = [f"{quote(export.server)}: {text}" for export in self.exports for text in export.messages]
        return [*names, *_find_doubles(self.exports), *printed]

    def check_any(self) -> None:
        """Raise ServerError if no server was read: exit code 2 if every fault lasts, else 3."""
        if not any(export.file for export in self.exports):
            is_lasting = all(export.is_lasting for export in self.exports)
            raise ServerError("; ".join(self.unread), is_lasting=is_lasting)


def export_servers(
    servers: Sequence[str], access: ServerAccess, script: str, folder: Path, seconds: int, *, grace: float = _GRACE
) -> ServersExport:
    """Run a script on servers, and write the answer of each into a file of a folder.

    A file of an earlier export is replaced after its server has answered. Otherwise it stays unchanged.

    Args:
        servers: their names for the driver, each once.
        access: the method and data to sign in.
        script: the batch of ``import queries``.
        folder: the folder of the files, created if missing.
        seconds: the time limit of each server.
        grace: the seconds after the limit before the command abandons a hanging driver.

    Returns:
        The exports, including the failed ones.

    Raises:
        EnvironmentFault: libraries that the driver needs are missing.
        OutputError: the folder cannot be written.
    """
    names = _name_files(servers)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with scratch_folder(folder) as parts:
            reads = {
                server: partial(_read, server, access, script, Path(parts, f"{name}.part"), seconds)
                for server, name in names.items()
            }
            outcomes = dict(_run_all(reads, seconds + grace))
            return ServersExport([_put(outcomes[server], folder / names[server]) for server in servers])
    except OSError as error:
        raise OutputError.folder_not_writable(str(folder), error.strerror or str(error)) from error


_SCRATCH = set[str]()


@contextmanager
def scratch_folder(within: Path | None = None) -> Iterator[str]:
    """Yield a new folder and remove it at the end, even if an abandoned thread still writes there."""
    with TemporaryDirectory(dir=within, prefix=".sbroute-", ignore_cleanup_errors=True) as folder:
        _SCRATCH.add(folder)
        try:
            yield folder
        finally:
            _SCRATCH.discard(folder)


def remove_scratch() -> None:
    """Remove the folders of an interrupted command."""
    for folder in tuple(_SCRATCH):
        shutil.rmtree(folder, ignore_errors=True)


_Outcome = ServerExport | RoutingError | OSError


def _read(server: str, access: ServerAccess, script: str, part: Path, limit: int) -> _Outcome:
    """Read one server in a separate thread, and return an error that ends the command."""
    started = time.monotonic()
    try:
        with closing(ResultFile(part)) as results:
            faults, messages = run_script(server, access, script, results, limit)
    except ServerError as error:
        seconds = time.monotonic() - started
        return ServerExport(server, seconds=seconds, faults=[str(error)], is_lasting=error.is_lasting)
    except (RoutingError, OSError) as error:
        return error
    return ServerExport(
        server,
        part,
        results.instance_name,
        results.sets,
        results.rows,
        time.monotonic() - started,
        [f"{quote(server)} was only partly read: {fault}" for fault in faults],
        messages,
    )


def _run_all(reads: Mapping[str, partial[_Outcome]], limit: float) -> Iterator[tuple[str, ServerExport]]:
    """Yield the outcome of each read once it is done or given up. Raises RoutingError, OSError."""
    waiting, deadlines = list(reads), dict[str, float]()
    done: Queue[tuple[str, _Outcome]] = Queue()
    while waiting or deadlines:
        while waiting and len(deadlines) < _MOST_AT_ONCE:
            server = waiting.pop(0)
            deadlines[server] = time.monotonic() + limit
            # A thread that hangs in the driver must not keep the process from ending.
            Thread(target=lambda server: done.put((server, reads[server]())), args=(server,), daemon=True).start()
        try:
            server, outcome = done.get(timeout=max(0.0, min(deadlines.values()) - time.monotonic()))
        except Empty:
            server = min(deadlines, key=deadlines.__getitem__)
            text = f"{quote(server)} cannot be read: no answer within {limit:g} s (see --time-limit)"
            outcome = ServerExport(server, seconds=limit, faults=[text], is_given_up=True)
        if not isinstance(outcome, ServerExport):
            raise outcome
        # One that was given up may answer later.
        if deadlines.pop(server, None) is not None:
            yield server, outcome


def _put(export: ServerExport, file: Path) -> ServerExport:
    """Move an export to its final file, or report that a file of an earlier export remains."""
    if export.file is not None:
        export.file.replace(file)
        return replace(export, file=file)
    if not file.exists():
        return export
    return replace(export, faults=[f"{fault}; {quote(file)} is from an earlier export" for fault in export.faults])


# Names of servers as file names, and compared with the names of their instances.


_NOT_IN_FILES = re.compile(r"[^\w.$-]+")
_PROTOCOL = re.compile(r"(?:tcp|np|lpc|admin):", re.IGNORECASE)


def _name_files(servers: Sequence[str]) -> dict[str, str]:
    """Return the name of each server's file. A dollar sign replaces the backslash of a named instance."""
    names: dict[str, str] = {}
    uses = Counter[str]()
    for server in servers:
        # import passes over names that begin with a dot or an underscore.
        name = _NOT_IN_FILES.sub("_", _PROTOCOL.sub("", server).replace("\\", "$")).lstrip("._") or "server"
        uses[name.casefold()] += 1
        number = uses[name.casefold()]
        names[server] = f"{name}.csv" if number == 1 else f"{name}-{number}.csv"
    return names


def _compare_name(export: ServerExport) -> Iterator[str]:
    """Note an instance that calls itself otherwise: an alias or listener led there, or a mistyped name."""
    server, instance = _PROTOCOL.sub("", export.server).strip(), export.instance_name
    if instance is None or is_local(server) or _is_address(split_server(server).host):
        return
    given_name, own_name = (_parts(name) for name in (server, instance))
    # A port leads to a named instance of any name.
    if given_name[0] != own_name[0] or (given_name[1] != own_name[1] and "," not in server):
        yield f"{quote(export.server)} connected to the instance {quote(instance)}"


def _parts(name: str) -> tuple[str, str]:
    host, instance, _ = split_server(name.casefold())
    return host.partition(".")[0], instance


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _find_doubles(exports: Sequence[ServerExport]) -> Iterator[str]:
    servers: dict[str, list[str]] = defaultdict(list)
    for export in exports:
        if export.instance_name is not None:
            servers[export.instance_name].append(quote(export.server))
    for instance, names in servers.items():
        if len(names) > 1:
            yield f"{' and '.join(names)} are the same instance {quote(instance)}"
