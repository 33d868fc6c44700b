"""An explanation as a document: the outcome, what to do, the statement, then the path step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from routing.document import (
    Block,
    Document,
    DocumentHeading,
    LabelledFact,
    Paragraph,
    SqlStatement,
    Tone,
    TonedText,
)
from routing.features.explain import path_sentences
from routing.features.explain.explaining import Explanation
from routing.features.explain.outcome_sentence import DecidedMessage, state_outcome
from routing.render.wording import mark_outcome, plain_words

Row = Mapping[str, Any]
# Items that begin a part, and those that stand below another; all others are between.
_PARTS = ("MESSAGE", "SCOPE", "REQUEST_PATH")
_DEEP = ("ROUTE", "OTHER_ROUTES", "ID", "OTHER_IDS", "REQUEST", "DATABASE")
# What stands before the path: it says how far the outcome can be trusted, and what SQL Server says of it.
_BEFORE_THE_PATH = {"IMPORT": "note", "INSTANCE": "note", "STATUS": "observed"}
_TONES = {
    ("STEP", "MATCHED"): Tone.STRONG,
    ("STEP", "NOT_REACHED"): Tone.QUIET,
    ("ROUTE", "MATCHED"): Tone.GOOD,
    ("ROUTE", "LATER"): Tone.QUIET,
    ("ROUTE", "NO_MATCH"): Tone.QUIET,
    ("OTHER_ROUTES", "MORE"): Tone.QUIET,
    ("OTHER_ROUTES", "OTHER"): Tone.QUIET,
    ("TIER", "USED"): Tone.STRONG,
    ("TIER", "NOT_REACHED"): Tone.QUIET,
    ("BROKER", "DISABLED"): Tone.WAITING,
    ("LOCATION", "LOCATED"): Tone.GOOD,
    ("LOCATION", "NOT_LOCATED"): Tone.WAITING,
    ("REQUEST_PATH", "LOST"): Tone.BAD,
}


def make_document(explanation: Explanation) -> Document:
    """Describe an explanation: the outcome in a sentence, what to do, then every step and route."""
    [verdict], steps = explanation.verdict, explanation.steps.rows
    message = DecidedMessage(verdict, steps)
    return [
        Paragraph(state_outcome(message)),
        *_reason(message),
        *_what_to_do(message, explanation),
        *(
            LabelledFact(_BEFORE_THE_PATH[step["item"]], path_sentences.sentence(step))
            for step in steps
            if step["item"] in _BEFORE_THE_PATH
        ),
        *list_steps(step for step in steps if step["item"] not in _BEFORE_THE_PATH),
    ]


def state_nothing_to_run(explanation: Explanation) -> str:
    """Return the comment that stands alone where an explanation has no statement."""
    [verdict], steps = explanation.verdict, explanation.steps.rows
    message = DecidedMessage(verdict, steps)
    outcome, advice = plain_words(state_outcome(message)), _advise(message, explanation)
    return " ".join(part for part in ("There is nothing to run.", outcome, advice) if part is not None)


def _reason(message: DecidedMessage) -> Iterator[Block]:
    reason = message.verdict["reason"]
    if reason is not None:
        yield LabelledFact("reason", path_sentences.number_reason(reason, message.scope))


def _what_to_do(message: DecidedMessage, explanation: Explanation) -> Iterator[Block]:
    remedy, advice = explanation.remedy, _advise(message, explanation)
    instance = message.verdict["instance_name"]
    if advice is not None:
        yield LabelledFact(f"what to do on {path_sentences.quote_name(instance)}", advice)
    if remedy is not None and remedy.statement is not None:
        purpose = [remedy.state_place(instance), plain_words(state_outcome(message)), remedy.words]
        # Where the statement is a comment the comments that say what it is for end with an empty one.
        yield SqlStatement(remedy.statement, "\n".join(purpose + [""] * (not remedy.is_complete)), 1)


def _advise(message: DecidedMessage, explanation: Explanation) -> str | None:
    remedy = explanation.remedy
    return path_sentences.advice(message.verdict["reason"]) if remedy is None else remedy.words


def list_steps(steps: Iterable[Row]) -> Iterator[Block]:
    """Yield the lines of a path, each below what it belongs to."""
    scope = None
    for step in steps:
        scope = step["database_name"] if step["item"] == "SCOPE" else scope
        yield from _list_outcome(step, scope) if step["item"] == "OUTCOME" else [_describe_step(step)]


def _describe_step(step: Row) -> Block:
    item, sentence = step["item"], path_sentences.sentence(step)
    tone = _TONES.get((item, step["finding"]))
    words = sentence if tone is None else TonedText(sentence, tone)
    if item in _PARTS:
        return DocumentHeading(words, 3)
    return Paragraph(words, 0 if item == "STATUS" else 2 if item in _DEEP else 1, hang=1)


def _list_outcome(step: Row, scope: str | None) -> Iterator[Block]:
    """Yield the line that ends the path, with SQL Server's number."""
    outcome, number = str(step["outcome"] or ""), path_sentences.error_number(step["reason"], scope)
    numbered = "" if number is None else f" (SQL Server's number: {number})"
    yield Paragraph("")
    yield Paragraph(
        (mark_outcome(outcome), path_sentences.sentence(step).removeprefix(outcome) + numbered), hang=1
    )
