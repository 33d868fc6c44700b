"""The expected output of the demo as words, from the golden rows of its estates and its day."""

from __future__ import annotations

from collections import Counter

from routing.demo.example_estates import document_estates
from tests.golden_texts import GOLDEN


def estate_lines(title: str) -> list[str]:
    """The title of an estate and a sentence on each of its messages."""
    estate = next(estate for estate in document_estates() if estate.title == title)
    rows = {(row[0], row[1]): row[2:7] for row in _golden("demo_estates.txt")}
    return [
        title,
        *(
            _sentence(
                str(m["message_id"]),
                str(m["to_service_name"]),
                *rows[str(m["instance_name"]), str(m["message_id"])],
            )
            for m in estate.tables["messages"]
        ),
    ]


def day_lines() -> list[str]:
    """The title of the day's table, its head and a line for each outcome and reason, without its blanks."""
    rows = [(outcome, reason, int(number)) for outcome, reason, number in _golden("demo_day.txt")]
    total = sum(number for _, _, number in rows)
    return [
        f"A generated day of {total:,} messages",
        "outcome reason messages",
        *(f"{outcome} {reason} {number:,}" for outcome, reason, number in rows),
    ]


def summary_lines() -> list[str]:
    """The summary up to the commands: one estate, the outcomes of all messages, and the rejected rows."""
    rows = [(row[5], row[6], 1) for row in _golden("demo_estates.txt")]
    rows += [(outcome, reason, int(number)) for outcome, reason, number in _golden("demo_day.txt")]
    by_outcome: dict[str, Counter[str]] = {}
    for outcome, reason, number in rows:
        by_outcome.setdefault(outcome, Counter())[reason] += number
    lines = []
    for outcome, reasons in sorted(by_outcome.items(), key=lambda item: -item[1].total()):
        most = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:2]
        lines.append(f"{outcome} {reasons.total():,} {', '.join(f'{name} {number:,}' for name, number in most)}")
    resolved = sum(reasons.total() for reasons in by_outcome.values())
    return [
        *estate_lines("example-2: A route that names a service"),
        "Where the messages go",
        "outcome messages most frequent reasons",
        *lines,
        f"{resolved + 9:,} messages read = {resolved:,} resolved + 9 rejected. The demo has wrong rows on",
        "purpose:",
        "- 6 without a required value: conversation_id, enqueue_time, instance_name, is_initiator, message_id,",
        "to_service_name",
        "- 1 CONVERSATION_ID_NOT_A_GUID: the conversation id is not a GUID",
        "- 1 UNKNOWN_DATABASE: tables.databases does not have the database",
        "- 1 UNKNOWN_INSTANCE: tables.instances does not have the instance",
    ]


def _sentence(message: str, service: str, step: str, route: str, place: str, outcome: str, reason: str) -> str:
    destination = "" if place == "-" else f" to {place}"
    by = "" if route == "-" else f" by {route}"
    return f"- {message} for {service}: {outcome}{destination}{by} (step {step}, {reason})"


def _golden(name: str) -> list[list[str]]:
    return [line.split(" | ") for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]
