"""Laws for all rooms, checked on the syntax tree. The import linter checks imports between rooms."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

import routing
from tests.patterns import nodes_of

HOUSE = Path(routing.__file__).parent
# What turns frames into frames; these also look at what came of it.
_ACTING = {"compiling.py", "distributed_plan.py", "setting_frames.py", "validate.py"}
_JVM = {"rdd", "sparkContext", "_jvm", "_jdf", "_sc", "_jsparkSession", "SparkContext"}
_UDFS = {"udf", "pandas_udf", "arrow_udf", "udtf", "arrow_udtf", "registerJavaFunction"}
_PYTHON_NODES = {"applyInPandas", "mapInPandas", "applyInArrow", "mapInArrow", "foreach", "foreachPartition"}
_PYTHON_NODES |= {"foreachBatch", "applyInPandasWithState", "transformWithState", "transformWithStateInPandas"}
_READS = {"read", "readStream"}
_WRITES = {"write", "writeTo", "writeStream", "saveAsTable", "insertInto", "mergeInto", "DeltaTable"}
_ACTIONS = {"collect", "toPandas", "toArrow", "count", "first", "head", "take", "tail", "show", "isEmpty"}
_ACTIONS |= {"toLocalIterator", "persist", "checkpoint", "localCheckpoint"}
_HINTS = {"hint", "broadcast"}
_CLOCKS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time", "time.monotonic"}
_CLOCKS |= {f"F.{name}" for name in ("current_timestamp", "now", "current_date", "localtimestamp", "curdate")}
# What of `rules` decides, or follows; the planner alone calls it.
_DECIDES = {"judge", "settled", "requested", "requested_again", "ConcerningRoutes"}
_DECIDES |= {"follow", "follow_dialogs", "trace_back", "trace_reply"}
_DECIDING_MODULES = {"resolving", "deciding", "following", "pathing"}
_CHANCE = {"F.rand", "F.randn", "F.uuid", "F.shuffle", "F.monotonically_increasing_id", "uuid.uuid4"}

Law = Callable[[ast.AST], bool]


def _attribute(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in names


def _name(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _either(node: ast.AST, names: set[str]) -> bool:
    imported = isinstance(node, ast.ImportFrom) and any(alias.name in names for alias in node.names)
    return imported or _attribute(node, names) or _name(node, names)


def _is_jvm(node: ast.AST) -> bool:
    return _either(node, _JVM)


def _is_cache(node: ast.AST) -> bool:
    return _attribute(node, {"cache"}) and ast.unparse(node) != "functools.cache"


def _is_print(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name(node.func, {"print"})


def _is_udf(node: ast.AST) -> bool:
    return _attribute(node, _UDFS | _PYTHON_NODES) or (
        isinstance(node, ast.ImportFrom) and any(alias.name in _UDFS for alias in node.names)
    )


def _is_read(node: ast.AST) -> bool:
    """Return whether a call is ``spark.read``, which is a property. A method called read is something else."""
    return isinstance(node, ast.Attribute) and _attribute(node.value, _READS)


def _is_write(node: ast.AST) -> bool:
    return _either(node, _WRITES)


def _is_hint(node: ast.AST) -> bool:
    """Return whether a node is a join hint: a method or function, a hint in SQL, or Spark's own threshold."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyspark"):
        return any(alias.name in {*_HINTS, "*"} for alias in node.names)
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    in_text = text in _HINTS or "/*+" in text or "autoBroadcastJoin" in text
    return _attribute(node, _HINTS) or in_text


def _is_side(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in {"Side", "side_of"}


def _is_patch(node: ast.AST) -> bool:
    """A function or method put into an object that is another's."""
    if not (isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Attribute)):
        return False
    if ast.unparse(target.value) == "self":
        return False
    return isinstance(node.value, ast.Lambda) or ast.unparse(node.value) == f"self.{target.attr}"


def _is_asking(node: ast.AST) -> bool:
    """Whether it is asked which engine has a table, in place of `by_engine` or an operation of both engines."""
    is_of_session = isinstance(node, ast.Constant) and node.value == "sparkSession"
    is_of_type = (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "isinstance"
        and "DataFrame" in ast.unparse(node.args[1])
    )
    return is_of_session or is_of_type or _either(node, {"is_frame"})


def _is_builder(node: ast.AST) -> bool:
    return _attribute(node, {"builder"})


def _is_action(node: ast.AST) -> bool:
    return _attribute(node, _ACTIONS) and isinstance(node, ast.Attribute) and ast.unparse(node.value) != "F"


def _is_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) in _CLOCKS | _CHANCE


def _rooms(*but: str) -> Iterator[Path]:
    for path in sorted(HOUSE.rglob("*.py")):
        if str(path.relative_to(HOUSE)) not in but:
            yield path


def _parsed(source: str) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(source))


def _breaches(law: Law, nodes: Iterable[ast.AST]) -> list[str]:
    return [f"line {node.lineno}: {ast.unparse(node)}" for node in nodes if hasattr(node, "lineno") and law(node)]


_READERS = ("append_detection", "commit_stream", "appended_rows", "file_systems", "spark_tables", "table_log")
# Rooms below the features that open tables, or read them whatever they are given as.
_ENGINE_ASKERS = ("tables/table_columns.py", "tables/read_rows.py", "tables/given_tables.py", "delta/opening.py")
# What is banned, and the only rooms that may.
EVERYWHERE: dict[str, tuple[Law, tuple[str, ...]]] = {
    # How far it has come with its tasks, the description of its jobs, and what it sends to workers.
    "the JVM and RDDs": (
        _is_jvm,
        tuple(f"sessions/{name}.py" for name in ("existing_session", "job_labels", "python_workers")),
    ),
    "cache": (_is_cache, ()),
    "print": (_is_print, ("commands/terminal_streams.py",)),
    # The function of a stream runs in the driver.
    "Python UDFs": (
        _is_udf,
        ("messages/dialog_hash.py", "sessions/python_workers.py", "delta/commit_stream.py"),
    ),
    "reading tables": (_is_read, tuple(f"delta/{name}.py" for name in _READERS)),
    # os.write is no table: the last line of an interrupted command. Nor is a file of an export.
    "writing tables": (
        _is_write,
        (
            *("delta/local_tables.py", "delta/data_files.py", "tables/sql_statements.py", "delta/spark_tables.py"),
            *("process.py", "importing/servers/result_file.py", "delta/commit_stream.py"),
        ),
    ),
    # Whoever needs a function of another is given it, or what has it, when it is made.
    "functions put into others": (_is_patch, ()),
    "asking whose a table is": (_is_asking, _ENGINE_ASKERS),
    "building a session": (_is_builder, ("sessions/session.py",)),
    # The hints of errors are sentences.
    "hints to joins": (_is_hint, ("tables/cached_frames.py", "errors.py")),
    # Of a known size; all else is measured.
    "sides not measured": (_is_side, ("tables/cached_frames.py", "messages/results.py")),
}
OF_MESSAGES: dict[str, Law] = {"actions": _is_action, "clocks and chance": _is_clock}


@pytest.mark.parametrize("what", list(EVERYWHERE))
def test_no_module_breaks_a_law(what: str) -> None:
    law, exempt = EVERYWHERE[what]
    breaches_by_path = {str(path): _breaches(law, nodes_of(path)) for path in _rooms(*exempt)}
    assert {path: lines for path, lines in breaches_by_path.items() if lines} == {}


@pytest.mark.parametrize("what", list(OF_MESSAGES))
def test_no_module_for_messages_breaks_its_laws(what: str) -> None:
    folder = HOUSE / "messages"
    assert {name for name in _ACTING if (folder / name).exists()} == _ACTING
    rooms = [path for path in _rooms() if path.parent == folder and path.name not in _ACTING]
    assert rooms
    breaches_by_path = {path.name: _breaches(OF_MESSAGES[what], nodes_of(path)) for path in rooms}
    assert {name: lines for name, lines in breaches_by_path.items() if lines} == {}


def _is_deciding(node: ast.AST) -> bool:
    """Return whether a module imports rules that decide or follow messages."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("routing.rules"):
        return any(alias.name in _DECIDES for alias in node.names)
    return _attribute(node, _DECIDES) and ast.unparse(node).partition(".")[0] in _DECIDING_MODULES


def test_only_the_planner_calls_the_deciding_rules() -> None:
    decider = [HOUSE / "rules", HOUSE / "plan"]
    rooms = [path for path in _rooms() if path.parent not in decider]
    breaches_by_path = {str(path): _breaches(_is_deciding, nodes_of(path)) for path in rooms}
    assert {path: lines for path, lines in breaches_by_path.items() if lines} == {}
    assert _breaches(_is_deciding, _parsed("from routing.rules.resolving import Verdict, judge"))
    assert _breaches(_is_deciding, _parsed("verdict = resolving.judge(message, dialog, decision, requests)"))
    asked = (nodes_of(path) for path in _rooms() if path.parent == HOUSE / "plan")
    assert sum(bool(_breaches(_is_deciding, nodes)) for nodes in asked) > 2


def test_decisions_read_no_clock() -> None:
    law = OF_MESSAGES["clocks and chance"]
    rooms = [
        HOUSE / "tables" / "row_faults.py",
        *(HOUSE / "rules").glob("*.py"),
        *(HOUSE / "plan").glob("*.py"),
        *(HOUSE / "lint").glob("*.py"),
    ]
    assert rooms
    breaches_by_path = {path.name: _breaches(law, nodes_of(path)) for path in rooms}
    assert {name: lines for name, lines in breaches_by_path.items() if lines} == {}


def test_only_two_modules_cache_frames() -> None:
    """Some sessions refuse to cache. One room finds this out, and one room asks it."""
    persists = sorted(p.name for p in _rooms() if ".persist(" in p.read_text(encoding="utf-8"))
    assert persists == ["cached_frames.py", "existing_session.py"]


def test_the_hash_is_the_only_udf_of_its_room() -> None:
    source = (HOUSE / "messages" / "dialog_hash.py").read_text(encoding="utf-8")
    assert source.count("F.pandas_udf(") + source.count("F.arrow_udf(") == 1


# The rooms that carry messages, or what is stored, by Spark, and those that have it in their names. All others
# import it where a session is at hand.
_OF_SPARK_IN_TABLES = ("cached_frames", "frames", "spark_forms")
_OF_SPARK_IN_DELTA = ("append_detection", "appended_rows")
_OF_SPARK = (
    "messages/*.py",
    "engines/spark/*.py",
    "runs/*.py",
    "views/*/*spark*.py",
    *(f"tables/{name}.py" for name in _OF_SPARK_IN_TABLES),
    *(f"delta/{name}.py" for name in _OF_SPARK_IN_DELTA),
)


def _imported_at_once(node: ast.AST) -> set[str]:
    """The packages that a file imports whenever it is imported itself."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {(node.module or "").partition(".")[0]}
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    children = node.orelse if isinstance(node, ast.If) and is_for_types else ast.iter_child_nodes(node)
    return {package for child in children for package in _imported_at_once(child)}


def test_few_rooms_import_spark_whenever_they_are_imported() -> None:
    rooms = [path for path in _rooms() if not any(path.relative_to(HOUSE).match(room) for room in _OF_SPARK)]
    assert rooms
    imports_by_path = {
        str(path): _imported_at_once(nodes_of(path)[0]) & {"pyspark", "delta", "py4j"} for path in rooms
    }
    assert {path: names for path, names in imports_by_path.items() if names} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import pyspark.sql", {"pyspark"}),
        ("from pyspark.sql import functions as F", {"pyspark"}),
        ("class A:\n    import pyspark", {"pyspark"}),
        ("try:\n    import delta\nexcept ImportError:\n    import json", {"delta", "json"}),
        ("if TYPE_CHECKING:\n    import pyspark\nelse:\n    import yaml", {"yaml"}),
        ("def f():\n    import pyspark", set()),
    ],
)
def test_imports_at_module_level_are_collected(source: str, found: set[str]) -> None:
    assert _imported_at_once(ast.parse(source)) == found


@pytest.mark.parametrize(
    ("what", "breach"),
    [
        ("the JVM and RDDs", "frame.rdd.map(f)"),
        ("the JVM and RDDs", "spark.sparkContext.broadcast(x)"),
        ("the JVM and RDDs", "frame._jdf.queryExecution()"),
        ("the JVM and RDDs", "from pyspark import SparkContext"),
        ("cache", "frame.cache()"),
        ("print", "print('x')"),
        ("Python UDFs", "f = F.udf(g)"),
        ("Python UDFs", "from pyspark.sql.functions import pandas_udf"),
        ("Python UDFs", "spark.udf.register('f', g)"),
        ("Python UDFs", "frame.mapInPandas(f, schema)"),
        ("reading tables", "spark.read.table('x')"),
        ("writing tables", "frame.write.save('x')"),
        ("writing tables", "from delta import DeltaTable"),
        ("functions put into others", "progress.as_line = lambda text: text"),
        ("functions put into others", "calls.walk = self.walk"),
        ("asking whose a table is", "from routing.tables.table_columns import Table, is_frame"),
        ("asking whose a table is", "rows = table_columns.is_frame(table)"),
        ("asking whose a table is", "is_spark = hasattr(table, 'sparkSession')"),
        ("asking whose a table is", "is_spark = isinstance(table, (str, DataFrame))"),
        ("building a session", "SparkSession.builder.getOrCreate()"),
        ("hints to joins", "F.broadcast(doubled)"),
        ("hints to joins", "doubled.hint('merge')"),
        ("hints to joins", "from pyspark.sql.functions import broadcast as small"),
        ("hints to joins", "from pyspark.sql.functions import *"),
        ("hints to joins", "small = functions.broadcast"),
        ("hints to joins", "getattr(F, 'broadcast')(doubled)"),
        ("hints to joins", "spark.sql('SELECT /*+ MAPJOIN(d) */ * FROM d')"),
        ("hints to joins", "spark.conf.set('spark.sql.autoBroadcastJoinThreshold', '1GB')"),
        ("sides not measured", "Side(doubled, how)"),
        ("sides not measured", "joining.side_of(doubled, fits=True)"),
        ("actions", "rows = frame.collect()"),
        ("actions", "frame.select('x').first()"),
        ("clocks and chance", "t = datetime.now(timezone.utc)"),
        ("clocks and chance", "t = F.current_timestamp()"),
    ],
)
def test_a_breach_is_reported(what: str, breach: str) -> None:
    law = OF_MESSAGES[what] if what in OF_MESSAGES else EVERYWHERE[what][0]
    assert _breaches(law, _parsed(breach))
