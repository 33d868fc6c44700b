"""Define the configuration as frozen dataclasses, with locations, sizes and times."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from routing import schemas
from routing.errors import ContractError, join_bounded, quote
from routing.terms import AUTO, DEFAULT_BROADCAST_LIMIT, MISSING_ROUTE_NAMESPACE, QUARANTINE, STOP

_SIZE = re.compile(r"\A(\d+)\s*([kmgt]?)i?b?\Z", re.IGNORECASE)
# One slash is enough, as in dbfs:/ of Databricks. A scheme of one letter is a Windows drive.
_URI = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]+:/")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


_DURATION = re.compile(r"\A(\d{1,6})\s*(s|sec|second|m|min|minute|h|hour|d|day|w|week)s?\Z", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def read_duration(text: str) -> timedelta:
    """Return a duration such as ``7 days`` or ``60s``. Raises ValueError."""
    parts = _DURATION.match(text.strip())
    if parts is None or not int(parts[1]):
        raise ValueError(f"{quote(text)} is not a duration such as 7 days or 12 hours")
    return timedelta(seconds=int(parts[1]) * _SECONDS[parts[2][0].lower()])


class ConfigError(ContractError):
    """A fault of the configuration file or of ``--set``."""

    @classmethod
    def too_late(cls, file: str, keys: Sequence[str]) -> ConfigError:
        """Report that Spark had to be started to read the configuration, too early for its settings."""
        return cls(
            f"{quote(file)}: Spark had to be started to read this file, too early for {', '.join(keys)}",
            "copy the file to a local path, or give the settings to spark-submit",
        )

    @classmethod
    def unreadable(cls, file: str, why: str) -> ConfigError:
        """Report that the file is missing or cannot be read."""
        return cls(f"the configuration {quote(file)} cannot be read: {why}", "check --config")

    @classmethod
    def not_utf8(cls, file: str, line: int) -> ConfigError:
        """Report that the file is in another encoding, or is not text."""
        return cls(f"the configuration {quote(file)}, line {line}, is not UTF-8 text", "save the file as UTF-8")

    @classmethod
    def broken_yaml(cls, file: str, line: int | None, why: str) -> ConfigError:
        """Report that the file is not a YAML mapping."""
        where = f"{quote(file)}" if line is None else f"{quote(file)}, line {line}"
        return cls(
            f"the configuration {where} is not valid YAML: {why}", "look at the indentation and quotes there"
        )

    @classmethod
    def faults(cls, file: str, faults: Sequence[str]) -> ConfigError:
        """Report all faults of one file together."""
        return cls(
            f"the configuration {quote(file)} has {join_bounded(faults, 'fault')}",
            "docs/reference/configuration.md has every key",
        )

    @classmethod
    def secrets(cls, file: str, keys: Sequence[str]) -> ConfigError:
        """Report that keys look like secrets, or hold one, without their values."""
        return cls(
            f"the configuration {quote(file)} seems to contain {join_bounded(keys, 'secret')}",
            "remove it, and change it if others may have read it; let the platform give access: an instance"
            " role, a credential provider, the environment, the cluster's secret scope",
        )

    @classmethod
    def now_without_retries(cls) -> ConfigError:
        """Report that only incremental mode tries messages again, at the time of the run."""
        return cls(
            "--now is for resolve.mode: incremental", "other runs judge messages as of --as-of or their own time"
        )

    @classmethod
    def erase_in_full_run(cls) -> ConfigError:
        """Report that only an incremental run has rows of deleted messages to erase."""
        return cls("--erase is for resolve.mode: incremental", "a full run replaces the outputs anyway")

    @classmethod
    def follow_in_full_mode(cls) -> ConfigError:
        """Report that only incremental mode can follow the inputs of a job."""
        return cls("only resolve.mode: incremental can follow new messages", "add --set resolve.mode=incremental")

    @classmethod
    def not_with_follow(cls, option: str) -> ConfigError:
        """Report that an option of a single run cannot be used with --follow."""
        return cls(f"{option} cannot be used with --follow", "each of its runs has its own id and time")

    @classmethod
    def wrong_pause(cls, why: str) -> ConfigError:
        """Report that --every is not a duration."""
        return cls(f"--every: {why}", "such as --every 60s")

    @classmethod
    def overlapping_jobs(cls, faults: Sequence[str]) -> ConfigError:
        """Report that two jobs resolve the same instances."""
        return cls(
            f"two jobs may resolve the same instance: {join_bounded(faults, 'overlap')}",
            "give each job other patterns in resolve.instances",
        )

    @classmethod
    def without_view(cls, file: str) -> ConfigError:
        """Report that the outputs of a job have no view, because they are not names of a catalog."""
        return cls(
            f"the job {quote(file)} has no view: its resolved_routes and runs are not names of a catalog",
            "use catalog names, or routing.current_routes in Python",
        )

    @classmethod
    def no_view_name(cls, text: str) -> ConfigError:
        """Report that a text is not the name of a view in a catalog."""
        return cls(f"--view: {quote(text)} is not a name of a catalog", "such as main.broker.all_routes")

    @classmethod
    def half_a_window(cls) -> ConfigError:
        """Report that a time window needs both ends."""
        return cls("--from and --to belong together", "give both; --from belongs to the window, and --to does not")

    @classmethod
    def no_output(cls, file: str, key: str, command: str) -> ConfigError:
        """Report that no key names the table that a command writes."""
        return cls(
            f"the configuration {quote(file)} has no output.{key}, which {command} writes",
            f"name a location, in the file or with --set output.{key}=…",
        )

    @classmethod
    def no_observed(cls, file: str) -> ConfigError:
        """Report that the configuration has no table of SQL Server's reports."""
        return cls(
            f"the configuration {quote(file)} has no tables.observed_routing, which reconcile reads",
            "name a location, and import events or transmission queues into it",
        )

    @classmethod
    def wrong_setting(cls, key: str, why: str) -> ConfigError:
        """Report that a setting has a value that Spark does not understand."""
        return cls(f"spark: {quote(key)} has an invalid value: {why}", "correct it, or leave the setting out")

    @classmethod
    def hanging_udf(cls, version: str, setting: str) -> ConfigError:
        """Report that a Python UDF over a Delta scan would hang forever on this Spark."""
        return cls(
            f"resolve.dialog_hash: udf would hang on Spark {version}",
            f"set {setting} to false for the session, or use dialog_hash: builtin",
        )

    @classmethod
    def only_with_spark(cls, setting: str, other: str) -> ConfigError:
        """Report that the local engine does not support a setting."""
        return cls(f"the local engine does not support {setting}", f"resolve with --engine spark, {other}")

    @classmethod
    def local_in_session(cls) -> ConfigError:
        """Report that the local engine cannot be used in a Spark session."""
        return cls(
            "resolve.engine: local cannot be used in a Spark session",
            "use sbroute resolve --engine local or routing.resolve_local, or leave resolve.engine out",
        )

    @classmethod
    def only_by_spark(cls, key: str, done: str, why: str) -> ConfigError:
        """Report that the local engine does not read or write a table."""
        return cls(
            f"{key} cannot be {done} by the local engine: {why}",
            "set resolve.engine: spark, or name another table",
        )

    @classmethod
    def only_spark_ranks(cls) -> ConfigError:
        """Report that the local engine does not rank candidates."""
        return cls("the local engine does not rank candidates", "add --set resolve.engine=spark")


@dataclass(frozen=True)
class TableLocation:
    """The location of a table: a path or URI, or a name of the catalog.

    ``is_elsewhere`` is True if the session reads the path from another disk than this machine's (`file_systems`).
    """

    text: str
    is_name: bool = False
    is_elsewhere: bool = False

    @classmethod
    def parse(cls, text: str, folder: str) -> TableLocation:
        """Return the location that a text in a configuration file in ``folder`` names (commands.md)."""
        if is_uri(text):
            return cls(text)
        if not re.search(r"[/\\:]", text) and len(text.split(".")) in (2, 3) and all(text.split(".")):
            return cls(text, is_name=True)
        if is_uri(folder):
            return cls(posixpath.join(folder, text))
        # Normalise it as Spark does: `..` removes the folder before it, even if that is a link.
        return cls(os.path.normpath(Path(folder, text).absolute()))

    def __str__(self) -> str:
        return self.text

    def with_suffix(self, suffix: str) -> TableLocation:
        """Return this location with a suffix at the end of its name."""
        return replace(self, text=self.text.rstrip("/") + suffix)


def size_in_bytes(size: str) -> int:
    """Convert a size such as ``512MB`` to bytes. Units are powers of 1024, as in Spark.

    Raises ValueError if the text is not a size.
    """
    match = _SIZE.match(size.strip())
    if match is None:
        raise ValueError(f"{quote(size)} is not a size such as 512MB")
    return int(match.group(1)) * _UNITS[match.group(2).lower()]


def parse_time(value: object) -> datetime:
    """Return an ISO 8601 time as a datetime in UTC. A time without an offset is UTC.

    Raises ValueError if the value is not a time.
    """
    if isinstance(value, datetime):
        time = value
    elif isinstance(value, date):
        time = datetime(value.year, value.month, value.day)
    elif isinstance(value, str):
        time = _iso_time(value)
    else:
        raise ValueError(f"{quote(value)} is not an ISO 8601 time")
    try:
        return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except OverflowError:
        raise ValueError(f"{quote(value)} is not a time between the years 1 and 9999") from None


def names_zone(text: str) -> bool:
    """Return True if a time has an offset from UTC. Raises ValueError if it is not an ISO 8601 time."""
    return _iso_time(text).tzinfo is not None


def _iso_time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(re.sub(r"[zZ]\Z", "+00:00", text.strip()))
    except ValueError:
        raise ValueError(f"{quote(text)} is not an ISO 8601 time") from None


def is_uri(text: str) -> bool:
    """Return True if a text is a URI that Spark must read, such as ``s3a://bucket/x`` or ``dbfs:/x``."""
    return _URI.match(text) is not None


def folder_of(file: str) -> str:
    """Return the folder of a configuration file, to which its relative paths belong."""
    return posixpath.dirname(file) if is_uri(file) else str(Path(file).absolute().parent)


def path_in(folder: str, text: str) -> str | None:
    """Return the local path of a text in a configuration in ``folder``, or None if it is not a path."""
    if is_uri(text) or "\0" in text or (is_uri(folder) and not Path(text).is_absolute()):
        return None
    return os.path.normpath(Path(folder, text).absolute())


def is_server(text: str) -> bool:
    """Return whether a text is a server's http(s) address, without user, query and invisible characters."""
    try:
        parts = urlsplit(text)
        is_whole = parts.hostname is not None and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return (
        is_whole
        and parts.scheme in ("http", "https")
        and "@" not in parts.netloc
        and re.search(r"[?#\s]", text) is None
        and text.isprintable()
    )


# The keys that a configuration file may have.


INPUTS = {key: key in schemas.INPUTS and key not in schemas.OPTIONAL_INPUTS for key in schemas.TABLES}
"""The tables of section ``tables``, each with whether it is required."""

KEPT = (*schemas.KEPT, *schemas.SEEN)
"""The keys of these tables that ``import`` keeps and ``resolve`` does not decide by."""

_LATER = ("imports", "observed_routing", "messages", "dialogs")


def in_reading_order(keys: Iterable[str]) -> list[str]:
    """Return table keys in the order of opening: the reverse of the order in which an import commits.

    A message is then never decided by routes that are older than its import.

    >>> in_reading_order(["routes", "messages", "services", "dialogs"])
    ['messages', 'dialogs', 'routes', 'services']
    """
    return [key for step in reading_steps(keys) for key in step]


def reading_steps(keys: Iterable[str]) -> list[list[str]]:
    """Return table keys in the order of opening. The last step has those whose order does not matter.

    >>> reading_steps(["routes", "messages", "services", "dialogs"])
    [['messages'], ['dialogs'], ['routes', 'services']]
    """
    locations = list(keys)
    first = [[key] for key in _LATER if key in locations]
    return [*first, [key for key in locations if key not in _LATER]]


JOURNAL = "unfinished_imports"
"""The table in which an import stores its changes first. By default it is next to ``imports``."""

CANDIDATES = "route_candidates"
PATHS = "message_paths"
RECONCILIATION = "reconciliation"
VIEW = "current_routes"
"""The view of a catalog in section ``output``, which is not a table."""
CLUSTER_BY = "cluster_by"
"""The key of section ``output`` with the columns by which ``resolved_routes`` is clustered."""
MOST_CLUSTERED = 4
"""Delta clusters a table by this many columns at most."""
BESIDE = (CANDIDATES, PATHS, RECONCILIATION)
"""The keys of the outputs that ``candidates``, ``trace`` and ``reconcile`` write, and not ``resolve``."""

OUTPUTS = {key: key in schemas.OUTPUTS and key != "pending_messages" for key in (*schemas.OUTPUTS, *BESIDE, VIEW)}
"""The tables and the view of section ``output``, each with whether it is required in every mode."""

SECTIONS = ("tables", "output", "resolve", "dynamic_routing", "lint", "lineage", "spark")


MODES = ("full", "incremental", "window")
"""``full`` decides every message and replaces the outputs. ``incremental`` decides new and delayed messages.
``window`` decides the messages of a time window again, after runs of the other modes."""


def journal_beside(imports: TableLocation | None) -> TableLocation | None:
    """Return the default location of the import journal, or None if ``imports`` has no location."""
    return None if imports is None else imports.with_suffix("_unfinished")


@dataclass(frozen=True)
class ResolveSettings:
    """Section ``resolve``: how messages are resolved.

    ``instances`` has patterns of the instances that a job resolves, or is None for all. With ``on_config_fault``
    quarantine, a faulty row of the configuration or of dialogs excludes only its instance.
    """

    mode: str = "full"
    as_of: datetime | None = None
    dialog_hash: str = "builtin"
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT
    engine: str = AUTO
    duplicates_within: str | None = None
    instances: tuple[str, ...] | None = None
    on_config_fault: str = STOP
    window_from: datetime | None = None
    window_to: datetime | None = None

    @property
    def quarantines(self) -> bool:
        """Whether a faulty row excludes only its instance from the run."""
        return self.on_config_fault == QUARANTINE


@dataclass(frozen=True)
class LineageSettings:
    """Section ``lineage``: the server or file for events of runs, and the names in them.

    ``catalog_namespace`` is the namespace of catalog tables. It defaults to ``namespace``, that of the job.
    """

    url: str | None = None
    file: str | None = None
    namespace: str = "sbroute"
    job: str = "resolve"
    catalog_namespace: str | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether events are sent."""
        return self.url is not None or self.file is not None


@dataclass(frozen=True)
class Config:
    """Hold a checked configuration. `load_config` returns it.

    Args:
        file: its path, for messages.
        tables: locations of the input tables by key (tables.md).
        output: locations of the tables that `resolve` writes, by key.
        resolve: section ``resolve``: mode, decision time, hash, engine.
        missing_route_namespace: the namespace of the event that asks for a route (rule book, section 5).
        spark: settings of a session that is started for it.
        import_tables: locations of the tables that only import writes: ``observed_routing`` and ``imports``.
        journal: the table in which an import stores its changes first, or None if ``imports`` has no location.
        other_outputs: locations of the outputs of other commands, by key.
        view: the catalog name of the view ``current_routes``, or None.
        cluster_by: the columns by which Spark clusters ``resolved_routes``. By default there are none.
        lint: section ``lint`` as read. The command that uses it checks it.
        lineage: section ``lineage``: the destination of events of runs.

    Example:
        >>> config = routing.load_config("job.yaml")
        >>> config.resolve.mode, sorted(config.output)[:2]
        ('full', ['new_route_requests', 'rejected_messages'])
    """

    file: str
    tables: Mapping[str, TableLocation]
    output: Mapping[str, TableLocation]
    resolve: ResolveSettings = field(default_factory=ResolveSettings)
    missing_route_namespace: str = MISSING_ROUTE_NAMESPACE
    spark: Mapping[str, str] = field(default_factory=dict)
    import_tables: Mapping[str, TableLocation] = field(default_factory=dict)
    journal: TableLocation | None = None
    other_outputs: Mapping[str, TableLocation] = field(default_factory=dict)
    view: TableLocation | None = None
    cluster_by: tuple[str, ...] = ()
    # Checked by the command that reads it: routing.lint.lint_settings.
    lint: Any = None
    lineage: LineageSettings = field(default_factory=LineageSettings)

    def placed(self, place: Callable[[str, TableLocation], TableLocation]) -> Config:
        """Return the configuration with each location replaced by the result of ``place``."""

        def of_section(name: str, locations: Mapping[str, TableLocation]) -> dict[str, TableLocation]:
            return {key: place(f"{name}.{key}", location) for key, location in locations.items()}

        return replace(
            self,
            tables=of_section("tables", self.tables),
            import_tables=of_section("tables", self.import_tables),
            journal=None if self.journal is None else place("tables.unfinished_imports", self.journal),
            output=of_section("output", self.output),
            other_outputs=of_section("output", self.other_outputs),
        )

    def output_of(self, key: str, command: str) -> TableLocation:
        """Return the output location of a command. Raises ConfigError if it is missing."""
        location = self.other_outputs.get(key)
        if location is None:
            raise ConfigError.no_output(self.file, key, command)
        return location

    def as_json(self) -> str:
        """Return the configuration as one line of JSON, as table ``runs`` stores it."""
        times = {name: time for name, time in vars(self.resolve).items() if isinstance(time, datetime)}
        # A journal at its default location is not recorded.
        has_own = self.journal is not None and self.journal != journal_beside(self.import_tables.get("imports"))
        journal = {JOURNAL: self.journal} if has_own else {}
        view = {} if self.view is None else {VIEW: self.view}
        layout = {CLUSTER_BY: list(self.cluster_by)} if self.cluster_by else {}
        plain = {
            "tables": {
                key: str(location) for key, location in {**self.tables, **self.import_tables, **journal}.items()
            },
            "output": {
                **{key: str(location) for key, location in {**self.output, **self.other_outputs, **view}.items()},
                **layout,
            },
            "resolve": {**vars(self.resolve), **{name: time.isoformat() for name, time in times.items()}},
            "dynamic_routing": {"missing_route_namespace": self.missing_route_namespace},
            **({} if self.lint is None else {"lint": self.lint}),
            **({"lineage": vars(self.lineage)} if self.lineage.is_wanted else {}),
            "spark": dict(self.spark),
        }
        return json.dumps(plain, sort_keys=True, default=str)
