"""Write a report as one page of HTML: it loads nothing, runs its own script only, and reads without it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from importlib.resources import files

import jinja2
from markupsafe import Markup

from routing.advice.trouble_catalogue import REASONS
from routing.delta.counted_runs import release
from routing.groups import group_pairs
from routing.lint.catalogue import Severity
from routing.render.html import write_html, write_words
from routing.render.phrases import cut
from routing.rules.observed import numbers_of
from routing.rules.timeline import SECOND
from routing.terms import ReadRow, Reason
from routing.views.page.estate_matrix import EstateMatrix, matrix_of
from routing.views.page.facts import ENDINGS, STUCK, Report
from routing.views.page.message_cells import ReportCube, cube_of, size_of
from routing.views.page.page_sections import order_balances, sections_of
from routing.views.page.page_tables import (
    LONGEST_NAME,
    SHOWN,
    PageChart,
    PageFilter,
    PageSection,
    PageTable,
    TableFiller,
    fill_tables,
    first_of,
    instant,
    words,
)
from routing.views.page.pictures import bar_pictures, estate_picture, over_time, picture_theme
from routing.views.page.pictures.picture_theme import NARROW, WIDE, Picture, to_svg
from routing.views.page.report_answer import count_endings, state_answer, state_limit, state_waiting

TITLE = "Where Service Broker messages end"
_SENTENCES = 5
_MOST_PRINTED = 40
"""The number of findings that are printed in full."""
_MOST_BALANCES = 10
"""The number of unfair balances that are drawn."""


def render(report: Report) -> str:
    """Return the page. It stays below 3 MB for every report."""
    matrix = matrix_of(report.flows, report.places)
    cube = cube_of(report, matrix.place)
    endings = [word for word in ENDINGS if word in report.endings]
    filler = TableFiller(cube, endings, report.made_at // SECOND, _advice(cube))
    tables, page_filter = fill_tables(report, cube, filler)
    charts = {chart.id: chart for chart in draw(report, matrix, cube, tables["estate"])}
    sections = sections_of(report, tables, charts)
    style = picture_theme.css() + _text("page.css") + _card_heads(sections) + _printed_findings(report)
    script = _text("page.js")
    return _template().render(
        title=TITLE,
        answer=words(state_answer(report)),
        waiting=" ".join(filter(None, (state_waiting(report), state_limit(report)))),
        headline=words(report.headline),
        made_at=instant(report.made_at),
        not_known=_sentences([*report.not_known, *_folded(cube)]),
        tiles=_tiles(report),
        sections=sections,
        endings=endings,
        filter=page_filter,
        data=Markup(_as_script(page_filter)),
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        release=release(),
    )


def advice_of(reason: str) -> tuple[tuple[int, ...], str]:
    """Return SQL Server's numbers for a reason, that of its event first, and one or two sentences of advice.

    ``reason`` is a word of `terms.Reason`. The numbers are empty if SQL Server has none.
    """
    return numbers_of(Reason(reason)), REASONS[Reason(reason)].advice


def _advice(cube: ReportCube) -> dict[str, tuple[str, str]]:
    reasons = {cell.reason for cell in cube.cells if cell.reason and cell.ending in STUCK}
    advice_by_reason = {reason: advice_of(reason) for reason in reasons}
    return {reason: (", ".join(map(str, numbers)), text) for reason, (numbers, text) in advice_by_reason.items()}


def draw(report: Report, matrix: EstateMatrix, cube: ReportCube, estate: PageTable) -> Iterator[PageChart]:
    """Yield the charts of all messages, except empty ones."""
    pictures: list[tuple[str, str, Picture]] = []
    if report.flows:
        pictures.append(
            ("instances-picture", "Messages by instance", bar_pictures.outcomes_by_instance(report.flows))
        )
    if count_endings(report, *STUCK):
        pictures += [
            ("reasons-picture", "Stuck messages by reason", bar_pictures.reasons_of_trouble(report.flows)),
            ("stuck-picture", "Stuck messages by service", bar_pictures.most_stuck(report.flows)),
        ]
    series = report.series
    if series is not None and series.points:
        pictures.append(("times-picture", "Messages over time", over_time.outcomes_over_time(series)))
        if over_time.delay_rows(series):
            pictures.append(("delays-picture", "Stuck messages over time", over_time.delays_by_service(series)))
    unfair = [balance for balance in order_balances(report.balances or ()) if balance.is_fair is False]
    pictures += [
        (f"balance-{place}-picture", f"Dialogs to {words(balance.service)}", bar_pictures.balance(balance))
        for place, balance in enumerate(unfair[:_MOST_BALANCES])
    ]
    for name, title, picture in pictures:
        yield PageChart(name, title, _description(picture), to_svg(picture, WIDE), to_svg(picture, NARROW))
    if report.flows:
        yield _draw_estate(matrix, cube, estate)


def _draw_estate(matrix: EstateMatrix, cube: ReportCube, estate: PageTable) -> PageChart:
    """Draw the matrix with links from its cells to rows of the table. Narrow windows show it if it fits."""
    cells = estate_picture.sum_cells(
        ((cell.source, cell.target), cell.ending, cell.messages) for cell in cube.cells
    )
    anchors: dict[tuple[str, str], str] = {}
    for row, name in zip(estate.rows, estate.ids, strict=True):
        anchors.setdefault((row[0], row[1]), f"#{name}")
    links = {pair: anchors[cut(pair[0], LONGEST_NAME), cut(pair[1], LONGEST_NAME)] for pair in cells}
    wide = estate_picture.draw_matrix(matrix, cells, links, WIDE)
    narrow = (
        estate_picture.draw_matrix(matrix, cells, links, NARROW) if estate_picture.fits(matrix, NARROW) else None
    )
    return PageChart(
        *("estate-picture", "Who sends to whom, and where messages end", _description(wide)),
        *(to_svg(wide, None), "" if narrow is None else to_svg(narrow, None)),
    )


def _description(picture: Picture) -> str:
    return str(picture.description)


def _tiles(report: Report) -> list[ReadRow]:
    whole = sum(report.endings.values())
    counted = [(word, report.endings[word]) for word in ENDINGS if word in report.endings]
    return [
        {
            "outcome": word,
            "messages": f"{messages:,}",
            "share": f"{100 * messages / (whole or 1):.1f} %",
            "width": f"{100 * messages / (whole or 1):.3f}",
        }
        for word, messages in counted
    ]


def _sentences(sentences: Sequence[str]) -> ReadRow:
    """Return the first sentences, which are shown, the folded ones, and the number left out."""
    listed_sentences = first_of(map(words, sentences[:SHOWN]), size_of)
    return {
        "first": listed_sentences[:_SENTENCES],
        "rest": listed_sentences[_SENTENCES:],
        "more": len(sentences) - len(listed_sentences),
    }


def _folded(cube: ReportCube) -> list[str]:
    pairs = (("instances", cube.instances), ("services", cube.services))
    return [
        f"This page names {len(names.names):,} of {names.all:,} {kind}, and adds up all others."
        for kind, names in pairs
        if names.other_count
    ]


def _card_heads(sections: Sequence[PageSection]) -> str:
    """Return the style that puts the head of its column before each cell of rows shown as cards."""
    tables = [table for section in sections for part in (section, *section.parts) for table in part.tables]
    selectors = group_pairs(
        (head, f"#{table.id} td:nth-child({place})::before")
        for table in tables
        for place, (head, _) in enumerate(table.heads[1:], 2)
    )
    rules = (
        f"{','.join(selector)}{{content:{json.dumps(head + ' ', ensure_ascii=False)}}}"
        for head, selector in selectors.items()
    )
    return f"@media screen and (max-width:40rem){{{''.join(rules)}}}\n"


def _printed_findings(report: Report) -> str:
    """Return the style for printing: errors and warnings in full, other findings only in the table of rules."""
    bad = sum(row["severity"] != Severity.INFO for row in report.findings or ())
    hidden = f"#findings tbody tr:nth-child(n+{min(bad, _MOST_PRINTED) + 1})"
    return f"@media print{{{hidden}{{display:none}}}}\n"


def _as_script(page_filter: PageFilter) -> str:
    """Write JSON without markup characters, so that texts in it cannot end the script."""
    return json.dumps(page_filter.data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _policy(style: str, *scripts: str) -> str:
    """Write the policy: no loading, sending or framing, and only this page's styles and scripts run."""
    allowed = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _text(name: str) -> str:
    return files("routing.views.page").joinpath(name).read_text(encoding="utf-8")


def _template() -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    # Both escape their texts.
    environment.filters["words"] = lambda text: Markup(write_words(text))
    environment.filters["html"] = lambda blocks: Markup(write_html(blocks))
    environment.filters["svg"] = Markup
    return environment.from_string(_text("page.html"))
