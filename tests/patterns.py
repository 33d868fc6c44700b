"""The regular expressions of the package, found automatically, and texts that make a bad one slow.

Python's expressions are compiled at the top of a module or written where they are used. Spark's are arguments of
functions that run them in Java. A text has a prefix before a repetition, a repeated part, and an end that does not
match.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import routing

HOUSE = Path(routing.__file__).parent
LENGTH = 100_000
"""As many characters as a text may have and still be read in no time."""

INLINE = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
# Functions and methods of Spark that take a regular expression, and which of their arguments it is.
_JAVA_FUNCTIONS = {
    **dict.fromkeys(
        ("regexp_replace", "regexp_extract", "regexp_extract_all", "regexp_substr", "regexp_instr"), 1
    ),
    **dict.fromkeys(("regexp_count", "regexp_like", "regexp", "split", "rlike", "like", "ilike"), 1),
}
_JAVA_METHODS = {"rlike": 0, "like": 0, "ilike": 0}


@dataclass(frozen=True)
class Use:
    """One use of an expression. ``where`` is module and line or name."""

    where: str
    pattern: str
    flags: int
    method: str


@dataclass(frozen=True)
class Room:
    """A module of the package: its name, its syntax tree and the values of its names."""

    name: str
    tree: ast.Module
    names: dict[str, Any]

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def methods(self) -> dict[str, set[str]]:
        """By a name, or a name with an index, the methods of expressions that are called on it."""
        methods_by_name: dict[str, set[str]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and node.attr in INLINE:
                on = node.value.value if isinstance(node.value, ast.Subscript) else node.value
                if isinstance(on, ast.Name):
                    methods_by_name.setdefault(on.id, set()).add(node.attr)
        return methods_by_name


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's syntax tree, the module first. Each file is read once."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def rooms() -> tuple[Room, ...]:
    """Return all modules of the package, read once."""
    collected = []
    for path in sorted(HOUSE.rglob("*.py")):
        parts = path.relative_to(HOUSE.parent).with_suffix("").parts
        if parts[-1] == "__main__":
            continue
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        module = importlib.import_module(name)
        tree = nodes_of(path)[0]
        assert isinstance(tree, ast.Module)
        collected.append(Room(name, tree, vars(module)))
    return tuple(collected)


def python_uses(collected: Sequence[Room]) -> tuple[list[Use], list[str]]:
    """Return the uses of each expression in Python, and breaches of the law."""
    uses: list[Use] = []
    breaches: list[str] = []
    for room in collected:
        uses += _compiled(room, collected, breaches)
        uses += _inline(room, breaches)
        breaches += _unseen(room)
    return uses, breaches


def _compiled(room: Room, all_rooms: Sequence[Room], breaches: list[str]) -> Iterator[Use]:
    own = {target for target, _ in _assigned(room.tree)}
    for name in sorted(own):
        patterns = list(_patterns(room.names.get(name)))
        if not patterns:
            continue
        readers = [room] if name.startswith("_") else all_rooms
        methods = {method for reader in readers for method in reader.methods.get(name, ())}
        if not methods:
            breaches.append(f"{room.name}: nobody sees how {name} is used")
        for pattern in patterns:
            yield from (Use(f"{room.name}.{name}", pattern.pattern, pattern.flags, m) for m in sorted(methods))


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    yield target.id, node.value


def _patterns(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _patterns(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _patterns(inner)


def _inline(room: Room, breaches: list[str]) -> Iterator[Use]:
    for node in room.nodes:
        if _is_call_of(node, "re", INLINE):
            assert isinstance(node, ast.Call)
            assert isinstance(node.func, ast.Attribute)
            pattern = _value(node.args[0], room)
            location = f"{room.name}, line {node.lineno}"
            if pattern is None or any(keyword.arg == "flags" for keyword in node.keywords):
                breaches.append(f"{location}: {ast.unparse(node)}: compile it at the top of the module")
            else:
                yield Use(location, pattern, 0, node.func.attr)


def _unseen(room: Room) -> Iterator[str]:
    """Expressions that are compiled where no module's names show them, and names of `re` that hide a call."""
    assigned = {id(node) for name, value in _assigned(room.tree) for node in ast.walk(value)}
    for node in room.nodes:
        if _is_call_of(node, "re", {"compile"}) and id(node) not in assigned:
            yield f"{room.name}, line {node.lineno}: compiled out of sight"  # type: ignore[attr-defined]
        if isinstance(node, ast.ImportFrom) and node.module in ("re", "regex", "fnmatch"):
            yield f"{room.name}, line {node.lineno}: {ast.unparse(node)}"
        if isinstance(node, ast.Import) and any(
            alias.name in ("regex", "fnmatch") or (alias.name == "re" and alias.asname) for alias in node.names
        ):
            yield f"{room.name}, line {node.lineno}: {ast.unparse(node)}"


def java_uses(collected: Sequence[Room]) -> tuple[list[Use], list[str]]:
    """Return the uses of each expression in Java, and breaches of the law."""
    uses: list[Use] = []
    breaches: list[str] = []
    for room in collected:
        for node in room.nodes:
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            is_function = _is_call_of(node, "F", set(_JAVA_FUNCTIONS))
            place = (_JAVA_FUNCTIONS if is_function else _JAVA_METHODS).get(node.func.attr)
            if place is None:
                continue
            location = f"{room.name}, line {node.lineno}"
            pattern = _value(node.args[place], room) if len(node.args) > place else None
            if pattern is None:
                breaches.append(f"{location}: {ast.unparse(node)}")
            else:
                uses.append(Use(location, pattern, 0, node.func.attr))
        for node in room.nodes:
            # Texts that Spark parses may hold one as well.
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if re.search(r"(?i)\b(rlike|regexp\w*|similar to)\b[ (]", text) and not _is_docstring(node, room):
                breaches.append(f"{room.name}, line {node.lineno}: {text[:60]}")  # type: ignore[attr-defined]
    return uses, breaches


def _is_docstring(node: ast.AST, room: Room) -> bool:
    return any(isinstance(outer, ast.Expr) and outer.value is node for outer in room.nodes)


def _is_call_of(node: ast.AST, name: str, functions: set[str]) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == name
        and node.func.attr in functions
    )


def _value(node: ast.expr, room: Room) -> str | None:
    """Return the value of an expression of a module's constants, or None if it has a function's own names."""
    try:
        value = eval(compile(ast.Expression(node), room.name, "eval"), dict(room.names))
    except NameError:
        return None
    return value if isinstance(value, str) else None


def in_python(pattern: str) -> str:
    """An expression of Java as Python writes it."""
    pattern = re.sub(r"\\x\{([0-9A-Fa-f]+)\}", lambda m: re.escape(chr(int(m.group(1), 16))), pattern)
    return pattern.replace(r"\z", r"\Z")
