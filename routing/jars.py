"""Delta's jars on this machine: those of the last local session, so that the next one need not look for them.

Ivy, which fetches packages for Spark, takes three seconds at each start to find again what it has fetched.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path


def _file() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "sbroute", "jars.json")


def _pair() -> str:
    return f"pyspark {version('pyspark')}, delta-spark {version('delta-spark')}"


def _known() -> dict[str, list[str]]:
    """What is remembered; nothing where the file is missing or is not what `remember` writes."""
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {pair: jars for pair, jars in pairs if isinstance(jars, list) and all(isinstance(j, str) for j in jars)}


def remembered() -> list[str]:
    """The jars of the installed pair of pyspark and delta-spark; none where one of them is gone."""
    jars = _known().get(_pair(), [])
    return jars if all(Path(jar).is_file() for jar in jars) else []


def remember(jars: Sequence[str]) -> None:
    """Keep the paths or file URIs of the jars that a session has for the installed pair."""
    paths = [jar.removeprefix("file://") for jar in jars]
    if not paths or not all(Path(path).is_file() for path in paths):
        return
    file = _file()
    text = json.dumps({**_known(), _pair(): paths}, indent=1)
    # A home that cannot be written to costs the next start its three seconds, no more.
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: another command may be reading it.
        made = file.with_name(f"{file.name}.{os.getpid()}")
        made.write_text(text, encoding="utf-8")
        made.replace(file)
