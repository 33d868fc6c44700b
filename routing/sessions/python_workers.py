"""Run functions of this package in a session's Python workers, and send them the package if they lack it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from routing.errors import EnvironmentFault, first_sentence
from routing.sessions.existing_session import is_connect

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, GroupedData, SparkSession
    from pyspark.sql.types import StructType

WorkerFunction = Callable[["Iterable[pyarrow.RecordBatch]"], "Iterator[pyarrow.RecordBatch]"]
"""A function of the batches of a task, which workers load from the package."""
PairFunction = Callable[["pyarrow.Table", "pyarrow.Table"], "pyarrow.Table"]
"""A function of two groups with the same key, which workers load from the package."""
_PACKAGE = "routing"
# The sessions whose workers have the package.
_ready: WeakSet[SparkSession] = WeakSet()


def prepare_workers(spark: SparkSession) -> None:
    """Make sure that a session's Python workers have this package, once for each session.

    A job of one row checks this. Workers without the package, or with another version of it, get this one. Raises
    EnvironmentFault if the session runs no Python, or if its Python lacks pyarrow.
    """
    if spark in _ready:
        return
    fingerprint = _make_fingerprint()
    own_fingerprint = fingerprint(_PACKAGE)
    if _ask(spark, fingerprint) != own_fingerprint:
        _send(spark)
        if _ask(spark, fingerprint) != own_fingerprint:
            raise EnvironmentFault.no_workers("they have another version of this package")
    _ready.add(spark)


def map_by_workers(frame: DataFrame, work: WorkerFunction, shape: StructType) -> DataFrame:
    """Run a function over the rows of a frame, task by task, after `prepare_workers`."""
    return frame.mapInArrow(work, shape)


def map_pairs_by_workers(
    left: GroupedData, right: GroupedData, work: PairFunction, shape: StructType
) -> DataFrame:
    """Run a function over each pair of groups with the same key, after `prepare_workers`. Needs Spark 4.0."""
    # A lambda, because pyspark reads hints as types, and those of this package are text.
    return left.cogroup(right).applyInArrow(lambda first, second: work(first, second), shape)


def _make_fingerprint() -> Callable[[str], str]:
    """Return a function that does not use this package, because workers may lack it."""

    def fingerprint(package: str) -> str:
        """Return a text that changes with the source of a package; empty if there is no such package."""
        import hashlib
        from importlib.resources import files

        def walk(place: Any) -> Any:
            for child in sorted(place.iterdir(), key=lambda child: child.name):
                if child.is_dir():
                    yield from walk(child)
                elif child.name.endswith(".py"):
                    yield child.name, child.read_bytes()

        try:
            root = files(package)
        except ModuleNotFoundError:
            return ""
        hashed = hashlib.sha256()
        for name, source in walk(root):
            hashed.update(f"{name} {len(source)} ".encode() + source)
        return hashed.hexdigest()

    return fingerprint


def _ask(spark: SparkSession, fingerprint: Callable[[str], str]) -> str:
    """Return the fingerprint of the package that workers have."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    package = _PACKAGE

    def answer(batches: Any) -> Any:
        import pyarrow

        for batch in batches:
            texts = pyarrow.array([fingerprint(package)] * len(batch), pyarrow.string())
            yield pyarrow.RecordBatch.from_arrays([texts], ["fingerprint"])

    try:
        [row] = spark.range(0, 1, 1, 1).mapInArrow(answer, "fingerprint string").collect()
    except (PySparkException, Py4JError, ImportError) as error:
        raise EnvironmentFault.no_workers(first_sentence(error)) from error
    return str(row[0])


def _send(spark: SparkSession) -> None:
    """Send this package to the workers of a session."""
    folder = Path(tempfile.mkdtemp(prefix="sbroute-package-"))
    # A classic session reads the file whenever a worker starts.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = folder / f"{_PACKAGE}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in _list_files(files(_PACKAGE), _PACKAGE):
            packed.writestr(name, content)
    if is_connect(spark):
        spark.addArtifacts(str(archive), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(archive))


def _list_files(place: Any, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a package with their names in an archive."""
    for child in place.iterdir():
        if child.is_dir():
            if child.name != "__pycache__":
                yield from _list_files(child, f"{name}/{child.name}")
        else:
            yield f"{name}/{child.name}", child.read_bytes()
