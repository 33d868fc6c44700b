"""``sbroute candidates``: each message with every route that matches it, ranked."""

from __future__ import annotations

import argparse
import json
from itertools import chain
from typing import TYPE_CHECKING

from routing.commands import command_context as context
from routing.config import CANDIDATES, ConfigError
from routing.errors import EXIT_DONE

if TYPE_CHECKING:
    from routing.document import Document
    from routing.runs.spark_outputs import WrittenCandidates

_COLUMNS = ("step", "tier", "candidates", "chosen", "alternatives")


def add(commands: context.Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "candidates",
        parents=[common],
        help="which other routes match each message, in what order",
        description="Show which other routes match each message, and in what order the rules"
        " consider them: write a"
        " row for each message and matching route, and replace the table output.route_candidates.",
        example="sbroute candidates --config sbroute-demo/demo.yaml",
    )
    context.add_config(command)
    command.add_argument("--as-of", metavar="TIME", help="one decision time for all messages (ISO 8601)")


def run(options: argparse.Namespace, console: context.Console) -> int:
    """Rank the candidates of all messages, and print their number."""
    as_of = context.moment_or_none(options.as_of, "--as-of")
    settings = context.load(options)
    # Before Spark starts.
    settings.output_of(CANDIDATES, "candidates")
    from routing.runs.engine_choice import SparkReason, choose_engine, find_session_reasons

    needed = SparkReason("the local engine does not rank candidates", ConfigError.only_spark_ranks())
    choice = choose_engine(settings.resolve.engine, chain(find_session_reasons(), [needed]))
    choice.check_installed()
    console.note(str(choice))
    opening = context.opener(settings, options, console)
    spark = opening.spark
    from routing.delta.counted_runs import leave_out_missing
    from routing.runs.spark_outputs import write_candidates

    settings = leave_out_missing(opening, settings)
    console.command_progress.text = "the table of candidates is unchanged or complete (start it again)"
    done = write_candidates(spark, settings, as_of=as_of, progress=console.progress, on_note=opening.on_note)
    for note in done.notes:
        console.note(note)
    notes = context.tell_unfinished(opening, console, settings)
    context.print_result(options, console, lambda: _write_json(done), lambda: _make_document(done), notes)
    return EXIT_DONE


def _make_document(done: WrittenCandidates) -> Document:
    """Describe the numbers of messages and candidates, by step and tier, and the sum of the counts."""
    from routing.document import DataTable, Paragraph, make_columns
    from routing.render.wording import count

    rows = [
        (step.matching_step, step.tier, step.candidates, step.chosen, step.alternatives) for step in done.by_step
    ]
    candidates, chosen = sum(step.candidates for step in done.by_step), sum(one.chosen for one in done.by_step)
    without = done.read - done.rejected - done.ranked
    have = "has" if done.ranked == 1 else "have"
    added = f"{done.ranked:,} with candidates + {without:,} without + {done.rejected:,} rejected"
    read = f"{count(done.read, 'message')} read = {added}; version {done.version} of output.route_candidates"
    hint = "resolve lists the rejected ones with their faults"
    return [
        Paragraph(
            f"{done.ranked:,} of {count(done.read, 'message')} {have} {count(candidates, 'candidate')};"
            f" {chosen:,} of them {'is' if chosen == 1 else 'are'} chosen."
        ),
        DataTable(make_columns(_COLUMNS, _COLUMNS[2:]), rows, "Candidates by the step that they match in"),
        Paragraph(read),
        *([Paragraph(hint)] if done.rejected else []),
    ]


def _write_json(done: WrittenCandidates) -> str:
    """Return one line of JSON: version, read, ranked, rejected, and the candidates of each step and tier."""
    read = {"version": done.version, "read": done.read, "ranked": done.ranked, "rejected": done.rejected}
    return json.dumps({**read, "steps": [vars(step) for step in done.by_step]})
