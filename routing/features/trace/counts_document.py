"""How many messages end how, once all were followed: as a document, and as one JSON object."""

from __future__ import annotations

from routing.document import DataTable, Document, Paragraph, Words, make_columns
from routing.render.json_text import write_json
from routing.render.wording import count, mark_outcome
from routing.runs.paths_written import WrittenPaths
from routing.terms import Ending


def make_document(done: WrittenPaths) -> Document:
    """Describe how many messages arrive and how many do not, the outcomes, and how the counts add up."""
    counts = sorted(done.outcomes.items(), key=lambda item: (-item[1], item[0]))
    added = f"{done.traced:,} followed + {done.rejected:,} rejected"
    read = f"{count(done.read, 'message')} read = {added}; version {done.version} of output.message_paths"
    hint = "resolve lists the rejected ones, with what is wrong with each"
    return [
        Paragraph(_state_ends(done)),
        DataTable(make_columns(["outcome", "messages"], ["messages"]), counts, "Where messages end"),
        Paragraph(read),
        *([Paragraph(hint)] if done.rejected else []),
    ]


def _state_ends(done: WrittenPaths) -> Words:
    """Return the sentence that says how many messages arrive, and where the others end."""
    if not done.traced:
        return "No message was followed."
    arrived = done.outcomes.get(Ending.DELIVERED, 0)
    are = "is" if arrived == 1 else "are"
    sentence = [f"{arrived:,} of {count(done.traced, 'message')} {are} ", mark_outcome(Ending.DELIVERED)]
    others = sorted(set(done.outcomes) - {Ending.DELIVERED}, key=lambda word: (-done.outcomes[word], word))
    for number, word in enumerate(others):
        sentence += [f"{', ' if number else '; '}{done.outcomes[word]:,} ", mark_outcome(word)]
    return [*sentence, "."]


def write_counts(done: WrittenPaths) -> str:
    """Return one line: version, read, followed, rejected, outcomes."""
    counts = {"version": done.version, "read": done.read, "followed": done.traced, "rejected": done.rejected}
    return write_json({**counts, "outcomes": dict(done.outcomes)})
