"""Peak memory of Java, as Linux records it (VmHWM)."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession


def java_peak(spark: SparkSession) -> int:
    """The largest resident size of the session's Java process so far, in bytes."""
    process = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))
