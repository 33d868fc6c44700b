"""``sbroute report``: one page of HTML that shows how the messages of the last run are routed."""

from __future__ import annotations

import argparse
import json

from routing.commands import command_context as context
from routing.document import DocumentHeading, Paragraph, SqlStatement
from routing.errors import EXIT_DONE
from routing.tables.arrow_rows import leave_pandas_out


def add(commands: context.Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "report",
        parents=[common],
        help="an overview on one HTML page",
        description="Write one HTML page that shows how the messages of the last run are routed. The page"
        " loads no other files and works without JavaScript.",
        example="sbroute report --config sbroute-demo/demo.yaml --out report.html",
    )
    context.add_config(command)
    command.add_argument("--out", metavar="FILE", required=True, help="the file to write, replaced as a whole")
    command.add_argument("--now", metavar="TIME", help="ages are as of this time (ISO 8601; default: the clock)")


def run(options: argparse.Namespace, console: context.Console) -> int:
    """Write the page of a report."""
    from routing.views.page import page_file

    page_file.check_packages()
    page_file.check_place(options.out)
    now = context.moment_or_now(options.now, "--now")
    settings = context.load(options)
    leave_pandas_out()
    from routing.views.page.report_answer import state_answer, state_limit
    from routing.views.report.reporting import report

    with context.steps(console) as progress:
        progress("reading")
        opening = context.opener(settings, options, console)
        page_report = report(settings, now=now, opener=opening, progress=progress)
        progress("writing")
        page_file.write_page(page_report, options.out, replacing=console.command_progress.replacing_page)
    notes = context.tell_unfinished(opening, console, settings)
    if options.format == "json":
        summary = {
            "file": options.out,
            "answer": state_answer(page_report),
            "headline": page_report.headline,
            "outcomes": page_report.outcomes,
            "endings": page_report.endings,
            "troubles": [trouble.as_object() for trouble in page_report.troubles or ()],
        }
        console.result(context.with_notes(json.dumps(summary), notes))
    else:
        answer = DocumentHeading(state_answer(page_report), 1)
        sentences = " ".join(filter(None, (page_report.headline, state_limit(page_report))))
        console.document([answer, Paragraph(sentences), SqlStatement(f"written to {options.out}")])
    return EXIT_DONE
