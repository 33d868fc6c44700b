"""Find out if a path is on this machine's disk or only readable by the Spark session.

Spark reads a path without a scheme from the default file system of its cluster, which is HDFS on EMR and
Databricks' own on Databricks. A Spark Connect server uses its own machine. This machine's disk may then have
nothing at that path, or another table. Therefore this module checks once whether a session sees a file that was
just created here. If a setting names another file system, a session is started for this check.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from routing.config import Config, TableLocation
from routing.errors import first_sentence
from routing.sessions import session
from routing.sessions.existing_session import condition, is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Read files as bytes with the Spark session, from object stores, volumes and a cluster's file system.
#
# Spark reads a path as a pattern, so the special characters of names are escaped.


_SIGNS = re.compile(r"([{}\[\]*?\\])")
_BEFORE_PATH = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*(?=/|\Z))?")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class ListedFile:
    """A file as the session lists it: its path, its size in bytes, and when it was last written (UTC)."""

    path: str
    size: int
    modified: datetime


Folder = dict[str, "Folder | ListedFile"]
"""The files and folders in a folder, by name."""


def as_pattern(path: str) -> str:
    """Return a pattern for Spark's readers that matches only this path."""
    return _SIGNS.sub(r"\\\1", path)


def is_there(spark: SparkSession, path: str) -> bool:
    """Return True if the session finds something at a path. Raises OSError without permission."""
    try:
        with _errors_of_files(path):
            # Spark checks that the file exists, and knows the columns without opening it.
            return bool(_load(spark, [path]).columns)
    except FileNotFoundError:
        return False


def look(spark: SparkSession, path: str) -> Folder | ListedFile | None:
    """Return a file, or a folder with all its files at any depth, at a URI or path. Returns None for neither.

    Spark does not list files with names that begin with ``.`` or ``_``. Raises OSError without permission.
    """
    try:
        with _errors_of_files(path):
            listed = _list(spark, path)
    except FileNotFoundError:
        return None
    root = normalize(path)
    if root in listed:
        return listed[root]
    top: Folder = {}
    for inside, file in listed.items():
        *folders, name = inside.removeprefix(root).lstrip("/").split("/")
        at = top
        for folder in folders:
            below = at.setdefault(folder, {})
            if isinstance(below, ListedFile):
                # An object store may have a file and a folder with the same name.
                raise OSError(errno.ENOTDIR, "a file in it has the name of a folder", below.path)
            at = below
        at[name] = file
    return top


def read(spark: SparkSession, files: Sequence[ListedFile]) -> dict[str, bytes]:
    """Return the content of files by path. Raises OSError if one cannot be read, or has changed its size."""
    filled = [file for file in files if file.size]
    contents_read: dict[str, bytes] = {}
    if filled:
        with _errors_of_files(filled[0].path):
            rows = _load(spark, [file.path for file in filled]).select("path", "content").collect()
        contents_read = {normalize(row["path"]): bytes(row["content"]) for row in rows}
    content = {file.path: contents_read.get(normalize(file.path), b"") for file in files}
    for file in filled:
        if len(content[file.path]) != file.size:
            raise OSError(errno.EIO, "it has changed while it was read", file.path)
    return content


def _list(spark: SparkSession, path: str) -> Mapping[str, ListedFile]:
    """Return every file below a path, by its normalised path."""
    from pyspark.sql import functions as F

    frame = _load(spark, [path])
    written = F.unix_micros("modificationTime").alias("written")
    rows = frame.select("path", "length", written).collect()
    # Spark returns no row for an empty file.
    empty = (unquote(uri) for uri in frame.inputFiles())
    files = {normalize(file): ListedFile(file, 0, _EPOCH) for file in empty}
    for row in rows:
        modified_at = _EPOCH + timedelta(microseconds=row["written"])
        files[normalize(row["path"])] = ListedFile(row["path"], row["length"], modified_at)
    return files


def _load(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    # Without this option, Spark turns folder names like key=value into columns.
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    return reader.load([as_pattern(path) for path in paths])


def normalize(path: str) -> str:
    """Return a path without scheme and host, which Spark adds, normalised as Spark does it."""
    return posixpath.normpath(re.sub(r"/{2,}", "/", "/" + _BEFORE_PATH.sub("", path)))


@contextmanager
def _errors_of_files(path: str) -> Iterator[None]:
    """Convert Spark's errors to Python's file errors."""
    try:
        yield
    except Exception as error:
        if condition(error) == "PATH_NOT_FOUND":
            raise FileNotFoundError(errno.ENOENT, "there is no such file", path) from error
        raise OSError(errno.EIO, first_sentence(error), path) from error


# If this is set, paths without a scheme are Databricks' own, such as /Volumes, whatever its session sees.
_DATABRICKS = "DATABRICKS_RUNTIME_VERSION"
_DEFAULT = "spark.hadoop.fs.defaultFS"
# The settings by which a file names a default file system (also in the older spelling) or a folder of such files.
_NAMES_ONE = re.compile(r"fs\.default|HADOOP_CONF_DIR|YARN_CONF_DIR|xi:include")
_OF_HADOOP = ("core-site.xml", "hdfs-site.xml")
_OF_SPARK = ("spark-defaults.conf", "spark-env.sh", *_OF_HADOOP)
_FILE = re.compile(r"\Afile:/", re.IGNORECASE)
# Whether each session sees this machine's disk, by the scheme of paths: empty, or file:.
_seen_by_session: WeakKeyDictionary[SparkSession, dict[str, bool]] = WeakKeyDictionary()


def place(location: TableLocation, spark: SparkSession | None) -> TableLocation:
    """Return the location with ``is_elsewhere`` set. Without a session, this machine's settings decide."""
    scheme = _scheme_of(location)
    return location if scheme is None else replace(location, is_elsewhere=not _is_here(scheme, spark))


def place_all(config: Config, spark: SparkSession) -> Config:
    """Return a configuration with ``is_elsewhere`` set for each of its locations."""
    return config.placed(lambda _, location: place(location, spark))


def is_open(location: TableLocation, settings: Mapping[str, str]) -> bool:
    """Return whether only a session with ``settings`` can decide which disk has a path."""
    if _scheme_of(location) != "" or _DATABRICKS in os.environ:
        return False
    return session.is_of_platform() or _names_another(settings)


def _scheme_of(location: TableLocation) -> str | None:
    """Return the scheme of a path on a disk, empty without one, or None for names and other URIs."""
    if location.is_name:
        return None
    if _FILE.match(location.text):
        return "file:"
    return "" if Path(location.text).is_absolute() else None


def _is_here(scheme: str, spark: SparkSession | None) -> bool:
    if not scheme and _DATABRICKS in os.environ:
        return False
    # file: is the disk of the driver, which is this process except with Spark Connect.
    if spark is None or (scheme and not is_connect(spark)):
        return True
    seen_by_scheme = _seen_by_session.setdefault(spark, {})
    if scheme not in seen_by_scheme:
        seen_by_scheme[scheme] = _sees_this_disk(spark, scheme)
    return seen_by_scheme[scheme]


def _sees_this_disk(spark: SparkSession, scheme: str) -> bool:
    """Return True if a session finds a new file with a unique name on this disk."""
    with tempfile.NamedTemporaryFile(prefix="sbroute-") as file:
        try:
            return is_there(spark, scheme + Path(file.name).as_posix())
        except OSError:
            # A session that cannot read files on this disk reads its tables elsewhere.
            return False


def _names_another(settings: Mapping[str, str]) -> bool:
    """Return whether a setting or configuration file may name a default file system other than the disk."""
    if _DEFAULT in settings or "PYSPARK_SUBMIT_ARGS" in os.environ:
        return True
    return any(_NAMES_ONE.search(text) for text in _texts_of_clusters())


def _texts_of_clusters() -> Iterator[str]:
    hadoop = (os.environ.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"))
    files = [Path(folder, name) for folder in hadoop if folder for name in _OF_HADOOP]
    files += [Path(folder, name) for folder in _folders_of_spark() for name in _OF_SPARK]
    for file in files:
        try:
            yield file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            # Most of these files do not exist. If this user cannot read a file, Spark cannot either.
            continue


def _folders_of_spark() -> Iterator[Path]:
    if folder := os.environ.get("SPARK_CONF_DIR"):
        yield Path(folder)
    elif home := os.environ.get("SPARK_HOME"):
        yield Path(home, "conf")
    elif (spec := find_spec("pyspark")) is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "conf"
