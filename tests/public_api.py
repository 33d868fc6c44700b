"""The names of ``routing.__all__``: their docstrings in sections, and the folder for their examples.

The folder has the files after a first run: ``job.yaml``, its tables, and the outputs of run ``first``. Examples
that mention ``spark`` or ``tables`` get a session, and the inputs as its DataFrames.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import doctest
import importlib
import inspect
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import yaml

import routing
from tests.estate_rows import conversation, small_estate
from tests.frames import Tables
from tests.stored import save_estate

MODULES = ("pictures",)
"""The public module, whose names stand in its ``__all__``."""
NAMES = [name for name in dir(routing) if not name.startswith("_") and name not in MODULES]
"""The public names, without the module."""
GIVEN = ("spark", "tables")
"""What an example may use without having made it, besides ``routing``."""
SECTIONS = ("Args", "Returns", "Raises", "Example")
_HEAD = re.compile(rf"^({'|'.join(SECTIONS)}):$", re.MULTILINE)
_ENTRY = re.compile(r"^    (\w+): ", re.MULTILINE)
_OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "runs")


@dataclass(frozen=True)
class PublicName:
    """A name of ``routing`` with its object. ``docstring`` is empty if it has only an inherited one."""

    name: str
    value: Any

    @property
    def docstring(self) -> str:
        """Return the docstring without indentation, or empty text for an inherited one."""
        docstring = vars(self.value).get("__doc__") if isinstance(self.value, type) else self.value.__doc__
        return inspect.cleandoc(docstring or "")

    @property
    def summary(self) -> str:
        """All that stands before the first section."""
        return _HEAD.split(self.docstring)[0].strip()

    @property
    def sections(self) -> Mapping[str, str]:
        """The sections' texts by their heads, in their order."""
        parts = _HEAD.split(self.docstring)[1:]
        return dict(zip(parts[::2], (part.strip("\n") for part in parts[1::2]), strict=True))

    @property
    def is_enum(self) -> bool:
        """Return whether the name is an enumeration, with members instead of arguments."""
        return isinstance(self.value, type) and issubclass(self.value, Enum)

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters, or of a class's fields, in their order."""
        return [] if self.is_enum else list(inspect.signature(self.value).parameters)

    @property
    def returns_something(self) -> bool:
        """Whether a call returns a value that a reader asks about: a class's is the instance."""
        return not isinstance(self.value, type) and inspect.signature(self.value).return_annotation != "None"

    @property
    def needs_spark(self) -> bool:
        """Whether the example works in a session."""
        names = [
            node
            for node in ast.walk(ast.parse(_source(self.sections.get("Example", ""))))
            if isinstance(node, ast.Name)
        ]
        assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        return any(node.id in GIVEN and node.id not in assigned for node in names)

    def entries(self, section: str) -> list[str]:
        """Return the names that a section explains, in their order."""
        return _ENTRY.findall(self.sections.get(section, "") + "\n")


def public_names() -> Iterator[PublicName]:
    """Return all public names."""
    for name in NAMES:
        yield PublicName(name, getattr(routing, name))


def _source(example: str) -> str:
    return "".join(example_part.source for example_part in doctest.DocTestParser().get_examples(example))


def faults(public: PublicName) -> list[str]:
    """Describe missing parts of a docstring, and its parameters and errors that do not exist."""
    found_faults = []
    if not public.sections.get("Example", "").strip().startswith(">>> "):
        found_faults.append("it has no example")
    if public.entries("Args") != public.parameters:
        found_faults.append(f"Args are {public.entries('Args')}, the parameters {public.parameters}")
    if public.returns_something != ("Returns" in public.sections):
        found_faults.append(f"Returns {'is missing' if public.returns_something else 'of nothing'}")
    errors = {**vars(builtins), **_errors_of_the_package()}
    for name in public.entries("Raises"):
        if not (isinstance(errors.get(name), type) and issubclass(errors[name], BaseException)):
            found_faults.append(f"{name} is no exception")
    if list(public.sections) != [name for name in SECTIONS if name in public.sections]:
        found_faults.append(f"its sections are in another order than {', '.join(SECTIONS)}")
    return found_faults


def _errors_of_the_package() -> dict[str, type]:
    """Return the root of errors and all its classes, by their names."""
    # Errors that are made beside what raises them.
    for module in ("routing.cases.questions", "routing.importing.import_faults"):
        importlib.import_module(module)
    errors, classes = dict[str, type](), [routing.RoutingError]
    while classes:
        error = classes.pop()
        errors[error.__name__] = error
        classes += error.__subclasses__()
    return errors


def example_estate() -> Tables:
    """Return the small estate of the examples, with an event that agrees with the routes and one that does not."""
    fixed = {
        "instance_name": "hub",
        "database_name": "Sales",
        "is_initiator": True,
        "observed_at": "2026-01-05T12:00:00Z",
        "source": "broker_message_classify",
        "to_service_name": "//far",
    }
    events: list[dict[str, Any]] = [
        {"conversation_id": conversation(3), "outcome": "SENT", "next_hop": "tcp://far.example:4022"},
        {"conversation_id": conversation(4), "outcome": "DELAYED", "error_number": None},
    ]
    return {**small_estate(), "observed_routing": [{**fixed, **event} for event in events]}


def build_folder(folder: Path) -> None:
    """Write the files for the examples into a folder."""
    save_estate(example_estate(), folder / "in", files=1)
    keys = sorted(path.name for path in (folder / "in").iterdir())
    job = {
        "tables": {key: f"in/{key}" for key in keys},
        "output": {key: f"out/{key}" for key in _OUTPUTS},
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(job), encoding="utf-8")
    routing.resolve_local(routing.load_config(str(folder / "job.yaml")), run_id="first")


def run_example(public: PublicName, **names: Any) -> str:
    """Run the example of a name in the current folder, and return a report of lines with other output."""
    namespace = {"routing": routing, **names}
    test = doctest.DocTestParser().get_doctest(
        public.sections["Example"], namespace, public.name, f"routing.{public.name}", 0
    )
    report = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):
        doctest.DocTestRunner(verbose=False).run(test, out=report.write)
    return report.getvalue()
