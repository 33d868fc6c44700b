"""The sections of the page below its tiles, in their order: problems, charts and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import starmap
from typing import Any

from routing.advice.remedy import EstateTrouble
from routing.advice.trouble_catalogue import REASONS
from routing.document import LabelledFact, Paragraph
from routing.groups import group_pairs
from routing.lint.catalogue import BY_CODE, Severity
from routing.render.html import write_html
from routing.render.phrases import count_places, cut, named, where
from routing.render.wording import count, format_duration
from routing.rules.reconciling import PairClass
from routing.terms import LEAVES, ReadRow, Reason
from routing.views.page.facts import (
    LOOP,
    STUCK,
    BalancedInstance,
    DialogBalance,
    MessageFlow,
    ObservedCounts,
    Report,
    ReportChanges,
    ReportProblem,
    WordCount,
    count_severity,
)
from routing.views.page.message_cells import size_of
from routing.views.page.page_tables import (
    NAME,
    NUMBER,
    OUTCOME,
    TEXT,
    WORD,
    PageChart,
    PageSection,
    PageTable,
    count_more,
    first_of,
    instant,
    table,
    words,
)

_SERVICES = 30
"""The maximal number of balanced services, which is lower if their tables are long."""
# The size of a row without its texts.
_ROW = 150
_LONGEST_TITLE = 600


def balance_section(balances: Sequence[DialogBalance], charts: Mapping[str, PageChart]) -> PageSection:
    """Return every balanced service as a part, the unfair ones first and open, as many as there is room for."""

    def describe(place: int, balance: DialogBalance) -> PageSection:
        name = f"balance-{place}"
        return _shared(balance, name, [charts[f"{name}-picture"]] if f"{name}-picture" in charts else [])

    parts = first_of(
        starmap(describe, enumerate(order_balances(balances)[:_SERVICES])),
        lambda part: sum(_ROW + sum(map(size_of, row)) for page_table in part.tables for row in page_table.rows),
    )
    introduction = "No service is balanced among several broker instances."
    if balances:
        introduction = (
            "Dialogs are balanced among the broker instances of equal routes. A share outside its band is unfair."
        )
    more = count_more(len(balances) - len(parts), " services")
    return PageSection("balance", "Balance", "Balance", introduction, parts=parts, more=more)


def order_balances(balances: Sequence[DialogBalance]) -> list[DialogBalance]:
    """Return the balances in the order of the page: first those with a share outside its band."""
    return sorted(balances, key=lambda balance: balance.is_fair is not False)


def _shared(balance: DialogBalance, name: str, charts: Sequence[PageChart]) -> PageSection:
    heads = (
        *(("Broker instance", WORD), ("Database", ""), ("Dialogs", NUMBER), ("Expected", NUMBER)),
        *(("Band", NUMBER), ("Where", WORD)),
    )
    picks = [_pick(pick) for pick in balance.picks]
    tables = [table(name, "Dialogs of each broker instance", heads, picks, "no dialog was balanced")]
    if balance.never:
        names = (("Broker instance", WORD), ("Route", NAME), ("Why", WORD), ("In words", TEXT))
        never = [(id_.broker_instance, id_.route, id_.why, id_.words) for id_ in balance.never]
        tables.append(table(f"{name}-never", "Routes to broker instances that get no dialogs", names, never))
    title = f"{words(balance.service)} from {words(balance.instance)}.{words(balance.database)}"
    is_unfair = balance.is_fair is False
    return PageSection(name, title, "", _judged(balance), charts, tables, is_open=is_unfair)


def _pick(pick: BalancedInstance) -> tuple[Any, ...]:
    shown = pick.broker_instance, pick.owner, pick.dialogs, pick.expected
    if pick.low is None or pick.high is None:
        return *shown, "–", "no band"
    outside = "above the band" if pick.dialogs > pick.high else "below the band"
    return *shown, f"{pick.low:,} to {pick.high:,}", "in the band" if pick.is_fair else outside


def _judged(balance: DialogBalance) -> str:
    since = None if balance.since is None else f"since {instant(balance.since)}"
    until = None if balance.until is None else f"until {instant(balance.until)}"
    span = " ".join(word for word in (since, until) if word)
    when = f"The set of ids has been the same {span}." if span else "The set of ids was always the same."
    if balance.why_no_band is not None:
        return f"{when} No band: {words(balance.why_no_band)}."
    outside = sum(not pick.is_fair for pick in balance.picks)
    if not outside:
        return f"{when} Fair: every share is in the band."
    return f"{when} Unfair: {count(outside, 'share')} of {len(balance.picks):,} outside the band."


_SEVERITIES = tuple(map(str, Severity))
_OBSERVED = "An episode is one answer of SQL Server, observed once or repeatedly."
_ROOM = 400_000
"""The maximal size of all problems in bytes. Further problems are only counted."""
_MOST_REASONS = 20


def sections_of(
    report: Report, tables: Mapping[str, PageTable], charts: Mapping[str, PageChart]
) -> list[PageSection]:
    """Return the sections of a report, except unrequested ones.

    ``tables`` are the tables of messages. ``charts`` has all charts by id, including those of balances.
    """
    sections = [_problems(report)]
    if report.troubles:
        sections.append(_troubles(report.troubles))
    sections += _of_messages(report, tables, charts)
    if report.balances is not None:
        sections.append(balance_section(report.balances, charts))
    if report.observed is not None:
        sections.append(_observed(report.observed))
    if report.findings is not None:
        sections.append(_findings(report))
    if report.coverage is not None:
        sections.append(_coverage(report))
    if report.changes is not None:
        sections.append(_changes(report.changes))
    return sections


def _problems(report: Report) -> PageSection:
    """Describe the problems and their actions. A report without problems gets those of its reasons."""
    problems = list_reasons(report) if report.problems is None else report.problems
    sections = (
        PageSection(
            *(f"problem-{place}", cut(problem.title, _LONGEST_TITLE), ""),
            blocks=problem.blocks,
            evidence=problem.evidence,
            mark=problem.ending,
        )
        for place, problem in enumerate(problems)
    )
    parts = first_of(
        sections, lambda part: sum(size_of(write_html([block])) for block in (*part.blocks, *part.evidence)), _ROOM
    )
    return PageSection(
        *("problems", "Stuck messages and their reasons", "Problems"),
        "" if parts else "No message is stuck.",
        parts=parts,
        more=count_more(len(problems) - len(parts)),
    )


def _troubles(troubles: Sequence[EstateTrouble]) -> PageSection:
    parts = [
        PageSection(
            *(f"trouble-{number}", cut(_title(trouble), _LONGEST_TITLE), ""),
            blocks=tuple(trouble.remedy.list_blocks(f"what to do on {trouble.remedy.server}")),
            mark=str(trouble.kind),
        )
        for number, trouble in enumerate(troubles[:_MOST_REASONS])
    ]
    return PageSection(
        *("troubles", "Beside the messages", "Beside", "No waiting message shows these troubles."),
        parts=parts,
        more=count_more(len(troubles) - len(parts)),
    )


def _title(trouble: EstateTrouble) -> str:
    place = trouble.remedy.place
    return f"{trouble.kind}: {trouble.summary} ({where(place.instance, place.database)})"


def list_reasons(report: Report) -> list[ReportProblem]:
    """Return the stuck messages of a report by ending and reason, each with advice."""
    groups = group_pairs(((flow.end, flow.why), flow) for flow in report.flows if flow.end in STUCK)
    ordered = sorted(groups.items(), key=lambda item: (-_sum(item[1]), str(item[0])))
    problems = [
        ReportProblem(
            f"{number}. {' '.join(filter(None, (ending, reason)))}: {_state_messages(flows)}",
            ending,
            tuple(_reason_blocks(ending, reason, flows, report.made_at)),
        )
        for number, ((ending, reason), flows) in enumerate(ordered[:_MOST_REASONS], 1)
    ]
    hidden_flows = [flow for _, flows in ordered[_MOST_REASONS:] for flow in flows]
    if hidden_flows:
        title = f"and {count(len(ordered) - _MOST_REASONS, 'more reason')}"
        hint = Paragraph(f"{count(_sum(hidden_flows), 'message')}: see the table of reasons.")
        problems.append(ReportProblem(title, "", (hint,)))
    return problems


def _sum(flows: Iterable[MessageFlow]) -> int:
    return sum(flow.messages for flow in flows)


def _state_messages(flows: Sequence[MessageFlow]) -> str:
    """Return the number of messages with sender and target: "4 messages from 'A' to service '//b'"."""
    instances = count_places((flow.instance for flow in flows), "instance")
    services = count_places((flow.service for flow in flows), "service")
    return f"{count(_sum(flows), 'message')} from {instances} to {services}"


def _reason_blocks(
    ending: str, reason: str | None, flows: Sequence[MessageFlow], made_at: int
) -> Iterator[LabelledFact]:
    oldest = min(flow.oldest for flow in flows)
    age = format_duration(timedelta(microseconds=made_at - oldest))
    yield LabelledFact("the oldest waits", f"{age}, since {instant(oldest)}")
    sentence = "It comes back to an instance that it has passed." if ending == LOOP else ""
    if reason is not None:
        sentence = REASONS[Reason(reason)].cause
    if sentence:
        yield LabelledFact("why", sentence)
    largest_flow = max(flows, key=lambda flow: (flow.messages, flow.instance, flow.service))
    if len(flows) > 1:
        sender = where(largest_flow.instance, largest_flow.database)
        yield LabelledFact("most", f"{largest_flow.messages:,} from {sender} to {named(largest_flow.service)}")
    ends = {flow.ending_instance for flow in flows if flow.outcome in LEAVES and flow.ending_instance is not None}
    if ends:
        yield LabelledFact("where they end", f"at {count_places(ends, 'instance')}, after they left their own")
    advice = None if reason is None else REASONS[Reason(reason)].advice
    if advice:
        yield LabelledFact("what to do", advice)


def _of_messages(
    report: Report, tables: Mapping[str, PageTable], charts: Mapping[str, PageChart]
) -> Iterator[PageSection]:
    def section(
        name: str, title: str, short: str, words: str, table: str, *drawn: str, folds: bool = False
    ) -> Any:
        present = [charts[chart] for chart in drawn if chart in charts]
        return PageSection(
            *(name, title, short, words, present, [tables[table]]), is_folded=folds, is_filtered=True
        )

    yield section("by-service", "By instance and service", "Services", "", "services", "instances-picture")
    yield section("reasons-of-trouble", "Why messages are stuck", "Reasons", "", "reasons", "reasons-picture")
    yield section(
        *("most-stuck", "Services with most stuck messages", "Stuck"),
        *("Stuck messages by service, and since when the first of them has been waiting.", "stuck"),
        *("stuck-picture", "delays-picture"),
    )
    yield section(
        *("estate-map", "The estate", "Estate"),
        "Each row is an instance that sends, each column a place where its messages end. A cell links to its"
        " rows in the table.",
        *("estate", "estate-picture"),
    )
    if report.series is not None:
        yield section(
            *("over-time", "Over time", "Over time", "When the messages were decided, and where they end."),
            *("times", "times-picture"),
            folds=True,
        )


def _observed(observed: ObservedCounts) -> PageSection:
    kinds = [str(kind) for kind in PairClass]
    instances = sorted({instance for instance, _ in observed.classes})
    rows = [[name, *(observed.classes.get((name, kind), 0) for kind in kinds)] for name in instances]
    total = {kind: sum(number for (_, of), number in observed.classes.items() if of == kind) for kind in kinds}
    observed_episodes = sum(total.values()) - total[PairClass.NOT_OBSERVED]
    matching = total[PairClass.CONFIRMED] + total[PairClass.COMPATIBLE]
    share = ""
    if observed_episodes:
        share = f"{100 * matching / observed_episodes:.1f} % of the observed episodes match the routes. "
    causes = [(cause.instance, cause.cause, cause.episodes, cause.words) for cause in observed.causes]
    heads = (("Instance", ""), ("Cause", WORD), ("Episodes", NUMBER), ("Likely causes", TEXT))
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
        table("observed-causes", "Likely causes", heads, causes),
        table("contradictions", "Where SQL Server decided differently", heads_off, off),
    ]
    return PageSection("observed", "Predicted against observed", "Observed", share + _OBSERVED, (), tables)


def _findings(report: Report) -> PageSection:
    """List the findings. Defaults of every instance are only counted, so that they do not hide other findings."""
    order = {word: place for place, word in enumerate(_SEVERITIES)}
    all_findings = sorted(report.findings or (), key=lambda row: order.get(row["severity"], len(order)))
    rows = [row for row in all_findings if row["code"] not in BY_CODE or not BY_CODE[row["code"]].is_default]
    summary = [count_severity(word, sum(row["severity"] == word for row in rows)) for word in _SEVERITIES]
    defaults = len(all_findings) - len(rows)
    if defaults:
        summary.append(f"{defaults:,} more that every instance has by default are not listed")
    heads = (
        *(("Severity", WORD), ("Code", WORD), ("Instance", NAME), ("Database", NAME), ("Object", NAME)),
        *(("What", TEXT), ("What to do", TEXT)),
    )
    names = ("severity", "code", "instance_name", "database_name", "object", "message", "advice")
    tables = [
        _rules(rows),
        table("findings", "Findings, the worst first", heads, [[row[name] for name in names] for row in rows]),
    ]
    title = "Faults and hazards of the configuration"
    return PageSection("lint", title, "Findings", ", ".join(summary), (), tables)


def _rules(rows: Sequence[ReadRow]) -> PageTable:
    """Count the findings of each rule, with an example and advice. This list is never cut."""
    rows_by_rule = group_pairs(((row["severity"], row["code"], row["advice"]), row) for row in rows)
    heads = (("Severity", WORD), ("Code", WORD), ("Findings", NUMBER), ("For example", TEXT), ("What to do", TEXT))
    lines = [
        (severity, code, len(findings_of_rule), _example(findings_of_rule[0]), advice)
        for (severity, code, advice), findings_of_rule in rows_by_rule.items()
    ]
    return table("rules", "Findings by rule, the worst first", heads, lines)


def _example(row: ReadRow) -> str:
    places = (row["instance_name"], row["database_name"], row["object"])
    return f"{', '.join(filter(None, places))}: {row['message']}"


def _coverage(report: Report) -> PageSection:
    rows = sorted(report.coverage or (), key=lambda row: (row["used"] - row["routes"], row["instance_name"] or ""))
    routes, used = (sum(row[name] for row in rows) for name in ("routes", "used"))
    heads = (("Instance", ""), ("Routes", NUMBER), ("Used", NUMBER), ("Not used", NUMBER))
    lines = [(row["instance_name"], row["routes"], row["used"], row["routes"] - row["used"]) for row in rows]
    summary = f"Messages used {used:,} of {routes:,} routes ({100 * used / routes if routes else 100.0:.1f} %)."
    coverage_table = table("coverage", "Routes that messages used, by instance", heads, lines)
    return PageSection("routes-in-use", "Route coverage", "Coverage", summary, (), [coverage_table])


def _changes(changes: ReportChanges) -> PageSection:
    tables = [_counts("outcome", changes.outcomes, OUTCOME), _counts("reason", changes.reasons, WORD)]
    if changes.routes is not None:
        names = (("Change", WORD), ("Instance", ""), ("Database", ""), ("Route", NAME), ("What changed", TEXT))
        routes = [(one.change, one.instance, one.database, one.route, one.words) for one in changes.routes]
        tables.append(table("routes", "Routes that differ", names, routes))
    if changes.run_id is None or changes.finished_at is None:
        title, sentences = "What the scripts change", ["“Before” is without the scripts, “now” is with them."]
    else:
        title = "Since the previous run"
        sentences = [f"Run {words(changes.run_id)} ended {instant(changes.finished_at)}."]
    if changes.is_incremental:
        sentences.append("Each run counts only its own decisions: new messages and retried ones.")
    if changes.routes is None:
        sentences.append("The routes that it read are no longer available.")
    return PageSection("since", title, "Changes", " ".join(sentences), (), tables)


def _counts(word: str, counts: Sequence[WordCount], kind: str) -> PageTable:
    heads = ((word.capitalize(), kind), ("Before", NUMBER), ("Now", NUMBER), ("Difference", NUMBER))
    lines = [(one.word, one.before, one.now, f"{one.now - one.before:+,}") for one in counts]
    return table(f"{word}s-before", f"Messages by {word}, before and now", heads, lines)
