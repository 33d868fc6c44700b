"""``sbroute lint PATH…``: exports and scripts as they lie in files."""

from __future__ import annotations

import argparse
import json
from datetime import datetime, timezone
from importlib.util import find_spec
from typing import TYPE_CHECKING

from routing import config
from routing.commands import exports
from routing.commands.common import Console, tell_sentences, variables
from routing.commands.findings import now_of, report, status_of
from routing.document import Block, DocumentHeading, ListItem
from routing.errors import ConfigError, EnvironmentFault, quote

if TYPE_CHECKING:
    from routing.features.lint.custom_rules import CustomRule
    from routing.features.lint.lint_settings import LintSettings
    from routing.features.repository.file_linting import FilesLinted


def run_on_files(options: argparse.Namespace, console: Console) -> int:
    """Lint exports and scripts, and print the findings; raises EnvironmentFault without what reads T-SQL."""
    if find_spec("sqlglot") is None:
        raise EnvironmentFault.no_package("sqlglot", "import")
    now, asked = now_of(options), _section(options)
    from routing.features.check.sources import FileOptions
    from routing.features.repository.file_linting import lint_files

    times = exports.times(options)
    file_options = FileOptions(
        exports.stand_ins(options, times, console),
        times,
        variables(options.variables),
        exports.addresses(options),
        clock=datetime.now(timezone.utc),
    )
    done = lint_files(options.paths, file_options, now=now, settings=asked)
    return tell_files(done, options, console, asked.rules)


def _section(options: argparse.Namespace) -> LintSettings:
    """Return the section lint of a configuration, which need have no other where files are linted.

    Raises ConfigError.
    """
    from routing.features.lint.lint_settings import settings as lint_settings

    file = options.config
    if file is not None and config.is_uri(file):
        raise ConfigError(f"--config {quote(file)} is read by Spark, which PATHs do without", "copy it here")
    return lint_settings(config.load_section(file, "lint", options.overrides), file or "--set", options.rules)


def tell_files(
    done: FilesLinted, options: argparse.Namespace, console: Console, rules: tuple[CustomRule, ...] = ()
) -> int:
    """Print the findings in files, and what could not be judged; return the exit status."""
    from routing.features.check.json_form import gap_object

    findings = list(done.findings)
    if options.format == "json":
        result = {
            "findings": findings,
            "suppressed": len(done.suppressed),
            "not_judged": dict(sorted(done.not_judged.items())),
            "not_known": [gap_object(gap) for gap in done.not_known],
            **{name: list(vars(done)[name]) for name in ("rejected", "not_taken", "left_out", "notes")},
        }
        console.result(json.dumps(result))
        return status_of(findings, options)
    if options.format == "table":
        from routing.features.lint.finding_report import describe_findings

        remarks = _say_not_judged(done)
        console.document(
            describe_findings(findings, len(done.suppressed), rules, lists_all=options.all, remarks=remarks)
        )
    else:
        console.result(report(options, findings, rules))
    not_taken = [f"not taken, {sentence}" for sentence in done.not_taken]
    left_out = [f"left out, {sentence}" for sentence in done.left_out]
    tell_sentences(console, done.rejected, [*not_taken, *left_out, *done.notes])
    return status_of(findings, options)


def _say_not_judged(done: FilesLinted) -> list[Block]:
    """Write how many findings rest on what was not read, and what that is."""
    from routing.features.check.phrases import bounded, gap_sentence
    from routing.features.lint.finding_report import count_codes

    if not done.not_judged:
        return []
    sentences = bounded(map(gap_sentence, done.not_known), len(done.not_known))
    return [
        DocumentHeading(f"Not judged, since they rest on what was not read: {count_codes(done.not_judged)}"),
        *(ListItem(sentence, indent=1) for sentence in sentences),
    ]
