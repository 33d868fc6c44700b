"""Write a report as one page of HTML: it loads nothing, runs its own script alone, and reads without it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files

import jinja2
from markupsafe import Markup

from routing.advice.trouble_catalogue import REASONS
from routing.delta.counted_runs import release
from routing.rules.observed import numbers_of
from routing.rules.timeline import SECOND
from routing.terms import JsonObject, ReadRow, Reason
from routing.views.page.facts import STUCK, Report
from routing.views.page.message_cells import ReportCube, cube_of
from routing.views.page.page_sections import sections_of
from routing.views.page.page_tables import (
    BLANKS,
    NOTHING,
    OUTCOMES,
    SHOWN,
    CodedCells,
    MessageGrid,
    PageSection,
    TableFiller,
    coded,
    first_of,
    grids,
    instant,
    kind_of,
    words,
)
from routing.views.page.pictures import bar_pictures, over_time, picture_theme
from routing.views.page.pictures.estate_picture import estate
from routing.views.page.pictures.picture_theme import to_vega
from routing.views.page.report_network import ReportNetwork, network_of

# The pictures of a page, each compiled, by the id of its place; the page's script gives them their rows.


LANES = {"strips": over_time.STRIPS, "instances": bar_pictures.INSTANCES, "services": bar_pictures.SERVICES}
"""How many lanes of their own pictures have."""
_NO_ROWS: tuple[str, ...] = ("rows", "estate_edges", "estate_stops")
Spec = JsonObject


BALANCE = "balance"
"""The id of the specification that every balance's picture has; only their rows differ."""


def draw(report: Report, network: ReportNetwork) -> dict[str, Spec]:
    """Draw all pictures; return their specifications by id."""
    charts: JsonObject = {
        "instances-picture": bar_pictures.outcomes_by_instance(report.flows),
        "reasons-picture": bar_pictures.reasons_of_trouble(report.flows),
        "stuck-picture": bar_pictures.most_stuck(report.flows),
    }
    if report.series is not None:
        charts["times-picture"] = over_time.outcomes_over_time(report.series)
        charts["delays-picture"] = over_time.delays_by_service(report.series)
    if report.balances:
        charts[BALANCE] = bar_pictures.balance(report.balances[0])
    specs = {name: _without_rows(to_vega(chart)) for name, chart in charts.items()}
    specs["estate-picture"] = _without_rows(estate(network, picture_theme.by_style_sheet()))
    return specs


def rows_of_balances(report: Report, names: Sequence[str]) -> dict[str, list[ReadRow]]:
    """Return the rows of balances' pictures, by the ids of these: the first ones that have any dialogs."""
    picked = [one for one in report.balances or () if one.picks]
    return {name: bar_pictures.pick_rows(one) for name, one in zip(names, picked, strict=False)}


def _without_rows(spec: Spec) -> Spec:
    """Return the specification without what the page's script fills in."""
    for one in spec["data"]:
        if one["name"] in _NO_ROWS and "values" in one:
            one["values"] = []
    return spec


# What to do about messages that are stuck or lost: SQL Server's numbers of a reason, and advice.


def advice_of(reason: str) -> tuple[tuple[int, ...], str]:
    """Return SQL Server's numbers of a reason, that of its event first, and what to do in a sentence or two.

    ``reason`` is a word of `terms.Reason`. There are no numbers where SQL Server has none for it.
    """
    return numbers_of(Reason(reason)), REASONS[Reason(reason)].advice


TITLE = "How Service Broker messages are routed"
_SENTENCES = 5


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
    style, script, vega = picture_theme.css() + _text("page.css"), _text("page.js"), picture_theme.javascript()
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
) -> JsonObject:
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
        "lanes": LANES,
        "made": report.made_at // SECOND,
        "series": report.series.seconds if report.series else None,
        "pictures": draw(report, network),
        "balances": rows_of_balances(report, parts),
    }


def _start(report: Report) -> int:
    """Return when the first step of the series begins, in seconds."""
    return min((point.at for point in report.series.points), default=0) // SECOND if report.series else 0


def _in_steps(moments: Sequence[ReadRow], report: Report) -> list[ReadRow]:
    """Replace times by the numbers of their steps, which are shorter."""
    start, step = _start(report), report.series.seconds if report.series else 1
    return [{**moment, "at": (moment["at"] - start) // step} for moment in moments]


def _columns(rows: Sequence[ReadRow]) -> ReadRow:
    """Split rows into their columns' names, which stand once, and values; outcomes by places in `OUTCOMES`."""
    places = {word: place for place, word in enumerate(OUTCOMES)}
    short = [list({**row, "outcome": places[row["outcome"]]}.values()) for row in rows]
    return {"columns": list(rows[0]) if rows else [], "rows": short}


def _tiles(report: Report) -> list[ReadRow]:
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


def _sentences(every: Sequence[str]) -> ReadRow:
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


def _as_script(data: ReadRow) -> str:
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
    return files("routing.views.page").joinpath(name).read_text(encoding="utf-8")


def _template() -> jinja2.Template:
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(_text("page.html"))
