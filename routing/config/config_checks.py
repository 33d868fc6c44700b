"""Parsed YAML → a configuration; every fault is collected, so that all can be told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routing.config.config_keys import BESIDE, INPUTS, JOURNAL, KEPT, OUTPUTS, SECTIONS, VIEW
from routing.config.config_values import TableLocation, is_server, parse_time, path_in, size_in_bytes
from routing.config.model import MODES, Config, LineageSettings, ResolveSettings, journal_beside
from routing.errors import quote, unknown_key
from routing.terms import ENGINES, MISSING_ROUTE_NAMESPACE


class ConfigChecker:
    """One pass over the parsed YAML that collects every fault in ``faults``."""

    def __init__(self, values: dict[str, Any], folder: str, faults: list[str]) -> None:
        self._values, self._folder, self._faults = values, folder, faults

    def config(self, file: str) -> Config:
        """Return the checked configuration; only to be used where no fault was collected."""
        self._refuse_unknown(self._values, SECTIONS, "")
        tables = self._locations("tables", tuple(INPUTS), {k for k, v in INPUTS.items() if v})
        journal = tables.pop(JOURNAL, None) or journal_beside(tables.get("imports"))
        outputs = self._locations("output", tuple(OUTPUTS), {k for k, v in OUTPUTS.items() if v})
        self._distinct(tables, {} if journal is None else {JOURNAL: journal}, outputs)
        view = self._view(outputs)
        routing = self._section("dynamic_routing", ("missing_route_namespace",))
        resolve = self._resolve(self._section("resolve", tuple(ResolveSettings.__dataclass_fields__)))
        self._fits_mode(resolve, outputs)
        return Config(
            file=file,
            tables={key: where for key, where in tables.items() if key not in KEPT},
            output={key: where for key, where in outputs.items() if key not in (*BESIDE, VIEW)},
            resolve=resolve,
            missing_route_namespace=self._text(
                routing, "dynamic_routing.missing_route_namespace", MISSING_ROUTE_NAMESPACE
            ),
            spark=self._spark(),
            kept={key: where for key, where in tables.items() if key in KEPT},
            journal=journal,
            beside={key: where for key, where in outputs.items() if key in BESIDE},
            view=view,
            lint=self._values.get("lint"),
            lineage=self._lineage(self._section("lineage", tuple(LineageSettings.__dataclass_fields__))),
        )

    def _refuse_unknown(self, values: Mapping[Any, Any], known_keys: Sequence[str], prefix: str) -> None:
        for key in values:
            if key not in known_keys:
                self._faults.append(unknown_key(f"{prefix}{key}", [prefix + name for name in known_keys]))

    def _section(self, name: str, known_keys: Sequence[str] | None) -> dict[str, Any]:
        section = self._values.get(name)
        if section is None:
            return {}
        if not isinstance(section, dict):
            self._faults.append(f"{name} must be a mapping")
            return {}
        if known_keys is not None:
            self._refuse_unknown(section, known_keys, f"{name}.")
        return section

    def _locations(self, name: str, known_keys: Sequence[str], required: set[str]) -> dict[str, TableLocation]:
        section = self._section(name, known_keys)
        locations = {}
        for key in known_keys:
            value = section.get(key)
            if value is None:
                if key in required:
                    self._faults.append(f"{name}.{key} is missing")
            elif not isinstance(value, str) or not value.strip():
                self._faults.append(f"{name}.{key} must be a path or a table name")
            elif "\0" in value:
                self._faults.append(f"{name}.{key} holds a null byte, which no path or table name can")
            else:
                locations[key] = TableLocation.parse(value, self._folder)
                if "${" in locations[key].text:
                    # Even within the quotes of a name, and not where a path is read without SQL.
                    self._faults.append(f"{name}.{key} holds ${{, which Spark replaces in statements")
        return locations

    def _distinct(
        self,
        tables: Mapping[str, TableLocation],
        journal: Mapping[str, TableLocation],
        outputs: Mapping[str, TableLocation],
    ) -> None:
        """Note each table that a command writes by itself where another stands, which would be lost."""
        used_locations = {str(where): f"tables.{key}" for key, where in tables.items() if key not in KEPT}
        own_locations = {
            f"tables.{key}": where for key, where in {**tables, **journal}.items() if key in (*KEPT, JOURNAL)
        }
        for key, where in {**own_locations, **{f"output.{key}": where for key, where in outputs.items()}}.items():
            if str(where) in used_locations:
                self._faults.append(f"{key} has the location of {used_locations[str(where)]}")
            used_locations.setdefault(str(where), key)

    def _view(self, outputs: Mapping[str, TableLocation]) -> TableLocation | None:
        """Return the view's name, which needs outputs that are names of a catalog as well."""
        view = outputs.get(VIEW)
        if view is None:
            return None
        if not view.is_name:
            self._faults.append(f"output.{VIEW} must be the name of a view in a catalog, such as schema.{VIEW}")
        for key in ("resolved_routes", "runs"):
            if key in outputs and not outputs[key].is_name:
                self._faults.append(f"output.{VIEW} needs an output.{key} that is a name of a catalog as well")
        return view

    def _resolve(self, section: Mapping[str, Any]) -> ResolveSettings:
        default = ResolveSettings()
        as_of = None
        try:
            as_of = None if section.get("as_of") is None else parse_time(section["as_of"])
        except ValueError as error:
            self._faults.append(f"resolve.as_of: {error}")
        limit_value = section.get("broadcast_limit")
        limit = default.broadcast_limit if limit_value is None else str(limit_value)
        try:
            size_in_bytes(limit)
        except ValueError as error:
            self._faults.append(f"resolve.broadcast_limit: {error}")
        return ResolveSettings(
            mode=self._choice(section, "resolve.mode", MODES),
            as_of=as_of,
            dialog_hash=self._choice(section, "resolve.dialog_hash", ("builtin", "udf")),
            broadcast_limit=limit,
            engine=self._engine(section),
        )

    def _engine(self, section: Mapping[str, Any]) -> str | None:
        return None if section.get("engine") is None else self._choice(section, "resolve.engine", ENGINES)

    def _fits_mode(self, resolve: ResolveSettings, outputs: Mapping[str, TableLocation]) -> None:
        """Check that the keys which incremental mode needs are there, and none that it does not use."""
        if resolve.mode != "incremental":
            return
        if resolve.as_of is not None:
            self._faults.append("resolve.as_of cannot be used with resolve.mode: incremental")
        if "pending_messages" not in outputs:
            self._faults.append("output.pending_messages is missing, which resolve.mode: incremental needs")

    def _lineage(self, section: Mapping[str, Any]) -> LineageSettings:
        """Check the section ``lineage``: events go to one place, a server or a file of this machine."""
        keys = LineageSettings.__dataclass_fields__
        lineage_values = {key: text for key in keys if (text := self._words(section, f"lineage.{key}"))}
        if "url" in lineage_values and "file" in lineage_values:
            self._faults.append("lineage.url and lineage.file cannot both be given")
        if "url" in lineage_values and not is_server(lineage_values["url"]):
            self._faults.append(
                f"lineage.url must be the http(s) address of a server, not {quote(lineage_values['url'])}"
            )
        if "file" in lineage_values:
            path = path_in(self._folder, lineage_values["file"])
            if path is None:
                self._faults.append(
                    f"lineage.file must be a path of this machine, not {quote(lineage_values['file'])}"
                )
            lineage_values["file"] = path or lineage_values["file"]
        return LineageSettings(**lineage_values)

    def _words(self, section: Mapping[str, Any], key: str) -> str:
        """Read a text that must not be blank; empty where the key is absent."""
        value = self._text(section, key, "")
        if section.get(key.rpartition(".")[2]) == value and not value.strip():
            self._faults.append(f"{key} must not be empty")
        return value

    def _choice(self, section: Mapping[str, Any], key: str, choices: Sequence[str]) -> str:
        """Return one of a few words; the first is the default."""
        value = self._text(section, key, choices[0])
        if value not in choices:
            self._faults.append(f"{key} must be {' or '.join(choices)}, not {quote(value)}")
        return value

    def _text(self, section: Mapping[str, Any], key: str, default: str) -> str:
        value = section.get(key.rpartition(".")[2])
        if value is None:
            return default
        if not isinstance(value, str):
            self._faults.append(f"{key} must be text, not {quote(value)}")
            return default
        return value

    def _spark(self) -> dict[str, str]:
        settings = {}
        for key, value in self._section("spark", None).items():
            if isinstance(value, dict | list) or value is None:
                self._faults.append(f"spark.{key} must be one value, such as spark.sql.ansi.enabled: true")
            else:
                settings[str(key)] = str(value).lower() if isinstance(value, bool) else str(value)
        return settings
