"""A whole configuration as frozen dataclasses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from routing.config.config_values import TableLocation
from routing.errors import ConfigError
from routing.terms import DEFAULT_BROADCAST_LIMIT, MISSING_ROUTE_NAMESPACE

# The keys that a configuration file may have.


INPUTS = {
    "routes": True,
    "databases": True,
    "services": True,
    "instances": True,
    "messages": True,
    "dialogs": False,
    "route_requests": False,
    "observed_routing": False,
    "imports": False,
    "unfinished_imports": False,
}
"""The tables of section ``tables``, each with whether it is required."""

KEPT = ("observed_routing", "imports")
"""Those of them that ``import`` keeps and ``resolve`` does not read."""

_LATER = ("imports", "observed_routing", "messages", "dialogs")


def in_reading_order(keys: Iterable[str]) -> list[str]:
    """Return keys of tables in the order in which they are opened: what an import commits last comes first.

    So no message is decided by routes that are older than the message's import.

    >>> in_reading_order(["routes", "messages", "services", "dialogs"])
    ['messages', 'dialogs', 'routes', 'services']
    """
    return sorted(keys, key=lambda key: _LATER.index(key) if key in _LATER else len(_LATER))


JOURNAL = "unfinished_imports"
"""The table in which an import stores what it is about to write; beside ``imports`` if it is not given."""

OUTPUTS = {
    "resolved_routes": True,
    "new_route_requests": True,
    "rejected_messages": True,
    "runs": True,
    "pending_messages": False,
    "route_candidates": False,
    "message_paths": False,
    "reconciliation": False,
    "current_routes": False,
}
"""The tables and the view of section ``output``, each with whether it is required in every mode."""

CANDIDATES = "route_candidates"
PATHS = "message_paths"
RECONCILIATION = "reconciliation"
VIEW = "current_routes"
"""The view of a catalog in section ``output``, which is no table."""
BESIDE = (CANDIDATES, PATHS, RECONCILIATION)
"""Those of them that ``candidates``, ``trace`` and ``reconcile`` write, and ``resolve`` does not know."""

SECTIONS = ("tables", "output", "resolve", "dynamic_routing", "lint", "lineage", "spark")


MODES = ("full", "incremental")
"""Every message, the outputs replaced as a whole; or what is new since the last run, and what is delayed."""


def journal_beside(imports: TableLocation | None) -> TableLocation | None:
    """Return the default location of the import journal; None where ``imports`` has no location."""
    return None if imports is None else imports.with_suffix("_unfinished")


@dataclass(frozen=True)
class ResolveSettings:
    """Section ``resolve``: how messages are resolved.

    ``engine`` is None where none is named: then it is Spark, or local where no Spark is installed.
    """

    mode: str = "full"
    as_of: datetime | None = None
    dialog_hash: str = "builtin"
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT
    engine: str | None = None


@dataclass(frozen=True)
class LineageSettings:
    """Section ``lineage``: where the event of a run is sent, to a server or a file, and by which names.

    ``catalog_namespace`` is that of the tables that a catalog names; ``namespace``, that of the job, if not given.
    """

    url: str | None = None
    file: str | None = None
    namespace: str = "sbroute"
    job: str = "resolve"
    catalog_namespace: str | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether anything is to be sent."""
        return self.url is not None or self.file is not None


@dataclass(frozen=True)
class Config:
    """Hold a whole checked configuration, as `load_config` reads it.

    Args:
        file: where it comes from, for messages alone.
        tables: locations of the input tables by key (tables.md).
        output: locations of the tables that `resolve` writes, by key.
        resolve: section ``resolve``: mode, decision time, hash, engine.
        missing_route_namespace: the namespace of the event that asks for a route (rule book, section 5).
        spark: settings of a session that is started for it.
        kept: locations of the tables that import keeps for other commands: ``observed_routing`` and ``imports``.
        journal: where an import stores its changes before it writes them; None where ``imports`` has no location.
        beside: locations of the outputs of other commands, by key.
        view: the catalog's name of the view ``current_routes``; None where there is none.
        lint: section ``lint`` as it was read; the command that uses it checks it.
        lineage: section ``lineage``: where the event of a run is sent.

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
    kept: Mapping[str, TableLocation] = field(default_factory=dict)
    journal: TableLocation | None = None
    beside: Mapping[str, TableLocation] = field(default_factory=dict)
    view: TableLocation | None = None
    # Checked by the command that reads it: routing.features.lint.lint_settings.
    lint: Any = None
    lineage: LineageSettings = field(default_factory=LineageSettings)

    def placed(self, place: Callable[[str, TableLocation], TableLocation]) -> Config:
        """Return the configuration with each location replaced by ``place``'s for its key and itself."""

        def of_section(name: str, locations: Mapping[str, TableLocation]) -> dict[str, TableLocation]:
            return {key: place(f"{name}.{key}", location) for key, location in locations.items()}

        return replace(
            self,
            tables=of_section("tables", self.tables),
            kept=of_section("tables", self.kept),
            journal=None if self.journal is None else place("tables.unfinished_imports", self.journal),
            output=of_section("output", self.output),
            beside=of_section("output", self.beside),
        )

    def output_of(self, key: str, command: str) -> TableLocation:
        """Return the location of a command's own output. Raises ConfigError where there is none."""
        location = self.beside.get(key)
        if location is None:
            raise ConfigError.no_output(self.file, key, command)
        return location

    def as_json(self) -> str:
        """Return the configuration as one line of JSON, as the ``runs`` table keeps it."""
        as_of = self.resolve.as_of
        # A journal that has no key of its own needs none in the record either.
        has_own = self.journal is not None and self.journal != journal_beside(self.kept.get("imports"))
        journal = {JOURNAL: self.journal} if has_own else {}
        view = {} if self.view is None else {VIEW: self.view}
        plain = {
            "tables": {key: str(where) for key, where in {**self.tables, **self.kept, **journal}.items()},
            "output": {key: str(where) for key, where in {**self.output, **self.beside, **view}.items()},
            "resolve": {**vars(self.resolve), "as_of": as_of and as_of.isoformat()},
            "dynamic_routing": {"missing_route_namespace": self.missing_route_namespace},
            **({} if self.lint is None else {"lint": self.lint}),
            **({"lineage": vars(self.lineage)} if self.lineage.is_wanted else {}),
            "spark": dict(self.spark),
        }
        return json.dumps(plain, sort_keys=True, default=str)
