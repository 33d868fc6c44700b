"""No text from outside is parsed as SQL: one room runs it, of pieces that are constant, numbers or quoted."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import routing
from routing.config import TableLocation
from routing.tables import sql_statements
from routing.tables.sql_statements import sql_name
from tests.sql_law import breaches, breaches_inside, declared

HOUSE = Path(routing.__file__).parent
SOURCES = {str(path.relative_to(HOUSE)): path.read_text(encoding="utf-8") for path in HOUSE.rglob("*.py")}
ROOM = SOURCES.pop("tables/sql_statements.py")


def test_other_modules_pass_no_sql_text() -> None:
    others = declared(ROOM, *SOURCES.values())
    # delta-rs's own DeltaTable, in the one room that knows delta-rs, is opened and asked, no more.
    apart = ("delta/local_tables.py",)
    # Arrow's rows are filtered by a mask; a text would be a type error there.
    of_arrow = [room for room in SOURCES if room.startswith("engines/arrow/")]
    assert of_arrow
    of_arrow += [f"views/reconcile/{room}.py" for room in ("arrow_episodes", "arrow_reconcile")]
    of_arrow += ["tables/dataset_rows.py", "views/diff/arrow_diff.py"]
    assert not [room for room in of_arrow if "import pyspark" in SOURCES[room] or "from pyspark" in SOURCES[room]]
    rooms = {room: source for room, source in SOURCES.items() if room not in (*apart, *of_arrow)}
    breaches_by_room = {room: list(breaches(source, others)) for room, source in rooms.items()}
    # What the package hands on by name is listed there; and the word of an option that prints T-SQL.
    listed = {
        "__init__.py": ["getattr", "__import__"],
        "commands/command_context.py": ["'sql'"],
        # One of the ways to sign in to a server.
        "commands/server_options.py": ["SQL", "SQL"],
        "importing/servers/driver.py": ["SQL", "'sql'", "SQL", "SQL"],
        # A part of the name of an SDK.
        "importing/sql_projects.py": ["'sql'"],
        "importing/compact_rows.py": ["row_type(*values).__dict__"],
        "views/page/pictures/__init__.py": ["getattr"],
    }
    assert {room: lines for room, lines in breaches_by_room.items() if lines} == listed


def test_delta_rs_gets_no_texts_of_sql() -> None:
    asked = {
        node.attr
        for node in ast.walk(ast.parse(SOURCES["delta/local_tables.py"]))
        if isinstance(node, ast.Attribute)
    }
    assert not asked & {"delete", "update", "merge", "execute", "query", "scan"}


def test_the_sql_module_builds_every_text_safely() -> None:
    assert list(breaches_inside(ROOM)) == []
    assert "type: ignore" not in ROOM


def test_only_quoted_values_are_inserted() -> None:
    for part in ("x", None, b"x", 1.5):
        with pytest.raises(TypeError, match="without being quoted"):
            sql_statements._sql("{part}", part=part)  # type: ignore[arg-type]
    assert sql_statements._sql("{a}{b}", a=sql_statements.quote("{b}"), b=1) == "`{b}`1"


@pytest.mark.parametrize(
    "line",
    [
        "spark.sql(f'SELECT * FROM {path}')",
        "spark.sql('SELECT * FROM ' + path)",
        "spark.sql('SELECT * FROM %s' % path)",
        "spark.sql('SELECT * FROM {}'.format(path))",
        "spark.sql(' '.join(names))",
        "spark.sql(path)",
        "spark.sql(sqlQuery=path)",
        "spark.sql('SELECT {x}', x=path)",
        "spark.sql(*path)",
        "run = spark.sql; run(path)",
        "getattr(spark, 'sql')(path)",
        "getattr(spark, name)(path)",
        "get = getattr; get(spark, 's' + 'ql')",
        "getattr(frame, 'where')(path)",
        "operator.methodcaller('s' + 'ql', path)(spark)",
        "operator.attrgetter('s' + 'ql')(spark)(path)",
        "functions.__dict__['ex' + 'pr'](path)",
        "__import__('del' + 'ta')",
        "spark.__getattribute__('s' + 'ql')",
        "eval(f'spark.{path}')",
        "F.expr(path)",
        "F.expr(str=path)",
        "from pyspark.sql.functions import expr as e; e(path)",
        "from pyspark.sql.functions import expr; expr('x')",
        "F = frame; F.filter(path)",
        "from x import y as F; F.filter(path)",
        "frame.selectExpr('x', path)",
        "frame.where(path)",
        "frame.where(condition=path)",
        "frame.where(f'run_id = {path}')",
        "frame.where('run_id = ' + path)",
        "frame.where('run_id = %s' % path)",
        "frame.filter('run_id = {}'.format(path))",
        "frame.filter(' AND '.join(names))",
        "frame.filter(*names)",
        "x = f'run_id = {path}'; frame.where(x)",
        "x = F.col('a'); x += path; frame.where(x)",
        "x = F.col('a'); [frame.where(x) for x in names]",
        "x = 'a'; y = x + path; frame.where(y)",
        "x: str = path; frame.where(x)",
        "frame.where(names[0])",
        "frame.where(row.condition)",
        "g = lambda: path; frame.where(g())",
        "from x import text as is_known; frame.where(is_known)",
        "keep = frame.where; keep(path)",
        "frame.write.saveAsTable(path)",
        "frame.write.insertInto(tableName=path)",
        "frame.writeTo(path).overwrite(F.col('x'))",
        "frame.mergeInto(path, F.col('x'))",
        "frame.writeStream.toTable(path)",
        "frame.createTempView(path)",
        "frame.createOrReplaceTempView(path)",
        "frame.createGlobalTempView(path)",
        "frame.createOrReplaceGlobalTempView(path)",
        "frame.registerTempTable(path)",
        "spark.read.format('delta').table(path)",
        "spark.table(path)",
        "spark.read.jdbc(path, path)",
        "spark.read.option('dbtable', path)",
        "pyarrow = spark; pyarrow.table(path)",
        "spark.catalog.dropTempView(path)",
        "writer.option('replaceWhere', path)",
        "writer.option('REPLACEWHERE', path)",
        "writer.option('replace' + 'Where', path)",
        "writer.option(key='replaceWhere', value=path)",
        "writer.options(replaceWhere=path)",
        "writer.options(**{'replace' + 'Where': path})",
        "writer.save(path, replaceWhere=path)",
        "writer.save(path, **{'replaceWhere': path})",
        "DeltaTable.forPath(spark, path).delete(path)",
        "from delta.tables import DeltaTable as D; D.forPath(spark, path).delete(path)",
        "delta.tables.DeltaTable.forName(spark, path).update(path, {'x': path})",
    ],
)
def test_a_breach_is_reported(line: str) -> None:
    assert list(breaches(f"def f(spark, frame, writer, row, names, path: str):\n    {line}\n"))
    assert list(breaches(line))


@pytest.mark.parametrize(
    "line",
    [
        "spark.sql('SELECT 1')",
        "F.expr('INTERVAL 1 SECOND')",
        "F.filter('routes', lambda r: r['x'])",
        "frame.where(frame.x == path)",
        "frame.where('x is null')",
        "frame.where(~F.col('x') & is_known)",
        "frame.where(is_known)",
        "frame.filter(condition=is_last())",
        "frame.where(search.begins)",
        "frame.where(frame.x.isNull())",
        "x = F.col('a').isNull() & is_known; frame.where(x)",
        "frame.select(path).join(frame, names, how='inner')",
        "writer.option('userMetadata', path).save(path)",
        "statements.restore(spark, location, 1)",
        "getattr(error, 'strerror', None)",
        "pyarrow.table(path, names)",
    ],
)
def test_safe_code_passes(line: str) -> None:
    declarations = "def is_last() -> Column: ...\nclass Search:\n    begins: Column\n"
    assert list(breaches(f"{declarations}def f(is_known: Column, names, path: str):\n    {line}\n")) == []


@pytest.mark.parametrize(
    "line",
    [
        "spark.sql(path)",
        "spark.sql(f'SELECT {path}')",
        "spark.sql('SELECT 1')",
        "spark.sql(sqlQuery=path)",
        "spark.sql(_sql(f'SELECT {path}'))",
        "spark.sql(_sql('SELECT ' + path))",
        "spark.sql(_sql(path))",
        "spark.sql(_sql(*path))",
        "spark.sql(_sql('SELECT 1') + path)",
        "spark.sql(_sql('SELECT 1'), path)",
        "x = _sql('SELECT 1'); x = path; spark.sql(x)",
        "x = _sql('SELECT 1'); x += path; spark.sql(x)",
        "run = spark.sql; run(path)",
        "make = _sql; spark.sql(make(path))",
        "spark.sql(Sql(path))",
        "_sql('{x}', x=Sql(path))",
        "make = Sql; _sql('{x}', x=make(path))",
        "cast(Sql, path)",
        "getattr(spark, 'sql')(path)",
        "frame.where('x')",
        "reader.table(path)",
        "writer.saveAsTable(name=path)",
        "rows.createOrReplaceTempView(f'{path}')",
        "spark.catalog.dropTempView(path)",
        "names = spark.catalog; names.dropTempView(path)",
        "F.expr(path)",
        "DeltaTable.forName(spark, path).delete(path)",
        "writer.option('replaceWhere', path)",
    ],
)
def test_a_breach_in_the_sql_module_is_reported(line: str) -> None:
    assert list(breaches_inside(f"def f(spark, reader, writer, path: str):\n    {line}\n"))


_QUOTED = re.compile(r"`((?:[^`]|``)*)`", re.DOTALL)


@given(st.text(min_size=1))
def test_a_quoted_path_ends_at_its_backtick(path: str) -> None:
    """One backtick opens the path and one closes it. The text between them is the path."""
    name = sql_name(TableLocation(path))
    match = re.fullmatch(rf"`delta`\.{_QUOTED.pattern}", name, re.DOTALL)
    assert match is not None
    assert match.group(1).replace("``", "`") == path


@given(st.lists(st.text(st.characters(exclude_characters="."), min_size=1), min_size=2, max_size=3))
def test_a_quoted_name_ends_at_its_backtick(parts: list[str]) -> None:
    name = sql_name(TableLocation(".".join(parts), is_name=True))
    assert re.fullmatch(r"`(?:[^`]|``)*`(?:\.`(?:[^`]|``)*`){1,2}", name, re.DOTALL)
    assert [part.replace("``", "`") for part in _QUOTED.findall(name)] == parts
