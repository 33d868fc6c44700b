"""Delta's jars on this machine: those of the last local session, so that the next one need not look for them.

Ivy, which fetches packages for Spark, takes three seconds at each start to find again what it has fetched.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def _file() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "sbroute", "jars.json")


def _pair() -> str | None:
    """The installed pair; None where pyspark comes from elsewhere than a package, such as ``SPARK_HOME``."""
    try:
        return f"pyspark {version('pyspark')}, delta-spark {version('delta-spark')}"
    except PackageNotFoundError:
        return None


def _known() -> dict[str, list[str]]:
    """What is remembered; nothing where the file is missing or is not what `remember` writes."""
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):
        # RuntimeError: there is no home.
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {pair: jars for pair, jars in pairs if isinstance(jars, list) and all(isinstance(j, str) for j in jars)}


def remembered() -> list[str]:
    """The jars of the installed pair of pyspark and delta-spark; none where one of them is gone."""
    pair = _pair()
    jars = [] if pair is None else _known().get(pair, [])
    return jars if all(Path(jar).is_file() for jar in jars) else []


def remember(jars: Sequence[str]) -> None:
    """Keep the paths or file URIs of the jars that a session has for the installed pair, if Delta is one."""
    pair, paths = _pair(), [jar.removeprefix("file://") for jar in jars]
    has_delta = any("delta-spark" in Path(path).name for path in paths)
    if pair is None or not has_delta or not all(Path(path).is_file() for path in paths):
        return
    text = json.dumps({**_known(), pair: paths}, indent=1)
    # A home that cannot be written to, or none, costs the next start its three seconds, no more.
    with suppress(OSError, RuntimeError):
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: another command may be reading it.
        made = file.with_name(f"{file.name}.{os.getpid()}")
        made.write_text(text, encoding="utf-8")
        made.replace(file)
