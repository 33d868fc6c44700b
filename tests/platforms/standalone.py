"""A standalone cluster on this machine: a master, and workers of one core each."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.platforms.processes import answer, free_port, running, until


@dataclass
class Standalone:
    """A master with its workers. ``folder`` has their logs, and a folder for the executors of each."""

    master: str
    ui: str
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def alive(self) -> int:
        """How many workers the master counts on."""
        state = answer(f"{self.ui}/json/")
        return int(json.loads(state)["aliveworkers"]) if state else 0


def home() -> Path:
    """Where the installed pyspark keeps its scripts and JARs."""
    import pyspark

    return Path(pyspark.__file__).parent


@contextlib.contextmanager
def standalone(folder: Path, workers: int, memory: str = "1500m") -> Iterator[Standalone]:
    """Start a cluster with workers (worker-0, worker-1 and so on), and end all its processes afterwards."""
    port, ui = free_port(), free_port()
    found = Standalone(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{ui}", folder)
    start, environment = str(home() / "bin" / "spark-class"), {**os.environ, "SPARK_HOME": str(home())}
    line = [start, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
    log = folder / "master.log"
    with contextlib.ExitStack() as stack:
        stack.enter_context(running([*line, "--port", str(port), "--webui-port", str(ui)], log, environment))
        until(lambda: bool(answer(f"{found.ui}/json/")), "the master's answer", log)
        for number in range(workers):
            name = f"worker-{number}"
            line = [start, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "-c", "1", "-m", memory]
            line += ["--webui-port", str(free_port()), "--work-dir", str(folder / name), found.master]
            found.workers.append(stack.enter_context(running(line, folder / f"{name}.log", environment)))
        until(lambda: found.alive() == workers, f"{workers} workers alive", log)
        yield found
