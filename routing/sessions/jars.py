"""Delta's jars on this machine: those of the last local session, so that the next one need not look for them.

Ivy, which fetches packages for Spark, takes three seconds at each start to find again what it has fetched. What
is remembered is code that will run: it counts only where nobody else could have put it there, and while each jar
is the one that was fetched.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# Whether a file is one's own: nobody but its owner and root can change it, or put another in its place.


def is_own(file: Path) -> bool:
    """Return True if a file and every folder above it belong to this user or root, and no other may write there.

    A folder where all may write is fine with the sticky bit, as /tmp has it. A link is nobody's own: name what
    it leads to. Raises OSError where there is no such file.
    """
    if os.name == "nt":  # pragma: no cover - Windows has other rights; a profile's folders are its user's.
        return file.is_file()
    return stat.S_ISREG(file.lstat().st_mode) and all(
        _is_safe(part.lstat()) for part in (file, *file.absolute().parents)
    )


def _is_safe(status: os.stat_result) -> bool:
    user = os.getuid()
    if status.st_uid not in (user, 0) or stat.S_ISLNK(status.st_mode):
        return False
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return True
    by_group = status.st_mode & stat.S_IWGRP and not _is_own_group(user, status.st_gid)
    return not (by_group or status.st_mode & stat.S_IWOTH)


def _is_own_group(user: int, group: int) -> bool:
    """Return True if a group is that of one user alone: the one of the user's name, which many systems make."""
    import grp
    import pwd

    try:
        return pwd.getpwuid(user).pw_name == grp.getgrgid(group).gr_name
    except KeyError:
        return False


def _file() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "sbroute", "jars.json")


def _pair() -> str | None:
    """Return the installed pair; None where pyspark comes from no package but, say, from ``SPARK_HOME``."""
    try:
        return f"pyspark {version('pyspark')}, delta-spark {version('delta-spark')}"
    except PackageNotFoundError:
        return None


def _read_remembered() -> dict[str, dict[str, str]]:
    """Read each pair's jars with their hashes; empty where the file is missing, another user's, or malformed."""
    try:
        file = Path(os.path.realpath(_file()))
        stored = json.loads(file.read_text(encoding="utf-8")) if is_own(file) else None
    except (OSError, ValueError, RuntimeError):
        # RuntimeError: there is no home, or brackets a thousand deep.
        return {}
    pairs = stored.items() if isinstance(stored, dict) else ()
    # The first release kept lists of paths: these are looked for anew.
    return {
        pair: jars for pair, jars in pairs if isinstance(jars, dict) and all(_is_text(jar) for jar in jars.items())
    }


def _is_text(jar: tuple[object, object]) -> bool:
    return all(isinstance(part, str) for part in jar)


def _hash(jar: str) -> str | None:
    """Return a jar's SHA-256; None where it cannot be read, or somebody else may change it."""
    try:
        return hashlib.sha256(Path(jar).read_bytes()).hexdigest() if is_own(Path(jar)) else None
    except OSError:
        return None


def _hashes(jars: Sequence[str]) -> dict[str, str | None]:
    """Return the hash of each, on several cores at once: 89 MB in 33 jars take 90 ms on one."""
    with ThreadPoolExecutor() as pool:
        return dict(zip(jars, pool.map(_hash, jars), strict=True))


def find_remembered() -> list[str]:
    """Return the jars of the installed pair of pyspark and delta-spark; none where one is gone or changed."""
    pair = _pair()
    jars = {} if pair is None else _read_remembered().get(pair, {})
    return list(jars) if _hashes(list(jars)) == jars else []


def remember(jars: Sequence[str]) -> None:
    """Keep the paths or file URIs of the jars that a session has for the installed pair, if Delta is one."""
    # Without links: where one leads may be changed by whoever owns a folder on the way.
    pair, paths = _pair(), [os.path.realpath(jar.removeprefix("file://")) for jar in jars]
    has_delta = any("delta-spark" in Path(path).name for path in paths)
    if pair is None or not has_delta:
        return
    hashes = _hashes(paths)
    if None in hashes.values():
        return
    text = json.dumps({**_read_remembered(), pair: hashes}, indent=1)
    # A home that cannot be written to, or none, costs the next start its three seconds, no more.
    with suppress(OSError, RuntimeError):
        file = _file()
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Whole or not at all: another command may be reading it.
        new_file = file.with_name(f"{file.name}.{os.getpid()}")
        new_file.write_text(text, encoding="utf-8")
        new_file.replace(file)


def of_defaults(home: Path) -> dict[str, str]:
    """Return the settings ``spark.jars…`` of the user's own ``spark-defaults.conf``; ``home`` is Spark's."""
    folder = os.environ.get("SPARK_CONF_DIR") or home / "conf"
    try:
        text = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return {key: value for key, value in _properties(text) if key == "spark.jars" or key.startswith("spark.jars.")}


def _properties(text: str) -> Iterator[tuple[str, str]]:
    """Yield keys and values of Java's properties: blanks, an equals sign or a colon between them."""
    for line in text.replace("\\\r\n", "").replace("\\\n", "").splitlines():
        bare = line.strip()
        end = next((place for place, sign in enumerate(bare) if sign in "=: \t\f"), len(bare))
        yield bare[:end], bare[end:].lstrip("=: \t\f")
