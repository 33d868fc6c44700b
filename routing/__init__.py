"""Resolve SQL Server Service Broker messages against route tables: find the destination of each message, and why.

`resolve` takes tables and returns DataFrames. `run` reads and writes the Delta tables of a configuration from
`load_config`. `diff` compares two configurations, times or versions, or the effect of a script. `report`
summarises a run, and `write_page` writes it to a page.

The public names and their modules are listed once, in ``__init__.pyi``, for type checkers and for this module. A
name is imported when it is first used, so that the command line starts fast and without Spark.
"""

from functools import cache as _cache
from typing import Any as _Any


@_cache
def _public_names() -> dict[str, tuple[str, str]]:
    """Return the module of each public name, and its name in that module."""
    import ast
    import pkgutil

    names: dict[str, tuple[str, str]] = {}
    for node in ast.parse(pkgutil.get_data(__name__, "__init__.pyi") or b"").body:
        if isinstance(node, ast.ImportFrom):
            names |= {one.asname or one.name: (str(node.module), one.name) for one in node.names}
        elif isinstance(node, ast.Assign):
            names |= {ast.unparse(name): names[ast.unparse(node.value)] for name in node.targets}
    return {name: names[name] for name in sorted(names) if not name.startswith("_")}


def __getattr__(name: str) -> _Any:
    if name == "__all__":
        return list(_public_names())
    if name.startswith("_") or name not in _public_names():
        # Python also looks up each module of the package here, before it imports the module.
        raise _unknown(name)
    module, name_there = _public_names()[name]
    # As `from module import name_there` does it, which also imports a module of a package.
    return getattr(__import__(module, fromlist=[name_there]), name_there)


def __dir__() -> list[str]:
    return [*_public_names(), *(name for name in globals() if name.startswith("__")), "__all__"]


def _unknown(name: str) -> AttributeError:
    from difflib import get_close_matches

    near = get_close_matches(name, _public_names(), n=1)
    hint = f", did you mean {near[0]!r}?" if near else ""
    return AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
