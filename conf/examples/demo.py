"""``make demo-import``: exports and scripts into tables, messages resolved, and why a queue is stuck."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from routing import cli, load_config, show

HERE = Path(__file__).parent
CONFIG = HERE / "import.yaml"
FOLDER = HERE.parents[1] / "build" / "demo-import"
LINE = ("message", "service", "outcome", "reason", "step", "route", "address", "SQL Server says")


def run(*arguments: str) -> None:
    """Show and run one command; the demo ends where it fails."""
    console = Console(width=150, highlight=False)
    console.print(f"\n$ sbroute {' '.join(arguments)}", style="bold", markup=False)
    status = cli.main([*arguments, "--config", str(CONFIG)])
    if status:
        sys.exit(status)


def rows(key: str) -> list[dict[str, Any]]:
    """A table that the commands before have written."""
    from routing.sessions.session import start
    from routing.storage import tables

    config = load_config(str(CONFIG))
    spark = start({})
    location = {**config.tables, **config.kept, **config.output}[key]
    frame = tables.snapshots(spark, {key: location})[key].read(spark)
    return [row.asDict() for row in frame.collect()]


def waiting() -> None:
    """The messages of the queues, with what was decided for each and what SQL Server itself says."""
    said = {(row["instance_name"], row["message_id"]): row["error_number"] for row in rows("observed_routing")}
    decided = sorted(
        rows("resolved_routes"), key=lambda row: (row["outcome"], row["to_service_name"], row["message_id"])
    )
    lines = [
        (
            row["message_id"],
            row["to_service_name"],
            row["outcome"],
            row["reason"],
            row["matching_step"],
            row["route_name"],
            row["address"],
            str(said[row["instance_name"], row["message_id"]] or "nothing"),
        )
        for row in decided
    ]
    Console(width=190, highlight=False).print("", show.table("What waits", LINE, lines))


def near_misses() -> None:
    """Routes whose service name is that of a delayed message but for case or blanks."""
    console = Console(width=150, highlight=False)
    delayed = {row["to_service_name"] for row in rows("resolved_routes") if row["outcome"] == "DELAYED"}
    for service in sorted(delayed):
        for route in rows("routes"):
            named = route["remote_service_name"] or ""
            if named != service and named.strip().lower() == service.strip().lower():
                console.print(
                    f"\nThe messages ask for {service}, but route {route['name']} of {route['database_name']} on"
                    f" {route['instance_name']} is for {named}: service names are compared byte for byte, so they"
                    " fall to AutoCreatedLocal.",
                    markup=False,
                )


def main() -> None:
    """Import, resolve, explain; then the correction."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    examples = str(HERE.relative_to(Path.cwd())) if HERE.is_relative_to(Path.cwd()) else str(HERE)
    run("import", "catalog", f"{examples}/exports")
    run("import", "tsql", f"{examples}/scripts/hub.sql", "--instance", "HUB", "--scripted-at", "2025-06-01T08:00Z")
    run("resolve", "--quiet")
    waiting()
    near_misses()
    fix = ("import", "tsql", f"{examples}/scripts/shop-fix.sql", "--instance", "SHOP")
    run(*fix, "--scripted-at", "2026-01-05T19:00Z")
    run("resolve", "--quiet", "--as-of", "2026-01-05T19:05Z")


if __name__ == "__main__":
    main()
