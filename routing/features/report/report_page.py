"""A report as one page of HTML: it loads nothing, runs its own script alone, and is readable without that."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from routing.delta.releases import release
from routing.features.report import drawing
from routing.features.report.advice import advice_of
from routing.features.report.coded_cells import CodedCells, coded
from routing.features.report.facts import STUCK, Report
from routing.features.report.filling import BLANKS, NOTHING, TableFiller, instant
from routing.features.report.grids import OUTCOMES, MessageGrid, grids, kind_of
from routing.features.report.message_cells import ReportCube, cube_of
from routing.features.report.page_tables import SHOWN, PageSection, first_of, words
from routing.features.report.pictures import runtime, theme
from routing.features.report.report_network import ReportNetwork, network_of
from routing.features.report.sections import sections_of
from routing.tables.times import SECOND

TITLE = "How Service Broker messages are routed"
_SENTENCES = 5
Row = Mapping[str, Any]


def render(report: Report) -> str:
    """Return the page. It stays below 3 MB whatever the report holds."""
    network = network_of(report.flows, report.places)
    cube = cube_of(report, network.ends_of)
    coded_cells = coded(cube, network.titles)
    advice = _advice(coded_cells, cube)
    every = grids([word for word in OUTCOMES if word in report.outcomes])
    # The page has no tables of what was not asked for, and its script looks for those alone that it has.
    kinds = {name: grid for name, grid in every.items() if report.series is not None or grid.source != "moments"}
    filler = TableFiller(coded_cells, report.made_at // SECOND, advice)
    sections = sections_of(report, {name: filler.fill(grid) for name, grid in kinds.items()})
    data = _data(report, network, coded_cells, advice, kinds.values(), sections)
    style, script, vega = theme.css() + _text("page.css"), _text("page.js"), runtime.javascript()
    return _template().render(
        title=TITLE,
        headline=words(report.headline),
        made_at=instant(report.made_at),
        not_known=_sentences([*report.not_known, *_folded(cube)]),
        tiles=_tiles(report),
        sections=sections,
        data=Markup(_as_script(data)),
        style=Markup(style),
        script=Markup(script),
        runtime=Markup(vega),
        policy=_policy(style, script, vega),
        release=release(),
    )


def _advice(coded_cells: CodedCells, cube: ReportCube) -> dict[int, tuple[str, str]]:
    """Return SQL Server's numbers and the advice, by the number of a reason that messages are stuck for."""
    pairs = zip(coded_cells.cells, cube.cells, strict=True)
    reasons = {row["reason"]: cell.reason for row, cell in pairs if cell.reason and cell.outcome in STUCK}
    advice_by_number = {number: advice_of(reason) for number, reason in reasons.items()}
    return {number: (", ".join(map(str, numbers)), text) for number, (numbers, text) in advice_by_number.items()}


def _data(
    report: Report,
    network: ReportNetwork,
    coded_cells: CodedCells,
    advice: Mapping[int, Sequence[str]],
    kinds: Iterable[MessageGrid],
    sections: Sequence[PageSection],
) -> dict[str, Any]:
    """Collect the data of the page's script."""
    start = _start(report)
    parts = [picture for section in sections for part in section.parts for picture in part.pictures]
    return {
        "names": coded_cells.names,
        "others": coded_cells.others,
        "nodes": coded_cells.nodes,
        "blanks": BLANKS,
        "nothing": NOTHING,
        "cells": _columns(coded_cells.cells),
        "moments": _columns(_in_steps(coded_cells.moments, report)),
        "start": start,
        "words": OUTCOMES,
        "advice": advice,
        "outcomes": [word for word in OUTCOMES if word in report.outcomes],
        "stuck": STUCK,
        "grids": [{**asdict(grid), "columns": [(key, kind_of(key)) for key, _ in grid.columns]} for grid in kinds],
        "shown": SHOWN,
        "lanes": drawing.LANES,
        "made": report.made_at // SECOND,
        "series": report.series.seconds if report.series else None,
        "pictures": drawing.draw(report, network),
        "balances": drawing.rows_of_balances(report, parts),
    }


def _start(report: Report) -> int:
    """Return when the first step of the series begins, in seconds."""
    return min((point.at for point in report.series.points), default=0) // SECOND if report.series else 0


def _in_steps(moments: Sequence[Row], report: Report) -> list[Row]:
    """Replace times by the numbers of their steps, which are shorter."""
    start, step = _start(report), report.series.seconds if report.series else 1
    return [{**moment, "at": (moment["at"] - start) // step} for moment in moments]


def _columns(rows: Sequence[Row]) -> Row:
    """Split rows into their columns' names, which stand once, and values; outcomes by places in `OUTCOMES`."""
    places = {word: place for place, word in enumerate(OUTCOMES)}
    short = [list({**row, "outcome": places[row["outcome"]]}.values()) for row in rows]
    return {"columns": list(rows[0]) if rows else [], "rows": short}


def _tiles(report: Report) -> list[Row]:
    """Return each outcome that there is, with its share of all messages."""
    whole = sum(report.outcomes.values())
    counted = [(word, report.outcomes[word]) for word in OUTCOMES if word in report.outcomes]
    return [
        {
            "outcome": word,
            "messages": f"{messages:,}",
            "share": f"{100 * messages / (whole or 1):.1f} %",
            "width": f"{100 * messages / (whole or 1):.3f}",
        }
        for word, messages in counted
    ]


def _sentences(every: Sequence[str]) -> Row:
    """Return the first ones, which are shown, those to unfold, and how many more there are."""
    shown = [sentence for [sentence] in first_of([words(sentence)] for sentence in every[:SHOWN])]
    return {"first": shown[:_SENTENCES], "rest": shown[_SENTENCES:], "more": len(every) - len(shown)}


def _folded(cube: ReportCube) -> list[str]:
    """List the notes on names that the page leaves out to stay small."""
    pairs = (("instances", cube.instances), ("services", cube.services))
    return [
        f"Of {names.all:,} {what} this page tells {len(names.names):,} by name, and all others together."
        for what, names in pairs
        if names.others
    ]


def _as_script(data: Row) -> str:
    """Write JSON that is no markup, whatever texts it holds."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _policy(style: str, *scripts: str) -> str:
    """Write the policy: nothing is loaded, sent or framed, and only this page's styles and scripts run."""
    allowed = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _text(name: str) -> str:
    return files("routing.features.report").joinpath(name).read_text(encoding="utf-8")


def _template() -> jinja2.Template:
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(_text("page.html"))
