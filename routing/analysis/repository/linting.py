"""Lint files: from PATHs to findings, each with its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from routing.analysis.check.deciding import Estate
from routing.analysis.check.evidence import Evidence, weigh
from routing.analysis.check.missing import Gap
from routing.analysis.check.sources import Given, Scripts, find_files, read_exports
from routing.analysis.check.subjects import Spot
from routing.analysis.lint.configuration import configuration_of
from routing.analysis.lint.finding import Found
from routing.analysis.lint.linting import find_all
from routing.analysis.lint.options import LintSettings
from routing.analysis.lint.own import find_own
from routing.analysis.lint.reading import READ
from routing.analysis.lint.reporting import full_row, kinds_with, place_of, suppressed_of
from routing.analysis.repository.knowing import Known
from routing.analysis.repository.placing import Places
from routing.analysis.repository.refusals import refused_statements
from routing.errors import InputError, join_bounded, quote
from routing.importing.scripted import phrase
from routing.schemas import INPUTS
from routing.storage.columns import Columns
from routing.storage.times import micros_of

Row = Mapping[str, Any]
_NONE = LintSettings()


@dataclass(frozen=True)
class FilesLinted:
    """What `lint_files` returns.

    findings, suppressed: rows as `lint` has them, and ``file`` and ``line`` (None where there is none), in the
    order of printing. not_judged: how many findings of each code rest on what was not read; not_known: on what.
    rejected (rows of exports), not_taken (statements of which not all is known), left_out (statements about what
    was exported) and notes are sentences.
    """

    findings: Sequence[Row]
    suppressed: Sequence[Row]
    not_judged: Counter[str]
    not_known: Sequence[Gap]
    rejected: Sequence[str]
    not_taken: Sequence[str]
    left_out: Sequence[str]
    notes: Sequence[str]


def lint_files(
    paths: Sequence[str], given: Given, *, now: datetime, settings: LintSettings = _NONE
) -> FilesLinted:
    """Faults and hazards of what exports and scripts say, at one moment, from which scripts are in force.

    ``paths`` are read as `check` reads them; a script of which nothing tells the instance stands for itself, and a
    file that is no script of T-SQL is noted. What rests on something that was not read is no finding. Raises
    InputError for a file that cannot be read, and where there is none; RuleError where a rule of one's own fails.
    """
    evidence = _read(paths, replace(given, by_file=True), now)
    every, not_judged, gaps = _judge(evidence, micros_of(now), settings)
    refused: dict[Found, list[Spot]] = {}
    for found, spot in refused_statements(evidence):
        spots = refused.setdefault(found, [])
        if spot not in spots:
            spots.append(spot)
    places = Places(evidence.spots)
    located: dict[Found, Sequence[Spot | None]] = {one: [places.spot_of(one)] for one in every}
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


def _read(paths: Sequence[str], given: Given, now: datetime) -> Evidence:
    exports, scripts = find_files(paths)
    export, given = read_exports(exports, given)
    every = [*scripts.named, *scripts.lying]
    if not export.rows and not every:
        raise InputError(
            f"there is neither an export nor a script in {join_bounded([quote(path) for path in paths], 'path')}",
            "name files of exports, files that end in .sql, or folders of them",
        )
    # A file in another language is no reason to leave the others alone.
    return weigh(export, Scripts(lying=every), given, now)


def _judge(evidence: Evidence, now: int, settings: LintSettings) -> tuple[set[Found], Counter[str], list[Gap]]:
    """The findings that stand, how many do not, and what these would need."""
    rows, found = evidence.rows, set()
    columns = {key: Columns.of_rows(rows[key], INPUTS[key]) for key in READ if key in rows}
    known, not_judged, gaps = Known(Estate.of(evidence, {}).knowledge), Counter[str](), set()
    for one in find_all(columns, now, settings.expiring_within_days):
        behind = known.gaps_behind(one)
        if behind:
            not_judged[one.code] += 1
            gaps.update(behind)
        else:
            found.add(one)
    if settings.rules:
        found |= find_own(settings.rules, configuration_of(columns, now))
    return found, not_judged, sorted(gaps, key=lambda gap: gap.place)


def _rows(located: Mapping[Found, Sequence[Spot | None]], settings: LintSettings) -> list[Row]:
    kinds = kinds_with(settings.rules)
    rows = []
    for one, spots in located.items():
        for spot in spots:
            file, line = (None, None) if spot is None else spot
            rows.append({**full_row(one, kinds), "file": file, "line": line})
    return sorted(rows, key=place_of)
