"""What the commands print of a result, as one text: for notebooks, and whoever else holds the result itself."""

from __future__ import annotations

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
from routing.document import Document
from routing.render.text import write_text

if TYPE_CHECKING:
    from routing.analysis.trace.tracing import Traced

Told = Union[Explanation, "Traced", Diff, Messages, Reconciliation]
_WIDTH = 160


def text_of(done: Told, *, width: int = _WIDTH) -> str:
    """Return what `explain`, `trace`, `diff`, `reconcile` or `list_messages` returned, as its command prints it.

    Lines are ``width`` characters long at most; statements keep theirs.
    """
    return write_text(_make_document(done), width=width)


def _make_document(done: Told) -> Document:
    if isinstance(done, Explanation):
        return explain_document.make_document(done)
    if isinstance(done, Diff):
        return diff_document.make_document(done)
    if isinstance(done, Messages):
        return messages_document.make_document(done)
    if isinstance(done, Reconciliation):
        return reconcile_printing.make_document(done)
    return trace_document.make_document(done)
