"""What the demo is to print, from the golden rows of its estates and its day: lines in words, however wrapped."""

from __future__ import annotations

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


def _sentence(message: str, service: str, step: str, route: str, place: str, outcome: str, reason: str) -> str:
    where = "" if place == "-" else f" to {place}"
    by = "" if route == "-" else f" by {route}"
    return f"- {message} for {service}: {outcome}{where}{by} (step {step}, {reason})"


def _golden(name: str) -> list[list[str]]:
    return [line.split(" | ") for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]
