"""How long ``sbroute explain`` and ``sbroute lint`` take over large tables, each as a whole command.

``python -m benchmarks.analysis`` makes the benchmark's tables where they are missing, explains a message from the
middle of them, and lints their configuration; seconds are those of a process of its own, start-up included.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.shape import Shape
from benchmarks.stored import stored


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status is that of a command that fails."""
    options = _parser().parse_args(arguments)
    shape = Shape(messages=options.messages, routes=options.routes, instances=options.instances)
    config, message = _prepared(shape, Path(options.folder).absolute())
    for command in (["explain", "--message-id", message], ["lint", "--now", "2026-01-06T00:00:00Z"]):
        for _ in range(options.rounds):
            begun = time.monotonic()
            line = [sys.executable, "-m", "routing", *command, "--config", str(config), "--quiet"]
            done = subprocess.run(line, stdout=subprocess.DEVNULL, check=False)
            if done.returncode:
                return done.returncode
            sys.stdout.write(f"{command[0]}: {time.monotonic() - begun:.1f} s\n")
            sys.stdout.flush()
    return 0


def _prepared(shape: Shape, folder: Path) -> tuple[Path, str]:
    """A configuration over the tables, and the id of a message; the session that made them is stopped."""
    from pyspark.sql import functions as F

    from routing.sessions.session import start

    spark = start({})
    try:
        kept = stored(spark, shape, folder)
        messages = spark.read.format("delta").load(kept.tables["messages"])
        # One that every file may have, by what the log says of its least and greatest id.
        (found,) = messages.where(F.col("message_id") > "8").agg(F.min("message_id").alias("id")).collect()
        return kept.config(kept.results / "analysis", "builtin", "512MB"), str(found["id"])
    finally:
        spark.stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.analysis", description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--routes", type=int, default=120_000)
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", default="build/bench", help="where the tables are kept")
    return parser


if __name__ == "__main__":
    sys.exit(main())
