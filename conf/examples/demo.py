"""``make demo-import``: a folder of exports checked, then into tables, messages resolved, the correction tried."""

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
    # Only `check` has no configuration.
    over = () if arguments[0] == "check" else ("--config", str(CONFIG))
    status = cli.main([*arguments, *over])
    if status:
        sys.exit(status)


def rows(key: str) -> list[dict[str, Any]]:
    """A table that the commands before have written."""
    from routing.delta import spark_tables
    from routing.sessions.session import start

    config = load_config(str(CONFIG))
    spark = start({})
    location = {**config.tables, **config.kept, **config.output}[key]
    frame = spark_tables.snapshots(spark, {key: location})[key].read(spark)
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


def main() -> None:
    """Check first; then import, resolve, and the correction."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    examples = str(HERE.relative_to(Path.cwd())) if HERE.is_relative_to(Path.cwd()) else str(HERE)
    files = (f"{examples}/exports", f"{examples}/scripts/hub.sql")
    run("check", *files, "--then", f"{examples}/scripts/shop-fix.sql")
    console = Console(width=150, highlight=False)
    console.print("\nThe same with tables, which keep the history of routes, for messages by the million:")
    run("import", "catalog", f"{examples}/exports")
    run("import", "tsql", f"{examples}/scripts/hub.sql", "--instance", "HUB", "--scripted-at", "2025-06-01T08:00Z")
    run("resolve", "--quiet")
    waiting()
    fix = ("import", "tsql", f"{examples}/scripts/shop-fix.sql", "--instance", "SHOP")
    run(*fix, "--scripted-at", "2026-01-05T19:00Z")
    run("resolve", "--quiet", "--as-of", "2026-01-05T19:05Z")


if __name__ == "__main__":
    main()
