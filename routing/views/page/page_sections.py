"""The sections of the page below its filter, in their order: pictures and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from routing.lint.catalogue import BY_CODE, Severity
from routing.render.wording import count, printable
from routing.rules.reconciling import PairClass
from routing.views.page.facts import (
    BalancedInstance,
    DialogBalance,
    FlowAdvice,
    ObservedCounts,
    Report,
    ReportChanges,
    WordCount,
)
from routing.views.page.message_cells import size_of
from routing.views.page.page_tables import (
    MOST_BYTES,
    NAME,
    NUMBER,
    OUTCOME,
    TEXT,
    WORD,
    PageSection,
    PageTable,
    instant,
    table,
    words,
)

# The section of the page that tells how evenly dialogs are shared out.


_SERVICES = 30
"""So many balanced services are shown, or fewer where their tables are long."""
# What a row takes besides its texts.
_ROW = 150


def balance_section(balances: Sequence[DialogBalance]) -> PageSection:
    """Return every balanced service as a part, in the given order, as many as there is room for."""
    parts: list[PageSection] = []
    room = MOST_BYTES
    for one in balances[:_SERVICES]:
        part = _shared(one, f"balance-{len(parts)}")
        room -= sum(_ROW + sum(map(size_of, row)) for page_table in part.tables for row in page_table.rows)
        if parts and room < 0:
            break
        parts.append(part)
    introduction = (
        "Dialogs are shared out among the broker instances of equal routes. A share outside its band is unfair."
        if balances
        else "No service is balanced among several broker instances."
    )
    left = len(balances) - len(parts)
    return PageSection(
        "balance",
        "Balance",
        "Balance",
        introduction,
        parts=parts,
        more=f"and {left:,} more services" if left else "",
    )


def _shared(one: DialogBalance, name: str) -> PageSection:
    heads = (
        ("Broker instance", WORD),
        ("Database", ""),
        ("Dialogs", NUMBER),
        ("Expected", NUMBER),
        ("Band", NUMBER),
        ("Where", WORD),
    )
    picks = [_pick(pick) for pick in one.picks]
    tables = [table(name, "Dialogs of each broker instance", heads, picks, "no dialog was shared out")]
    if one.never:
        names = (("Broker instance", WORD), ("Route", NAME), ("Why", WORD), ("In words", TEXT))
        never = [(id_.broker_instance, id_.route, id_.why, id_.words) for id_ in one.never]
        tables.append(table(f"{name}-never", "Routes that name a broker instance in vain", names, never))
    title = f"{words(one.service)} from {words(one.instance)}.{words(one.database)}"
    return PageSection(name, title, "", _judged(one), [f"{name}-picture"] if one.picks else (), tables)


def _pick(pick: BalancedInstance) -> tuple[Any, ...]:
    if pick.low is None or pick.high is None:
        band, position = "–", "no band"
    else:
        band = f"{pick.low:,} to {pick.high:,}"
        position = (
            "in the band" if pick.is_fair else "above the band" if pick.dialogs > pick.high else "below the band"
        )
    return pick.broker_instance, pick.owner, pick.dialogs, pick.expected, band, position


def _judged(one: DialogBalance) -> str:
    """Return the span of time, and whether the shares are fair."""
    since = None if one.since is None else f"since {instant(one.since)}"
    until = None if one.until is None else f"until {instant(one.until)}"
    span = " ".join(word for word in (since, until) if word)
    when = f"The set of ids has been the same {span}." if span else "The set of ids was always the same."
    if one.why_no_band is not None:
        return f"{when} No band: {words(one.why_no_band)}."
    outside = sum(not pick.is_fair for pick in one.picks)
    if not outside:
        return f"{when} Fair: every share is in the band."
    return f"{when} Unfair: {count(outside, 'share')} of {len(one.picks):,} outside the band."


_SEVERITIES = tuple(map(str, Severity))
_OBSERVED = "An episode is one answer of SQL Server, seen once or again and again."
_REMEDIES = 40
"""So many groups of messages are told what to do about."""


def sections_of(report: Report, grids: Mapping[str, PageTable]) -> list[PageSection]:
    """Return the sections of a report, those of which nothing was asked left out."""
    sections = [*_of_messages(report, grids)]
    if report.advice is not None:
        sections.append(_remedies(report.advice))
    if report.balances is not None:
        sections.append(balance_section(report.balances))
    if report.observed is not None:
        sections.append(_observed(report.observed))
    if report.findings is not None:
        sections.append(_findings(report))
    if report.coverage is not None:
        sections.append(_coverage(report))
    if report.changes is not None:
        sections.append(_changes(report.changes))
    return sections


def _of_messages(report: Report, grids: Mapping[str, PageTable]) -> Iterator[PageSection]:
    if report.series is not None:
        yield PageSection(
            "over-time",
            "Outcomes over time",
            "Over time",
            "When the messages were decided, and what became of them.",
            ["times-picture"],
            [grids["times"]],
            is_folded=True,
            is_filtered=True,
        )
    yield PageSection(
        "by-service",
        "By instance and service",
        "Services",
        "",
        ["instances-picture"],
        [grids["services"]],
        is_filtered=True,
    )
    yield PageSection(
        "reasons-of-trouble",
        "Why messages are delayed or dropped",
        "Reasons",
        "",
        ["reasons-picture"],
        [grids["reasons"]],
        is_filtered=True,
    )
    delays = ["delays-picture"] if report.series is not None else []
    yield PageSection(
        "most-stuck",
        "Services with most waiting messages",
        "Waiting",
        "Messages that are delayed, and since when the first of them has been waiting.",
        ["stuck-picture", *delays],
        [grids["stuck"]],
        is_filtered=True,
    )
    yield PageSection(
        "estate-map",
        "The estate",
        "Estate",
        "Instances and databases, and the messages between them. What is delayed or dropped stops where it is.",
        ["estate-picture"],
        [grids["estate"]],
        is_folded=True,
        is_filtered=True,
    )


def _remedies(advice: Sequence[FlowAdvice]) -> PageSection:
    """Describe what to do about the first groups; the others are counted."""
    parts = [_remedy(one, f"remedy-{place}") for place, one in enumerate(advice[:_REMEDIES])]
    introduction = (
        "For the oldest message of each group, on its sender's instance. What is a comment needs a value first."
        if parts
        else "There is nothing to do."
    )
    left = max(0, len(advice) - _REMEDIES)
    more = f"and {left:,} more groups" if left else ""
    return PageSection("remedies", "What to do, one by one", "What to do", introduction, parts=parts, more=more)


def _remedy(one: FlowAdvice, name: str) -> PageSection:
    sender = words(one.instance) if one.database is None else f"{words(one.instance)}.{words(one.database)}"
    result_words = " ".join(filter(None, (one.outcome, one.reason)))
    title = f"{count(one.messages, 'message')} from {sender} to {words(one.service)}: {result_words}"
    code = "\n".join(map(printable, (one.statement or "").splitlines()))
    return PageSection(name, title, title, words(one.words), code=code)


def _observed(observed: ObservedCounts) -> PageSection:
    """Describe SQL Server's decisions beside those by the rules, as they were reconciled last."""
    kinds = [str(kind) for kind in PairClass]
    instances = sorted({instance for instance, _ in observed.classes})
    rows = [[name, *(observed.classes.get((name, kind), 0) for kind in kinds)] for name in instances]
    total = {kind: sum(number for (_, one), number in observed.classes.items() if one == kind) for kind in kinds}
    observed_episodes = sum(total.values()) - total[PairClass.NOT_OBSERVED]
    matching = total[PairClass.CONFIRMED] + total[PairClass.COMPATIBLE]
    share = (
        f"{100 * matching / observed_episodes:.1f} % of what was observed matches the routes. "
        if observed_episodes
        else ""
    )
    causes = [(one.instance, one.cause, one.episodes, one.words) for one in observed.causes]
    heads = (("Instance", ""), ("Cause", WORD), ("Episodes", NUMBER), ("What is most likely off", TEXT))
    off = [
        (
            *(one.instance, one.database, one.service, one.seen_outcome, one.seen_number and str(one.seen_number)),
            *(one.outcome, one.reason, one.episodes, one.why),
        )
        for one in observed.contradictions
    ]
    heads_off = (
        *(("Instance", ""), ("Database", ""), ("Service", NAME), ("SQL Server", OUTCOME), ("Number", WORD)),
        *(("The routes say", OUTCOME), ("Reason", WORD), ("Episodes", NUMBER), ("Why", TEXT)),
    )
    tables = [
        table("observed-classes", "Episodes by instance", (("Instance", ""), *((k, NUMBER) for k in kinds)), rows),
        table("observed-causes", "What is most likely off", heads, causes),
        table("contradictions", "Where SQL Server did something else", heads_off, off),
    ]
    return PageSection("observed", "Predicted against observed", "Observed", share + _OBSERVED, (), tables)


def _findings(report: Report) -> PageSection:
    """List the findings; those that every instance has by default are counted, so that they bury no other."""
    order = {word: place for place, word in enumerate(_SEVERITIES)}
    every = sorted(report.findings or (), key=lambda row: order.get(row["severity"], len(order)))
    rows = [row for row in every if row["code"] not in BY_CODE or not BY_CODE[row["code"]].is_default]
    summary = [_counted(sum(row["severity"] == word for row in rows), word) for word in _SEVERITIES]
    defaults = len(every) - len(rows)
    if defaults:
        summary.append(f"{defaults:,} more of what every instance has by default are not listed")
    heads = (
        *(("Severity", WORD), ("Code", WORD), ("Instance", ""), ("Database", ""), ("Object", NAME)),
        *(("What", TEXT), ("What to do", TEXT)),
    )
    names = ("severity", "code", "instance_name", "database_name", "object", "message", "advice")
    findings_table = table(
        "findings", "Findings, the worst first", heads, [[row[name] for name in names] for row in rows]
    )
    return PageSection(
        "lint", "Faults and hazards of the configuration", "Findings", ", ".join(summary), (), [findings_table]
    )


def _counted(number: int, severity: str) -> str:
    return f"{number:,} {severity}" if severity == Severity.INFO else count(number, severity)


def _coverage(report: Report) -> PageSection:
    rows = sorted(report.coverage or (), key=lambda row: (row["used"] - row["routes"], row["instance_name"] or ""))
    routes, used = (sum(row[name] for row in rows) for name in ("routes", "used"))
    heads = (("Instance", ""), ("Routes", NUMBER), ("Used", NUMBER), ("Not used", NUMBER))
    lines = [(row["instance_name"], row["routes"], row["used"], row["routes"] - row["used"]) for row in rows]
    summary = f"Messages used {used:,} of {routes:,} routes ({100 * used / routes if routes else 100.0:.1f} %)."
    coverage_table = table("coverage", "Routes that messages used, by instance", heads, lines)
    return PageSection("routes-in-use", "Route coverage", "Coverage", summary, (), [coverage_table])


def _changes(changes: ReportChanges) -> PageSection:
    tables = [
        _counts("outcome", changes.outcomes, OUTCOME),
        _counts("reason", changes.reasons, WORD),
    ]
    if changes.routes is not None:
        names = (("Change", WORD), ("Instance", ""), ("Database", ""), ("Route", NAME), ("What changed", TEXT))
        routes = [(one.change, one.instance, one.database, one.route, one.words) for one in changes.routes]
        tables.append(table("routes", "Routes that differ", names, routes))
    if changes.run_id is None or changes.finished_at is None:
        title, sentences = (
            "What the scripts change",
            ["Before is without the scripts that are tried, now is with them."],
        )
    else:
        title = "Since the run before"
        sentences = [f"Run {words(changes.run_id)} ended {instant(changes.finished_at)}."]
    if changes.is_incremental:
        sentences.append("Each run counts what it decided itself, new messages and those tried again.")
    if changes.routes is None:
        sentences.append("The routes that it read cannot be read any more.")
    return PageSection("since", title, "Changes", " ".join(sentences), (), tables)


def _counts(word: str, counts: Sequence[WordCount], kind: str) -> PageTable:
    heads = ((word.capitalize(), kind), ("Before", NUMBER), ("Now", NUMBER), ("Difference", NUMBER))
    lines = [(one.word, one.before, one.now, f"{one.now - one.before:+,}") for one in counts]
    return table(f"{word}s-before", f"Messages by {word}, before and now", heads, lines)
