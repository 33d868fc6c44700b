"""Write a result as the text that its command prints: for notebooks, and other callers that have the result."""

from __future__ import annotations

from routing.arguments import checked
from routing.document import Document
from routing.render.text import write_text
from routing.views.diff import diff_document
from routing.views.diff.diffing import Diff
from routing.views.explain import explain_document
from routing.views.explain.explaining import Explanation
from routing.views.messages import messages_document
from routing.views.messages.message_list import MessageList
from routing.views.reconcile import reconciling
from routing.views.reconcile.reconciling import Reconciliation
from routing.views.trace import tracing
from routing.views.trace.tracing import TraceResult

CommandResult = Explanation | TraceResult | Diff | MessageList | Reconciliation
_WIDTH = 160


@checked
def text_of(done: CommandResult, *, width: int = _WIDTH) -> str:
    """Write a result of `explain`, `trace`, `diff`, `reconcile` or `list_messages` as its command prints it.

    Args:
        done: the result.
        width: the maximal length of a line. Statements are not wrapped.

    Returns:
        The text, with line ends.

    Example:
        >>> answer = routing.explain(routing.load_config("job.yaml"), routing.StoredMessage("m5"))
        >>> print(routing.text_of(answer).split(";")[0])
        DELAYED: no route of 'msdb' leads to service '//stock'
    """
    return write_text(_make_document(done), width=width)


def _make_document(done: CommandResult) -> Document:
    if isinstance(done, Explanation):
        return explain_document.make_document(done)
    if isinstance(done, Diff):
        return diff_document.make_document(done)
    if isinstance(done, MessageList):
        return messages_document.make_document(done)
    if isinstance(done, Reconciliation):
        return reconciling.make_document(done)
    return tracing.make_document(done)
