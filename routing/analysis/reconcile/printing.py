"""How a reconciliation looks: tables for people, one object for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from routing import show
from routing.analysis.reconcile.reconciling import Reconciliation
from routing.render.wording import count
from routing.rules.reconciling import Class

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHOWN = 50


def as_json(done: Reconciliation) -> str:
    """One line: observations, unobserved, percent, classes, counts, causes, balanced and version."""
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
    return json.dumps(document, default=_plain)


def as_text(done: Reconciliation) -> Iterator[RenderableType]:
    """What is printed: episodes by instance and class, what is most likely off, picks, and what matches."""
    if not done.observations:
        yield "nothing was observed: import events or a transmission queue first (docs/how-to/import.md)"
        return
    yield show.table("Episodes", ("instance", *(str(kind) for kind in Class)), _by_instance(done), tuple(Class))
    if len(done.causes):
        yield ""
        yield show.table(
            "Most likely off", ("instance", "cause", "episodes", "text"), _causes(done), ("episodes",)
        )
        if len(done.causes) > _SHOWN:
            yield f"and {len(done.causes) - _SHOWN:,} more causes (--format json has all)"
    if len(done.balanced):
        yield ""
        columns = ("instance", "service", "broker ids", "episodes", "as predicted")
        yield show.table("Picks of balanced services", columns, _balanced(done), columns[2:])
    yield ""
    yield _total(done)


def _by_instance(done: Reconciliation) -> list[tuple[Any, ...]]:
    found: dict[str, dict[str, int]] = {}
    for row in done.counts:
        found.setdefault(row["instance_name"], {})[row["class"]] = row["episodes"]
    return [(name, *(counts.get(kind, 0) for kind in Class)) for name, counts in found.items()]


def _causes(done: Reconciliation) -> list[tuple[Any, ...]]:
    names = ("instance_name", "cause", "episodes", "cause_text")
    return [tuple(row[name] for name in names) for row in list(done.causes)[:_SHOWN]]


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
    told = f"{count(done.observations, 'observation')} in {count(episodes, 'episode')}"
    percent = "" if done.percent is None else f"; {done.percent:.1f} % of what was observed matches"
    unobserved = f"; {count(done.unobserved, 'conversation side')} with messages, not observed at all"
    return f"{told}{percent}{unobserved if done.unobserved else ''}"


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
