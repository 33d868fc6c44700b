"""Physical plans as paths of operator names, for the tests of the plan law."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEPT = "InMemoryTableScan"
BROADCAST = "BroadcastExchange"
EXCHANGE = "Exchange"
PYTHON = ("ArrowEvalPython", "BatchEvalPython", "MapInPandas", "MapInArrow", "FlatMapGroupsInPandas")


# The tests' session prints no more of a plan than it must; outputs are written at once, each by a thread.
_PRINTED_WHOLE = {"spark.sql.debug.maxToStringFields": "25", "spark.sql.maxPlanStringLength": "2147483632"}
_PRINTING = Lock()


def printed_plan(frame: DataFrame) -> str:
    """Return the physical plan in Spark's format, with every step of adaptive execution, also on Spark Connect."""
    conf = frame.sparkSession.conf
    with _PRINTING, contextlib.redirect_stdout(io.StringIO()) as printed:
        before = {key: conf.get(key) or value for key, value in _PRINTED_WHOLE.items()}
        try:
            for key, value in _PRINTED_WHOLE.items():
                conf.set(key, value)
            frame.explain()
        finally:
            for key, value in before.items():
                conf.set(key, value)
    return printed.getvalue()


def main_paths(frame: DataFrame, folder: str, *, through_kept: bool = False) -> list[list[str]]:
    """Return the operators between the root and each scan of a table in ``folder``.

    Broadcast sides are ignored, and so are cached frames, unless ``through_kept``.
    """
    return list(_paths(_physical(frame), folder, [], through_kept))


def paths_to_kept(frame: DataFrame, folder: str) -> list[list[str]]:
    """The same for the plan by which a kept frame was computed."""
    kept_node = _physical(frame)
    while kept_node.nodeName().split(" ")[0] != KEPT:
        (kept_node,) = _children(kept_node)
    return list(_paths(kept_node.relation().cachedPlan(), folder, [], through_kept=False))


def join_keys(frame: DataFrame, folder: str) -> list[tuple[str, ...]]:
    """The types of the keys of every join that the rows of a table in ``folder`` pass, from the root on."""
    return [
        keys for keys, joined in _joins(_physical(frame)) if any(_paths(joined, folder, [], through_kept=False))
    ]


def columns_read(frame: DataFrame, folder: str) -> set[str]:
    """Return the columns that the scans of a table in ``folder`` read for a frame, cached frames included."""
    return set(_columns_read(_physical(frame), folder))


def _columns_read(plan: Any, folder: str) -> Iterator[str]:
    if _scans(plan, folder):
        yield from plan.requiredSchema().fieldNames()
    for child in _sources(plan):
        yield from _columns_read(child, folder)


def broadcast_tables(frame: DataFrame, folders: Iterable[str]) -> set[str]:
    """Return the folders with tables that are read for a broadcast side, cached frames included.

    The origin of rows in the driver is unknown.
    """
    wanted = list(folders)
    return {folder for plan in _broadcasts(_physical(frame)) for folder in wanted if _reads(plan, folder)}


def _broadcasts(plan: Any) -> Iterator[Any]:
    if plan.nodeName().split(" ")[0] == BROADCAST:
        yield plan
    for child in _sources(plan):
        yield from _broadcasts(child)


def _reads(plan: Any, folder: str) -> bool:
    return _scans(plan, folder) or any(_reads(child, folder) for child in _sources(plan))


def _sources(plan: Any) -> list[Any]:
    """Return a node's inputs. The inputs of a cached frame are those of its computation."""
    is_kept = plan.nodeName().split(" ")[0] == KEPT
    return [plan.relation().cachedPlan()] if is_kept else _children(plan)


def _joins(plan: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    name = plan.nodeName().split(" ")[0]
    if name in (KEPT, BROADCAST):
        return
    if name.endswith("HashJoin"):
        keys = plan.leftKeys()
        yield tuple(keys.apply(n).dataType().simpleString() for n in range(keys.size())), plan
    for child in _children(plan):
        yield from _joins(child)


def _physical(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().executedPlan()


def _paths(plan: Any, folder: str, above: list[str], through_kept: bool) -> Iterator[list[str]]:
    name = plan.nodeName().split(" ")[0]
    path = [*above, name]
    if _scans(plan, folder):
        yield path
    elif name not in (KEPT, BROADCAST) or (name == KEPT and through_kept):
        for child in _sources(plan) if through_kept else _children(plan):
            yield from _paths(child, folder, path, through_kept)


def _scans(plan: Any, folder: str) -> bool:
    # Rows that the driver holds are a scan by name, too, in older releases of Spark.
    is_of_files = plan.getClass().getSimpleName() == "FileSourceScanExec"
    return is_of_files and folder in plan.relation().location().rootPaths().mkString(",")


def _children(plan: Any) -> list[Any]:
    """Return a node's inputs, also inside adaptive execution."""
    name = plan.nodeName().split(" ")[0]
    if name == "AdaptiveSparkPlan":
        return [plan.executedPlan()]
    if name.endswith("QueryStage"):
        return [plan.plan()]
    children = plan.children()
    return [children.apply(n) for n in range(children.size())]
