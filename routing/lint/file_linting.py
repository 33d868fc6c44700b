"""Lint exports and scripts in PATHs: findings, each with its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Flag, auto
from functools import cached_property
from itertools import chain

from routing.cases.evidence import FileEvidence, Spot, SubjectKey, subject_key, weigh
from routing.cases.exported_files import FileOptions, read_exports, say_unread
from routing.cases.known_estate import OF_ADDRESSES, EstateKnowledge, KnowledgeGap, MissingKnowledge
from routing.cases.message_cases import CheckedEstate
from routing.cases.script_files import find_files
from routing.errors import InputError
from routing.importing.script_rows import phrase
from routing.lint.catalogue import FINDINGS
from routing.lint.custom_rules import configuration_of, find_own
from routing.lint.lint_estate import LintFinding
from routing.lint.lint_settings import LintSettings
from routing.lint.linting import find_all, full_row, kinds_with, place_of, suppressed_of
from routing.lint.server_rules import find_in_servers
from routing.rules.choosing import is_local
from routing.rules.text import collated
from routing.rules.timeline import micros_of
from routing.terms import ReadRow

# Which findings depend on views that were not read: a missing export is never reported as a fault.


class RequiredKnowledge(Flag):
    """The knowledge that a kind of finding requires, about its own place or other instances.

    ``SCOPE`` is its own place without the endpoint, ``INSTANCE`` the same for all databases of the instance.
    """

    ENDPOINT = auto()
    SCOPE = auto()
    INSTANCE = auto()
    SERVICES_OF_ALL = auto()
    ENDPOINTS_OF_ALL = auto()
    PATHS = auto()


_HERE = RequiredKnowledge.ENDPOINT | RequiredKnowledge.SCOPE
# All other rules judge existing rows, whatever else is missing.
_REQUIRED_BY_CODE: Mapping[str, RequiredKnowledge] = {
    **dict.fromkeys(("SBR018", "SBR021", "SBR022", "SBR023", "SBR024", "SBR025"), _HERE),
    **dict.fromkeys(("SBR027", "SBR033", "SBR040"), _HERE),
    **dict.fromkeys(("SBR015", "SBR026", "SBR041", "SBR043"), RequiredKnowledge.PATHS),
    "SBR016": RequiredKnowledge.SERVICES_OF_ALL,
    "SBR020": _HERE | RequiredKnowledge.SERVICES_OF_ALL,
    "SBR032": RequiredKnowledge.ENDPOINTS_OF_ALL,
    "SBR044": RequiredKnowledge.SCOPE,
    "SBR045": RequiredKnowledge.INSTANCE,
    "SBR046": RequiredKnowledge.PATHS | RequiredKnowledge.SERVICES_OF_ALL,
}
_LOST_REQUESTS = "SBR043"


_OF_ENDPOINT = OF_ADDRESSES | {MissingKnowledge.FORWARDING}
_OF_SERVICES = (
    MissingKnowledge.NAME_ONLY,
    MissingKnowledge.SERVICES,
    MissingKnowledge.ALL_SERVICES,
    MissingKnowledge.UNREADABLE_SERVICE,
)


SharedGaps = frozenset[KnowledgeGap]


class FileKnowledge:
    """The views that were read of each instance, and the gaps behind findings."""

    def __init__(self, knowledge: EstateKnowledge) -> None:
        self._knowledge = knowledge
        self._behind: dict[tuple[RequiredKnowledge, str, str | None], list[SharedGaps]] = {}
        gaps: dict[str, list[KnowledgeGap]] = {name: [] for name in knowledge.evidence.instances}
        for gap in knowledge.list_gaps():
            if gap.missing is not MissingKnowledge.ENDPOINTS_OF_DIALOGS:
                gaps[gap.instance].append(gap)
        self._gaps = {name: frozenset(instance_gaps) for name, instance_gaps in gaps.items()}

    def gaps_behind(self, finding: LintFinding) -> list[SharedGaps]:
        """Return the gaps that a finding depends on, as sets. A certain finding has none.

        Findings share these sets, because thousands of findings may each depend on thousands of gaps.
        """
        rests, instance = self._required_knowledge(finding), finding.instance_name
        if rests is None or instance is None or instance not in self._gaps:
            return []
        place = rests, instance, finding.database_name
        if place not in self._behind:
            self._behind[place] = [gaps for gaps in self._find_gaps(*place) if gaps]
        return self._behind[place]

    def _find_gaps(self, rests: RequiredKnowledge, instance: str, database: str | None) -> Iterator[SharedGaps]:
        if RequiredKnowledge.ENDPOINT in rests:
            yield _set_of(self._knowledge.endpoint(instance))
        if RequiredKnowledge.SCOPE in rests:
            yield self._services[instance]
            if database is not None:
                yield _set_of(self._knowledge.routes(instance, database))
        if RequiredKnowledge.INSTANCE in rests:
            yield self._beyond_endpoints[instance]
        if RequiredKnowledge.SERVICES_OF_ALL in rests:
            yield self._services_of_all
        if RequiredKnowledge.ENDPOINTS_OF_ALL in rests:
            yield self._endpoints_of_all
        if RequiredKnowledge.PATHS in rests:
            # Messages reach only instances with a known address.
            yield self._gaps[instance]
            yield self._gaps_of_reached

    @cached_property
    def _services(self) -> dict[str, SharedGaps]:
        return {
            name: _set_of(self._knowledge.databases(name)) | {gap for gap in gaps if gap.missing in _OF_SERVICES}
            for name, gaps in self._gaps.items()
        }

    @cached_property
    def _beyond_endpoints(self) -> dict[str, SharedGaps]:
        return {
            name: frozenset(gap for gap in gaps if gap.missing not in _OF_ENDPOINT)
            for name, gaps in self._gaps.items()
        }

    @cached_property
    def _services_of_all(self) -> SharedGaps:
        return frozenset[KnowledgeGap]().union(*self._services.values())

    @cached_property
    def _endpoints_of_all(self) -> SharedGaps:
        return frozenset[KnowledgeGap]().union(*(_set_of(self._knowledge.endpoint(name)) for name in self._gaps))

    @cached_property
    def _gaps_of_reached(self) -> SharedGaps:
        reached = (gaps for name, gaps in self._gaps.items() if self._knowledge.instances[name].own_addresses)
        return frozenset[KnowledgeGap]().union(*reached)

    def _required_knowledge(self, finding: LintFinding) -> RequiredKnowledge | None:
        """Return the knowledge that a finding requires. A LOCAL route keeps requests in their scope."""
        if finding.code == _LOST_REQUESTS and self._is_local(finding):
            return RequiredKnowledge.SCOPE
        return _REQUIRED_BY_CODE.get(finding.code)

    def _is_local(self, finding: LintFinding) -> bool:
        instance = self._knowledge.instances.get(finding.instance_name or "")
        scope = {} if instance is None else instance.routes.get(finding.database_name or "", {})
        routes = chain.from_iterable(scope.values())
        return any(is_local(route) for route in routes if route.name == finding.object)


def _set_of(gap: KnowledgeGap | None) -> SharedGaps:
    return frozenset() if gap is None else frozenset([gap])


# The file of a finding, and the line of the statement that defines its object.


_NAMED = ("routes", "services", "databases")


class DefinitionPlaces:
    """The places of definitions in files, found for findings."""

    def __init__(self, spots: Mapping[SubjectKey, Spot]) -> None:
        self._spots = spots
        self._by_name: dict[tuple[str, str, str], Spot] = {}
        self._first: dict[str, Spot] = {}
        for key, spot in spots.items():
            if key.name:
                self._by_name.setdefault((key.view, key.instance, key.name), spot)
            self._first.setdefault(key.instance, spot)

    def spot_of(self, finding: LintFinding) -> Spot | None:
        """Return the place of a finding's route, service or database, or else of its instance."""
        instance, database, name = finding.instance_name, finding.database_name, finding.object
        if instance is None:
            return None
        if name:
            # Any database of an instance may hold a service.
            for view in _NAMED:
                of_database = None if view == "databases" else database
                spot = self._spots.get(subject_key(view, instance, of_database, name))
                spot = spot or (database is None and self._by_name.get((view, instance, collated(name)))) or None
                if spot is not None:
                    return spot
        if database:
            exact = [subject_key("databases", instance, None, database)]
            for key in (*exact, *(subject_key(view, instance, database, None) for view in _NAMED)):
                if key in self._spots:
                    return self._spots[key]
        return self._first.get(instance)


# Statements of scripts that SQL Server is sure to refuse, as findings.


# The options of a route: SBR001 to SBR009, which have a number each.
_CODES = {kind.error_number: kind.code for kind in FINDINGS[:9]}
_OTHERS, _UNFILLED = "SBR042", "SBR048"


def refused_statements(evidence: FileEvidence) -> Iterator[tuple[LintFinding, Spot]]:
    """Yield a finding for each of them, with its file and line."""
    for instance, problem in evidence.problems:
        if (problem.by_server or problem.is_unfilled) and not problem.counted:
            code = _UNFILLED if problem.is_unfilled else _CODES.get(problem.number, _OTHERS)
            finding = LintFinding(code, instance, None, None, problem.why, problem.number)
            yield finding, (problem.file, problem.line)


_NONE = LintSettings()


@dataclass(frozen=True)
class FilesLinted:
    """The result of `lint_files`.

    ``findings`` and ``suppressed`` have the rows of `lint` with ``file`` and ``line`` (or None), in the printed
    order. ``not_judged`` counts by code the findings that depend on missing exports, which ``not_known`` lists.
    ``rejected`` (rows of exports), ``not_taken`` (partly unknown statements), ``left_out`` (statements on exported
    objects) and ``notes`` are sentences. ``unread`` has the notes on scripts and exports that are not read.
    ``is_judged`` is false if all rows and statements were refused.
    """

    findings: Sequence[ReadRow]
    suppressed: Sequence[ReadRow]
    not_judged: Counter[str]
    not_known: Sequence[KnowledgeGap]
    rejected: Sequence[str]
    not_taken: Sequence[str]
    left_out: Sequence[str]
    notes: Sequence[str]
    unread: Sequence[str] = ()
    files_read: int = 0
    files_skipped: int = 0
    rows_refused: int = 0
    is_judged: bool = True


def lint_files(
    paths: Sequence[str], options: FileOptions, *, now: datetime, settings: LintSettings = _NONE
) -> FilesLinted:
    """Find faults and hazards in exports and scripts at one moment. Scripts are in force from then on.

    ``paths`` are read as by `check`. A script without an instance is its own instance, and a file that is not
    T-SQL gets a note. Findings that depend on missing exports are left out. Raises InputError if there is no file
    or one cannot be read, and RuleError if a custom rule fails.
    """
    evidence = _read(paths, replace(options, by_file=True), now)
    all_findings, not_judged, gaps = _judge(evidence, micros_of(now), settings)
    refused: dict[LintFinding, list[Spot]] = {}
    for finding, spot in refused_statements(evidence):
        spots = refused.setdefault(finding, [])
        if spot not in spots:
            spots.append(spot)
    places = DefinitionPlaces(evidence.spots)
    located: dict[LintFinding, Sequence[Spot | None]] = {
        finding: [places.spot_of(finding)] for finding in all_findings
    }
    located.update(refused)
    hidden = suppressed_of(located, settings.suppress)
    of_scripts = {
        phrase(problem): problem.by_server or problem.counted or problem.is_unfilled
        for _, problem in evidence.problems
    }
    rejected = [sentence for sentence in evidence.log.rejected if sentence not in of_scripts]
    not_taken = [sentence for sentence, is_told in of_scripts.items() if not is_told]
    statements = sum(script.statements + script.left_out for script in evidence.log.scripts)
    judged = sum(evidence.log.rows_of.values()) + statements
    return FilesLinted(
        _rows({finding: spots for finding, spots in located.items() if finding not in hidden}, settings),
        _rows({finding: located[finding] for finding in hidden}, settings),
        not_judged,
        gaps,
        rejected,
        not_taken,
        evidence.log.left_out,
        evidence.log.notes,
        evidence.log.unread,
        evidence.log.files_read,
        evidence.log.files_skipped,
        sum(evidence.log.rows_rejected.values()),
        is_judged=judged > 0 or bool(refused) or not (rejected or not_taken or evidence.log.unread),
    )


def _read(paths: Sequence[str], options: FileOptions, now: datetime) -> FileEvidence:
    exports, scripts = find_files(paths)
    export, options = read_exports(exports, options)
    if not export.rows and not scripts.all_files:
        raise InputError(
            f"there is neither an export nor a script in {say_unread(paths, [*export.rejected, *export.notes])}",
            "name files of exports, files that end in .sql, or folders of them",
        )
    # A file in another language does not prevent linting the others.
    return weigh(export, replace(scripts, is_lenient=True), options, now)


def _judge(
    evidence: FileEvidence, now: int, settings: LintSettings
) -> tuple[set[LintFinding], Counter[str], list[KnowledgeGap]]:
    """Return the certain findings, the number of uncertain ones by code, and the gaps behind these."""
    columns, findings = evidence.columns, set()
    knowledge, not_judged = FileKnowledge(CheckedEstate.of(evidence, {}).knowledge), Counter[str]()
    gaps = set[SharedGaps]()
    for finding in find_all(columns, now, settings.expiring_within_days):
        gaps_behind_finding = knowledge.gaps_behind(finding)
        if gaps_behind_finding:
            not_judged[finding.code] += 1
            gaps.update(gaps_behind_finding)
        else:
            findings.add(finding)
    findings.update(find_in_servers(evidence.server, now, settings.expiring_within_days))
    if settings.rules:
        findings |= find_own(settings.rules, configuration_of(columns, now))
    return findings, not_judged, sorted(frozenset[KnowledgeGap]().union(*gaps), key=lambda gap: gap.place)


def _rows(located: Mapping[LintFinding, Sequence[Spot | None]], settings: LintSettings) -> list[ReadRow]:
    kinds = kinds_with(settings.rules)
    rows = []
    for finding, spots in located.items():
        for spot in spots:
            file, line = (None, None) if spot is None else spot
            rows.append({**full_row(finding, kinds), "file": file, "line": line})
    return sorted(rows, key=place_of)
