"""Check the arguments of public functions and classes, each by its annotation."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import cache, wraps
from typing import Any, ForwardRef, TypeVar, get_args, get_origin

from routing.errors import ContractError, describe_value

_MOST_HINTS = 2
Function = TypeVar("Function", bound=Callable[..., Any])


class ArgumentFault(ContractError, TypeError):
    """An argument of a call from Python is of a kind that the function does not take."""

    @classmethod
    def of_kind(cls, name: str, value: object, kinds: Sequence[str], hint: str | None) -> ArgumentFault:
        """Name an argument, its value and the kinds that the function takes."""
        wanted = " or ".join([", ".join(kinds[:-1]), kinds[-1]] if kinds[1:] else kinds)
        return cls(f"argument {name} is {describe_value(value)}, not {wanted}", hint)


@dataclass(frozen=True)
class ArgumentKind:
    """A kind of values that a parameter takes: its name for messages, and a test of a value."""

    name: str
    takes: Callable[[Any], bool]
    advice: str | None = None


def _is_sequence_of_texts(value: Any) -> bool:
    is_sequence = isinstance(value, Sequence | Set) and not isinstance(value, str)
    return is_sequence and all(isinstance(one, str) for one in value)


def _maps_texts_to(kind: type) -> Callable[[Any], bool]:
    def takes(value: Any) -> bool:
        is_mapping = isinstance(value, Mapping) and _is_sequence_of_texts(value.keys())
        return is_mapping and all(isinstance(one, kind) for one in value.values())

    return takes


def _is_time(value: object) -> bool:
    # NaT of pandas is a datetime too, but does not equal itself.
    return isinstance(value, datetime) and value == value


_KINDS = {
    "None": ArgumentKind("None", lambda value: value is None),
    "Callable": ArgumentKind("a function", callable),
    "Mapping": ArgumentKind(
        "tables by their keys", lambda value: isinstance(value, Mapping), 'such as {"routes": routes, …}'
    ),
    "Mapping[str, int]": ArgumentKind("numbers by texts", _maps_texts_to(int), 'such as {"routes": 3}'),
    "Mapping[str, object]": ArgumentKind(
        "values by texts", _maps_texts_to(object), 'such as {"availableNow": True}'
    ),
    "Mapping[str, str]": ArgumentKind("texts by texts", _maps_texts_to(str), 'such as {"a": "b"}'),
    "Sequence": ArgumentKind("a list of texts", _is_sequence_of_texts, 'such as ["a", "b"]'),
    "bool": ArgumentKind("True or False", lambda value: isinstance(value, bool)),
    "datetime": ArgumentKind("a datetime", _is_time, "such as datetime(2026, 1, 5, 13), in UTC"),
    "int": ArgumentKind("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "str": ArgumentKind("a text", lambda value: isinstance(value, str)),
    "Config": ArgumentKind(
        "a configuration",
        lambda value: _has_class_named("Config", value),
        "routing.load_config reads one from a file",
    ),
    "SparkSession": ArgumentKind(
        "a SparkSession",
        lambda value: _has_class_named("SparkSession", value),
        "routing.spark_session starts one",
    ),
}


def checked(function: Function) -> Function:
    """Check the arguments of each call of a function, or of each new object of a class.

    Raises ArgumentFault with the argument, its value and the expected kind.
    """
    if isinstance(function, type):
        function.__init__ = checked(function.__init__)  # type: ignore[misc]
        return function

    @wraps(function)
    def check_and_call(*args: Any, **options: Any) -> Any:
        signature = inspect.signature(function)
        try:
            bound_arguments = signature.bind(*args, **options).arguments
        except TypeError:
            # Python's own message is the best one.
            return function(*args, **options)
        for name, value in _each_argument(signature, bound_arguments):
            _check(function, name, signature.parameters[name].annotation, value)
        return function(*args, **options)

    return check_and_call  # type: ignore[return-value]


def _each_argument(signature: inspect.Signature, bound: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield each argument with the name of its parameter, including those of ``*others``."""
    for name, value in bound.items():
        is_repeated = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        values = value if is_repeated and isinstance(value, tuple) else (value,)
        yield from ((name, each) for each in values)


def _check(function: Callable[..., Any], name: str, annotation: object, value: object) -> None:
    if annotation is inspect.Parameter.empty:
        return
    kinds = _kinds_of(str(annotation), function)
    if not any(kind.takes(value) for kind in kinds):
        hints = [kind.advice for kind in kinds if kind.advice][:_MOST_HINTS]
        raise ArgumentFault.of_kind(name, value, [kind.name for kind in kinds], "; ".join(hints) or None)


@cache
def _kinds_of(annotation: str, function: Callable[..., Any]) -> tuple[ArgumentKind, ...]:
    names = getattr(function, "__globals__", {})
    return tuple(_kinds_in(ast.parse(annotation, mode="eval").body, names))


def _kinds_in(node: ast.AST, names: Mapping[str, object]) -> Iterator[ArgumentKind]:
    """Yield the kinds of an annotation, including those of unions and aliases."""
    if isinstance(node, ast.BinOp):
        yield from _kinds_in(node.left, names)
        yield from _kinds_in(node.right, names)
        return
    name = ast.unparse(node)
    name = name if name in _KINDS else name.partition("[")[0]
    union = () if name in _KINDS else get_args(names.get(name))
    for one in union or [name]:
        yield _kind_named(_name_of(one))


def _name_of(kind: Any) -> str:
    """Return the name of one kind of a union, which may be written as a text."""
    if isinstance(kind, str):
        return kind
    return str(kind.__forward_arg__) if isinstance(kind, ForwardRef) else str((get_origin(kind) or kind).__name__)


def _kind_named(name: str) -> ArgumentKind:
    article = "an" if name[0] in "AEIOU" else "a"
    return _KINDS.get(name) or ArgumentKind(f"{article} {name}", lambda value: _has_class_named(name, value))


def _has_class_named(name: str, value: object) -> bool:
    """Return whether a value is of a class with this name, without importing the class."""
    return any(one.__name__ == name for one in type(value).__mro__)
