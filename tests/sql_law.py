"""The law on texts that are parsed as SQL, checked on the syntax tree. Its test has examples.

The import linter limits the users of the SQL module and of DeltaTable. mypy checks the types `SqlText` and Column.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

# What parses a text, takes the name of a table, or gets at such a method by a text: not to be spelled.
_WORDS = {"sql", "expr", "selectexpr", "saveastable", "insertinto", "writeto", "mergeinto", "totable", "jdbc"}
_WORDS |= {f"create{kind}tempview" for kind in ("", "global", "orreplace", "orreplaceglobal")}
_WORDS |= {"registertemptable", "dbtable", "replacewhere", "deltatable"}
_WORDS |= {"attrgetter", "methodcaller", "__getattribute__", "__dict__", "__import__"}
# The same, of words that have other uses too; and those.
_METHODS = {"table", "catalog", "where", "filter", "option", "options"}
_HARMLESS = {"F.filter", "pyarrow.table"}
_IMPORTED = {"F": "functions", "pyarrow": "pyarrow"}
# Methods of a Column that no text has.
_OF_COLUMNS = {"isNull", "isNotNull", "isin", "eqNullSafe"}
_QUOTING = {"_sql", "_join", "quote", "_literal", "_kind"}

Known = dict[str, list[ast.expr | bool]]


class Parsed(NamedTuple):
    """The nodes of a syntax tree with their parents."""

    nodes: tuple[ast.AST, ...]
    up: dict[ast.AST, ast.AST]

    @classmethod
    def of(cls, tree: ast.AST) -> Parsed:
        nodes, up = [tree], dict[ast.AST, ast.AST]()
        for node in nodes:
            children = [*ast.iter_child_nodes(node)]
            up.update(dict.fromkeys(children, node))
            nodes += children
        return cls(tuple(nodes), up)


@cache
def parsed(source: str) -> Parsed:
    """The syntax tree of a room, which is walked once."""
    return Parsed.of(ast.parse(source))


def says(annotation: ast.expr | None, kind: str) -> bool:
    return annotation is not None and ast.unparse(annotation) == kind


def bindings(tree: Parsed, kind: str) -> Known:
    """Return the values assigned to each name, or whether its annotation has this kind. False is unknown."""
    bound = Known()
    for node in tree.nodes:
        match node, tree.up.get(node):
            case (ast.FunctionDef(name=name, returns=said) | ast.arg(arg=name, annotation=said), _):
                value: ast.expr | bool = says(said, kind)
            case ast.Name(id=name, ctx=ast.Store()), ast.AnnAssign(annotation=said):
                value = says(said, kind)
            case ast.Name(id=name, ctx=ast.Store()), (ast.Assign(value=assigned) | ast.NamedExpr(value=assigned)):
                value = assigned
            case (ast.Name(id=name, ctx=ast.Store()) | ast.alias(asname=str(name)), _):
                value = False
            case _:
                continue
        bound.setdefault(name, []).append(value)
    return bound


def declared(*sources: str) -> Known:
    """Whether functions of these rooms, and members of their classes (``.name``), are said to be Columns."""
    declarations = Known()
    for holder in (node for source in sources for node in parsed(source).nodes):
        dot = "." if isinstance(holder, ast.ClassDef) else ""
        for member in holder.body if isinstance(holder, ast.Module | ast.ClassDef) else []:
            match member:
                case ast.FunctionDef(name=name, returns=said):
                    declarations.setdefault(dot + name, []).append(says(said, "Column"))
                case ast.AnnAssign(target=ast.Name(id=name), annotation=said):
                    declarations.setdefault(dot + name, []).append(says(said, "Column"))
                case ast.Assign(targets=[ast.Name(id=name)]):
                    declarations.setdefault(dot + name, []).append(False)
    return declarations


def follows(node: ast.expr, own: Known, others: Known, is_safe: Callable[[ast.expr], bool]) -> bool:
    """Return whether a node is safe: by itself, as a name for safe values, or as a call of such a function."""
    if is_safe(node):
        return True
    match node:
        case ast.Call(func=function):
            return follows(function, own, others, is_safe)
        case ast.Name(id=name) if name in own:
            remaining = {other_name: values for other_name, values in own.items() if other_name != name}
            return all(v if isinstance(v, bool) else follows(v, remaining, others, is_safe) for v in own[name])
        case ast.Name(id=name) | ast.Attribute(attr=name):
            dot = "." if isinstance(node, ast.Attribute) and f".{name}" in others else ""
            return all(others.get(dot + name, [False]))
    return False


def is_condition(node: ast.expr) -> bool:
    """Return whether a node is a literal or certainly not a text."""
    match node:
        case ast.Constant() | ast.Compare() | ast.UnaryOp() | ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            return True
        case ast.Call(func=ast.Attribute(attr=name, value=on)):
            return name in _OF_COLUMNS or ast.unparse(on) == "F"
    return False


def is_made(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("_sql", "sql_name")


def words(node: ast.AST) -> set[str]:
    """Return the spelling of one node in lower case, as options are read."""
    match node:
        case ast.alias(name=name, asname=asname):
            return {*name.lower().split("."), (asname or "").lower()}
        case ast.Attribute(attr=word) | ast.Name(id=word) | ast.keyword(arg=word) | ast.Constant(value=word):
            return {word.lower()} if isinstance(word, str) else set()
    return set()


def arguments(node: ast.AST, parent: ast.AST | None) -> list[ast.expr] | None:
    """Return the arguments of a call, or None if the function is passed on instead."""
    if isinstance(parent, ast.Call) and parent.func is node:
        return [*parent.args, *(keyword.value for keyword in parent.keywords)]
    return None


def breaches(source: str, others: Known | None = None) -> Iterator[str]:
    """Return a module's breaches of the law. ``others`` has the declarations of all modules."""
    tree, others = parsed(source), declared(source) if others is None else others
    up, own = tree.up, bindings(tree, "Column")
    for node in tree.nodes:
        passed = arguments(node, up.get(node))
        match node:
            case ast.Attribute(attr="sql" | "expr"):
                is_safe = passed is not None and [type(part) for part in passed] == [ast.Constant]
            case ast.Attribute() if ast.unparse(node) in _HARMLESS:
                is_safe = True
            case ast.Attribute(attr="where" | "filter"):
                is_safe = passed is not None and all(follows(part, own, others, is_condition) for part in passed)
            case ast.Attribute(attr="option"):
                is_safe = passed is not None and isinstance(passed[0], ast.Constant)
            case ast.Attribute(attr="options"):
                is_safe = passed is None
            case ast.Attribute(attr="table" | "catalog") | ast.Name(id="eval" | "exec"):
                is_safe = False
            case ast.Name(id="getattr"):
                word = passed[1] if passed else node
                is_safe = isinstance(word, ast.Constant) and word.value not in _METHODS
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in _IMPORTED:
                is_safe = False
            case ast.alias(name=name, asname=asname) if (asname or name) in _IMPORTED:
                is_safe = name == _IMPORTED[asname or name]
            case _:
                is_safe = not words(node) & _WORDS
        if not is_safe:
            yield ast.unparse(node)


def breaches_inside(source: str) -> Iterator[str]:
    """Return breaches in the SQL module: passing texts to Spark, or using unquoted texts as `SqlText`."""
    nodes, up = parsed(source)
    for node in nodes:
        passed, around = arguments(node, up.get(node)), up.get(node)
        match node:
            case ast.Attribute(attr="catalog"):
                is_safe = isinstance(around, ast.Attribute)
            case ast.Attribute(value=on) if words(node) & {*_WORDS, "table"} or "catalog" in words(on):
                own = bindings(Parsed.of(function_of(node, up)), "SqlText")
                is_safe = passed is not None and all(follows(part, own, {}, is_made) for part in passed)
            case ast.Attribute(attr="option"):
                own = bindings(Parsed.of(function_of(node, up)), "SqlText")
                texts = (passed or [])[1:]
                is_safe = bool(texts) and all(follows(part, own, {}, is_made) for part in texts)
            case ast.Constant(value="replaceWhere"):
                is_safe = isinstance(around, ast.Call) and ast.unparse(around.func) == "writer.option"
            case ast.Name(id="_sql"):
                is_safe = passed is not None and isinstance(passed[0], ast.Constant)
            case ast.Name(id="SqlText") if passed is not None:
                function = function_of(node, up)
                is_quoting = isinstance(function, ast.FunctionDef) and function.name in _QUOTING
                is_safe = is_quoting or isinstance(passed[0], ast.Constant)
            case ast.Name(id="SqlText"):
                # The type of something.
                is_safe = isinstance(around, ast.FunctionDef | ast.arg | ast.Subscript | ast.BinOp)
            case _:
                is_safe = not words(node) & ({"getattr", "cast", *_METHODS, *_WORDS} - {"table"})
        if not is_safe:
            yield ast.unparse(node)


def function_of(node: ast.AST, up: dict[ast.AST, ast.AST]) -> ast.AST:
    """Return the function or module that contains a node."""
    while not isinstance(node, ast.FunctionDef | ast.Module):
        node = up[node]
    return node
