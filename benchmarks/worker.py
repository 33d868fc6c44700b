"""An engine other than Spark, as a process: ``python -m benchmarks.worker ENGINE THREADS TABLES OUT``.

TABLES are the input tables by key, as JSON. The engine writes the table OUT, by so many threads.
"""

from __future__ import annotations

import argparse
import json
import os
from importlib import import_module


def main() -> None:
    """Resolve once."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker", description=__doc__)
    for name in ("engine", "threads", "tables", "out"):
        parser.add_argument(name)
    options = parser.parse_args()
    # Polars looks at this when it is imported.
    os.environ["POLARS_MAX_THREADS"] = os.environ["SBROUTE_BENCH_THREADS"] = options.threads
    import_module(f"benchmarks.with_{options.engine}").resolve(json.loads(options.tables), options.out)


if __name__ == "__main__":
    main()
