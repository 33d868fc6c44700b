"""Print a remedy: the action and its place, the risk, and the statement to paste."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from routing.advice.remedy import Remedy
from routing.document import Block, LabelledFact, ListItem, Paragraph, SqlStatement, Tone, TonedText


def list_remedy(
    remedy: Remedy, label: str, why: str = "", *, about: Sequence[str] | None = None, indent: int = 0
) -> Iterator[Block]:
    """Yield a remedy under a label. Its cause is left out if it equals ``why``, which is printed above.

    ``about`` are the comments of the statement for use without its context.
    """
    sentences = list_sentences(remedy, why)
    if len(sentences) == 1:
        yield LabelledFact(label, sentences[0], indent)
    else:
        yield Paragraph((TonedText(f"{label}:", Tone.QUIET),), indent)
        yield from (ListItem(sentence, indent=indent) for sentence in sentences)
    if remedy.risk is not None:
        yield LabelledFact("risk", remedy.risk, indent)
    if remedy.statement is not None:
        if about is None:
            yield SqlStatement(remedy.statement, indent=indent + 1)
        else:
            yield remedy.as_statement(about, indent + 1)


def list_sentences(remedy: Remedy, why: str = "") -> list[str]:
    """List the sentences of a remedy, a cause that is ``why`` left out."""
    return [*([] if remedy.cause in ("", why) else [remedy.cause]), *remedy.actions]
