"""Draw the estate as a matrix: a row for each instance that sends, a column for each place where messages end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import altair as alt

from routing.render.wording import count
from routing.terms import JsonObject, ReadRow
from routing.views.page.estate_matrix import EstateMatrix, matrix_of
from routing.views.page.facts import ENDINGS, STUCK, Report
from routing.views.page.pictures import picture_theme
from routing.views.page.pictures.bar_pictures import marked

_ROW, _SMALL_ROW = 34, 20
"""The distance between rows in pixels. If cells are too small for numbers, the whole cell is coloured."""
_WIDEST, _LEAST = 84, 16
_NUMBERED, _EXACT = 30, 46
"""So wide a cell has room for a rounded number, and for an exact one."""
_NAMES = {picture_theme.WIDE: 190, picture_theme.NARROW: 96}
"""Pixels for the names of rows."""
_PADDING = {"left": 36, "top": 24, "right": 48, "bottom": 8}
"""Fonts differ from reader to reader, so slanted names may be longer than computed."""
_LEAST_PART = 0.12
"""Of a cell: a few messages that are stuck among many are seen."""
Cells = Mapping[tuple[str, str], Mapping[str, int]]
"""Messages by ending, by the titles of row and column."""


def estate_of(report: Report) -> picture_theme.Picture:
    """Draw the senders and destinations of a report, coloured by the endings of messages.

    The data set ``rows`` has the columns row and column (numbers from 0), outcome (the ending), messages, from and
    to (names), x and x2 (the part of the row's width) and href (None).
    """
    matrix = matrix_of(report.flows, report.places)
    return draw_matrix(matrix, sum_cells((matrix.place(flow), flow.end, flow.messages) for flow in report.flows))


def sum_cells(counted: Iterable[tuple[tuple[str, str], str, int]]) -> Cells:
    """Add up messages, given (titles of row and column, ending, messages)."""
    cells: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for place, ending, messages in counted:
        cells[place][ending] += messages
    return cells


def fits(matrix: EstateMatrix, width: int) -> bool:
    """Return True if the matrix has room for numbers in this width in pixels."""
    return len(matrix.columns) * _NUMBERED <= width - _NAMES[width]


def draw_matrix(
    matrix: EstateMatrix,
    cells: Cells,
    links: Mapping[tuple[str, str], str] | None = None,
    width: int = picture_theme.WIDE,
) -> picture_theme.Picture:
    """Draw a matrix with cells coloured by the endings of messages. ``links`` are the known targets of cells."""
    rows = list(cell_rows(matrix, cells, links or {}))
    room, column_count = width - _NAMES[width], max(1, len(matrix.columns))
    cell = min(_WIDEST, max(_LEAST, room / column_count))
    is_numbered = cell >= _NUMBERED
    step = _ROW if is_numbered else _SMALL_ROW
    wide, high = cell * column_count, step * max(1, len(matrix.rows))
    scales = {
        "x": alt.Scale(domain=[0, column_count], range=[0, wide], nice=False),
        "y": alt.Scale(domain=[0, max(1, len(matrix.rows))], range=[0, high], nice=False),
    }
    y = alt.Y("middle:Q", axis=None, scale=scales["y"])
    base = alt.Chart(picture_theme.named(rows)).transform_calculate(middle="datum.row + 0.5")
    thick, offset = (7, 9) if is_numbered else (step - 4, 0)
    strip = alt.MarkDef(type="bar", height=thick, yOffset=offset)
    parts = marked(base, strip).encode(
        x=alt.X("x:Q", axis=None, scale=scales["x"]),
        x2="x2:Q",
        y=y,
        color=picture_theme.outcome_colour([row["outcome"] for row in rows], orient="bottom"),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("from", "to", "outcome")]
        + [alt.Tooltip("messages:Q", format=",")],
    )
    whole = base.transform_aggregate(
        messages="sum(messages)", groupby=["row", "column", "middle", "href", "words"]
    ).transform_calculate(at="datum.column + 0.5")
    layers = [*_lines(matrix, scales, wide, high), parts]
    if is_numbered:
        number = alt.MarkDef(type="text", style="number", align="center", dy=-6)
        shape = "," if cell >= _EXACT else ".2~s"
        text = alt.Text("messages:Q", format=shape)
        layers.append(marked(whole, number).encode(x=alt.X("at:Q", axis=None), y=y, text=text))
    layers += _names(matrix, scales, _NAMES[width])
    if links:
        # The whole cell links to its rows, and screen readers read its name.
        cover = alt.MarkDef(type="rect", width=cell - 1, height=step - 1, fillOpacity=0, aria=True)
        layers.append(
            marked(whole.transform_filter("datum.href !== null"), cover).encode(
                x=alt.X("at:Q", axis=None), y=y, href="href:N", description="words:N"
            )
        )
    instances, places = count(len(matrix.rows), "instance"), count(len(matrix.columns), "place")
    words = f"A matrix: {instances} that send, and {places} where messages end, coloured by how they end."
    picture = alt.layer(*layers).properties(height=high, padding=_PADDING)
    return picture_theme.dressed(picture, words).properties(width=wide)


def cell_rows(matrix: EstateMatrix, cells: Cells, links: Mapping[tuple[str, str], str]) -> Iterable[ReadRow]:
    """Yield the rows of `estate_of`, in the order of rows and columns."""
    rows = {title: place for place, title in enumerate(matrix.rows)}
    columns = {title: place for place, title in enumerate(matrix.columns)}
    for (source, target), counts in sorted(
        cells.items(), key=lambda cell: (rows[cell[0][0]], columns[cell[0][1]])
    ):
        place, whole = columns[target], sum(counts.values())
        stuck = sum(counts.get(word, 0) for word in STUCK)
        names = {"from": picture_theme.drawn_text(source), "to": picture_theme.drawn_text(target)}
        description = f"{whole:,} messages from {names['from']} to {names['to']}, {stuck:,} of them stuck"
        shared = {"row": rows[source], "column": place, **names, "words": description}
        begin = 0.04
        for word, part in _parts(counts).items():
            ends = begin + 0.92 * part
            yield {
                **shared,
                "outcome": word,
                "messages": counts[word],
                "x": place + begin,
                "x2": place + ends,
                "href": links.get((source, target)),
            }
            begin = ends


def _parts(counts: Mapping[str, int]) -> dict[str, float]:
    """Return the part of a cell for each ending, stuck endings first. No part is too small to see."""
    ordered = [word for word in (*STUCK, *ENDINGS) if counts.get(word)]
    whole = sum(counts.values())
    parts = {word: max(_LEAST_PART, counts[word] / whole) for word in ordered}
    total = sum(parts.values())
    return {word: part / total for word, part in parts.items()}


def _lines(matrix: EstateMatrix, scales: Mapping[str, alt.Scale], wide: float, high: float) -> list[alt.Chart]:
    across = _chart_of({"at": place} for place in range(len(matrix.rows) + 1))
    down = _chart_of({"at": place} for place in range(len(matrix.columns) + 1))
    line = alt.MarkDef(type="rule", style="base")
    return [
        marked(across, line).encode(
            x=alt.value(0), x2=alt.value(wide), y=alt.Y("at:Q", axis=None, scale=scales["y"])
        ),
        marked(down, line).encode(
            y=alt.value(0), y2=alt.value(high), x=alt.X("at:Q", axis=None, scale=scales["x"])
        ),
    ]


def _chart_of(rows: Iterable[JsonObject]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(rows)))


def _names(matrix: EstateMatrix, scales: Mapping[str, alt.Scale], room: int) -> list[alt.Chart]:
    rows, columns = (
        _chart_of(
            {"at": place + 0.5, "name": picture_theme.drawn_text(title)} for place, title in enumerate(titles)
        )
        for titles in (matrix.rows, matrix.columns)
    )
    row_names = alt.MarkDef(type="text", style="name", align="right", dx=-8, limit=0.8 * (room - 12), fontSize=12)
    above = alt.MarkDef(type="text", style="name", align="left", angle=315, dx=4, dy=-4, limit=110, fontSize=12)
    return [
        marked(rows, row_names).encode(
            x=alt.value(0), y=alt.Y("at:Q", axis=None, scale=scales["y"]), text="name:N"
        ),
        marked(columns, above).encode(
            y=alt.value(0), x=alt.X("at:Q", axis=None, scale=scales["x"]), text="name:N"
        ),
    ]
