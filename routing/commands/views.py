"""``sbroute views``: one view of the current rows of several jobs."""

from __future__ import annotations

import argparse

from routing.commands.command_context import Console, Subparsers, load, opener
from routing.config import ConfigError, TableLocation
from routing.errors import EXIT_DONE
from routing.render.wording import count, write_json


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "views",
        parents=[common],
        help="create one view of the current rows of several jobs",
        description="Create or replace one view of the current rows of several jobs that resolve different"
        " instances (resolve.instances). It selects from each job's view current_routes, which the job's runs"
        " update.",
        example="sbroute views --jobs east.yaml west.yaml --view main.broker.all_routes",
    )
    command.add_argument(
        "--jobs", metavar="FILE", nargs="+", required=True, help="the configurations of the jobs (YAML)"
    )
    command.add_argument("--view", metavar="NAME", required=True, help="the view's name in the catalog")


def run(options: argparse.Namespace, console: Console) -> int:
    """Check the jobs, and create the view."""
    jobs = [load(argparse.Namespace(**{**vars(options), "config": file})) for file in options.jobs]
    view = TableLocation.parse(options.view, ".")
    if not view.is_name:
        raise ConfigError.no_view_name(options.view)
    from routing.delta.current_routes_view import show_jobs
    from routing.runs.pipeline import check_apart

    check_apart(jobs)
    selected = show_jobs(opener(jobs[0], options, console), jobs, view)
    names = [str(view_name) for view_name in selected]
    if options.format == "json":
        console.result(write_json({"view": str(view), "selects_from": names}))
    else:
        console.result(f"{view} selects from {count(len(names), 'view')}: {', '.join(names)}")
    return EXIT_DONE
