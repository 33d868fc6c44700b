"""What the commands print of a result, as one text: for notebooks, and whoever else holds the result itself."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Union

from routing.analysis.diff import diff_document
from routing.analysis.diff.diffing import Diff
from routing.analysis.explain import explain_document
from routing.analysis.explain.explaining import Explanation
from routing.analysis.messages import messages_document
from routing.analysis.messages.listing import Messages
from routing.analysis.reconcile import printing as reconcile_printing
from routing.analysis.reconcile.reconciling import Reconciliation
from routing.analysis.trace import trace_document
from routing.render.text import write_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from routing.analysis.trace.tracing import Traced

Told = Union[Explanation, "Traced", Diff, Messages, Reconciliation]
_WIDTH = 160


def text_of(done: Told, *, width: int = _WIDTH) -> str:
    """What `explain`, `trace`, `diff`, `reconcile` or `list_messages` returned, as its command prints it.

    Tables are as wide as ``width`` characters at most; what does not fit a column goes on in the next line.
    """
    return "\n".join(line.rstrip() for part in _parts(done, width) for line in _lines(part, width))


def _parts(done: Told, width: int) -> Iterable[RenderableType]:
    if isinstance(done, Explanation):
        return [write_text(explain_document.make_document(done), width=width)]
    if isinstance(done, Diff):
        return [write_text(diff_document.make_document(done), width=width)]
    if isinstance(done, Messages):
        return [write_text(messages_document.make_document(done), width=width)]
    if isinstance(done, Reconciliation):
        return [write_text(reconcile_printing.make_document(done), width=width)]
    return [write_text(trace_document.make_document(done), width=width)]


def _lines(part: RenderableType, width: int) -> list[str]:
    if isinstance(part, str):
        return part.split("\n")
    from rich.console import Console

    out = io.StringIO()
    # In a kernel rich would show the table itself, beside the text.
    Console(file=out, width=width, highlight=False, color_system=None, force_jupyter=False).print(part)
    return out.getvalue().splitlines()
