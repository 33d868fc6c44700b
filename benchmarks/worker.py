"""An engine other than Spark, as a process: ``python -m benchmarks.worker ENGINE THREADS TABLES OUT``.

TABLES are the input tables by key, as JSON. The engine writes the table OUT, by so many threads.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module


def main() -> None:
    """Resolve once."""
    engine, threads, tables, out = sys.argv[1:]
    # Polars looks at this when it is imported.
    os.environ["POLARS_MAX_THREADS"] = os.environ["SBROUTE_BENCH_THREADS"] = threads
    import_module(f"benchmarks.with_{engine}").resolve(json.loads(tables), out)


if __name__ == "__main__":
    main()
