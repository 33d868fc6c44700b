"""The tables of `docs/reference/reasons.md`, made of the words that the commands print.

``python -m tests.reasons_page`` writes them into the page, each below its header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from routing.advice.remedies import CASES
from routing.advice.status_meanings import CAUSES, StatusTrouble
from routing.advice.trouble_catalogue import REASONS, STATUSES
from routing.rules.observed import NO_PERMISSION, SENDING, TABLE, TOPICS, NumberAgreement, NumberTopic
from routing.terms import ERROR_NUMBERS, Reason
from tests.documented_errors import PAGES

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "reasons.md"
_NOT_FOUND = (Reason.NO_ROUTE, Reason.SERVICE_NOT_FOUND, Reason.BROKER_INSTANCE_NOT_FOUND)

_CASE_WORDS = {
    "end_dead": (
        "the service belongs to a client of query notifications, or to event notifications",
        "`END CONVERSATION … WITH CLEANUP`, for event notifications as a comment",
    ),
    "enable_scope": (
        "the broker of the sender or of msdb is off",
        "`ALTER DATABASE … SET ENABLE_BROKER WITH NO_WAIT`",
    ),
    "enable_target": (
        "the broker of the database that holds the service is off",
        "`ALTER DATABASE … SET ENABLE_BROKER WITH NO_WAIT`",
    ),
    "correct_invalid": (
        "a route for the service has an invalid address",
        "`ALTER ROUTE … WITH ADDRESS`",
    ),
    "correct_spelling": (
        "a usable route spells the service differently, and nothing known needs that spelling",
        "`ALTER ROUTE … WITH SERVICE_NAME`",
    ),
    "renew_route": (
        "a route for the service has expired",
        "`DROP ROUTE` and `CREATE ROUTE` without a lifetime, in one transaction",
    ),
    "correct_route_id": (
        "a route names an old broker instance, the messages that of a database with the service",
        "`ALTER ROUTE … WITH BROKER_INSTANCE`",
    ),
    "deliver_here": (
        "the service is in this instance",
        "`CREATE ROUTE` with LOCAL, or `ALTER ROUTE` of a route that goes in a circle or names the service",
    ),
    "part_from_holder": (
        "a database here has the messages' broker instance without the service, one elsewhere has both",
        "comment: `SET NEW_BROKER` or `DISABLE_BROKER` for the copy",
    ),
    "lead_back": (
        "an acknowledgement does not return to its sender",
        "`CREATE ROUTE`, or `ALTER ROUTE … WITH ADDRESS`, a comment if the sender's address is unknown",
    ),
    "lead_elsewhere": (
        "other known instances hold the service, with the messages' broker instance",
        "`CREATE ROUTE`, or `ALTER ROUTE … WITH ADDRESS`, a comment for several instances or an unknown address",
    ),
    "renew_route_id": (
        "a LOCAL route names an old broker instance, and one database here has the service",
        "`ALTER ROUTE … WITH BROKER_INSTANCE`. End dialogs that are bound to the old one",
    ),
    "name_spellings": (
        "a known service has this name in another spelling",
        "words",
    ),
    "notify_anew": (
        "SQL Server sends them for an event notification",
        "`DROP` and `CREATE EVENT NOTIFICATION` in words, `END CONVERSATION … WITH CLEANUP` as a comment",
    ),
    "begin_anew": (
        "no known database with the service has the dialog's broker instance",
        "words: end the dialogs and begin new ones",
    ),
    "end_refused": (
        "the messages are bound to a database here without the service",
        "comment: `END CONVERSATION`, and begin a new dialog",
    ),
    "correct_address": (
        "the msdb route has a wrong port or instance",
        "`ALTER ROUTE … WITH ADDRESS`, a comment if the right address is unknown",
    ),
    "enable_forwarding": (
        "otherwise",
        "comment: `ALTER ENDPOINT … (MESSAGE_FORWARDING = ENABLED)`",
    ),
    "compare_ids": (
        "a route for the service names another broker instance, and no known database has either",
        "comment: `ALTER ROUTE … WITH BROKER_INSTANCE`",
    ),
    "open_closed": (
        "a database here is not online",
        "comment: `SET ONLINE` or `RESTORE`",
    ),
    "find_address": (
        "otherwise",
        "comment: `CREATE ROUTE`, or `ALTER ROUTE … WITH ADDRESS`",
    ),
    "answer_request": (
        "always",
        "`CREATE ROUTE`, a comment if no known address leads to the service",
    ),
    "look_at_queue": (
        "the routing is right",
        "comment: a query of the target queue, and `ALTER QUEUE … WITH STATUS = ON`",
    ),
    "say": (
        "always",
        "words",
    ),
}
"""The condition of each remedy, and what it prints, by its function in `routing.advice.remedies`."""


def _list_security_parts() -> dict[tuple[int, ...], str]:
    """Return the names of the parts of SECURITY by their numbers."""
    names = {28047: "SECURITY, connections", 9731: "SECURITY, dialogs", NO_PERMISSION[0]: "SECURITY, permission"}
    lines = [line.numbers for line in TABLE if isinstance(line.numbers, tuple)]
    return {
        next(numbers for numbers in lines if number in numbers and len(numbers) < 60): name
        for number, name in names.items()
    }


_PARTS = _list_security_parts()


def _join_numbers(numbers: Iterable[int]) -> str:
    """Return numbers in their order, three and more that follow each other as a range."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [[f"{run[0]}–{run[-1]}"] if len(run) > 2 else [str(number) for number in run] for run in runs]
    return ", ".join(part for run in parts for part in run)


def _join_reasons(reasons: tuple[Reason, ...]) -> str:
    """Return reasons as the page names them, with its words for two groups."""
    if len(reasons) == len(Reason):
        return "every reason"
    names, remaining = [], list(reasons)
    for group, name in ((SENDING, "*sent*"), (_NOT_FOUND, "*not found*")):
        if set(group) <= set(remaining):
            names.append(name)
            remaining = [reason for reason in remaining if reason not in group]
    return ", ".join([*names, *map(str, remaining)])


def find_agreeing_numbers(reason: Reason) -> list[int]:
    """Return the numbers of SQL Server that agree with a reason, the one that is printed with it first."""
    agreeing = [
        number
        for line in TABLE
        if line.agreement == NumberAgreement.AGREES and reason in line.reasons and isinstance(line.numbers, tuple)
        for number in line.numbers
    ]
    return sorted(agreeing, key=lambda number: (number != ERROR_NUMBERS.get(reason), number))


def reason_rows() -> list[tuple[str, ...]]:
    """Return a row for each reason."""
    first: dict[str, Reason] = {}
    rows: list[tuple[str, ...]] = []
    for reason, entry in REASONS.items():
        same = first.setdefault(entry.advice, reason)
        advice = entry.advice if same == reason else f"as for {same}"
        rows.append((str(reason), ", ".join(map(str, find_agreeing_numbers(reason))), entry.cause, advice))
    return rows


def topic_rows() -> list[tuple[str, ...]]:
    """Return a row for each topic of numbers; SECURITY has three."""
    rows: list[tuple[str, ...]] = []
    for topic, numbers in TOPICS.items():
        if topic == NumberTopic.SECURITY:
            rows += [(name, _join_numbers(part)) for part, name in _PARTS.items()]
            assert sorted(number for part in _PARTS for number in part) == sorted(numbers)
        else:
            rows.append((str(topic), _join_numbers(numbers)))
    return rows


def agreement_rows() -> list[tuple[str, ...]]:
    """Return the comparison without the numbers that agree; neighbours with one answer share a row."""
    searched = {None: "", True: ", msdb searched", False: ", the sender's routes searched"}
    rows: list[tuple[list[str], str, str]] = []
    for line in TABLE:
        if line.agreement == NumberAgreement.AGREES:
            continue
        reasons = _join_reasons(line.reasons) + searched[line.in_msdb]
        if rows and rows[-1][1:] == (reasons, str(line.agreement)):
            rows[-1][0].append(_name_numbers(line.numbers))
        else:
            rows.append(([_name_numbers(line.numbers)], reasons, str(line.agreement)))
    return [(", ".join(numbers), reasons, agreement) for numbers, reasons, agreement in rows]


def _name_numbers(numbers: tuple[int, ...] | NumberTopic) -> str:
    """Return the numbers of a line as the page names them."""
    if isinstance(numbers, NumberTopic):
        return str(numbers)
    return "every number above" if len(numbers) > 60 else _PARTS.get(numbers) or _join_numbers(numbers)


def status_rows() -> list[tuple[str, ...]]:
    """Return a row for each status that no page on an error explains."""
    explained = {page.trouble for page in PAGES} - {StatusTrouble.OTHER_NUMBER}
    return [
        (_join_causes(trouble), entry.cause, entry.advice)
        for trouble, entry in STATUSES.items()
        if trouble not in explained
    ]


def _join_causes(trouble: StatusTrouble) -> str:
    """Return the numbers of a status, with the numbers or words that must be in its text."""
    causes = []
    for row in CAUSES:
        if row.trouble is trouble:
            within = [*map(str, row.inner), *(f"“{mark}”" for mark in row.marks)]
            causes.append(_join_numbers(row.numbers) + (f" with {', '.join(within)}" if within else ""))
    return "; ".join(causes) or {"OTHER_NUMBER": "any other", "UNREAD": "none"}[str(trouble)]


def case_rows() -> list[tuple[str, ...]]:
    """Return a row for each remedy of a reason, in the order in which they are tried."""
    assert [find_remedy.__name__ for _, find_remedy in CASES] == list(_CASE_WORDS)
    return [(_join_reasons(reasons), *_CASE_WORDS[find_remedy.__name__]) for reasons, find_remedy in CASES]


TABLES = {
    "| reason | number | meaning | what to do |": reason_rows,
    "| topic | numbers |": topic_rows,
    "| number | reason | answer |": agreement_rows,
    "| reason | condition | what to do |": case_rows,
}
"""The tables of the page by their headers."""


def renewed(text: str) -> str:
    """Return the page with the rows of its tables as they are now."""
    for header, rows in TABLES.items():
        ruled = f"{header}\n|{'---|' * (header.count('|') - 1)}\n"
        before, header_line, after = text.partition(ruled)
        assert header_line, header
        new = "".join(f"| {' | '.join(row)} |\n".replace("|  |", "| |") for row in rows())
        text = before + ruled + new + re.sub(r"\A(?:\|.*\n)*", "", after)
    return text


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
