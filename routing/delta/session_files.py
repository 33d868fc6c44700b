"""Files that the Spark session reads, as bytes: on object stores, in volumes, on a cluster's file system.

Names are taken as they are: Spark takes a path for a pattern, so its signs are escaped.
"""

from __future__ import annotations

import errno
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING
from urllib.parse import unquote

from routing.errors import condition, first_sentence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
"""What lies in a folder, by name."""


def as_pattern(path: str) -> str:
    """Return a path as Spark's readers take it, which matches that path alone."""
    return _SIGNS.sub(r"\\\1", path)


def is_there(spark: SparkSession, path: str) -> bool:
    """Return True if the session finds something at a path. Raises OSError where it may not look there."""
    try:
        with _errors_of_files(path):
            # The types are known without a look into the file; that it is there is checked before.
            return bool(_load(spark, [path]).columns)
    except FileNotFoundError:
        return False


def look(spark: SparkSession, path: str) -> Folder | ListedFile | None:
    """Look up a URI or path: a file, or a folder with all files in it at any depth; None for neither.

    Spark lists no files whose names begin with ``.`` or ``_``. Raises OSError where it may not look there.
    """
    try:
        with _errors_of_files(path):
            listed = _list(spark, path)
    except FileNotFoundError:
        return None
    root = _inside(path)
    if root in listed:
        return listed[root]
    top: Folder = {}
    for inside, file in listed.items():
        *folders, name = inside.removeprefix(root).lstrip("/").split("/")
        at = top
        for folder in folders:
            below = at.setdefault(folder, {})
            if isinstance(below, ListedFile):
                # An object store may have both.
                raise OSError(errno.ENOTDIR, "a file in it has the name of a folder", below.path)
            at = below
        at[name] = file
    return top


def read(spark: SparkSession, files: Sequence[ListedFile]) -> dict[str, bytes]:
    """Return the content of files, by their paths. Raises OSError where one cannot be read."""
    filled = [file for file in files if file.size]
    contents_read: dict[str, bytes] = {}
    if filled:
        with _errors_of_files(filled[0].path):
            rows = _load(spark, [file.path for file in filled]).select("path", "content").collect()
        contents_read = {_inside(row["path"]): bytes(row["content"]) for row in rows}
    content = {file.path: contents_read.get(_inside(file.path), b"") for file in files}
    for file in filled:
        if len(content[file.path]) != file.size:
            raise OSError(errno.EIO, "it has changed while it was read", file.path)
    return content


def _list(spark: SparkSession, path: str) -> Mapping[str, ListedFile]:
    """Return every file below a path, by where it is on its file system."""
    from pyspark.sql import functions as F

    frame = _load(spark, [path])
    written = F.unix_micros("modificationTime").alias("written")
    rows = frame.select("path", "length", written).collect()
    # Of files without a byte Spark reads nothing, so they are in no row.
    empty = (unquote(uri) for uri in frame.inputFiles())
    files = {_inside(file): ListedFile(file, 0, _EPOCH) for file in empty}
    for row in rows:
        when = _EPOCH + timedelta(microseconds=row["written"])
        files[_inside(row["path"])] = ListedFile(row["path"], row["length"], when)
    return files


def _load(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    # A folder called key=value is a folder, and no column.
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    return reader.load([as_pattern(path) for path in paths])


def _inside(path: str) -> str:
    """Return a path without scheme and host, which Spark adds, normalised as Spark does it."""
    return posixpath.normpath(re.sub(r"/{2,}", "/", "/" + _BEFORE_PATH.sub("", path)))


@contextmanager
def _errors_of_files(path: str) -> Iterator[None]:
    """Convert Spark's errors to Python's errors of files."""
    try:
        yield
    except Exception as error:
        if condition(error) == "PATH_NOT_FOUND":
            raise FileNotFoundError(errno.ENOENT, "there is no such file", path) from error
        raise OSError(errno.EIO, first_sentence(error), path) from error
