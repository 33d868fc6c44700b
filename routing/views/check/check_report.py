"""Write a check as a document: the answer, each problem with its remedy, the read exports, and the gaps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap

from routing.advice.remedy import Remedy
from routing.advice.status_advice import CountedRemedy
from routing.cases.evidence import FileEvidence, ScriptRead, ViewRead, views_read
from routing.cases.known_estate import gap_sentence
from routing.cases.message_cases import MessageCase, MessageResult
from routing.document import (
    Block,
    DocumentHeading,
    LabelledFact,
    ListItem,
    Paragraph,
    SqlStatement,
    Tone,
    TonedText,
)
from routing.groups import group_pairs
from routing.lint.catalogue import BY_CODE
from routing.lint.linting import rows_of
from routing.render.phrases import cut, join_words, named, shorten, when, where
from routing.render.wording import count
from routing.rules.path_changes import ending_of
from routing.rules.timeline import micros_of
from routing.terms import PathEnd, Reason
from routing.views.check.checking import Check, find_notes
from routing.views.check.grouping import ProblemKind
from routing.views.check.problem_evidence import EvidencePlaces, ReportLimits, list_evidence
from routing.views.check.problems import MessageProblem, find_problems, state_answer, state_counts, state_waiting
from routing.views.check.trial import Change, ChangeableResult
from routing.views.configuration_changes import describe_route_changes
from routing.views.page.estate_matrix import list_places
from routing.views.page.facts import (
    CONNECTION_FAILS,
    ENDINGS,
    EstateInstance,
    MessageFlow,
    Report,
    ReportChanges,
    ReportProblem,
    count_severity,
    count_words,
)

_TONES = {
    **dict.fromkeys((ProblemKind.NOT_KNOWN, ProblemKind.NOT_ACKNOWLEDGED, ProblemKind.PASSING), Tone.WAITING),
    ProblemKind.NOTHING: Tone.GOOD,
}


EVERYTHING = ReportLimits(None, None, None, None, None, None, None)
"""The limits of `--verbose`."""


def make_document(done: Check, *, with_all: bool = False, limits: ReportLimits | None = None) -> list[Block]:
    """Describe a check. Messages that are on their way are only counted unless ``with_all``."""
    limits = limits or ReportLimits()
    problems = find_problems(done.described.groups)
    listed_problems = [problem for problem in problems if with_all or problem.kind is not ProblemKind.NOTHING]
    shown = listed_problems[: limits.problems]
    report = _Report(done.described, limits)
    return [
        *report.answer(problems, _state_trial(done)),
        *_list_changes(done, limits),
        *(block for number, problem in enumerate(shown, 1) for block in report.problem(number, problem)),
        *report.unshown_problems(listed_problems[len(shown) :]),
        *report.troubles(),
        *report.lint(),
        *report.not_known(),
        *_Report(done, limits).list_inputs(),
    ]


def _state_trial(done: Check) -> str | None:
    if done.trial is None or done.with_scripts is None:
        return None
    return done.trial.state(script.file for script in done.with_scripts.evidence.log.scripts)


def describe_message(
    done: Check, result: MessageResult, problem: MessageProblem, limits: ReportLimits
) -> Iterator[Block]:
    """Yield the waiting time of a message with a problem, its cause, and the actions."""
    return _Report(done, limits).describe(1, problem, result)


def list_statements(done: Check, selected: Sequence[MessageResult] | None = None) -> list[SqlStatement]:
    """List the statements to paste, each once. ``selected`` limits them to the problems of some messages."""
    # Remedies with the same statement may have different texts.
    remedies: dict[tuple[str, str, str], Remedy] = {}
    reasons: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for remedy, about, why in _list_remedies(done.described, selected):
        if remedy.statement is not None:
            key = remedy.instance, remedy.unknown_server, remedy.statement
            remedies.setdefault(key, remedy)
            reasons[key].append("\n".join([about, *remedy.list_sentences(why)]))
    # Statements come first, so that servers with only comments need no connection.
    ready_instances = {instance for (instance, *_), remedy in remedies.items() if remedy.is_complete}
    statements: list[SqlStatement] = []
    for key in sorted(remedies, key=lambda key: key[0] not in ready_instances):
        other_count = len(reasons[key]) - 1
        other_reasons = [f"And for {count(other_count, 'other problem')}."] if other_count else []
        statements.append(remedies[key].as_statement([reasons[key][0], *other_reasons]))
    return statements


def _list_remedies(done: Check, selected: Sequence[MessageResult] | None) -> Iterator[tuple[Remedy, str, str]]:
    """Yield each remedy with a sentence on its messages or trouble, and the cause that is already stated."""
    for problem in find_problems(done.groups):
        if selected is None or any(problem.keeps(result) for result in selected):
            for advice in problem.advice:
                about = f"{problem.headline}: {problem.state_messages()}{_whose(problem, advice)}."
                yield advice.remedy, about, problem.why
    for trouble in done.troubles if selected is None else ():
        yield trouble.remedy, f"{trouble.kind}: {trouble.summary}.", ""


class _Report:
    """A writer of the parts of a document. It prints repeated facts only once."""

    def __init__(self, done: Check, limits: ReportLimits) -> None:
        self._done, self._limits = done, limits
        self._evidence_places = EvidencePlaces(done, limits)

    def answer(self, problems: Sequence[MessageProblem], trial: str | None) -> Iterator[Block]:
        """Yield the answer: the stuck messages and the decision time, after the effect of scripts."""
        done = self._done
        answer = state_answer(done, problems)
        yield DocumentHeading(answer if trial is None else trial, 1)
        if trial is not None:
            yield Paragraph(_state_then(answer))
        on_their_way = sum(problem.count for problem in problems if problem.kind is ProblemKind.NOTHING)
        rest_text = "" if on_their_way in (0, len(done.results)) else f" {_state_others(on_their_way)}"
        yield Paragraph(f"{state_counts(done)}.{rest_text}")

    def problem(self, number: int, problem: MessageProblem) -> Iterator[Block]:
        """Yield a problem: its messages, waiting time, cause and actions, then its evidence."""
        problem_text = TonedText(problem.headline, _TONES.get(problem.kind, Tone.BAD))
        yield DocumentHeading((f"{number}. ", problem_text, f": {problem.state_messages()}"))
        yield from self.describe(number, problem)
        yield from self.evidence(number, problem)

    def evidence(self, number: int, problem: MessageProblem) -> Iterator[Block]:
        """Yield the evidence of a problem."""
        return list_evidence(number, problem, self._evidence_places)

    def describe(
        self, number: int, problem: MessageProblem, result: MessageResult | None = None
    ) -> Iterator[Block]:
        """Yield the waiting time of a message (by default the oldest), the cause, and the actions."""
        waiting = state_waiting(result or problem.combined_group.first, self._done.estate.times)
        is_alone = result is not None or problem.count == 1
        yield LabelledFact("waiting" if is_alone else "the oldest waits", waiting, 1)
        if problem.why:
            yield LabelledFact("why", problem.why, 1)
        for gap in problem.first.first.case.gaps[: self._limits.sentences]:
            yield LabelledFact("missing", gap_sentence(gap), 1)
        for advice in problem.advice[: self._limits.remedies]:
            yield from self._remedy(number, problem, advice)
        left_out = len(problem.advice[: self._limits.remedies])
        if left_out < len(problem.advice):
            yield Paragraph(f"and {len(problem.advice) - left_out} more remedies (--verbose lists all)", 1)

    def _remedy(self, number: int, problem: MessageProblem, advice: CountedRemedy) -> Iterator[Block]:
        remedy = advice.remedy
        label = f"what to do on {remedy.server}{_whose(problem, advice)}"
        first = self._evidence_places.find_first((remedy.place, remedy.actions, remedy.statement), number)
        if first is not None:
            yield LabelledFact(label, f"as in {first}", 1)
            return
        yield from remedy.list_blocks(label, problem.why, indent=1)

    def unshown_problems(self, problems: Sequence[MessageProblem]) -> Iterator[Block]:
        """Yield the number of problems that are not shown."""
        if problems:
            messages = count(sum(problem.count for problem in problems), "message")
            yield DocumentHeading(
                f"and {count(len(problems), 'more problem')} with {messages} (--verbose lists all)"
            )

    def troubles(self) -> Iterator[Block]:
        """Yield the troubles that no waiting message shows."""
        troubles = self._done.troubles
        if not troubles:
            return
        yield DocumentHeading("Beside the messages")
        for trouble in troubles[: self._limits.problems]:
            place = where(trouble.remedy.place.instance, trouble.remedy.place.database)
            yield Paragraph((TonedText(str(trouble.kind), Tone.BAD), f": {trouble.summary} ({place})"))
            yield from trouble.remedy.list_blocks(f"what to do on {trouble.remedy.server}", indent=1)
        hidden_count = len(troubles) - len(troubles[: self._limits.problems])
        if hidden_count:
            yield Paragraph(f"and {count(hidden_count, 'more trouble')} (--verbose lists all)")

    def lint(self) -> Iterator[Block]:
        """Yield the number of lint findings that no problem shows."""
        severities = self._done.other_findings
        if severities:
            counts = ", ".join(starmap(count_severity, severities.items()))
            subject = "Lint has other findings" if self._done.findings else "Lint has findings about other objects"
            yield DocumentHeading("Other findings of lint")
            yield ListItem(f"{subject}: {counts} (sbroute lint).")

    def not_known(self) -> Iterator[Block]:
        """Yield the missing exports that may change decisions."""
        sentences = [*map(gap_sentence, self._done.gaps), *_refusals(self._done)]
        if sentences:
            yield DocumentHeading("Not known")
            yield from _items(shorten(sentences, self._limits.sentences))

    def list_inputs(self) -> Iterator[Block]:
        """Yield the list of exports and scripts that were read, rejected or left out."""
        evidence, log, most = self._done.evidence, self._done.evidence.log, self._limits.sentences
        yield DocumentHeading("Read")
        by_instance = group_pairs((view_read.instance, view_read) for view_read in views_read(evidence))
        state = _list_views if most is None else _count_views
        yield from _items(shorten(map(state, by_instance.values()), most))
        yield from _items(shorten(map(_state_script, evidence.log.scripts), most))
        yield from _items(_state_uncounted(evidence))
        lists = {"left out": log.left_out, "rejected": log.rejected, "note": find_notes(self._done)}
        yield from _list_labelled(lists, self._limits)


def _refusals(done: Check) -> list[str]:
    return [refusal.state() for refusal in done.evidence.server.list_refusals()]


def _list_changes(done: Check, limits: ReportLimits) -> Iterator[Block]:
    """Yield the changes by scripts: first those for the worse, then the repairs."""
    if done.with_scripts is None or done.trial is None:
        return
    log, trial = done.with_scripts.evidence.log, done.trial
    yield DocumentHeading("What changes")
    yield from _items(shorten(map(_state_script_tried, log.scripts), limits.sentences))
    yield from _list_labelled({"rejected": log.rejected, "note": log.notes}, limits)
    yield from _items(shorten(map(_state_change, trial.changes), limits.changes))
    yield ListItem(f"{count(trial.unchanged, 'message')} as before")


def _list_labelled(lists: Mapping[str, Sequence[str]], limits: ReportLimits) -> Iterator[ListItem]:
    for label, sentences in lists.items():
        yield from _items(shorten((f"{label}: {cut(sentence)}" for sentence in sentences), limits.notes))


def _state_then(answer: str) -> str:
    return f"Then: {answer[:1].lower()}{answer[1:]}"


def _state_others(number: int) -> str:
    return f"SQL Server reports no trouble about {count(number, 'message')} on the way (--all lists them)."


def _items(sentences: Iterable[str]) -> Iterator[ListItem]:
    return (ListItem(sentence) for sentence in sentences)


def _whose(problem: MessageProblem, advice: CountedRemedy) -> str:
    """Write the messages of a remedy if it is not for all or not certain."""
    is_of_some = len({advice.count for advice in problem.advice}) > 1
    share_text = f", about {advice.count:,} of these {problem.count:,} messages" if is_of_some else ""
    return share_text + ("" if problem.first.verdict is not None else ", as far as is known")


def _count_views(views: Sequence[ViewRead]) -> str:
    rows = count(sum(view_read.rows for view_read in views), "row")
    newest = when(max(view_read.newest for view_read in views))
    return f"{named(views[0].instance)}, exported at {newest}: {count(len(views), 'view')}, {rows}"


def _list_views(views: Sequence[ViewRead]) -> str:
    newest = when(max(view_read.newest for view_read in views))
    return f"{named(views[0].instance)}, exported at {newest}: {', '.join(map(_state_view, views))}"


def _state_view(view_read: ViewRead) -> str:
    of = f" of {count(view_read.databases, 'database')}" if view_read.databases else ""
    return f"{view_read.view} {count(view_read.rows, 'row')}{of}"


def _state_script(script: ScriptRead) -> str:
    exceptions = f", {script.left_out} left out" if script.left_out else ""
    exceptions += f", {script.rejected} rejected" if script.rejected else ""
    statements = count(script.statements, "statement")
    return f"{cut(script.file)} for {named(script.instance)}: {statements} in force{exceptions}"


def _state_uncounted(evidence: FileEvidence) -> Iterator[str]:
    for view, rows in evidence.log.rows_read.items():
        whats = {
            "rejected": evidence.log.rows_rejected,
            "left out, because a newer export exists": evidence.log.rows_left_out,
        }
        row_counts = [f"{of[view]:,} {kind}" for kind, of in whats.items() if of.get(view)]
        if row_counts:
            yield f"of {count(rows, 'row')} of {view}: {', '.join(row_counts)}"


def _state_script_tried(script: ScriptRead) -> str:
    counts = f"{count(script.statements, 'statement')}, {script.rejected} rejected"
    return f"with {cut(script.file)} applied to {named(script.instance)} ({counts})"


def _state_change(change: Change) -> str:
    sender = where(change.instance, change.database)
    messages = f"{count(len(change.results), 'message')} from {sender} to {named(change.service)}"
    return f"{change.effect}: {messages}: {_state_result(change.before)} → {_state_result(change.after)}"


def _state_result(result: ChangeableResult) -> str:
    to = None if result.destination is None else f"to {named(result.destination)}"
    by = None if result.route_name is None else f"by route {named(result.route_name)}"
    place = "" if result.end_instance is None else f" at {named(result.end_instance)}"
    is_shown = result.end not in (result.outcome, PathEnd.NOT_KNOWN)
    ending = f"ends {result.end}{place}" if is_shown else None
    return ", ".join(part for part in (result.outcome, result.reason, by, to, ending) if part is not None)


_MOST_PROBLEMS = 40
"""The maximal number of problems on the page."""


def as_report(done: Check) -> Report:
    """Return the report of the waiting messages, or of the changes by scripts.

    There is no series over time, since all messages are decided at one time. There is no balance either, since
    most balanced dialogs are not waiting. The findings are those of lint.
    """
    shown, trial = done.described, _state_trial(done)
    problems = find_problems(shown.groups)
    answer = state_answer(shown, problems)
    endings, after = _endings(done), _endings(done.described)
    return Report(
        troubles=done.troubles,
        headline=_extent(done),
        not_known=tuple(_not_known(done)),
        made_at=max(shown.estate.times.values()),
        flows=_flows(shown.results, after),
        places=_places(shown),
        findings=rows_of(shown.every_finding, BY_CODE),
        changes=None if done.with_scripts is None else _changes(done, done.with_scripts, endings, after),
        answer=answer if trial is None else f"{trial} {_state_then(answer)}",
        problems=tuple(_problems(shown, problems, after)),
    )


def _extent(done: Check) -> str:
    counts = state_counts(done.described)
    tried = () if done.with_scripts is None else done.with_scripts.evidence.log.scripts
    scripts = sorted({cut(script.file) for script in tried})
    return counts + (f"; with {join_words(scripts)} applied" if scripts else "")


def _endings(done: Check) -> list[str]:
    """Return the ending of each message. A failing connection ends it earlier than the rules."""
    failing_groups = [group for group in done.groups if group.kind is ProblemKind.CONNECTION_FAILS]
    failing = {id(result) for group in failing_groups for result in group.results}
    return [CONNECTION_FAILS if id(result) in failing else result.case.end for result in done.results]


def _not_known(done: Check) -> Iterator[str]:
    yield from map(gap_sentence, (done.with_scripts or done).gaps)
    yield from _refusals(done)
    # The notes of tried scripts come after those of the files.
    for check in (done,) if done.with_scripts is None else (done, done.with_scripts):
        yield from (f"rejected: {cut(sentence)}" for sentence in check.evidence.log.rejected)
        yield from (f"note: {cut(sentence)}" for sentence in find_notes(check))


def _flows(results: Sequence[MessageResult], endings: Sequence[str]) -> tuple[MessageFlow, ...]:
    enqueued = group_pairs(
        (_uncounted_flow(result, ending), micros_of(result.row["enqueue_time"]))
        for result, ending in zip(results, endings, strict=True)
    )
    flows = [replace(flow, messages=len(times), oldest=min(times)) for flow, times in enqueued.items()]
    return tuple(sorted(flows, key=lambda flow: (-flow.messages, flow.oldest)))


def _uncounted_flow(result: MessageResult, ending: str) -> MessageFlow:
    case, verdict = result.case, result.case.verdict
    flow = case.instance, case.database, case.service, case.outcome
    if verdict is None:
        return MessageFlow(*flow, None, None, None, None, 0, 0, ending)
    where_to = verdict.route_name, verdict.address, verdict.destination_database
    place_of_end = _reason_at_end(case), case.end_instance
    return MessageFlow(*flow, str(verdict.reason), *where_to, 0, 0, ending, *place_of_end)


def _reason_at_end(case: MessageCase) -> str | None:
    """Return the reason at the end of a message's path, if it has one."""
    if case.path is None:
        return None
    return str(Reason.ROUTING_LOOP) if case.path.end is PathEnd.LOOP else ending_of(case.path).ending_reason


def _problems(done: Check, problems: Sequence[MessageProblem], endings: Sequence[str]) -> Iterator[ReportProblem]:
    ends = {id(result): ending for result, ending in zip(done.results, endings, strict=True)}
    report = _Report(done, ReportLimits(remedies=None))
    shown = [problem for problem in problems if problem.kind is not ProblemKind.NOTHING]
    for number, problem in enumerate(shown[:_MOST_PROBLEMS], 1):
        counted = Counter(ends[id(result)] for result in problem.combined_group.results)
        yield ReportProblem(
            f"{number}. {problem.headline}: {problem.state_messages()}",
            counted.most_common(1)[0][0],
            tuple(report.describe(number, problem)),
            tuple(report.evidence(number, problem))[1:],
        )
    hidden = shown[_MOST_PROBLEMS:]
    if hidden:
        messages = count(sum(problem.count for problem in hidden), "message")
        messages_paragraph = Paragraph(f"{messages} (sbroute check --verbose lists all)")
        yield ReportProblem(f"and {count(len(hidden), 'more problem')}", "", (messages_paragraph,))


def _places(done: Check) -> tuple[EstateInstance, ...]:
    return tuple(list_places(done.evidence.columns))


def _changes(before: Check, after: Check, endings: Sequence[str], endings_after: Sequence[str]) -> ReportChanges:
    at = max(after.estate.times.values())
    was, now = (check.evidence.columns["routes"] for check in (before, after))
    return ReportChanges(
        run_id=None,
        finished_at=None,
        is_incremental=False,
        outcomes=count_words(ENDINGS, Counter(endings), Counter(endings_after)),
        reasons=count_words(Reason, _reasons(before), _reasons(after)),
        routes=describe_route_changes(was, now, at, at),
    )


def _reasons(done: Check) -> Counter[str]:
    return Counter(str(result.case.verdict.reason) for result in done.results if result.case.verdict is not None)
