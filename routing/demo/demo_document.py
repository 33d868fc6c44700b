"""The document of the demo: each estate message by message, the day as counts, outcomes, and commands to try."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from routing.config import Config
from routing.demo.example_estates import document_estates
from routing.document import (
    Block,
    DataTable,
    Document,
    DocumentHeading,
    ListItem,
    Paragraph,
    SqlStatement,
    Words,
    make_columns,
)
from routing.render.wording import count, mark_outcome
from routing.terms import LOCAL_ENGINE, ReadRow


def make_document(resolved: Sequence[ReadRow], run: ReadRow, config: Config) -> Document:
    """Describe the demo's resolved messages and the row of its run."""
    return [*_describe_estates(resolved), *_describe_day(resolved), *_say_what_next(config, run)]


def _describe_estates(resolved: Iterable[ReadRow]) -> Iterator[Block]:
    """Yield the estates of the documentation, with a sentence on each message."""
    rows = {(row["instance_name"], row["message_id"]): row for row in resolved}
    for estate in document_estates():
        yield DocumentHeading(estate.title)
        for message in estate.tables["messages"]:
            yield ListItem(_describe_message(rows[message["instance_name"], message["message_id"]]))


def _describe_message(row: ReadRow) -> Words:
    """Describe where a message goes: outcome, place and reason, then the route and its step."""
    place = row["destination_database"] or row["address"]
    where = "" if place is None else f" to {place}"
    route = "" if row["route_name"] is None else f" by {row['route_name']}"
    step = f"step {row['matching_step']}, {row['reason']}"
    message_and_service = f"{row['message_id']} for {row['to_service_name']}: "
    return (message_and_service, mark_outcome(row["outcome"]), f"{where}{route} ({step})")


def _describe_day(resolved: Iterable[ReadRow]) -> Iterator[Block]:
    """Yield the messages of the generated day by outcome and reason, most first."""
    documents = {str(row["instance_name"]) for estate in document_estates() for row in estate.tables["instances"]}
    day = [row for row in resolved if row["instance_name"] not in documents]
    counts = Counter((str(row["outcome"]), str(row["reason"])) for row in day)
    lines = [(*what, number) for what, number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    columns = make_columns(("outcome", "reason", "messages"), ("messages",))
    yield DataTable(columns, lines, f"A generated day of {count(len(day), 'message')}")


def _say_what_next(config: Config, run: ReadRow) -> Iterator[Block]:
    """Yield the counts of the run, and commands to try."""
    read, resolved, rejected = (run[f"rows_{name}"] for name in ("read", "resolved", "rejected"))
    yield Paragraph(
        f"{count(read, 'message')} read = {resolved:,} resolved + {rejected:,} rejected; the tables are Delta,"
        f" described in {config.file}."
    )
    yield DocumentHeading("What to try next")
    yield SqlStatement("\n".join(f"sbroute {line}" for line in _commands(config.file, run["engine"])), indent=1)
    yield Paragraph("Then write a configuration for your own tables: docs/reference/configuration.md.")


def _commands(file: str, engine: str) -> Iterator[str]:
    is_local = engine == LOCAL_ENGINE
    option = " --engine local" if is_local else ""
    yield f"resolve --config {file}{option} --as-of 2026-01-05T18:00:00Z"
    yield f"runs --config {file}"
    yield f"messages --config {file} --outcome DELAYED --now 2026-01-05T18:00:00Z"
    yield f"trace --config {file} --message-id d00263-i0 --instance depot-east"
    yield f"trace --config {file} --all"
    if not is_local:
        # Spark alone ranks.
        yield f"candidates --config {file}"
