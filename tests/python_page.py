"""The reference of the Python API: between two marks a page shows the docstrings of the names in the first.

``make docs-output`` renews it, by ``python -m tests.shown_output``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from tests.public_api import PublicName, public_names

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "python.md"
BLOCK = re.compile(r"<!-- docstrings: (?P<names>[\w, ]+) -->\n.*?<!-- end of docstrings -->\n", re.DOTALL)
_LITERAL = re.compile(r"``(.+?)``")
_PAGE = re.compile(r"(docs/reference/|docs/how-to/|)([\w-]+)\.md\b")
_LONGEST = 20
_FOLDERS = {"docs/reference/": "", "docs/how-to/": "../how-to/", "": ""}


def listed_names(text: str) -> list[str]:
    """Return the names with docstrings on a page, in order."""
    return [name for block in BLOCK.finditer(text) for name in block["names"].split(", ")]


def renewed(text: str) -> str:
    """Return a page with the docstrings as they are now."""
    public_by_name = {public.name: public for public in public_names()}

    def renew(block: re.Match[str]) -> str:
        parts = [_render(public_by_name[name]) for name in block["names"].split(", ")]
        return "\n".join([f"<!-- docstrings: {block['names']} -->", *parts, "<!-- end of docstrings -->\n"])

    return BLOCK.sub(renew, text)


def _render(public: PublicName) -> str:
    sections = public.sections
    parts = [f"### routing.{public.name}", _markdown(public.summary)]
    if public.parameters:
        parts.insert(1, f"```text\n{_signature(public)}\n```")
        rows = (f"| `{name}` | {text} |" for name, text in _entries(sections["Args"]))
        parts.append("\n".join(["| argument | meaning |", "|---|---|", *rows]))
    if "Returns" in sections:
        parts.append(f"Returns: {_markdown(inspect.cleandoc(sections['Returns']))}")
    if "Raises" in sections:
        raised = "; ".join(f"`{name}`: {text.rstrip('.')}" for name, text in _entries(sections["Raises"]))
        parts.append(f"Raises {raised}.")
    parts.append(f"```pycon\n{inspect.cleandoc(sections['Example'])}\n```")
    return "\n\n".join(parts) + "\n"


def _signature(public: PublicName) -> str:
    """Return the call as users type it, with names and plain default values."""
    shown, is_keyword = [], False
    for parameter in inspect.signature(public.value).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            shown.append("*")
            is_keyword = True
        if parameter.default is parameter.empty:
            shown.append(f"*{parameter.name}" if parameter.kind is parameter.VAR_POSITIONAL else parameter.name)
        else:
            is_plain = parameter.default is None or (
                isinstance(parameter.default, bool | int | str | tuple) and len(repr(parameter.default)) < _LONGEST
            )
            shown.append(f"{parameter.name}={repr(parameter.default) if is_plain else '…'}")
    return f"routing.{public.name}({', '.join(shown)})"


def _entries(section: str) -> Iterator[tuple[str, str]]:
    for entry in re.split(r"^    (?=\w+: )", section, flags=re.MULTILINE)[1:]:
        name, _, text = entry.partition(": ")
        yield name, _markdown(" ".join(text.split())).replace("|", "\\|")


def _markdown(text: str) -> str:
    """Markdown of reStructuredText: literals, and links to the pages that are named."""
    text = _LITERAL.sub(r"`\1`", text)
    text = _PAGE.sub(lambda match: f"[{match[2].replace('-', ' ')}]({_FOLDERS[match[1]]}{match[2]}.md)", text)
    return text.replace("rule book", "[rule book](rule-book.md)")
