"""Lint files: from PATHs to findings, each with its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from routing.errors import InputError, join_bounded, quote
from routing.features.check.evidence import FileEvidence, weigh
from routing.features.check.message_results import CheckedEstate
from routing.features.check.missing_knowledge import KnowledgeGap
from routing.features.check.sources import FileOptions, ScriptFiles, find_files, read_exports
from routing.features.check.subjects import Spot
from routing.features.lint.configuration import configuration_of
from routing.features.lint.custom_rules import find_own
from routing.features.lint.finding_rows import full_row, kinds_with, place_of, suppressed_of
from routing.features.lint.lint_finding import LintFinding
from routing.features.lint.lint_settings import LintSettings
from routing.features.lint.lint_tables import READ
from routing.features.lint.linting import find_all
from routing.features.repository.definition_places import DefinitionPlaces
from routing.features.repository.file_knowledge import FileKnowledge
from routing.features.repository.refused_statements import refused_statements
from routing.importing.script_rows import phrase
from routing.schemas import INPUTS
from routing.tables.table_columns import TableColumns
from routing.tables.times import micros_of

Row = Mapping[str, Any]
_NONE = LintSettings()


@dataclass(frozen=True)
class FilesLinted:
    """The result of `lint_files`.

    findings, suppressed: rows as `lint` has them, and ``file`` and ``line`` (None where there is none), in the
    order of printing. not_judged: how many findings of each code rest on what was not read; not_known: on what.
    rejected (rows of exports), not_taken (statements of which not all is known), left_out (statements about what
    was exported) and notes are sentences.
    """

    findings: Sequence[Row]
    suppressed: Sequence[Row]
    not_judged: Counter[str]
    not_known: Sequence[KnowledgeGap]
    rejected: Sequence[str]
    not_taken: Sequence[str]
    left_out: Sequence[str]
    notes: Sequence[str]


def lint_files(
    paths: Sequence[str], options: FileOptions, *, now: datetime, settings: LintSettings = _NONE
) -> FilesLinted:
    """Find faults and hazards in exports and scripts, at one moment, from which scripts are in force.

    ``paths`` are read as `check` reads them; a script of which nothing tells the instance stands for itself, and a
    file that is no script of T-SQL is noted. What rests on something that was not read is no finding. Raises
    InputError for a file that cannot be read, and where there is none; RuleError where a custom rule fails.
    """
    evidence = _read(paths, replace(options, by_file=True), now)
    every, not_judged, gaps = _judge(evidence, micros_of(now), settings)
    refused: dict[LintFinding, list[Spot]] = {}
    for finding, spot in refused_statements(evidence):
        spots = refused.setdefault(finding, [])
        if spot not in spots:
            spots.append(spot)
    places = DefinitionPlaces(evidence.spots)
    located: dict[LintFinding, Sequence[Spot | None]] = {one: [places.spot_of(one)] for one in every}
    located.update(refused)
    hidden = suppressed_of(located, settings.suppress)
    of_scripts = {phrase(problem): problem.by_server or problem.counted for _, problem in evidence.problems}
    return FilesLinted(
        _rows({one: spots for one, spots in located.items() if one not in hidden}, settings),
        _rows({one: located[one] for one in hidden}, settings),
        not_judged,
        gaps,
        [sentence for sentence in evidence.rejected if sentence not in of_scripts],
        [sentence for sentence, is_told in of_scripts.items() if not is_told],
        evidence.left_out,
        evidence.notes,
    )


def _read(paths: Sequence[str], options: FileOptions, now: datetime) -> FileEvidence:
    exports, scripts = find_files(paths)
    export, options = read_exports(exports, options)
    every = [*scripts.named, *scripts.lying]
    if not export.rows and not every:
        raise InputError(
            f"there is neither an export nor a script in {join_bounded([quote(path) for path in paths], 'path')}",
            "name files of exports, files that end in .sql, or folders of them",
        )
    # A file in another language is no reason to leave the others alone.
    return weigh(export, ScriptFiles(lying=every), options, now)


def _judge(
    evidence: FileEvidence, now: int, settings: LintSettings
) -> tuple[set[LintFinding], Counter[str], list[KnowledgeGap]]:
    """Return the findings that stand, how many do not, and what these would need."""
    rows, findings = evidence.rows, set()
    columns = {key: TableColumns.of_rows(rows[key], INPUTS[key]) for key in READ if key in rows}
    knowledge, not_judged, gaps = FileKnowledge(CheckedEstate.of(evidence, {}).knowledge), Counter[str](), set()
    for one in find_all(columns, now, settings.expiring_within_days):
        behind = knowledge.gaps_behind(one)
        if behind:
            not_judged[one.code] += 1
            gaps.update(behind)
        else:
            findings.add(one)
    if settings.rules:
        findings |= find_own(settings.rules, configuration_of(columns, now))
    return findings, not_judged, sorted(gaps, key=lambda gap: gap.place)


def _rows(located: Mapping[LintFinding, Sequence[Spot | None]], settings: LintSettings) -> list[Row]:
    kinds = kinds_with(settings.rules)
    rows = []
    for one, spots in located.items():
        for spot in spots:
            file, line = (None, None) if spot is None else spot
            rows.append({**full_row(one, kinds), "file": file, "line": line})
    return sorted(rows, key=place_of)
