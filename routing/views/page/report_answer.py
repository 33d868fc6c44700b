"""Write the first line of a report: the number of stuck messages, and their age."""

from __future__ import annotations

from datetime import timedelta

from routing.render.wording import count, format_duration
from routing.terms import LEAVES, NOT_KNOWN, Outcome
from routing.views.page.facts import STUCK, Report
from routing.views.page.page_tables import instant


def state_answer(report: Report) -> str:
    """Return the answer of a report: the numbers of stuck messages and of unknown endings."""
    if report.answer is not None:
        return report.answer
    total, stuck = sum(report.endings.values()), count_endings(report, *STUCK)
    if not total:
        return "There are no messages."
    unknown = count_endings(report, NOT_KNOWN)
    parts = [f"{stuck:,} of {count(total, 'message')} {'is' if stuck == 1 else 'are'} stuck"]
    if not stuck:
        parts = ["nothing is stuck"]
    if unknown:
        parts.append(f"it is not known where {count(unknown, 'message')} {'ends' if unknown == 1 else 'end'}")
    line = "; ".join(parts)
    return f"{line[:1].upper()}{line[1:]}."


def state_waiting(report: Report) -> str:
    """Return a sentence about the age of the oldest stuck message, or an empty text."""
    oldest = min((flow.oldest for flow in report.flows if flow.end in STUCK), default=None)
    if oldest is None:
        return ""
    age = format_duration(timedelta(microseconds=report.made_at - oldest))
    return f"The oldest stuck message was enqueued at {instant(oldest)}, {age} ago."


def state_limit(report: Report) -> str:
    """Return a sentence on acknowledgements, which a report does not follow, or an empty text if none matters."""
    arrives = any(flow.outcome in LEAVES and flow.end == Outcome.DELIVERED for flow in report.flows)
    if report.answer is not None or not arrives:
        return ""
    return "Acknowledgements are not followed: sbroute trace --all follows them."


def count_endings(report: Report, *endings: str) -> int:
    """Count the messages of a report that have one of some endings."""
    return sum(report.endings.get(word, 0) for word in endings)
