"""Print a reconciliation: a document for people, one object for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from routing.document import (
    Block,
    DataTable,
    Document,
    DocumentHeading,
    ListItem,
    Paragraph,
    Tone,
    TonedText,
    Words,
    make_columns,
)
from routing.render.wording import count, write_json
from routing.rules.reconciling import PairClass
from routing.views.reconcile.reconciling import Reconciliation

_SHOWN = 20


def as_json(done: Reconciliation) -> str:
    """Return one line of JSON: observations, unobserved, percent, classes, counts, causes, balanced, version."""
    document = {
        "observations": done.observations,
        "unobserved": done.unobserved,
        "percent": done.percent,
        "classes": done.by_class,
        "counts": [dict(row) for row in done.counts],
        "causes": [dict(row) for row in done.causes],
        "balanced": [dict(row) for row in done.balanced],
        "version": done.version,
    }
    return write_json(document)


def make_document(done: Reconciliation) -> Document:
    """Describe a reconciliation: the decisions that differ and why, then all causes and counts."""
    if not done.observations:
        return [
            Paragraph(
                "There are no observations: import events or a transmission queue first"
                " (docs/how-to/reconcile.md)."
            )
        ]
    return [
        Paragraph(_answer(done)),
        *_describe_causes(done),
        DataTable(
            make_columns(("instance", *(str(kind) for kind in PairClass)), tuple(PairClass)),
            _by_instance(done),
            "Episodes by class",
        ),
        *_describe_picks(done),
        Paragraph(_total(done)),
    ]


def _answer(done: Reconciliation) -> Words:
    counts = done.by_class
    observed = sum(counts.values()) - counts[PairClass.NOT_OBSERVED]
    if not observed:
        return f"No decision of SQL Server was observed in {count(sum(counts.values()), 'episode')}."
    otherwise, beyond = counts[PairClass.CONTRADICTED], counts[PairClass.NOT_PREDICTED]
    if not otherwise and not beyond:
        return (TonedText(f"SQL Server decided {_all_of(observed)} as the tables predict", Tone.GOOD), ".")
    sentence = f"SQL Server decided {otherwise:,} of {count(observed, 'episode')} differently from the tables"
    unpredicted = f"; the tables predict nothing for {count(beyond, 'other')}" if beyond else ""
    return (TonedText(sentence, Tone.BAD if otherwise else Tone.STRONG), f"{unpredicted}.")


def _all_of(episodes: int) -> str:
    return "the one episode" if episodes == 1 else f"all {episodes:,} episodes"


def _describe_causes(done: Reconciliation) -> Iterator[Block]:
    totals: Counter[str] = Counter()
    for row in done.causes:
        totals[row["cause"]] += row["episodes"]
    for number, (cause, episodes) in enumerate(sorted(totals.items(), key=lambda item: (-item[1], item[0])), 1):
        explains = "" if number > 1 else " explains most"
        yield DocumentHeading(f"{cause}{explains}: {count(episodes, 'episode')}")
        of_cause = [row for row in done.causes if row["cause"] == cause]
        for row in of_cause[:_SHOWN]:
            yield ListItem(f"{row['instance_name']}, {count(row['episodes'], 'episode')}: {row['cause_text']}")
        if len(of_cause) > _SHOWN:
            yield Paragraph(f"and {count(len(of_cause) - _SHOWN, 'more cause')} (--format json has all)")


def _describe_picks(done: Reconciliation) -> Iterator[DataTable]:
    if len(done.balanced):
        columns = ("instance", "service", "broker instances", "episodes", "as predicted")
        rows = _balanced(done)
        unlisted = len(done.balanced) - len(rows)
        yield DataTable(make_columns(columns, columns[2:]), rows, "Picks of balanced services", unlisted)


def _by_instance(done: Reconciliation) -> list[tuple[Any, ...]]:
    counts_by_instance: dict[str, dict[str, int]] = {}
    for row in done.counts:
        counts_by_instance.setdefault(row["instance_name"], {})[row["class"]] = row["episodes"]
    return [(name, *(counts.get(kind, 0) for kind in PairClass)) for name, counts in counts_by_instance.items()]


def _balanced(done: Reconciliation) -> list[tuple[Any, ...]]:
    return [
        (
            row["instance_name"],
            row["to_service_name"],
            row["broker_instances"],
            row["episodes"],
            f"{row['same']:,} ({100 * row['same'] / row['episodes']:.0f} %)",
        )
        for row in list(done.balanced)[:_SHOWN]
    ]


def _total(done: Reconciliation) -> str:
    episodes = sum(done.by_class.values())
    totals = f"{count(done.observations, 'observation')} in {count(episodes, 'episode')}"
    percent = "" if done.percent is None else f"; {done.percent:.1f} % of the observed episodes match"
    unobserved = f"; {count(done.unobserved, 'conversation side')} with messages but no observation"
    return f"{totals}{percent}{unobserved if done.unobserved else ''}"
