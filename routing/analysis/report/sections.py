"""What the page shows below its filter, in its order: sections of pictures and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from routing.analysis.lint.catalogue import BY_CODE
from routing.analysis.report.cells import size_of
from routing.analysis.report.facts import Advice, Balance, Changes, Count, Pick, Report
from routing.analysis.report.filling import minute
from routing.analysis.report.tables import MOST_BYTES, NAME, NUMBER, OUTCOME, TEXT, WORD, Table, table, words
from routing.show import printable

_SECOND = 1_000_000
_SEVERITIES = ("error", "warning", "info")
_REMEDIES = 40
"""So many groups of messages are told what to do about."""
_SERVICES = 30
"""So many balanced services are shown, or fewer where their tables are long."""
# What a row takes besides its texts.
_ROW = 150


@dataclass(frozen=True)
class Section:
    """``short`` is its name among all; ``words`` say what is shown; ``pictures`` are ids; ``code`` is T-SQL.

    ``is_folded``: the tables have the numbers of the pictures.
    ``is_filtered`` sections are made of cells and moments.
    """

    id: str
    title: str
    short: str
    words: str = ""
    pictures: Sequence[str] = ()
    tables: Sequence[Table] = ()
    parts: Sequence[Section] = field(default_factory=tuple)
    more: str = ""
    code: str = ""
    is_folded: bool = False
    is_filtered: bool = False


def sections_of(report: Report, grids: Mapping[str, Table]) -> list[Section]:
    """The sections of a report, those of which nothing was asked left out."""
    found = [*_of_messages(report, grids)]
    if report.advice is not None:
        found.append(_remedies(report.advice))
    if report.balances is not None:
        found.append(_balance(report.balances))
    if report.findings is not None:
        found.append(_findings(report))
    if report.coverage is not None:
        found.append(_coverage(report))
    if report.changes is not None:
        found.append(_changes(report.changes))
    return found


def _of_messages(report: Report, grids: Mapping[str, Table]) -> Iterator[Section]:
    if report.series is not None:
        yield Section(
            "over-time",
            "Outcomes over time",
            "Over time",
            "When the messages were decided, and what became of them.",
            ["times-picture"],
            [grids["times"]],
            is_folded=True,
            is_filtered=True,
        )
    yield Section(
        "by-service",
        "By instance and service",
        "Services",
        "",
        ["instances-picture"],
        [grids["services"]],
        is_filtered=True,
    )
    yield Section(
        "reasons-of-trouble",
        "Why messages are delayed or dropped",
        "Reasons",
        "",
        ["reasons-picture"],
        [grids["reasons"]],
        is_filtered=True,
    )
    delays = ["delays-picture"] if report.series is not None else []
    yield Section(
        "most-stuck",
        "Services with most waiting messages",
        "Waiting",
        "Messages that are delayed, and since when the first of them has been waiting.",
        ["stuck-picture", *delays],
        [grids["stuck"]],
        is_filtered=True,
    )
    yield Section(
        "estate-map",
        "The estate",
        "Estate",
        "Instances and databases, and the messages between them. What is delayed or dropped stops where it is.",
        ["estate-picture"],
        [grids["estate"]],
        is_folded=True,
        is_filtered=True,
    )


def _remedies(advice: Sequence[Advice]) -> Section:
    """What to do about the first groups; the others are counted."""
    parts = [_remedy(one, f"remedy-{place}") for place, one in enumerate(advice[:_REMEDIES])]
    told = (
        "For the oldest message of each group, on its sender's instance. What is a comment needs a value first."
        if parts
        else "There is nothing to do."
    )
    left = max(0, len(advice) - _REMEDIES)
    more = f"and {left:,} more groups" if left else ""
    return Section("remedies", "What to do, one by one", "What to do", told, parts=parts, more=more)


def _remedy(one: Advice, name: str) -> Section:
    number = f"{one.messages:,} message{'' if one.messages == 1 else 's'}"
    sender = words(one.instance) if one.database is None else f"{words(one.instance)}.{words(one.database)}"
    fate = " ".join(filter(None, (one.outcome, one.reason)))
    title = f"{number} from {sender} to {words(one.service)}: {fate}"
    code = "\n".join(map(printable, (one.statement or "").splitlines()))
    return Section(name, title, title, words(one.words), code=code)


def _findings(report: Report) -> Section:
    """What every instance has by default is counted: it would bury what somebody did."""
    order = {word: place for place, word in enumerate(_SEVERITIES)}
    every = sorted(report.findings or (), key=lambda row: order.get(row["severity"], len(order)))
    rows = [row for row in every if row["code"] not in BY_CODE or not BY_CODE[row["code"]].is_default]
    told = [_counted(sum(row["severity"] == word for row in rows), word) for word in _SEVERITIES]
    defaults = len(every) - len(rows)
    if defaults:
        told.append(f"{defaults:,} more of what every instance has by default are not listed")
    heads = (
        *(("Severity", WORD), ("Code", WORD), ("Instance", ""), ("Database", ""), ("Object", NAME)),
        *(("What", TEXT), ("What to do", TEXT)),
    )
    names = ("severity", "code", "instance_name", "database_name", "object", "message", "advice")
    found = table("findings", "Findings, the worst first", heads, [[row[name] for name in names] for row in rows])
    return Section("lint", "Faults and hazards of the configuration", "Findings", ", ".join(told), (), [found])


def _counted(count: int, severity: str) -> str:
    return f"{count:,} {severity}{'' if count == 1 or severity == 'info' else 's'}"


def _coverage(report: Report) -> Section:
    rows = sorted(report.coverage or (), key=lambda row: (row["used"] - row["routes"], row["instance_name"] or ""))
    routes, used = (sum(row[name] for row in rows) for name in ("routes", "used"))
    heads = (("Instance", ""), ("Routes", NUMBER), ("Used", NUMBER), ("Not used", NUMBER))
    lines = [(row["instance_name"], row["routes"], row["used"], row["routes"] - row["used"]) for row in rows]
    told = f"Messages used {used:,} of {routes:,} routes ({100 * used / routes if routes else 100.0:.1f} %)."
    found = table("coverage", "Routes that messages used, by instance", heads, lines)
    return Section("routes-in-use", "Route coverage", "Coverage", told, (), [found])


def _changes(changes: Changes) -> Section:
    tables = [
        _counts("outcome", changes.outcomes, OUTCOME),
        _counts("reason", changes.reasons, WORD),
    ]
    if changes.routes is not None:
        names = (("Change", WORD), ("Instance", ""), ("Database", ""), ("Route", NAME), ("What changed", TEXT))
        routes = [(one.change, one.instance, one.database, one.route, one.words) for one in changes.routes]
        tables.append(table("routes", "Routes that differ", names, routes))
    if changes.run_id is None or changes.finished_at is None:
        title, told = (
            "What the scripts change",
            ["Before is without the scripts that are tried, now is with them."],
        )
    else:
        title = "Since the run before"
        told = [f"Run {words(changes.run_id)} ended {minute(changes.finished_at // _SECOND)} UTC."]
    if changes.is_incremental:
        told.append("Each run counts what it decided itself, new messages and those tried again.")
    if changes.routes is None:
        told.append("The routes that it read cannot be read any more.")
    return Section("since", title, "Changes", " ".join(told), (), tables)


def _counts(word: str, counts: Sequence[Count], kind: str) -> Table:
    heads = ((word.capitalize(), kind), ("Before", NUMBER), ("Now", NUMBER), ("Difference", NUMBER))
    lines = [(one.word, one.before, one.now, f"{one.now - one.before:+,}") for one in counts]
    return table(f"{word}s-before", f"Messages by {word}, before and now", heads, lines)


def _balance(balances: Sequence[Balance]) -> Section:
    parts: list[Section] = []
    room = MOST_BYTES
    for one in balances[:_SERVICES]:
        part = _shared(one, f"balance-{len(parts)}")
        room -= sum(_ROW + sum(map(size_of, row)) for found in part.tables for row in found.rows)
        if parts and room < 0:
            break
        parts.append(part)
    told = (
        "Dialogs are shared out among the broker ids of equal routes. The band is where 95 of 100 fair"
        " choices end."
        if balances
        else "No service is balanced among several broker ids."
    )
    left = len(balances) - len(parts)
    return Section(
        "balance", "Balance", "Balance", told, parts=parts, more=f"and {left:,} more services" if left else ""
    )


def _shared(one: Balance, name: str) -> Section:
    heads = (
        ("Broker id", WORD),
        ("Database", ""),
        ("Dialogs", NUMBER),
        ("Expected", NUMBER),
        ("Band", NUMBER),
        ("Where", WORD),
    )
    picks = [_pick(pick) for pick in one.picks]
    tables = [table(name, "Dialogs of each broker id", heads, picks, "no dialog was shared out")]
    if one.never:
        names = (("Broker id", WORD), ("Route", NAME), ("Why", WORD), ("In words", TEXT))
        never = [(id_.broker_instance, id_.route, id_.why, id_.words) for id_ in one.never]
        tables.append(table(f"{name}-never", "Routes that name a broker id in vain", names, never))
    title = f"{words(one.service)} from {words(one.instance)}.{words(one.database)}"
    return Section(name, title, "", _judged(one), [f"{name}-picture"] if one.picks else (), tables)


def _pick(pick: Pick) -> tuple[Any, ...]:
    is_fair = pick.low <= pick.dialogs <= pick.high
    band = f"{pick.low:,.0f} to {pick.high:,.0f}"
    side = "in the band" if is_fair else "above the band" if pick.dialogs > pick.high else "below the band"
    return pick.broker_instance, pick.owner, pick.dialogs, pick.expected, band, side


def _judged(one: Balance) -> str:
    """The span of time, and what chance says of the shares."""
    since = None if one.since is None else f"since {minute(one.since // _SECOND)}"
    until = None if one.until is None else f"until {minute(one.until // _SECOND)}"
    span = " ".join(word for word in (since, until) if word)
    when = f"The set of ids has been the same {span} UTC." if span else "The set of ids was always the same."
    if one.p_value is None:
        return f"{when} No p-value: {words(one.no_p_value or 'it was not asked for')}."
    value = "less than 0.0001" if one.p_value < 0.0001 else f"{one.p_value:.4f}"
    return f"{when} p-value {value}, corrected for the number of services."
